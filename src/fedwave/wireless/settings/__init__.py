"""The settings of a cell: read from presets and TOML files, and checked."""

"""The command line: one file per command, wired together in app.py."""

"""Pictures: a result in, a figure out. Needs matplotlib, the extra ``plots``."""

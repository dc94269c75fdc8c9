"""One number for all arithmetic of the package: finished runs are reused only where it is the same."""

from __future__ import annotations

# Raise it with every change that moves a bit of any result; CHANGELOG says what moved.
NUMERICS_VERSION = 1

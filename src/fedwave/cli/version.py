"""``fedwave --version``: the versions on which the last bits of a result may depend. Imports none of them."""

from __future__ import annotations

import platform
from importlib import metadata

from fedwave import __version__

PACKAGES = ("numpy", "scipy", "torch", "pydantic")


def version_text() -> str:
    """Return fedwave's version, and in a second line what it stands on; what is not installed is left out."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return f"fedwave {__version__}\n{', '.join(found)} on {platform.system()} {platform.machine()}"

"""Public names that are loaded when they are first used, so that importing a package stays light.

A package imports its names under ``if TYPE_CHECKING:``, where type checkers and the documentation find them,
and lists them in ``__all__``. Nothing else is needed: where a name is defined is read from those imports.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``: ``__getattr__, __dir__ = lazy_names(__name__)``."""
    home_of_name: dict[str, str] = {}

    def load(name: str) -> Any:
        if not home_of_name:
            home_of_name.update(homes(package))
        if name not in home_of_name:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return load_name(home_of_name[name], name)

    return load, lambda: sorted(sys.modules[package].__all__)


def load_name(module: str, name: str) -> Any:
    """Return what a module calls so; for parts that stand above the one that offers it, too."""
    return getattr(import_module(module), name)


def homes(package: str) -> dict[str, str]:
    """Return the module of each name that a package imports under ``if TYPE_CHECKING:``."""
    import ast

    loader: Any = import_module(package).__loader__
    source = loader.get_source(package)
    if source is None:
        raise ImportError(f"{package} was installed without its source, which says where its names are.")
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    return {
        alias.name: str(node.module)
        for block in blocks
        if getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

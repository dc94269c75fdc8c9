"""What travels between machines: models as plain bytes, and the user's own code where others lack it."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedwave.learning import Parameters

# Name, torch's name of the type, shape, and the bytes: a list, because the order of a sum decides its bits.
Packed = list[tuple[str, str, tuple[int, ...], NDArray[np.uint8]]]


def pack(parameters: Parameters) -> Packed:
    """Return a model as arrays of bytes, which Ray moves as they are: no tensor is pickled."""
    own = {name: value.detach().contiguous() for name, value in parameters.items()}
    return [
        (name, str(value.dtype).removeprefix("torch."), tuple(value.shape), _bytes_of(value))
        for name, value in own.items()
    ]


def unpack(packed: Packed) -> Parameters:
    """Return the model, in memory of its own: the object store's is only lent."""
    parameters = {}
    for name, dtype, shape, content in packed:
        parameters[name] = value = torch.empty(shape, dtype=getattr(torch, dtype))
        _bytes_of(value)[:] = content
    return parameters


def _bytes_of(tensor: torch.Tensor) -> NDArray[np.uint8]:
    """Return the memory of a contiguous tensor."""
    memory: NDArray[np.uint8] = tensor.flatten().view(torch.uint8).numpy()
    return memory


def own_modules(parts: Iterable[Any]) -> list[ModuleType]:
    """Return the loaded modules of the user's own that these classes or functions may need.

    That is every module found in the same folder as theirs, unless it is a folder of installed packages.
    """
    homes = [sys.modules.get(getattr(part, "__module__", None) or "") for part in parts]
    folders = {folder for module in homes if (folder := _folder(module)) is not None}
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    # What is in __main__ travels as code anyhow.
    return [m for m in modules if m.__name__ != "__main__" and _folder(m) in folders]


def _folder(module: ModuleType | None) -> Path | None:
    """Return the folder on sys.path that a module of the user's was found in; None for anybody else's."""
    file = getattr(module, "__file__", None)
    if module is None or file is None or module.__name__.split(".")[0] == "fedwave":
        return None
    path = Path(file).absolute()
    is_installed = {"site-packages", "dist-packages"} & set(path.parts)
    if is_installed or path.is_relative_to(sysconfig.get_path("stdlib")):
        return None
    place = path.parent if path.name == "__init__.py" else path.with_suffix("")
    names = module.__name__.split(".")
    is_found_by_name = list(place.parts[-len(names) :]) == names
    return place.parents[len(names) - 1] if is_found_by_name else None

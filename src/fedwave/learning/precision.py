"""The precision of products: float32, or bfloat16 with sums and models in float32."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import torch

from fedwave.errors import ConfigError

# What Linux calls the instructions: on x86 and on ARM.
_CPU_FLAGS = ("avx512_bf16", "amx_bf16", "bf16")
_CPU_INFO = Path("/proc/cpuinfo")


def products_in(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return the context in which torch rounds the operands of products to ``precision``.

    Sums are taken in float32, a product's result is rounded once more, and everything else (parameters,
    losses, norms, steps) stays in float32. Double precision (the Hessian-free gradient) is not touched.
    """
    return torch.autocast(
        device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16", cache_enabled=False
    )


def product_type(like: torch.Tensor) -> torch.dtype:
    """Return the type to which operands like this one are rounded here and now."""
    if like.dtype == torch.float32 and torch.is_autocast_enabled(like.device.type):
        return torch.get_autocast_dtype(like.device.type)
    return like.dtype


def require_precision(precision: str, device: torch.device) -> None:
    """Raise if this machine has no instructions for such products: it would imitate them, slowly."""
    if precision == "float32" or _has_bfloat16(device):
        return
    lack = (
        f"{device.type} has no bfloat16 products"
        if device.type != "cpu"
        else f"this CPU has no bfloat16 products (none of {', '.join(_CPU_FLAGS)} in {_CPU_INFO})"
    )
    raise ConfigError(f'execution.precision cannot be "{precision}": {lack}. Use "float32".')


def _has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    try:
        words = set(_CPU_INFO.read_text().split())
    except OSError:
        return False
    return device.type == "cpu" and any(flag in words for flag in _CPU_FLAGS)

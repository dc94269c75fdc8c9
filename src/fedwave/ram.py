"""How much memory there is, and a check before something is made that cannot fit."""

from __future__ import annotations

import os

from fedwave.errors import TooLargeError

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_UNKNOWN = 1 << 40  # where the system does not say: a TiB, which few machines have


def require_memory(num_bytes: int, *, what: str, fix: str) -> None:
    """Raise if ``num_bytes`` are more than the machine has, or more than this process may have.

    This is no promise that they are free: it refuses what could never work before time goes into it.
    """
    limit = memory_limit()
    if num_bytes > limit:
        raise TooLargeError(
            f"{what} would need {in_words(num_bytes)} of memory, but there are {in_words(limit)}. {fix}"
        )


def memory_limit() -> int:
    """Return the bytes of memory of this machine, or the limit on this process if that is less."""
    try:
        limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        return _UNKNOWN
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    return limit if allowed == resource.RLIM_INFINITY else min(limit, allowed)


def in_words(num_bytes: int) -> str:
    """Return a number of bytes for people, e.g. 3.7 GiB."""
    exponent = min(max(num_bytes.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    number = num_bytes / (1 << (10 * exponent)) if num_bytes < 1 << 1000 else float("inf")
    return f"{number:.3g} {_UNITS[exponent]}"

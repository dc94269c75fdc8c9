"""What the schemes are called in figures, and their colours: one colour for one scheme everywhere."""

from __future__ import annotations

from typing import Any

from fedwave.plots.style import COLOURS
from fedwave.reproduce.items import IVES, NORMALISED, URAL

_BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY = COLOURS[:6]
STYLES: dict[str, dict[str, Any]] = {
    "NUFM": {"colour": _BLUE},
    "Per-FedAvg": {"colour": _RED},
    "FedAvg": {"colour": _GREEN},
    IVES: {"colour": _BLUE},
    "URAL-IVES, stops below 0": {"colour": _BLUE, "is_dashed": True},
    URAL: {"colour": _GREEN},
    NORMALISED[0]: {"colour": _GREEN, "is_dashed": True},
    "NUFM-Greedy": {"colour": _RED},
    "NUFM-Random": {"colour": _ORANGE},
    "RU-Greedy": {"colour": _PINK},
    "RU-Random": {"colour": _SKY},
    "RU-Greedy, drawn ones compute": {"colour": _PINK, "is_dashed": True},
    "RU-Random, drawn ones compute": {"colour": _SKY, "is_dashed": True},
    "NUFM, first-order": {"colour": _ORANGE},
    "NUFM, hessian-free": {"colour": _PINK},
}
DATASETS = {
    "fashion-mnist": "Fashion-MNIST",
    "cifar-10": "CIFAR-10",
    "cifar-100": "CIFAR-100",
    "tiny-imagenet": "Tiny ImageNet",
    "digits": "digits",
}


def shown_scheme(scheme: str, counting: str) -> str:
    """Return what figures call a scheme; what is counted otherwise than in the paper says so."""
    if counting == "ours" and scheme == "URAL-IVES":
        return "URAL-IVES, stops below 0"
    return f"{scheme}, drawn ones compute" if counting == "ours" and scheme.startswith("RU-") else scheme

"""What the schemes are called in figures, and their colours: one colour for one scheme everywhere."""

from __future__ import annotations

from typing import Any

from fedwave.plots.style import SCHEME_COLOURS
from fedwave.reproduce.items import EVERYBODY, IVES, NORMALISED, URAL

_IVES = SCHEME_COLOURS["URAL (IVES)"]
_NUFM, _DRAWN = SCHEME_COLOURS["NUFM"], SCHEME_COLOURS["Per-FedAvg"]
_EVERYBODY, _HERDING = "#9B1C1C", "#2A8F8F"
STYLES: dict[str, dict[str, Any]] = {
    **{name: {"colour": colour} for name, colour in SCHEME_COLOURS.items()},
    IVES: {"colour": _IVES},
    "URAL-IVES, stops below 0": {"colour": _IVES, "is_dashed": True},
    NORMALISED[0]: {"colour": SCHEME_COLOURS[URAL], "is_dashed": True},
    "RU-Greedy, drawn ones compute": {"colour": SCHEME_COLOURS["RU-Greedy"], "is_dashed": True},
    "RU-Random, drawn ones compute": {"colour": SCHEME_COLOURS["RU-Random"], "is_dashed": True},
    "NUFM, first-order": {"colour": "#0072B2"},
    "NUFM, hessian-free": {"colour": "#CC79A7"},
    EVERYBODY: {"colour": _EVERYBODY},
    # The arms of the item "steps".
    "uniform": {"colour": _DRAWN},
    "uniform at NUFM's norms": {"colour": _DRAWN, "is_dashed": True},
    "NUFM at uniform's norms": {"colour": _NUFM, "is_dashed": True},
    "last step at NUFM's norms": {"colour": "#CC79A7", "is_dashed": True},
    "aligned at NUFM's norms": {"colour": "#0072B2", "is_dashed": True},
    "herding at NUFM's norms": {"colour": _HERDING, "is_dashed": True},
    "herding": {"colour": _HERDING},
    "everybody at NUFM's norms": {"colour": _EVERYBODY, "is_dashed": True},
    "everybody": {"colour": _EVERYBODY},
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

"""What a task is judged by: a name and how to read it. Tables are read with these alone, without torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """The name of a measure of quality, and how to read it."""

    name: str
    higher_is_better: bool
    is_share: bool  # between 0 and 1, shown in per cent


ACCURACY = Metric("accuracy", higher_is_better=True, is_share=True)
MEAN_ABSOLUTE_ERROR = Metric("mean_absolute_error", higher_is_better=False, is_share=False)

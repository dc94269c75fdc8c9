"""Allocation methods over many draws of a cell: means, paired differences and their 95 % intervals.

A draw is another seed: places, shadowing, fading, fleet and contributions are drawn anew, and every method
meets the same ones. Gains of a file with rounds are no draws of anybody: there, a draw is the next round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from fedwave.allocation import AllocationProblem
from fedwave.allocation.comparison import compare_methods, methods_for
from fedwave.errors import ProblemError, did_you_mean, shown
from fedwave.intervals import Interval, interval
from fedwave.server.round_problem import problem_of_cell
from fedwave.units import FloatArray

if TYPE_CHECKING:  # a cell needs more than numpy
    from fedwave.wireless.settings.config import CellConfig

ContributionKind = Literal["uniform", "exponential", "equal"]
Figure = Literal["objective", "contribution", "energy_j", "delay_s", "num_selected", "seconds"]
NORMALISED_MEAN = 5.0  # u ~ U(0, 10) in the paper's cell; elsewhere contributions are normalised to mean 1


def draw_contribution(kind: ContributionKind, *, mean: float, num_devices: int, seed: int) -> FloatArray:
    """Return what each update is worth: uniform in 0 to 2 mean, exponential, or equal."""
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        return rng.uniform(0.0, 2.0 * mean, num_devices)
    if kind == "exponential":
        return rng.exponential(mean, num_devices)
    if kind == "equal":
        return np.full(num_devices, mean)
    raise ProblemError(
        f"contribution is not known, got {shown(kind)}. "
        f"{did_you_mean(str(kind), ('uniform', 'exponential', 'equal'))}"
    )


def problems_over_draws(
    cell: CellConfig | str | Path,
    *,
    draws: int,
    num_devices: int | None = None,
    seed: int = 0,
    round_index: int = 0,
    contribution: ContributionKind | ArrayLike = "uniform",
    mean_contribution: float | None = None,
    **work: Any,
) -> Iterator[AllocationProblem]:
    """Yield problem (P) of each draw of a cell: a preset's name, a .toml file or its settings.

    ``num_devices`` is by default as many as its files have, or else 100. ``work`` are the further arguments
    of ``problem_of_cell``; weights that it leaves out are those of the first draw, for all draws.
    ``contribution`` is drawn with each draw, or given for all of them.
    """
    from fedwave.wireless.cell import Cell
    from fedwave.wireless.settings.config import CellConfig
    from fedwave.wireless.settings.load import load_cell_config
    from fedwave.wireless.settings.num_devices import num_devices_of

    if not isinstance(draws, int) or isinstance(draws, bool) or draws < 1:
        raise ProblemError(f"draws must be a whole number >= 1, got {shown(draws)}. Try 100.")
    config = cell if isinstance(cell, CellConfig) else load_cell_config(cell)
    count = num_devices_of(config, asked=num_devices)
    mean = (NORMALISED_MEAN if config.normalised else 1.0) if mean_contribution is None else mean_contribution
    for draw in range(draws):
        built = Cell.build(config, num_devices=count, seed=seed + draw)
        problem = problem_of_cell(
            built,
            draw_contribution(contribution, mean=mean, num_devices=count, seed=seed + draw)  # type: ignore[arg-type]
            if isinstance(contribution, str)
            else contribution,
            round_index=round_index + draw * built.channel.has_own_rounds,
            **work,
        )
        work |= {"energy_weight": problem.energy_weight, "delay_weight": problem.delay_weight}
        yield problem


@dataclass(frozen=True, eq=False, kw_only=True)
class DrawComparison:
    """Each method's figures of every draw, arrays (draws, methods), and whom others are held against."""

    methods: tuple[str, ...]
    baseline: str
    objective: FloatArray  # of (P)
    contribution: FloatArray  # U
    energy_j: FloatArray  # E
    delay_s: FloatArray  # T: computing and upload
    num_selected: FloatArray
    seconds: FloatArray  # that the method took

    @property
    def num_draws(self) -> int:
        """Number of draws."""
        return len(self.objective)

    def mean(self, method: str, figure: Figure = "objective") -> Interval:
        """Return the mean of a figure over the draws, with its 95 % confidence interval."""
        return interval(self._of(method, figure).tolist())

    def difference(self, method: str, figure: Figure = "objective") -> Interval:
        """Return the mean difference to the baseline, paired by draw, with its 95 % confidence interval.

        Draws in which either of them has no finite figure are left out; ``count`` says how many stay.
        """
        ours, theirs = self._of(method, figure), self._of(self.baseline, figure)
        both = np.isfinite(ours) & np.isfinite(theirs)
        return interval((ours[both] - theirs[both]).tolist())

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each method: means and paired differences with the half-widths of intervals."""
        names = get_args(Figure)
        return [
            {"method": method}
            | {name: _plain(self.mean(method, name)) for name in names}
            | {f"{name}_difference": _plain(self.difference(method, name)) for name in names[:-1]}
            for method in self.methods
        ]

    def _of(self, method: str, figure: Figure) -> FloatArray:
        if method not in self.methods:
            raise ProblemError(
                f"there is no method {method!r} here. {did_you_mean(method, self.methods)}"
            ) from None
        column: FloatArray = getattr(self, figure)[:, self.methods.index(method)]
        return column


def compare_over_draws(
    cell: CellConfig | str | Path,
    methods: Sequence[str] | None = None,
    *,
    draws: int = 100,
    baseline: str = "optimal",
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    **given: Any,
) -> DrawComparison:
    """Return the methods on the same draws of a cell, by default all that know its access.

    ``options`` are those of each method, as in ``compare_methods``; ``given`` are the further arguments of
    ``problems_over_draws`` and of ``problem_of_cell``.
    """
    names: tuple[str, ...] = ()
    rows: list[list[list[float]]] = []
    for draw, problem in enumerate(problems_over_draws(cell, draws=draws, seed=seed, **given)):
        names = names or tuple(dict.fromkeys([baseline, *(methods or methods_for(problem))]))
        found = compare_methods(problem, names, seed=seed + draw, options=options)
        rows.append(
            [
                [
                    one.allocation.objective,
                    one.allocation.contribution,
                    one.allocation.energy_j,
                    one.allocation.compute_delay_s + one.allocation.upload_delay_s,
                    float(one.allocation.num_selected),
                    one.seconds,
                ]
                for one in found.values()
            ]
        )
    figures = np.moveaxis(np.array(rows), 2, 0)
    order = ("objective", "contribution", "energy_j", "delay_s", "num_selected", "seconds")
    return DrawComparison(methods=names, baseline=baseline, **dict(zip(order, figures, strict=True)))


def _plain(found: Interval) -> dict[str, Any]:
    """Return a mean with the half-width of its interval; None where one draw allows none."""
    return {
        "mean": found.mean if found.count else None,
        "half_width_95": found.half_width if found.count > 1 else None,
        "draws": found.count,
    }

"""Which runs each table and figure is made of. Equal points of two items are one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from fedwave.experiments import Experiment, load_experiment
from fedwave.reproduce.profile import ROUND_OF_THE_PAPER, Profile

LEARNERS = {"NUFM": "nufm", "Per-FedAvg": "per-fedavg", "FedAvg": "fedavg"}

# The schemes of Figures 4 to 7. Top-contribution lets every device compute anyway, so NUFM's baselines count
# alike for the paper and for us; of the others, the paper counts every device's computing, Eq. (30).
IVES = "URAL (IVES as printed)"
URAL = "URAL (optimal)"
CELL_SCHEMES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (IVES, "paper", "ural-ives", ("cell.method.keep_negative=true",)),
    ("URAL-IVES", "ours", "ural-ives", ()),
    (URAL, "ours", "ural", ()),
    ("NUFM-Greedy", "", "nufm-greedy", ()),
    ("NUFM-Random", "", "nufm-random", ()),
    ("RU-Greedy", "paper", "ru-greedy", ("selection.everyone_computes=true",)),
    ("RU-Random", "paper", "ru-random", ("selection.everyone_computes=true",)),
    ("RU-Greedy", "ours", "ru-greedy", ()),
    ("RU-Random", "ours", "ru-random", ()),
)
URAL_SCHEMES = CELL_SCHEMES[:3]
# Raw contributions outweigh joules and seconds by far, so that the weights decide little; normalised to mean
# |u| = 1 they do not.
NORMALISED = (f"{URAL}, normalised u", "ours", "ural", ("cell.contribution_scale=normalised",))


@dataclass(frozen=True)
class FigurePoint:
    """A point of a figure: a preset with overrides, run once for each seed, and what the figure calls it."""

    preset: str
    overrides: tuple[str, ...]
    dataset: str
    scheme: str
    counting: str = ""  # of joules and seconds: "paper", "ours", or the same for both
    parameter: str = ""  # what the figure varies, e.g. "num_blocks"
    value: float | None = None
    with_readings: bool = False  # the model is also judged by other readings of the test

    def experiment(self, seed: int) -> Experiment:
        """Return the settings of one run."""
        return _loaded(self.preset, self.overrides).model_copy(update={"seed": seed})

    def command(self, seed: int) -> str:
        """Return the command that makes this run alone."""
        settings = "".join(f" -s {_quoted(setting)}" for setting in self.overrides)
        return f"fedwave run {self.preset} --seed {seed}{settings}"

    @property
    def labels(self) -> dict[str, Any]:
        """What tells this point from the others of its item."""
        return {
            "dataset": self.dataset,
            "scheme": self.scheme,
            "counting": self.counting,
            "parameter": self.parameter,
            "value": self.value,
        }


@lru_cache(maxsize=4096)
def _loaded(preset: str, overrides: tuple[str, ...]) -> Experiment:
    return load_experiment(preset, overrides)


def _quoted(setting: str) -> str:
    return f"'{setting}'" if any(letter in setting for letter in ' "{}[]') else setting


@dataclass(frozen=True)
class Item:
    """A table, a figure or a study: its name on the command line, its title, and its points."""

    name: str
    title: str
    points: Callable[[Profile], list[FigurePoint]]

    def seeds(self, profile: Profile, dataset: str) -> int:
        """Return over how many seeds a dataset is run by default."""
        by_dataset = self.name in ("table-2", "fig-2")
        return profile.seeds.get(dataset, profile.other_seeds) if by_dataset else profile.other_seeds


def learner(
    profile: Profile, dataset: str, scheme: str, *settings: str, num_selected: int | None = None
) -> FigurePoint:
    """Return NUFM, Per-FedAvg or FedAvg on an ideal network; the usual ones are judged by every reading."""
    chosen = profile.few_selected if num_selected is None else num_selected
    overrides = (
        f"data.dataset={dataset}",
        f"selection.num_selected={chosen}",
        f"num_rounds={profile.num_rounds}",
        *profile.settings,
        *settings,
    )
    return FigurePoint(
        preset=f"{profile.family}/{LEARNERS[scheme]}",
        overrides=overrides,
        dataset=dataset,
        scheme=scheme,
        with_readings=chosen == profile.few_selected,
    )


def over_cell(profile: Profile, which: tuple[str, str, str, tuple[str, ...]], *settings: str) -> FigurePoint:
    """Return one scheme of Figures 4 to 7 over the paper's cell."""
    scheme, counting, preset, own = which
    overrides = (
        f"data.dataset={profile.cell_dataset}",
        f"num_rounds={profile.num_rounds}",
        *profile.settings,
        *own,
        *settings,
    )
    return FigurePoint(f"{profile.family}/{preset}", overrides, profile.cell_dataset, scheme, counting)


def table_2(profile: Profile) -> list[FigurePoint]:
    """The accuracy of the three learners on every dataset."""
    return [learner(profile, dataset, scheme) for dataset in profile.datasets for scheme in LEARNERS]


def figure_2(profile: Profile) -> list[FigurePoint]:
    """Their loss by rounds, for every n_k."""
    return [
        replace(learner(profile, dataset, scheme, num_selected=n), parameter="num_selected", value=n)
        for dataset in profile.datasets
        for n in profile.num_selected
        for scheme in LEARNERS
    ]


def figure_3(profile: Profile) -> list[FigurePoint]:
    """Their loss at the paper's round, for every number of local steps.

    One step is Figure 2's run.
    """
    points = []
    for dataset in profile.step_datasets:
        for steps in profile.num_local_steps:
            for scheme in LEARNERS:
                point = learner(profile, dataset, scheme)
                if steps > 1:
                    point = learner(_short(profile), dataset, scheme, f"algorithm.num_local_steps={steps}")
                    point = replace(point, with_readings=False)
                points.append(replace(point, parameter="num_local_steps", value=steps))
    return points


def figure_4(profile: Profile) -> list[FigurePoint]:
    """All schemes over the paper's cell."""
    return [_with_blocks(profile, which, profile.usual_num_blocks) for which in CELL_SCHEMES]


def figure_5(profile: Profile) -> list[FigurePoint]:
    """All schemes for every number of blocks."""
    return [
        replace(_with_blocks(_short(profile), which, blocks), parameter="num_blocks", value=blocks)
        for blocks in profile.num_blocks
        for which in CELL_SCHEMES
    ]


def figure_6(profile: Profile) -> list[FigurePoint]:
    """All schemes for every largest channel gain."""
    return [
        replace(
            _with_blocks(_short(profile), which, profile.usual_num_blocks, f"cell.channel.high={gain}"),
            parameter="max_gain",
            value=gain,
        )
        for gain in profile.max_gains
        for which in CELL_SCHEMES
    ]


def figure_7(profile: Profile) -> list[FigurePoint]:
    """URAL under every weight of energy and of delay, also with contributions of their size."""
    return [
        replace(
            _with_blocks(_short(profile), which, profile.usual_num_blocks, f"cell.{name}={weight}"),
            parameter=name,
            value=weight,
        )
        for name in ("energy_weight", "delay_weight")
        for weight in profile.weights
        for which in (*URAL_SCHEMES, NORMALISED)
    ]


def beyond(profile: Profile) -> list[FigurePoint]:
    """Three meta-gradients, and NUFM with its turning point moved into the gradients."""
    dataset = profile.cell_dataset
    points = [
        replace(learner(profile, dataset, "NUFM"), parameter="similarity_penalty", value=1.0),
        learner(profile, dataset, "Per-FedAvg"),
    ]
    for gradient in ("first-order", "hessian-free"):
        point = learner(profile, dataset, "NUFM", f"algorithm.rule={gradient}")
        points.append(replace(point, scheme=f"NUFM, {gradient}", with_readings=False))
    for penalty in profile.similarity_penalties:
        point = learner(profile, dataset, "NUFM", f"selection.similarity_penalty={penalty}")
        points.append(replace(point, parameter="similarity_penalty", value=penalty, with_readings=False))
    return points


def readings(profile: Profile) -> list[FigurePoint]:
    """What the paper leaves open, one at a time; readings of the test alone come from Table II's own runs."""
    changes: list[tuple[str, tuple[str, ...]]] = [
        ("as we read it", ()),
        ("samples cut at one deviation (10)", ("partition.max_samples_per_class=10",)),
        ("samples hardly cut (50)", ("partition.max_samples_per_class=50",)),
        *((f"first weights {std:g}", (f"model.weight_std={std}",)) for std in profile.weight_stds),
        ("Hessian on the query set", ("algorithm.rule=exact-query",)),
    ]
    points = []
    for dataset in profile.reading_datasets:
        for name, settings in changes:
            for scheme in LEARNERS:
                own = () if scheme == "FedAvg" and "algorithm.rule" in "".join(settings) else settings
                if own:  # the last round's test is all that is asked
                    own = (*own, f"evaluation.every={profile.num_rounds}")
                point = learner(profile, dataset, scheme, *own)
                points.append(replace(point, parameter=name, with_readings=not own))
    return points


ITEMS: dict[str, Item] = {
    item.name: item
    for item in (
        Item("table-2", "Table II: accuracy after the last round", table_2),
        Item("fig-2", "Figure 2: loss by rounds, n_k devices upload", figure_2),
        Item("fig-3", "Figure 3: loss in round 19 by local steps", figure_3),
        Item("fig-4", "Figure 4: loss, energy and time of URAL and its baselines", figure_4),
        Item("fig-5", "Figure 5: the same by the number of blocks", figure_5),
        Item("fig-6", "Figure 6: energy and time by the largest channel gain", figure_6),
        Item("fig-7", "Figure 7: energy and time by the weights of problem (P)", figure_7),
        Item("readings", "Readings: training where the paper leaves it open", readings),
        Item("beyond", "Beyond the paper", beyond),
    )
}


def _short(profile: Profile) -> Profile:
    """Return the profile up to the paper's round, where alone the loss is measured."""
    once = f"evaluation.every={ROUND_OF_THE_PAPER}"
    return replace(profile, num_rounds=ROUND_OF_THE_PAPER, settings=(*profile.settings, once))


def _with_blocks(
    profile: Profile, which: tuple[str, str, str, tuple[str, ...]], blocks: int, *settings: str
) -> FigurePoint:
    return over_cell(profile, which, f"cell.num_blocks={blocks}", *settings)

"""Which runs each table and figure is made of. Equal points of two items are one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import get_args

from fedwave.data.faults import FaultKind
from fedwave.reproduce.figure_point import FigurePoint
from fedwave.reproduce.profile import ROUND_OF_THE_PAPER, Profile
from fedwave.reproduce.steps import ARMS

# What Figures 2 and 4 to 7 need of a finished run; runs of before have neither.
FULL = ("heldout_accuracy", "training_loss", "update_norm")

EVERYBODY = "Everybody"  # the mean over all training devices, as a reference
RATES_EVERY = 5  # rounds from test to test at unusual rates
QUERY_HESSIAN = "algorithm.rule=exact-query"
SAMPLE_WEIGHTS = "algorithm.planner=sample-weights"

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
class Item:
    """A table, a figure or a study: its name on the command line, its title, and its points."""

    name: str
    title: str
    points: Callable[[Profile], list[FigurePoint]]
    # Runs of a seed that are compared with each other: they count together, and come from one processor.
    group: Callable[[FigurePoint], str] = lambda point: point.dataset

    def seeds(self, profile: Profile, dataset: str) -> int:
        """Return over how many seeds a dataset is run by default."""
        return profile.num_seeds(self.name, dataset)


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
        curves=FULL,
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
    return FigurePoint(
        f"{profile.family}/{preset}", overrides, profile.cell_dataset, scheme, counting, curves=FULL
    )


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
                point = replace(learner(profile, dataset, scheme), curves=())
                if steps > 1:
                    point = learner(_short(profile), dataset, scheme, f"algorithm.num_local_steps={steps}")
                    point = replace(point, with_readings=False, curves=())
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
        replace(learner(profile, dataset, "NUFM"), parameter="similarity_penalty", value=1.0, curves=()),
        replace(learner(profile, dataset, "Per-FedAvg"), curves=()),
    ]
    for gradient in ("first-order", "hessian-free"):
        point = learner(profile, dataset, "NUFM", f"algorithm.rule={gradient}")
        points.append(replace(point, scheme=f"NUFM, {gradient}", with_readings=False, curves=()))
    for penalty in profile.similarity_penalties:
        point = learner(profile, dataset, "NUFM", f"selection.similarity_penalty={penalty}")
        point = replace(point, parameter="similarity_penalty", value=penalty)
        points.append(replace(point, with_readings=False, curves=()))
    return points


def readings(profile: Profile) -> list[FigurePoint]:
    """What the paper leaves open, one at a time; readings of the test alone come from Table II's own runs."""
    changes: list[tuple[str, tuple[str, ...]]] = [
        ("as we read it", ()),
        ("samples cut at one deviation (10)", ("partition.max_samples_per_class=10",)),
        ("samples hardly cut (50)", ("partition.max_samples_per_class=50",)),
        *((f"first weights {std:g}", (f"model.weight_std={std}",)) for std in profile.weight_stds),
        ("Hessian on the query set", (QUERY_HESSIAN,)),
        ("mean weighted by samples", (SAMPLE_WEIGHTS,)),
        ("one fixed first model", ("model.seed=0",)),
        *(
            (f"first weights {std:g}, {name}", (f"model.weight_std={std}", setting))
            for std in profile.combined_stds
            for name, setting in (
                ("Hessian on the query set", QUERY_HESSIAN),
                ("mean weighted by samples", SAMPLE_WEIGHTS),
            )
        ),
    ]
    points = []
    for dataset in profile.reading_datasets:
        for name, settings in changes:
            for scheme in LEARNERS:
                own = tuple(one for one in settings if scheme != "FedAvg" or one != QUERY_HESSIAN)
                if own:  # the last round's test is all that is asked
                    own = (*own, f"evaluation.every={profile.num_rounds}")
                point = learner(profile, dataset, scheme, *own)
                curves = ("training_loss",) if len(settings) > 1 else ()
                point = replace(point, with_readings=point.with_readings and not own, curves=curves)
                points.append(replace(point, parameter=name))
    return points


def rates(profile: Profile) -> list[FigurePoint]:
    """Accuracy and loss against beta, for the learners and for the mean over all training devices.

    The usual beta is Table II's run.
    """
    return [
        replace(_at_rate(profile, dataset, scheme, rate), parameter="meta_lr", value=rate)
        for dataset in profile.reading_datasets
        for rate in profile.meta_lrs
        for scheme in (*LEARNERS, EVERYBODY)
    ]


def steps(profile: Profile) -> list[FigurePoint]:
    """NUFM told apart from how far it steps: all arms, leaders first."""
    return [
        replace(learner(profile, dataset, "NUFM"), scheme=arm, arm=arm, with_readings=False)
        for dataset in profile.arm_datasets
        for arm in ARMS
    ]


def robust(profile: Profile) -> list[FigurePoint]:
    """What some training devices at fault do to the schemes; where everybody is chosen, lies do nothing."""
    points = []
    for kind in ("none", *get_args(FaultKind)):
        for scheme in ("NUFM", "Per-FedAvg", EVERYBODY):
            settings: tuple[str, ...] = ()
            if kind != "none" and not (kind == "liars" and scheme == EVERYBODY):
                settings = (f"faults.num_devices={profile.num_faulty}", f"faults.kind={kind}")
            point = _learner_or_everybody(profile, profile.cell_dataset, scheme, *settings)
            points.append(replace(point, parameter=kind, with_readings=point.with_readings and not settings))
    return points


def scales(profile: Profile) -> list[FigurePoint]:
    """URAL under every weight of energy, for every scale of u and every D_i of Eq. (23)."""
    usual = profile.usual_num_blocks
    sizes = [
        ("raw u", ("cell.contribution_scale=raw",)),
        *(
            (f"mean |u| = {size:g}", ("cell.contribution_scale=normalised", f"cell.contribution_size={size}"))
            for size in profile.contribution_sizes
        ),
    ]
    counts = [("", ()), *((f", D = {n}", (f"cell.samples_counted={n}",)) for n in profile.samples_counted)]
    return [
        replace(
            _with_blocks(
                _short(profile),
                (URAL + ", " + size + count, "ours", "ural", (*scale, *samples)),
                usual,
                f"cell.energy_weight={weight}",
            ),
            parameter="energy_weight",
            value=weight,
        )
        for size, scale in sizes
        for count, samples in counts
        for weight in profile.weights
    ]


ITEMS: dict[str, Item] = {
    item.name: item
    for item in (
        Item("table-2", "Table II: accuracy after the last round", table_2),
        Item(
            "fig-2",
            "Figure 2: loss by rounds, n_k devices upload",
            figure_2,
            # Runs of two n_k part in the first round: rounding is no more alike in them on one processor.
            lambda point: f"{point.dataset}, {point.value:g} devices",
        ),
        Item("fig-3", "Figure 3: loss in round 19 by local steps", figure_3),
        Item("fig-4", "Figure 4: loss, energy and time of URAL and its baselines", figure_4),
        Item("fig-5", "Figure 5: the same by the number of blocks", figure_5),
        Item("fig-6", "Figure 6: energy and time by the largest channel gain", figure_6),
        Item("fig-7", "Figure 7: energy and time by the weights of problem (P)", figure_7),
        Item(
            "readings",
            "Readings: training where the paper leaves it open",
            readings,
            lambda point: f"{point.dataset}, {point.parameter}",
        ),
        Item("beyond", "Beyond the paper", beyond),
        Item("steps", "Steps: whom NUFM chooses, told apart from how far it goes", steps),
        Item("rates", "Rates: accuracy and loss by the meta-learning rate", rates),
        Item("robust", "Robust: training devices at fault", robust),
        Item("scales", "Scales: Figure 7 by the scale of u and by D_i", scales),
    )
}


def _short(profile: Profile) -> Profile:
    """Return the profile up to the paper's round, where alone the loss is measured."""
    once = f"evaluation.every={ROUND_OF_THE_PAPER}"
    return replace(profile, num_rounds=ROUND_OF_THE_PAPER, settings=(*profile.settings, once))


def _learner_or_everybody(profile: Profile, dataset: str, scheme: str, *settings: str) -> FigurePoint:
    """Return a learner, or Per-FedAvg with the mean over all training devices."""
    if scheme != EVERYBODY:
        return learner(profile, dataset, scheme, *settings)
    point = learner(profile, dataset, "Per-FedAvg", *settings, num_selected=profile.num_training)
    return replace(point, scheme=EVERYBODY)


def _at_rate(profile: Profile, dataset: str, scheme: str, rate: float) -> FigurePoint:
    if rate == profile.usual_meta_lr:
        return _learner_or_everybody(profile, dataset, scheme)
    settings = (f"algorithm.meta_lr={rate}", f"evaluation.every={RATES_EVERY}")
    return replace(_learner_or_everybody(profile, dataset, scheme, *settings), with_readings=False)


def _with_blocks(
    profile: Profile, which: tuple[str, str, str, tuple[str, ...]], blocks: int, *settings: str
) -> FigurePoint:
    return over_cell(profile, which, f"cell.num_blocks={blocks}", *settings)

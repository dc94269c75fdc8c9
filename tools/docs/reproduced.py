"""The verdicts, Table II and single numbers of the committed reproduction, for the pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fedwave.intervals import Interval, Ratio, interval, ratio_interval
from fedwave.reproduce.items import ITEMS, IVES, LEARNERS, URAL
from fedwave.reproduce.readings import (
    JUDGED,
    by_dataset,
    readings_of_local_steps,
    readings_of_the_test,
    readings_of_training,
)
from fedwave.reproduce.report_pages import markdown_table
from fedwave.reproduce.report_tables import (
    CELL_FIGURES,
    accuracy_table,
    claims_table,
    figures_table,
    points,
)
from fedwave.reproduce.seed_tables import CURVES, SEEDS, TEST_READINGS, Tables, paired, read_rows
from fedwave.reproduce.verdicts import judge
from tools.docs.claims_in_words import ORDERS, orders_in_words, sentences, trained_in_words
from tools.docs.nufm_page import blocks
from tools.docs.pages import DOCS

FOLDER = DOCS / "reproduction"
DATASET = "fashion-mnist"  # the one that pages quote
HARDER_DATASET = "cifar-100"  # beside it, where the learners differ
HARDEST_DATASET = "tiny-imagenet"
ON_TRAINING_DEVICES = JUDGED["training devices"]
PREFIXES = {DATASET: "", HARDER_DATASET: "harder_", HARDEST_DATASET: "hardest_", "cifar-10": "easier_"}
LEADS_AFTER = (5, 19, 50)  # rounds
LEADS_WITH = (1, 10)  # local steps


def verdicts() -> str:
    """Return what stands in docs/reproduction.md: both tables, or that there are no results yet."""
    if not (FOLDER / "claims.csv").exists():
        return "No full run is in the repository yet.\n"
    claims = markdown_table(*claims_table(judge(Tables.read(FOLDER, ITEMS))))
    report = (
        "All figures and numbers: [the report](reproduction/README.md), also as one page that opens offline: "
        "[report.html](reproduction/report.html)."
    )
    return (
        "\n\n".join(
            (
                claims,
                "Table II; after “one run ±” the interval of one more run, in parentheses the paper:",
                _table_2(),
                report,
            )
        )
        + "\n"
    )


def numbers() -> dict[str, str]:
    """Return what pages quote of the reproduction, by name."""
    tables = Tables.read(FOLDER, ITEMS)
    accuracy = _accuracies(tables, DATASET)
    norms = tables.by_seed("table-2", "gradient_norm", dataset=DATASET, scheme="NUFM")
    found = {
        "command": "fedwave reproduce",
        "caveat": "Means and 95 % intervals over seeds; every verdict with its test is in reproduction.md.",
    }
    found["table_2"] = "\n" + _table_2() + "\n"
    for name, own in accuracy.items():
        mean = interval(list(own.values()))
        found[_key(name)] = f"{points(mean.mean, mean.half_width)} %"
    for dataset, prefix, others in (
        (DATASET, "", ("Per-FedAvg", "FedAvg")),
        (HARDEST_DATASET, "hardest_", ("Per-FedAvg", "FedAvg")),
    ):
        leader = _accuracies(tables, dataset)
        for other in others:
            lead = interval([a - b for a, b in paired(leader["NUFM"], leader[other]).values()])
            found[f"{prefix}nufm_minus_{_key(other)}"] = _signed(lead)
        found[f"{prefix}seeds"] = str(lead.count)
    for dataset, prefix in ((DATASET, ""), (HARDER_DATASET, "harder_")):
        for after in LEADS_AFTER:
            found[f"{prefix}lead_{after}"] = _lead_after(dataset, after)
        for steps in LEADS_WITH:
            found[f"{prefix}lead_with_{steps}"] = _lead_with(tables, dataset, steps)
        stepped = readings_of_local_steps([row for row in tables.rows["fig-3"] if row["dataset"] == dataset])
        lead = next(one.lead for one in stepped if one.name == f"τ = {LEADS_WITH[-1]}")
        found[f"{prefix}accuracy_lead_with_{LEADS_WITH[-1]}"] = _signed(lead)
    tested = readings_of_the_test(read_rows(FOLDER / "table-2" / TEST_READINGS))
    found["training_orders"] = orders_in_words(one for one in tested if one.name == ON_TRAINING_DEVICES)
    for reading in tested:
        prefix = PREFIXES.get(reading.dataset)
        if prefix is not None and reading.name == ON_TRAINING_DEVICES:
            leads = {"nufm_minus_per_fedavg": reading.lead, "per_fedavg_minus_fedavg": reading.last_lead}
            for key, lead in leads.items():
                found[f"{prefix}training_{key}"] = _signed(lead)
            found[f"{prefix}training_order"] = f"{reading.num_in_order} of {reading.lead.count} seeds"
    trained = by_dataset(readings_of_training(read_rows(FOLDER / "readings" / SEEDS)))
    for one in trained.get(DATASET, ()):
        if one.name == "first weights 0.2":
            found["wide_nufm_minus_per_fedavg"] = _signed(one.lead)
            found["wide_per_fedavg_minus_fedavg"] = _signed(one.last_lead)
            found["wide_nufm_minus_fedavg"] = _signed(one.other_lead)
            found["wide_order"] = ORDERS[one.order].removesuffix(" on")
    leads = accuracy["NUFM"], accuracy["Per-FedAvg"], accuracy["FedAvg"]
    for key, (better, worse) in {"one_run": leads[:2], "one_run_other": leads[1:]}.items():
        lead = interval([a - b for a, b in paired(better, worse).values()])
        found[key] = f"{points(lead.mean, lead.prediction, sign='+')} points"
    found |= blocks()
    found |= sentences(tables, judge(tables))
    found["trained_otherwise"] = trained_in_words(trained)
    found["trained_seeds"] = str(max(one.lead.count for own in trained.values() for one in own))
    found["steps_seeds"] = str(len({row["seed"] for row in tables.rows["fig-3"]}))
    found["spread"] = _range(accuracy["NUFM"].values()) + " %"
    found["gradient_norms"] = _range(norms.values())
    if cell := read_rows(FOLDER / "fig-4" / SEEDS):
        found["cell_seeds"] = str(len({row["seed"] for row in cell}))
        found["cell"] = "\n" + markdown_table(*figures_table(cell, CELL_FIGURES)) + "\n"
        for name, labels in CELLS.items():
            for column, what in (("energy_j", "energy"), ("delay_s", "time")):
                own = tables.by_seed("fig-4", column, scheme=URAL)
                theirs = tables.by_seed("fig-4", column, **labels)
                found[f"{name}_{what}"] = str(_ratio(theirs, own))
    return found


def _table_2() -> str:
    return markdown_table(*accuracy_table(read_rows(FOLDER / "table-2" / SEEDS)))


CELLS: dict[str, dict[str, str]] = {
    "ives": {"scheme": IVES},
    "greedy": {"scheme": "NUFM-Greedy"},
    "random": {"scheme": "NUFM-Random"},
    "ru_greedy": {"scheme": "RU-Greedy", "counting": "ours"},
    "ru_random": {"scheme": "RU-Random", "counting": "ours"},
}


def _lead_after(dataset: str, after: int) -> str:
    """Return by how many per cent NUFM's loss is below Per-FedAvg's after so many rounds."""
    fewest = {"dataset": dataset, "value": min(row["value"] for row in read_rows(FOLDER / "fig-2" / SEEDS))}
    curves = Tables({"fig-2": read_rows(FOLDER / "fig-2" / CURVES)})
    return _lead_in_loss(curves, "fig-2", f"loss_{after}", **fewest)


def _lead_with(tables: Tables, dataset: str, steps: int) -> str:
    """Return the same in the paper's round, with so many local steps."""
    return _lead_in_loss(tables, "fig-3", "loss_19", dataset=dataset, value=steps)


def _lead_in_loss(tables: Tables, item: str, column: str, **labels: object) -> str:
    losses = [tables.by_seed(item, column, scheme=scheme, **labels) for scheme in ("NUFM", "Per-FedAvg")]
    lead = interval([100.0 * (1.0 - own / other) for own, other in paired(*losses).values()])
    return f"{points(lead.mean, lead.half_width)} %"


def _accuracies(tables: Tables, dataset: str) -> dict[str, dict[int, float]]:
    """Return each learner's accuracy in Table II in per cent, by seed."""
    return {
        name: {
            seed: 100.0 * own
            for seed, own in tables.by_seed("table-2", "accuracy", dataset=dataset, scheme=name).items()
        }
        for name in LEARNERS
    }


def _signed(lead: Interval) -> str:
    return points(lead.mean, lead.half_width, sign="+") + " points"


def _key(scheme: str) -> str:
    return scheme.lower().replace("-", "_")


def _range(values: Iterable[float]) -> str:
    every = list(values)
    return f"{min(every):.0f} to {max(every):.0f}"


def _ratio(theirs: Mapping[int, float], own: Mapping[int, float]) -> Ratio:
    """Return the geometric mean of what they pay for each of ours, with its interval over seeds."""
    return ratio_interval([a / b for a, b in paired(theirs, own).values()])

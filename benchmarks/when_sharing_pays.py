"""When it pays to share the band: uploads with one block each, several, any share, or the band in turn.

    python benchmarks/when_sharing_pays.py [--draws 100]

One round of the street cell at a time, the same draws for all: 50 devices, 20 blocks, the CNN's 3.62 Mbit and
contributions as on Fashion-MNIST, as in when_planning_pays.py. Either the loss of every link or the number of
devices per block is changed. Each access (docs/allocation-accesses.md) is planned by its certified optimum
and by the best of four simple rules (by its median over the first 20 draws of each point).
Beside them: optima with as many uploads as blocks at most, so that more uploads are told apart from better
sharing, and blocks that are handed on when they fall free, from three beginnings: the one-block optimum as
planned, the same devices at full power (as the modem's cap allows), and the optimum of whole blocks.
The point "bare" is the street cell of the bare preset with the weights of its time, where freed blocks were
first seen to pay; its interference is averaged, so that blocks are alike.
Writes benchmarks/data/when_sharing_pays.csv (a line for each draw; what it has is not computed again)
and docs/figures/when_sharing_pays.png, and prints the tables of docs/results.toml: medians with 95 %
intervals from order statistics, of ratios to the one-block optimum of the same draw. Asserts that every
optimum is proven and that no rule beats its bound.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from itertools import product
from pathlib import Path

import numpy as np

from bench_allocation import trained_contributions
from fedwave import load_cell, problem_of_cell
from fedwave.allocation import Allocation, AllocationProblem, Status, account, allocate
from fedwave.allocation.schedule import handed_on
from fedwave.intervals import Median, median_interval
from fedwave.plots.style import new_figure, save_figure
from when_planning_pays import MODEL_BITS, NUM_BLOCKS, NUM_DEVICES, draw

AXES: dict[str, tuple[float, ...]] = {
    "link_loss_db": (-10, 0, 10, 20),
    "devices_per_block": (0.5, 1, 2.5, 5, 10),
    "bare": (0,),
}
SAME = {("devices_per_block", 2.5): ("link_loss_db", 0.0)}  # the street cell as it is
ACCESSES = {
    "one-block": ("One block each", "#000000", "o"),
    "blocks": ("Whole blocks", "#0072B2", "s"),
    "shared-band": ("Shared band", "#009E73", "^"),
    "tdma": ("Slots", "#D55E00", "v"),
}
RULES = ("threshold", "value-rate", "proportional-fair", "equal-split")
LIMITED = "optimal, M uploads"
AS_PLANNED, FULL_POWER, HANDED_ON = "handed on", "handed on, full power", "optimal, handed on"
MEASURES = {
    "objective": "objective, by that of\none block each",
    "upload_s": "time of uploads, by that of\none block each",
    "upload_j": "energy of uploads, by that of\none block each",
    "uploads": "uploads a round",
}
POINTS = {
    "the street cell as it is": ("link_loss_db", 0.0),
    "20 dB more loss": ("link_loss_db", 20),
    "as many devices as blocks": ("devices_per_block", 1),
    "10 devices a block": ("devices_per_block", 10),
}
FEW = (("shared-band", LIMITED), ("tdma", LIMITED))
HANDING = {
    ("one-block", AS_PLANNED): "one block each, as planned",
    ("one-block", FULL_POWER): "one block each, at full power",
    ("blocks", HANDED_ON): "whole blocks, as planned",
}
RATIOS = ("objective", "upload_s", "upload_j")
BATCH = 20  # draws of every point before the next ones; the first choose the best of the simple rules
NUM_REVIEWED = 60  # draws of the bare cell in which freed blocks were first seen to pay
DATA = Path(__file__).parent / "data" / "when_sharing_pays.csv"
PICTURE = Path(__file__).parent.parent / "docs" / "figures" / "when_sharing_pays.png"


@dataclass(frozen=True)
class Line:
    """What one way to plan a draw came to; the objective is that of (P), with what computing costs."""

    axis: str
    value: float
    draw: int
    access: str
    method: str
    objective: float
    upload_s: float
    upload_j: float
    uploads: int


Lines = list[Line]


def bare(seed: int) -> AllocationProblem:
    """Return a round of the bare street cell with blocks that are alike."""
    worth = np.random.default_rng(seed).permutation(trained_contributions()[seed % 100])
    cell = load_cell(
        "umi-3.5ghz-bare",
        num_devices=NUM_DEVICES,
        seed=seed,
        overrides={"num_blocks": NUM_BLOCKS, "interference": {"averaged": True}},
    )
    problem = problem_of_cell(
        cell,
        worth / worth.mean(),
        num_samples=14,
        model_bits=MODEL_BITS,
        energy_weight=0.1,
        delay_weight=2.0,
    )
    assert np.ptp(problem.channel_gain, axis=1).max() == 0.0
    return replace(problem, channel_gain=problem.channel_gain[:, 0])


def solved(problem: AllocationProblem, method: str = "optimal") -> tuple[float, float, float, int]:
    """Return objective, time, energy and number of uploads; an optimum is asserted to be one."""
    found = allocate(problem, method)
    if method == "optimal":
        assert found.status in (Status.OPTIMAL, Status.GAP_REACHED), found.status
    return measured(problem, found)


def measured(problem: AllocationProblem, found: Allocation) -> tuple[float, float, float, int]:
    """Return objective, time and energy of the uploads, and their number."""
    upload_j = float(account(problem, found).upload_energy_j.sum())
    return found.objective, found.upload_delay_s, upload_j, found.num_selected


def played(
    problem: AllocationProblem, planned: Allocation, *, is_at_full_power: bool = False
) -> tuple[float, float, float, int]:
    """Return the same of a plan of whole blocks that go on to others when they fall free."""
    objective, before_s, before_j, uploads = measured(problem, planned)
    if is_at_full_power:  # on one block each
        capped_w = problem.rate.max_snr * problem.block_noise_w[0] / problem.channel_gain
        power_w = np.where(planned.block_of_device >= 0, np.minimum(problem.max_power_w, capped_w), 0.0)
        planned = replace(planned, transmit_power_w=power_w)
    schedule = handed_on(problem, planned)
    upload_s = float(schedule.end_of_device_s(problem.num_devices).max())
    upload_j = float(schedule.energy_j(problem.num_devices, radio=problem.radio).sum())
    saved = problem.delay_weight * (before_s - upload_s) + problem.energy_cost(
        np.array([before_j - upload_j])
    )
    return objective + saved, upload_s, upload_j, uploads


def lines_of(axis: str, value: float, seed: int, rules: Mapping[str, Sequence[str]]) -> Iterator[Line]:
    """Yield every way to plan one draw, of simple rules those named for each access."""
    one_block = bare(seed) if axis == "bare" else draw("umi-3.5ghz", "tr38840", axis, value, seed)

    def line(access: str, method: str, found: tuple[float, float, float, int]) -> Line:
        return Line(axis, value, seed, access, method, *found)

    for access in ACCESSES:
        problem = replace(one_block, access=access)
        best = allocate(problem)
        assert best.status in (Status.OPTIMAL, Status.GAP_REACHED), best.status
        yield line(access, "optimal", measured(problem, best))
        for rule in rules[access]:
            found = allocate(problem, rule)
            assert found.objective <= best.upper_bound + 1e-9
            yield line(access, rule, measured(problem, found))
        if access in ("shared-band", "tdma"):
            few = replace(problem, max_uploads=min(problem.num_blocks, problem.num_devices))
            yield line(access, LIMITED, solved(few))
        if access == "one-block":
            yield line(access, AS_PLANNED, played(problem, best))
            yield line(access, FULL_POWER, played(problem, best, is_at_full_power=True))
        if access == "blocks":
            yield line(access, HANDED_ON, played(problem, best))


def best_rules(lines: Sequence[Line]) -> dict[str, str]:
    """Return the simple rule of each access with the best median at a point."""
    return {
        access: max(RULES, key=lambda rule: float(np.median(values(lines, access, rule, "objective"))))
        for access in ACCESSES
    }


def next_lines(known: Lines, axis: str, value: float, num_draws: int) -> Lines:
    """Return the lines of the next draws of a point; the first of them choose the rules that are kept."""
    first = len({line.draw for line in known})
    rules = (
        {access: (rule_of(known, access),) for access in ACCESSES}
        if known
        else dict.fromkeys(ACCESSES, RULES)
    )
    found = [line for seed in range(first, num_draws) for line in lines_of(axis, value, seed, rules)]
    if known:
        return found
    best = best_rules(found)
    return [line for line in found if line.method not in RULES or line.method == best[line.access]]


def values(lines: Sequence[Line], access: str, method: str, measure: str) -> list[float]:
    """Return a measure of the lines of one way to plan, in the order of the draws."""
    own = sorted(
        (line.draw, getattr(line, measure))
        for line in lines
        if (line.access, line.method) == (access, method)
    )
    return [float(value) for _, value in own]


def against(lines: Sequence[Line], access: str, method: str, measure: str) -> Median:
    """Return the median ratio to the one-block optimum of the same draw, where that is worth anything."""
    base = values(lines, "one-block", "optimal", measure)
    own = values(lines, access, method, measure)
    return median_interval([one / two for one, two in zip(own, base, strict=True) if two > 0.0])


def rule_of(lines: Sequence[Line], access: str) -> str:
    """Return the simple rule that was kept at a point."""
    return next(line.method for line in lines if line.access == access and line.method in RULES)


def read_lines(path: Path) -> Lines:
    """Return the lines of a file; none without one."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Line(
                axis=row["axis"],
                value=float(row["value"]),
                draw=int(row["draw"]),
                access=row["access"],
                method=row["method"],
                objective=float(row["objective"]),
                upload_s=float(row["upload_s"]),
                upload_j=float(row["upload_j"]),
                uploads=int(row["uploads"]),
            )
            for row in csv.DictReader(file)
        ]


def write_lines(lines: Sequence[Line], path: Path) -> None:
    """Write a line for each way to plan each draw, five digits each."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([one.name for one in fields(Line)])
        for line in lines:
            writer.writerow([f"{v:.5g}" if isinstance(v, float) else v for v in astuple(line)])


def at(lines: Sequence[Line], axis: str, value: float) -> Lines:
    """Return the lines of a point."""
    axis, value = SAME.get((axis, value), (axis, value))
    return [line for line in lines if line.axis == axis and line.value == value]


def shown(found: Median) -> str:
    """Return a median ratio and its interval, with two decimals below 10."""
    one, low, high = (
        f"{value:.2f}" if abs(value) < 10 else f"{value:.0f}"
        for value in (found.median, found.low, found.high)
    )
    return f"{one} ({low}–{high})"


def lost(lines: Sequence[Line], access: str) -> Median:
    """Return the per cent of the optimum's objective that the best simple rule of an access loses."""
    rule = values(lines, access, rule_of(lines, access), "objective")
    best = values(lines, access, "optimal", "objective")
    return median_interval([100 * (1 - one / two) for one, two in zip(rule, best, strict=True) if two > 0.0])


def print_tables(lines: Sequence[Line]) -> None:
    """Print the tables of docs/results.toml: each access by the one-block optimum, and blocks handed on."""
    print("| | access | objective | time | energy | uploads | the best simple rule loses |")
    print("|---|---|---|---|---|---|---|")
    for title, (axis, value) in POINTS.items():
        own = at(lines, axis, value)
        for access, method in (*((access, "optimal") for access in ACCESSES), *FEW):
            ratios = (shown(against(own, access, method, name)) for name in RATIOS)
            uploads = median_interval(values(own, access, method, "uploads"))
            rule = "" if method == LIMITED else f"{rule_of(own, access)}, {lost(own, access).median:.1f} %"
            name = f"`{access}`" + (", at most M" if method == LIMITED else "")
            cells = [
                title,
                name,
                *(["1"] * 3 if access == "one-block" else ratios),
                f"{uploads.median:.0f}",
                rule,
            ]
            print(f"| {' | '.join(cells)} |")
            title = ""
    print("\n| | from | objective | time | energy | better in |\n|---|---|---|---|---|---|")
    for title, (axis, value) in {**POINTS, "the bare cell of before": ("bare", 0.0)}.items():
        own = at(lines, axis, value)
        base = values(own, "one-block", "optimal", "objective")
        for (access, method), name in HANDING.items():
            ratios = (shown(against(own, access, method, measure)) for measure in RATIOS)
            found = values(own, access, method, "objective")
            better = sum(one > two * (1 + 1e-4) for one, two in zip(found, base, strict=True))
            print(f"| {title} | {name} | {' | '.join(ratios)} | {better} of {len(base)} |")
            title = ""


def print_keys(lines: Sequence[Line]) -> None:
    """Print the single numbers of docs/results.toml."""
    street, few = at(lines, "link_loss_db", 0.0), at(lines, "devices_per_block", 1.0)
    weak, half = at(lines, "link_loss_db", 20.0), at(lines, "devices_per_block", 0.5)
    bare_cell = [line for line in at(lines, "bare", 0.0) if line.draw < NUM_REVIEWED]
    found = {
        "blocks": shown(against(street, "blocks", "optimal", "objective")),
        "blocks_few": shown(against(few, "blocks", "optimal", "objective")),
        "blocks_half": shown(against(half, "blocks", "optimal", "objective")),
        "shared": shown(against(street, "shared-band", "optimal", "objective")),
        "shared_at_most": shown(against(street, *FEW[0], "objective")),
        "shared_uploads": f"{np.median(values(street, 'shared-band', 'optimal', 'uploads')):.0f}",
        "shared_weak_at_most": shown(against(weak, *FEW[0], "objective")),
        "slots": shown(against(street, "tdma", "optimal", "objective")),
        "slots_time": shown(against(street, "tdma", "optimal", "upload_s")),
        "slots_uploads": f"{np.median(values(street, 'tdma', 'optimal', 'uploads')):.0f}",
        "slots_weak": shown(against(weak, "tdma", "optimal", "objective")),
        "slots_at_most": shown(against(street, *FEW[1], "objective")),
        "slots_at_most_time": shown(against(street, *FEW[1], "upload_s")),
        "slots_at_most_energy": shown(against(street, *FEW[1], "upload_j")),
        "handed_on": shown(against(street, "one-block", AS_PLANNED, "objective")),
        "handed_on_time": shown(against(street, "one-block", AS_PLANNED, "upload_s")),
        "handed_on_weak": shown(against(weak, "one-block", AS_PLANNED, "objective")),
        "handed_on_few": shown(against(few, "one-block", AS_PLANNED, "objective")),
    }
    for name, method in (
        ("bare", "optimal"),
        ("bare_handed_on", AS_PLANNED),
        ("bare_full_power", FULL_POWER),
    ):
        time_s, energy_j = (np.mean(values(bare_cell, "one-block", method, one)) for one in RATIOS[1:])
        found[name] = f"{time_s:.2f} s and {energy_j:.1f} J"
    print("\n" + "\n".join(f'{key} = "{value}"' for key, value in found.items()))


def plot(lines: Sequence[Line], path: Path) -> None:
    """Draw each measure of each access over coverage and load: its optimum, and its best simple rule."""
    labels = {
        "link_loss_db": "weak coverage: loss added to every link [dB]",
        "devices_per_block": "load: devices per block",
    }
    figure, axes = new_figure(2, width=4.2, height=2.3, num_rows=len(MEASURES))
    for k, ((measure, name), (axis_name, label)) in enumerate(product(MEASURES.items(), labels.items())):
        axis = axes[k]
        for access, (title, colour, marker) in ACCESSES.items():
            ways = {"optimal": "-", "rule": "--"} | (
                {LIMITED: ":"} if access in ("shared-band", "tdma") else {}
            )
            for way, style in ways.items():
                points = [at(lines, axis_name, value) for value in AXES[axis_name]]
                found = []
                for own in points:
                    method = rule_of(own, access) if way == "rule" else way
                    ratio = against(own, access, method, measure)
                    found.append(
                        median_interval(values(own, access, method, measure))
                        if measure == "uploads"
                        else ratio
                    )
                x = np.array(AXES[axis_name], dtype=float)
                middle = np.array([one.median for one in found])
                axis.plot(
                    x,
                    middle,
                    color=colour,
                    ls=style,
                    lw=1.4 if way == "optimal" else 1.0,
                    marker=marker if way == "optimal" else None,
                    markersize=4,
                    label=title if way == "optimal" else None,
                )
                if way == "optimal":
                    low, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "high"))
                    axis.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
        if axis_name == "devices_per_block":
            axis.set_xscale("log")
            axis.set_xticks(AXES[axis_name], [f"{tick:g}" for tick in AXES[axis_name]])
            axis.minorticks_off()
        else:
            axis.set_ylabel(name)
        if measure != "objective" or axis_name == "devices_per_block":
            axis.set_yscale("log")
            ticks = (10, 20, 50, 100) if measure == "uploads" else (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
            ticks = ticks if measure != "objective" else (1, 2, 5)
            axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.minorticks_off()
        if k >= 2 * len(MEASURES) - 2:
            axis.set_xlabel(label)
        axis.axvline(0 if axis_name == "link_loss_db" else 2.5, color="black", lw=0.6, ls=":")
    handles, titles = axes[0].get_legend_handles_labels()
    for style, title in (
        ("-", "proven optimum"),
        ("--", "best simple rule"),
        (":", "optimum, at most M uploads"),
    ):
        handles += axes[0].plot([], [], color="#777777", ls=style)
        titles.append(title)
    figure.legend(handles, titles, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(
        "Ways to share the band in the street cell: medians of 100 draws, 95 % intervals", fontsize=10
    )
    save_figure(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    arguments = parser.parse_args()
    lines = read_lines(arguments.data)
    points = [(axis, value) for axis, all_of in AXES.items() for value in all_of if (axis, value) not in SAME]
    for count, (axis, value) in product(range(BATCH, arguments.draws + BATCH, BATCH), points):
        known = at(lines, axis, value)
        lines += next_lines(known, axis, value, min(count, arguments.draws))
        write_lines(lines, arguments.data)
    print_tables(lines)
    print_keys(lines)
    plot(lines, arguments.picture)


if __name__ == "__main__":
    main()

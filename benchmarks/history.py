"""Keeps the ratios that benchmarks measure, one line a run in history.jsonl, and draws them.

    python benchmarks/history.py COMMAND ...     runs a benchmark, and keeps the ratios that it prints
    python benchmarks/history.py                 draws docs/figures/benchmark_history.png

Ratios alone are kept: both sides of one are measured in the same process, so that a slow or busy machine
moves them little, where seconds would say more about the machine than about fedwave. A line says when, at
which commit, on which processor and under what load. Whether a step is one of fedwave or one of the machine
is for the reader to tell: colours are processors.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedwave import __version__
from fedwave.plots.style import COLOURS, new_figure, save_figure
from fedwave.runs.provenance import processor

ROOT = Path(__file__).parents[1]
HISTORY = ROOT / "benchmarks" / "history.jsonl"
PICTURE = ROOT / "docs" / "figures" / "benchmark_history.png"
# What is kept: its name, and the line of a benchmark's output that says it.
RATIOS = {
    "plain loop / fedwave, a round": re.compile(
        r"^the plain loop takes ([\d.]+) times fedwave", re.MULTILINE
    ),
    "fedwave / its matrix products": re.compile(r"^fedwave takes ([\d.]+) times its products", re.MULTILINE),
    "certified optimum / one matching": re.compile(r"n = 100, M = 20.*?([\d.]+) x a matching", re.DOTALL),
    "Ray / threads, a round": re.compile(r"^ratio +([\d.]+) \(each", re.MULTILINE),
}


def ratios(text: str) -> dict[str, float]:
    """Return the ratios that a benchmark's output says, by name."""
    found = {name: pattern.search(text) for name, pattern in RATIOS.items()}
    return {name: float(match[1]) for name, match in found.items() if match is not None}


def line(text: str, command: str) -> dict[str, Any]:
    """Return what is kept of one run of a benchmark."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "version": __version__,
        "commit": commit.stdout.strip(),
        "processor": processor(),
        "load": round(os.getloadavg()[0], 1),
        "command": command,
        "ratios": ratios(text),
    }


def read(path: Path = HISTORY) -> list[dict[str, Any]]:
    """Return the lines of the history, the oldest first."""
    return [json.loads(one) for one in path.read_text(encoding="utf-8").splitlines()]


def draw(lines: Iterable[dict[str, Any]], path: Path = PICTURE) -> Path:
    """Draw every ratio over the runs, in their order, a colour for each kind of processor."""
    lines = list(lines)
    names = [name for name in RATIOS if any(name in one["ratios"] for one in lines)]
    processors = list(dict.fromkeys(one["processor"] for one in lines))
    figure, axes = new_figure(len(names), width=3.4, height=2.6)
    for name, panel in zip(names, axes, strict=True):
        kept = [one for one in lines if name in one["ratios"]]
        for colour, kind in zip(COLOURS, processors, strict=False):
            at = [k for k, one in enumerate(kept) if one["processor"] == kind]
            panel.plot(at, [kept[k]["ratios"][name] for k in at], "o", color=colour, label=kind)
        panel.set_title(name, fontsize=9)
        panel.set_xticks(
            range(len(kept)), [f"{one['date'][5:]}\n{one['commit'][:6]}" for one in kept], fontsize=7
        )
        panel.set_xlim(-0.5, max(len(kept) - 0.5, 1.5))
        panel.set_ylim(0, 1.25 * max(one["ratios"][name] for one in kept))
    axes[0].legend(fontsize=7, loc="lower left")
    return save_figure(figure, path)


def main(words: list[str]) -> None:
    """Run and keep, or draw."""
    if words:
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr, sep="")
        kept = line(done.stdout, " ".join(["python", *words]))
        if not kept["ratios"]:
            raise SystemExit("error: the command printed no ratio that is kept.")
        with HISTORY.open("a", encoding="utf-8") as history:
            history.write(json.dumps(kept, ensure_ascii=False) + "\n")
    print(draw(read(HISTORY)))
    if words:
        sys.exit(done.returncode)  # a bar that the benchmark asserts holds here, too


if __name__ == "__main__":
    main(sys.argv[1:])

"""How long does the explorer take to answer a moved slider? On the server's side, as the page asks.

    python benchmarks/bench_explore.py

Asserted, for a weight (the cell stays) and for the number of blocks (the cell is drawn anew), medians: the
answer, that is, the certified optimum with the map, within 150 ms at n = 100, M = 20 and within 1 s at
n = 10,000, M = 100. At n = 100 all six methods and the curve over the delay keep to the 150 ms as well.
What comes after the answer is printed: the other methods, the curve, and one point of the Pareto front.

Both the seconds of the processor and those on the clock are printed. An answer computes on one core and waits
for nothing, so on a quiet machine the two agree; the bars are for the processor's.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from fedwave.explore.api import Api
from fedwave.explore.workbench import open_all

BARS_S = {(100, 20): 0.150, (10_000, 100): 1.0}
NUM_MOVES = {(100, 20): 15, (10_000, 100): 4}
ANSWERS = ("answer", "methods", "curve", "front, a point")
SLIDERS: dict[str, Callable[[dict[str, Any], int], dict[str, Any]]] = {
    "weight": lambda view, k: {"energy_weight": view["energy_weight"] * (1.0 + 0.05 * k)},
    "blocks": lambda view, k: {"num_blocks": view["num_blocks"] - k},
}


def timed(api: Api, name: str, asked: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds from a question to the text of its answer: the processor's and the clock's."""
    processor, clock = time.process_time(), time.perf_counter()
    json.dumps(api.answers()[name](asked))
    return time.process_time() - processor, time.perf_counter() - clock


def measure(preset: str, num_devices: int, num_blocks: int) -> dict[str, tuple[float, float]]:
    """Return the median seconds of each answer, by slider."""
    sources, runs, first = open_all([preset])
    api = Api(sources, runs, first, num_devices=num_devices)
    view = api.defaults({"source": preset})["view"] | {"num_blocks": num_blocks}
    found: dict[str, tuple[float, float]] = {}
    api.cell({"source": preset, "view": view})
    for slider, move in SLIDERS.items():
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ANSWERS}
        for k in range(1, 1 + NUM_MOVES[num_devices, num_blocks]):
            asked: dict[str, Any] = {"source": preset, "view": view | move(view, k)}
            times["answer"].append(timed(api, "cell", asked))
            others = ["ives", "greedy", "random", "chen2020", "fedl"]
            times["methods"].append(timed(api, "methods", {**asked, "methods": others}))
            times["curve"].append(timed(api, "curve", asked))
            times["front, a point"].append(timed(api, "front", {**asked, "ratios": [1.0]}))
        for name, pairs in times.items():
            processor, clock = map(statistics.median, zip(*pairs, strict=True))
            found[f"{slider}: {name}"] = (processor, clock)
    return found


def main() -> None:
    for (num_devices, num_blocks), bar_s in BARS_S.items():
        for preset in ("umi-3.5ghz", "paper"):
            found = measure(preset, num_devices, num_blocks)
            print(f"{preset}, n = {num_devices:,}, M = {num_blocks}")
            for name, (processor, clock) in found.items():
                print(
                    f"  {name:24} {1e3 * processor:8.1f} ms of the processor, {1e3 * clock:7.1f} on the clock"
                )
            for slider in SLIDERS:
                assert found[f"{slider}: answer"][0] <= bar_s, f"{slider} takes longer than {bar_s} s"
                if num_devices == 100:
                    whole = sum(found[f"{slider}: {name}"][0] for name in ANSWERS[:3])
                    assert whole <= bar_s, f"{slider} with methods and curve takes longer than {bar_s} s"


if __name__ == "__main__":
    main()

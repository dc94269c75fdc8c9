"""Much at once: many devices, a large allocation, a long run, several clients of the explorer.

    python benchmarks/bench_load.py            all of it: some five minutes on two quiet cores
    python benchmarks/bench_load.py NAME ...   of: devices, allocation, rounds, clients

Each runs in a process of its own and asserts that its result is right; nothing about time is asserted, but
that the last rounds of a long run take about as long as the first. Seconds of the processor and of the clock,
the peak memory, and the load of the machine before and after are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

NUM_ROUNDS, STRETCH = 3_000, 200
NUM_CLIENTS, CLIENTS_S = 10, 25.0
CELLS = ("paper", "umi-3.5ghz")
MANY_DEVICES = {
    "model.kind": "softmax",
    "num_rounds": 2,
    "data.dataset.kind": "synthetic",
    "data.dataset.num_samples": 620_000,
    "data.dataset.shape": [4],
    "data.dataset.num_classes": 4,
    "partition.kind": "iid",
    "partition.samples_per_device": 6,
    "partition.num_devices": 100_000,
    "partition.heldout_fraction": 0.01,
    "selection.num_selected": 30_000,
}


def devices() -> None:
    """Two rounds of 100,000 devices, of which 30,000 upload, by the command."""
    settings = [word for key, value in MANY_DEVICES.items() for word in ("-s", f"{key}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "fedwave", "run", "digits/nufm", *settings, "--quiet", "--out", "r"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        lines = (Path(folder) / "r" / "rounds.csv").read_text().splitlines()
        size = (Path(folder) / "r" / "rounds.csv").stat().st_size
    assert len(lines) == 3, "a header and two rounds"
    print(f"rounds.csv {size / 2**20:.1f} MiB; exit code {done.returncode} {done.stderr.strip()[:200]}")


def allocation() -> None:
    """The certified optimum of 2,000,000 devices on 300 blocks."""
    from bench_allocation import table_iii
    from fedwave.allocation import Status, allocate, violations

    problem = table_iii(0, 2_000_000, 300)
    found = allocate(problem)
    assert found.status is Status.OPTIMAL
    assert violations(problem, found) == ()
    print(f"{found.status.name}, {found.iterations} matchings, gap {found.upper_bound - found.objective:.1e}")


def rounds() -> None:
    """3,000 rounds over a cell: the first take as long as the last."""
    from fedwave import load_experiment, run_experiment

    class Watch:
        times: list[float] = []  # noqa: RUF012 - there is one

        def started(self, *_: object) -> None:
            self.times.append(time.process_time())

        def round_done(self, _: object) -> None:
            self.times.append(time.process_time())

    experiment = load_experiment("digits/ural", ["model.kind=softmax", f"num_rounds={NUM_ROUNDS}"])
    with tempfile.TemporaryDirectory() as folder:
        result = run_experiment(experiment, Path(folder) / "run", observers=[Watch()])
        size = (result.path / "devices.csv").stat().st_size
        assert len(result.rounds) == NUM_ROUNDS
    spent = [after - before for before, after in zip(Watch.times, Watch.times[1:], strict=False)]
    first, last = statistics.median(spent[:STRETCH]), statistics.median(spent[-STRETCH:])
    print(
        f"a round {1e3 * first:.1f} ms at first, {1e3 * last:.1f} ms at last "
        f"(processor, medians of {STRETCH}); devices.csv {size / 1e6:.1f} MB"
    )
    assert last < 2 * first, "rounds become slower"


def clients() -> None:
    """Ten clients who move sliders of two cells on one explorer, as fast as it answers."""
    command = [sys.executable, "-m", "fedwave", "explore", *CELLS, "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None
            times, errors = ask_for_a_while(*address[0].split("?token="))
        finally:
            server.terminate()
    print(
        f"{len(times)} answers in {CLIENTS_S:g} s, {len(errors)} errors, "
        f"median {statistics.median(times):.2f} s, 99 % below {statistics.quantiles(times, n=100)[-1]:.2f} s"
    )
    assert errors == []


def ask_for_a_while(address: str, token: str) -> tuple[list[float], list[str]]:
    """Return the seconds of each answer, and what went wrong."""
    times: list[float] = []
    errors: list[str] = []
    end = time.monotonic() + CLIENTS_S

    def ask(name: str, asked: dict[str, Any]) -> Any:
        headers = {"x-fedwave-token": token, "content-type": "application/json"}
        request = urllib.request.Request(f"{address}api/{name}", json.dumps(asked).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def client(number: int) -> None:
        source, k = CELLS[number % len(CELLS)], number
        try:
            view = ask("defaults", {"source": source})["view"]
            while time.monotonic() < end:
                k += 1
                moved = view | {"energy_weight": view["energy_weight"] * (1 + 0.01 * (k % 50))}
                start = time.perf_counter()
                ask("cell", {"source": source, "view": moved})
                times.append(time.perf_counter() - start)
        except (OSError, ValueError, KeyError) as error:
            errors.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=client, args=(number,)) for number in range(NUM_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, errors


LOADS: dict[str, Callable[[], None]] = {
    "devices": devices,
    "allocation": allocation,
    "rounds": rounds,
    "clients": clients,
}


def measure(name: str) -> None:
    """Run one in a process of its own, with all that it starts; print what it took."""
    load, start = os.getloadavg()[0], time.perf_counter()
    process = subprocess.Popen([sys.executable, __file__, "--one", name])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    clock = time.perf_counter() - start
    print(
        f"  {name}: processor {used.ru_utime + used.ru_stime:.1f} s, clock {clock:.1f} s, "
        f"peak {used.ru_maxrss / 2**20:.2f} GiB; load {load:.1f} before, {os.getloadavg()[0]:.1f} after",
        flush=True,
    )
    assert process.returncode == 0, name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(LOADS))
    parser.add_argument("--one", choices=LOADS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        LOADS[given.one]()
        return
    for name in given.names or LOADS:
        measure(name)


if __name__ == "__main__":
    main()

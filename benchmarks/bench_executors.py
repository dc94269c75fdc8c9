"""What does a Ray cluster cost beside threads: time, bytes moved, the driver's memory?

    python benchmarks/bench_executors.py

Ray is a real cluster of two nodes on this machine, on loopback, with half of its cores each; threads have all
cores. First the paper's round (50 training devices, CNN, exact) on both in turns, in one process. Then one
NUFM round each of 1,000 devices with that CNN and of 10,000 with a narrower one (8, 16, 32 channels), each
executor in a process of its own. Asserted: both compute the same bits; the paper's round takes at most
twice as long on Ray; between the nodes crosses what is asked for and not every model, and the driver's memory
stays low. Bytes are what the loopback interface carried, whoever sent them: quiet machines only.
"""

from __future__ import annotations

import hashlib
import json
import logging
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import psutil

from fedwave.devices.ray.connection import ClusterOptions, load_ray
from fedwave.devices.ray.executor import ray_devices
from fedwave.devices.threads import available_cores
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.learning.parameters import num_parameters
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.state import State

REPEATS = 7
MAX_RATIO = 2.0
SAMPLES_PER_DEVICE = 22  # as in bench_memory.py
CHANNELS_OF = {1_000: [32, 64, 128], 10_000: [8, 16, 32]}
MB = 1e6


@contextmanager
def two_nodes() -> Iterator[str]:
    """A cluster of two nodes; yields its address."""
    ray = load_ray()
    from ray.cluster_utils import Cluster

    each = max(1, available_cores() // 2)
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": each, "include_dashboard": False, "object_store_memory": 2 * 10**9},
    )
    try:
        cluster.add_node(num_cpus=each, object_store_memory=2 * 10**9)
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()


def on_ray(simulation: Simulation, address: str) -> Simulation:
    return replace(simulation, executor=partial(ray_devices, options=ClusterOptions(address=address)))


def loopback_bytes() -> int:
    counters = psutil.net_io_counters(pernic=True)
    name = next(name for name in counters if name in ("lo", "lo0"))
    return int(counters[name].bytes_sent)


def digest(state: State) -> str:
    found = hashlib.sha256()
    for name, value in state.parameters.items():
        found.update(name.encode() + value.numpy().tobytes())
    return found.hexdigest()


def paper_round() -> None:
    experiment = load_experiment(
        "paper/nufm",
        [
            "data.dataset=synthetic",
            "data.dataset.num_samples=20000",
            "data.dataset.shape=[1, 28, 28]",
            "evaluation.every=1000",
        ],
    )
    simulation = build_simulation(experiment)
    state = simulation.initial_state()
    model_mb = 4 * num_parameters(state.parameters) / MB
    seconds: dict[str, list[float]] = {"threads": [], "ray": []}
    moved = []
    with two_nodes() as address:
        opened = {"threads": simulation, "ray": on_ray(simulation, address)}
        with (
            closing(opened["threads"].open_devices()) as threads,
            closing(opened["ray"].open_devices()) as cluster,
        ):
            for repeat in range(REPEATS + 1):
                digests = []
                for name, devices in (("threads", threads), ("ray", cluster)):
                    # A state of its own each time: the executor sends a model that it has not sent yet.
                    fresh = replace(state, parameters=dict(state.parameters))
                    bytes_before, start = loopback_bytes(), time.perf_counter()
                    after, _ = simulation.run_round(fresh, devices)
                    if repeat:  # the first is a warm-up
                        seconds[name].append(time.perf_counter() - start)
                        if name == "ray":
                            moved.append((loopback_bytes() - bytes_before) / MB)
                    digests.append(digest(after))
                assert digests[0] == digests[1], "the executors differ"
    ratios = [ray / threads for ray, threads in zip(seconds["ray"], seconds["threads"], strict=True)]
    ratio = statistics.median(ratios)
    print(f"{len(simulation.train)} devices, model {model_mb:.2f} MB, all models {50 * model_mb:.0f} MB")
    for name, times in seconds.items():
        print(f"{name:8} {statistics.median(times):.3f} s a round (median of {REPEATS})")
    print(f"ratio    {ratio:.2f} (each: {', '.join(f'{one:.2f}' for one in ratios)})")
    print(f"moved    {statistics.median(moved):.1f} MB a round (least {min(moved):.1f})", flush=True)
    assert ratio <= MAX_RATIO, f"a round on Ray takes {ratio:.2f} times as long, must be {MAX_RATIO}"


def one_round(executor: str, num_devices: int) -> dict[str, Any]:
    experiment = load_experiment(
        "scale/synthetic-10k",
        [
            f"partition.num_devices={num_devices}",
            f"data.dataset.num_samples={SAMPLES_PER_DEVICE * num_devices}",
            f"model.channels={CHANNELS_OF[num_devices]}",
        ],
    )
    simulation = build_simulation(experiment)
    state = simulation.initial_state()

    def play(simulation: Simulation) -> dict[str, Any]:
        with closing(simulation.open_devices()) as devices:
            bytes_before, start = loopback_bytes(), time.perf_counter()
            after, _ = simulation.run_round(state, devices)
            seconds = time.perf_counter() - start
            return {
                "seconds": seconds,
                "moved_mb": (loopback_bytes() - bytes_before) / MB,
                "model_mb": 4 * num_parameters(state.parameters) / MB,
                "data_mb": simulation.train.dataset.inputs.nbytes / MB,
                "digest": digest(after),
            }

    if executor == "threads":
        found = play(simulation)
    else:
        with two_nodes() as address:
            found = play(on_ray(simulation, address))
    return {**found, "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2}


def many_devices(num_devices: int) -> dict[str, Any]:
    found = {}
    for executor in ("threads", "ray"):
        command = [sys.executable, __file__, "--one", executor, str(num_devices)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found[executor] = json.loads(done.stdout.splitlines()[-1])
    threads, ray = found["threads"], found["ray"]
    assert threads["digest"] == ray["digest"], "the executors differ"
    print(
        f"{num_devices:,} devices: threads {threads['seconds']:.1f} s, ray {ray['seconds']:.1f} s, ratio "
        f"{ray['seconds'] / threads['seconds']:.2f}; peak of the process {threads['peak_gb']:.2f} GB, of the "
        f"driver {ray['peak_gb']:.2f} GB; moved {ray['moved_mb']:.0f} MB (dataset {ray['data_mb']:.0f} MB, "
        f"all models {num_devices * ray['model_mb']:,.0f} MB)",
        flush=True,
    )
    return ray


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one_round(sys.argv[2], int(sys.argv[3]))))
        return
    paper_round()
    for num_devices in CHANNELS_OF:
        ray = many_devices(num_devices)
        # The second node fetches the dataset and the global model; the driver the chosen models.
        most = 1.5 * (ray["data_mb"] + 21 * ray["model_mb"]) + 20
        assert ray["moved_mb"] < most, f"moved {ray['moved_mb']:.0f} MB, must stay under {most:.0f} MB"
        assert ray["peak_gb"] < 2.0, f"the driver took {ray['peak_gb']:.2f} GB"


if __name__ == "__main__":
    main()

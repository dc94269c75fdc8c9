"""What does Flower cost? The same NUFM rounds in ``fedwave run`` and in Flower's simulation, in turns.

    python benchmarks/bench_flower.py [--devices 50 500] [--rounds 3]

Paper scale: the CNN on 28x28 images, exact meta-gradients, 20 uploads a round. Flower's simulation sends each
message through its in-memory link to Ray workers, one for each core. A round's time is from the moment that
the server has a model to the next one; starting up (processes, imports, Ray) and the first round, where nodes
say hello, are left out, and printed. Asserted: the same devices in every round, models equal within 1e-5.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from contextlib import closing

os.environ |= {
    "FLWR_TELEMETRY_ENABLED": "0",
    "RAY_ADDRESS": "local",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the loopback interface alone
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
}

import numpy as np
import ray
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from fedwave.devices.threads import available_cores
from fedwave.flower import PoolDevice, client_app, initial_arrays, simulation_of, strategy_of_experiment


def config_of(num_devices: int) -> dict[str, str]:
    """The paper's setting with so many training devices; as many again are held out, and not evaluated."""
    overrides = (
        f"data.dataset=synthetic data.dataset.num_samples={400 * num_devices} data.dataset.shape=[1,28,28] "
        f"partition.num_devices={2 * num_devices} evaluation.every=1000 num_rounds=1000"
    )
    return {"experiment": "paper/nufm", "overrides": overrides}


def fedwave_rounds(num_devices: int, num_rounds: int):
    """Return the seconds of each round, the model and the selected devices in fedwave's own executor."""
    simulation = simulation_of(config_of(num_devices))
    position = {int(device): index for index, device in enumerate(simulation.train.device_ids)}
    state, seconds, selected = simulation.initial_state(), [], []
    with closing(simulation.open_devices()) as devices:
        for _ in range(num_rounds):
            start = time.perf_counter()
            state, record = simulation.run_round(state, devices)
            seconds.append(time.perf_counter() - start)
            selected.append([position[device] for device in record.columns["selected_devices"]])
    return seconds, {name: value.numpy() for name, value in state.parameters.items()}, selected


def flower_rounds(num_devices: int, num_rounds: int):
    """Return the same from Flower's simulation, and the seconds until the first round was over."""
    config, found = config_of(num_devices), {}
    server = ServerApp()
    begun = time.perf_counter()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        simulation = simulation_of(config)
        times: list[float] = []

        def note(server_round: int, arrays: ArrayRecord) -> None:
            times.append(time.perf_counter())

        result = strategy_of_experiment(simulation).start(
            grid, initial_arrays(simulation), num_rounds=num_rounds, evaluate_fn=note
        )
        found["seconds"] = np.diff(times).tolist()
        found["startup"] = times[1] - begun
        found["model"] = {name: array.numpy() for name, array in result.arrays.items()}
        records = result.train_metrics_clientapp.values()
        found["selected"] = [record["selected"] for record in records]
        found["bytes"] = {key: value for key, value in next(iter(records)).items() if "bytes" in key}

    def device(context: Context) -> PoolDevice:
        return PoolDevice(simulation_of(config), int(context.node_config["partition-id"]))

    run_simulation(
        server, client_app(device), num_devices, backend_config={"client_resources": {"num_cpus": 1}}
    )
    ray.shutdown()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--devices", type=int, nargs="+", default=[50, 500])
    parser.add_argument("--rounds", type=int, default=3, help="rounds in each turn; the first is left out")
    parser.add_argument("--turns", type=int, default=2)
    arguments = parser.parse_args()
    medians: dict[str, list[float]] = {"fedwave": [], "Flower": []}
    for num_devices in arguments.devices:
        own, flower = [], []
        for _ in range(arguments.turns):
            seconds, model, selected = fedwave_rounds(num_devices, arguments.rounds)
            own += seconds[1:]
            found = flower_rounds(num_devices, arguments.rounds)
            flower += found["seconds"][1:]
            assert found["selected"] == selected, "other devices were selected"
            for name, value in model.items():
                difference = np.linalg.norm(found["model"][name] - value) / np.linalg.norm(value)
                assert difference <= 1e-5, f"{name} differs by {difference:g}"
        medians["fedwave"].append(statistics.median(own))
        medians["Flower"].append(statistics.median(flower))
        ratio = medians["Flower"][-1] / medians["fedwave"][-1]
        print(f"{num_devices} devices, {available_cores()} cores, median of {len(own)} rounds")
        print(f"  fedwave run        {medians['fedwave'][-1]:.2f} s a round")
        print(f"  Flower simulation  {medians['Flower'][-1]:.2f} s a round, {ratio:.1f} times as long")
        print(f"  start and first round of Flower  {found['startup']:.1f} s")
        print(f"  bytes of the first round  {found['bytes']}")
    if len(arguments.devices) > 1:
        first, last = arguments.devices[0], arguments.devices[-1]
        for executor, values in medians.items():
            print(
                f"from {first} to {last} devices, {executor} takes {values[-1] / values[0]:.1f} times as long"
            )


if __name__ == "__main__":
    main()

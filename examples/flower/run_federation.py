"""One SuperLink, four SuperNodes, three rounds of NUFM over TLS; checked, and everything stopped again.

    python examples/flower/run_federation.py [--simulation]

It prints what each round came to, and compares the model with that of ``fedwave run`` for the same settings.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
from loopback import Loopback
from safetensors.numpy import load_file

from fedwave.flower import simulation_of

EXPERIMENT = "digits/nufm"
OVERRIDES = "partition.num_devices=8 selection.num_selected=2"  # four devices train, four are held out
NUM_ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--simulation", action="store_true", help="let Flower simulate the nodes with Ray")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Loopback(Path(folder) / "federation") as federation:
        out = train(federation, in_simulation=arguments.simulation)
        show_and_check(out)


def train(federation: Loopback, *, in_simulation: bool = False) -> Path:
    """Start the federation's processes and run the app on them; return the folder of its result."""
    num_nodes = len(simulation_of({"experiment": EXPERIMENT, "overrides": OVERRIDES}).train)
    if in_simulation:
        federation.start_simulation()
    else:
        federation.start_superlink()
        for device in range(num_nodes):
            federation.start_node(device)
    return run_app(federation, "simulated" if in_simulation else "real", num_nodes if in_simulation else 0)


def run_app(federation: Loopback, name: str, simulated_nodes: int = 0) -> Path:
    """Run the app on a federation that has been started."""
    out = federation.folder / name
    run_id = federation.run(
        simulated_nodes=simulated_nodes,
        num_rounds=NUM_ROUNDS,
        experiment=EXPERIMENT,
        overrides=OVERRIDES,
        out=out,
    )
    status = federation.wait(run_id, timeout_s=900.0)
    if status != "finished:completed":
        raise RuntimeError(f"the run is {status}: {federation.log(f'run-{run_id}')[-3000:]}")
    return out


def show_and_check(out: Path) -> None:
    """Print the rounds, and raise unless they are those of ``fedwave run``."""
    rounds = json.loads((out / "rounds.json").read_text(encoding="utf-8"))["rounds"]
    for record in rounds.values():
        print(
            f"round {record['round']}: {len(record['reported'])} devices reported in "
            f"{record['report_bytes_up']:,} bytes, {record['received']} sent their models in "
            f"{record['upload_bytes_up']:,} bytes"
        )
    model, selected = fedwave_run()
    if [record["selected"] for record in rounds.values()] != selected:
        raise AssertionError(f"fedwave run selects {selected}")
    got = load_file(out / "model.safetensors")
    largest = max(float(np.linalg.norm(got[n] - v) / np.linalg.norm(v)) for n, v in model.items())
    if not largest <= 1e-5:
        raise AssertionError(f"the model differs from that of fedwave run by {largest:g}")
    print(f"the same devices as fedwave run, and the same model (relative difference {largest:.1g})")


def fedwave_run() -> tuple[dict[str, np.ndarray], list[list[int]]]:
    """Return the model and the selected devices of the same rounds without Flower."""
    simulation = simulation_of({"experiment": EXPERIMENT, "overrides": OVERRIDES})
    position = {int(device): index for index, device in enumerate(simulation.train.device_ids)}
    state, selected = simulation.initial_state(), []
    with closing(simulation.open_devices()) as devices:
        for _ in range(NUM_ROUNDS):
            state, record = simulation.run_round(state, devices)
            selected.append([position[device] for device in record.columns["selected_devices"]])
    return {name: value.numpy() for name, value in state.parameters.items()}, selected


if __name__ == "__main__":
    main()

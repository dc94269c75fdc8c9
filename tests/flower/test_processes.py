"""Flower with real processes: a SuperLink and SuperNodes on the loopback interface, TLS and node keys on."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.flower.toy import rounds_by_hand
from tests.flower.toy_server import first_model

ROOT = Path(__file__).parents[2]
APP = Path(__file__).parent / "faulty_app"
DEADLINE_S = float(os.environ.get("FEDWAVE_TEST_DEADLINE_S", "45"))  # longer on a busy machine
ENVIRONMENT = {
    "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    "FEDWAVE_TEST_HANG_S": str(2.5 * DEADLINE_S),
}

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    """The script of the example, which has the federation too."""
    sys.path.insert(0, str(ROOT / "examples" / "flower"))
    import run_federation

    yield run_federation
    sys.path.remove(str(ROOT / "examples" / "flower"))


@pytest.fixture(scope="module")
def federation(example: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Four nodes, all in order."""
    folder = tmp_path_factory.mktemp("flower") / "four"
    with example.Loopback(folder, environment=ENVIRONMENT) as started:
        started.start_superlink()
        for device in range(4):
            started.start_node(device)
        yield started
    assert started.processes() == []


def test_the_real_federation_learns_what_fedwave_run_learns(
    federation: Any, example: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    example.show_and_check(example.run_app(federation, "real"))
    assert "the same devices as fedwave run, and the same model" in capsys.readouterr().out


def test_the_simulated_federation_learns_what_fedwave_run_learns(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with example.Loopback(tmp_path / "simulation", environment=ENVIRONMENT) as simulated:
        example.show_and_check(example.train(simulated, in_simulation=True))
    assert "the same devices as fedwave run, and the same model" in capsys.readouterr().out


def listening(ports: set[int]) -> dict[int, str]:
    """The addresses, as the kernel writes them, on which these ports are listened to."""
    found = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        address, port = line.split()[1].split(":")
        if line.split()[3] == "0A" and int(port, 16) in ports:
            found[int(port, 16)] = address
    return found


def test_nothing_listens_beyond_the_loopback_interface(federation: Any) -> None:
    assert len(federation.ports) == 5  # the SuperLink and four SuperNodes
    wait_until(lambda: set(listening(federation.ports)) == federation.ports, 4 * DEADLINE_S)
    assert set(listening(federation.ports).values()) == {"0100007F"}  # 127.0.0.1


def test_a_killed_server_is_started_again_and_goes_on(federation: Any, tmp_path: Path) -> None:
    settings = {
        "num_rounds": 4,
        "num_selected": 2,
        "checkpoint": tmp_path / "kept",
        "out": tmp_path / "out.json",
    }
    run_id = federation.run(app=APP, pause_s=8.0, **settings)  # a pause after each round, to be killed in
    follower = federation.follow(run_id)
    wait_until(lambda: "round 1: 4 reported" in federation.log(f"run-{run_id}"), 12 * DEADLINE_S)
    wait_until(lambda: (tmp_path / "kept" / "checkpoint.safetensors").exists(), DEADLINE_S)
    servers = [pid for pid in federation.processes() if is_server_app(pid)]
    assert servers
    for pid in servers:
        os.kill(pid, signal.SIGKILL)
    follower.wait(12 * DEADLINE_S)
    assert not (tmp_path / "out.json").exists()
    run_id = federation.run(app=APP, **settings)
    assert federation.wait(run_id, 20 * DEADLINE_S) == "finished:completed", federation.log(f"run-{run_id}")
    done = json.loads((tmp_path / "out.json").read_text())
    assert 1 <= len(done["rounds"]) <= 3  # at least the first was not done again
    model, chosen = rounds_by_hand(first_model(), 4, 2, present=[0, 1, 2, 3])
    assert done["w"] == model.tolist()
    assert [record["selected"] for record in done["rounds"].values()] == chosen[-len(done["rounds"]) :]


def is_server_app(pid: int) -> bool:
    try:
        return b"flwr-serverapp" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def wait_until(condition: Any, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.5)


# What becomes of each device, by round. All that report are selected.
FAULTS = {
    2: {"fault-0": "report:nan", "fault-1": "report:big", "fault-2": "report:absurd"},
    3: {f"fault-{k}": f"upload:{what}" for k, what in enumerate(("infinity", "shape", "dtype", "oversized"))},
    4: {"fault-0": "report:lie"},  # excluded from then on
    5: {"fault-1": "report:hang"},
    6: {"fault-1": "report:die"},
    7: {"fault-2": "upload:die"},
}
LATE = 8  # joins when the first round is over


def test_rounds_go_on_whatever_nodes_do(example: ModuleType, tmp_path: Path) -> None:
    with example.Loopback(tmp_path / "faults", environment=ENVIRONMENT) as started:
        started.start_superlink()
        for device in range(8):
            started.start_node(device, node_config=FAULTS.get(device, {}))
        started.start_node(9, register=False)  # whose key nobody has registered
        run_id = started.run(
            app=APP,
            num_rounds=5,
            num_devices=10,
            num_selected=10,
            min_nodes=8,
            report_timeout_s=DEADLINE_S,
            upload_timeout_s=DEADLINE_S,
            out=tmp_path / "out.json",
        )
        follower = started.follow(run_id)
        wait_until(lambda: "round 0: " in started.log(f"run-{run_id}"), 20 * DEADLINE_S)
        started.start_node(LATE)
        follower.wait(30 * DEADLINE_S)
        log = started.log(f"run-{run_id}")
        assert (tmp_path / "out.json").exists(), log
        assert started.nodes[6].poll() is not None  # they really died
        assert started.nodes[7].poll() is not None
        node_of = {
            int(line.split("is device ")[1].split(",")[0]): line.split("node ")[1].split(" ")[0]
            for line in log.splitlines()
            if " is device " in line
        }
    done = json.loads((tmp_path / "out.json").read_text())
    rounds = list(done["rounds"].values())
    received = [set(record["received"]) for record in rounds]
    reported = [set(record["reported"]) for record in rounds]

    # Who must be there, and who must not.
    assert all({0, 1} <= few for few in received)
    assert received[0] == {0, 1, 5, 6, 7}
    assert [2 in few for few in reported] == [False, False, False, True, True]
    assert [3 in few for few in reported] == [True] * 5
    assert [3 in few for few in received] == [False, False, False, False, True]
    assert [4 in few for few in reported] == [True, False, False, False, False]
    assert rounds[0]["excluded"] == [4]
    assert 5 not in reported[1]
    assert not any(6 in few for few in reported[1:])
    assert 7 in received[1]
    assert 7 in reported[2]
    assert not any(7 in few for few in received[2:])
    assert any(LATE in few for few in received[1:])
    assert not any(9 in few for few in reported)

    # Each drop is logged with Flower's id of the node, and its reason.
    for device, number, phase, why in (
        (2, 0, "report", "contribution is nan"),
        (2, 1, "report", "bytes, at most"),
        (2, 2, "report", "is absurd"),
        (3, 0, "upload", "6 values that are not finite"),
        (3, 1, "upload", "has shape (2, 3)"),
        (3, 2, "upload", "has dtype float64"),
        (3, 3, "upload", "bytes, at most"),
        (4, 0, "upload", "the model moved by a gradient of norm"),
        (5, 1, "report", ""),
        (6, 1, "report", ""),
        (7, 2, "upload", ""),
    ):
        begins = f"round {number}: dropped the {phase} of node {node_of[device]}: "
        assert any(begins in line and why in line for line in log.splitlines()), (begins, why, log)

    # The model is the mean of those that arrived, round by round.
    everybody = {k: sorted(few) for k, few in enumerate(reported)}
    lost = {k: sorted(reported[k] - received[k]) for k in range(5)}
    model, _ = rounds_by_hand(first_model(), 5, 10, present=everybody, lost=lost)
    assert np.isfinite(done["w"]).all()
    assert done["w"] == model.tolist()

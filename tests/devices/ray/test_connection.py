"""Clusters of one's own and of others: what listens, what is said where there is no room, who leaves what."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from fedwave.devices.chunked_devices import ChunkedDevices
from fedwave.devices.ray.connection import NO_CLUSTER, Cluster, ClusterOptions, load_ray
from fedwave.errors import RunError
from tests.devices.pools import EVERYONE, assert_equal_models, assert_equal_reports, first_model
from tests.devices.ray.clusters import assert_same, by_threads, devices_on, nodes, outcome, sleep, work_of

pytestmark = pytest.mark.processes
ROOT = Path(__file__).parents[3]


def test_a_cluster_of_ones_own_listens_on_loopback_only_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # where Ray would leave its token
    me = psutil.Process()
    before = signal.getsignal(signal.SIGTERM)
    local, evaluation = work_of()
    theta = first_model(local)
    with devices_on(None, local, evaluation, workers=2) as devices:
        assert_same(outcome(devices, theta), by_threads(local, evaluation, theta))
        started = me.children(recursive=True)
        names = [" ".join(process.cmdline()) for process in started]
        assert any("raylet/raylet " in name for name in names)
        listening = [
            (process.name(), connection.laddr.ip)
            for process in (me, *started)
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN or connection.type == 2  # datagrams too
        ]
        assert len(listening) >= 5  # the check sees what there is: control store, raylet, driver, workers
        beyond = [(name, ip) for name, ip in listening if not is_loopback(ip)]
        assert beyond == []
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
        assert NO_CLUSTER not in os.environ  # a program that this one starts may join a cluster
        assert not any(ip_port == 8265 for ip_port in ports(me, started))  # the dashboard
        assert signal.getsignal(signal.SIGTERM) is before
        assert load_ray().cluster_resources()["CPU"] == 2
        assert not [name for name in os.environ if name.startswith("RAY_AUTH")]
        assert_strangers_are_refused(load_ray().get_runtime_context().gcs_address, tmp_path)
    assert psutil.wait_procs(started, timeout=20)[1] == []
    assert not load_ray().is_initialized()


def assert_strangers_are_refused(address: str, home: Path) -> None:
    """Another user has neither the token nor a file to find it in."""
    assert not (home / ".ray").exists()
    code = (
        "import ray\n"
        f"try:\n    ray.init(address='{address}')\n"
        "except ConnectionError:\n    print('refused')\n"
    )
    for mode in ({}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}):
        environment = {**os.environ, "RAY_gcs_server_port_wait_time_s": "1", **mode}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert done.stdout == "refused\n", done.stderr


def is_loopback(text: str) -> bool:
    address = ipaddress.ip_address(text)
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def ports(*processes: object) -> set[int]:
    found: set[int] = set()
    for process in processes:
        for one in process if isinstance(process, list) else [process]:
            found |= {c.laddr.port for c in one.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    return found


def test_ray_that_was_imported_too_early_to_stay_on_loopback_is_refused() -> None:
    code = (
        "import ray\n"
        "from fedwave.devices.ray.connection import Cluster, ClusterOptions\n"
        "try:\n    Cluster(ClusterOptions(workers=1))\n"
        "except Exception as error:\n    print(type(error).__name__, error, ray.is_initialized())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.startswith("ConfigError Ray would listen beyond this machine, because"), done.stderr
    assert done.stdout.strip().endswith("False")


def test_a_cluster_without_room_says_what_it_needs() -> None:
    local, evaluation = work_of()
    with nodes(1, 2) as cluster:
        ray = load_ray()
        with pytest.raises(RunError) as caught:
            Cluster(ClusterOptions(address=cluster.address, cpus_per_task=3.0))
        assert str(caught.value) == (
            "a task needs 3 CPUs of one machine (execution.cpus_per_task), but the largest of 2 in the "
            "cluster offers 2. Add a machine with: ray start --address=HEAD:PORT --num-cpus=3; "
            "or ask for fewer CPUs."
        )
        small = Cluster(ClusterOptions(address=cluster.address, cpus_per_task=0.5))
        assert small.width() == 6
        assert Cluster(ClusterOptions(address=cluster.address, cpus_per_task=2.0)).width() == 1
        with pytest.raises(RunError, match=r"needs 1 PiB in the object store of every machine, but "):
            small.require_store(2**50, what="the dataset")

        busy = ray.remote(num_cpus=1)(sleep)
        sleeping = [busy.remote(1000) for _ in range(3)]
        while ray.available_resources().get("CPU", 0.0) > 0:
            time.sleep(0.1)
        start = time.monotonic()
        with (
            pytest.raises(RunError) as caught,
            devices_on(cluster, local, evaluation, wait_s=2.0),
        ):
            pass
        assert time.monotonic() - start < 30
        assert str(caught.value) == (
            "a task needs 1 CPUs of one machine and got none: after 2 s, 0 of the cluster's 3 CPUs are free. "
            "Wait for the other jobs, add machines, or raise execution.wait_s."
        )
        for task in sleeping:
            ray.cancel(task, force=True)
        theta = first_model(local)
        with devices_on(cluster, local, evaluation) as devices:  # and now there is room
            assert_same(outcome(devices, theta), by_threads(local, evaluation, theta))
        assert ray.is_initialized()  # the connection was not ours to close


def test_where_no_cluster_answers_one_line_says_so() -> None:
    with pytest.raises(RunError, match=r"^no Ray cluster at 127.0.0.1:1 \(.*\). Start one with: ray st"):
        Cluster(ClusterOptions(address="127.0.0.1:1"))
    assert not load_ray().is_initialized()


def test_where_something_else_listens_one_line_says_so_in_time() -> None:
    with socket.create_server(("0.0.0.0", 0)) as silent:  # Ray takes loopback for the network's address
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(RunError) as caught:
            Cluster(ClusterOptions(address=address))
    assert time.monotonic() - start < 30
    assert str(caught.value).startswith(f"no Ray cluster at {address} (what listens at ")
    assert str(caught.value).endswith(
        " is not Ray). Start one with: ray start --head; run fedwave on one of its machines, and give the "
        "address that it prints."
    )


def test_a_port_of_ray_that_is_not_its_heads_is_said_in_time() -> None:
    """It speaks gRPC, but has no cluster to tell of: Ray itself gives up, when told how long to wait."""
    code = (
        "import sys\nfrom fedwave.devices.ray.connection import Cluster, ClusterOptions\n"
        "try:\n    Cluster(ClusterOptions(address=sys.argv[1]))\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with nodes(1):
        node = load_ray().nodes()[0]
        host, start = node["NodeManagerAddress"], time.monotonic()
        for address in (f"{host}:{node['NodeManagerPort']}", f"127.0.0.1:{node['NodeManagerPort']}"):
            done = subprocess.run(
                [sys.executable, "-c", code, address], capture_output=True, text=True, env=environment
            )
            assert done.stdout.startswith(f"RunError no Ray cluster at {address} ("), done.stderr
        assert time.monotonic() - start < 90


def test_a_request_to_end_while_a_cluster_starts_ends_the_command_in_good_order(tmp_path: Path) -> None:
    words = ["run", "digits/nufm", "-s", "model.kind=softmax", "--engine", "ray", "-o", "out"]
    command = [sys.executable, "-m", "fedwave", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    started = psutil.Process(process.pid)
    while not any("gcs_server" in child.name() for child in started.children(recursive=True)):
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Interrupted." in errors
    assert "a module ended the program" not in errors


def test_waiting_for_a_busy_cluster_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with nodes(1) as cluster:
        own = Cluster(ClusterOptions(address=cluster.address))
        assert list(own.run(sleep, [(0.0,)])) == [0.0]
        own._options = replace(own._options, wait_s=1.0)
        with caplog.at_level(logging.WARNING, logger="fedwave"):
            assert list(own.run(sleep, [(3.0,)])) == [3.0]
        assert (
            "still waiting for the cluster: after 1 s, 0 of the cluster's 1 CPUs are free." in caplog.messages
        )


def wait_for_width(devices: ChunkedDevices[Any], width: int) -> None:
    """Wait until the cluster has noticed who left or joined: it asks its nodes only now and then."""
    for _ in range(120):
        if devices._executor._cluster.width() == width:
            return
        time.sleep(0.5)
    assert devices._executor._cluster.width() == width


def test_a_node_lost_between_the_phases_costs_no_bit_and_one_that_joins_works() -> None:
    local, evaluation = work_of()
    local = replace(local, chunk_samples=1)
    theta = first_model(local)
    expected = by_threads(local, evaluation, theta)
    with nodes(1) as cluster:
        second = cluster.add_node(num_cpus=1)
        with devices_on(cluster, local, evaluation) as devices:
            devices.report(1, theta, EVERYONE, max_models=7)
            reports = devices.report(2, theta, EVERYONE, max_models=7)
            cluster.remove_node(second, allow_graceful=False)
            models = list(devices.collect(EVERYONE))
            assert_equal_reports(reports, expected[0])
            assert_equal_models(models, expected[1])
            wait_for_width(devices, 1)
            cluster.add_node(num_cpus=2)
            wait_for_width(devices, 3)
            assert_same(outcome(devices, theta), expected)

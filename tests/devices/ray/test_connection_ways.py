"""The ways into a cluster, without one: who answers at an address, which token there is, what signals do."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from fedwave.devices.ray import connection
from fedwave.devices.ray.connection import Cluster, ClusterOptions
from fedwave.errors import RunError


@contextmanager
def listener(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """Something that listens: for one caller it does as told, then it hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            line, _ = server.accept()
            with line:
                answer(line)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def as_grpc(line: socket.socket) -> None:
    hello = b""
    while len(hello) < 33:
        hello += line.recv(33 - len(hello))
    assert hello == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    line.sendall(bytes([0, 0, 24, 4, 0, 0, 0, 0, 0]))


def as_web_server(line: socket.socket) -> None:
    line.recv(100)
    line.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def in_silence(line: socket.socket) -> None:
    while line.recv(100):
        pass


def test_who_speaks_grpc_may_be_ray() -> None:
    with listener(as_grpc) as address:
        connection._knock(address)


@pytest.mark.parametrize(
    "answer", [as_web_server, in_silence, lambda _: None], ids=["a web server", "silence", "no word"]
)
def test_who_does_not_is_said_not_to_be_ray(
    answer: Callable[[socket.socket], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PATIENCE_S", 0.2)
    with (
        listener(answer) as address,
        pytest.raises(OSError, match=r"^what listens at 127.0.0.1:\d+ is not Ray$|reset"),
    ):
        connection._knock(address)


def test_nobody_there_is_an_error_of_the_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        connection._knock(f"127.0.0.1:{port}")


def test_behind_tls_only_ray_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with listener(in_silence) as address:
        connection._knock(address)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What of Ray is used here; it counts how often its token is looked for anew."""
    for name in (*connection.TOKENS, connection.RAYS_PATIENCE):
        monkeypatch.delenv(name, raising=False)
    resets: list[str] = []
    config = SimpleNamespace(initialize=lambda text: resets.append(f"mode{text}"))
    loader = SimpleNamespace(reset_cache=lambda: resets.append("token"))
    raylet = SimpleNamespace(
        Config=config, AuthenticationTokenLoader=SimpleNamespace(instance=lambda: loader)
    )
    return SimpleNamespace(_raylet=raylet, resets=resets)


class TestTheEnvironment:
    def test_a_cluster_of_ones_own_has_a_token_of_its_own(self, ray: Any) -> None:
        seen = []
        for _ in range(2):
            with connection._environment_of(ray, None):
                seen.append(os.environ["RAY_AUTH_TOKEN"])
                os.environ["RAY_AUTH_MODE"] = "token"  # as Ray does
                assert "RAY_gcs_server_port_wait_time_s" not in os.environ
            assert not {"RAY_AUTH_TOKEN", "RAY_AUTH_MODE"} & set(os.environ)
        assert [len(token) for token in seen] == [64, 64]
        assert seen[0] != seen[1]
        assert ray.resets == ["mode", "token"] * 2

    @pytest.mark.parametrize("name", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"])
    def test_what_the_user_says_about_tokens_counts(
        self, name: str, ray: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(name, "mine")
        with connection._environment_of(ray, None):
            assert {key: os.environ.get(key) for key in connection.TOKENS if key in os.environ} == {
                name: "mine"
            }
        assert os.environ[name] == "mine"
        assert ray.resets == []

    def test_the_head_of_another_cluster_is_asked_for_some_seconds(
        self, ray: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = "RAY_gcs_server_port_wait_time_s"
        with connection._environment_of(ray, "10.0.0.1:6379"):
            assert os.environ[name] == "10"
            assert "RAY_AUTH_TOKEN" not in os.environ
        assert name not in os.environ
        monkeypatch.setenv(name, "60")
        with connection._environment_of(ray, "10.0.0.1:6379"):
            assert os.environ[name] == "60"
        assert os.environ[name] == "60"


class TestSignals:
    @pytest.fixture(autouse=True)
    def _handler(self) -> Iterator[None]:
        before = signal.getsignal(signal.SIGTERM)
        yield
        signal.signal(signal.SIGTERM, before)

    def test_a_request_to_end_while_ray_starts_goes_to_who_had_the_signal_before(self) -> None:
        def interrupt(number: int, _: object) -> None:
            raise KeyboardInterrupt(number)

        signal.signal(signal.SIGTERM, interrupt)

        def start_ray() -> None:
            signal.signal(signal.SIGTERM, lambda number, _: sys_exit(number))  # as Ray does
            signal.raise_signal(signal.SIGTERM)

        with pytest.raises(KeyboardInterrupt, match="15"), connection._signals_as_they_are():
            start_ray()
        assert signal.getsignal(signal.SIGTERM) is interrupt

    @pytest.mark.parametrize("code", [1, signal.SIGTERM])
    def test_without_a_handler_before_and_for_other_reasons_the_program_ends(self, code: int) -> None:
        def never(*_: object) -> None:
            pytest.fail("it was asked")

        signal.signal(signal.SIGTERM, signal.SIG_DFL if code == signal.SIGTERM else never)
        with pytest.raises(SystemExit) as ended, connection._signals_as_they_are():
            sys_exit(code)
        assert ended.value.code == code


def sys_exit(code: int) -> None:
    raise SystemExit(code)


class TestTheWidth:
    @pytest.fixture
    def cluster(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """A cluster that is there already, whose machines are asked for by hand."""
        ray = SimpleNamespace(asked=0, cpus=[4.0], is_initialized=lambda: True)

        def nodes() -> list[dict[str, Any]]:
            ray.asked += 1
            return [{"Alive": True, "Resources": {"CPU": count}} for count in ray.cpus]

        ray.nodes = nodes
        monkeypatch.setattr(connection, "load_ray", lambda _: ray)
        return ray

    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        clock = SimpleNamespace(now=100.0)
        monkeypatch.setattr(connection.time, "monotonic", lambda: clock.now)
        return clock

    def test_machines_are_asked_for_once_a_second(self, cluster: Any, clock: Any) -> None:
        own = Cluster(ClusterOptions())
        cluster.cpus = [4.0, 2.0]
        clock.now += 0.99
        assert [own.width() for _ in range(10)] == [4] * 10
        assert cluster.asked == 1
        clock.now += 0.02
        assert [own.width() for _ in range(10)] == [6] * 10
        assert cluster.asked == 2

    def test_no_room_is_said_each_time_until_there_is(self, cluster: Any, clock: Any) -> None:
        own = Cluster(ClusterOptions())
        clock.now += 1
        cluster.cpus = [0.5]
        for _ in range(2):
            with pytest.raises(RunError, match="a task needs 1 CPUs of one machine"):
                own.width()
        cluster.cpus = [3.0]
        assert own.width() == 3

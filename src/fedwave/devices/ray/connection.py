"""The one file that speaks Ray: starts or joins a cluster, hands out tasks, brings their results back."""

from __future__ import annotations

import logging
import math
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from types import ModuleType
from typing import Any

from fedwave.devices.threads import available_cores
from fedwave.errors import ConfigError, FedwaveError, RunError, import_extra
from fedwave.ram import in_words

MAX_ATTEMPTS = 5  # at one task: it may be what kills its workers, for instance by its memory
TASKS_AHEAD = 2  # for each that can run: a worker never waits for the driver
LOOPBACK = "127.0.0.1"
NO_CLUSTER = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
PATIENCE_S = 10.0  # with a cluster's address that does not answer
RAYS_PATIENCE = "RAY_gcs_server_port_wait_time_s"  # with an address that answers, but not as a head does
TOKEN = "RAY_AUTH_TOKEN"
TOKENS = (TOKEN, "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE")  # what a user may say about tokens
WIDTH_LASTS_S = 1.0  # asking for the machines takes longer than handing out a task
# The first words of HTTP/2, which gRPC speaks, with no wishes; the answer begins with a frame of type 4.
HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"

logger = logging.getLogger("fedwave")


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Which cluster, and how much of it."""

    address: str | None = None  # None: a cluster of this machine alone, for this run
    workers: int = 0  # tasks at a time; 0: as many as there is room for
    cpus_per_task: float = 1.0
    wait_s: float = 60.0  # for the first free CPU


def load_ray(address: str | None = None) -> ModuleType:
    """Return Ray, told not to report its use, and without an address to keep to this machine's loopback.

    Ray replaces a node address of 127.0.0.1 by that of the network, unless a variable says that there is no
    cluster. It reads the variable when it is first imported.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    is_first = "ray" not in sys.modules and address is None and NO_CLUSTER not in os.environ
    if is_first:
        os.environ[NO_CLUSTER] = "0"
    try:
        return import_extra("ray", purpose='execution.engine "ray"', extra="ray")
    finally:
        if is_first:  # other programs that this one starts may join a cluster
            del os.environ[NO_CLUSTER]


def keep(value: Any) -> Any:
    """Put a value into the object store of this worker's machine; return a reference to it."""
    return load_ray("here").put(value)


def fetch(kept: Any) -> Any:
    """Return the value behind a reference."""
    return load_ray("here").get(kept)


class Cluster:
    """A connection to a Ray cluster: the one that this process has, the one at the address, or a new one."""

    def __init__(self, options: ClusterOptions) -> None:
        self._options = options
        self._ray = load_ray(options.address)
        self._remote: dict[Callable[..., Any], Any] = {}
        self._has_answered = False
        self._width, self._width_lasts_until = 0, -math.inf
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            self._connect()
        try:
            self.width()
        except RunError:
            self.close()
            raise

    def width(self) -> int:
        """Return how many tasks can run at a time; raise if there is no machine for even one.

        It may be a second old.
        """
        if time.monotonic() >= self._width_lasts_until:
            self._width = self._count_width()
            self._width_lasts_until = time.monotonic() + WIDTH_LASTS_S
        return self._width

    def _count_width(self) -> int:
        needed = self._options.cpus_per_task
        offers = [node["Resources"].get("CPU", 0.0) for node in self._nodes()]
        room = sum(int(offered // needed) for offered in offers)
        if room == 0:
            raise RunError(
                f"a task needs {needed:g} CPUs of one machine (execution.cpus_per_task), but the largest of "
                f"{len(offers)} in the cluster offers {max(offers, default=0.0):g}. Add a machine with: ray "
                f"start --address=HEAD:PORT --num-cpus={max(1, round(needed))}; or ask for fewer CPUs."
            )
        return min(room, self._options.workers) if self._options.workers else room

    def require_store(self, num_bytes: int, *, what: str) -> None:
        """Raise if a machine that computes has an object store which cannot hold so many bytes."""
        for node in self._nodes():
            resources = node["Resources"]
            there_are = int(resources.get("object_store_memory", 0))
            if resources.get("CPU", 0.0) >= self._options.cpus_per_task and there_are < num_bytes:
                raise RunError(
                    f"{what} needs {in_words(num_bytes)} in the object store of every machine, but "
                    f"{node['NodeManagerHostname']} has {in_words(there_are)}. Start Ray there with "
                    f"--object-store-memory={num_bytes}, or with --num-cpus=0 to leave the machine out."
                )

    def put(self, value: Any, *, by_value: Sequence[ModuleType] = ()) -> Any:
        """Put a value into the object store, from where machines copy it once each; return a reference to it.

        Modules ``by_value`` travel as code: the other machines need not have them.
        """
        pickling = self._ray.cloudpickle
        for module in by_value:
            pickling.register_pickle_by_value(module)
        try:
            return self._ray.put(value)
        finally:
            for module in by_value:
                pickling.unregister_pickle_by_value(module)

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield ``function(*arguments)`` for all tasks, as they are done.

        Arguments are asked for when there is room. A task whose worker or machine died is handed out again.
        """
        if function not in self._remote:
            as_remote = self._ray.remote(max_retries=0, num_cpus=self._options.cpus_per_task)
            self._remote[function] = as_remote(function)
        remote, waiting = self._remote[function], iter(tasks)
        pending: dict[Any, tuple[tuple[Any, ...], int]] = {}
        try:
            while True:
                for arguments in islice(waiting, max(0, self._max_pending() - len(pending))):
                    pending[remote.remote(*arguments)] = arguments, 1
                if not pending:
                    return
                done = self._next(list(pending))
                arguments, attempt = pending.pop(done)
                try:
                    result = self._ray.get(done)
                except self._ray.exceptions.RayError as error:
                    self._require_loss(error, attempt)
                    pending[remote.remote(*arguments)] = arguments, attempt + 1
                else:
                    yield result
        finally:  # the consumer stopped early or a task failed
            for reference in pending:
                self._ray.cancel(reference)

    def fetch(self, kept: Sequence[Any]) -> Iterator[Any]:
        """Yield the values behind references, in their order; None where one was lost."""
        if kept:  # all set out at once
            self._ray.wait(list(kept), num_returns=len(kept), timeout=0, fetch_local=True)
        for reference in kept:
            try:
                yield self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                logger.warning("a local model was lost (%s): it is computed again.", type(error).__name__)
                yield None

    def close(self) -> None:
        """Leave the cluster, and end it if it was started here."""
        if self._is_ours:
            self._ray.shutdown()
            _forget_token(self._ray)

    def _connect(self) -> None:
        options = self._options
        num_cpus = options.workers * options.cpus_per_task if options.workers else available_cores()
        of_its_own = {
            "address": "local",
            "num_cpus": max(1, round(num_cpus)),
            "num_gpus": 0,
            "include_dashboard": False,
            "_node_ip_address": LOOPBACK,
        }
        where = of_its_own if options.address is None else {"address": options.address}
        try:
            if options.address is not None:
                # Ray takes "auto" for a cluster that it has noted, and loopback for this machine's network.
                _knock(self._ray._private.services.canonicalize_bootstrap_address(options.address))
            with _signals_as_they_are(), _environment_of(self._ray, options.address):
                self._ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError, ValueError, AssertionError) as error:
            reason = " ".join(str(error).split()).partition(". ")[0]
            raise RunError(
                f"no Ray cluster at {options.address or 'this machine'} ({reason}). Start one with: ray "
                "start --head; run fedwave on one of its machines, and give the address that it prints."
            ) from error
        if options.address is None and {node["NodeManagerAddress"] for node in self._nodes()} != {LOOPBACK}:
            self._ray.shutdown()
            raise ConfigError(
                "Ray would listen beyond this machine, because it was imported before fedwave could tell it "
                f"not to. Set {NO_CLUSTER}=0, or start a cluster and give its address."
            )

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    def _max_pending(self) -> int:
        # Where fewer are asked for than a shared cluster has room for, it would run those that queue, too.
        is_shared = self._options.address is not None or not self._is_ours
        return self.width() * (1 if is_shared and self._options.workers else TASKS_AHEAD)

    def _next(self, pending: list[Any]) -> Any:
        """Return the next task that is done, whatever became of it; say why, if none is done for long."""
        while True:
            done, _ = self._ray.wait(pending, num_returns=1, timeout=self._options.wait_s)
            if done:
                self._has_answered = True
                return done[0]
            self.width()  # the machines may have gone
            free = self._ray.available_resources().get("CPU", 0.0)
            total = self._ray.cluster_resources().get("CPU", 0.0)
            state = f"after {self._options.wait_s:g} s, {free:g} of the cluster's {total:g} CPUs are free"
            if not self._has_answered:
                raise RunError(
                    f"a task needs {self._options.cpus_per_task:g} CPUs of one machine and got none: "
                    f"{state}. Wait for the other jobs, add machines, or raise execution.wait_s."
                )
            logger.warning("still waiting for the cluster: %s.", state)

    def _require_loss(self, error: Any, attempt: int) -> None:
        """Return if a worker or machine was lost, so that its task can be repeated; raise what else it is."""
        cause = getattr(error, "cause", error)  # of what a task raised
        cause = getattr(cause, "client_exc", cause)  # of what could not be read there
        if isinstance(cause, FedwaveError | MemoryError):
            raise cause
        if isinstance(cause, Exception) and not isinstance(cause, self._ray.exceptions.RayError):
            reason = " ".join(str(cause).split())[-300:]
            raise RunError(f"a worker failed with {type(cause).__name__}: {reason}") from error
        name = type(cause).__name__
        if attempt >= MAX_ATTEMPTS:
            raise RunError(
                f"the same devices were lost {MAX_ATTEMPTS} times with their worker ({name}). If memory is "
                "short, raise execution.cpus_per_task (fewer at a time) or lower execution.chunk_samples."
            ) from error
        logger.warning("a worker was lost (%s): its devices are computed again.", name)


def _knock(address: str) -> None:
    """Raise if nobody answers, or not as Ray does: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_S) as line:
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
            return  # only Ray itself can read the answer
        line.sendall(HTTP2_HELLO)
        try:
            answer = line.recv(9)
        except TimeoutError:
            answer = b""
    if answer[3:4] != b"\x04":
        raise ConnectionError(f"what listens at {address} is not Ray")


@contextmanager
def _environment_of(ray: ModuleType, address: str | None) -> Iterator[None]:
    """Set for a connection what Ray reads from the environment, and leave that as it was.

    A cluster of one's own gets a token that is in no file: Ray would write one that other users may read. The
    head of another cluster is asked for some seconds.
    """
    given = {name: os.environ[name] for name in (*TOKENS, RAYS_PATIENCE) if name in os.environ}
    if address is not None:
        os.environ.setdefault(RAYS_PATIENCE, f"{PATIENCE_S:.0f}")
    elif not any(name in given for name in TOKENS):
        os.environ[TOKEN] = secrets.token_hex(32)
        _forget_token(ray)
    try:
        yield
    finally:  # other programs that this one starts may join a cluster
        for name in (*TOKENS, RAYS_PATIENCE):
            os.environ.pop(name, None)
        os.environ.update(given)


def _forget_token(ray: ModuleType) -> None:
    """Let Ray look anew whether there is a token, and for which: it keeps what it found first."""
    ray._raylet.Config.initialize("")
    ray._raylet.AuthenticationTokenLoader.instance().reset_cache()


@contextmanager
def _signals_as_they_are() -> Iterator[None]:
    """Keep the handler of SIGTERM, which Ray would replace by one of its own that ends the program."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit as ended:
        if ended.code == signal.SIGTERM and callable(before):
            before(signal.SIGTERM, None)
        raise
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)

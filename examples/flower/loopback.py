"""A Flower federation on this machine: one SuperLink, several SuperNodes, each a process, with TLS and keys.

Nothing listens beyond 127.0.0.1, telemetry is off, and everything that was started is stopped at the end.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

LOCALHOST = "127.0.0.1"
BIN = Path(sys.executable).parent
APP = Path(__file__).parent
CONNECTION = "loopback"


class Loopback:
    """Starts the processes of a federation in a folder of its own, and stops them: use it with ``with``."""

    def __init__(self, folder: Path, *, environment: dict[str, str] | None = None) -> None:
        self.folder = folder.absolute()
        self.port = free_port()
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        self._started: list[subprocess.Popen[bytes]] = []
        self.ports = {self.port}
        self.environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}",
            "FLWR_HOME": str(self.folder / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "OMP_NUM_THREADS": "1",
            "RAY_ADDRESS": "local",  # for simulations: a Ray of its own, on the loopback interface alone
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            **(environment or {}),
        }

    def __enter__(self) -> Loopback:
        (self.folder / "flwr").mkdir(parents=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._started):
            stop(process)
        deadline = time.monotonic() + 30.0
        while (left := self.processes()) and time.monotonic() < deadline:  # what a killed SuperLink leaves
            for process_id in left:
                with suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)
            time.sleep(0.2)

    # Deployment ------------------------------------------------------------------------------------------

    def start_superlink(self) -> subprocess.Popen[bytes]:
        """Start a SuperLink with TLS that admits only nodes whose key is registered."""
        write_certificates(self.folder)
        self._write_connection(f'root-certificates = "{self.folder / "ca.crt"}"')
        return self._superlink(
            "--ssl-ca-certfile", self.folder / "ca.crt",
            "--ssl-certfile", self.folder / "server.pem",
            "--ssl-keyfile", self.folder / "server.key",
            "--enable-supernode-auth",
        )  # fmt: skip

    def start_node(
        self, device: int, *, register: bool = True, node_config: dict[str, object] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start the SuperNode of a device; its key is registered first."""
        config = {"partition-id": device, **(node_config or {})}
        key = self.folder / f"node-{device}"
        if not key.exists():
            write_node_key(key)
            if register:
                self.flwr("supernode", "register", f"{key}.pub", CONNECTION)
        self.nodes[device] = self._start(
            f"node-{device}",
            "flower-supernode",
            "--superlink", f"{LOCALHOST}:{self.port}",
            "--root-certificates", self.folder / "ca.crt",
            "--auth-supernode-private-key", key,
            "--node-config", " ".join(f"{name}={toml(value)}" for name, value in config.items()),
            "--host", LOCALHOST, "--port", self._free_port(),
        )  # fmt: skip
        return self.nodes[device]

    # Simulation ------------------------------------------------------------------------------------------

    def start_simulation(self) -> subprocess.Popen[bytes]:
        """Start a SuperLink that simulates its nodes with Ray."""
        self._write_connection("insecure = true")
        return self._superlink("--insecure", "--simulation")

    # Runs ------------------------------------------------------------------------------------------------

    def run(self, *, simulated_nodes: int = 0, app: Path = APP, **config: object) -> str:
        """Submit the app with changed settings (``num_rounds`` is num-rounds); return the run's id."""
        changes = [f"{name.replace('_', '-')}={toml(value)}" for name, value in config.items()]
        command = ["run", str(app), CONNECTION, "--format", "json"]
        if changes:
            command += ["--run-config", " ".join(changes)]
        if simulated_nodes:
            settings = f"num-supernodes={simulated_nodes} client-resources-num-cpus=1"
            command += ["--federation-config", settings]
        answer = json.loads(self.flwr(*command))
        return str(answer["run-id"])

    def status(self, run_id: str) -> str:
        """Return e.g. ``running``, ``finished:completed``."""
        answer = json.loads(self.flwr("list", CONNECTION, "--run-id", run_id, "--format", "json"))
        return str(answer["runs"][0]["status"])

    def wait(self, run_id: str, timeout_s: float = 300.0) -> str:
        """Wait until the run has ended, with its log in ``run-<id>.log``; return how it ended."""
        follower = self.follow(run_id)
        try:
            follower.wait(timeout_s)
        except subprocess.TimeoutExpired:
            last = self.log(f"run-{run_id}")[-2000:]
            raise TimeoutError(f"the run goes on after {timeout_s:g} s: {last}") from None
        finally:
            stop(follower)
        return self.status(run_id)

    def follow(self, run_id: str) -> subprocess.Popen[bytes]:
        """Write the server app's log to ``run-<id>.log`` until the run ends."""
        return self._start(f"run-{run_id}", "flwr", "log", run_id, CONNECTION, "--stream")

    def flwr(self, *arguments: str) -> str:
        """Run a ``flwr`` command and return what it prints."""
        done = subprocess.run(
            [str(BIN / "flwr"), *arguments], env=self.environment, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"flwr {' '.join(arguments)} failed: {done.stdout}{done.stderr}")
        return done.stdout

    def log(self, name: str = "superlink") -> str:
        """Return what a process has printed: ``superlink``, ``node-0``, or ``run-<id>``, the server app."""
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def processes(self) -> list[int]:
        """Return the processes of this federation, which know its folder (where there is a /proc)."""
        mark, found = f"FLWR_HOME={self.environment['FLWR_HOME']}".encode(), []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it ended, or is another user's
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    # Inside ----------------------------------------------------------------------------------------------

    def _superlink(self, *arguments: object) -> subprocess.Popen[bytes]:
        process = self._start(
            "superlink",
            "flower-superlink",
            "--host", LOCALHOST, "--port", self.port,
            "--disable-runtime-dependency-installation",  # every run would download torch
            *arguments,
        )  # fmt: skip
        deadline = time.monotonic() + 60.0
        while not is_listening(self.port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the SuperLink did not start: {self.log()[-2000:]}")
            time.sleep(0.2)
        return process

    def _start(
        self, name: str, program: str, *arguments: object, **environment: str
    ) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(BIN / program), *map(str, arguments)],
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # its own children end with it
            )
        self._started.append(process)
        return process

    def _write_connection(self, security: str) -> None:
        text = f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
        text += f'address = "{LOCALHOST}:{self.port}"\n{security}\n'
        (self.folder / "flwr" / "config.toml").write_text(text, encoding="utf-8")

    def _free_port(self) -> int:
        while (port := free_port()) in self.ports:
            pass
        self.ports.add(port)
        return port


def stop(process: subprocess.Popen[bytes], *, at_once: bool = False) -> None:
    """End a process and its children; ``at_once`` as a power cut would."""
    for request in (signal.SIGKILL,) if at_once else (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, request)
            process.wait(10.0)
        except ProcessLookupError:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            continue
    with suppress(ProcessLookupError):  # children that outlived it
        os.killpg(process.pid, signal.SIGKILL)


def toml(value: object) -> str:
    """Return a value as ``--run-config`` takes it."""
    return f'"{value}"' if isinstance(value, str | Path) else str(value).lower()


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.socket() as listener:
        listener.bind((LOCALHOST, 0))
        return int(listener.getsockname()[1])


def is_listening(port: int) -> bool:
    """Return whether somebody listens on a port of the loopback interface."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((LOCALHOST, port)) == 0


def write_certificates(folder: Path) -> None:
    """Write a certificate authority of a day, and a certificate of the loopback interface by it."""
    ca_key, server_key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    authority = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fedwave loopback CA")])
    server = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(LOCALHOST))]
    )
    ca = _certificate(authority, authority, ca_key.public_key(), ca_key, x509.BasicConstraints(True, None))
    own = _certificate(server, authority, server_key.public_key(), ca_key, names)
    (folder / "ca.crt").write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    (folder / "server.pem").write_bytes(own.public_bytes(serialization.Encoding.PEM))
    write_secret(
        folder / "server.key",
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    signing_key: ec.EllipticCurvePrivateKey,
    extension: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(issuer, subject, public_key, x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(hours=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    return builder.sign(signing_key, hashes.SHA256())


def write_node_key(path: Path) -> None:
    """Write a node's key pair, as ``ssh-keygen -t ecdsa -b 384`` would."""
    key = ec.generate_private_key(ec.SECP384R1())
    write_secret(
        path,
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        ),
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    path.with_name(path.name + ".pub").write_bytes(public)


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_bytes(content)

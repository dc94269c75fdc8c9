"""Terminals, pipes, disks and environments that are not as one would like."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runs.written_runs import write_run

SOURCE = str(Path(__file__).parents[2] / "src")
SMALL = ["-s", "num_rounds=1", "-s", "partition.num_devices=8", "-s", "selection.num_selected=2"]
SMALL += ["-s", "model.kind=softmax", "-q"]


def command(*words: str, **changes: str | None) -> tuple[list[str], dict[str, str]]:
    """The command as another process, and its environment."""
    environment = {**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1", "COLUMNS": "120", **changes}
    return [sys.executable, "-m", "fedwave", *words], {k: v for k, v in environment.items() if v is not None}


def run(*words: str, cwd: Path, **changes: str | None) -> subprocess.CompletedProcess[bytes]:
    arguments, environment = command(*words, **changes)
    return subprocess.run(arguments, cwd=cwd, env=environment, capture_output=True, check=False)


def test_a_terminal_that_has_only_ascii(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(run("allocate", "--example", cwd=tmp_path).stdout)
    for words in (["allocate", "p.toml"], ["cell", "umi-3.5ghz"], ["presets"], ["datasets"], ["--help"]):
        done = run(*words, cwd=tmp_path, PYTHONIOENCODING="ascii", LC_ALL="C")
        assert (done.returncode, done.stderr) == (0, b""), words
        done.stdout.decode("ascii")


def test_plus_minus_in_ascii(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_run(tmp_path / str(seed), "a", [0.5, 0.5 + 0.1 * seed], seed=seed)
    done = run("compare", "0", "1", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert b" +/- " in done.stdout


def test_a_folder_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    done = run("run", "digits/nufm", *SMALL, "-o", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"Run folder: caf?" in done.stdout
    done = run("resume", name, "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("run", "digits/nufm", "-s", f"model.path={name}", "-o", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert b"the name must be UTF-8" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_current_folder_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    arguments, environment = command("run", "digits/nufm", *SMALL)
    script = 'cd gone && rmdir ../gone && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == b"error: the current folder does not exist any more. Change to another one.\n"


@pytest.mark.processes
def test_no_home(tmp_path: Path) -> None:
    done = run("run", "digits/nufm", *SMALL, "-o", "out", cwd=tmp_path, HOME=None, XDG_CACHE_HOME=None)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["presets"], ["allocate", "--example"], ["cell", "paper"]])
def test_a_full_disk_behind_stdout(tmp_path: Path, words: list[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    arguments, environment = command(*words)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            arguments, cwd=tmp_path, env=environment, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 3
    assert done.stderr == b"error: No space left on device\n"


@pytest.mark.parametrize("words", [["presets"], ["allocate", "--example"], ["cell", "paper", "--json"]])
def test_a_reader_that_has_gone_is_no_matter(tmp_path: Path, words: list[str]) -> None:
    arguments, environment = command(*words)
    process = subprocess.Popen(
        arguments, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 3


@pytest.mark.processes
def test_a_file_size_limit(tmp_path: Path) -> None:
    arguments, environment = command("run", "digits/nufm", *SMALL, "-s", "num_rounds=300", "-o", "out")
    script = 'ulimit -f 24; exec "$@"'  # blocks of 512 bytes or of a KiB
    done = subprocess.run(
        ["sh", "-c", script, "sh", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert b"File too large. The last checkpoint is whole. Go on with: fedwave resume out" in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert (tmp_path / "out" / "checkpoint.safetensors").exists()
    config = tmp_path / "out" / "config.toml"
    rows = (tmp_path / "out" / "rounds.csv").read_text().count("\n")
    config.write_text(config.read_text().replace("num_rounds = 300", f"num_rounds = {rows + 2}"))
    done = run("resume", "out", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("number", "delay_s"),
    [
        (signal.SIGTERM, 0.5),
        *(
            pytest.param(number, delay_s, marks=pytest.mark.processes)
            for number, delay_s in [(signal.SIGTERM, 0.15), (signal.SIGTERM, 1.0)]
            + [(signal.SIGINT, delay_s) for delay_s in (0.15, 0.5, 1.0)]
        ),
    ],
)
def test_a_signal_while_the_command_starts(tmp_path: Path, number: signal.Signals, delay_s: float) -> None:
    arguments, environment = command("run", "digits/nufm", "-s", "num_rounds=10000", "-q", "-o", "out")
    process = subprocess.Popen(
        arguments,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    )
    time.sleep(delay_s)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    if process.returncode == -number or b"<frozen" in errors:
        pytest.skip("Python itself had not started yet")
    assert process.returncode == 3, errors
    assert errors.startswith(b"Interrupted.")
    assert errors.count(b"\n") == 1


SWALLOW = """
import os, signal, sys
from fedwave.cli.guard import run_guarded

def command():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            pass
    except BaseException:  # as a library may do while it is imported
        pass
    from fedwave.cli import app
    return app(sys.argv[1:], standalone_mode=False)

sys.exit(run_guarded(command))
"""


@pytest.mark.parametrize(
    "words",
    [
        ["run", "digits/nufm", *SMALL, "-s", "num_rounds=10000", "-q", "-o", "out"],
        ["reproduce", "table-2", "--quick", "-q", "--jobs", "1", "--out", "out"],
        ["run", "no-such-preset", "-q"],  # an error that may be the request's own doing
    ],
    ids=["run", "reproduce", "error"],
)
def test_a_signal_that_a_library_swallows_is_heeded_all_the_same(tmp_path: Path, words: list[str]) -> None:
    _, environment = command()
    done = subprocess.run(
        [sys.executable, "-c", SWALLOW, *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith(b"Interrupted.")
    assert done.stderr.count(b"\n") == 1

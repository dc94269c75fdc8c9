"""A named pipe, a device, a socket or a folder where a file is expected: one line at once, never a hang."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fedwave.data import load_dataset
from fedwave.errors import DataError
from fedwave.experiments import load_experiment
from fedwave.runs.run import run_experiment
from tests.misuse.conftest import Fedwave

SMALL = ["num_rounds=2", "partition.num_devices=8", "selection.num_selected=2", "model.kind=softmax"]


@pytest.fixture(autouse=True)
def _never_for_ever() -> Iterator[None]:
    """A hang is a failure."""

    def give_up(*_: object) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # a long path does not fit a socket's name


def folder(path: Path) -> None:
    path.mkdir()


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (pipe, "it is a named pipe, not a regular file"),
    "device": (device, "it is a device, not a regular file"),
    "socket": (bound_socket, "No such device or address"),
    "folder": (folder, "Is a directory"),
}
WORDS = {
    "run it.toml": "it.toml",
    "cell it.toml": "it.toml",
    "cell paper -s fleet.path=it.csv": "it.csv",
    "cell paper -s channel.kind=file -s channel.path=it.csv": "it.csv",
    "cell paper -s channel.kind=file -s channel.path=it.npy": "it.npy",
    "allocate it.toml": "it.toml",
    "allocate problem.toml --devices it.csv": "it.csv",
    "run digits/nufm -s partition.kind=given -s partition.path=it.csv -o out": "it.csv",
    "run digits/nufm -s partition.kind=given -s partition.path=it.npz -o out": "it.npz",
    "run digits/nufm -s data.dataset.kind=arrays -s data.dataset.path=it.npz -o out": "it.npz",
    "run digits/nufm -s model.kind=softmax -s model.path=it.safetensors -o out": "it.safetensors",
}


# Every place with a pipe, one place with every kind: all kinds are told apart in one module.
@pytest.mark.parametrize(
    ("words", "kind"),
    [*((words, "pipe") for words in WORDS), *(("run it.toml", kind) for kind in list(KINDS)[1:])],
)
def test_no_command_waits_for_what_is_no_file(fedwave: Fedwave, words: str, kind: str) -> None:
    make, said = KINDS[kind]
    make(fedwave.folder / WORDS[words])
    (fedwave.folder / "problem.toml").write_text(fedwave("allocate", "--example").stdout)
    fedwave.refuses(words.split(), said, WORDS[words])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("finished") / "run"
    return run_experiment(load_experiment("digits/nufm", SMALL), made).path


OF_A_RUN = [
    ("resume", ["rounds.csv", "devices.csv", "heldout.csv", "environment.json", "checkpoint.safetensors"]),
    ("resume", [".lock"]),
    ("compare", ["rounds.csv"]),
    ("report", ["rounds.csv", "devices.csv"]),
]


@pytest.mark.parametrize(
    ("word", "file", "kind"),
    [
        *((word, file, "pipe") for word, files in OF_A_RUN for file in files),
        *(("compare", "rounds.csv", kind) for kind in list(KINDS)[1:]),
    ],
)
def test_no_run_folder_makes_a_command_wait(
    fedwave: Fedwave, finished: Path, word: str, file: str, kind: str
) -> None:
    make, said = KINDS[kind]
    shutil.copytree(finished, fedwave.folder / "run")
    (fedwave.folder / "run" / file).unlink()
    make(fedwave.folder / "run" / file)
    fedwave.refuses([word, "run", *(["-q"] if word == "resume" else [])], said)


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_config_that_is_no_file_is_no_run(fedwave: Fedwave, finished: Path, kind: str) -> None:
    shutil.copytree(finished, fedwave.folder / "run")
    (fedwave.folder / "run" / "config.toml").unlink()
    KINDS[kind][0](fedwave.folder / "run" / "config.toml")
    fedwave.refuses(["resume", "run"], "is not a run folder: it has no config.toml")


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_picture_that_is_no_file_is_one_line(tmp_path: Path, kind: str) -> None:
    (tmp_path / "cats").mkdir()
    KINDS[kind][0](tmp_path / "cats" / "tom.png")
    with pytest.raises(DataError, match=r"tom\.png is truncated, corrupt or not a picture"):
        load_dataset("image-folder", path=tmp_path)


@pytest.mark.parametrize(
    ("words", "file"),
    [("run it.toml", "it.toml"), ("cell it.toml", "it.toml"), ("allocate it.toml", "it.toml")],
)
def test_a_file_that_does_not_fit_is_refused_unread(fedwave: Fedwave, words: str, file: str) -> None:
    with (fedwave.folder / file).open("wb") as made:
        made.truncate(1 << 42)  # it takes no room on the disk
    done = fedwave(*words.split())
    assert done.code == 2
    assert "it has 4 TiB, and at most" in done.stderr
    assert done.stderr.count("\n") == 1

"""Words on the command line, folders and pictures that cannot be."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fedwave.experiments import load_experiment
from fedwave.runs.run import run_experiment
from tests.misuse.conftest import Fedwave
from tests.runs.written_runs import write_run

SMALL = ["-s", "num_rounds=2", "-s", "partition.num_devices=8", "-s", "selection.num_selected=2"]
SMALL += ["-s", "model.kind=softmax", "-q"]
LONG = "x" * 300


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two rounds that is whole; tests damage a copy of it."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    return run_experiment(
        load_experiment("digits/nufm", [word for word in SMALL if "=" in word]), folder
    ).path


WORDS = [
    (["frobnicate"], 'There is no command "frobnicate". Choose one of: demo, new, run, '),
    (["run", "--nope"], "There is no option --nope"),
    (["run", "digits/nufm", "digits/nufm"], "Got unexpected extra argument"),
    (["run", "digits/nufm", "--seed", "x"], "Invalid value for '--seed'"),
    (["run", "digits/nufm", "--seed", "-3"], "seed must be greater than or equal to 0, got -3"),
    (["run", ""], '"" is neither a preset nor a .toml file'),
    (["run", "."], '"." is neither a preset nor a .toml file'),
    (["run", "absent.toml"], "cannot read the experiment file absent.toml: No such file or directory"),
    (["run", f"{LONG}.toml"], "File name too long"),
    (["run", "folder.toml"], "cannot read the experiment file folder.toml: Is a directory"),
    (["run", "notes.txt"], '"notes.txt" is neither a preset nor a .toml file'),
    (["run", "digits/nufm", "-o", LONG], "File name too long. Choose another with --out"),
    (["run", "digits/nufm", "-o", "notes.txt"], "cannot write to the output folder notes.txt: File exists"),
    (["run", "digits/nufm", "-o", "notes.txt/out"], "Not a directory. Choose another with --out"),
    (["run", "digits/nufm", "-o", "/dev/null"], "cannot write to the output folder /dev/null"),
    (["run", "digits/nufm", "-o", "/proc/out"], "cannot write to the output folder /proc/out"),
    (["run", "digits/nufm", "-o", ""], "is not empty, it holds"),
    (["run", "digits/nufm", "-o", "."], "is not empty, it holds"),
    (["run", "paper/nufm", "--data-dir", "absent"], "--data-dir must name an existing folder"),
    (["resume"], "Missing argument 'RUN_DIR'"),
    (["resume", "absent"], "absent is not a run folder: it has no config.toml"),
    (["resume", "."], ". is not a run folder"),
    (["resume", "notes.txt"], "notes.txt is not a run folder"),
    (["resume", LONG], "File name too long"),
    (["compare"], "Missing argument 'RUN_DIR'"),
    (["compare", "absent"], "there is no folder absent here"),
    (["compare", LONG], "File name too long"),
    (["presets", "../x"], '"../x" is neither a preset'),
    (["presets", ""], '"" is neither a preset'),
    (["datasets", "download"], "Missing argument 'NAME'"),
    (["datasets", "download", "nope"], 'There is no download for "nope"'),
    (["datasets", "download", "digits"], "Nothing to download for digits"),
    (["datasets", "--data-dir", "absent"], "--data-dir must name an existing folder, got absent"),
    (["cell", "nope"], 'there is no cell preset "nope"'),
    (["cell", "nope.toml"], "No such file or directory"),
    (["cell", "."], 'there is no cell preset "."'),
    (["cell", "paper", "-n", "1000000000000"], "1,000,000,000,000 devices and 20 blocks would need"),
    (["cell", "paper", "-n", "0"], "num_devices must be a whole number >= 1, got 0"),
    (["cell", "paper", "-n", "-1"], "num_devices must be a whole number >= 1, got -1"),
    (["cell", "paper", "-n", "x"], "Invalid value for '--devices' / '-n'"),
    (["cell", "paper", "-s", "num_blocks=1000000000"], "1,000,000,000 blocks would need 775 GiB"),
    (["cell", "paper", "-s", "num_blocks=true"], "cell.num_blocks must be a valid integer, got True"),
    (["cell", "paper", "-s", "num_blocks=0"], "Without a radio block nobody can upload"),
    (["cell", "paper", "-s", "fleet.path=absent.csv"], "Cannot read the fleet file absent.csv"),
    (["cell", "paper", "-s", "fleet.path=."], "Cannot read the fleet file ."),
    (["cell", "paper", "-s", "fleet.path="], "a file's name must not be empty"),
    (["cell", "paper", "-s", "channel.kind=x"], 'cell.channel: there is no channel "x"'),
    (["cell", "paper", "-s", "bandwidth_hz=0"], "cell.bandwidth_hz must be greater than 0"),
    (["cell", "paper", "-s", "bandwidth_hz=1e400"], "cell.bandwidth_hz must be a finite number"),
    (["cell", "paper", "-s", "noise_psd_w_per_hz=-174"], "If that is dBm/Hz, use noise_psd_dbm_per_hz"),
    (["cell", "paper", "-s", "fleet.max_power_w={low=2,high=1}"], "low must not exceed high"),
    (["cell", "paper", "-s", "fleet.max_power_w=0"], "fleet.max_power_w must be > 0"),
    (["cell", "paper", "-s", "fleet.max_power_w=true"], "cell.fleet.max_power_w must be a valid number"),
    (["cell", "paper", "-s", "fleet.max_power_dbm=1e9"], "max_power_dbm must lie within 1000 dBm"),
    (["cell", "paper", "-s", "losses.dropout_probability=2"], "must be less than or equal to 1, got 2"),
    (["cell", "paper", "-s", "redraw=never"], "cell.redraw must be 'static' or 'each-round'"),
    (["cell", "paper", "--model-bits", "nan"], "model_bits must be a finite number > 0, got nan"),
    (["cell", "paper", "--model-bits", "inf"], "model_bits must be a finite number > 0, got inf"),
    (["cell", "paper", "--seed", "-1"], "Invalid value for '--seed'"),
    (["allocate"], "No problem file or cell given"),
    (["allocate", "absent.toml"], "Cannot read the problem file absent.toml"),
    (["allocate", "."], "Cannot read the problem file ."),
    (["allocate", "paper", "--draws", "2", "--pareto"], "--draws compares methods"),
    (["allocate", "paper", "-s", "num_block=2"], 'unknown key "cell.num_block". Did you mean "num_blocks"?'),
    (["allocate", "problem.toml", "--round", "2"], "--round is for a radio cell, got the problem file"),
    (["allocate", "problem.toml", "-s", "num_blocks=2"], "--set is for a radio cell"),
    (["allocate", "problem.toml", "-n", "2"], "--num-devices is for a radio cell"),
    (["allocate", "problem.toml", "--model-bits", "2"], "--model-bits is for a radio cell"),
    (["allocate", "problem.toml", "--draws", "2"], "--draws is for a radio cell"),
    (["allocate", "problem.toml", "-m", "best"], '--method: there is no method "best"'),
    (["allocate", "problem.toml", "--gap", "-1"], "relative_gap"),
    (["allocate", "problem.toml", "--gap", "nan"], "relative_gap"),
    (["allocate", "problem.toml", "--seed", "-1"], "Invalid value for '--seed'"),
    (["allocate", "problem.toml", "--compare", "--pareto"], "Give --compare or --pareto, not both"),
    (["allocate", "problem.toml", "--devices", "absent.csv"], "Cannot read the device file absent.csv"),
    (["allocate", "problem.toml", "--devices", "."], "Cannot read the device file ."),
    (["allocate", "problem.toml", "--devices", "header.csv"], "has a header and no devices"),
    (["new", ""], 'the folder must have a name, got "". Write . for the current folder'),
]


@pytest.mark.parametrize(("words", "said"), WORDS, ids=[" ".join(words)[:50] for words, _ in WORDS])
def test_words_that_make_no_sense_are_one_line(fedwave: Fedwave, words: list[str], said: str) -> None:
    (fedwave.folder / "notes.txt").write_text("precious")
    (fedwave.folder / "header.csv").write_text("contribution,channel_gain\n")
    (fedwave.folder / "folder.toml").mkdir()
    (fedwave.folder / "problem.toml").write_text(fedwave("allocate", "--example").stdout)
    fedwave.refuses(words, said)


@pytest.mark.parametrize("picture", [".", "x.txt", "x", "folder.png", "/proc/x.png", "/dev/full"])
@pytest.mark.parametrize("words", [["cell", "paper"], ["allocate", "problem.toml"], ["compare", "run"]])
def test_a_picture_that_cannot_be_written_is_one_line(
    fedwave: Fedwave, words: list[str], picture: str
) -> None:
    (fedwave.folder / "folder.png").mkdir()
    (fedwave.folder / "problem.toml").write_text(fedwave("allocate", "--example").stdout)
    if words[0] == "compare":
        write_run(fedwave.folder / "run", "a", [0.5, 0.6])
    before = fedwave.files()
    done = fedwave(*words, "--plot", picture)
    assert done.code == 2
    assert "annot write the picture" in done.stderr
    assert done.stderr.count("\n") == 1
    assert fedwave.files() == before


def test_a_folder_that_holds_something_is_left_alone(fedwave: Fedwave) -> None:
    (fedwave.folder / "mine").mkdir()
    (fedwave.folder / "mine" / "rounds.csv").write_text("precious")
    fedwave.refuses(["run", "digits/nufm", *SMALL, "-o", "mine"], "mine is not empty, it holds rounds.csv")


def test_a_run_folder_is_not_run_into_again(fedwave: Fedwave) -> None:
    assert fedwave("run", "digits/nufm", *SMALL, "-o", "run").code == 0
    fedwave.refuses(
        ["run", "digits/nufm", *SMALL, "-o", "run"], "already holds a run. Resume it with: fedwave"
    )
    done = fedwave("compare", "run", "run/")  # one folder is one run, however often it is named
    assert (done.code, done.stderr) == (0, "")
    shutil.copytree("run", "copy")
    done = fedwave("compare", "run", "copy")
    assert done.code == 0
    assert done.stderr == "warning: run and copy are the same run (seed 0): copy is left out.\n"


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.toml", b"", "config.toml is not as the run wrote it: it lacks name"),
        ("config.toml", b"\xff", "not a text file in UTF-8"),
        ("config.toml", b"seed = 1", "config.toml is not as the run wrote it: it lacks name"),
        ("environment.json", b"[]", "it holds a list, not a table"),
        ("environment.json", b"", "cannot read run/environment.json"),
        ("checkpoint.safetensors", b"", "cannot be read"),
        ("checkpoint.safetensors", b"\xff" * 100, "cannot be read"),
        (
            "checkpoint.safetensors",
            b"\x08\0\0\0\0\0\0\0{}      ",
            "does not say which run and round it is of",
        ),
        ("rounds.csv", b"", "is not as the run wrote it"),
        ("rounds.csv", b"\xff\xfe\0", "rounds.csv"),
        ("devices.csv", b"round;device\n", "is not as the run wrote it"),
    ],
)
def test_a_damaged_run_is_not_gone_on_with(
    fedwave: Fedwave, finished: Path, file: str, content: bytes, said: str
) -> None:
    shutil.copytree(finished, fedwave.folder / "run")
    (fedwave.folder / "run" / file).write_bytes(content)
    fedwave.refuses(["resume", "run", "-q"], said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "has no rounds yet"),
        (b"round\n", "has no rounds yet"),
        (b"round,train_loss\n0\n", "line 2 has 1 of 2 values"),
        (b"round,train_loss\nx,1\n", "is not as the run wrote it"),
        (b"round,train_loss\n" + b"9" * 30 + b",1\n", "is not as the run wrote it"),
        (b"round,train_loss\n0,1\n1,2\n1,3\n", "its rounds are not in order"),
        (b"round,train_loss\n1,1\n0,2\n", "its rounds are not in order"),
        (b"train_loss\n1\n", 'it has no column "round"; it begins with'),
        (b"round,a,a\n0,1,2\n", "it has two columns of one name"),
        (b"\xff\xff", "it is no text in UTF-8"),
        (b"\0" * 400, "it is no text in UTF-8"),
        ("round,train_loss\n0,1\n".encode("utf-16"), "it is no text in UTF-8"),
        ("round,train_loss\n0,1\n".encode("utf-16-le"), "it is no text in UTF-8"),
        (b'round,note\n0,"' + b"x" * 200_000 + b"\n", "unexpected end of data"),
    ],
)
def test_a_damaged_table_is_not_compared(fedwave: Fedwave, finished: Path, content: bytes, said: str) -> None:
    shutil.copytree(finished, fedwave.folder / "run")
    (fedwave.folder / "run" / "rounds.csv").write_bytes(content)
    fedwave.refuses(["compare", "run"], said)


@pytest.mark.parametrize("word", ["compare", "report"])
@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "it lacks name"), (b'name = "x"\nseed = 0\nnum_rounds = 2\n', "it lacks data"), (b"\0", "UTF-8")],
)
def test_a_run_whose_settings_were_cut_off_is_not_shown(
    fedwave: Fedwave, finished: Path, word: str, content: bytes, said: str
) -> None:
    shutil.copytree(finished, fedwave.folder / "run")
    (fedwave.folder / "run" / "config.toml").write_bytes(content)
    fedwave.refuses([word, "run"], "config.toml is not", said)


def test_a_byte_order_mark_and_a_half_last_line_are_no_matter(fedwave: Fedwave, finished: Path) -> None:
    shutil.copytree(finished, fedwave.folder / "run")
    shown = fedwave("compare", "run").stdout
    for name in ("rounds.csv", "devices.csv", "config.toml"):
        file = fedwave.folder / "run" / name
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes() + (b"2,0.5" if name.endswith("csv") else b""))
    assert fedwave("compare", "run").stdout == shown
    assert fedwave("report", "run").code == 0


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("60", "the target accuracy must lie in 0 to 1, got 60. Did you mean 0.6?"),
        ("1.5", "the target accuracy must lie in 0 to 1, got 1.5. Did you mean 0.015?"),
        ("6000", "got 6000. Give a share, e.g. 0.6"),
        ("inf", "got inf. Give a share"),
    ],
)
def test_a_target_in_per_cents_is_refused(fedwave: Fedwave, target: str, said: str) -> None:
    write_run(fedwave.folder / "run", "a", [0.5, 0.6])
    fedwave.refuses(["compare", "run", "--target", target], said)


def test_a_module_in_the_current_folder_does_not_stand_in_for_pythons_own(fedwave: Fedwave) -> None:
    for name in ("secrets", "queue", "random", "numpy"):
        (fedwave.folder / f"{name}.py").write_text("raise SystemExit('hijacked')")
    assert fedwave("run", "digits/nufm", *SMALL, "-o", "run").code == 0
    (fedwave.folder / "my_misuse_model.py").write_text(
        "from torch import nn\ndef net(input_shape, num_outputs):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_outputs))\n"
    )
    own = fedwave("run", "digits/nufm", *SMALL, "-s", "model.kind=my_misuse_model:net", "-o", "own")
    assert own.code == 0, own.stderr


def test_warnings_are_said_with_q_too(fedwave: Fedwave) -> None:
    words = ["-s", "cell.preset=umi-3.5ghz", "-s", "cell.fleet.max_power_w=23.0", "-s", "cell.num_blocks=2"]
    done = fedwave("run", "digits/nufm", *SMALL, *words, "-o", "run")
    assert done.code == 0, done.stderr
    assert "warning: " in done.stderr
    kept = json.loads((fedwave.folder / "run" / "summary.json").read_text())["warnings"]
    assert kept
    assert all(warning in done.stderr for warning in kept)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("at", ["append", "save_checkpoint", "save_model", "write_json"])
def test_a_full_disk_is_one_line_and_the_run_can_be_resumed(
    fedwave: Fedwave, monkeypatch: pytest.MonkeyPatch, number: int, at: str
) -> None:
    from fedwave.runs.folder import RunFolder

    def fails(self: RunFolder, *arguments: Any) -> None:
        if at == "write_json" and arguments[0] == "environment.json":
            return original(self, *arguments)
        raise OSError(number, "the disk fails")

    original = getattr(RunFolder, at)
    monkeypatch.setattr(RunFolder, at, fails)
    done = fedwave("run", "digits/nufm", *SMALL, "-o", "run")
    assert (done.code, done.stdout) == (3, "")
    assert "the disk fails. The last checkpoint is whole. Go on with: fedwave resume run" in done.stderr
    assert done.stderr.count("\n") == 1
    monkeypatch.undo()
    monkeypatch.chdir(fedwave.folder)
    assert fedwave("resume", "run", "-q").code == 0


def test_a_disk_that_is_full_at_the_start_leaves_no_run(
    fedwave: Fedwave, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fails)
    fedwave.refuses(
        ["run", "digits/nufm", *SMALL, "-o", "run"], "cannot write to the output folder run: No space left"
    )
    monkeypatch.undo()
    monkeypatch.chdir(fedwave.folder)
    assert fedwave("run", "digits/nufm", *SMALL, "-o", "run").code == 0


def test_a_read_only_folder_is_one_line(fedwave: Fedwave, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fedwave("run", "digits/nufm", *SMALL, "-o", "run").code == 0
    original = os.open

    def read_only(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(errno.EROFS, "Read-only file system", str(path))
        return original(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", read_only)
    fedwave.refuses(["resume", "run", "-q"], "cannot write to the run folder run: Read-only file system")

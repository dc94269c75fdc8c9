"""The folder of a run: readable by other tools, and enough to resume the run after a kill at any moment.

The order of writes makes that safe. A round's rows are appended first, then the checkpoint is replaced in one
step. So rows of every round before the checkpoint are complete, and what lies after it is cut off on resume.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save

from fedwave.errors import RunError
from fedwave.learning import Parameters
from fedwave.runs.lock import LOCK
from fedwave.runs.tables import DEVICES, HELDOUT, ROUNDS, read_table, round_of, rows_of, to_csv
from fedwave.simulation.records import RoundRecord
from fedwave.simulation.state import State

CONFIG = "config.toml"
ENVIRONMENT = "environment.json"
CHECKPOINT = "checkpoint.safetensors"
MODEL = "model.safetensors"
SUMMARY = "summary.json"


class RunFolder:
    """Reads and writes one run's files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def prepare(cls, path: Path) -> RunFolder:
        """Return a new and empty folder; refuse one that holds anything: nobody's files are written over.

        What a run leaves that was killed while it began does not count.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            if (path / CONFIG).exists():
                raise RunError(
                    f"{path} already holds a run. Resume it with: fedwave resume {path}, or choose another "
                    "--out."
                )
            held = None if _is_cut_off_start(path) else next(path.iterdir())
        except OSError as error:
            raise RunError(_cannot_write(path, error)) from error
        if held is not None:
            raise RunError(
                f"{path} is not empty, it holds {held.name}. A run starts in a new or empty folder: choose "
                "another --out."
            )
        return cls(path)

    def begin(self, *, config_toml: str, environment: Mapping[str, Any]) -> None:
        """Write what the run is started with. The settings come last: with them, the folder is a run's."""
        try:
            self.write_json(ENVIRONMENT, environment)
            self._replace(CONFIG, config_toml.encode())
        except OSError as error:
            raise RunError(_cannot_write(self.path, error)) from error

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Return the folder of an existing run."""
        try:
            is_run = (path / CONFIG).is_file()
        except (OSError, ValueError) as error:  # such as a name that is too long
            reason = getattr(error, "strerror", None) or error
            raise RunError(f"cannot open the run folder {path}: {reason}. Give another.") from error
        if not is_run:
            raise RunError(f"{path} is not a run folder: it has no {CONFIG}. Give the folder of a run.")
        return cls(path)

    def append(self, record: RoundRecord) -> None:
        """Add one round's rows to the tables."""
        for name, (header, rows) in rows_of(record).items():
            path = self.path / name
            text = to_csv(rows, None if path.exists() else header)
            with path.open("a", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())  # rows reach the disk before the checkpoint that counts on them

    def save_checkpoint(self, state: State, identity: str) -> None:
        """Replace the checkpoint in one step: at any moment either the old or the new one is whole."""
        # One entry: safetensors writes several in any order, and equal runs have equal bytes.
        about = json.dumps({"identity": identity, "next_round": state.next_round})
        self._save_tensors(CHECKPOINT, state.to_tensors(), {"run": about})

    def load_checkpoint(self, identity: str | None = None) -> State | None:
        """Return the saved state, or None if the run was stopped before its first checkpoint.

        ``identity`` is the run that the checkpoint must belong to, if that is to be checked.
        """
        path = self.path / CHECKPOINT
        if not path.exists():
            return None
        try:
            content = path.read_bytes()  # not by its name, which need not be UTF-8
            tensors = load(content)
            about = _about(_metadata(content))
        except (SafetensorError, ValueError, OSError) as error:
            raise RunError(
                f"the checkpoint {path} cannot be read: {error}. Restore it, or start the run anew elsewhere."
            ) from error
        if identity is not None and about["identity"] != identity:
            raise RunError(
                f"the checkpoint {path} belongs to another run. Restore the right one, or compute this run "
                f"again with: fedwave resume {self.path} --from-start"
            )
        return State.from_tensors(about["next_round"], tensors)

    def forget_from(self, next_round: int) -> None:
        """Cut off the rows of rounds that the checkpoint does not contain."""
        for name in (ROUNDS, DEVICES, HELDOUT):
            path = self.path / name
            if not path.exists():
                continue
            if next_round == 0:
                path.unlink()
                continue
            with path.open(newline="", encoding="utf-8") as file:
                lines = file.readlines()
            kept = [line for line in lines[1:] if line.endswith("\n") and round_of(line) < next_round]
            if not kept:  # also where a header was cut off: with the next rows it is written again
                path.unlink()
            elif len(kept) + 1 < len(lines):
                self._replace(name, "".join([lines[0], *kept]).encode())

    def save_model(self, state_dict: Parameters) -> None:
        """Write the trained model in the layout of its plain torch module."""
        self._save_tensors(MODEL, state_dict, {})

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file in one step."""
        self._replace(name, (json.dumps(content, indent=2) + "\n").encode())

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file of the run."""
        try:
            content: Any = json.loads((self.path / name).read_text(encoding="utf-8"))
            if not isinstance(content, dict):
                raise ValueError(f"it holds a {type(content).__name__}, not a table")
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(
                f"cannot read {self.path / name}: {error}. Give the folder of a whole run."
            ) from error
        return content

    def table(self, name: str = ROUNDS) -> dict[str, Any]:
        """Return the columns of rounds.csv, or of another table, each by its declared type."""
        return read_table(self.path / name)

    def _save_tensors(self, name: str, tensors: Parameters, metadata: dict[str, str]) -> None:
        content = save({key: value.cpu().contiguous() for key, value in tensors.items()}, metadata)
        self._replace(name, content)

    def _replace(self, name: str, content: bytes) -> None:
        """Write a file in one step: at any moment, and after a power cut, the old or the new one is whole."""
        temporary = self.path / f".{name}.partial"
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # a power cut must not leave an empty file under the final name
        except OSError:
            with suppress(OSError):  # on a full disk, give back what was taken
                temporary.unlink()
            raise
        temporary.replace(self.path / name)
        _sync_folder(self.path)  # nor the old name's entry after what follows it


def _sync_folder(path: Path) -> None:
    with suppress(OSError):  # Windows and some network disks have no such thing
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _is_cut_off_start(path: Path) -> bool:
    """Return whether a folder holds no more than a run that was killed before its settings were written."""
    own = {LOCK, f".{ENVIRONMENT}.partial", ENVIRONMENT, f".{CONFIG}.partial"}
    if not {entry.name for entry in path.iterdir()} <= own:
        return False
    try:
        environment = json.loads((path / ENVIRONMENT).read_bytes())
    except FileNotFoundError:
        return True
    except (ValueError, RecursionError):
        return False
    return isinstance(environment, dict) and {"identity", "settings"} <= set(environment)


def _metadata(content: bytes) -> Mapping[str, str]:
    """Return what a safetensors file says beside its tensors: eight bytes of length, then JSON."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return dict(header.get("__metadata__", {}))


def _about(metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return what a checkpoint says of itself: the run that it belongs to, and the round that comes next."""
    try:
        about = json.loads(metadata["run"])
        if isinstance(about["identity"], str) and type(about["next_round"]) is int:
            return dict(about)
    except (KeyError, TypeError, ValueError, RecursionError):
        pass
    raise ValueError("it does not say which run and round it is of")


def _cannot_write(path: Path, error: OSError) -> str:
    return f"cannot write to the output folder {path}: {error.strerror}. Choose another with --out."

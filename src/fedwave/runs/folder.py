"""The folder of a run: readable by other tools, and enough to resume the run after a kill at any moment.

The order of writes makes that safe. A round's rows are appended first, then the checkpoint is replaced in one
step. So rows of every round before the checkpoint are complete, and what lies after it is cut off on resume.
The checkpoint holds checksums of itself and of these rows: what is damaged or edited is not gone on with.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedwave.errors import RunError
from fedwave.experiments.load import load_experiment, load_finished
from fedwave.experiments.schema import Experiment
from fedwave.files import LARGEST_SETTINGS, read_bytes, read_text, replace_file
from fedwave.metric import Metric
from fedwave.runs.lock import LOCK, locked
from fedwave.runs.table_digest import TableDigest
from fedwave.runs.tables import ROUNDS, TABLES, header_of, read_table, rows_of, to_csv
from fedwave.simulation.records import RoundRecord

if TYPE_CHECKING:  # they need torch, which reading a run does not
    from fedwave.learning import Parameters
    from fedwave.simulation.state import State

CONFIG = "config.toml"
ENVIRONMENT = "environment.json"
CHECKPOINT = "checkpoint.safetensors"
MODEL = "model.safetensors"
SUMMARY = "summary.json"
PICTURE = "learning_curve.png"


class RunFolder:
    """Reads and writes one run's files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digests: dict[str, TableDigest] = {}  # of the tables' rows that this run counts on
        self._headers: dict[str, list[str]] = {}  # of the tables that it has written to

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

    @classmethod
    def clear(cls, path: Path) -> None:
        """Take away the run that a folder holds, if it holds one; a folder with anything else is refused."""
        if not (path / CONFIG).is_file():
            return
        # The settings go last: a folder that was cleared by halves is still a run's.
        own = (*TABLES, CHECKPOINT, MODEL, SUMMARY, PICTURE, ENVIRONMENT, CONFIG)
        with locked(path):
            others = sorted({entry.name for entry in path.iterdir()} - {*own, LOCK})
            if others:
                raise RunError(
                    f"{path} is not overwritten: beside a run it holds {others[0]}. Move that, or choose "
                    "another folder."
                )
            for name in own:
                (path / name).unlink(missing_ok=True)

    def begin(self, *, config_toml: str, environment: Mapping[str, Any]) -> None:
        """Write what the run is started with. The settings come last: with them, the folder is a run's."""
        try:
            self.write_json(ENVIRONMENT, environment)
            replace_file(self.path / CONFIG, [config_toml.encode()])
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

    def experiment(self, *, checks_parts: bool = True) -> Experiment:
        """Return the run's settings. The run wrote out every section, so none may be missing.

        Without ``checks_parts`` the parts that they name need not be at hand: nothing is computed then.
        """
        found = (load_experiment if checks_parts else load_finished)(self.path / CONFIG)
        written = found.model_dump(mode="json", exclude_none=True)
        missing = [name for name in written if name not in found.model_fields_set]
        if missing:
            raise RunError(
                f"{self.path / CONFIG} is not as the run wrote it: it lacks {missing[0]}. Restore it; "
                f"{ENVIRONMENT} holds the settings of the start."
            )
        return found

    def append(self, record: RoundRecord) -> None:
        """Add one round's rows to the tables."""
        for name, (header, rows) in rows_of(record).items():
            path = self.path / name
            is_new = not path.exists()
            self._require_columns(path, header, is_new=is_new)
            content = to_csv(rows, header if is_new else None).encode()
            with path.open("ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # rows reach the disk before the checkpoint that counts on them
            self._digests.setdefault(name, TableDigest()).add(content)

    def _require_columns(self, path: Path, header: list[str], *, is_new: bool) -> None:
        """Raise if a round has other columns than those before it: a planner may give some of its own."""
        before = self._headers.setdefault(path.name, header if is_new else header_of(path))
        if header != before:
            changed = ", ".join(sorted(set(header) ^ set(before))) or "their order"
            raise RunError(
                f"{path} had other columns in earlier rounds: {changed} changed. Let the planner give the "
                "same columns with every plan, or resume with the version that began the run."
            )

    def save_checkpoint(self, state: State, identity: str) -> None:
        """Replace the checkpoint in one step: at any moment either the old or the new one is whole."""
        from fedwave.runs.checkpoint import Checkpoint

        tables = {name: digest.to_json() for name, digest in self._digests.items()}
        saved = Checkpoint(identity, state.next_round, tables, state.to_tensors())
        replace_file(self.path / CHECKPOINT, [saved.to_bytes()])

    def load_checkpoint(self, identity: str | None = None) -> State | None:
        """Return the saved state, or None if the run was stopped before its first checkpoint.

        ``identity`` is the run that the checkpoint must belong to, if that is to be checked. Checkpoint and
        tables must be as the run wrote them.
        """
        from fedwave.runs.checkpoint import Checkpoint
        from fedwave.simulation.state import State

        path = self.path / CHECKPOINT
        if not path.exists():
            return None
        try:
            saved = Checkpoint.from_bytes(read_bytes(path))
        except (ValueError, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RunError(f"the checkpoint {path} cannot be read: {reason}. {self._anew}") from error
        if identity is not None and saved.identity != identity:
            raise RunError(f"the checkpoint {path} belongs to another run. {self._anew}")
        self._digests = {
            name: TableDigest.of_file(self.path / name, wanted, fix=self._anew)
            for name, wanted in saved.tables.items()
        }
        return State.from_tensors(saved.next_round, saved.tensors)

    @property
    def counted_tables(self) -> tuple[str, ...]:
        """The tables that hold rows of rounds before the checkpoint."""
        return tuple(self._digests)

    @property
    def _anew(self) -> str:
        return f"Restore it, or compute the run again with: fedwave resume {self.path} --from-start"

    def cut_tables(self) -> None:
        """Cut off what the loaded checkpoint does not count on: all rows, if none was loaded."""
        for name in TABLES:
            path = self.path / name
            if name in self._digests:
                self._digests[name].cut(path)
            else:
                path.unlink(missing_ok=True)

    def save_model(self, state_dict: Parameters) -> None:
        """Write the trained model in the layout of its plain torch module."""
        from fedwave.runs.checkpoint import tensor_bytes

        replace_file(self.path / MODEL, [tensor_bytes(state_dict, {})])

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file in one step."""
        replace_file(self.path / name, [(json.dumps(content, indent=2) + "\n").encode()])

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file of the run."""
        try:
            content: Any = json.loads(read_text(self.path / name, largest=LARGEST_SETTINGS))
            if not isinstance(content, dict):
                raise ValueError(f"it holds a {type(content).__name__}, not a table")
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(
                f"cannot read {self.path / name}: {error}. Give the folder of a whole run."
            ) from error
        return content

    def metric(self) -> Metric | None:
        """Return what the run said at its start that it is judged by; None where it did not say."""
        said = self.read_json(ENVIRONMENT).get("metric") if (self.path / ENVIRONMENT).is_file() else None
        if not isinstance(said, dict) or not isinstance(said.get("name"), str):
            return None
        return Metric(
            said["name"],
            higher_is_better=bool(said.get("higher_is_better")),
            is_share=bool(said.get("is_share")),
        )

    def table(self, name: str = ROUNDS) -> dict[str, Any]:
        """Return the columns of rounds.csv, or of another table, each by its declared type."""
        return read_table(self.path / name)


def _is_cut_off_start(path: Path) -> bool:
    """Return whether a folder holds no more than a run that was killed before its settings were written."""
    own = {LOCK, f".{ENVIRONMENT}.partial", ENVIRONMENT, f".{CONFIG}.partial"}
    if not {entry.name for entry in path.iterdir()} <= own:
        return False
    try:
        environment = json.loads(read_bytes(path / ENVIRONMENT, largest=LARGEST_SETTINGS))
    except FileNotFoundError:
        return True
    except (ValueError, RecursionError):
        return False
    return isinstance(environment, dict) and {"identity", "settings"} <= set(environment)


def _cannot_write(path: Path, error: OSError) -> str:
    return f"cannot write to the output folder {path}: {error.strerror}. Choose another with --out."

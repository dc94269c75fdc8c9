"""Weights & Biases: offline files in the run folder, or its server where ``WANDB_MODE`` says so."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedwave.errors import RunError, import_extra, shown
from fedwave.experiments.schema import Experiment
from fedwave.runs.folder import RunFolder
from fedwave.runs.trackers import numbers_of, rounds_on_disk, settings_of, summary_of
from fedwave.simulation.records import RoundRecord

FOLDER = "wandb"  # in the run folder; the library chooses this name
STATE = f"{FOLDER}/run.json"  # which run it is, what the closed files hold, and which one is open
OFFLINE, DISABLED = "offline", "disabled"
_OPEN = re.compile(r"offline-run-[\w-]+")  # a folder of files that was being written


class WandbLog:
    """Logs settings as the config, every number of a round at its step, and the summary at the end.

    Offline, each process writes a folder of files, all of one run. What a kill leaves of an open one may be
    torn: it is removed when the run goes on, and its rounds are logged again from the run folder.
    """

    def __init__(self) -> None:
        self._mode = os.environ.get("WANDB_MODE") or OFFLINE
        self._is_offline = self._mode == OFFLINE
        if self._is_offline:  # before the import, which would set up reports of errors
            os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        self._wandb = import_extra("wandb.sdk", purpose="execution.wandb", extra="wandb")
        self._run: Any = None

    def started(
        self, folder: Path, experiment: Experiment, next_round: int, warnings: tuple[str, ...]
    ) -> None:
        """Go on with the folder's run, or begin one; log the rounds that it lacks."""
        del warnings
        self._folder = RunFolder(folder)
        (folder / FOLDER).mkdir(exist_ok=True)
        new: dict[str, Any] = {"id": secrets.token_hex(4), "num_rounds": 0, "open": None}
        held = self._folder.read_json(STATE) if (folder / STATE).exists() else new
        _require_own(folder / STATE, held)
        self._id = held["id"]
        self._next_round = held["num_rounds"]  # the first that no closed file has
        if held["open"] is not None and not (folder / FOLDER / held["open"]).is_symlink():
            shutil.rmtree(folder / FOLDER / held["open"], ignore_errors=True)
        self._run = self._open(folder, experiment)
        if not self._is_offline:
            self._next_round = int(self._run.starting_step)  # what its server has
        self._write_state(is_open=True)
        for k, numbers in rounds_on_disk(folder, self._next_round, next_round):
            self._log(k, numbers)

    def _open(self, folder: Path, experiment: Experiment) -> Any:
        errors = import_extra("wandb.errors", purpose="execution.wandb", extra="wandb")
        settings = self._wandb.Settings(
            console="off",
            silent=self._is_offline,
            x_disable_stats=True,
            disable_git=True,
            disable_code=True,
        )
        try:
            return self._wandb.init(
                project=os.environ.get("WANDB_PROJECT", "fedwave"),
                id=self._id,
                name=f"{experiment.name}, seed {experiment.seed}",
                dir=str(folder),
                config=settings_of(experiment),
                resume=None if self._is_offline else "allow",
                mode=self._mode,
                reinit="create_new",  # beside a run of the user's own
                settings=settings,
            )
        except errors.Error as error:
            raise RunError(
                f"Weights & Biases cannot begin with WANDB_MODE={self._mode}: {error}. Mend that, or unset "
                "WANDB_MODE to log into the run folder; then resume the run."
            ) from error

    def round_done(self, record: RoundRecord) -> None:
        """Log the round, unless it is there."""
        if record.round_index >= self._next_round:
            self._log(record.round_index, numbers_of({"round": record.round_index, **record.columns}))

    def _log(self, step: int, numbers: Mapping[str, float]) -> None:
        self._run.log(dict(numbers), step=step, commit=True)
        self._next_round = step + 1

    def ended(self, summary: Mapping[str, Any] | None, *, has_failed: bool) -> None:
        """Write the summary, close the files, and note that they are whole."""
        if self._run is None:
            return
        if summary is not None:
            self._run.summary.update(summary_of(summary))
        self._run.finish(exit_code=0 if summary is not None else 1 if has_failed else 255)
        self._write_state(is_open=False)

    def _write_state(self, *, is_open: bool) -> None:
        if self._mode == DISABLED:  # nothing is logged: all rounds are still missing
            return
        opened = Path(self._run.dir).parent.name if is_open and self._is_offline else None
        self._folder.write_json(STATE, {"id": self._id, "num_rounds": self._next_round, "open": opened})


def _require_own(path: Path, state: Mapping[str, Any]) -> None:
    """Raise if a state is not as this file writes it: a folder that it names is removed."""
    own, count, opened = state.get("id"), state.get("num_rounds"), state.get("open")
    is_known = isinstance(own, str) and isinstance(count, int) and count >= 0
    if not is_known or not (opened is None or _OPEN.fullmatch(str(opened))):
        raise RunError(f"{path} is not as the run wrote it, got {shown(dict(state))}. Restore that file.")

"""A case says of one setting: set it to this, look there, and that is to be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import save_file

from fedwave.errors import FedwaveError
from fedwave.experiments import Experiment
from fedwave.learning import build_model
from fedwave.rng import Stream, generator
from fedwave.settings import merge
from tests.experiments.built import Built
from tests.experiments.cell_tables import SMALL
from tests.experiments.schema_walk import only_setting, with_tables

Look = Callable[[Built], Any]


@dataclass(frozen=True)
class SettingCase:
    """Set ``value``, and ``look`` shows ``expected``, which it does not show without."""

    path: str
    value: Any
    look: Look
    expected: Any
    given: dict[str, Any]  # the settings around it, over those of SMALL

    def before(self, folder: Path) -> Any:
        """What is seen without the setting."""
        base = merge(SMALL, self.given, Experiment)
        is_kind = self.path.endswith("].kind") or "log-distance].fading[delay-line]" in self.path
        return _seen(self.look, base if is_kind else with_tables(base, self.path), folder)

    def after(self, folder: Path) -> Any:
        """What is seen with it."""
        base = with_tables(merge(SMALL, self.given, Experiment), self.path)
        return _seen(self.look, merge(base, only_setting(self.path, self.value), Experiment), folder)


def case(path: str, value: Any, look: Look, expected: Any, **given: Any) -> SettingCase:
    """Return a case; ``given`` are tables of the settings around it."""
    return SettingCase(path, value, look, expected, given)


def _seen(look: Look, settings: dict[str, Any], folder: Path) -> Any:
    try:
        return look(Built(settings, folder))
    except FedwaveError as error:
        return f"refused: {error}"


def first_weights(seed: int) -> list[float]:
    """The weights that softmax regression on six inputs starts with."""
    start = build_model("softmax", (6,), 4).initial_parameters(generator(seed, Stream.MODEL_INIT))
    return start["linear1.weight"].flatten().tolist()


def write_files(folder: Path) -> None:
    """Write what the lines name; their tests run in this folder."""
    np.save(folder / "gains.npy", np.full((8, 3), 0.25))
    np.save(folder / "more_gains.npy", np.full((8, 3), 0.5))
    np.save(folder / "gains_db.npy", np.full((8, 3), -20.0))
    np.save(folder / "two_rounds.npy", np.stack([np.full((8, 3), 0.1), np.full((8, 3), 0.2)]))
    (folder / "positions.csv").write_text("x_m,y_m\n" + "30,40\n" * 8)
    (folder / "more_positions.csv").write_text("x_m,y_m\n" + "60,80\n" * 8)
    (folder / "harvest.csv").write_text("time_s,power_w\n0,2\n")
    (folder / "more_harvest.csv").write_text("time_s,power_w\n0,5\n")
    (folder / "fleet.csv").write_text("max_power_w\n" + "0.125\n" * 8)
    # Forty devices of ten samples each, or sixteen writers of twenty; the last eighty samples are nobody's.
    sample = np.arange(400)
    columns = {
        "device": sample % 40,
        "writer": np.where(sample < 320, sample // 20, -1),
        "is_out": sample % 40 >= 35,
        "is_first": sample < 160,
    }
    rows = [",".join(str(int(column[i])) for column in columns.values()) for i in sample]
    (folder / "split.csv").write_text("\n".join([",".join(columns), *rows]))
    (folder / "other_split.csv").write_text("\n".join([",".join(columns), *rows[1:], rows[0]]))
    start = build_model("softmax", (6,), 4).initial_parameters(generator(77, Stream.MODEL_INIT))
    weight = start["linear1.weight"].T.contiguous()  # as torch's own layer has it
    save_file({"linear1.weight": weight, "linear1.bias": start["linear1.bias"]}, folder / "m.safetensors")

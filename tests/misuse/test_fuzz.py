"""Any content of a file gives a FedwaveError or works: settings, cells, problems, tables, data.

``FEDWAVE_FUZZ_EXAMPLES=20000`` tries so many of each by hand; the default suite and the slow one take fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.allocation import allocate, example_problem, load_problem
from fedwave.allocation.problem_file import parse_problem
from fedwave.data import load_dataset, read_split
from fedwave.experiments import experiment_from, load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.experiments.load import experiment_to_toml, preset_text
from fedwave.settings import parse_overrides
from fedwave.wireless.settings.load import load_cell
from tests.fuzzing import answers, mutated, tries
from tests.runs.small_runs import experiment

MANY = 1500
PRESETS = ["digits/nufm", "digits/ural", "paper/nufm", "paper/ural-ives"]

scalars = st.one_of(
    st.booleans(),
    st.integers(-3, 40),
    st.sampled_from([0, -1, 2**31, 2**63, 10**30, 1e-300, 1e300, 0.5, 1.0, float("nan"), float("inf")]),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(
        ["auto", "cnn", "paper", "given", "a:b", ".", "/", "x.csv", "\0", "$\\frac", "[/red]", "é"]
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
SECTIONS = {
    name: sorted(field.annotation.model_fields)
    for name, field in type(experiment()).model_fields.items()
    if hasattr(field.annotation, "model_fields")
}
KEYS = [f"{section}.{key}" for section, keys in SECTIONS.items() for key in keys]
KEYS += [
    "data.dataset.kind",
    "data.dataset.path",
    "data.dataset.shape",
    "partition.num_devices",
    "partition.path",
    "model.channels",
    "algorithm.rule.kind",
    "algorithm.rule.mu",
    "algorithm.planner.kind",
    "selection.policy.kind",
    "selection.policy.num_candidates",
    "seed",
    "num_rounds",
    "name",
    "scheme",
    "extends",
    "cell.preset",
    "cell.num_blocks",
    "cell.fleet.path",
]
KEYS += [
    "cell.channel.kind",
    "cell.fleet.max_power_w",
    "cell.losses.deadline_s",
    "cell.method",
    "data",
    "cell",
]


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, last = key.split(".")
        inner = table
        for section in sections:
            inner = inner.setdefault(section, {})
            if not isinstance(inner, dict):
                return table
        inner[last] = value
    return table


def fuzz(strategy: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test with few examples, and the same with many in the slow suite."""

    def wrap(check: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize("examples", [60, pytest.param(MANY, marks=pytest.mark.slow)])
        def test(examples: int, tmp_path_factory: pytest.TempPathFactory) -> None:
            folder = tmp_path_factory.mktemp("fuzz")

            @tries(examples)
            @given(strategy)
            def run(content: Any) -> None:
                check(content, folder)

            run()

        test.__doc__ = check.__doc__
        return test

    return wrap


@fuzz(st.dictionaries(st.sampled_from(KEYS), values, max_size=4))
def test_any_settings(content: dict[str, Any], folder: Path) -> None:
    def load() -> None:
        found = experiment_from(nested(content))
        (folder / "e.toml").write_text(experiment_to_toml(found), encoding="utf-8")
        assert load_experiment(folder / "e.toml") == found
        if found.partition.options.get("num_devices", 100) <= 100:
            build_simulation(found)

    answers(load)


@fuzz(st.lists(st.text(max_size=30) | st.builds("{}={}".format, st.sampled_from(KEYS), st.text(max_size=8))))
def test_any_overrides(content: list[str], folder: Path) -> None:
    del folder
    answers(lambda: parse_overrides(content))
    answers(lambda: load_experiment("digits/ural", content))


@fuzz(st.sampled_from(PRESETS).flatmap(lambda name: mutated(preset_text(name).encode())))
def test_any_experiment_file(content: bytes, folder: Path) -> None:
    (folder / "e.toml").write_bytes(content)
    answers(lambda: load_experiment(folder / "e.toml"))


CELL = b"""preset = "umi-3.5ghz"
num_blocks = 3
[fleet]
max_power_w = { low = 0.1, high = 0.2 }
[losses]
deadline_s = 2.0
[interference]
kind = "drawn"
power_w = 0.0
"""


@fuzz(mutated(CELL))
def test_any_cell_file(content: bytes, folder: Path) -> None:
    (folder / "c.toml").write_bytes(content)
    answers(lambda: load_cell(str(folder / "c.toml"), num_devices=4).draw(0))


@fuzz(mutated(example_problem().encode()))
def test_any_problem_file(content: bytes, folder: Path) -> None:
    (folder / "p.toml").write_bytes(content)

    def solve() -> None:
        problem = load_problem(folder / "p.toml")
        if problem.num_devices <= 20 and problem.num_blocks <= 20:
            allocate(problem, "greedy")

    with np.errstate(all="ignore"):  # extreme numbers are the solver's matter
        answers(solve)


DEVICES = b"device,contribution,channel_gain_db,max_power_w\n1,2.5,-90,0.1\n0,1.5,-80,0.2\n"


@fuzz(mutated(DEVICES) | st.integers(0, len(DEVICES)).map(lambda end: DEVICES[:end]))
def test_any_devices_of_a_problem(content: bytes, folder: Path) -> None:
    (folder / "d.csv").write_bytes(content)
    text = example_problem()
    head = text[: text.index("[devices]")] + "[devices]\nworkload_cycles = 0.0\nmax_frequency_hz = 1.0\n"

    def solve() -> None:
        problem = parse_problem(head + "capacitance = 0.0\n", devices_csv=folder / "d.csv")
        assert problem.num_devices > 0
        if problem.num_devices <= 20 and problem.num_blocks <= 20:
            allocate(problem, "greedy")

    with np.errstate(all="ignore"):
        answers(solve)


FLEET = b"device,max_power_w,max_frequency_hz\n1,0.1,1e9\n0,0.2,2e9\n2,0.3,1e9\n"


@fuzz(mutated(FLEET))
def test_any_fleet_file(content: bytes, folder: Path) -> None:
    (folder / "f.csv").write_bytes(content)
    overrides = {"fleet": {"path": str(folder / "f.csv")}}
    answers(lambda: load_cell("paper", num_devices=3, overrides=overrides))


@fuzz(mutated(b"device,block,channel_gain\n0,0,0.5\n0,1,0.25\n1,0,1e-3\n1,1,0\n"))
def test_any_gains_file(content: bytes, folder: Path) -> None:
    (folder / "g.csv").write_bytes(content)
    channel = {"kind": "file", "path": str(folder / "g.csv")}
    answers(
        lambda: load_cell("paper", num_devices=2, overrides={"channel": channel, "num_blocks": 2}).draw(0)
    )


@fuzz(mutated(b"device,out\na,1\nb,0\na,1\nc,0\n"))
def test_any_split_file(content: bytes, folder: Path) -> None:
    (folder / "s.csv").write_bytes(content)
    answers(lambda: read_split(folder / "s.csv", num_samples=4, heldout_column="out"))


def npz_bytes() -> bytes:
    import io

    file = io.BytesIO()
    np.savez(file, inputs=np.arange(12.0).reshape(6, 2), labels=np.arange(6) % 2)
    return file.getvalue()


@fuzz(mutated(npz_bytes()))
def test_any_array_file(content: bytes, folder: Path) -> None:
    (folder / "a.npz").write_bytes(content)
    answers(lambda: load_dataset("arrays", path=folder / "a.npz"))


@fuzz(mutated(b"\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x1c\x00\x00\x00\x1c" + bytes(2 * 784)))
def test_any_image_file(content: bytes, folder: Path) -> None:
    (folder / "fashion-mnist").mkdir(exist_ok=True)
    (folder / "fashion-mnist" / "train-images-idx3-ubyte").write_bytes(content)
    (folder / "fashion-mnist" / "train-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x02\0\1")
    answers(lambda: load_dataset("fashion-mnist", data_dir=folder))

"""The user's own split: from Python, CSV, NPZ or the dataset itself, one run; resuming needs the same one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedwave.data import Dataset, UserSplit, dataset_from_arrays, user_split
from fedwave.errors import ConfigError, DataError, FedwaveError, RunError
from fedwave.experiments import Experiment, experiment_from
from fedwave.experiments.build import build_pools, build_simulation
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import AskToStopAfter, results

NUM_SAMPLES = 240
# Ten writers with different numbers of samples, not in order; the last 20 samples are nobody's.
WRITERS = [f"w{(7 * i) % 10}" if i < 160 else f"w{i % 5}" if i < 220 else "" for i in range(NUM_SAMPLES)]
HELDOUT = ("w3", "w8")
IS_SUPPORT = [i % 3 == 0 for i in range(NUM_SAMPLES)]


def data(owners: list[str] | None = None) -> Dataset:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, NUM_SAMPLES)
    inputs = rng.normal(size=(NUM_SAMPLES, 5)) + labels[:, None]
    return dataset_from_arrays(inputs, labels, name="letters", device_of_sample=owners)


def settings(**partition: Any) -> Experiment:
    return experiment_from(
        {
            "name": "own split",
            "num_rounds": 4,
            "partition": {"kind": "given", **partition},
            "model": {"kind": "softmax"},
            "algorithm": {"inner_lr": 0.1, "meta_lr": 0.1},
            "selection": {"num_selected": 3},
        }
    )


def python_split(**changes: Any) -> UserSplit:
    return user_split(WRITERS, **{"is_heldout": HELDOUT, "is_support": IS_SUPPORT, **changes})


def write_csv(path: Path, writers: list[str] = WRITERS) -> Path:
    lines = [
        f"{i},{writer},{int(writer in HELDOUT)},{int(IS_SUPPORT[i])}" for i, writer in enumerate(writers)
    ]
    path.write_text("\n".join(["page,writer,out,support", *lines]))
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run with the split from Python, to its end."""
    out = tmp_path_factory.mktemp("run") / "whole"
    return run_experiment(settings(), out, dataset=data(), split=python_split()).path


def test_every_device_has_the_samples_that_it_was_given() -> None:
    train, heldout = build_pools(settings(), data(), python_split())
    names = sorted({writer for writer in WRITERS if writer})
    assert [names[i] for i in heldout.device_ids] == list(HELDOUT)
    assert len(train) == 8
    for pool in (train, heldout):
        for number, device in zip(pool.device_ids, pool.devices, strict=True):
            own = [i for i, writer in enumerate(WRITERS) if writer == names[number]]
            assert device.support.tolist() == [i for i in own if IS_SUPPORT[i]]
            assert device.query.tolist() == [i for i in own if not IS_SUPPORT[i]]


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_the_same_split_from_a_file_gives_the_same_run(whole: Path, tmp_path: Path, kind: str) -> None:
    if kind == "csv":
        path = write_csv(tmp_path / "split.csv")
    else:
        path = tmp_path / "split.npz"
        out = [writer in HELDOUT for writer in WRITERS]
        np.savez(path, writer=np.array(WRITERS), out=np.array(out), support=np.array(IS_SUPPORT))
    columns = {"device_column": "writer", "heldout_column": "out", "support_column": "support"}
    chosen = settings(path=str(path), **columns)
    result = run_experiment(chosen, tmp_path / "run", dataset=data())
    assert results(result.path) == results(whole)


def test_the_owners_in_a_dataset_are_a_split_too(tmp_path: Path) -> None:
    by_data = run_experiment(settings(), tmp_path / "a", dataset=data(WRITERS)).path
    by_hand = run_experiment(settings(), tmp_path / "b", dataset=data(), split=user_split(WRITERS)).path
    assert results(by_data) == results(by_hand)
    assert RunFolder(by_data).read_json("summary.json")["num_train_devices"] == 5  # half of ten, by the rule


def test_support_and_held_out_devices_follow_the_rules_where_they_are_not_given() -> None:
    chosen = settings(shots=2, heldout_fraction=0.3)
    train, heldout = build_pools(chosen, data(), user_split(WRITERS))
    labels = data().labels
    assert (len(train), len(heldout)) == (7, 3)
    for device in (*train.devices, *heldout.devices):
        own = np.concatenate([device.support, device.query])
        for label in range(3):
            assert (labels[device.support] == label).sum() == min(2, (labels[own] == label).sum())


def test_a_stopped_run_goes_on_with_the_same_split_to_the_same_bits(whole: Path, tmp_path: Path) -> None:
    cut = {"dataset": data(), "split": python_split()}
    run_experiment(settings(), tmp_path / "cut", observers=[AskToStopAfter(2)], **cut)
    assert results(resume_run(tmp_path / "cut", **cut).path) == results(whole)


@pytest.mark.parametrize(
    "other",
    [
        None,
        python_split(is_heldout=("w3", "w7")),
        python_split(is_support=[not flag for flag in IS_SUPPORT]),
        user_split(["w1", *WRITERS[1:]], is_heldout=HELDOUT, is_support=IS_SUPPORT),
    ],
)
def test_resuming_with_another_split_from_python_is_refused(tmp_path: Path, other: UserSplit | None) -> None:
    run_experiment(
        settings(), tmp_path / "cut", observers=[AskToStopAfter(1)], dataset=data(), split=python_split()
    )
    with pytest.raises(FedwaveError) as caught:
        resume_run(tmp_path / "cut", dataset=data(), split=other)
    if other is not None:
        assert isinstance(caught.value, RunError)
        assert "was started with another split of the data among devices: fingerprint" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_resuming_after_the_file_of_the_split_has_changed_is_refused(tmp_path: Path) -> None:
    chosen = settings(path=str(write_csv(tmp_path / "split.csv")), device_column="writer")
    run_experiment(chosen, tmp_path / "cut", observers=[AskToStopAfter(1)], dataset=data())
    write_csv(tmp_path / "split.csv", [*WRITERS[1:], WRITERS[0]])
    with pytest.raises(RunError, match=r"another split .* Restore partition\.path"):
        resume_run(tmp_path / "cut", dataset=data())
    write_csv(tmp_path / "split.csv")
    assert resume_run(tmp_path / "cut", dataset=data()).summary["num_rounds"] == 4


@pytest.mark.parametrize(
    ("partition", "split", "message"),
    [
        ({"kind": "iid", "num_devices": 10}, python_split(), 'needs partition.kind = "given", got "iid"'),
        ({}, None, "letters does not say which device owns which sample"),
        ({"device_column": "writer"}, None, "partition.device_column names a column of partition.path"),
        ({"heldout_column": "out"}, None, "partition.heldout_column names a column of partition.path"),
        ({"path": "absent.csv"}, None, "absent.csv: No such file"),
        ({}, user_split(WRITERS[:-1]), "gives owners to 239 samples, but the dataset has 240"),
    ],
)
def test_a_split_that_does_not_fit_is_one_line(
    tmp_path: Path, partition: dict[str, Any], split: UserSplit | None, message: str
) -> None:
    with pytest.raises((ConfigError, DataError)) as caught:
        run_experiment(settings(**partition), tmp_path / "run", dataset=data(), split=split)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_held_out_devices_never_train(whole: Path) -> None:
    sim = build_simulation(settings(), dataset=data(), split=python_split())
    devices = RunFolder(whole).table("devices.csv")
    assert set(devices["device"].tolist()) == set(sim.train.device_ids.tolist())
    assert set(RunFolder(whole).table("heldout.csv")["device"].tolist()) == {3, 8}

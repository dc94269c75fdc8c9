"""The part that planners share: random numbers of their own for each question."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fedwave.rng import Stream, generator
from fedwave.selection import Candidates, History
from fedwave.server import Chooser, Reports
from fedwave.units import IntArray


@dataclass(frozen=True)
class DrawsTwice:
    """Asks at random and selects at random, and notes what it met."""

    num_selected: int = 2
    compares_reports: bool = False
    luck: dict[str, list[float]] = field(default_factory=lambda: {"ask": [], "select": []})
    met: list[Candidates] = field(default_factory=list)

    def ask(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        self.luck["ask"].append(rng.random())
        self.met.append(candidates)
        return np.array([1, 3, 4])

    def select(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        self.luck["select"].append(rng.random())
        self.met.append(candidates)
        return candidates.device_index[:2]


HISTORY = History(
    times_selected=np.array([0, 1, 2, 3, 4]),
    last_selected=np.array([-1, 1, 2, 3, 4]),
    last_contribution=np.array([np.nan, 1.0, 2.0, 3.0, 4.0]),
    last_loss=np.array([np.nan, 10.0, 20.0, 30.0, 40.0]),
)
SAMPLES = np.array([5, 6, 7, 8, 9])


def reports(*device_index: int) -> Reports:
    index = np.array(device_index)
    return Reports(
        device_index=index,
        contribution=index + 0.5,
        loss=index + 0.25,
        num_samples=SAMPLES[index],
        gradient_norms=np.ones((len(index), 1)),
    )


def test_asking_and_selecting_meet_independent_random_numbers_of_the_seed_and_round() -> None:
    for seed in (7, 8):
        for round_index in (0, 1, 5):
            policy = DrawsTwice()
            chooser = Chooser(policy, SAMPLES, seed)
            chooser.computing(round_index, HISTORY)
            chooser.select(round_index, reports(1, 3, 4), HISTORY)
            asked = generator(seed, Stream.SELECTION, round_index).random()
            selected = generator(seed, Stream.SELECTION, round_index, 1).random()
            assert policy.luck == {
                "ask": [asked, asked],
                "select": [selected],
            }  # who was asked is asked again
            assert asked != selected


def test_a_policy_is_asked_about_everybody_before_anything_is_reported() -> None:
    policy = DrawsTwice()
    assert Chooser(policy, SAMPLES, 0).computing(0, HISTORY).tolist() == [1, 3, 4]
    [everybody] = policy.met
    assert everybody.device_index.tolist() == [0, 1, 2, 3, 4]
    assert everybody.num_samples is SAMPLES
    assert everybody.history is HISTORY
    assert everybody.contribution is None
    assert everybody.loss is None


def test_a_policy_selects_among_those_that_were_asked_and_have_reported() -> None:
    policy = DrawsTwice()
    # 0 and 2 compute too, since everybody does; 3 was asked and did not report.
    chosen = Chooser(policy, SAMPLES, 0, everyone_computes=True).select(0, reports(0, 1, 2, 4), HISTORY)
    assert chosen.tolist() == [1, 4]
    met = policy.met[-1]
    assert met.device_index.tolist() == [1, 4]
    assert met.num_samples.tolist() == [6, 9]
    assert met.history.times_selected.tolist() == [1, 4]
    assert met.history.last_loss.tolist() == [10.0, 40.0]
    assert met.contribution is not None
    assert met.loss is not None
    assert met.contribution.tolist() == [1.5, 4.5]
    assert met.loss.tolist() == [1.25, 4.25]


def test_everybody_computes_if_so_set() -> None:
    chooser = Chooser(DrawsTwice(), SAMPLES, 0, everyone_computes=True)
    assert chooser.num_devices == 5
    assert chooser.computing(0, HISTORY).tolist() == [0, 1, 2, 3, 4]

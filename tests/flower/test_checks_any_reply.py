"""Any reply that Flower can carry, among honest nodes: no exception, and the honest keep their part.

The default is a few seconds. ``make test-processes`` tries more; a number of your own, drawn anew, is

    FEDWAVE_REPLIES=15000 python -m pytest -m processes tests/flower/test_checks_any_reply.py
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedwave.flower import RadioFacts, TwoPhase, client_app
from fedwave.flower.messages import EVALUATE, HELLO, REPORT, UPLOAD
from fedwave.learning.server_steps.mean import ServerMean
from fedwave.selection import TopContribution
from fedwave.server import CellPlanner, ContributionAudit, PolicyPlanner, PolicyRunner
from fedwave.server.aims import RAW
from fedwave.simulation.round import Federation
from fedwave.simulation.world import IdealWorld
from fedwave.wireless.delivery import UploadRisks
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.terms import ChannelDraw
from tests.flower.bad_replies import metrics
from tests.flower.fake_grid import FakeGrid
from tests.flower.toy import (
    META_LR,
    PENALTIES,
    SIZE,
    Quadratic,
    contribution_of,
    rounds_by_hand,
    samples_of,
    target_of,
)
from tests.flower.toy_server import first_arrays, first_model
from tests.server.planners import cell_planner

OWN_NUMBER = int(os.environ.get("FEDWAVE_REPLIES", "0"))
FEW, MANY = 25, OWN_NUMBER or 500

NUM_HONEST, NUM_LIARS, BLOCKS, ROUNDS = 3, 2, 3, 2  # liars may take a block each: one is left
N = NUM_HONEST + NUM_LIARS
HONEST = list(range(NUM_HONEST))
FIRST_LIAR = 9000  # ids after those of the honest: who comes first has a place, and that is as documented

# What Flower can carry -------------------------------------------------------------------------------------

FIELDS = (
    "contribution", "loss", "num_samples", "gradient_norms", "device", "num-examples",
    "channel_gain", "max_power_w", "max_frequency_hz", "capacitance", "cycles_per_sample",
)  # fmt: skip
numbers = st.one_of(
    st.floats(),
    st.sampled_from([0.0, -0.0, 5e-324, 1e-300, 1e-30, 1.0, 1e15, 1e18, 1e30, 1e308, -1.0]),
    st.integers(-(2**63), 2**64 - 1),
    st.integers(-2, N + 1),
)
floats = numbers.map(float)
whole = st.integers(-(2**63), 2**64 - 1) | st.integers(-2, 9)
metric_values = numbers | st.lists(floats, max_size=4) | st.lists(whole, max_size=4)
texts = st.text(max_size=8) | st.sampled_from(["\x1b[31m", "a\nb", "\u202e", "\0", "%s", "w", "{x}"])
config_values = st.one_of(
    metric_values, texts, st.booleans(), st.binary(max_size=5), st.lists(texts, max_size=3),
    st.lists(st.booleans(), max_size=3), st.lists(st.binary(max_size=3), max_size=3),
)  # fmt: skip
names = st.sampled_from(FIELDS) | texts

DTYPES = ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64", ">f4", "S3", "U2", "M8[s]"]
VALUES = [0, 1, -1, np.nan, np.inf, 1e-45, 3e38, 65504]


@st.composite
def plain_arrays(draw: Any) -> Array:
    shape = draw(st.sampled_from([(SIZE,), (), (0,), (1,), (SIZE, 1), (2, 3), (1, SIZE)]))
    kind = np.dtype(draw(st.sampled_from(["float32"] * 8 + DTYPES)))
    values = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))
    with np.errstate(all="ignore"):
        array = np.resize(np.array(values), shape).astype(np.int64 if kind.kind == "M" else kind)
    return Array(array.astype(kind))


@st.composite
def broken_arrays(draw: Any) -> Array:
    """The bytes of an array with a few changes, or any bytes, below any claim."""
    data = bytearray(draw(plain_arrays()).data)
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    content = draw(st.sampled_from([bytes(data), bytes(data[: len(data) // 2])]) | st.binary(max_size=20))
    shape = tuple(draw(st.lists(st.integers(-1, 2**40), max_size=3)))
    stype = draw(st.sampled_from(["numpy.ndarray", "torch", ""]))
    return Array(dtype=draw(texts), shape=shape, stype=stype, data=content)


array_records = st.dictionaries(
    st.sampled_from(["w", "w", "v"]) | texts, plain_arrays() | broken_arrays(), max_size=3
).map(ArrayRecord)
records = st.one_of(
    array_records,
    st.dictionaries(names, metric_values, max_size=6).map(MetricRecord),
    st.dictionaries(names, config_values, max_size=4).map(ConfigRecord),
)
contents = st.dictionaries(st.sampled_from(["metrics", "arrays", "config"]) | texts, records, max_size=3)

# What a liar does with a message: it makes a reply of the message and of the honest reply -------------------

Lie = Callable[[Message, Message], Message | None]


def says(content: dict[str, Any]) -> Lie:
    return lambda message, reply: Message(RecordDict(content), reply_to=message)


def fails(code: int, reason: str) -> Lie:
    return lambda message, reply: Message(Error(code=code, reason=reason), reply_to=message)


def changes(values: dict[str, Any]) -> Lie:
    """The honest numbers, but for some."""
    return lambda message, reply: reply if reply.has_error() else metrics(**values)(message, reply)


def boasts(norm: float, num_samples: int) -> Lie:
    """A report that agrees with itself, whatever the device has computed."""
    boast = {"gradient_norms": [norm], "num_samples": num_samples}
    return changes({**boast, "contribution": contribution_of(norm, num_samples)})


def sends(arrays: ArrayRecord) -> Lie:
    return says({"arrays": arrays, "metrics": MetricRecord({"num-examples": 1})})


def empty(message: Message, reply: Message) -> Message:
    reply.__dict__.update(_content=None, _error=None)
    return reply


lies: st.SearchStrategy[Lie] = st.one_of(
    contents.map(says),
    st.dictionaries(st.sampled_from(FIELDS), metric_values, min_size=1, max_size=3).map(changes),
    st.builds(boasts, st.floats(0.0, 2e15), st.integers(1, 2**53)),
    st.dictionaries(st.sampled_from(FIELDS[6:]), metric_values, min_size=1).map(changes),
    st.dictionaries(st.just("w"), plain_arrays() | broken_arrays()).map(ArrayRecord).map(sends),
    st.builds(fails, st.integers(-(2**31), 2**31 - 1), texts),
    st.just(empty),
    st.just(lambda message, reply: None),
    st.just(lambda message, reply: reply),
)
KINDS = (HELLO, REPORT, UPLOAD, EVALUATE)
plots = st.fixed_dictionaries(
    {(liar, kind): st.lists(lies, max_size=ROUNDS) for liar in range(NUM_LIARS) for kind in KINDS}
)

# The federations -------------------------------------------------------------------------------------------

GAIN = np.random.default_rng(1).uniform(0.5, 2.0, (N, BLOCKS)) * 1e-10
LIMITS = {"max_power_w": 0.2, "max_frequency_hz": 1e9, "capacitance": 1e-28, "cycles_per_sample": 1e6}


class InACell(Quadratic):
    @property
    def radio(self) -> RadioFacts:
        return RadioFacts(channel_gain=GAIN[self.position], **LIMITS)


@dataclass(frozen=True)
class KnownCell(IdealWorld):
    """A world whose server has measured the channel itself."""

    def channel(self, round_index: int) -> ChannelDraw:
        return ChannelDraw(GAIN, np.full(BLOCKS, 1e-16))


def on_an_ideal_network() -> Federation:
    runner = PolicyRunner(TopContribution(N), np.ones(N, dtype=np.int64), seed=0)
    return Federation(planner=PolicyPlanner(runner), world=IdealWorld(), server_step=ServerMean())


def over_a_cell(world: IdealWorld, deadline_s: float | None = None) -> Federation:
    fleet = Fleet(*(np.full(N, value) for value in LIMITS.values()))
    planner: CellPlanner = cell_planner(fleet, np.ones(N, dtype=np.int64), num_blocks=BLOCKS)
    # On a scale of its own each contribution counts by itself; its costs are small beside it.
    planner = replace(planner, aims=replace(planner.aims, scale=RAW, energy_weight=1e-3, delay_weight=1e-3))
    planner = replace(planner, terms=replace(planner.terms, risks=UploadRisks(deadline_s=deadline_s)))
    return Federation(planner=planner, world=world, server_step=ServerMean())


FEDERATIONS: dict[str, Callable[[], Federation]] = {
    "ideal": on_an_ideal_network,
    "a cell that devices measure": lambda: over_a_cell(IdealWorld()),
    "a cell that the server measures": lambda: over_a_cell(KnownCell()),
    "a cell with a deadline": lambda: over_a_cell(KnownCell(), deadline_s=60.0),
}


def position_of(context: Any) -> int:
    return int(context.node_config["partition-id"])


def grid_with(plot: dict[tuple[int, str], list[Lie]], device: type[Quadratic]) -> FakeGrid:
    grid = FakeGrid(client_app(lambda context: device(position_of(context))), NUM_HONEST)
    for liar in range(NUM_LIARS):
        grid.join(NUM_HONEST + liar, node_id=FIRST_LIAR + liar)

    def act(liar: int, kind: str) -> Lie:
        left = list(plot[liar, kind])
        return lambda message, reply: left.pop(0)(message, reply) if left else reply

    for liar, kind in plot:
        grid.tamper[FIRST_LIAR + liar, kind] = act(liar, kind)
    return grid


@contextmanager
def listening() -> Any:
    """What is said, line by line; nothing is printed."""
    lines: list[str] = []
    logger = logging.getLogger("flwr")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    before, logger.handlers = logger.handlers, [handler]
    yield lines
    logger.handlers = before


def check(name: str, plot: dict[tuple[int, str], list[Lie]]) -> None:
    audit = ContributionAudit(meta_lr=META_LR, **PENALTIES)
    server = TwoPhase(
        FEDERATIONS[name](), num_devices=N, audit=audit, evaluate_every=1, min_reports=NUM_HONEST
    )
    grid = grid_with(plot, Quadratic if name == "ideal" else InACell)
    with listening() as lines:
        result = server.start(grid, first_arrays(), num_rounds=ROUNDS)
    require_finite(server, result)
    for line in lines:
        assert "unforeseen" not in line, line
        assert line.isprintable() or not line.startswith("round "), line
    rounds = list(result.train_metrics_clientapp.values())
    assert len(rounds) == ROUNDS
    for record in rounds:
        assert set(HONEST) <= set(record["reported"])
        assert not record["skipped"] or name != "ideal"
        assert set(HONEST).isdisjoint(record["excluded"])
        assert all(node >= FIRST_LIAR for node in record["dropped_nodes"])
        if name == "ideal":
            assert set(HONEST) <= set(record["received"])
    # The first round knows nothing of the past: a liar can take one block, and no more.
    # A deadline leaves the others the time that a slow device does not take: that is the cell's own rule.
    num_taken = len(set(rounds[0]["selected"]) - set(HONEST)) if "deadline" not in name else BLOCKS
    assert len(set(rounds[0]["received"]) & set(HONEST)) >= min(len(worth_an_upload()), BLOCKS - num_taken)
    if name == "ideal" and all(record["received"] == HONEST for record in rounds):
        model, _ = rounds_by_hand(first_model(), ROUNDS, NUM_HONEST, present=HONEST)
        np.testing.assert_array_equal(result.arrays["w"].numpy(), model)
    assert set(result.evaluate_metrics_clientapp) == set(range(1, ROUNDS + 1))


def worth_an_upload() -> list[int]:
    """The honest whose contribution to the first round is positive: a cell's plan leaves out the others."""
    norms = {i: float(np.linalg.norm(first_model().astype(np.float64) - target_of(i))) for i in HONEST}
    return [i for i in HONEST if contribution_of(norms[i], samples_of(i)) > 0]


def require_finite(server: TwoPhase, result: Result) -> None:
    assert np.isfinite(result.arrays["w"].numpy()).all()
    assert result.arrays["w"].numpy().dtype == np.float32
    state = server._state
    assert state is not None
    for values in state.planner.values():
        assert not np.isinf(values).any()
    for record in (*result.train_metrics_clientapp.values(), *result.evaluate_metrics_clientapp.values()):
        assert all(np.isfinite(value).all() for value in record.values())


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.processes)])
@pytest.mark.parametrize("name", FEDERATIONS)
def test_no_reply_ends_a_run_or_decides_about_others(name: str, examples: int) -> None:
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]

    @settings(max_examples=examples, derandomize=OWN_NUMBER == 0, suppress_health_check=quiet, deadline=None)
    @given(plots)
    def run(plot: dict[tuple[int, str], list[Lie]]) -> None:
        check(name, plot)

    run()

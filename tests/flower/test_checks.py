"""Replies that cannot be used: the report or the upload is dropped, and the round goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict

from fedwave.flower import DeviceReport
from fedwave.flower.checks import (
    Hello,
    figures_of,
    hello_of,
    mean_change_of,
    model_of,
    report_of,
    usable_replies,
)
from fedwave.flower.message_log import MessageLog
from fedwave.flower.messages import ANY_DEVICE, BadReply, message_to, to_arrays, to_record
from tests.flower.bad_replies import Change, a_pickle, arrays, lies_about_its_shape, metrics
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import SIZE, app, rounds_by_hand
from tests.flower.toy_server import N, first_arrays, first_model, strategy

RADIO = {
    "channel_gain": [0.5, 1.0],
    "max_power_w": 0.2,
    "max_frequency_hz": 1e9,
    "capacitance": 0.0,
    "cycles_per_sample": 3e6,
}
REPORT = {"contribution": -1.5, "loss": 0.25, "num_samples": 7, "gradient_norms": [2.0, 0.0], **RADIO}

BEST = rounds_by_hand(first_model(), 1, 1, present=list(range(N)))[1][0][0]  # selected in the first round


def emptied(reply: Message) -> Message:
    reply.__dict__["_content"] = None
    return reply


BAD_REPORTS: dict[str, tuple[Change, str]] = {
    "nothing": (lambda message, reply: None, "no answer within"),
    "an error": (
        lambda message, reply: Message(Error(code=2, reason="Traceback:\nno battery"), reply_to=message),
        "the node reports error 2: no battery",
    ),
    "NaN": (metrics(contribution=float("nan")), "contribution is nan"),
    "minus infinity": (metrics(contribution=float("-inf")), "contribution is -inf"),
    "a huge loss": (metrics(loss=-1e31), "loss -1e+31 is absurd"),
    "an infinite loss": (metrics(loss=float("inf")), "loss is inf"),
    "an infinite norm": (metrics(gradient_norms=[float("inf")]), "gradient_norms must be finite"),
    "a negative norm": (metrics(gradient_norms=[-1.0]), "gradient_norms must be finite and not negative"),
    "too many norms": (metrics(gradient_norms=[1.0, 1.0]), "gradient_norms has 2 entries"),
    "no norms": (metrics(gradient_norms=[]), "gradient_norms must be a list of numbers"),
    "a number for a list": (metrics(gradient_norms=3.0), "gradient_norms must be a list of numbers"),
    "a list for a number": (metrics(contribution=[1.0]), "contribution must be a number"),
    "no loss": (metrics(loss=None), "loss must be a number, got None"),
    "no samples": (metrics(num_samples=0), "num_samples must be a whole number >= 1, got 0"),
    "half a sample": (metrics(num_samples=1.5), "num_samples must be a whole number >= 1, got 1.5"),
    "an absurd contribution": (metrics(contribution=1e300), "contribution 1e+300 is absurd"),
    "a huge norm": (metrics(gradient_norms=[1e200]), "is absurd"),
    "a contribution of its own": (
        metrics(contribution=1e6),
        "contribution 1e+06 is not that of its gradient norms",
    ),
    "too much": (metrics(more=[0.0] * 100_000), "bytes, at most 65536 were expected"),
    "a model": (arrays({"w": Array(np.zeros(SIZE, np.float32))}), "carries a model that nobody asked for"),
    "an empty text": (
        lambda message, reply: Message(RecordDict({"config": ConfigRecord({"a": ""})}), reply_to=message),
        'has no record "metrics"',
    ),
    "no record": (lambda message, reply: Message(RecordDict(), reply_to=message), 'has no record "metrics"'),
    "a list of samples": (metrics(num_samples=[3]), "num_samples must be a whole number >= 1, got [3]"),
    "neither content nor error": (
        lambda message, reply: emptied(reply),
        "the reply has neither content nor error",
    ),
    "an escape": (
        lambda message, reply: Message(
            Error(code=2, reason="a\nno \x1b[31mbattery\u202e\x07"), reply_to=message
        ),
        r"the node reports error 2: no \x1b[31mbattery\u202e\x07",
    ),
}


BAD_UPLOADS: dict[str, tuple[Change, str]] = {
    "nothing": (lambda message, reply: None, "no answer in time"),
    "an error": (
        lambda message, reply: Message(Error(code=2, reason="gone"), reply_to=message),
        "the node reports error 2: gone",
    ),
    "NaN": (arrays({"w": Array(np.full(SIZE, np.nan, np.float32))}), "w has 6 values that are not finite"),
    "infinity": (
        arrays({"w": Array(np.array([np.inf, 0, 0, 0, 0, -np.inf], np.float32))}),
        "w has 2 values that are not finite",
    ),
    "a wrong shape": (
        arrays({"w": Array(np.zeros((2, 3), np.float32))}),
        "w has shape (2, 3), the global model (6,)",
    ),
    "a wrong type": (arrays({"w": Array(np.zeros(SIZE))}), "w has dtype float64, the global model float32"),
    "another name": (
        arrays({"v": Array(np.zeros(SIZE, np.float32))}),
        "other arrays than the global one: ['v', 'w']",
    ),
    "too much": (arrays({"w": Array(np.zeros(10_000, np.float32))}), "bytes, at most"),
    "a claim of a terabyte": (arrays({"w": lies_about_its_shape()}), "w has shape (99999999999,)"),
    "a pickle": (arrays({"w": a_pickle()}), "w has dtype object, the global model float32"),
    "rubbish": (
        arrays({"w": Array(dtype="float32", shape=(6,), stype="numpy.ndarray", data=b"rubbish")}),
        "w is no array",
    ),
    "brackets": (
        arrays(
            {
                "w": Array(
                    dtype="float32",
                    shape=(6,),
                    stype="numpy.ndarray",
                    data=b"\x93NUMPY\x01\x00\xe8\x03" + b"(" * 999 + b"\n",
                )
            }
        ),
        "w is no array",
    ),
    "other field names": (
        arrays({"w": Array(np.zeros(SIZE, np.dtype([("\x1b[31m\n", "<f4")])))}),
        r"w has dtype [('\x1b[31m\n', '<f4')], the global model float32",
    ),
    "another kind of bytes": (
        arrays({"w": Array("float32", (SIZE,), "torch", Array(np.zeros(SIZE, np.float32)).data)}),
        "w cannot be read",
    ),
    "half an array": (
        arrays(
            {"w": Array("float32", (SIZE,), "numpy.ndarray", Array(np.zeros(SIZE, np.float32)).data[:-4])}
        ),
        "w cannot be read",
    ),
    "complex numbers": (arrays({"w": Array(np.zeros(SIZE, np.complex64))}), "w has dtype complex64"),
    "a model and a lone number": (
        arrays({"w": Array(np.zeros(SIZE, np.float32)), "b": Array(np.array(1.0))}),
        "other arrays than the global one: ['b']",
    ),
    "no model": (lambda message, reply: Message(RecordDict(), reply_to=message), "carries 0 models, not one"),
    "two models": (
        lambda message, reply: Message(
            RecordDict({"a": first_arrays(), "b": first_arrays()}), reply_to=message
        ),
        "carries 2 models, not one",
    ),
}


@pytest.mark.parametrize("name", BAD_REPORTS)
def test_a_bad_report_is_dropped_and_the_round_goes_on(name: str, said: list[str]) -> None:
    change, why = BAD_REPORTS[name]
    grid = FakeGrid(app, N)
    grid.tamper[FIRST_NODE + BEST, "train.report"] = change
    result = strategy(N, 2).start(grid, first_arrays(), num_rounds=2)
    model, chosen = rounds_by_hand(first_model(), 2, 2, present=[i for i in range(N) if i != BEST])
    np.testing.assert_array_equal(result.arrays["w"].numpy(), model)
    for record, few in zip(result.train_metrics_clientapp.values(), chosen, strict=True):
        assert record["selected"] == few
        assert record["dropped_nodes"] == [FIRST_NODE + BEST]
    assert any(
        line.startswith(f"round 0: dropped the report of node {FIRST_NODE + BEST}:") and why in line
        for line in said
    ), said


@pytest.mark.parametrize("name", BAD_UPLOADS)
def test_a_bad_upload_is_dropped_and_the_round_goes_on(name: str, said: list[str]) -> None:
    change, why = BAD_UPLOADS[name]
    grid = FakeGrid(app, N)
    grid.tamper[FIRST_NODE + BEST, "train.upload"] = change
    result = strategy(N, 2).start(grid, first_arrays(), num_rounds=1)
    model, chosen = rounds_by_hand(first_model(), 1, 2, present=list(range(N)), lost={0: [BEST]})
    assert BEST in chosen[0]
    np.testing.assert_array_equal(result.arrays["w"].numpy(), model)
    record = result.train_metrics_clientapp[1]
    assert record["received"] == [i for i in chosen[0] if i != BEST]
    assert record["dropped_nodes"] == [FIRST_NODE + BEST]
    assert any(
        line.startswith(f"round 0: dropped the upload of node {FIRST_NODE + BEST}:") and why in line
        for line in said
    ), said


# Each kind of reply by itself -------------------------------------------------------------------------------


def asking(node: int) -> Message:
    FakeGrid(app, 0)  # whose messages these are
    return message_to(node, "train.report", config={}, ttl_s=60.0)


def saying(values: dict[str, Any], node: int = 5) -> Message:
    return Message(RecordDict({"metrics": MetricRecord(values)}), reply_to=asking(node))


def report(num_blocks: int | None = 2, must_tell_radio: bool = False, **changes: Any) -> DeviceReport:
    values = {name: value for name, value in {**REPORT, **changes}.items() if value is not None}
    return report_of(
        saying(values),
        num_local_steps=2,
        num_blocks=num_blocks,
        must_tell_radio=must_tell_radio,
        max_bytes=1000,
    )


def test_a_report_is_read_as_it_was_sent() -> None:
    assert report().to_metrics() == REPORT
    assert report(num_blocks=None).radio is None  # nobody looks at radios, so that none can be wrong
    assert report(num_blocks=None, channel_gain=[-1.0, float("nan"), 3.0]).radio is None
    assert report(channel_gain=None).radio is None
    assert report(channel_gain=[0.25]).to_metrics() == {**REPORT, "channel_gain": [0.25]}


def test_numbers_at_the_limits_are_believed() -> None:
    changes = {"max_power_w": 1e18, "contribution": 1e30, "gradient_norms": [1e15, 0.0], "num_samples": 1}
    assert report(**changes, loss=-1e30).to_metrics() == {**REPORT, **changes, "loss": -1e30}
    assert report(gradient_norms=[5e-324, 0.0], channel_gain=[5e-324, 0.0]).gradient_norms[0] == 5e-324


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"max_power_w": 0.0}, "must be positive"),
        ({"max_frequency_hz": 0.0}, "must be positive"),
        ({"capacitance": -1.0}, "must be positive"),
        ({"cycles_per_sample": -1.0}, "must be positive"),
        ({"max_power_w": 1e19}, "absurd"),
        ({"max_power_w": float("nan")}, "max_power_w is nan"),
        ({"capacitance": None}, "capacitance must be a number, got None"),
        ({"channel_gain": [1e19, 1.0]}, "absurd"),
        ({"channel_gain": [float("inf"), 1.0]}, "channel_gain must be finite"),
        ({"channel_gain": 1.0}, "channel_gain must be a list of numbers"),
        ({"channel_gain": []}, "channel_gain must be a list of numbers"),
        ({"channel_gain": [1.0, 1.0, 1.0]}, "gains of 3 blocks, the cell has 2"),
        ({"channel_gain": None, "must_tell_radio": True}, "it says nothing of its radio"),
        ({"contribution": -1e31}, "contribution -1e.31 is absurd"),
        ({"contribution": 10**400}, "is absurd"),
        ({"gradient_norms": [1e16, 1.0]}, "norm of 1e.16 is absurd"),
        ({"gradient_norms": [10**400, 1]}, "gradient_norms must be finite"),
        ({"num_samples": 2**53}, "whole number"),
        ({"num_samples": -1}, "whole number"),
        ({"num_samples": 2**64}, "whole number"),
        ({"gradient_norms": [1.0, float("nan")]}, "finite"),
        ({"loss": [1.0]}, "loss must be a number"),
    ],
)
def test_numbers_that_no_device_has_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(BadReply, match=why):
        report(**changes)


def test_a_hello_names_a_place_or_none() -> None:
    assert hello_of(saying({"device": 3, "num_samples": 4})) == Hello(3, 4)
    assert hello_of(saying({"num_samples": 4})) == Hello(ANY_DEVICE, 4)
    for device in (1.0, [1]):
        with pytest.raises(BadReply, match="device must be a whole number"):
            hello_of(saying({"device": device, "num_samples": 4}))
    with pytest.raises(BadReply, match="num_samples must be"):
        hello_of(saying({"device": 3}))
    with pytest.raises(BadReply, match="bytes, at most 4096"):
        hello_of(saying({"device": 3, "num_samples": 4, "x": [0] * 600}))


def test_figures_are_finite_numbers_with_a_name_that_can_be_shown() -> None:
    own = {"loss": 2, "accuracy": 0.5, "num-examples": 9, "each": [1.0], "\x1b[31m": 1.0, "\u202e": 1.0}
    assert figures_of(saying(own), 1000) == {"loss": 2.0, "accuracy": 0.5}
    for bad in (float("nan"), 1e31, -(2**200)):
        with pytest.raises(BadReply, match="loss is nan|loss .* is absurd"):
            figures_of(saying({"accuracy": 0.5, "loss": bad}), 1000)


def test_a_number_without_dimensions_stays_one() -> None:
    sent = to_record({"w": np.zeros((2, 3), np.float32), "count": np.array(7), "gain": np.float32(0.5)})
    assert [sent[name].shape for name in sent] == [(2, 3), (), ()]
    back = model_of(Message(RecordDict({"arrays": sent}), reply_to=asking(5)), sent)
    assert (back["count"].shape, int(back["count"]), float(back["gain"])) == ((), 7, 0.5)
    turned = to_record({"w": np.zeros((3, 2), np.float32).T})["w"]  # in the order that Flower's nodes expect
    assert turned.numpy().flags.c_contiguous


def test_a_masked_mean_of_other_shapes_is_refused() -> None:
    like = to_arrays(to_record({"w": np.zeros(2), "b": np.array(1.0)}))
    assert mean_change_of([np.ones(2), np.array(3.0)], like)["b"] == 3.0
    for arrays_ in ([np.ones(2)], [np.ones((2, 1)), np.array(3.0)], []):
        with pytest.raises(BadReply, match="the mean has the shapes"):
            mean_change_of(arrays_, like)


# Whose reply it is -----------------------------------------------------------------------------------------


def samples(_: int, reply: Message) -> int:
    return hello_of(reply).num_samples


def read_all(asked: list[Message], replies: list[Message]) -> tuple[dict[int, int], list[str]]:
    message_log = MessageLog(0)
    found = usable_replies(
        asked, replies, samples, phase="hello", missed="no answer", message_log=message_log
    )
    return found, message_log.reasons


def test_a_node_counts_once_and_only_if_it_was_asked() -> None:
    asked = [asking(5), asking(6)]
    replies = [saying({"num_samples": n}, node) for n, node in ((1, 5), (2, 5), (3, 7))]
    found, reasons = read_all(asked, replies)
    assert found == {5: 1}
    odd = "it was not asked, or has answered before"
    assert reasons == [
        f"hello of node 5: {odd}",
        f"hello of node 7: {odd}",
        "hello of node 6: no answer",
    ]


def test_an_error_of_the_superlink_is_said_of_the_node_that_it_stands_for_and_once() -> None:
    asked = [asking(5), asking(6), asking(8)]
    for number, message in enumerate(asked):
        message.metadata.__dict__["_message_id"] = f"id{number}"  # as a grid does when it sends
    lost = [Message(Error(code=3, reason="Node Unavailable"), reply_to=message) for message in asked[:2]]
    for reply in lost:
        reply.metadata.__dict__["_src_node_id"] = 1  # the SuperLink's own
    unknown = Message(Error(code=3, reason="what?"), reply_to=asking(9))
    late = saying({"num_samples": 4}, 6)  # an error in its name does not take its answer away
    found, reasons = read_all(asked, [*lost, unknown, late])
    assert found == {6: 4}
    assert reasons == [
        "hello of node 5: the node reports error 3: Node Unavailable",
        "hello of node 8: no answer",
    ]


def test_an_error_of_a_stranger_is_said_of_nobody() -> None:
    found, reasons = read_all([asking(5)], [Message(Error(code=3, reason="what?"), reply_to=asking(9))])
    assert (found, reasons) == ({}, ["hello of node 5: no answer"])  # messages of this grid have no ids


def test_a_reason_is_never_long() -> None:
    many = np.zeros(1, np.dtype([(f"field{number}", "<f4") for number in range(200)]))
    sent, reply = first_arrays(), RecordDict({"arrays": ArrayRecord({"w": Array(many)})})
    with pytest.raises(BadReply) as caught:
        model_of(Message(reply, reply_to=asking(5)), sent)
    assert len(str(caught.value)) < 200


def test_what_nobody_foresaw_costs_a_node_its_own_reply_alone() -> None:
    def read(node: int, reply: Message) -> int:
        return 1 // (node - 5)

    message_log, asked = MessageLog(0), [asking(5), asking(6)]
    replies = [saying({}, 5), saying({}, 6)]
    assert usable_replies(asked, replies, read, phase="hello", missed="", message_log=message_log) == {6: 1}
    (reason,) = message_log.reasons
    assert "it cannot be read, unforeseen ZeroDivisionError" in reason

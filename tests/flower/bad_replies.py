"""Replies that cannot be used, and nodes that make them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict

from tests.flower.toy import SIZE, contribution_of

Change = Callable[[Message, Message], Message | None]


def metrics(**changes: Any) -> Change:
    def change(message: Message, reply: Message) -> Message:
        record = dict(reply.content.metric_records["metrics"])
        for name, value in changes.items():
            if value is None:
                del record[name]
            else:
                record[name] = value
        return Message(RecordDict({"metrics": MetricRecord(record)}), reply_to=message)

    return change


def arrays(record: dict[str, Array]) -> Change:
    def change(message: Message, reply: Message) -> Message:
        content = RecordDict({"arrays": ArrayRecord(record), "metrics": MetricRecord({"num-examples": 1})})
        return Message(content, reply_to=message)

    return change


def lies_about_its_shape() -> Array:
    """A header that claims a terabyte, before a few bytes."""
    honest = Array(np.zeros(SIZE, np.float32))
    data = honest.data.replace(b"(6,), }", b"(99999999999,), }")[: len(honest.data)]
    return Array(dtype="float32", shape=(SIZE,), stype="numpy.ndarray", data=data)


def a_pickle() -> Array:
    data = (
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (6,), }".ljust(127) + b"\n"
    )
    return Array(dtype="object", shape=(SIZE,), stype="numpy.ndarray", data=data + b"cos\nsystem\n")


def lie(message: Message, reply: Message) -> Message:
    """A device claims ten thousand times its norm: if it is believed, it is always selected."""
    own = reply.content.metric_records["metrics"]
    norm, num_samples = 1e4 * own["gradient_norms"][0], own["num_samples"]
    return metrics(gradient_norms=[norm], contribution=contribution_of(norm, num_samples))(message, reply)


# Nodes in processes of their own fail as their config says: fault-<round> = "<phase>:<what>".


def hang(message: Message, reply: Message) -> Message:
    time.sleep(float(os.environ["FEDWAVE_TEST_HANG_S"]))
    return reply


def die(message: Message, reply: Message) -> Message:
    """As a power cut: the SuperNode and all of its processes are gone."""
    os.killpg(os.getpgrp(), signal.SIGKILL)
    return reply


FAULTS: dict[str, Change] = {
    "nan": metrics(contribution=float("nan")),
    "big": metrics(more=[0.0] * 100_000),
    "absurd": metrics(contribution=1e300),
    "infinity": arrays({"w": Array(np.full(SIZE, np.inf, np.float32))}),
    "shape": arrays({"w": Array(np.zeros((2, 3), np.float32))}),
    "dtype": arrays({"w": Array(np.zeros(SIZE))}),
    "oversized": arrays({"w": Array(np.zeros(1_000_000, np.float32))}),
    "lie": lie,
    "hang": hang,
    "die": die,
}


def fail_as_planned(
    message: Message, context: Context, call_next: Callable[[Message, Context], Message]
) -> Message:
    round_index = message.content.config_records["config"]["round"]
    reply = call_next(message, context)
    phase, _, what = str(context.node_config.get(f"fault-{round_index}", ":")).partition(":")
    if message.metadata.message_type != f"train.{phase}":
        return reply
    changed: Any = FAULTS[what](message, reply)
    return changed

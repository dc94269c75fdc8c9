"""What travels between the server and the nodes: kinds of messages, names of their records, their values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from numpy.typing import NDArray

HELLO = "query.hello"  # once to every node: which device it is, and how many samples it has
REPORT = "train.report"  # phase 1: the model goes out, a few numbers come back
UPLOAD = "train.upload"  # phase 2, to the chosen alone: a few numbers go out, the model comes back
EVALUATE = "evaluate"

ANY_DEVICE = -1  # a node that leaves it to the server which device it is
ARRAYS, METRICS, CONFIG = "arrays", "metrics", "config"  # the records of a message

NamedArrays = dict[str, NDArray[Any]]


class BadReply(Exception):  # noqa: N818 - it is a verdict on a reply, not an error of ours
    """Says in one line why a reply is dropped."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of an upload: some hertz from one time to another, from the start of the round's uploads."""

    first_hz: float  # where its hertz begin, from the lower end of the band
    width_hz: float
    start_s: float
    end_s: float
    transmit_power_w: float


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What the server tells a chosen device: its block, power and CPU frequency; None without a cell.

    Where devices do not simply hold one block each (``access``), the pieces say over which hertz it sends
    when, and at what power: a share of the band, some blocks, a turn, or blocks that others have left.
    """

    round_index: int
    block: int | None = None
    transmit_power_w: float | None = None
    cpu_frequency_hz: float | None = None
    access: str = "one-block"
    pieces: tuple[Piece, ...] = ()

    def to_config(self) -> dict[str, Any]:
        """Return the values that are set, as a message carries them."""
        values: dict[str, Any] = {
            "round": self.round_index,
            "block": self.block,
            "transmit_power_w": self.transmit_power_w,
            "cpu_frequency_hz": self.cpu_frequency_hz,
        }
        if self.access != "one-block":
            values["access"] = self.access
            values["schedule"] = json.dumps([astuple(piece) for piece in self.pieces])
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Grant:
        """Return the grant that a message carries."""
        rows = json.loads(config.get("schedule", "[]"))  # a text, as secure aggregation carries no lists
        return cls(
            round_index=int(config["round"]),
            block=config.get("block"),
            transmit_power_w=config.get("transmit_power_w"),
            cpu_frequency_hz=config.get("cpu_frequency_hz"),
            access=config.get("access", "one-block"),
            pieces=tuple(Piece(**dict(zip(_PIECE_PARTS, row, strict=True))) for row in rows),
        )


_PIECE_PARTS = tuple(field.name for field in fields(Piece))


def message_to(
    node_id: int,
    kind: str,
    *,
    arrays: ArrayRecord | None = None,
    config: Mapping[str, Any],
    ttl_s: float | None,
) -> Message:
    """Return a message to a node, which need not be answered when ``ttl_s`` is over; None: Flower's own."""
    content = RecordDict({CONFIG: ConfigRecord(dict(config))})
    if arrays is not None:
        content[ARRAYS] = arrays
    return Message(content, dst_node_id=node_id, message_type=kind, ttl=ttl_s)


def reply_with(
    message: Message, *, metrics: Mapping[str, Any] | None = None, arrays: ArrayRecord | None = None
) -> Message:
    """Return a reply."""
    content = RecordDict()
    if arrays is not None:
        content[ARRAYS] = arrays
    if metrics is not None:
        content[METRICS] = MetricRecord(dict(metrics))
    return Message(content, reply_to=message)


def size_bytes(message: Message) -> int:
    """Return the bytes of a message's records, as Flower counts them; 0 for an error."""
    return sum(map(_record_bytes, message.content.values())) if message.has_content() else 0


def _record_bytes(record: ArrayRecord | ConfigRecord | MetricRecord) -> int:
    if not isinstance(record, ConfigRecord):
        return int(record.count_bytes())
    lists = [value if isinstance(value, list) else [value] for value in record.values()]
    values = [value for one in lists for value in one]  # Flower's own count raises where a text is empty
    sizes = [len(value) if isinstance(value, str | bytes) else 8 for value in values]
    return sum(map(len, record)) + sum(sizes)


def to_record(arrays: Mapping[str, NDArray[Any]], order: Iterable[str] | None = None) -> ArrayRecord:
    """Return a model as a message carries it; ``order`` is that of its names."""
    names = list(arrays) if order is None else list(order)
    return ArrayRecord({name: Array(np.asarray(arrays[name], order="C")) for name in names})


def to_arrays(record: ArrayRecord) -> NamedArrays:
    """Return a trusted model's arrays; for one that a node sent, see ``checks``."""
    return {name: array.numpy() for name, array in record.items()}


def printable(text: object) -> str:
    """Return a node's text as one line of a log: nothing in it can steer a terminal or begin a new line."""
    line = " ".join(str(text).split())
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)


def short(value: object) -> str:
    """Return what a node sent, as a part of such a line."""
    text = printable(str(value)[:200])
    return text if len(text) <= 120 else text[:117] + "..."

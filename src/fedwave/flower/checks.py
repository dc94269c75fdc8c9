"""The one place that decides what a reply may do: no field of it is used before it has passed here.

A reply that cannot be used is dropped, and nothing else happens: it ends no run, and it never decides about
others. So each is judged by what the server knows itself, never by what other nodes say; no pickle is read.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord
from numpy.lib import format as npy
from numpy.typing import NDArray

from fedwave.flower.device import DeviceReport, RadioFacts
from fedwave.flower.message_log import MessageLog
from fedwave.flower.messages import ANY_DEVICE, METRICS, BadReply, NamedArrays, short, size_bytes
from fedwave.units import FloatArray

HEADROOM_BYTES = 4096  # of a model's reply beyond the model that was sent out: names and headers
MAX_HELLO_BYTES = 4096
MAX_FIGURE = 1e30  # of a contribution, a loss or a figure: float32 norms with larger squares are not finite
MAX_RADIO = 1e18  # of any limit or gain in SI units: larger ones would overflow in the plan
NUM_EXAMPLES = "num-examples"  # Flower's name, which is no figure
_LIMITS = ("max_power_w", "max_frequency_hz", "capacitance", "cycles_per_sample")

Read = TypeVar("Read")


def usable_replies(
    messages: Sequence[Message],
    replies: Iterable[Message],
    read: Callable[[int, Message], Read],
    *,
    phase: str,
    missed: str,
    message_log: MessageLog,
) -> dict[int, Read]:
    """Return what ``read(node, reply)`` makes of the replies, by node; the log says who was dropped, and why.

    A node counts once, if it was asked. The SuperLink answers for one that cannot: that is said of the node.
    """
    asked = {message.metadata.dst_node_id for message in messages}
    node_of_message = {
        message.metadata.message_id: message.metadata.dst_node_id
        for message in messages
        if message.metadata.message_id  # the grid gives it one when it is sent
    }
    found: dict[int, Read] = {}
    heard: set[int] = set()
    why_missed: dict[int | None, str] = {}
    for reply in replies:
        node = reply.metadata.src_node_id
        if reply.has_error() and node not in asked:
            why_missed[node_of_message.get(reply.metadata.reply_to_message_id)] = _error_of(reply)
            continue
        try:
            if node not in asked or node in heard:
                raise BadReply("it was not asked, or has answered before")
            heard.add(node)
            found[node] = _read(read, node, reply)
        except BadReply as why:
            message_log.drop(node, phase, why)
    for node in sorted(asked - heard):
        message_log.drop(node, phase, why_missed.get(node, missed))
    return found


def _read(read: Callable[[int, Message], Read], node: int, reply: Message) -> Read:
    try:
        return read(node, reply)
    except BadReply:
        raise
    except Exception as error:  # what nobody foresaw costs this node its reply, and not the others their run
        raise BadReply(f"it cannot be read, unforeseen {type(error).__name__}: {short(error)}") from None


# What each kind of reply carries ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Hello:
    """Which device a node says it is, or ``ANY_DEVICE``, and how many samples it has."""

    device: int
    num_samples: int


def hello_of(reply: Message) -> Hello:
    """Return what a node says of itself."""
    metrics = _metrics_of(reply, MAX_HELLO_BYTES)
    device = metrics.get("device", ANY_DEVICE)
    if not isinstance(device, int):
        raise BadReply(f"device must be a whole number, got {short(device)}")
    return Hello(device, _num_samples_of(metrics))


def report_of(
    reply: Message, *, num_local_steps: int, num_blocks: int | None, must_tell_radio: bool, max_bytes: int
) -> DeviceReport:
    """Return a report. ``num_blocks`` are those of the server's cell; None: nobody looks at radios."""
    metrics = _metrics_of(reply, max_bytes)
    norms = _numbers(metrics, "gradient_norms")
    if len(norms) != num_local_steps:
        raise BadReply(f"gradient_norms has {len(norms)} entries, one for each of {num_local_steps} steps")
    contribution = _number(metrics, "contribution")
    if norms.max() > math.sqrt(MAX_FIGURE):
        raise BadReply(f"a gradient norm of {norms.max():g} is absurd")
    return DeviceReport(
        contribution=contribution,
        loss=_number(metrics, "loss"),
        num_samples=_num_samples_of(metrics),
        gradient_norms=norms,
        radio=None if num_blocks is None else _radio_of(metrics, num_blocks, must_tell_radio),
    )


def model_of(reply: Message, like: ArrayRecord) -> NamedArrays:
    """Return a model: names, shapes and types are those of the global model, all values finite."""
    _require_content(reply, like.count_bytes() + HEADROOM_BYTES)
    records = list(reply.content.array_records.values())
    if len(records) != 1:
        raise BadReply(f"the reply carries {len(records)} models, not one")
    (record,) = records
    if set(record) != set(like):
        odd = sorted(set(record) ^ set(like))
        raise BadReply(f"the model has other arrays than the global one: {short(odd)}")
    return {name: _array_of(name, record[name], like[name].numpy()) for name in like}


def mean_change_of(arrays: Sequence[NDArray[Any]], like: NamedArrays) -> NamedArrays:
    """Return a mean of changes that nodes have masked, by name: the shapes are those of the global model."""
    shapes, wanted = [np.shape(array) for array in arrays], [value.shape for value in like.values()]
    if shapes != wanted:
        raise BadReply(f"the mean has the shapes {short(shapes)}, the global model {short(wanted)}")
    return dict(zip(like, arrays, strict=True))


def figures_of(reply: Message, max_bytes: int) -> dict[str, float]:
    """Return the figures of an evaluation; lists, and names that no log could show, are left out."""
    metrics = _metrics_of(reply, max_bytes)
    names = [name for name, value in metrics.items() if isinstance(value, int | float)]
    return {name: _number(metrics, name) for name in names if name != NUM_EXAMPLES and name.isprintable()}


# What a field may be ----------------------------------------------------------------------------------------


def _error_of(reply: Message) -> str:
    lines = str(reply.error.reason or "").strip().splitlines()
    return f"the node reports error {short(reply.error.code)}: {short(lines[-1] if lines else 'no reason')}"


def _require_content(reply: Message, max_bytes: int) -> None:
    if reply.has_error():
        raise BadReply(_error_of(reply))
    if not reply.has_content():
        raise BadReply("the reply has neither content nor error")
    if (size := size_bytes(reply)) > max_bytes:
        raise BadReply(f"the reply has {size} bytes, at most {max_bytes} were expected")


def _metrics_of(reply: Message, max_bytes: int) -> MetricRecord:
    """Return the numbers of a reply that must carry no model."""
    _require_content(reply, max_bytes)
    if reply.content.array_records:
        raise BadReply("the reply carries a model that nobody asked for")
    if METRICS not in reply.content.metric_records:
        raise BadReply(f'the reply has no record "{METRICS}"')
    return reply.content.metric_records[METRICS]


def _radio_of(metrics: Mapping[str, Any], num_blocks: int, must_tell_radio: bool) -> RadioFacts | None:
    """Return what a report says of a radio; None if it says nothing."""
    if "channel_gain" not in metrics:
        if must_tell_radio:
            raise BadReply("it says nothing of its radio, and the server does not know its channel")
        return None
    limits = {name: _number(metrics, name) for name in _LIMITS}
    if min(limits["max_power_w"], limits["max_frequency_hz"]) <= 0 or min(limits.values()) < 0:
        raise BadReply(f"the device's limits must be positive, got {short(limits)}")
    gain = _numbers(metrics, "channel_gain")
    if len(gain) not in (1, num_blocks):
        asked = "one for all is asked for" if num_blocks == 1 else f"the cell has {num_blocks}"
        raise BadReply(f"it reports gains of {len(gain)} blocks, {asked}")
    if max(*limits.values(), float(gain.max())) > MAX_RADIO:
        raise BadReply(f"the device's radio is absurd: {short(limits)}, gains up to {gain.max():g}")
    return RadioFacts(channel_gain=gain, **limits)


def _num_samples_of(metrics: Mapping[str, Any]) -> int:
    value = metrics.get("num_samples")
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**53:
        raise BadReply(f"num_samples must be a whole number >= 1, got {short(value)}")
    return value


def _number(metrics: Mapping[str, Any], name: str) -> float:
    value = metrics.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadReply(f"{short(name)} must be a number, got {short(value)}")
    if not -math.inf < value < math.inf:
        raise BadReply(f"{short(name)} is {value}")
    if abs(value) > MAX_FIGURE:
        raise BadReply(f"{short(name)} {short(value)} is absurd")
    return float(value)


def _numbers(metrics: Mapping[str, Any], name: str) -> FloatArray:
    values = metrics.get(name)
    if not isinstance(values, list) or not values or not all(isinstance(v, int | float) for v in values):
        raise BadReply(f"{name} must be a list of numbers, got {short(values)}")
    if not all(0 <= value <= sys.float_info.max for value in values):
        raise BadReply(f"{name} must be finite and not negative, got {short(values)}")
    return np.array(values, dtype=np.float64)


def _array_of(name: str, array: Array, wanted: NDArray[Any]) -> NDArray[Any]:
    try:  # the header first: a claim of a huge shape must not be believed
        stream = BytesIO(array.data)
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(stream)
    except Exception as error:  # of numpy's parsers, which raise whatever a hostile header makes them
        raise BadReply(f"{name} is no array: {short(error)}") from None
    if dtype != wanted.dtype:
        raise BadReply(f"{name} has dtype {short(dtype)}, the global model {wanted.dtype}")
    if shape != wanted.shape:
        raise BadReply(f"{name} has shape {short(shape)}, the global model {wanted.shape}")
    try:
        values: NDArray[Any] = array.numpy()
    except (ValueError, TypeError, EOFError, OSError) as error:
        raise BadReply(f"{name} cannot be read: {short(error)}") from None
    if not np.isfinite(values).all():
        raise BadReply(f"{name} has {int((~np.isfinite(values)).sum())} values that are not finite")
    return values

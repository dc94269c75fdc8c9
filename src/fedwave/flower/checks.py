"""What a node replied, or why it cannot be used: nothing that comes in is trusted, nothing unpickled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord
from numpy.lib import format as npy

from fedwave.flower.messages import METRICS, NamedArrays, Radio, size_bytes
from fedwave.units import FloatArray

MAX_CONTRIBUTION = 1e30  # float32 norms whose squares are larger would not have been finite
MAX_RADIO = 1e18  # of any limit or gain in SI units: larger ones would overflow in the plan
HEADROOM_BYTES = 4096  # of a model's reply beyond the model that was sent out: names and headers
_RADIO_NUMBERS = ("max_power_w", "max_frequency_hz", "capacitance", "cycles_per_sample")


class BadReply(Exception):  # noqa: N818 - it is a verdict on a reply, not an error of ours
    """Says in one line why a reply is dropped."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceReport:
    """A checked report: what a device told in phase 1."""

    contribution: float
    loss: float
    num_samples: int
    gradient_norms: FloatArray
    radio: Radio | None = None


def require_content(reply: Message, max_bytes: int) -> None:
    """Raise if the node failed, or sent more than it was asked for."""
    if reply.has_error():
        lines = str(reply.error.reason or "").strip().splitlines()
        raise BadReply(f"the node reports error {reply.error.code}: {lines[-1] if lines else 'no reason'}")
    if (size := size_bytes(reply)) > max_bytes:
        raise BadReply(f"the reply has {size} bytes, at most {max_bytes} were expected")


def metrics_of(reply: Message, max_bytes: int) -> MetricRecord:
    """Return the numbers of a reply that must carry no model."""
    require_content(reply, max_bytes)
    if reply.content.array_records:
        raise BadReply("the reply carries a model that nobody asked for")
    if METRICS not in reply.content.metric_records:
        raise BadReply(f'the reply has no record "{METRICS}"')
    return reply.content.metric_records[METRICS]


def report_of(reply: Message, *, num_local_steps: int, max_bytes: int) -> DeviceReport:
    """Return a checked report."""
    metrics = metrics_of(reply, max_bytes)
    norms = _numbers(metrics, "gradient_norms")
    if len(norms) != num_local_steps:
        raise BadReply(f"gradient_norms has {len(norms)} entries, one for each of {num_local_steps} steps")
    contribution = _number(metrics, "contribution")
    if abs(contribution) > MAX_CONTRIBUTION or norms.max() > math.sqrt(MAX_CONTRIBUTION):
        raise BadReply(f"contribution {contribution:g} is absurd")
    return DeviceReport(
        contribution=contribution,
        loss=_number(metrics, "loss"),
        num_samples=num_samples_of(metrics),
        gradient_norms=norms,
        radio=_radio_of(metrics),
    )


def num_samples_of(metrics: Mapping[str, Any]) -> int:
    """Return a device's number of samples."""
    value = metrics.get("num_samples")
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**53:
        raise BadReply(f"num_samples must be a whole number >= 1, got {_short(value)}")
    return value


def model_of(reply: Message, like: ArrayRecord) -> NamedArrays:
    """Return a checked model: names, shapes and types are those of the global model, all values finite."""
    require_content(reply, like.count_bytes() + HEADROOM_BYTES)
    records = list(reply.content.array_records.values())
    if len(records) != 1:
        raise BadReply(f"the reply carries {len(records)} models, not one")
    (record,) = records
    if set(record) != set(like):
        odd = sorted(set(record) ^ set(like))
        raise BadReply(f"the model has other arrays than the global one: {_short(odd)}")
    return {name: _array_of(name, record[name], like[name]) for name in like}


def _array_of(name: str, array: Array, like: Array) -> Any:
    wanted = like.numpy()
    try:  # the header first: a claim of a huge shape must not be believed
        stream = BytesIO(array.data)
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(stream)
    except Exception as error:  # of numpy's parsers, which raise whatever a hostile header makes them
        raise BadReply(f"{name} is no array: {_short(error)}") from None
    if dtype != wanted.dtype:
        raise BadReply(f"{name} has dtype {dtype}, the global model {wanted.dtype}")
    if shape != wanted.shape:
        raise BadReply(f"{name} has shape {shape}, the global model {wanted.shape}")
    try:
        values = array.numpy()
    except (ValueError, TypeError, EOFError, OSError) as error:
        raise BadReply(f"{name} cannot be read: {_short(error)}") from None
    if not np.isfinite(values).all():
        raise BadReply(f"{name} has {int((~np.isfinite(values)).sum())} values that are not finite")
    return values


def _radio_of(metrics: Mapping[str, Any]) -> Radio | None:
    if "channel_gain" not in metrics:
        return None
    numbers = {name: _number(metrics, name) for name in _RADIO_NUMBERS}
    if min(numbers["max_power_w"], numbers["max_frequency_hz"]) <= 0 or min(numbers.values()) < 0:
        raise BadReply(f"the device's limits must be positive, got {_short(numbers)}")
    gain = _numbers(metrics, "channel_gain")
    if max(*numbers.values(), float(gain.max())) > MAX_RADIO:
        raise BadReply(f"the device's radio is absurd: {_short(numbers)}, gains up to {gain.max():g}")
    return Radio(channel_gain=gain, **numbers)


def _number(metrics: Mapping[str, Any], name: str) -> float:
    value = metrics.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadReply(f"{name} must be a number, got {_short(value)}")
    if not math.isfinite(value):
        raise BadReply(f"{name} is {value}")
    return float(value)


def _numbers(metrics: Mapping[str, Any], name: str) -> FloatArray:
    values = metrics.get(name)
    if not isinstance(values, list) or not values or not all(isinstance(v, int | float) for v in values):
        raise BadReply(f"{name} must be a list of numbers, got {_short(values)}")
    array = np.array(values, dtype=np.float64)
    if not np.isfinite(array).all() or array.min() < 0:
        raise BadReply(f"{name} must be finite and not negative, got {_short(values)}")
    return array


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 120 else text[:117] + "..."

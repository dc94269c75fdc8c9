"""What a reply carries, or why it cannot be used: nothing that comes in is trusted, nothing unpickled."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord
from numpy.lib import format as npy

from fedwave.flower.device import short
from fedwave.flower.messages import METRICS, BadReply, NamedArrays, size_bytes

HEADROOM_BYTES = 4096  # of a model's reply beyond the model that was sent out: names and headers


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


def model_of(reply: Message, like: ArrayRecord) -> NamedArrays:
    """Return a checked model: names, shapes and types are those of the global model, all values finite."""
    require_content(reply, like.count_bytes() + HEADROOM_BYTES)
    records = list(reply.content.array_records.values())
    if len(records) != 1:
        raise BadReply(f"the reply carries {len(records)} models, not one")
    (record,) = records
    if set(record) != set(like):
        odd = sorted(set(record) ^ set(like))
        raise BadReply(f"the model has other arrays than the global one: {short(odd)}")
    return {name: _array_of(name, record[name], like[name]) for name in like}


def _array_of(name: str, array: Array, like: Array) -> Any:
    wanted = like.numpy()
    try:  # the header first: a claim of a huge shape must not be believed
        stream = BytesIO(array.data)
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(stream)
    except Exception as error:  # of numpy's parsers, which raise whatever a hostile header makes them
        raise BadReply(f"{name} is no array: {short(error)}") from None
    if dtype != wanted.dtype:
        raise BadReply(f"{name} has dtype {dtype}, the global model {wanted.dtype}")
    if shape != wanted.shape:
        raise BadReply(f"{name} has shape {shape}, the global model {wanted.shape}")
    try:
        values = array.numpy()
    except (ValueError, TypeError, EOFError, OSError) as error:
        raise BadReply(f"{name} cannot be read: {short(error)}") from None
    if not np.isfinite(values).all():
        raise BadReply(f"{name} has {int((~np.isfinite(values)).sum())} values that are not finite")
    return values

"""What a worker of the cluster does. It fetches a run's work and a round's model once, and keeps both."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import fedwave
from fedwave.devices.chunked_devices import Evaluated, keep_best
from fedwave.devices.model_store import ModelStore
from fedwave.devices.ray.connection import fetch, keep
from fedwave.devices.ray.packing import pack, unpack
from fedwave.devices.work import EvaluationWork, LocalWork
from fedwave.errors import RunError
from fedwave.learning import Parameters
from fedwave.server import Reports
from fedwave.units import IntArray

Work = tuple[LocalWork, EvaluationWork]

# Global on purpose: a worker process serves many tasks, and a run's work and a round's model are fetched once
# for all of them. For each kind, the last reference and its value.
_worker_cache: dict[str, tuple[Any, Any]] = {}


@dataclass(frozen=True)
class Place:
    """Where a run's work lies, and the versions that decide on its bits."""

    versions: dict[str, str]
    work: Any  # a reference

    @classmethod
    def of(cls, work: Any) -> Place:
        """Return the place of work that was put into the cluster from here."""
        return cls(versions(), work)


@dataclass(frozen=True, eq=False)
class Updated:
    """What a task returns: numbers, and of the models that may be asked for only where they lie."""

    reports: list[Reports]  # one for each chunk
    kept: list[tuple[int, float, Any]]  # position, score, reference
    processor: str


def versions() -> dict[str, str]:
    """Return the versions of what computes."""
    return {"fedwave": fedwave.__version__, "torch": torch.__version__, "numpy": np.__version__}


def processor() -> str:
    """Return the kind of processor as far as torch computes differently on it."""
    return str(torch.backends.cpu.get_cpu_capability())


def arrive(place: Place) -> str:
    """Make a worker ready; return the kind of its processor."""
    _work(place)
    return processor()


def update(
    place: Place,
    model: Sequence[Any],
    round_index: int,
    chunks: Sequence[IntArray],
    store: ModelStore[Parameters],
    num_local_steps: int | None,
) -> Updated:
    """Compute chunks of devices; the models that the store still wants stay on this machine."""
    local, parameters = _work(place)[0], _parameters(model)
    local = local if num_local_steps is None else local.with_steps(num_local_steps)
    reports = [
        keep_best(local, round_index, local.compute(round_index, parameters, chunk), store)
        for chunk in chunks
    ]
    kept = [(position, score, keep(pack(own))) for position, score, own in store.scored()]
    return Updated(reports, kept, processor())


def evaluate(
    place: Place, model: Sequence[Any], chunks: Sequence[IntArray], on_training: bool
) -> list[Evaluated]:
    """Evaluate the model on chunks of held-out devices, or of training devices."""
    local, evaluation = _work(place)
    work = evaluation.on(local.pool) if on_training else evaluation
    parameters = _parameters(model)
    return [(chunk, *work.compute(parameters, chunk)) for chunk in chunks]


def _work(place: Place) -> Work:
    for name, own in versions().items():
        if own != place.versions[name]:
            raise RunError(
                f"{platform.node()} computes with {name} {own}, the run with {place.versions[name]}: the "
                "results would depend on who computes what. Install the same versions everywhere."
            )
    torch.set_num_threads(1)  # as every thread of the other executor: more would move last bits
    work: Work = _cached("work", place.work, fetch)
    return work


def _parameters(model: Sequence[Any]) -> Parameters:
    """Return the global model. Its reference comes in a list, so that Ray does not fetch it every time."""
    parameters: Parameters = _cached("model", model[0], lambda reference: unpack(fetch(reference)))
    return parameters


def _cached(kind: str, reference: Any, load: Callable[[Any], Any]) -> Any:
    if kind not in _worker_cache or _worker_cache[kind][0] != reference:
        _worker_cache.pop(kind, None)  # the old one first: both may be large
        _worker_cache[kind] = reference, load(reference)
    return _worker_cache[kind][1]

"""Devices computed by the workers of a Ray cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedwave.devices.chunked_devices import ChunkedDevices, Evaluated
from fedwave.devices.model_store import ModelStore
from fedwave.devices.ray import tasks
from fedwave.devices.ray.connection import Cluster, ClusterOptions
from fedwave.devices.ray.packing import own_modules, pack, unpack
from fedwave.devices.work import EvaluationWork, LocalWork
from fedwave.learning import Model, Parameters
from fedwave.learning.models.user import UserModel
from fedwave.server import Reports
from fedwave.units import IntArray

# Tasks in a round for each that can run at a time: enough to keep all busy to the end although chunks and
# machines differ, few enough that handing them out costs little.
TASKS_EACH = 16
SLACK = 1.25  # the object store holds the dataset, the global model and the models that are kept


def ray_devices(
    local: LocalWork, evaluation: EvaluationWork, *, options: ClusterOptions
) -> ChunkedDevices[Any]:
    """Return devices on a Ray cluster. The driver's memory grows with the models asked for alone."""
    cluster = Cluster(options)
    try:
        return ChunkedDevices(local, evaluation, RayExecutor(local, evaluation, cluster))
    except BaseException:
        cluster.close()
        raise


class RayExecutor:
    """Workers of a cluster; models that are kept stay in the object store of the machine that made them."""

    def __init__(self, local: LocalWork, evaluation: EvaluationWork, cluster: Cluster) -> None:
        self._cluster = cluster
        self._sent: tuple[Parameters, list[Any]] | None = None  # the last global model, and its reference
        self._processors = {tasks.processor()}
        cluster.require_store(int(SLACK * dataset_bytes(local)), what="the dataset")
        model = travelling(local.model)
        work = replace(local, model=model), replace(evaluation, model=model)
        parts = [type(model), getattr(model, "factory", None), type(local.task), type(local.rule)]
        self._place = tasks.Place.of(cluster.put(work, by_value=own_modules(parts)))
        for processor in cluster.run(tasks.arrive, [(self._place,)]):  # what cannot work is said at once
            self._compare(processor)

    def updates(
        self,
        round_index: int,
        parameters: Parameters,
        chunks: Sequence[IntArray],
        store: ModelStore[Any],
        num_local_steps: int | None,
    ) -> Iterator[Reports]:
        """Yield the reports of the chunks as they are done."""
        model = self._put_once(parameters)
        arguments = (
            (self._place, model, round_index, bundle, store.emptied(), num_local_steps)
            for bundle in self._bundles(chunks)
        )
        for done in self._cluster.run(tasks.update, arguments):
            self._compare(done.processor)
            positions = np.array([position for position, _, _ in done.kept], dtype=np.int64)
            scores = np.array([score for _, score, _ in done.kept])
            store.offer(positions, scores, [reference for _, _, reference in done.kept].__getitem__)
            yield from done.reports

    def fetch(self, kept: Sequence[Any]) -> Iterator[Parameters | None]:
        """Yield the models from wherever they lie; None for one whose worker or machine is gone."""
        for packed in self._cluster.fetch(kept):
            yield None if packed is None else unpack(packed)

    def evaluations(
        self, parameters: Parameters, chunks: Sequence[IntArray], *, on_training: bool
    ) -> Iterator[Evaluated]:
        """Yield the results of the chunks as they are done."""
        model = self._put_once(parameters)
        arguments = ((self._place, model, bundle, on_training) for bundle in self._bundles(chunks))
        for done in self._cluster.run(tasks.evaluate, arguments):
            yield from done

    def close(self) -> None:
        """Leave the cluster."""
        self._sent = None
        self._cluster.close()

    def _bundles(self, chunks: Sequence[IntArray]) -> list[list[IntArray]]:
        """Return the chunks in as many bundles as there are to be tasks, of about the same work each."""
        count = min(len(chunks), TASKS_EACH * self._cluster.width())
        return [list(chunks[first::count]) for first in range(count)]

    def _put_once(self, parameters: Parameters) -> list[Any]:
        """Put a global model into the cluster, once for its evaluation and the round that starts from it."""
        if self._sent is None or self._sent[0] is not parameters:
            self._sent = None  # the old one may go
            self._sent = parameters, [self._cluster.put(pack(parameters))]
        return self._sent[1]

    def _compare(self, processor: str) -> None:
        if processor not in self._processors:
            self._processors.add(processor)
            logging.getLogger("fedwave").warning(
                "machines of the cluster differ in their processors (%s): last bits depend on who computes.",
                ", ".join(sorted(self._processors)),
            )


def travelling(model: Model) -> Model:
    """Return a model that machines can build which have not the user's file."""
    return model.with_factory() if isinstance(model, UserModel) else model


def dataset_bytes(local: LocalWork) -> int:
    """Return how large the dataset is."""
    data = local.pool.dataset
    arrays = (data.inputs, data.labels, data.targets, data.device_of_sample)
    return sum(array.nbytes for array in arrays if array is not None)

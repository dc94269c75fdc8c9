"""What devices computed on a global model is kept, so that runs that meet the same model share it.

Many runs of a figure differ only in who pays what: NUFM-Greedy and NUFM-Random train the same model round by
round, and URAL under other weights often chooses the same devices. A global model and the devices asked
determine the reports; with the devices received, they determine the next model. Both are looked up by the
model's content, so what is found is, to the bit, what would have been computed.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from fedwave.devices.base import Devices, HeldOutResult
from fedwave.devices.work import EvaluationWork, LocalWork
from fedwave.experiments.schema import Experiment
from fedwave.learning import Parameters
from fedwave.learning.server_steps import ServerStep
from fedwave.runs.provenance import digest
from fedwave.server import Reports
from fedwave.simulation.simulation import Simulation
from fedwave.units import FloatArray, IntArray

MAX_BYTES = 1_500_000_000  # of models that one process keeps: 3,000 of the CNN on Fashion-MNIST
MOVES_BITS = ("chunk_samples", "device", "batching", "precision")  # of how it is computed
# What the devices compute does not depend on these settings of the selection.
NOT_LEARNING = ("policy", "num_selected", "everyone_computes")

Key = tuple[str, ...]


def learning_key(experiment: Experiment) -> str:
    """Return 16 hex digits: the same for runs whose devices compute the same on the same global model."""
    settings = experiment.model_dump(mode="json", exclude_none=True)
    parts = {name: settings[name] for name in ("seed", "data", "partition", "model", "algorithm", "faults")}
    selection = {k: v for k, v in settings["selection"].items() if k not in NOT_LEARNING}
    evaluation = {k: v for k, v in settings["evaluation"].items() if k not in ("every", "training_devices")}
    execution = [settings["execution"][name] for name in MOVES_BITS]
    bits = settings.get("cell", {}).get("bits_per_parameter", 32)
    return digest([parts, selection, evaluation, execution, bits])


@dataclass
class RoundCache:
    """What was computed in this process so far; the oldest models are dropped first."""

    max_bytes: int = MAX_BYTES
    reports: dict[Key, Reports] = field(default_factory=dict)
    evaluations: dict[Key, HeldOutResult | None] = field(default_factory=dict)
    models: OrderedDict[Key, Parameters] = field(default_factory=OrderedDict)
    num_bytes: int = 0
    hits: int = 0  # rounds that were not computed
    step_key: Key | None = None  # of the round at hand: the model, who was asked and who arrived

    def keep_model(self, key: Key, parameters: Parameters) -> None:
        """Keep the model that a round ended with."""
        self.models[key] = parameters
        self.num_bytes += _size(parameters)
        while self.num_bytes > self.max_bytes and len(self.models) > 1:
            _, oldest = self.models.popitem(last=False)
            self.num_bytes -= _size(oldest)


def with_cache(simulation: Simulation, cache: RoundCache, experiment: Experiment) -> Simulation:
    """Return the simulation of an experiment, which computes only what the cache does not hold."""
    if simulation.initial_state().server_step or simulation.federation.local_steps is not None:
        return simulation  # a step with a state depends on more than the models, and tau on what was spent
    executor, draws = simulation.executor, simulation.local.query_batch_size is not None
    context = learning_key(experiment)

    def open_devices(local: LocalWork, evaluation: EvaluationWork) -> Devices:
        return CachedDevices(executor(local, evaluation), cache, context, has_rounds=draws)

    step = CachedStep(simulation.federation.server_step, cache)
    return replace(
        simulation, executor=open_devices, federation=replace(simulation.federation, server_step=step)
    )


class CachedDevices:
    """Devices that compute only what is not in the cache."""

    def __init__(self, devices: Devices, cache: RoundCache, context: str, *, has_rounds: bool) -> None:
        self._devices = devices
        self._cache = cache
        self._context = context
        self._has_rounds = has_rounds  # whether results depend on the round too
        self._report_again: Callable[[], Reports] | None = None
        self._report_key: Key = ()

    def report(
        self,
        round_index: int,
        parameters: Parameters,
        device_index: IntArray,
        *,
        max_models: int,
        num_local_steps: int | None = None,
    ) -> Reports:
        """Return what the devices report."""
        assert num_local_steps is None  # no round chooses it: with_cache sees to that
        self._report_key = (
            self._context,
            content_of(parameters),
            device_index.tobytes().hex(),
            str(round_index) if self._has_rounds else "",
        )

        def compute() -> Reports:
            return self._devices.report(round_index, parameters, device_index, max_models=max_models)

        known = self._cache.reports.get(self._report_key)
        if known is not None:
            self._report_again = compute
            return known
        self._report_again = None
        self._cache.reports[self._report_key] = reports = compute()
        return reports

    def collect(self, device_index: IntArray) -> Iterator[Parameters]:
        """Yield the models. Nothing is computed before the first one is asked for."""
        self._cache.step_key = (*self._report_key, device_index.tobytes().hex())
        return self._collect(device_index)

    def _collect(self, device_index: IntArray) -> Iterator[Parameters]:
        if self._report_again is not None:
            self._report_again()
        yield from self._devices.collect(device_index)

    def evaluate(self, parameters: Parameters, *, on_training: bool = False) -> HeldOutResult | None:
        """Return the results of the held-out devices, or of the training devices."""
        key = (self._context, content_of(parameters), "training" if on_training else "held-out")
        if key not in self._cache.evaluations:
            self._cache.evaluations[key] = self._devices.evaluate(parameters, on_training=on_training)
        return self._cache.evaluations[key]

    def close(self) -> None:
        """Close what computes."""
        self._devices.close()


@dataclass(frozen=True)
class CachedStep:
    """A server step without a state, looked up by who was asked and who arrived."""

    inner: ServerStep
    cache: RoundCache

    @property
    def needs_each_model(self) -> bool:
        """Return what the step itself says."""
        return self.inner.needs_each_model

    def initial_state(self, parameters: Parameters) -> Parameters:
        """Return no state."""
        return self.inner.initial_state(parameters)

    def step(
        self,
        parameters: Parameters,
        models: Iterable[Parameters],
        weights: FloatArray | None,
        state: Parameters,
    ) -> tuple[Parameters, Parameters]:
        """Return the next global model; where it is known, the devices' models are not even made."""
        key = self.cache.step_key
        assert key is not None  # the models were asked for
        if weights is not None:
            key = (*key, weights.tobytes().hex())
        known = self.cache.models.get(key)
        if known is not None:
            self.cache.hits += 1
            return known, state
        after, state = self.inner.step(parameters, models, weights, state)
        self.cache.keep_model(key, after)
        return after, state


def content_of(parameters: Parameters) -> str:
    """Return a digest of a model."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(parameters):
        digest.update(name.encode())
        digest.update(parameters[name].detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _size(parameters: Parameters) -> int:
    return sum(value.numel() * value.element_size() for value in parameters.values())

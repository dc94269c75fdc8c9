"""A Flower app from an experiment: a preset or TOML file gives the same run here as with ``fedwave run``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from logging import WARNING
from typing import Any

from flwr.app import ArrayRecord, Context
from flwr.supercore import log

from fedwave.errors import ConfigError
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.flower.messages import to_record
from fedwave.flower.parameters import from_parameters
from fedwave.flower.pool_device import PoolDevice
from fedwave.flower.strategy import TwoPhase
from fedwave.server import ContributionAudit
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.stop import NEVER


def simulation_of(run_config: Mapping[str, Any]) -> Simulation:
    """Return the simulation of a run's ``experiment`` and ``overrides``, a list with spaces between."""
    source, overrides = run_config.get("experiment", ""), run_config.get("overrides", "")
    return _simulation(str(source), str(overrides))


@lru_cache(maxsize=2)  # a process serves many messages, and in a simulation many nodes
def _simulation(source: str, overrides: str) -> Simulation:
    return build_simulation(load_experiment(source or None, overrides.split()))


def device_of_experiment(context: Context) -> PoolDevice:
    """Return the training device of which a node's config gives the number, ``partition-id``."""
    return PoolDevice(simulation_of(context.run_config), int(context.node_config["partition-id"]))


def initial_arrays(simulation: Simulation) -> ArrayRecord:
    """Return theta^0 as Flower takes it."""
    return to_record(from_parameters(simulation.initial_state().parameters))


def strategy_of_experiment(simulation: Simulation, **options: Any) -> TwoPhase:
    """Return the strategy of an experiment; ``options`` are those of ``TwoPhase``.

    It waits for all devices, and compares uploads with reports where the local rule allows it, unless the
    options say otherwise.
    """
    if simulation.federation.local_steps is not None:
        raise ConfigError(
            "algorithm.local_steps has no effect with Flower, whose messages carry one number of steps for "
            "all rounds, got it. Leave it out, and set algorithm.num_local_steps."
        )
    if simulation.stop != NEVER:
        raise ConfigError(
            "Flower's own loop counts the rounds, so stop has no effect there, got one. Leave it out."
        )
    if simulation.federation.penalties is not None:
        raise ConfigError(
            "real devices are not asked for the Hessians that selection.penalties needs, got estimated ones. "
            'Use "fixed".'
        )
    local = simulation.local
    settings: dict[str, Any] = {
        "num_devices": len(simulation.train),
        "num_local_steps": local.num_local_steps,
        "min_nodes": len(simulation.train),
        "audit": audit_of(simulation),
        "frame": simulation.frame,
        **options,
    }
    return TwoPhase(simulation.federation, **settings)


def audit_of(simulation: Simulation, **options: Any) -> ContributionAudit | None:
    """Return the audit with the experiment's learning rate and penalties; None if it would not hold.

    It holds where the local rule takes plain steps of ``meta_lr`` times the gradient whose norm it tells, and
    says so: ``is_plain_step = True``.
    """
    local = simulation.local
    if not getattr(local.rule, "is_plain_step", False):
        log(WARNING, "uploads are not audited: %s does not say is_plain_step", type(local.rule).__name__)
        return None
    return ContributionAudit(
        meta_lr=getattr(local.rule, "meta_lr"),  # noqa: B009 - a rule of such steps has one
        similarity_penalty=local.similarity_penalty,
        variance_penalty=local.variance_penalty,
        **options,
    )

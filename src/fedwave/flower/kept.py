"""The local model between the phases: it stays in the node's own state until it is asked for."""

from __future__ import annotations

from flwr.app import ArrayRecord, ConfigRecord, Context

from fedwave.errors import RunError

KEPT_MODEL = "fedwave.model"  # theta_i of the round
KEPT_GLOBAL = "fedwave.global"  # theta, where a mod or a mask needs the difference
KEPT_ROUND = "fedwave.round"


def keep(context: Context, round_index: int, model: ArrayRecord, came_from: ArrayRecord | None) -> None:
    """Keep a round's local model in place of the last one."""
    context.state[KEPT_MODEL] = model
    context.state[KEPT_ROUND] = ConfigRecord({"round": round_index})
    if came_from is not None:
        context.state[KEPT_GLOBAL] = came_from


def require_kept(context: Context, round_index: int) -> None:
    """Raise if the node has no model of this round: it was restarted, or never took part."""
    kept = context.state.config_records.get(KEPT_ROUND, ConfigRecord()).get("round")
    if kept != round_index:
        raise RunError(
            f"this node keeps the model of round {kept!r}, got asked for round {round_index}. It was started "
            "anew between the phases; it takes part again in the next round."
        )

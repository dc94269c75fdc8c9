"""Phase 2 over a grid: the chosen are told block, power and frequency, and send their models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message

from fedwave.flower.account import RoundAccount
from fedwave.flower.checks import BadReply, model_of
from fedwave.flower.messages import UPLOAD, Grant, NamedArrays, message_to, to_arrays
from fedwave.flower.parameters import to_parameters
from fedwave.learning import Parameters
from fedwave.server import ContributionAudit, Reports
from fedwave.server.audit import model_norms
from fedwave.simulation.round import RoundEvents


def grants_of(events: RoundEvents) -> dict[int, Grant]:
    """Return what each device is told whose upload the world lets through."""
    allocation, k = events.plan.allocation, events.round_index
    devices = events.outcome.received.tolist()
    if allocation is None:
        return {device: Grant(round_index=k) for device in devices}
    return {
        device: Grant(
            round_index=k,
            block=int(allocation.block_of_device[device]),
            transmit_power_w=float(allocation.transmit_power_w[device]),
            cpu_frequency_hz=float(allocation.cpu_frequency_hz[device]),
        )
        for device in devices
    }


def upload_messages(
    grant_of_node: Mapping[int, Grant], config: Mapping[str, Any], *, ttl_s: float | None
) -> list[Message]:
    """Return the messages that ask for the models. The global one is not sent again: nodes have it."""
    return [
        message_to(node, UPLOAD, config={**config, **grant.to_config()}, ttl_s=ttl_s)
        for node, grant in grant_of_node.items()
    ]


def checked_models(
    replies: Iterable[Message],
    device_of_node: Mapping[int, int],
    sent: ArrayRecord,
    reports: Reports,
    *,
    audit: ContributionAudit | None,
    account: RoundAccount,
) -> dict[int, Parameters]:
    """Return the models that can be used, by device; the account says who was dropped, and who has lied."""
    before, models, waiting = to_arrays(sent), {}, dict(device_of_node)
    for reply in replies:
        node = reply.metadata.src_node_id
        device = waiting.pop(node, None)
        try:
            if device is None:
                raise BadReply("it was not asked, or has answered before")
            own = model_of(reply, sent)
            _require_fit(device, before, own, reports, audit, account)
            models[device] = to_parameters(own)
        except BadReply as why:
            account.drop(node, "upload", why)
    for node in waiting:
        account.drop(node, "upload", "no answer in time")
    account.received = sorted(models)
    return {device: models[device] for device in account.received}


def _require_fit(
    device: int,
    before: NamedArrays,
    own: NamedArrays,
    reports: Reports,
    audit: ContributionAudit | None,
    account: RoundAccount,
) -> None:
    """Raise if a model does not fit what its device had reported."""
    if audit is None:
        return
    row = int(np.searchsorted(reports.device_index, device))
    fault = audit.of_upload(reports.gradient_norms[row], *model_norms(before, own))
    if fault is not None:
        account.excluded.append(device)
        raise BadReply(f"{fault}; device {device} is excluded")

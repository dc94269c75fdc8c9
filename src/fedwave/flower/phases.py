"""The two phases over a grid: the asked report a few numbers, the chosen send their models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message
from flwr.serverapp import Grid

from fedwave.flower.checks import metrics_of, model_of
from fedwave.flower.device import DeviceReport
from fedwave.flower.message_log import MessageLog
from fedwave.flower.messages import REPORT, UPLOAD, BadReply, Grant, NamedArrays, message_to, to_arrays
from fedwave.flower.parameters import to_parameters
from fedwave.learning import Parameters
from fedwave.server import CellReports, ContributionAudit, Reports
from fedwave.server.audit import model_norms
from fedwave.simulation.facts import RoundFacts

# Phase 1: the global model goes to the asked nodes, a few numbers come back from each ----------------------


def gather_reports(
    grid: Grid,
    node_of_device: Mapping[int, int],
    arrays: ArrayRecord,
    config: Mapping[str, Any],
    *,
    num_local_steps: int,
    num_blocks: int | None,
    timeout_s: float,
    max_bytes: int,
    audit: ContributionAudit | None,
    message_log: MessageLog,
) -> tuple[Reports, CellReports | None]:
    """Return the reports that came in time and can be used, and what devices said of their radio."""
    messages = [
        message_to(node, REPORT, arrays=arrays, config=config, ttl_s=timeout_s)
        for node in node_of_device.values()
    ]
    message_log.sent("report", messages)
    replies = list(grid.send_and_receive(messages, timeout=timeout_s)) if messages else []
    message_log.came("report", replies)
    device_of_node = {node: device for device, node in node_of_device.items()}
    usable: dict[int, DeviceReport] = {}
    for reply in replies:
        node = reply.metadata.src_node_id
        try:
            if not reply.has_error() and device_of_node.get(node) in (None, *usable):
                raise BadReply("it was not asked, or has answered before")
            metrics = metrics_of(reply, max_bytes)
            report = DeviceReport.from_metrics(metrics, num_local_steps=num_local_steps)
            if audit is not None:
                fault = audit.of_report(report.contribution, report.gradient_norms, report.num_samples)
                if fault is not None:
                    raise BadReply(fault)
            usable[device_of_node[node]] = report
        except BadReply as why:
            message_log.drop(node, "report", why)
    for node in sorted(set(device_of_node) - {reply.metadata.src_node_id for reply in replies}):
        message_log.drop(node, "report", f"no answer within {timeout_s:g} s")
    radios = _alike(usable, message_log, node_of_device, num_blocks)
    reports = to_reports(usable, num_local_steps)
    message_log.reported = reports.device_index.tolist()
    message_log.loss = float(reports.loss.mean()) if len(reports) else None
    return reports, radios


def to_reports(usable: Mapping[int, DeviceReport], num_local_steps: int) -> Reports:
    """Return checked reports as a planner takes them."""
    devices = sorted(usable)
    own = [usable[device] for device in devices]
    return Reports(
        device_index=np.array(devices, dtype=np.int64),
        contribution=np.array([report.contribution for report in own], dtype=np.float64),
        loss=np.array([report.loss for report in own], dtype=np.float64),
        num_samples=np.array([report.num_samples for report in own], dtype=np.int64),
        gradient_norms=np.array([report.gradient_norms for report in own], dtype=np.float64).reshape(
            len(own), num_local_steps
        ),
    )


def _alike(
    usable: dict[int, DeviceReport],
    message_log: MessageLog,
    node_of_device: Mapping[int, int],
    num_blocks: int | None,
) -> CellReports | None:
    """Return the radios, if most devices have them; drop those that measured another number of blocks.

    ``num_blocks`` is that of the server's cell: gains are one for each block, or one for all. Without a cell
    the devices' majority decides, so that no single one can have the others dropped.
    """
    blocks_of = {d: 0 if r.radio is None else len(r.radio.channel_gain) for d, r in usable.items()}
    fitting = [blocks for blocks in blocks_of.values() if num_blocks is None or blocks in (0, 1, num_blocks)]
    usual = max(set(fitting), key=lambda blocks: (fitting.count(blocks), blocks), default=0)
    for device, blocks in sorted(blocks_of.items()):
        if blocks not in {0, *fitting} or (usual > 0 and blocks != usual):
            why = f"it reports gains of {blocks} blocks, {usual or num_blocks} were expected"
            message_log.drop(node_of_device[device], "report", why)
            del usable[device]
    devices = sorted(usable)
    own = [radio for device in devices if (radio := usable[device].radio) is not None]
    if usual == 0 or not own:
        return None
    return CellReports(
        device_index=np.array(devices, dtype=np.int64),
        channel_gain=np.stack([radio.channel_gain for radio in own]),
        max_power_w=np.array([radio.max_power_w for radio in own]),
        max_frequency_hz=np.array([radio.max_frequency_hz for radio in own]),
        capacitance=np.array([radio.capacitance for radio in own]),
        cycles_per_sample=np.array([radio.cycles_per_sample for radio in own]),
    )


# Phase 2: the chosen are told block, power and frequency, and send their models -----------------------------


def grants_of(facts: RoundFacts) -> dict[int, Grant]:
    """Return what each device is told whose upload the world lets through."""
    allocation, k = facts.plan.allocation, facts.round_index
    devices = facts.outcome.received.tolist()
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
    message_log: MessageLog,
) -> dict[int, Parameters]:
    """Return the models that can be used, by device; the log says who was dropped, and who has lied."""
    before, models, waiting = to_arrays(sent), {}, dict(device_of_node)
    for reply in replies:
        node = reply.metadata.src_node_id
        device = waiting.pop(node, None)
        try:
            if device is None:
                raise BadReply("it was not asked, or has answered before")
            own = model_of(reply, sent)
            _require_fit(device, before, own, reports, audit, message_log)
            models[device] = to_parameters(own)
        except BadReply as why:
            message_log.drop(node, "upload", why)
    for node in waiting:
        message_log.drop(node, "upload", "no answer in time")
    message_log.received = sorted(models)
    return {device: models[device] for device in message_log.received}


def _require_fit(
    device: int,
    before: NamedArrays,
    own: NamedArrays,
    reports: Reports,
    audit: ContributionAudit | None,
    message_log: MessageLog,
) -> None:
    """Raise if a model does not fit what its device had reported."""
    if audit is None:
        return
    row = int(np.searchsorted(reports.device_index, device))
    fault = audit.of_upload(reports.gradient_norms[row], *model_norms(before, own))
    if fault is not None:
        message_log.excluded.append(device)
        raise BadReply(f"{fault}; device {device} is excluded")

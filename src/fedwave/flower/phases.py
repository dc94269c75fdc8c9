"""The two phases over a grid: the asked report a few numbers, the chosen send their models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message
from flwr.serverapp import Grid

from fedwave.flower.checks import model_of, report_of, usable_replies
from fedwave.flower.device import DeviceReport
from fedwave.flower.message_log import MessageLog
from fedwave.flower.messages import (
    REPORT,
    UPLOAD,
    BadReply,
    Grant,
    NamedArrays,
    Piece,
    message_to,
    to_arrays,
)
from fedwave.flower.parameters import to_parameters
from fedwave.learning import Parameters
from fedwave.server import CellReports, ContributionAudit, Reports
from fedwave.simulation.facts import RoundFacts
from fedwave.wireless.schedule import UploadSchedule

# Phase 1: the global model goes to the asked nodes, a few numbers come back from each ----------------------


def gather_reports(
    grid: Grid,
    node_of_device: Mapping[int, int],
    arrays: ArrayRecord,
    config: Mapping[str, Any],
    *,
    num_local_steps: int,
    num_blocks: int | None,
    must_tell_radio: bool,
    timeout_s: float,
    max_bytes: int,
    audit: ContributionAudit | None,
    message_log: MessageLog,
) -> tuple[Reports, CellReports | None]:
    """Return the reports that came in time and can be used, and what devices said of their radio.

    ``num_blocks`` are those of the planner's cell; None: it has none, and radios play no part.
    """
    messages = [
        message_to(node, REPORT, arrays=arrays, config=config, ttl_s=timeout_s)
        for node in node_of_device.values()
    ]
    message_log.sent("report", messages)
    replies = list(grid.send_and_receive(messages, timeout=timeout_s)) if messages else []
    message_log.came("report", replies)

    def read(_: int, reply: Message) -> DeviceReport:
        report = report_of(
            reply,
            num_local_steps=num_local_steps,
            num_blocks=num_blocks,
            must_tell_radio=must_tell_radio,
            max_bytes=max_bytes,
        )
        if audit is not None:
            fault = audit.of_report(report.contribution, report.gradient_norms, report.num_samples)
            if fault is not None:
                raise BadReply(fault)
        return report

    missed = f"no answer within {timeout_s:g} s"
    by_node = usable_replies(messages, replies, read, phase="report", missed=missed, message_log=message_log)
    usable = {device: by_node[node] for device, node in node_of_device.items() if node in by_node}
    reports = to_reports(usable, num_local_steps)
    message_log.reported = reports.device_index.tolist()
    message_log.loss = float(reports.loss.mean()) if len(reports) else None
    return reports, _radios(usable)


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


def _radios(usable: Mapping[int, DeviceReport]) -> CellReports | None:
    """Return the radios of those that told of one; None if nobody did. One gain stands for all blocks."""
    radio_of = {device: radio for device in sorted(usable) if (radio := usable[device].radio) is not None}
    if not radio_of:
        return None
    own = list(radio_of.values())
    width = max(len(radio.channel_gain) for radio in own)  # the cell's blocks, unless all sent one gain
    return CellReports(
        device_index=np.array(list(radio_of), dtype=np.int64),
        channel_gain=np.stack([np.broadcast_to(radio.channel_gain, width) for radio in own]),
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
    access, schedule = _schedule_of(facts)
    return {
        device: Grant(
            round_index=k,
            block=int(allocation.block_of_device[device]),
            transmit_power_w=float(allocation.transmit_power_w[device]),
            cpu_frequency_hz=float(allocation.cpu_frequency_hz[device]),
            access=access,
            pieces=() if schedule is None else pieces_of(schedule, device),
        )
        for device in devices
    }


def _schedule_of(facts: RoundFacts) -> tuple[str, UploadSchedule | None]:
    """Return the access and who sends when; None where each holds its block as long as it sends."""
    problem, costs = facts.plan.problem, facts.outcome.costs
    if costs is not None and costs.schedule is not None:  # blocks that fall free go on to others
        return "blocks", costs.schedule
    if problem is None or problem.access == "one-block":
        return "one-block", None
    return problem.access, facts.plan.schedule


def pieces_of(schedule: UploadSchedule, device: int) -> tuple[Piece, ...]:
    """Return the pieces of a device's upload, in time."""
    own = np.flatnonzero(schedule.device == device)
    return tuple(
        Piece(
            first_hz=float(schedule.first_hz[k]),
            width_hz=float(schedule.width_hz[k]),
            start_s=float(schedule.start_s[k]),
            end_s=float(schedule.end_s[k]),
            transmit_power_w=float(schedule.power_w[k]),
        )
        for k in own[np.lexsort((schedule.first_hz[own], schedule.start_s[own]))]
    )


def upload_messages(
    grant_of_node: Mapping[int, Grant], config: Mapping[str, Any], *, ttl_s: float | None
) -> list[Message]:
    """Return the messages that ask for the models. The global one is not sent again: nodes have it."""
    return [
        message_to(node, UPLOAD, config={**config, **grant.to_config()}, ttl_s=ttl_s)
        for node, grant in grant_of_node.items()
    ]


def checked_models(
    messages: Sequence[Message],
    replies: Iterable[Message],
    device_of_node: Mapping[int, int],
    sent: ArrayRecord,
    reports: Reports,
    *,
    audit: ContributionAudit | None,
    message_log: MessageLog,
) -> dict[int, Parameters]:
    """Return the models that can be used, by device; the log says who was dropped, and who has lied."""
    before = to_arrays(sent)

    def read(node: int, reply: Message) -> Parameters:
        own = model_of(reply, sent)
        _require_fit(device_of_node[node], before, own, reports, audit, message_log)
        return to_parameters(own)

    models = usable_replies(
        messages, replies, read, phase="upload", missed="no answer in time", message_log=message_log
    )
    message_log.received = sorted(device_of_node[node] for node in models)
    node_of_device = {device: node for node, device in device_of_node.items()}
    return {device: models[node_of_device[device]] for device in message_log.received}


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
    fault = audit.of_upload(reports.gradient_norms[row], *audit.norms(before, own))
    if fault is not None:
        message_log.excluded.append(device)
        raise BadReply(f"{fault}; device {device} is excluded")

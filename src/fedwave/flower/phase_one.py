"""Phase 1 over a grid: the global model goes to the asked nodes, a few numbers come back from each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flwr.app import ArrayRecord
from flwr.serverapp import Grid

from fedwave.flower.account import RoundAccount
from fedwave.flower.checks import BadReply, DeviceReport, report_of
from fedwave.flower.messages import REPORT, message_to
from fedwave.server import CellReports, ContributionAudit, Reports


def gather_reports(
    grid: Grid,
    node_of_device: Mapping[int, int],
    arrays: ArrayRecord,
    config: Mapping[str, Any],
    *,
    num_local_steps: int,
    timeout_s: float,
    max_bytes: int,
    audit: ContributionAudit | None,
    account: RoundAccount,
) -> tuple[Reports, CellReports | None]:
    """Return the reports that came in time and can be used, and what devices said of their radio."""
    messages = [
        message_to(node, REPORT, arrays=arrays, config=config, ttl_s=timeout_s)
        for node in node_of_device.values()
    ]
    account.sent("report", messages)
    replies = list(grid.send_and_receive(messages, timeout=timeout_s)) if messages else []
    account.came("report", replies)
    device_of_node = {node: device for device, node in node_of_device.items()}
    usable: dict[int, DeviceReport] = {}
    for reply in replies:
        node = reply.metadata.src_node_id
        try:
            if not reply.has_error() and device_of_node.get(node) in (None, *usable):
                raise BadReply("it was not asked, or has answered before")
            report = report_of(reply, num_local_steps=num_local_steps, max_bytes=max_bytes)
            if audit is not None:
                fault = audit.of_report(report.contribution, report.gradient_norms, report.num_samples)
                if fault is not None:
                    raise BadReply(fault)
            usable[device_of_node[node]] = report
        except BadReply as why:
            account.drop(node, "report", why)
    for node in sorted(set(device_of_node) - {reply.metadata.src_node_id for reply in replies}):
        account.drop(node, "report", f"no answer within {timeout_s:g} s")
    radios = _alike(usable, account, node_of_device)
    reports = to_reports(usable, num_local_steps)
    account.reported = reports.device_index.tolist()
    account.loss = float(reports.loss.mean()) if len(reports) else None
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
    usable: dict[int, DeviceReport], account: RoundAccount, node_of_device: Mapping[int, int]
) -> CellReports | None:
    """Return the radios, if devices have them; drop those that measured another number of blocks."""
    radios = {device: report.radio for device, report in usable.items() if report.radio is not None}
    if not radios:
        return None
    counts = [len(radio.channel_gain) for radio in radios.values()]
    usual = max(set(counts), key=counts.count)
    for device in sorted(usable):
        blocks = len(radios[device].channel_gain) if device in radios else 0
        if blocks != usual:
            why = f"it reports gains of {blocks} blocks, the others of {usual}"
            account.drop(node_of_device[device], "report", why)
            del usable[device]
    devices = sorted(usable)
    own = [radios[device] for device in devices]
    return CellReports(
        device_index=np.array(devices, dtype=np.int64),
        channel_gain=np.stack([radio.channel_gain for radio in own]),
        max_power_w=np.array([radio.max_power_w for radio in own]),
        max_frequency_hz=np.array([radio.max_frequency_hz for radio in own]),
        capacitance=np.array([radio.capacitance for radio in own]),
        cycles_per_sample=np.array([radio.cycles_per_sample for radio in own]),
    )

"""What a round came to: the bytes of each phase, who reported, who was chosen, arrived or dropped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from logging import INFO, WARNING

from flwr.app import Message, MetricRecord
from flwr.supercore import log

from fedwave.flower.messages import printable, size_bytes


@dataclass
class MessageLog:
    """Grows while a round goes on; Flower's result holds it as a record of numbers."""

    round_index: int
    reported: list[int] = field(default_factory=list)  # devices
    selected: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    excluded: list[int] = field(default_factory=list)  # found out in this round
    dropped_nodes: list[int] = field(default_factory=list)  # Flower's ids; replies that could not be used
    reasons: list[str] = field(default_factory=list)  # why not, of reports and uploads
    bytes: dict[str, int] = field(default_factory=dict)
    loss: float | None = None  # mean over the devices that reported
    skipped: str = ""  # why the model stayed as it was

    def sent(self, phase: str, messages: Iterable[Message]) -> None:
        """Count what goes out to the nodes."""
        self._count(f"{phase}_bytes_down", messages)

    def came(self, phase: str, replies: Iterable[Message]) -> None:
        """Count what comes back."""
        self._count(f"{phase}_bytes_up", replies)

    def drop(self, node_id: int, phase: str, why: object) -> None:
        """Say that a node's reply is not used."""
        self.dropped_nodes.append(node_id)
        self.reasons.append(f"{phase} of node {node_id}: {printable(why)}")
        log(WARNING, "round %d: dropped the %s", self.round_index, self.reasons[-1])

    def leave_out(self, device: int, why: object) -> None:
        """Say that a device takes no part in the plan."""
        log(
            WARNING,
            "round %d: device %d is left out of the plan: %s",
            self.round_index,
            device,
            printable(why),
        )

    def skip(self, why: str) -> None:
        """Say that the model stays as it is, and why: the last reason to drop a reply often says more."""
        self.skipped = f"{why} (dropped the {self.reasons[-1]})" if self.reasons else why
        log(WARNING, "round %d is skipped, the model stays as it is: %s", self.round_index, self.skipped)

    def to_metrics(self) -> MetricRecord:
        """Return the log as Flower keeps it, and say it in one line."""
        log(
            INFO,
            "round %d: %d reported, devices %s selected, %d arrived, %s",
            self.round_index,
            len(self.reported),
            self.selected,
            len(self.received),
            ", ".join(f"{name} {count}" for name, count in sorted(self.bytes.items())),
        )
        record = MetricRecord(
            {
                "round": self.round_index,
                "reported": self.reported,
                "selected": self.selected,
                "received": self.received,
                "excluded": self.excluded,
                "dropped_nodes": self.dropped_nodes,
                "skipped": int(bool(self.skipped)),
                **self.bytes,
            }
        )
        if self.loss is not None:
            record["loss"] = self.loss
        return record

    def _count(self, name: str, messages: Iterable[Message]) -> None:
        self.bytes[name] = self.bytes.get(name, 0) + sum(size_bytes(message) for message in messages)

"""Which Flower node is which device of the plan, and how many samples it has."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from logging import INFO
from typing import Any

import numpy as np
from flwr.serverapp import Grid
from flwr.supercore import log

from fedwave.flower.checks import Hello, hello_of, usable_replies
from fedwave.flower.message_log import MessageLog
from fedwave.flower.messages import ANY_DEVICE, HELLO, BadReply, message_to
from fedwave.units import IntArray

POLL_S = 1.0


class Nodes:
    """The nodes that have said hello. A device's place stays its own while its node is connected."""

    def __init__(self, num_devices: int) -> None:
        self.num_devices = num_devices
        self.num_samples: IntArray = np.ones(num_devices, dtype=np.int64)  # until a device says how many
        self._node_of_device: dict[int, int] = {}
        self._refused: set[int] = set()  # said hello, and there was no place

    @property
    def devices(self) -> IntArray:
        """The devices that can be reached, sorted."""
        return np.array(sorted(self._node_of_device), dtype=np.int64)

    def node_of(self, device_index: int) -> int:
        """Return the node of a device."""
        return self._node_of_device[device_index]

    def connected(self, node_ids: Iterable[int]) -> list[int]:
        """Forget the nodes that are gone; return those that have not said hello."""
        now = set(node_ids)
        kept = {device: node for device, node in self._node_of_device.items() if node in now}
        if len(kept) < len(self._node_of_device):  # a place is free: it may be theirs
            self._refused.clear()
        self._node_of_device = kept
        self._refused &= now
        return sorted(now - set(kept.values()) - self._refused)

    def welcome(self, node_id: int, hello: Hello) -> int:
        """Give a node its place, the one that it asks for or the first that is free."""
        try:
            device = self._place_for(hello.device)
        except BadReply:
            self._refused.add(node_id)
            raise
        self._node_of_device[device] = node_id
        self.num_samples[device] = hello.num_samples
        return device

    def _place_for(self, wanted: int) -> int:
        if wanted == ANY_DEVICE:
            free = sorted(set(range(self.num_devices)) - set(self._node_of_device))
            if not free:
                raise BadReply(f"all {self.num_devices} places are taken")
            return free[0]
        if not 0 <= wanted < self.num_devices:
            raise BadReply(f"it says it is device {wanted}, of {self.num_devices} devices (0 to n - 1)")
        if wanted in self._node_of_device:
            raise BadReply(f"it says it is device {wanted}, which node {self._node_of_device[wanted]} is")
        return wanted


def greet(
    grid: Grid, nodes: Nodes, config: Mapping[str, Any], *, timeout_s: float, message_log: MessageLog
) -> None:
    """Let the nodes that are new say which device they are."""
    newcomers = nodes.connected(grid.get_node_ids())
    if not newcomers:
        return
    messages = [message_to(node, HELLO, config=config, ttl_s=timeout_s) for node in newcomers]
    message_log.sent("hello", messages)
    replies = list(grid.send_and_receive(messages, timeout=timeout_s))
    message_log.came("hello", replies)
    hellos = usable_replies(
        messages,
        replies,
        lambda _, reply: hello_of(reply),
        phase="hello",
        missed=f"no answer within {timeout_s:g} s",
        message_log=message_log,
    )
    # First those that ask for a place, then the others by their ids: never by who happens to answer first.
    for node in sorted(hellos, key=lambda node: (hellos[node].device == ANY_DEVICE, node)):
        try:
            device = nodes.welcome(node, hellos[node])
            log(INFO, "node %d is device %d, with %d samples", node, device, nodes.num_samples[device])
        except BadReply as why:
            message_log.drop(node, "hello", why)


def wait_for_nodes(grid: Grid, min_nodes: int) -> None:
    """Return when so many nodes are connected."""
    if len(list(grid.get_node_ids())) < min_nodes:
        log(INFO, "waiting for %d nodes", min_nodes)
    while len(list(grid.get_node_ids())) < min_nodes:
        time.sleep(POLL_S)

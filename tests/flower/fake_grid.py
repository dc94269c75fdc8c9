"""A grid in this process: every node's app is called in turn, with a context of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

FIRST_NODE = 1000


class FakeGrid(Grid):
    """Nodes 1000, 1001, … are devices 0, 1, …; tests change replies, or let nodes come and go."""

    def __init__(self, app: ClientApp, num_nodes: int, run_config: dict[str, Any] | None = None) -> None:
        TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # whose messages these are
        self.app = app
        self.run_config = run_config or {}
        self.contexts: dict[int, Context] = {}
        self.log: list[tuple[int, str, Message, Message | None]] = []  # node, kind, message, reply
        self.tamper: dict[tuple[int, str], Callable[[Message, Message], Message | None]] = {}
        for position in range(num_nodes):
            self.join(position)

    def join(self, position: int, node_id: int | None = None, **node_config: Any) -> int:
        node = FIRST_NODE + position if node_id is None else node_id
        config = node_config or {"partition-id": position}
        self.contexts[node] = Context(
            run_id=1, node_id=node, node_config=config, state=RecordDict(), run_config=self.run_config
        )
        return node

    def leave(self, position: int) -> None:
        del self.contexts[FIRST_NODE + position]

    def forget(self, position: int) -> None:
        """The node is started anew: its state is empty."""
        self.contexts[FIRST_NODE + position].state = RecordDict()

    def kinds(self, node: int) -> list[str]:
        return [kind for n, kind, _, _ in self.log if n == node]

    # Flower's interface ----------------------------------------------------------------------------------

    def get_node_ids(self) -> Iterable[int]:
        return list(self.contexts)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        replies = [self._deliver(message) for message in list(messages)]
        return [reply for reply in replies if reply is not None]

    def _deliver(self, message: Message) -> Message | None:
        node, kind = message.metadata.dst_node_id, message.metadata.message_type
        if node not in self.contexts:
            return None
        received = copy.deepcopy(message)  # a node has its own copy
        reply: Message | None
        try:
            reply = self.app(received, self.contexts[node])
        except Exception as error:  # as Flower does: the server is told
            reply = Message(Error(code=2, reason=str(error)), reply_to=message)
        change = self.tamper.get((node, kind))
        if change is not None:
            reply = change(message, reply)
        if reply is not None:
            reply.metadata.__dict__["_src_node_id"] = node  # what the SuperLink does
        self.log.append((node, kind, message, reply))
        return reply

    def set_run(self, run: Any) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise NotImplementedError

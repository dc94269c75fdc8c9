"""A node's side of secure aggregation: its change to the model, for Flower's mod to mask."""

from __future__ import annotations

from flwr.app import Context, Message
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters
from flwr.compat.common.recorddict_compat import fitres_to_recorddict

from fedwave.flower.kept import KEPT_GLOBAL, KEPT_MODEL, require_kept
from fedwave.flower.messages import Grant, to_arrays


def add_masked_upload(app: ClientApp) -> None:
    """Let SecAgg+ ask a node for its model: it hands over the change, which the mod masks."""

    @app.train(mods=[secaggplus_mod])
    def masked(message: Message, context: Context) -> Message:
        grant = Grant.from_config(message.content.config_records["fitins.config"])
        require_kept(context, grant.round_index)
        own = to_arrays(context.state.array_records[KEPT_MODEL])
        sent = to_arrays(context.state.array_records[KEPT_GLOBAL])
        change = ndarrays_to_parameters([own[name] - sent[name] for name in sent])
        result = FitRes(Status(Code.OK, "ok"), change, num_examples=1, metrics={})
        return Message(fitres_to_recorddict(result, keep_input=False), reply_to=message)

"""The node's side of the two-phase round: compute and report, keep the model, send it when asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flwr.app import ArrayRecord, ConfigRecord, Context, Message
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable, Mod

from fedwave.errors import RunError
from fedwave.flower.device import Device
from fedwave.flower.messages import ANY_DEVICE, ARRAYS, CONFIG, Grant, reply_with, to_arrays, to_record

# What a node keeps in its own state between the phases, until it is asked for.
KEPT_MODEL = "fedwave.model"  # theta_i of the round
KEPT_GLOBAL = "fedwave.global"  # theta, where a mod or a mask needs the difference
KEPT_ROUND = "fedwave.round"


def client_app(
    make_device: Callable[[Context], Device],
    *,
    report_mods: Sequence[Mod] = (),
    upload_mods: Sequence[Mod] = (),
    secure_aggregation: bool = False,
) -> ClientApp:
    """Return the app of a node whose device ``make_device`` makes; cache there what is costly to make.

    ``upload_mods`` see the upload as a plain training message, global model in and local model out, as
    Flower's mods for differential privacy expect. ``secure_aggregation`` lets SecAgg+ ask for the model.
    """
    app = ClientApp()

    @app.query("hello")
    def hello(message: Message, context: Context) -> Message:
        wanted = context.node_config.get("partition-id", ANY_DEVICE)
        num_samples = make_device(context).num_samples
        return reply_with(message, metrics={"device": int(wanted), "num_samples": num_samples})

    @app.train("report", mods=list(report_mods))
    def compute(message: Message, context: Context) -> Message:
        sent = message.content.array_records[ARRAYS]
        round_index = int(message.content.config_records[CONFIG]["round"])  # type: ignore[arg-type]
        device = make_device(context)
        model, report = device.update(round_index, to_arrays(sent))
        came_from = sent if upload_mods or secure_aggregation else None
        _keep(context, round_index, to_record(model, order=sent), came_from)
        return reply_with(message, metrics=report.to_metrics())

    @app.train("upload", mods=[_with_global_model, *upload_mods] if upload_mods else [])
    def upload(message: Message, context: Context) -> Message:
        grant = Grant.from_config(message.content.config_records[CONFIG])
        _require_kept(context, grant.round_index)
        device = make_device(context)
        device.granted(grant)
        model = context.state.array_records[KEPT_MODEL]
        return reply_with(message, arrays=model, metrics={"num-examples": device.num_samples})

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        device = make_device(context)
        figures = device.evaluate(to_arrays(message.content.array_records[ARRAYS]))
        return reply_with(message, metrics={**figures, "num-examples": device.num_samples})

    if secure_aggregation:
        _add_masked_upload(app)
    return app


def _with_global_model(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Show the mods the global model that the local one came from; it is not sent a second time."""
    if KEPT_GLOBAL in context.state.array_records:
        message.content[ARRAYS] = context.state.array_records[KEPT_GLOBAL].copy()
    return call_next(message, context)


def _keep(context: Context, round_index: int, model: ArrayRecord, came_from: ArrayRecord | None) -> None:
    """Keep a round's local model in place of the last one."""
    context.state[KEPT_MODEL] = model
    context.state[KEPT_ROUND] = ConfigRecord({"round": round_index})
    if came_from is not None:
        context.state[KEPT_GLOBAL] = came_from


def _require_kept(context: Context, round_index: int) -> None:
    """Raise if the node has no model of this round: it was restarted, or never took part."""
    kept = context.state.config_records.get(KEPT_ROUND, ConfigRecord()).get("round")
    if kept != round_index:
        raise RunError(
            f"this node keeps the model of round {kept!r}, got asked for round {round_index}. It was started "
            "anew between the phases; it takes part again in the next round."
        )


def _add_masked_upload(app: ClientApp) -> None:
    """Let SecAgg+ ask a node for its model: it hands over the change, which Flower's mod masks."""
    # Of Flower's older interface, which nodes without secure aggregation need not load.
    from flwr.client.mod import secaggplus_mod
    from flwr.common import Code, FitRes, Status, ndarrays_to_parameters
    from flwr.compat.common.recorddict_compat import fitres_to_recorddict

    @app.train(mods=[secaggplus_mod])
    def masked(message: Message, context: Context) -> Message:
        grant = Grant.from_config(message.content.config_records["fitins.config"])
        _require_kept(context, grant.round_index)
        own = to_arrays(context.state.array_records[KEPT_MODEL])
        sent = to_arrays(context.state.array_records[KEPT_GLOBAL])
        change = ndarrays_to_parameters([own[name] - sent[name] for name in sent])
        result = FitRes(Status(Code.OK, "ok"), change, num_examples=1, metrics={})
        return Message(fitres_to_recorddict(result, keep_input=False), reply_to=message)

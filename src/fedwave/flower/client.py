"""The node's side of the two-phase round: compute and report, keep the model, send it when asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable, Mod

from fedwave.flower.device import Device
from fedwave.flower.kept import KEPT_GLOBAL, KEPT_MODEL, keep, require_kept
from fedwave.flower.messages import ANY_DEVICE, ARRAYS, CONFIG, Grant, reply_with, to_arrays, to_record


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
    def report(message: Message, context: Context) -> Message:
        sent = message.content.array_records[ARRAYS]
        round_index = int(message.content.config_records[CONFIG]["round"])  # type: ignore[arg-type]
        device = make_device(context)
        update = device.update(round_index, to_arrays(sent))
        came_from = sent if upload_mods or secure_aggregation else None
        keep(context, round_index, to_record(update.arrays, order=sent), came_from)
        metrics: dict[str, object] = {
            "contribution": update.contribution,
            "loss": update.loss,
            "num_samples": update.num_samples,
            "gradient_norms": [float(norm) for norm in update.gradient_norms],
        }
        radio = device.radio(round_index)
        if radio is not None:
            gains = [float(gain) for gain in radio.channel_gain]
            metrics |= {**vars(radio), "channel_gain": gains}
        return reply_with(message, metrics=metrics)

    @app.train("upload", mods=[_with_global_model, *upload_mods] if upload_mods else [])
    def upload(message: Message, context: Context) -> Message:
        grant = Grant.from_config(message.content.config_records[CONFIG])
        require_kept(context, grant.round_index)
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
        from fedwave.flower.masked_upload import add_masked_upload

        add_masked_upload(app)
    return app


def _with_global_model(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Show the mods the global model that the local one came from; it is not sent a second time."""
    if KEPT_GLOBAL in context.state.array_records:
        message.content[ARRAYS] = context.state.array_records[KEPT_GLOBAL].copy()
    return call_next(message, context)

"""What the server runs: it plans every round, and evaluates the model on the held-out devices."""

import json
from contextlib import closing
from pathlib import Path

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from safetensors.numpy import save_file

from fedwave.flower import initial_arrays, simulation_of, strategy_of_experiment
from fedwave.flower.messages import to_arrays
from fedwave.flower.parameters import to_parameters

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    simulation = simulation_of(config)
    options = {"audit": None} if not config["audit"] else {}
    strategy = strategy_of_experiment(
        simulation,
        report_timeout_s=config["report-timeout-s"],
        exclude_rounds=config["exclude-rounds"],
        checkpoint=config["checkpoint"] or None,
        **options,
    )
    with closing(simulation.open_devices()) as devices:

        def evaluate(round_number: int, arrays: ArrayRecord) -> MetricRecord | None:
            result = devices.evaluate(to_parameters(to_arrays(arrays)))
            if result is None:
                return None
            return MetricRecord({"loss": result.mean_loss, result.measured.name: result.mean_metric})

        result = strategy.start(
            grid,
            initial_arrays(simulation),
            num_rounds=config["num-rounds"],
            timeout=config["upload-timeout-s"],
            evaluate_fn=evaluate,
        )
    if config["out"]:
        out = Path(config["out"])
        out.mkdir(parents=True, exist_ok=True)
        save_file(to_arrays(result.arrays), out / "model.safetensors")
        rounds = {number: dict(record) for number, record in result.train_metrics_clientapp.items()}
        heldout = {number: dict(record) for number, record in result.evaluate_metrics_serverapp.items()}
        text = json.dumps({"rounds": rounds, "heldout": heldout}, indent=2)
        (out / "rounds.json").write_text(text + "\n", encoding="utf-8")

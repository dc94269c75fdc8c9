import json
import time
from pathlib import Path

from flwr.serverapp import ServerApp

from tests.flower.toy_server import first_arrays, strategy

app = ServerApp()


@app.main()
def main(grid, context):
    config = context.run_config
    server = strategy(
        config["num-devices"],
        config["num-selected"],
        min_nodes=config["min-nodes"],
        report_timeout_s=config["report-timeout-s"],
        checkpoint=config["checkpoint"] or None,
    )

    def pause(server_round, arrays):
        time.sleep(config["pause-s"])

    result = server.start(
        grid,
        first_arrays(),
        num_rounds=config["num-rounds"],
        timeout=config["upload-timeout-s"],
        evaluate_fn=pause,
    )
    out = {
        "rounds": {number: dict(record) for number, record in result.train_metrics_clientapp.items()},
        "w": result.arrays["w"].numpy().tolist(),
    }
    Path(config["out"]).write_text(json.dumps(out), encoding="utf-8")

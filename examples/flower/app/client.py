"""What every node runs: one training device of the experiment, the one with its partition-id."""

from fedwave.flower import client_app, device_of_experiment

app = client_app(device_of_experiment)

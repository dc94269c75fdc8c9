"""One federated training run: its state, its rounds, and the folder that records it."""

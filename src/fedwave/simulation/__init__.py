"""One federated training run: its state, its rounds, its devices, and the world that answers."""

"""A Flower app that trains an experiment of fedwave on real nodes."""

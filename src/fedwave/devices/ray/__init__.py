"""Devices on a Ray cluster: chunks of them are tasks, their models stay on the machine that made them."""

"""What a column declares, found by the names that tables have."""

from __future__ import annotations

import pytest

from fedwave.simulation.column import kind_of
from fedwave.simulation.columns import DEVICE_COLUMNS, HELDOUT_COLUMNS, ROUND_COLUMNS


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("train_loss", "number"),
        ("heldout_accuracy", "number"),
        ("heldout_mean_absolute_error_pooled", "number"),
        ("num_received", "integer"),
        ("selected_devices", "devices"),
        ("note", "text"),
        ("heldout_", None),
        ("heldout_Accuracy", None),
        ("xnote", None),
        ("notes", None),
        ("gradient_norm_min", "number"),
        ("gradient_norm_0", None),  # of devices.csv
    ],
)
def test_the_declared_type_is_found_by_name(name: str, kind: str | None) -> None:
    assert kind_of(name, [(column.name, column.kind) for column in ROUND_COLUMNS]) == kind


def test_steps_and_metrics_of_other_tables_are_found_too() -> None:
    of_devices = [(column.name, column.kind) for column in DEVICE_COLUMNS]
    assert kind_of("gradient_norm_0", of_devices) == kind_of("gradient_norm_12", of_devices) == "number"
    assert kind_of("gradient_norm_", of_devices) is None
    assert kind_of("gradient_norm_x", of_devices) is None
    of_heldout = [(name, kind) for name, kind, _ in HELDOUT_COLUMNS]
    assert kind_of("accuracy", of_heldout) == "number"
    assert kind_of("num_query", of_heldout) == "integer"

"""Reads what ``account`` takes: a CSV of messages, or the tables of a finished run folder. Numpy alone."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from fedwave.csv_table import CsvTable, read_table
from fedwave.errors import ProblemError, did_you_mean
from fedwave.files import read_text
from fedwave.simulation.account import Messages
from fedwave.units import FloatArray, IntArray

AMOUNTS = ("download_bytes", "operations", "samples", "report_bytes", "upload_bytes")
DECISIONS = ("block", "transmit_power_w", "cpu_frequency_hz")
_KEYS = ("round", "device")
_BYTES_PER_PARAMETER = 4.0  # a float32


def read_messages(path: Path, *, counts_samples: bool) -> Messages:
    """Return the messages of a CSV: round, device, and any of ``AMOUNTS`` and ``DECISIONS``; empty is none.

    Work is in ``operations`` (multiply-adds), or in ``samples`` where ``counts_samples`` says that the cell's
    fleet has cycles for each sample.
    """
    table = read_table(
        path, what="table of messages", error=ProblemError, fix="Check the path.", has_comments=True
    )
    known = (*_KEYS, *AMOUNTS, *DECISIONS)
    for name in table.header:
        if name not in known:
            raise ProblemError(f'{table.name} has an unknown column "{name}". {did_you_mean(name, known)}')
    for name in _KEYS:
        if name not in table.header:
            raise ProblemError(
                f'{table.name} has no column "{name}". Its header is: {", ".join(table.header)}.'
            )
    wrong, right = ("operations", "samples") if counts_samples else ("samples", "operations")
    if wrong in table.header:
        kind = "cycles_per_sample" if counts_samples else "cycles_per_operation"
        raise ProblemError(
            f"{table.name} counts work in {wrong}, but the cell's fleet has {kind}. Give a column {right}."
        )
    return Messages(
        round_index=_whole(table, "round"),
        device=_whole(table, "device"),
        work=_numbers(table, right, otherwise=0.0),
        **{name: _numbers(table, name, otherwise=0.0) for name in AMOUNTS if name.endswith("_bytes")},
        **{name: _numbers(table, name, otherwise=math.nan) for name in DECISIONS},
    )


def messages_of_run(folder: Path, *, work: float, model_bytes: float | None = None) -> Messages:
    """Return the messages of a run of ours without a cell, on threads, Ray or Flower, from its folder.

    Those that computed were sent the model and did ``work`` each; those that were selected sent it back.
    ``model_bytes`` None: four for each of the run's parameters.
    """
    rows = read_table(
        folder / "devices.csv",
        what="table of devices",
        error=ProblemError,
        fix="Give a CSV of messages or the folder of a run.",
    )
    model_bytes = _model_bytes(folder) if model_bytes is None else model_bytes
    computed = np.array([text != "" for text in rows.column("train_loss")])
    selected = np.array([text == "1" for text in rows.column("is_selected")])
    device = _whole(rows, "device")
    # A run's devices have their numbers in the partition; a cell counts those that train, in order.
    place = np.searchsorted(np.unique(device), device)
    took_part = computed | selected
    nothing = np.full(int(took_part.sum()), math.nan)
    return Messages(
        round_index=_whole(rows, "round")[took_part],
        device=place[took_part],
        download_bytes=np.where(computed, model_bytes, 0.0)[took_part],
        work=np.where(computed, work, 0.0)[took_part],
        report_bytes=np.zeros(len(nothing)),
        upload_bytes=np.where(selected, model_bytes, 0.0)[took_part],
        block=nothing,
        transmit_power_w=nothing,
        cpu_frequency_hz=nothing,
    )


def _model_bytes(folder: Path) -> float:
    try:
        summary = json.loads(read_text(folder / "summary.json"))
        return _BYTES_PER_PARAMETER * float(summary["num_parameters"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ProblemError(
            f"{folder / 'summary.json'} does not say how many parameters the model has. "
            "Give the bytes of a model (--model-bytes)."
        ) from None


def _numbers(table: CsvTable, name: str, *, otherwise: float) -> FloatArray:
    """Return a column of numbers >= 0, with ``otherwise`` where it is empty or not there."""
    if name not in table.header:
        return np.full(len(table.rows), otherwise)
    found = np.full(len(table.rows), otherwise)
    for index, text in enumerate(table.column(name)):
        if not text or (name == "block" and text == "-1"):  # as tables of runs say "none"
            continue
        try:
            found[index] = float(text)
        except ValueError:
            found[index] = math.nan
        if not 0.0 <= found[index] < math.inf or (name == "block" and not found[index].is_integer()):
            raise ProblemError(
                f'{table.name} has {name} = "{text[:40]}" in line {table.lines[index]}. '
                f"Write a {'whole ' * (name == 'block')}number >= 0."
            )
    return found


def _whole(table: CsvTable, name: str) -> IntArray:
    """Return a column of whole numbers >= 0."""
    found = []
    for index, text in enumerate(table.column(name)):
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise ProblemError(
                f'{table.name} has {name} = "{text[:40]}" in line {table.lines[index]}. '
                "Write a whole number >= 0."
            )
        found.append(int(text))
    return np.array(found, dtype=np.int64)

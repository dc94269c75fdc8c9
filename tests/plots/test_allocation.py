from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import allocate, example_problem, pareto_front, parse_problem
from fedwave.errors import ProblemError
from fedwave.plots.allocation import plot_allocation, plot_pareto, save


def test_the_picture_shows_every_upload(tmp_path):
    problem = parse_problem(example_problem())
    found = allocate(problem)
    figure = plot_allocation(problem, found)
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    expected = sorted((int(found.block_of_device[i]), int(i)) for i in found.selected)
    assert labels == [f"block {block} · device {device}" for block, device in expected]
    powers = [bar.get_width() for bar in figure.axes[1].containers[1]]
    np.testing.assert_allclose(powers, [1e3 * found.transmit_power_w[device] for _, device in expected])
    assert figure.axes[1].get_xlabel() == "transmit power [mW]"
    assert save(figure, tmp_path / "a.png").stat().st_size > 5_000


def test_uploads_in_turn_are_drawn_one_after_another():
    blocks = 'access = "tdma"\ninterference_dbm = [-115, -115, -115, -115] #'
    problem = parse_problem(example_problem().replace("interference_dbm =", blocks, 1))
    found = allocate(problem)
    figure = plot_allocation(problem, found)
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == [f"device {i} · 4 blocks" for i in found.selected]
    slots = figure.axes[3].containers[1]
    assert len(slots) == found.num_selected > 4
    at_s = found.compute_delay_s
    for slot in slots:
        assert slot.get_x() == pytest.approx(at_s)
        at_s += slot.get_width()
    assert at_s == pytest.approx(found.delay_s)
    drawn = [
        one.get_paths()[0].get_extents().bounds for one in figure.axes[4].collections
    ]  # the band over time
    assert [box[0] for box in drawn] == pytest.approx([0.0, *np.cumsum([box[2] for box in drawn])[:-1]])
    assert {box[1:4:2] for box in drawn} == {(0.0, float(problem.num_blocks))}


def test_an_empty_allocation_cannot_be_drawn():
    problem = parse_problem(example_problem().replace("delay_weight = 0.5", "delay_weight = 500.0"))
    with pytest.raises(ProblemError, match="Nothing to draw: nobody uploads"):
        plot_allocation(problem, allocate(problem))


def test_the_front_shows_every_point():
    front = pareto_front(parse_problem(example_problem()), [0.1, 1.0, 10.0])
    figure = plot_pareto(front)
    points = figure.axes[0].collections[0].get_offsets()
    assert sorted(points[:, 0]) == pytest.approx(sorted(front.energy_j))

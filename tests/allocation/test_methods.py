from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import (
    METHODS,
    Method,
    Status,
    allocate,
    build_allocation,
    compare_methods,
    method_options,
    total_cost,
    violations,
)
from fedwave.allocation.methods import devices_to_serve, upload_mask
from fedwave.errors import ProblemError
from fedwave.testing import check_method
from tests.allocation.allocation_problems import paper_problem, small_problem

SERVING = [name for name, method in METHODS.items() if method.serves_given_devices]
CHOOSING = [name for name, method in METHODS.items() if not method.serves_given_devices]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_the_contract(method):
    check_method(method)


def test_unknown_methods_and_options_name_the_nearest():
    with pytest.raises(ProblemError, match=r'There is no method "optimum". Did you mean "optimal"\?'):
        allocate(small_problem(), "optimum")
    with pytest.raises(ProblemError, match=r'There is no method "optimum". Did you mean "optimal"\?'):
        method_options("optimum")
    with pytest.raises(ProblemError, match=r'method "ives" has no option \'strat\'. Did you mean "start"\?'):
        allocate(small_problem(), "ives", strat=3.0)
    with pytest.raises(
        ProblemError, match=r'"greedy" has no option \'selection\'. Did you mean "selected"\?'
    ):
        allocate(small_problem(), "greedy", rng=np.random.default_rng(0), selection="uniform")
    with pytest.raises(
        ProblemError, match=r'method "optimal" has no option \'may_upload\'. It is filled in for every'
    ):
        allocate(small_problem(), may_upload=np.ones(3, dtype=bool))


def test_the_options_of_each_method():
    assert {name: method_options(name) for name in METHODS} == {
        "optimal": ("relative_gap", "max_matchings"),
        "threshold": ("num_thresholds",),
        "value-rate": (),
        "proportional-fair": (),
        "ives": ("start", "max_iterations", "keep_negative"),
        "ives-multistart": ("num_starts", "max_iterations"),
        "greedy": (),
        "random": (),
        "chen2020": ("max_delay_s", "max_energy_j", "waterfall_threshold"),
        "fedl-power": (),
        "equal-split": (),
    }


def test_who_serves_given_devices_and_who_chooses():
    assert {name for name, method in METHODS.items() if method.serves_given_devices} == {
        "greedy",
        "random",
        "fedl-power",
        "equal-split",
    }


def test_what_each_method_can_do():
    draws = {name for name, method in METHODS.items() if method.needs_rng}
    assert draws == {"greedy", "random"}
    assert {name for name, method in METHODS.items() if not method.plans_for_risks} == draws | {"fedl-power"}


@pytest.mark.parametrize("method", ["greedy", "random"])
def test_methods_that_draw_ask_for_a_generator(method):
    message = f'method "{method}" draws at random and needs rng=, got None. Give numpy.random.default_rng'
    with pytest.raises(ProblemError, match=message):
        allocate(small_problem(), method)


@pytest.fixture
def register(monkeypatch):
    """Enter a method for the length of a test."""

    def enter(name, method):
        monkeypatch.setitem(METHODS, name, method)

    return enter


def served_at_full_power(problem, device):
    """Return the allocation of the given devices to blocks 0, 1, ... at full power and frequency."""
    return build_allocation(
        problem,
        method="mine",
        device=device,
        block=np.arange(device.size),
        power_w=problem.max_power_w[device],
        cpu_frequency_hz=problem.max_frequency_hz,
        status=Status.FEASIBLE,
    )


def test_a_method_of_ones_own_serves_the_devices_it_is_given(register):
    seen = {}

    def mine(problem, *, selected, rng, boldness=1.0):
        seen.update(selected=selected.tolist(), rng=rng, boldness=boldness)
        return served_at_full_power(problem, selected)

    register("mine", Method(mine, serves_given_devices=True))
    rng = np.random.default_rng(0)
    found = allocate(small_problem(), "mine", rng=rng, selected=[2, 1], boldness=0.5)
    assert seen == {"selected": [1, 2], "rng": rng, "boldness": 0.5}
    assert found.block_of_device.tolist() == [-1, 0, 1]
    assert (found.iterations, found.upper_bound, found.reason, found.trace.size) == (0, np.inf, "", 0)
    assert violations(small_problem(), found) == ()
    allocate(small_problem(), "mine", rng=rng)
    assert seen["selected"] == [0, 2]  # by default the largest contributions, as many as blocks
    assert method_options("mine") == ("boldness",)
    assert compare_methods(small_problem(), seed=0)["mine"].allocation.num_selected == 2
    with pytest.raises(ProblemError, match=r'"mine" has no option \'bold\'. Did you mean "boldness"'):
        allocate(small_problem(), "mine", rng=rng, bold=1)
    with pytest.raises(ProblemError, match='method "mine" draws at random and needs rng='):
        allocate(small_problem(), "mine")


def test_a_method_of_ones_own_chooses_among_the_devices_it_is_given(register):
    def mine(problem, *, may_upload, rng=None):
        assert rng is None
        return served_at_full_power(
            problem, np.arange(1) if may_upload is None else np.flatnonzero(may_upload)[:1]
        )

    register("mine", Method(mine, serves_given_devices=False))
    assert allocate(small_problem(), "mine").selected.tolist() == [0]
    assert allocate(small_problem(), "mine", selected=[0, 1, 2][1:]).selected.tolist() == [1]


def test_a_method_that_plans_for_no_risks_never_sees_them_and_meets_them(register):
    problem = small_problem(min_snr=1.5, max_round_delay_s=50.0, packet_error_waterfall=0.1)
    seen, seen_allocations = [], []

    def mine(problem, *, selected):
        seen.append(problem)
        seen_allocations.append(served_at_full_power(problem, selected))
        return seen_allocations[-1]

    register("careful", Method(mine, serves_given_devices=True))
    register("careless", Method(mine, serves_given_devices=True, plans_for_risks=False))
    careful, careless = (allocate(problem, name, selected=[0, 1]) for name in ("careful", "careless"))
    whole, plain = seen
    assert whole is problem
    assert not plain.has_risks
    assert (plain.min_snr, plain.max_round_delay_s, plain.packet_error_waterfall) == (0.0, None, None)
    # On block 0 the SNR is 1 * 1 / 1, on block 1 it is 2 * 0.5 / 2: both are below 1.5.
    assert careful.status is Status.FEASIBLE  # as the method says
    assert careless.status is Status.LOST
    assert careless.reason.startswith("2 of 2 uploads are lost: device 0 sends at an SNR of 1, below 1.5")
    assert careless.contribution == 0.0
    assert careless.objective == total_cost(problem, careless) == careful.objective
    safe = small_problem()
    found = allocate(safe, "careless", selected=[0, 1])
    assert seen[-1] is safe
    assert found is seen_allocations[-1]  # nothing to meet, so nothing is worked out again


def test_a_bound_proven_without_risks_holds_with_them(register):
    def mine(problem, *, selected):
        found = served_at_full_power(problem, selected)
        return replace(
            found, status=Status.CONVERGED, reason="so", iterations=3, upper_bound=9.0, trace=np.ones(1)
        )

    register("mine", Method(mine, serves_given_devices=True, plans_for_risks=False))
    found = allocate(small_problem(min_snr=1.5), "mine", selected=[0])
    assert (found.status, found.reason, found.iterations) == (Status.CONVERGED, "so", 3)
    assert found.upper_bound == 9.0
    assert found.trace.tolist() == [1.0]
    assert found.contribution == 0.0


def test_a_method_may_take_any_option(register):
    seen = {}

    def mine(problem, **options):
        seen.update(options)
        return served_at_full_power(problem, options["selected"])

    register("mine", Method(mine, serves_given_devices=True))
    allocate(small_problem(), "mine", selected=[1], anything=3)
    assert seen["anything"] == 3
    assert seen["selected"].tolist() == [1]
    assert method_options("mine") == ()
    with pytest.raises(ProblemError, match="has no option 'may_upload'"):
        allocate(small_problem(), "mine", may_upload=None)


def test_methods_that_cannot_be_given_devices_are_refused_at_once(register):
    with pytest.raises(
        ProblemError,
        match=r"serves_given_devices=True must take selected, got a function of \(problem, rng\). Add",
    ):
        Method(lambda problem, rng: None, serves_given_devices=True)
    with pytest.raises(
        ProblemError, match=r"serves_given_devices=False must take may_upload, got a function of"
    ):
        Method(lambda problem, selected: None, serves_given_devices=False)
    register("bare", served_at_full_power)
    with pytest.raises(ProblemError, match=r"a method must be a Method, got .*\(function\). Write Method\("):
        allocate(small_problem(), "bare")


def test_every_method_takes_rng_and_selected():
    for method in METHODS:
        found = allocate(paper_problem(0), method, rng=np.random.default_rng(0), selected=[5, 6, 7])
        assert set(found.selected) <= {5, 6, 7}


def test_the_package_needs_numpy_and_scipy_alone():
    code = (
        "import sys, fedwave.allocation;"
        "heavy = {'torch', 'matplotlib', 'pydantic', 'typer', 'rich', 'pandas'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_the_docstring_example_runs():
    import doctest

    import fedwave.allocation

    assert doctest.testmod(fedwave.allocation).failed == 0


def test_by_default_the_largest_contributions_are_served_one_per_block():
    problem = paper_problem(1)
    largest = np.sort(np.argsort(-problem.contribution)[:20])
    np.testing.assert_array_equal(devices_to_serve(problem, None), largest)
    assert devices_to_serve(small_problem(contribution=[1.0, 1.0, 1.0]), None).tolist() == [0, 1]  # ties
    assert devices_to_serve(paper_problem(1, num_devices=3), None).tolist() == [0, 1, 2]  # more blocks


def test_given_devices_come_back_sorted_or_as_a_mask():
    assert devices_to_serve(paper_problem(1), [9, 4, 77]).tolist() == [4, 9, 77]
    assert devices_to_serve(small_problem(), []).tolist() == []
    assert devices_to_serve(small_problem(), [2, 0]).tolist() == [0, 2]  # as many as there are blocks
    assert upload_mask(small_problem(), [2, 0]).tolist() == [True, False, True]
    assert upload_mask(small_problem(), []).tolist() == [False, False, False]
    assert upload_mask(small_problem(), None) is None


@pytest.mark.parametrize("method", SERVING)
def test_serving_methods_serve_exactly_the_given_devices(method):
    problem = paper_problem(1)
    found = allocate(problem, method, rng=np.random.default_rng(0), selected=[9, 4, 77])
    assert found.selected.tolist() == [4, 9, 77]
    unasked = allocate(problem, method, rng=np.random.default_rng(0))
    assert set(unasked.selected) == set(np.argsort(-problem.contribution)[:20])


@pytest.mark.parametrize("method", CHOOSING)
def test_choosing_methods_choose_among_the_given_devices(method):
    problem = paper_problem(1)
    many = np.arange(0, 100, 2)  # more than there are blocks
    found = allocate(problem, method, selected=many)
    assert found.num_selected > 0
    assert set(found.selected) <= set(many)
    assert set(allocate(problem, method).selected) - set(many)
    assert allocate(problem, method, selected=[]).num_selected == 0


@pytest.mark.parametrize(
    ("selected", "message"),
    [
        ([0, 1, 2], r"selected must not exceed the 2 blocks, got 3 devices. One block carries one device"),
        ([0, 1, 3], r"selected must lie in 0..2, got 3"),
        ([-1, 1], r"selected must lie in 0..2, got -1"),
        ([1, 1], r"selected must name each device once"),
        ([True, False, True], r"selected must be a list of device indices, got bool .*numpy.flatnonzero"),
        ([0.0, 1.0], r"selected must be a list of device indices, got float64"),
        ([[0, 1]], r"selected must be a list of device indices, got int64 of shape \(1, 2\)"),
    ],
)
def test_bad_selections_are_refused(selected, message):
    with pytest.raises(ProblemError, match=message):
        allocate(small_problem(), "fedl-power", selected=selected)

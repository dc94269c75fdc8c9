"""The compiled search against the one in Python, to the bit: plan, bound, status, matchings and trace."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem, Status, allocate
from fedwave.allocation.computing.cpu_frequency import compute_cost, solve_cpu_frequencies
from fedwave.allocation.optimal import compiled_search, search_check
from fedwave.allocation.optimal.candidates import candidate_pairs
from fedwave.allocation.optimal.compiled_search import MOST_PAIRS, compiled_plan
from fedwave.allocation.optimal.search import BranchAndBound
from fedwave.allocation.uploads.upload_plan import UploadPlan
from fedwave.wireless.rate import RadioPower
from tests.allocation.allocation_problems import (
    ALL_FEATURES,
    at_other_snr,
    link_problem,
    paper_problem,
    small_problem,
)

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: Python searches")
KNOWN = tuple(name for name in ALL_FEATURES if name not in ("errors", "round"))


def both(
    problem: AllocationProblem, *, relative_gap: float = 1e-6, max_matchings: int = 10_000
) -> tuple[UploadPlan, UploadPlan | None]:
    """Return the plans of both searches on one table."""
    table = candidate_pairs(problem)
    cost = compute_cost(problem, solve_cpu_frequencies(problem).cpu_frequency_hz)
    plain = BranchAndBound(problem, table).run(
        relative_gap=relative_gap, compute_cost=cost, max_matchings=max_matchings
    )
    compiled = compiled_plan(
        problem, table, relative_gap=relative_gap, compute_cost=cost, max_matchings=max_matchings
    )
    return plain, compiled


def assert_same(plain: UploadPlan, compiled: UploadPlan | None) -> None:
    assert compiled is not None
    assert (compiled.matching is None) == (plain.matching is None)
    if plain.matching is not None and compiled.matching is not None:
        assert compiled.matching.row.tolist() == plain.matching.row.tolist()
        assert compiled.matching.column.tolist() == plain.matching.column.tolist()
    for name in ("snr", "value", "upper_bound", "status", "num_matchings", "trace"):
        assert getattr(compiled, name) == getattr(plain, name), name


def is_known(problem: AllocationProblem) -> bool:
    """Return whether anybody can upload, and no two devices share a favourite SNR on any of their blocks."""
    table = candidate_pairs(problem)
    if table.unit_cost.size == 0 or table.faster is None:
        return table.unit_cost.size > 0
    devices = np.broadcast_to(table.device, table.unit_cost.shape)
    owners: dict[float, set[int]] = {}
    for favourite, device, cap in zip(
        table.faster.favourite.flat, devices.flat, table.snr_cap.flat, strict=True
    ):
        if cap > 0.0:
            owners.setdefault(float(favourite), set()).add(int(device))
    return all(len(names) == 1 for names in owners.values())


def drawn(seed: int, *, max_devices: int, max_blocks: int) -> AllocationProblem:
    """Return a draw with some of the link's terms; of many devices half have equal numbers."""
    rng = np.random.default_rng(seed)
    features = [name for name in KNOWN if rng.random() < 0.35]
    problem = link_problem(rng, features, max_devices=max_devices, max_blocks=max_blocks)
    if rng.random() < 0.3:  # equal blocks and equal devices, so that many matchings are worth the same
        problem = replace(problem, interference_w=np.full(problem.num_blocks, 0.25))
        if not problem.is_frequency_selective:
            problem = replace(problem, channel_gain=np.round(problem.channel_gain, 0) + 0.5)
    if rng.random() < 0.3:
        problem = replace(problem, max_uploads=int(rng.integers(0, problem.num_blocks + 2)))
    return problem


@needs_compiler
class TestSameSteps:
    @pytest.mark.parametrize("seed", range(150))
    def test_small_problems_with_every_term_of_the_link_that_it_knows(self, seed: int) -> None:
        problem = drawn(seed, max_devices=25, max_blocks=9)
        if is_known(problem):
            assert_same(*both(problem))

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize(
        "kind", ["plain", "equal blocks", "equal devices", "per block", "circuit", "own"]
    )
    def test_the_paper_s_scale(self, seed: int, kind: str) -> None:
        rng = np.random.default_rng(seed)
        changes: dict[str, dict[str, object]] = {
            "plain": {},
            "equal blocks": {"interference_w": np.full(20, 0.4)},
            "equal devices": {"contribution": np.full(100, 5.0), "channel_gain": np.full(100, 0.7)},
            "per block": {"channel_gain": rng.uniform(0.1, 1, (100, 20))},
            "circuit": {"radio": RadioPower(amplifier_efficiency=0.3, circuit_power_w=0.1)},
            "own": {
                "radio": RadioPower(circuit_power_w=rng.uniform(0.05, 0.15, 100)),
                "max_delay_s": rng.uniform(4.0, 8.0, 100),
            },
        }
        assert_same(*both(replace(paper_problem(seed), **changes[kind])))

    @pytest.mark.parametrize("num_devices", [5, 12, 29, 31, 70])  # fewer columns than blocks, few, many
    def test_tables_of_any_width(self, num_devices: int) -> None:
        for num_blocks in (1, 8, 20, 23):
            assert_same(*both(paper_problem(num_devices, num_devices=num_devices, num_blocks=num_blocks)))

    @pytest.mark.parametrize(
        ("num_devices", "num_blocks"), [(95, 42), (130, 30), (62, 64), (61, 65), (57, 70)]
    )
    def test_tables_of_more_than_64_rows_or_columns(self, num_devices: int, num_blocks: int) -> None:
        for changes in ({}, {"interference_w": np.full(num_blocks, 0.4)}, {"max_uploads": num_blocks - 3}):
            problem = paper_problem(3, num_devices=num_devices, num_blocks=num_blocks)
            assert_same(*both(replace(problem, **changes)))

    @pytest.mark.parametrize("factor", [1e-200, 1e-12, 1e-6, 1e-3, 1e3, 1e9, 1e150])
    def test_very_small_and_very_large_snrs(self, factor: float) -> None:
        for seed in range(12):
            problem = at_other_snr(drawn(seed, max_devices=20, max_blocks=6), factor)
            if is_known(problem):
                assert_same(*both(problem))

    @pytest.mark.parametrize(
        ("seed", "max_devices", "max_blocks"),
        [
            (1469, 40, 12),  # the incumbent's SNR is the lower end of a node
            (1620, 25, 9),
            (6570, 40, 12),  # it is the upper end of a node
            (208, 25, 9),  # it lies below the node
            (329, 25, 9),  # it lies above the node
            (1015, 25, 9),  # it is the upper end of a node, and a kink
            (22, 40, 12),  # it is the lower end of a node, and a kink
            (0, 40, 12),  # columns tie for the shortest path: in two lanes of a vector,
            (39, 40, 12),  # in one lane that is not the first,
            (213, 40, 12),  # in the first lane,
            (149, 40, 12),  # and with others in between
        ],
    )
    def test_draws_on_which_one_comparison_decides(
        self, seed: int, max_devices: int, max_blocks: int
    ) -> None:
        assert_same(*both(drawn(seed, max_devices=max_devices, max_blocks=max_blocks)))

    @pytest.mark.slow
    def test_many_more_draws(self) -> None:
        for seed in range(1000, 3000):
            problem = drawn(seed, max_devices=40, max_blocks=12)
            if is_known(problem):
                assert_same(*both(problem))


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[search_check.Answer]:
    """Return a list that grows by what the library answers."""
    found: list[search_check.Answer] = []
    library = compiled_search.library(compiled_search.SEARCH)

    class Recording:
        def fedwave_search(self, given: int, answer: int, *others: int) -> int:
            assert library is not None
            status: int = library.fedwave_search(given, answer, *others)
            found.append(search_check.Answer.from_buffer_copy(search_check.Answer.from_address(answer)))
            return status

    monkeypatch.setattr(compiled_search, "library", lambda source: Recording())
    return found


@needs_compiler
class TestMatchingsFromEarlierOnes:
    @pytest.mark.parametrize("kind", ["plain", "circuit", "own"])
    def test_all_but_the_first_are_where_nothing_ties(
        self, answers: list[search_check.Answer], kind: str
    ) -> None:
        for seed in range(4):
            rng = np.random.default_rng(seed)
            changes: dict[str, dict[str, object]] = {
                "plain": {},
                "circuit": {"radio": RadioPower(amplifier_efficiency=0.3, circuit_power_w=0.1)},
                "own": {"max_delay_s": rng.uniform(4.0, 8.0, 100)},
            }
            assert_same(*both(replace(paper_problem(seed), **changes[kind])))
        assert min(found.matchings for found in answers) > 9
        assert [found.rematched for found in answers] == [found.matchings - 1 for found in answers]

    @pytest.mark.parametrize("num_devices", [5, 12, 31, 70])
    def test_so_they_are_in_tables_of_any_width(
        self, answers: list[search_check.Answer], num_devices: int
    ) -> None:
        for num_blocks in (1, 8, 20, 23):  # blocks that stay empty, and devices without one
            assert_same(*both(paper_problem(num_devices, num_devices=num_devices, num_blocks=num_blocks)))
        assert [found.rematched for found in answers] == [found.matchings - 1 for found in answers]

    def test_none_is_where_blocks_or_devices_are_alike(self, answers: list[search_check.Answer]) -> None:
        for seed in range(4):
            assert_same(*both(replace(paper_problem(seed), interference_w=np.full(20, 0.4))))
            assert_same(
                *both(replace(paper_problem(seed), contribution=5.0 * np.ones(100), channel_gain=0.7))
            )
        assert [found.rematched for found in answers] == [0] * len(answers)

    def test_a_tie_within_rounding_is_matched_from_scratch(self, answers: list[search_check.Answer]) -> None:
        """Of two devices that differ in the last bits, sums may prefer either: so none is taken as proven."""
        for seed in range(4):
            problem = paper_problem(seed)
            gain, contribution = problem.channel_gain.copy(), problem.contribution.copy()
            best = np.argsort(-gain * contribution)[:2]
            gain[best], contribution[best] = gain[best[0]], contribution[best[0]]
            contribution[best[1]] *= 1.0 + 4e-16
            power = np.full(100, 0.5)
            assert_same(
                *both(replace(problem, channel_gain=gain, contribution=contribution, max_power_w=power))
            )
        assert max(found.rematched for found in answers) == 0


@needs_compiler
class TestWhereItStops:
    @pytest.mark.parametrize("max_matchings", [1, 3, 7, 12, 20])
    def test_at_the_limit_of_matchings_with_the_gap_proven_so_far(self, max_matchings: int) -> None:
        seen = set()
        for seed in range(6):
            plain, compiled = both(paper_problem(seed), max_matchings=max_matchings, relative_gap=0.0)
            assert_same(plain, compiled)
            seen.add(plain.status)
        assert max_matchings > 12 or Status.LIMIT in seen

    def test_at_the_gap_that_is_asked_for(self) -> None:
        plans = [
            both(replace(paper_problem(seed), channel_gain=np.full(100, 0.5)), relative_gap=0.05)
            for seed in range(8)
        ]
        for plain, compiled in plans:
            assert_same(plain, compiled)
        hard = [both(paper_problem(seed, exponential=True), relative_gap=0.3) for seed in range(30)]
        for plain, compiled in hard:
            assert_same(plain, compiled)

    def test_where_nobody_is_worth_an_upload(self) -> None:
        for changes in ({"delay_weight": 1e6}, {"delay_weight": 100.0}, {"max_power_w": 1e-12}):
            plain, compiled = both(replace(small_problem(), **changes))
            assert plain.matching is None
            assert_same(plain, compiled)


@needs_compiler
def test_threads_search_at_the_same_time() -> None:
    problems = [paper_problem(seed) for seed in range(8)] * 4
    expected = [allocate(problem).objective for problem in problems]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(allocate, problems))
    assert [one.objective for one in found] == expected


class TestWherePythonSearches:
    def test_packet_errors_and_a_deadline_of_the_round(self) -> None:
        for changes in ({"packet_error_waterfall": 0.02}, {"max_round_delay_s": 30.0}):
            problem = replace(small_problem(), **changes)
            assert both(problem)[1] is None
            assert allocate(problem).status is Status.OPTIMAL

    def test_devices_that_share_a_favourite_snr(self) -> None:
        num_left = 0
        for seed in range(150):
            problem = drawn(seed, max_devices=25, max_blocks=9)
            table = candidate_pairs(problem)
            if table.unit_cost.size and not is_known(problem):
                assert both(problem)[1] is None
                num_left += 1
        assert 0 < num_left < 75  # some, and most are searched by the library

    def test_tables_that_are_large_or_empty(self) -> None:
        large = replace(paper_problem(0, num_devices=250, num_blocks=20), channel_gain=0.5)
        rng = np.random.default_rng(0)
        large = replace(large, channel_gain=np.sort(rng.uniform(0.1, 1, 250)))
        large = replace(large, contribution=np.sort(rng.uniform(0, 10, 250))[::-1])
        assert candidate_pairs(large).unit_cost.size > MOST_PAIRS
        assert both(large)[1] is None
        assert both(replace(small_problem(), contribution=[-1.0, -1.0, -1.0]))[1] is None

    def test_without_a_compiler_the_answer_is_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        problem = paper_problem(3)
        found = allocate(problem)
        monkeypatch.setattr(compiled_search, "library", lambda source: None)
        alone = allocate(problem)
        assert alone.block_of_device.tolist() == found.block_of_device.tolist()
        assert alone.transmit_power_w.tolist() == found.transmit_power_w.tolist()
        assert (alone.objective, alone.upper_bound, alone.iterations, alone.trace.tolist()) == (
            found.objective,
            found.upper_bound,
            found.iterations,
            found.trace.tolist(),
        )

    def test_a_search_that_finds_no_memory_is_left_to_python(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Full:
            def fedwave_search(self, *_: object) -> int:
                return -1

        monkeypatch.setattr(compiled_search, "library", lambda source: Full())
        assert both(small_problem())[1] is None
        assert allocate(small_problem()).status is Status.OPTIMAL

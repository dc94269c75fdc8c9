"""Joint device selection, radio blocks, power and CPU frequency for one round. Needs numpy and scipy alone.

The files of this folder are the public face: problem, solution, methods and what is done with them. Inside,
``computing`` solves (SP1) and ``uploads`` holds the parts of (SP2); ``optimal`` and ``baselines`` are methods
made of both.

>>> import numpy as np
>>> from fedwave.allocation import AllocationProblem, allocate
>>> problem = AllocationProblem(
...     contribution=np.array([5.0, 3.0, 4.0]), channel_gain=np.array([0.9, 0.5, 0.2]),
...     interference_w=np.array([0.1, 0.4]), max_power_w=1.0, workload_cycles=0.5, max_frequency_hz=2.0,
...     capacitance=0.5, model_bits=1, bandwidth_hz=1, noise_psd_w_per_hz=1, energy_weight=1, delay_weight=1)
>>> allocate(problem).block_of_device
array([ 1,  0, -1])
"""

from __future__ import annotations

from fedwave.allocation.batch_solve import allocate_many
from fedwave.allocation.comparison import TimedAllocation, compare_methods
from fedwave.allocation.constraints import violations
from fedwave.allocation.description import ObjectiveTerm, describe, describe_front, objective_terms
from fedwave.allocation.evaluation import Evaluation, evaluate
from fedwave.allocation.methods import METHOD, METHODS, Method, allocate, find_method, method_options
from fedwave.allocation.pareto import ParetoFront, pareto_front
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.problem_file import example_problem, load_problem, parse_problem
from fedwave.allocation.solution import Allocation, DeviceCosts, Status, account, build_allocation, total_cost

__all__ = [
    "METHOD",
    "METHODS",
    "Allocation",
    "AllocationProblem",
    "DeviceCosts",
    "Evaluation",
    "Method",
    "ObjectiveTerm",
    "ParetoFront",
    "Status",
    "TimedAllocation",
    "account",
    "allocate",
    "allocate_many",
    "build_allocation",
    "compare_methods",
    "describe",
    "describe_front",
    "evaluate",
    "example_problem",
    "find_method",
    "load_problem",
    "method_options",
    "objective_terms",
    "pareto_front",
    "parse_problem",
    "total_cost",
    "violations",
]

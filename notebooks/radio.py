# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Who should upload, and what does it cost?
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/fedwave/fedwave/blob/main/notebooks/radio.ipynb)
# [![Open in Binder](https://mybinder.org/badge_logo.svg)](https://mybinder.org/v2/gh/fedwave/fedwave/main?labpath=notebooks/radio.ipynb)
#
# Forty devices in a 5G street cell have something to send, and there are eight blocks. Which devices upload, on which block, with what power and CPU frequency?
# We solve one round to a proven optimum, see what simpler rules lose, and where planning begins to pay. Nothing is trained here: numpy, scipy and matplotlib suffice.

# %%
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("fedwave") is None:  # on Colab, for example
    wanted = "fedwave[plots]"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", wanted], check=True)

# %%
import numpy as np

from fedwave import allocate, compare_methods, load_cell, pareto_front, problem_of_cell, violations
from fedwave.plots.allocation import plot_allocation, plot_pareto
from fedwave.plots.style import Picture

# %% [markdown]
# ## A cell and a round
#
# The preset is TR 38.901's street canyon at 3.5 GHz. The server maximises
#
# $$U - \eta_1 E - \eta_2 T, \qquad U = \sum_{i\ \mathrm{uploads}} u_i,$$
#
# with the joules $E$ and the seconds $T$ of the round. The contributions $u_i$ come from learning; here we draw them.

# %%
cell = load_cell("umi-3.5ghz", num_devices=40, seed=0, overrides={"num_blocks": 8})
worth = np.random.default_rng(0).uniform(0, 2, 40)
problem = problem_of_cell(cell, worth, model_bits=1e6, energy_weight=0.2, delay_weight=1.0)
plan = allocate(problem)
print(f"objective {plan.objective:.3f}; nothing feasible is above {plan.upper_bound:.3f}")
print(f"{plan.num_selected} uploads in {plan.upload_delay_s:.2f} s with {plan.energy_j:.2f} J")
assert not violations(problem, plan)

# %%
Picture(plot_allocation(problem, plan))

# %% [markdown]
# ## What do simpler rules lose?

# %%
compared = compare_methods(problem, seed=0)
lost = {name: 1 - timed.allocation.objective / plan.objective for name, timed in compared.items()}
for name, share in lost.items():
    print(f"{name:18s} objective {compared[name].allocation.objective:6.2f}   lost {share:6.1%}")
close = [name for name, share in lost.items() if share < 0.01]
print("Within one per cent of the optimum, which is what tells us so:", ", ".join(close))

# %% [markdown]
# ## When does planning pay?
#
# With many devices for each block somebody always has a good link. Take devices away, and see what two simple rules lose of the optimum: `value-rate`, which only sorts,
# and `threshold`, which tries twenty SNRs. Medians of ten draws of the cell.

# %%
for num_devices in (40, 20, 10, 8):
    lost = {"value-rate": [], "threshold": []}
    for seed in range(10):
        drawn = load_cell("umi-3.5ghz", num_devices=num_devices, seed=seed, overrides={"num_blocks": 8})
        worth = np.random.default_rng(seed).uniform(0, 2, num_devices)
        some = problem_of_cell(drawn, worth, model_bits=1e6, energy_weight=0.2, delay_weight=1.0)
        best = allocate(some).objective
        for rule, shares in lost.items():
            shares.append(1 - allocate(some, rule).objective / best)
    said = ", ".join(
        f"{rule} {np.median(shares):6.1%} (at most {max(shares):.1%})" for rule, shares in lost.items()
    )
    print(f"{num_devices:2d} devices on 8 blocks lose with {said}")

# %% [markdown]
# ## Joules against seconds
#
# Every point is the optimum for other weights: going down costs seconds.

# %%
Picture(plot_pareto(pareto_front(problem, weights=np.geomspace(0.01, 30, 8))))

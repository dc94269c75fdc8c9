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
# # The paper in ten minutes
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/fedwave/fedwave/blob/main/notebooks/paper_in_ten_minutes.ipynb)
# [![Open in Binder](https://mybinder.org/badge_logo.svg)](https://mybinder.org/v2/gh/fedwave/fedwave/main?labpath=notebooks/paper_in_ten_minutes.ipynb)
#
# Yue, Ren, Xin, Zhang, Zhang and Zhuang, *Efficient Federated Meta-Learning Over Multi-Access Wireless Networks*, IEEE JSAC 40 (5), 2022
# ([arXiv:2108.06453](https://arxiv.org/abs/2108.06453)), in its equations, each with the few lines that compute it. At the end: what holds when one does it again.

# %%
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("fedwave") is None:  # on Colab, for example
    wanted = "fedwave[learn,frames]"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", wanted], check=True)

# %%
import tempfile
from pathlib import Path

import numpy as np
import torch

# %% [markdown]
# ## 1. A model that is good after one step: Eq. (1) and (3)
#
# $$\min_\theta \frac1n\sum_i F_i(\theta), \qquad F_i(\theta) = f_i\bigl(\theta - \alpha\nabla f_i(\theta)\bigr)$$
#
# Its gradient has a Hessian in it, $\nabla F_i = (I - \alpha\nabla^2 f_i)\,\nabla f_i(\theta - \alpha\nabla f_i)$. On a quadratic $f(\theta) = \frac12\theta^\top A\theta$ it is
# $(I - \alpha A)\,A\,(I - \alpha A)\,\theta$ in closed form, which autograd must reproduce.

# %%
alpha = 0.1
A = torch.diag(torch.tensor([1.0, 4.0], dtype=torch.float64))
theta = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)


def f(w):
    return 0.5 * w @ A @ w


(inner,) = torch.autograd.grad(f(theta), theta, create_graph=True)
(meta,) = torch.autograd.grad(f(theta - alpha * inner), theta)
step = torch.eye(2, dtype=torch.float64) - alpha * A
print("autograd   ", meta.numpy())
print("closed form", (step @ A @ step @ theta).detach().numpy())
assert torch.allclose(meta, step @ A @ step @ theta)

# %% [markdown]
# ## 2. Whose update is worth most: Eq. (21) and (22)
#
# $$u_i = \lVert g_i\rVert^2 - 2\left(\lambda_1 + \frac{\lambda_2}{\sqrt{D_i}}\right)\lVert g_i\rVert$$
#
# NUFM takes the devices with the largest $u_i$. As a function of the gradient's norm it falls before it rises: below the turning point, the *smaller* gradient is preferred.

# %%
norm = np.linspace(0, 4, 9)
worth = norm**2 - 2 * (1.0 + 1.0 / np.sqrt(100)) * norm
for length, u in zip(norm, worth, strict=True):
    print(f"|g| = {length:.1f}   u = {u:6.2f}   {'#' * max(0, round(2 * (u + 1.5)))}")
print("turning point at |g| =", norm[worth.argmin()], "on this grid; exactly", 1.0 + 1.0 / np.sqrt(100))

# %% [markdown]
# ## 3. One round of NUFM, and ten

# %%
from fedwave import load_experiment, run_experiment

folder = Path(tempfile.mkdtemp())
settings = ["num_rounds=10", "model.kind=softmax"]
nufm = run_experiment(load_experiment("digits/nufm", settings), folder / "nufm", progress=True)
nufm.rounds[["round", "train_loss", "heldout_accuracy", "num_received"]].tail(3).round(3)

# %% [markdown]
# ## 4. Over the air: Eq. (25) to (29) and problem (P)
#
# A device that sends at power $p$ over a block of $B$ hertz reaches
#
# $$r = B\log_2\left(1 + \frac{p\,h}{I + B N_0}\right),$$
#
# its upload takes $S/r$ seconds and $p\,S/r$ joules, and the server maximises $U - \eta_1 E - \eta_2 T$ over devices, blocks, powers and CPU frequencies.

# %%
from fedwave import allocate, load_cell, problem_of_cell

cell = load_cell("paper", num_devices=100, seed=3)  # Table III
problem = problem_of_cell(cell, contribution=np.random.default_rng(3).uniform(0, 10, 100))
best, printed = allocate(problem), allocate(problem, "ives")
print(f"certified optimum:   {best.objective:7.2f} in {best.upload_delay_s:6.2f} s of uploads")
print(f"the paper's IVES:    {printed.objective:7.2f} in {printed.upload_delay_s:6.2f} s of uploads")

# %%
device = best.selected[0]
block = best.block_of_device[device]
gain = np.broadcast_to(problem.channel_gain.reshape(100, -1), (100, problem.num_blocks))[device, block]
noise_w = np.broadcast_to(problem.interference_w, problem.num_blocks)[block]
noise_w = noise_w + problem.bandwidth_hz * problem.noise_psd_w_per_hz
rate = problem.bandwidth_hz * np.log2(1 + best.transmit_power_w[device] * gain / noise_w)
print(f"device {device}: {rate:.6g} bit/s by Eq. (25), {best.account.rate_bps[device]:.6g} by the plan")
assert np.isclose(rate, best.account.rate_bps[device])

# %% [markdown]
# ## 5. What holds when one does it again
#
# - NUFM's held-out loss is <!--=reproduction.lead_5-->15.56 ± 3.44 %<!--/=--> below Per-FedAvg's in round 5 on Fashion-MNIST, and <!--=reproduction.lead_50-->0.99 ± 3.22 %<!--/=--> in round 50. Its
#   accuracy differs by <!--=reproduction.nufm_minus_per_fedavg-->+0.79 ± 0.95 points<!--/=--> over <!--=reproduction.seeds-->20<!--/=--> seeds.
# - IVES as printed loses <!--=ives.uniform_lost-->26 %<!--/=--> of the objective in the median of 100 draws with u ~ U(0, 10); from ten starts <!--=ives.uniform_mended-->0.30 %<!--/=-->. It is its start that fails.
# - In a calibrated street cell a threshold rule of twenty lines takes <!--=street_cell.threshold_time_ratio-->1.00 × (0.98–1.02)<!--/=--> the time of the proven optimum and <!--=street_cell.threshold_energy_ratio-->1.00 × (0.99–1.00)<!--/=--> its energy.
#   A rule that only sorts (value-rate) loses <!--=planning.value_rate-->0.34 %<!--/=--> of the objective there, and <!--=planning.value_rate_few-->26 %<!--/=--> where there are as few devices as blocks.
#
# `fedwave reproduce` makes every table and figure of the paper again and judges its claims by a stated test; the numbers are on the page *Reproducing the paper*.

"""Products in bfloat16: what is rounded, what is not, and who is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fedwave.errors import ConfigError
from fedwave.learning import precision
from fedwave.learning.precision import product_type, products_in, require_precision
from tests.devices.pools import NUM_DEVICES, local_work

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("flags", "is_fine"),
    [
        ("flags : fpu avx512f avx512_bf16", True),
        ("flags : fpu amx_bf16", True),
        ("Features : fp bf16", True),
        ("flags : fpu avx512f avx512_vnni", False),
    ],
)
def test_a_cpu_without_the_instructions_is_refused_with_the_reason(
    flags: str, is_fine: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(flags)
    monkeypatch.setattr(precision, "_CPU_INFO", tmp_path / "cpuinfo")
    require_precision("float32", CPU)
    if is_fine:
        require_precision("bfloat16", CPU)
        return
    with pytest.raises(ConfigError) as caught:
        require_precision("bfloat16", CPU)
    assert str(caught.value) == (
        'execution.precision cannot be "bfloat16": this CPU has no bfloat16 products (none of avx512_bf16, '
        f'amx_bf16, bf16 in {tmp_path / "cpuinfo"}). Use "float32".'
    )


def test_a_machine_that_does_not_say_what_it_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_CPU_INFO", Path("/nowhere"))
    with pytest.raises(ConfigError, match="no bfloat16 products"):
        require_precision("bfloat16", CPU)
    with pytest.raises(ConfigError, match="meta has no bfloat16 products"):
        require_precision("bfloat16", torch.device("meta"))


def test_only_single_precision_is_rounded() -> None:
    single, double = torch.ones(1), torch.ones(1, dtype=torch.float64)
    for name, expected in {"float32": torch.float32, "bfloat16": torch.bfloat16}.items():
        with products_in(name, CPU):
            assert product_type(single) == expected
            assert product_type(double) == torch.float64
    assert product_type(single) == torch.float32


@pytest.mark.parametrize("kind", ["cnn", "mlp", "tests.learning.models.user_modules:small_user_net"])
def test_a_round_in_bfloat16_is_near_that_in_float32_and_keeps_models_in_float32(kind: str) -> None:
    everyone = np.arange(NUM_DEVICES)
    work = local_work(kind, num_local_steps=1)
    start = work.model.initial_parameters(np.random.default_rng(0))
    exact = work.compute(0, start, everyone)
    rounded = replace(work, precision="bfloat16").compute(0, start, everyone)
    for name, value in rounded.parameters.items():
        change, other = value - start[name], exact.parameters[name] - start[name]
        assert value.dtype == torch.float32
        assert float((change - other).norm()) <= 0.1 * float(other.norm()), name
    np.testing.assert_allclose(rounded.gradient_norms, exact.gradient_norms, rtol=0.05)
    np.testing.assert_allclose(rounded.loss, exact.loss, rtol=0.02)
    assert not np.array_equal(rounded.gradient_norms, exact.gradient_norms)

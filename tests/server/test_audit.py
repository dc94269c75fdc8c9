"""The audit against models that really took local steps, and against liars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ConfigError
from fedwave.server.audit import ContributionAudit

AUDIT = ContributionAudit(meta_lr=0.01, similarity_penalty=1.0, variance_penalty=1.0)


def float32_steps(
    num_steps: int, seed: int = 0, size: int = 2000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A model before and after steps in single precision, and the norms of its gradients."""
    rng = np.random.default_rng(seed)
    before = rng.normal(size=size).astype(np.float32)
    after, norms = before, []
    for _ in range(num_steps):
        gradient = rng.normal(size=size).astype(np.float32) / np.float32(30)
        after = after - np.float32(0.01) * gradient
        norms.append(float(np.linalg.norm(gradient.astype(np.float64))))
    return before, after, np.array(norms)


def test_norms_are_those_of_numpy_over_all_arrays() -> None:
    before = {"a": np.array([[1.0, 2.0]], np.float32), "b": np.array([3.0], np.float32)}
    after = {"b": np.array([0.0], np.float32), "a": np.array([[1.0, 6.0]], np.float32)}
    assert AUDIT.norms(before, after) == (5.0, pytest.approx(np.sqrt(37.0)))  # 3, 4, 5; 1 + 36 + 0


def test_buffers_are_no_part_of_the_gradient() -> None:
    before = {"w": np.array([1.0, 2.0], np.float32), "mean": np.float32(0.0), "count": np.int64(3)}
    after = {"w": np.array([4.0, 6.0], np.float32), "mean": np.float32(99.0), "count": np.int64(9)}
    audit = replace(AUDIT, trainable={"w": None})  # as of a torch module: dict(net.named_parameters())
    assert audit.norms(before, after) == (5.0, pytest.approx(np.sqrt(52.0)))
    audit.require_names_of(before)
    AUDIT.require_names_of(before)


def test_a_step_too_large_for_double_precision_does_not_fit() -> None:
    huge = {"w": np.array([1e300])}
    assert AUDIT.norms({"w": np.array([-1e300])}, huge) == (np.inf, np.inf)
    assert AUDIT.of_upload(np.array([1.0]), np.inf, 1.0) is not None


@pytest.mark.parametrize(("names", "got"), [(["w", "v"], r"\['v'\]"), ([], r"\[\]")])
def test_an_audit_of_other_arrays_than_the_models_is_refused(names: list[str], got: str) -> None:
    with pytest.raises(ConfigError, match=f"trainable must name arrays of the model, got {got}"):
        replace(AUDIT, trainable=names).require_names_of({"w": 0})


def test_a_report_must_be_equation_21_of_its_own_numbers() -> None:
    # By hand: D = 4, so the turning point is 1 + 1 / 2; u = 9 - 2 * 1.5 * 3 = 0, then 16 - 2 * 1.5 * 4 = 4.
    assert AUDIT.of_report(4.0, np.array([3.0, 4.0]), 4) is None
    assert AUDIT.of_report(4.01, np.array([3.0, 4.0]), 4) is None  # terms of 46: rounding is relative to them
    said = AUDIT.of_report(400.0, np.array([3.0, 4.0]), 4)
    assert said == "contribution 400 is not that of its gradient norms, 4"
    assert AUDIT.of_report(4.0, np.array([3.0, 4.0]), 16) is not None  # more samples, another u
    assert AUDIT.of_report(1e308, np.array([1e160]), 4) is not None  # overflows, and is not believed


@pytest.mark.parametrize("num_steps", [1, 2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_honest_devices_pass(num_steps: int, seed: int) -> None:
    before, after, norms = float32_steps(num_steps, seed)
    assert AUDIT.of_upload(norms, *AUDIT.norms({"w": before}, {"w": after})) is None


def test_with_one_step_the_norm_itself_is_known() -> None:
    before, after, norms = float32_steps(1)
    step = AUDIT.norms({"w": before}, {"w": after})
    for factor in (0.98, 1.02, 10.0, 0.0):
        said = AUDIT.of_upload(norms * factor, *step)
        assert said is not None
        assert said.startswith("the model moved by a gradient of norm 1.4")


@given(
    st.lists(st.floats(0.01, 100.0), min_size=2, max_size=5),
    st.integers(0, 1000),
)
def test_with_several_steps_no_true_triangle_is_refused(lengths: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(len(lengths), 3))
    steps *= (np.array(lengths) / np.linalg.norm(steps, axis=1))[:, None]
    moved = float(np.linalg.norm(steps.sum(0))) * AUDIT.meta_lr
    assert AUDIT.of_upload(np.array(lengths), moved, 0.0) is None


def test_with_several_steps_what_no_triangle_allows_is_refused() -> None:
    exact = ContributionAudit(meta_lr=1.0, similarity_penalty=1.0, variance_penalty=1.0, tolerance=0.0)
    assert exact.of_upload(np.array([3.0, 4.0]), 7.0, 0.0) is None  # straight on
    assert exact.of_upload(np.array([3.0, 4.0]), 1.0, 0.0) is None  # and back again
    assert exact.of_upload(np.array([3.0, 4.0]), 7.01, 0.0) is not None
    said = exact.of_upload(np.array([3.0, 4.0]), 0.99, 0.0)
    assert said == "the model moved by a gradient of norm 0.99, the report allows 1 to 7"
    assert exact.of_upload(np.array([100.0, 100.0]), 1.0, 0.0) is None  # a lie that the triangle allows
    strict = ContributionAudit(
        meta_lr=1.0, similarity_penalty=1.0, variance_penalty=1.0, tolerance=0.0, max_cancellation=3.0
    )
    assert strict.of_upload(np.array([100.0, 100.0]), 1.0, 0.0) is not None
    assert strict.of_upload(np.array([1.0, 2.0]), 1.0, 0.0) is None


def test_a_small_step_of_a_large_model_is_allowed_its_rounding() -> None:
    rng = np.random.default_rng(3)
    before = (1e5 * rng.normal(size=5000)).astype(np.float32)
    gradient = rng.normal(size=5000).astype(np.float32)
    after = before - np.float32(0.01) * gradient  # float32 resolves 0.008 of such values
    norms = np.array([np.linalg.norm(gradient.astype(np.float64))])
    step, size = AUDIT.norms({"w": before}, {"w": after})
    assert abs(step / 0.01 - norms[0]) > AUDIT.tolerance * norms[0]  # rounding alone is more than that
    assert AUDIT.of_upload(norms, step, size) is None


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="an audit needs meta_lr > 0"):
        ContributionAudit(meta_lr=0.0, similarity_penalty=1.0, variance_penalty=1.0)
    with pytest.raises(ConfigError, match="max_cancellation must be >= 1, got 0.5"):
        ContributionAudit(meta_lr=1.0, similarity_penalty=1.0, variance_penalty=1.0, max_cancellation=0.5)

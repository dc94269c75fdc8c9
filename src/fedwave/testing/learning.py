"""The contracts of local rules, server steps, tasks and models: devices of a stack do not see each other."""

from __future__ import annotations

import copy
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from fedwave.errors import FedwaveError
from fedwave.learning import Batch, LocalStep, Metric, Model, Parameters, average
from fedwave.learning.models import MODEL, UserModel, build_model
from fedwave.learning.rules import RULE
from fedwave.learning.server_steps import SERVER_STEP
from fedwave.learning.tasks import TASK
from fedwave.testing.contract import Contract, create

SIZES = (4, 1, 6)  # samples of three devices; the shorter ones are padded
NUM_OUTPUTS = 3
STACKED = "Devices compute in stacks: let no device, and no padded sample, touch another's numbers."


def check_rule(part: Any, /, **options: Any) -> None:
    """Raise unless a local rule keeps its contract on a linear regression of three devices.

    It is called with its options and with those of ``inner_lr`` and ``meta_lr`` that it names.
    """
    contract = Contract.of(part)
    rule = create(RULE, part, options, inner_lr=0.1, meta_lr=0.05)
    pools: object = rule.pools_samples
    contract.require(isinstance(pools, bool), ".pools_samples must be True or False", pools, "Say which.")
    rng = torch.Generator().manual_seed(0)
    parameters = {
        "w": torch.randn(3, 2, NUM_OUTPUTS, generator=rng),
        "b": torch.randn(3, NUM_OUTPUTS, generator=rng),
    }
    start = {name: value[:1].expand_as(value) + 0.5 for name, value in parameters.items()}
    query, support = _batch("values", rng), None if pools else _batch("values", rng)

    def loss(own: Parameters, batch: Batch) -> Tensor:
        outputs = torch.baddbmm(own["b"][:, None], batch.inputs, own["w"])
        return ((outputs - batch.targets).square().mean(-1) * batch.weights).sum(1)

    def step(one: Any, rows: slice) -> LocalStep:
        def rows_of(batch: Batch | None) -> Batch | None:
            return (
                None if batch is None else Batch(batch.inputs[rows], batch.targets[rows], batch.weights[rows])
            )

        stacks = ({name: value[rows] for name, value in stack.items()} for stack in (parameters, start))
        own, first = stacks
        answer: LocalStep = contract.answer(
            "step", one.step, loss, own, rows_of(support), rows_of(query), start=first
        )
        return answer

    got = step(rule, slice(None))
    fix = "Return LocalStep(parameters, gradient_norm, loss), all stacked by device."
    contract.require(isinstance(got, LocalStep), ".step must return a LocalStep", got, fix)
    _require_like(contract, ".step", got.parameters, parameters)
    for name, values in (("gradient_norm", got.gradient_norm), ("loss", got.loss)):
        contract.require(
            values.shape == (3,), f".step must return {name} for each device", tuple(values.shape), fix
        )
        contract.require(torch.isfinite(values).all(), f".step must return a finite {name}", values, fix)
    contract.require((got.gradient_norm >= 0).all(), ".step must return norms >= 0", got.gradient_norm, fix)
    tensors = [*got.parameters.values(), got.gradient_norm, got.loss]
    has_graph = any(value.requires_grad for value in tensors)
    contract.require(
        not has_graph, ".step must return numbers", "a graph", "Take the step in torch.no_grad()."
    )
    travelled = contract.copied(rule)
    contract.same(got, step(travelled, slice(None)), ".step must be the same in another process")
    for device in range(3):
        alone = step(rule, slice(device, device + 1))
        for one, all_of_them in zip(
            [*alone.parameters.values(), alone.gradient_norm, alone.loss], tensors, strict=True
        ):
            _require_close(
                contract, ".step of a device must not depend on the others", one[0], all_of_them[device]
            )


def check_server_step(part: Any, /, **options: Any) -> None:
    """Raise unless a server step keeps its contract: models are read once, its state is handed in and out."""
    contract = Contract.of(part)
    step = create(SERVER_STEP, part, options)
    theta, *models = (_random_model(seed) for seed in range(5))
    state = contract.answer("initial_state", step.initial_state, theta)
    weights = np.array([1.0, 2.0, 0.5, 4.0])
    for given in (None, weights):
        results = []
        for one in (step, step, contract.copied(step)):
            # The models come one at a time, and only once.
            def once(one: Any = one, given: Any = given) -> Any:
                return one.step(theta, iter(models), given, state)

            before = copy.deepcopy((theta, models, given, state))
            results.append(contract.call("step", once))
            contract.same(before, (theta, models, given, state), ".step must leave its inputs alone")
        contract.same(results[0], results[1], ".step must remember nothing but its state")
        contract.same(results[0], results[2], ".step must be the same in another process")
        after, next_state = results[0]
        _require_like(contract, ".step", after, theta)
        _require_like(contract, ".step's state", next_state, state)
        again, _ = contract.call(
            "step", lambda kept=next_state: step.step(theta, iter(models[:1]), None, kept)
        )
        _require_like(contract, ".step with one model", again, theta)
    _check_needs_each_model(contract, step, theta, models, state)
    one, other = (step.step(theta, iter(models), scale * weights, state)[0] for scale in (1.0, 8.0))
    for name, value in one.items():
        what = ".step must not depend on the scale of the weights"
        _require_close(
            contract, what, value, other[name], fix="Divide by their sum, as average(models, weights) does."
        )


def _check_needs_each_model(
    contract: Contract, step: Any, theta: Parameters, models: list[Parameters], state: Parameters
) -> None:
    """Raise unless a step that says so makes of the models' mean what it makes of the models."""
    needs_each: object = getattr(step, "needs_each_model", None)
    what = ".needs_each_model must be True or False"
    contract.require(isinstance(needs_each, bool), what, needs_each, "Say False if the mean would do.")
    if needs_each:
        return
    each, mean = (step.step(theta, given, None, state)[0] for given in (models, [average(models)]))
    for name, value in each.items():
        what = ".step must make the same of the mean with needs_each_model = False"
        _require_close(contract, what, mean[name], value, fix="Say needs_each_model = True.")


def check_task(part: Any, /, *, learns: Literal["classes", "values"] = "classes", **options: Any) -> None:
    """Raise unless a task keeps its contract on three devices: padded samples count for nothing, …"""
    contract = Contract.of(part)
    task = create(TASK, part, options)
    metric: object = task.metric
    contract.require(
        isinstance(metric, Metric), ".metric must be a Metric", metric, "Use fedwave.learning.Metric."
    )
    rng = torch.Generator().manual_seed(0)
    batch = _batch(learns, rng)
    outputs = 3 * torch.randn(3, max(SIZES), NUM_OUTPUTS, generator=rng)
    loss = contract.answer("loss", task.loss, outputs, batch)
    scores = contract.answer("scores", task.scores, outputs, batch)
    fix = "Weigh the losses of the samples: (per_sample * batch.weights).sum(1)."
    contract.require(tuple(loss.shape) == (3,), ".loss must have shape (devices,)", tuple(loss.shape), fix)
    per_sample = tuple(scores.shape) == (3, max(SIZES))
    contract.require(
        per_sample, ".scores must have shape (devices, samples)", tuple(scores.shape), "Do not average."
    )
    for name, values in (("loss", loss), ("scores", scores)):
        is_real = values.is_floating_point() and bool(torch.isfinite(values).all())
        contract.require(is_real, f".{name} must be finite real numbers", values, "Use outputs.dtype.")
    if task.metric.is_share:
        within = bool(((scores >= 0) & (scores <= 1)).all())
        contract.require(within, ".scores of a share must lie in 0 to 1", scores, "Or say is_share=False.")
    padded = outputs + (batch.weights == 0)[..., None] * torch.arange(7.0, 7.0 + NUM_OUTPUTS)
    _require_close(contract, ".loss must not count padded samples", task.loss(padded, batch), loss, fix=fix)
    for device, size in enumerate(SIZES):
        rows = slice(device, device + 1)
        own = Batch(batch.inputs[rows, :size], batch.targets[rows, :size], batch.weights[rows, :size])
        alone = outputs[rows, :size]
        _require_close(contract, ".loss of a device must be its own", task.loss(alone, own)[0], loss[device])
        what = ".scores of a device must be its own"
        _require_close(contract, what, task.scores(alone, own)[0], scores[device, :size])
    leaf = outputs.clone().requires_grad_()
    value = task.loss(leaf, batch).sum()
    fix = "Leave out detach(), argmax and torch.no_grad()."
    contract.require(value.requires_grad, ".loss must be differentiable", "a loss without a graph", fix)
    (gradient,) = torch.autograd.grad(value, leaf)
    contract.require(torch.isfinite(gradient).all(), ".loss must have a finite gradient", gradient, fix)
    travelled = contract.copied(task)
    contract.same(loss, travelled.loss(outputs, batch), ".loss must be the same in another process")


def check_model(
    part: Any,
    /,
    *,
    input_shape: tuple[int, ...] = (1, 8, 8),
    num_outputs: int = NUM_OUTPUTS,
    num_tokens: int | None = None,
    **options: Any,
) -> None:
    """Raise unless a model keeps its contract: a stack of devices gives what each of them gives alone.

    The part returns an ``nn.Module`` or a ``Model``. With ``num_tokens`` the inputs are token ids below it.
    """
    contract = Contract.of(part)
    shape, rng = (3, 6, *input_shape), torch.Generator().manual_seed(0)
    inputs = torch.randn(shape, generator=rng)
    if num_tokens is not None:
        inputs = torch.randint(num_tokens, shape, generator=rng)
    model = _model(contract, part, input_shape, num_outputs, inputs.flatten(0, 1)[:6], options)
    models = [
        contract.call("initial_parameters", model.initial_parameters, rng=np.random.default_rng(s))
        for s in range(3)
    ]
    same = model.initial_parameters(np.random.default_rng(0))
    contract.same(models[0], same, ".initial_parameters must follow rng alone")
    for name, value in models[0].items():
        is_real = value.dtype == torch.float32 and not value.requires_grad
        contract.require(
            is_real, f".initial_parameters must be plain float32, {name}", str(value.dtype), "Detach it."
        )
    stacked = {name: torch.stack([own[name] for own in models]) for name in models[0]}
    outputs = contract.answer("outputs", model.outputs, stacked, inputs)
    fix = "Return a number for each class or value to predict."
    expected = (3, 6, num_outputs)
    contract.require(
        tuple(outputs.shape) == expected, f".outputs must have shape {expected}", tuple(outputs.shape), fix
    )
    contract.require(outputs.dtype == torch.float32, ".outputs must be float32", str(outputs.dtype), fix)
    contract.require(
        torch.isfinite(outputs).all(), ".outputs must be finite", outputs, "Start from smaller weights."
    )
    for device, own in enumerate(models):
        one = {name: value[None] for name, value in own.items()}
        alone = model.outputs(one, inputs[device : device + 1])[0]
        _require_close(contract, ".outputs of a device must not depend on the others", alone, outputs[device])
        with torch.no_grad():
            plain = model.to_module(own)(inputs[device])
        fix = "Let to_module be the same network."
        _require_close(contract, ".outputs must be those of to_module", plain, outputs[device], fix=fix)
        state = model.to_state_dict(own)
        contract.same(
            dict(model.to_module(own).state_dict()), dict(state), ".to_state_dict must be to_module's own"
        )
        back = contract.call("from_state_dict", model.from_state_dict, state)
        contract.same(
            dict(sorted(own.items())), dict(sorted(back.items())), ".from_state_dict must give it back"
        )
    flipped = model.outputs(stacked, inputs.flip(1)).flip(1)
    _require_close(contract, ".outputs of a sample must not depend on its neighbours", flipped, outputs)
    few = model.outputs(stacked, inputs[:, :1])
    _require_close(contract, ".outputs of one sample must be those among others", few, outputs[:, :1])
    travelled = contract.copied(model)
    contract.same(outputs, travelled.outputs(stacked, inputs), ".outputs must be the same in another process")
    _check_refusal(contract, model, model.to_state_dict(models[0]))


def _model(
    contract: Contract,
    part: Any,
    input_shape: tuple[int, ...],
    num_outputs: int,
    samples: Tensor,
    options: dict[str, Any],
) -> Model:
    """Return the model that a name, a factory of the user's own, or an entry of ``MODELS`` makes."""
    if isinstance(part, str):
        return build_model(part, input_shape, num_outputs, samples=samples, **options)
    offered = {"input_shape": input_shape, "num_outputs": num_outputs, "num_classes": num_outputs}
    made = create(MODEL, part, options, **offered)
    if isinstance(made, nn.Module):
        return UserModel(part, input_shape, num_outputs, samples=samples, options=options)
    missing = [name for name in ("initial_parameters", "outputs", "to_module") if not hasattr(made, name)]
    fix = "Return an nn.Module."
    contract.require(not missing, " must return an nn.Module or a Model", made, fix)
    model: Model = made
    return model


def _check_refusal(contract: Contract, model: Model, state: Parameters) -> None:
    """Raise unless a state dict of another network is refused."""
    try:
        model.from_state_dict({**state, "of another network": torch.zeros(1)})
    except FedwaveError:
        return
    fix = "Call require_layout(state, ...) of fedwave.learning.models.base."
    contract.require(False, ".from_state_dict must refuse another network's", "no error", fix)


def _batch(learns: str, rng: torch.Generator) -> Batch:
    """Return a batch of three devices; those with fewer samples repeat their first with weight zero."""
    longest = max(SIZES)
    inputs = torch.randn(3, longest, 2, generator=rng)
    classes = torch.randint(NUM_OUTPUTS, (3, longest), generator=rng)
    targets = classes if learns == "classes" else torch.randn(3, longest, NUM_OUTPUTS, generator=rng)
    weights = torch.zeros(3, longest)
    for device, size in enumerate(SIZES):
        weights[device, :size] = 1.0 / size
        inputs[device, size:], targets[device, size:] = inputs[device, 0].clone(), targets[device, 0].clone()
    return Batch(inputs, targets, weights)


def _random_model(seed: int) -> Parameters:
    rng = torch.Generator().manual_seed(seed)
    return {"b": torch.randn(3, generator=rng), "a": torch.randn(2, 2, generator=rng)}


def _require_like(contract: Contract, what: str, got: Any, like: Parameters) -> None:
    """Raise unless tensors have the names, shapes and types of others, and finite numbers."""
    kinds, before = ({n: f"{v.dtype}{tuple(v.shape)}" for n, v in one.items()} for one in (got, like))
    fix = "A checkpoint and the next round rely on it."
    contract.require(kinds == before, f"{what} must return tensors like {before}", str(kinds), fix)
    finite = all(bool(torch.isfinite(value).all()) for value in got.values())
    contract.require(
        finite, f"{what} must return finite numbers", "NaN or infinite values", "Divide by no 0."
    )


def _require_close(contract: Contract, what: str, got: Tensor, expected: Tensor, fix: str = STACKED) -> None:
    """Raise unless tensors agree up to another order of summation."""
    close = got.shape == expected.shape and torch.allclose(got, expected, rtol=1e-3, atol=1e-4)
    contract.require(close, what, f"{got.flatten()[:3].tolist()} and {expected.flatten()[:3].tolist()}", fix)

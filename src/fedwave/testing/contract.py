"""What all checks share: a part is made, called twice on inputs that must stay as they are, and judged."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import ConfigError, FedwaveError, shown
from fedwave.parts import PartKind

Answer = TypeVar("Answer")


class ContractError(FedwaveError, AssertionError):
    """A part does not keep the contract of its kind."""


@dataclass(frozen=True)
class Contract:
    """The judge of one part: every complaint begins with the part's name."""

    name: str

    @classmethod
    def of(cls, part: object) -> Contract:
        """Return the judge of a part."""
        return cls(part if isinstance(part, str) else getattr(part, "__name__", type(part).__name__))

    def require(self, holds: object, what: str, got: object, fix: str) -> None:
        """Raise unless it holds: what must be, what was got instead, how to mend it."""
        if not holds:
            text = got if isinstance(got, str) else shown(got)
            raise ContractError(f"{self.name}{what}, got {text}. {fix}")

    def call(self, what: str, function: Callable[..., Answer], *inputs: Any, **named: Any) -> Answer:
        """Return the answer to one call, which must neither fail nor change its inputs."""
        before = copy.deepcopy((inputs, _without_rng(named)))
        try:
            answer = function(*inputs, **named)
        except ContractError:
            raise
        except Exception as error:
            raise ContractError(
                f"{self.name}.{what} must answer whatever its contract allows, got {type(error).__name__}: "
                f"{error}. Handle this case too: one device, nobody, equal values."
            ) from error
        place = difference(before, (inputs, _without_rng(named)))
        self.require(not place, f".{what} must leave its inputs alone", place, "Work on a copy of them.")
        return answer

    def answer(
        self,
        what: str,
        function: Callable[..., Answer],
        *inputs: Any,
        seed: int | None = None,
        **named: Any,
    ) -> Answer:
        """Return the answer, which must be the same again; with a seed, ``rng`` is passed on too."""

        def once() -> Answer:
            luck = {} if seed is None else {"rng": np.random.default_rng(seed)}
            return self.call(what, function, *inputs, **named, **luck)

        first = once()
        kept = copy.deepcopy(first)
        self.same(kept, once(), f".{what} must answer alike to the same inputs and the same rng")
        self.same(kept, first, f".{what} must return arrays that later calls do not change")
        return first

    def copied(self, part: Answer) -> Answer:
        """Return a copy of the part, as another process gets one."""
        try:
            return copy.deepcopy(part)
        except Exception as error:
            fix = "Keep no locks, files or generators in it."
            got = f"{type(error).__name__}: {error}"
            self.require(False, " must be such that it can be sent to another process", got, fix)
            raise

    def same(self, one: object, other: object, what: str) -> None:
        """Raise unless two answers are equal to the bit."""
        place = difference(one, other)
        fix = "Draw from rng alone, remember nothing in the object, return new arrays."
        self.require(not place, what, place, fix)

    def array(self, what: str, values: Any, shape: tuple[int | None, ...], *, at_least: float | None) -> None:
        """Raise unless these are finite float64 numbers of this shape (None: any), none too small."""
        fix = "Return a numpy array of float64."
        self.require(isinstance(values, np.ndarray), f"{what} must be an array", values, fix)
        fits = len(values.shape) == len(shape) and all(
            wanted in (None, size) for wanted, size in zip(shape, values.shape, strict=True)
        )
        text = str(shape).replace("None", "any")
        self.require(fits, f"{what} must have shape {text}", values.shape, fix)
        self.require(values.dtype == np.float64, f"{what} must be float64", str(values.dtype), fix)
        self.require(
            np.isfinite(values).all(), f"{what} must be finite", values, "Divide by nothing that is 0."
        )
        if at_least is not None:
            fix = "Powers and gains are linear, not in dB."
            self.require((values >= at_least).all(), f"{what} must be >= {at_least:g}", values, fix)


@contextmanager
def named(kind: PartKind, part: Any) -> Iterator[str]:
    """Give a part a name for as long as it is checked, so that it is found and called as settings do it."""
    if isinstance(part, str):
        kind.find(part)
        yield part
        return
    registry: Any = kind.registry
    name = f"{getattr(part, '__name__', type(part).__name__)} of this check"
    registry[name] = part
    try:
        yield name
    finally:
        del registry[name]


def create(kind: PartKind, part: Any, options: Mapping[str, Any], **offered: Any) -> Any:
    """Return the part, made of its options and of those offers that it names."""
    with named(kind, part) as name:
        kind.require_options(name, options)
        entry = kind.find(name)
        try:
            if not hasattr(entry, "model_fields"):
                return kind.call(entry, options, **offered)
            section = _section(entry, {"kind": part, **options} if isinstance(part, str) else options)
            build = getattr(section, "build", None)
            return section if build is None else PartKind("", {}).call(build, {}, **offered)
        except FedwaveError:
            raise
        except Exception as error:
            contract = Contract.of(part)
            got, fix = f"{type(error).__name__}: {error}", f"It is offered {', '.join(offered) or 'nothing'}."
            contract.require(False, " must be made of its options and what it is offered", got, fix)


def _section(entry: Any, options: Mapping[str, Any]) -> Any:
    """Return the section of settings that the options fill, or say in one line what does not fit."""
    from fedwave.settings.explain import explain

    try:
        return entry.model_validate(options)
    except ValueError as error:
        raise ConfigError(explain(entry, cast("Any", error))) from None


def refuses(make: Callable[[], object]) -> bool:
    """Return whether a part itself says that it cannot be made so, as one that reads a file may."""
    try:
        make()
    except FedwaveError:
        return True
    return False


def difference(one: object, other: object) -> str:
    """Return where two values differ, e.g. ``history.last_loss``, or nothing if they are equal to the bit."""
    here, there = dict(_leaves(one)), dict(_leaves(other))
    if list(here) != list(there):
        return f"other entries: {', '.join(sorted(set(here) ^ set(there))[:3])}"
    for place, value in here.items():
        if not _equal(value, there[place]):
            return f"another {place or 'value'}: {shown(there[place])} instead of {shown(value)}"
    return ""


def _equal(one: Any, other: Any) -> bool:
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return type(one) is type(other) and bool(one == other or (one != one and other != other))
    can_be_nan = one.dtype.kind in "fc" and other.dtype.kind in "fc"
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=can_be_nan)


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the arrays and plain values in it, each with its place."""
    if isinstance(value, np.ndarray | np.generic):
        yield place, np.asarray(value)
    elif hasattr(value, "detach"):  # a tensor; torch need not be there for those who have none
        yield place, value.detach().cpu().numpy()
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{index}]" if place else f"input {index}")
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _leaves(getattr(value, field.name), f"{place}.{field.name}".lstrip("."))
    elif value is None or isinstance(value, bool | int | float | str):
        yield place, value


def _without_rng(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in named.items() if name != "rng"}


def require_devices(contract: Contract, what: str, got: Any, among: Sequence[int] | NDArray[Any]) -> None:
    """Raise unless these are sorted, distinct indices, all of them out of ``among``."""
    fix = "Return candidates.device_index[np.sort(positions)]."
    is_whole = isinstance(got, np.ndarray) and got.ndim == 1 and got.dtype.kind in "iu"
    contract.require(is_whole, f".{what} must return a 1-D array of device indices", got, fix)
    contract.require(
        (np.diff(got) > 0).all(), f".{what} must return sorted, distinct devices", got.tolist(), fix
    )
    strange = sorted(set(got.tolist()) - set(np.asarray(among).tolist()))
    contract.require(not strange, f".{what} must choose among {shown(list(among))}", strange, fix)


def require_state(
    contract: Contract, what: str, state: Any, like: Mapping[str, NDArray[Any]] | None = None
) -> None:
    """Raise unless a state is arrays by name that a checkpoint holds, of the names and kinds before."""
    fix = "A checkpoint must hold it: numbers in numpy arrays, always of the same names, shapes and types."
    contract.require(isinstance(state, Mapping), f".{what} must return arrays by name", state, fix)
    for name, values in state.items():
        is_number = isinstance(values, np.ndarray) and values.dtype.kind in "biuf"
        contract.require(is_number, f".{what} must return an array of numbers as {name}", values, fix)
    if like is not None:
        kinds, before = ({n: f"{v.dtype}{v.shape}" for n, v in one.items()} for one in (state, like))
        contract.require(kinds == before, f".{what} must keep the arrays {before}", str(kinds), fix)


def through_a_checkpoint(state: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return what a checkpoint gives back: names, types, shapes and values, and no memory that is shared."""
    return {
        name: np.array(values.tolist(), dtype=values.dtype).reshape(values.shape)
        for name, values in state.items()
    }

"""A part in settings: ``"name"``, or ``{ kind = "name" or "package.module:Name", ...options }``.

The part's own signature is its schema, or the part is itself a section of settings. A part with a name is
checked when the settings are read, one of the user's own module when it is created: reading the settings of
a finished run needs no module of anybody's (``checks_parts=False`` of ``validate``: not even those with a
name, which whoever ran it may have added).
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NotRequired, Required, Self, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    PydanticUserError,
    SerializationInfo,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError, to_jsonable_python
from pydantic_core.core_schema import ErrorType
from typing_extensions import TypedDict

from fedwave.errors import ConfigError, did_you_mean
from fedwave.parts import PartKind, imported, is_import_name
from fedwave.settings.explain import CHECKS_PARTS, explain, walk
from fedwave.settings.section import Section, file_name, in_float32

_OF_PYDANTIC = get_args(ErrorType)
_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)


class Part(Section):
    """A part that settings name, with its options beside its kind.

    A class of it stands for a kind of part: ``of`` says where its ``PartKind`` is. Fields that it declares
    are common to all parts of the kind. What it reads is of the part's own class, if that is a ``Part`` too.
    """

    model_config = ConfigDict(extra="allow")
    of: ClassVar[str]  # e.g. "fedwave.selection:POLICY"
    checked_when_created: ClassVar[bool] = False  # its dict needs a library that reading settings does not
    reaches_models: ClassVar[bool] = False  # so that its numbers must be such as models can hold
    stand_ins: ClassVar[tuple[str, ...]] = ()  # words that are no part's, e.g. for what Python passes

    kind: str

    @property
    def options(self) -> dict[str, Any]:
        """What is given beside the kind and the common fields."""
        return dict(self.model_extra or {})

    @classmethod
    def kinds(cls) -> PartKind:
        """Return the description of this kind of part."""
        found: PartKind = imported(cls.of, key="kind of part")
        return found

    @classmethod
    def section_of(cls, kind: object) -> type[BaseModel] | None:
        """Return the section that a part of this name is itself, if it is one."""
        if is_import_name(kind) or cls.checked_when_created:
            return None
        entry = cls.kinds().registry.get(str(kind))
        return entry if _is_section(entry) else None

    @classmethod
    def goes_with(cls, old: Mapping[str, Any], new_kind: object) -> set[str]:
        """Return the keys of a table that mean nothing once its kind is another.

        Of a table that also has fields of its own, options that both kinds have stay.
        """
        given = set(old) - set(cls.model_fields)
        if set(cls.model_fields) == {"kind"} or is_import_name(new_kind):
            return given
        kinds = cls.kinds()
        return given - set(kinds.options(str(new_kind))) if new_kind in kinds.registry else given

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, given: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        if cls.model_config.get("extra") != "allow":  # the section of one part
            return handler(given)
        table = {"kind": given} if isinstance(given, str) else given
        if isinstance(table, Part):
            return table
        if not isinstance(table, Mapping):
            raise PydanticCustomError("part_type", "Input should be a name, or a table with a kind")
        kind = table.get("kind", cls.model_fields["kind"].default)
        if not isinstance(kind, str):
            if "kind" in table:
                return handler(table)
            names = ", ".join(f'"{name}"' for name in cls.kinds().registry)
            raise PydanticCustomError("part_kind", "needs a kind. Choose one of: {names}.", {"names": names})
        section = cls.section_of(kind)
        if section is not None:
            return cls._checked(section, {"kind": kind, **table}, kind, context=info.context)
        table = {name: value for name, value in table.items() if value is not None}
        options = {name: value for name, value in table.items() if name not in cls.model_fields}
        for name, value in options.items():
            _require_toml(name, value)
            if cls.reaches_models:
                _require_float32(name, value)
        is_unchecked = info.context is not None and not info.context[CHECKS_PARTS]
        if is_unchecked or is_import_name(kind) or cls.checked_when_created or kind in cls.stand_ins:
            return handler(table)
        kinds = cls.kinds()
        if kind not in kinds.registry:
            said = {"what": kinds.what, "kind": kind, "hint": did_you_mean(kind, kinds.registry)}
            text = 'there is no {what} "{kind}". {hint} Your own is package.module:Name.'
            raise _found("kind", PydanticCustomError("part_unknown", text, said), kind)
        cls._checked(_options_of(kinds, kinds.registry[kind]), options, kind)
        return handler(table)

    @model_serializer(mode="plain")
    def _as_name_or_table(self, info: SerializationInfo) -> Any:
        table = {name: value for name, value in self if value is not None or not info.exclude_none}
        if set(table) == set(type(self).model_fields) == {"kind"}:
            return self.kind
        return to_jsonable_python(table, exclude_none=info.exclude_none) if info.mode == "json" else table

    @classmethod
    def _checked(cls, schema: Any, table: Mapping[str, Any], kind: str, *, context: Any = None) -> Any:
        """Return a table as its schema types it; problems name plain keys, and the nearest to a wrong one."""
        try:
            if _is_section(schema):
                return schema.model_validate(table, context=context)
            return schema.validate_python(table)
        except ValidationError as error:
            problems = [cls._plain(problem, schema, kind) for problem in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(error.title, problems) from None

    @classmethod
    def _plain(cls, problem: Any, schema: Any, kind: str) -> InitErrorDetails:
        """Return a problem with its place in plain keys, so that nobody needs the schema to explain it."""
        is_unknown, place = problem["type"] == "extra_forbidden", [str(key) for key in problem["loc"]]
        if _is_section(schema):
            keys, holder = walk(schema, place, ends_in_unknown_key=is_unknown)
            known = [] if holder is None else [name for name in holder.model_fields if name != "kind"]
        else:
            indices = "".join(f"[{key}]" for key in problem["loc"][1:] if isinstance(key, int))
            keys, known = [f"{place[0]}{indices}"], list(schema.known)
        ctx, sort = problem.get("ctx", {}), problem["type"]
        if is_unknown and len(keys) == 1:
            hint = cls.kinds().hint(kind, keys[0], known, cls.model_fields)
            sort = PydanticCustomError("part_option", "{hint}", {"hint": hint})
        elif is_unknown:
            sort = PydanticCustomError("part_option", "{hint}", {"hint": did_you_mean(keys[-1], known)})
        elif sort not in _OF_PYDANTIC:
            sort = PydanticCustomError(sort, "{text}", {"text": problem["msg"]})
        return InitErrorDetails(type=sort, loc=tuple(keys), input=problem["input"], ctx=ctx)

    def checked_options(self, key: str) -> dict[str, Any]:
        """Return the options as the part's signature types them; ``key`` is where the part is named."""
        kinds = self.kinds()
        entry = kinds.find(self.kind, key=f"{key}.kind")
        return dict(self._now(_options_of(kinds, entry), self.options, key))

    def with_defaults(self) -> Self:
        """Return the part with the defaults of its options written out, as a run's folder shows it."""
        if self.kind in self.stand_ins:
            return self
        kinds = self.kinds()
        entry = kinds.find(self.kind)
        if _is_section(entry):  # its defaults are fields, and so written out already
            return self
        defaults = {
            name: list(one.default) if isinstance(one.default, tuple) else one.default
            for name, one in kinds.parameters(entry).items()
            if isinstance(one.default, (bool, int, float, str, tuple, list))
        }
        return self.model_copy(update={**defaults, **self.options})

    def create(self, key: str, **offered: Any) -> Any:
        """Return the part, made of its options and of those offers that it names."""
        kinds = self.kinds()
        entry = kinds.find(self.kind, key=f"{key}.kind")
        if not _is_section(entry):
            made = kinds.call(entry, self.checked_options(key), **offered)
            kinds.require_members(made, self.kind, key=key)
            return made
        is_read = isinstance(self, entry)
        section = self if is_read else self._now(entry, {"kind": self.kind, **self.options}, key)
        build = getattr(section, "build", None)
        return section if build is None else PartKind("", {}).call(build, {}, **offered)

    def _now(self, schema: Any, table: Mapping[str, Any], key: str) -> Any:
        """Return a table as its schema types it, after the settings were read."""
        try:
            return self._checked(schema, table, self.kind)
        except ValidationError as error:
            raise ConfigError(explain(type(self), error, root=key)) from None


def _is_section(entry: Any) -> bool:
    return isinstance(entry, type) and issubclass(entry, BaseModel)


def _at(key: str, message: str, ctx: dict[str, Any], got: Any) -> ValidationError:
    return _found(key, PydanticCustomError("part_kind", message, ctx), got)


def _found(key: str, problem: PydanticCustomError, got: Any) -> ValidationError:
    return ValidationError.from_exception_data(
        "part", [InitErrorDetails(type=problem, loc=(key,), input=got)]
    )


def _require_float32(name: str, value: Any) -> None:
    for inner in _inside(value):
        _require_float32(name, inner)
    if isinstance(value, int | float):
        try:
            in_float32(value)
        except PydanticCustomError as problem:
            raise _found(name, problem, value) from None


def _inside(value: Any) -> Iterable[Any]:
    """Return what a table or a list holds."""
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


def _require_toml(name: str, value: Any) -> None:
    """Raise if config.toml could not hold a value, or would not give it back."""
    for inner in _inside(value):
        _require_toml(name, inner)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise _at(name, "must be finite, got {got}. Leave it out.", {"got": repr(value)}, value)
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise _at(name, "must be UTF-8, so that config.toml can hold it. Rename it.", {}, "?") from None


class _Options:
    """The options of a signature: their names, and pydantic's check of names and types."""

    def __init__(self, known: Mapping[str, Any], takes_any: bool) -> None:
        self.known = known
        fields = {name: _field(one) for name, one in known.items()}
        make: Any = TypedDict  # its fields are known only here
        table = make("Options", fields)
        table.__pydantic_config__ = {**_STRICT, "extra": "allow" if takes_any else "forbid"}
        self._adapter: TypeAdapter[Any] = TypeAdapter(table)

    def validate_python(self, given: Mapping[str, Any]) -> Any:
        """Return the options as typed, no default among them."""
        return self._adapter.validate_python(dict(given))


def _options_of(kinds: PartKind, entry: Any) -> _Options:
    return _Options(kinds.parameters(entry), kinds.takes_any(entry))


def _field(parameter: inspect.Parameter) -> Any:
    """Return the type of one option, required unless it has a default; Any where it declares none."""
    declared = parameter.annotation
    wanted: Any = Any
    if declared is not parameter.empty and not isinstance(declared, str):
        wanted = _as_toml_writes(declared)
        try:
            TypeAdapter(wanted, config=None if _is_section(wanted) else _STRICT)
        except (PydanticSchemaGenerationError, PydanticUserError):
            wanted = Any
    return Required[wanted] if parameter.default is parameter.empty else NotRequired[wanted]


def _as_toml_writes(wanted: Any) -> Any:
    """Return a type that also takes what TOML has for it: a list for a tuple, a text for a path."""
    origin = get_origin(wanted)
    if origin in (Union, types.UnionType):
        return Union[tuple(_as_toml_writes(inner) for inner in get_args(wanted))]  # noqa: UP007 - made here
    if origin is Annotated:
        inner, *rules = get_args(wanted)
        return Annotated[_as_toml_writes(inner), *rules]
    if origin is Sequence:
        return Annotated[list[get_args(wanted)[0]], Field(strict=False)]  # type: ignore[misc]
    if wanted is Path:
        return Annotated[Path, BeforeValidator(lambda v: file_name(v) if isinstance(v, str) else v)]
    if wanted is tuple or origin in (tuple, set, frozenset):
        return Annotated[wanted, Field(strict=False)]
    return wanted

"""From a preset name or a TOML file, with overrides, to a checked experiment."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

import tomli_w
from pydantic import BaseModel, ValidationError

from fedwave.errors import ConfigError, did_you_mean
from fedwave.experiments.schema import Experiment
from fedwave.overrides import apply_overrides
from fedwave.wireless.load import anchor_paths
from fedwave.wireless.load import merge as merge_cell

Settings = dict[str, Any]
AnyModel = TypeVar("AnyModel", bound=BaseModel)


def preset_names() -> list[str]:
    """Return the names of the shipped presets, e.g. ``paper/nufm``."""
    root = resources.files("fedwave.experiments") / "presets"
    return sorted(name for name, _ in _walk(root, ""))


def preset_text(name: str) -> str:
    """Return the TOML text of a preset."""
    for known, file in _walk(resources.files("fedwave.experiments") / "presets", ""):
        if known == name:
            return file.read_text(encoding="utf-8")
    raise ConfigError(f'"{name}" is neither a preset nor a .toml file. {did_you_mean(name, preset_names())}')


def _walk(folder: Traversable, prefix: str) -> Iterable[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".toml"):
            yield prefix + entry.name.removesuffix(".toml"), entry


def load_experiment(source: str | Path | None = None, overrides: Iterable[str] = ()) -> Experiment:
    """Return the experiment of a preset or TOML file, changed by ``section.key=value`` overrides.

    A file may say ``extends = "preset or file"``: it then holds only what differs.
    """
    settings = {} if source is None else _read(str(source), seen=())
    return experiment_from(apply_overrides(settings, overrides))


def experiment_from(settings: Mapping[str, Any]) -> Experiment:
    """Return the checked experiment of nested settings."""
    return validate(Experiment, settings)


def experiment_to_toml(experiment: Experiment) -> str:
    """Return the resolved experiment as TOML that ``load_experiment`` reads back to an equal one."""
    return tomli_w.dumps(experiment.model_dump(mode="json", exclude_none=True))


def _read(source: str, *, seen: tuple[str, ...]) -> Settings:
    if source in seen:
        raise ConfigError(f"extends goes in a circle: {' -> '.join((*seen, source))}. Remove one of them.")
    path = Path(source)
    if path.suffix == ".toml":
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"cannot read {source}: {error}. Check the path; `fedwave presets` lists presets."
            ) from error
    else:
        text = preset_text(source)
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not valid TOML: {error}. Fix that line.") from error
    for section in ("cell", "data"):  # files named in a file are found from its folder
        if path.suffix == ".toml" and isinstance(settings.get(section), dict):
            settings[section] = anchor_paths(settings[section], path.resolve().parent)
    base = settings.pop("extends", None)
    if base is None:
        return settings
    if not isinstance(base, str):
        raise ConfigError(
            f"{source}: extends must be a preset name or a .toml path, got {base!r}. Quote one name."
        )
    if base.endswith(".toml"):
        base = str(path.parent / base)
    return _merge(_read(base, seen=(*seen, source)), settings)


def _merge(base: Settings, change: Settings) -> Settings:
    merged = dict(base)
    for key, value in change.items():
        both_tables = isinstance(value, dict) and isinstance(merged.get(key), dict)
        # In a cell, a channel of another kind replaces the old one, and dBm replace watts.
        join = merge_cell if key == "cell" else _merge
        merged[key] = join(merged[key], value) if both_tables else value
    return merged


def validate(model: type[AnyModel], settings: Mapping[str, Any]) -> AnyModel:
    """Return the settings as ``model``, or raise one line for the first thing wrong with them."""
    try:
        return model.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(_explain(model, error)) from None


def _explain(model: type[BaseModel], error: ValidationError) -> str:
    details = error.errors(include_url=False)
    unknown = [detail for detail in details if detail["type"] == "extra_forbidden"]
    first = (unknown or details)[0]
    key = ".".join(str(part) for part in first["loc"])
    more = (
        f" ({len(details) - 1} more problem{'s' if len(details) > 2 else ''} after this one.)"
        if len(details) > 1
        else ""
    )
    if unknown:
        known = _keys_of(model, first["loc"][:-1])
        return f'unknown key "{key}". {did_you_mean(str(first["loc"][-1]), known)}{more}'
    got = first["input"]
    shown = type(got).__name__ if isinstance(got, dict) else repr(got)
    message = first["msg"][0].lower() + first["msg"][1:]
    return f"{key or 'settings'}: {message}, got {shown}. Change it in the file or with -s {key}=...{more}"


def _keys_of(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the known keys of the section at ``location``."""
    for part in location:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field else None
        candidates = [inner, *getattr(inner, "__args__", ())]
        section = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        if section is None:
            break
        model = section
    return list(model.model_fields)

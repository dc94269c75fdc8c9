"""From a preset name or a TOML file, with overrides, to a checked experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from fedwave.errors import ConfigError, require_type, shown
from fedwave.experiments.cell_section import CellSection
from fedwave.experiments.preset_files import preset_text
from fedwave.experiments.schema import Experiment
from fedwave.experiments.schemes import SCHEMES, expand_scheme
from fedwave.settings import anchor_paths, merge, parse_overrides, read_toml, validate
from fedwave.toml_text import Settings, toml_from_text
from fedwave.wireless.settings.load import preset_table

# Keys that were elsewhere before there was one vocabulary, and where they are now.
MOVED = {
    "algorithm.name": "scheme",
    "algorithm.selection": "selection.policy",
    "algorithm.num_selected": "selection.num_selected",
    "algorithm.similarity_penalty": "selection.similarity_penalty",
    "algorithm.variance_penalty": "selection.variance_penalty",
    "cell.scheme": "scheme",
    "cell.selection": "selection.policy",
    "cell.everyone_computes": "selection.everyone_computes",
    # Before every part was named as { kind = ..., options }.
    "algorithm.gradient": "algorithm.rule",
    "algorithm.server_step_options": "algorithm.server_step.<option>",
    "selection.options": "selection.policy.<option>",
    "cell.method_options": "cell.method.<option>",
    **{
        f"data.{option}": f"data.dataset.{option}"
        for option in (
            "path",
            "image_size",
            "images_per_class",
            "num_samples",
            "num_classes",
            "shape",
            "num_devices",
            "samples_per_device",
        )
    },
}


def load_experiment(source: str | Path | None = None, overrides: Iterable[str] = ()) -> Experiment:
    """Return the experiment of a preset or TOML file, changed by ``section.key=value`` overrides.

    A file may say ``extends = "preset or file"``: it then holds only what differs. A later layer beats an
    earlier one: what extends, what is extended; an override, every file.
    """
    if source is not None:
        require_type(source, (str, Path), name="source", fix="Give a preset's name or a .toml file.")
    if isinstance(overrides, str):
        raise TypeError(f"overrides must be a list of KEY=VALUE, got {shown(overrides)}. Put it in brackets.")
    settings = {} if source is None else _read(str(source), seen=())
    # Files that an override names are found from where the user is.
    change = expand_scheme(anchor_paths(parse_overrides(overrides), Path.cwd()))
    _require_effect_of_preset(settings, change)
    found = _checked(merge(settings, change, Experiment))
    return found if source is None or "name" in change else _named_by_its_scheme(found, str(source))


def _named_by_its_scheme(found: Experiment, source: str) -> Experiment:
    """Return the experiment under another name if overrides made another scheme of it.

    That is the scheme's, or which parts are others: a table must not call Greedy by the name of URAL.
    """
    try:
        before = _checked(_read(source, seen=()), checks_parts=False)
    except ConfigError:  # a file that is whole with its overrides alone
        return found
    changed = [new for old, new in zip(before.scheme_parts, found.scheme_parts, strict=True) if new != old]
    if not changed:
        return found
    origin = before.name if source.endswith(".toml") else source
    parts = f"{', '.join(part or 'no cell' for part in changed)}, from {origin}"
    name = SCHEMES[found.scheme].title if found.scheme else parts
    return found.model_copy(update={"name": name})


def experiment_from(settings: Mapping[str, Any]) -> Experiment:
    """Return the checked experiment of nested settings; files that they name are found from where we are."""
    require_type(settings, Mapping, name="settings", fix="Give a dictionary; load_experiment takes a name.")
    return _checked(expand_scheme(anchor_paths(dict(settings), Path.cwd())))


def experiment_to_toml(experiment: Experiment) -> str:
    """Return the resolved experiment as TOML that ``load_experiment`` reads back to an equal one."""
    return tomli_w.dumps(experiment.model_dump(mode="json", exclude_none=True))


def load_finished(config: Path) -> Experiment:
    """Return the settings that a run wrote, whether the parts that they name are at hand or not."""
    return _checked(_read(str(config), seen=()), checks_parts=False)


def _checked(settings: Settings, *, checks_parts: bool = True) -> Experiment:
    return validate(Experiment, settings, moved=MOVED, checks_parts=checks_parts)


def _read(source: str, *, seen: tuple[str, ...]) -> Settings:
    """Return a source's settings with what it extends underneath."""
    if source in seen:
        raise ConfigError(f"extends goes in a circle: {' -> '.join((*seen, source))}. Remove one of them.")
    path = Path(source)
    if path.suffix == ".toml":
        advice = "Check the path; `fedwave presets` lists presets."
        # Files named in a file are found from its folder.
        layer = anchor_paths(read_toml(path, what="experiment file", advice=advice), path.absolute().parent)
    else:
        layer = toml_from_text(preset_text(source), name=source)
    base = layer.pop("extends", None)
    layer = expand_scheme(layer)
    if base is None:
        return layer
    if not isinstance(base, str):
        raise ConfigError(
            f"{source}: extends must be a preset name or a .toml path, got {base!r}. Quote one name."
        )
    if base.endswith(".toml"):
        base = str(path.parent / base)
    return merge(_read(base, seen=(*seen, source)), layer, Experiment)


def _require_effect_of_preset(settings: Settings, change: Settings) -> None:
    """Raise if an override asks for a cell preset of which nothing would be left.

    A preset lies underneath the keys of a file; where the file has them all, as a finished run's has, the
    preset's name alone would change.
    """
    below, above = settings.get("cell"), change.get("cell")
    if not isinstance(below, dict) or not isinstance(above, dict) or "preset" not in above:
        return
    given = {key for layer in (below, above) for key in layer}
    spelt_otherwise = {key for names in CellSection.alternatives if given & set(names) for key in names}
    free = set(preset_table(above["preset"])) - given - spelt_otherwise - {"description"}
    if not free and above["preset"] != below.get("preset"):
        raise ConfigError(
            f'cell.preset = "{above["preset"]}" would change nothing: the file gives every key of the cell '
            "itself. Start from an experiment preset, or change the keys."
        )

"""What settings choose: new settings leave it, changed ones move it, and no default changes unseen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from fedwave.experiments import load_experiment
from fedwave.experiments.schema import Experiment
from fedwave.parts import PartKind
from fedwave.settings import Part, Section
from fedwave.settings.chosen import chosen
from fedwave.settings.section import sections_in

DEFAULTS = Path(__file__).with_name("defaults.json")


def stretch(size: float, *, times: int = 2, shape: tuple[int, ...] = (1, 2)) -> None: ...


STRETCHES = PartKind("stretch", {"stretch": stretch})


class Stretch(Part):
    of: ClassVar[str] = "tests.settings.test_chosen:STRETCHES"

    kind: str = "stretch"


class Inner(Section):
    depth: float
    width: float = 1.0
    path: Path | None = None


class Outer(Section):
    choice: ClassVar[str | None] = "engine"

    engine: str = "threads"
    wait_s: float | None = None
    inner: Inner = Inner(depth=1.0)
    part: Stretch = Stretch(kind="stretch", size=1.0)

    @classmethod
    def choices(cls) -> tuple[str, ...]:
        return ("ray",)

    @classmethod
    def options_of(cls, value: str) -> dict[str, Any]:
        return {"wait_s": 60.0} if value == "ray" else {}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"inner": {"depth": 1.0, "width": 1.0}}, {}),
        ({"inner": {"depth": 2.0, "width": 1.0}}, {"inner": {"depth": 2.0}}),
        ({"inner": {"depth": 1.0, "width": 2.0}}, {"inner": {"depth": 1.0, "width": 2.0}}),
        ({"inner": {"depth": 1.0, "path": Path("a")}}, {"inner": {"depth": 1.0, "path": "a"}}),
        ({"engine": "ray"}, {"engine": "ray"}),  # what the choice fills in is no choice
        ({"engine": "ray", "wait_s": 60.0}, {"engine": "ray"}),
        ({"engine": "ray", "wait_s": 1.0}, {"engine": "ray", "wait_s": 1.0}),
        ({"part": {"kind": "stretch", "size": 1.0}}, {}),
        ({"part": {"kind": "stretch", "size": 2.0, "times": 2}}, {"part": {"kind": "stretch", "size": 2.0}}),
        ({"part": {"kind": "stretch", "size": 2, "shape": [1, 2]}}, {"part": {"kind": "stretch", "size": 2}}),
        ({"part": {"kind": "a.b:c", "times": 2}}, {"part": {"kind": "a.b:c", "times": 2}}),
    ],
)  # fmt: skip
def test_only_what_is_not_at_its_default(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert chosen(Outer.model_validate(given)) == expected


def test_a_part_of_many_sections_says_its_kind() -> None:
    def channel(*settings: str) -> dict[str, Any]:
        found: dict[str, Any] = chosen(load_experiment("umi/ural", settings))["cell"]["channel"]
        return found

    assert channel()["kind"] == "3gpp"
    assert "shadowing" not in channel("cell.channel.shadowing=true")
    assert channel("cell.channel.shadowing=false")["shadowing"] is False


def test_no_default_has_changed() -> None:
    """Finished runs are known by what differs from the defaults: another default makes them other runs.

    If one has to change, raise ``NUMERICS_VERSION``. A new setting is added to the file by
    ``python -m tests.settings.test_chosen``, and must leave all numbers as they were.
    """
    assert dict(every_default()) == json.loads(DEFAULTS.read_text(encoding="utf-8"))


def every_default() -> Iterator[tuple[str, Any]]:
    """Yield every default of an experiment, and of every part that can be named in one."""
    seen: set[type[BaseModel]] = set()
    waiting: list[type[BaseModel]] = [Experiment]
    while waiting:
        section = waiting.pop()
        if section in seen:
            continue
        seen.add(section)
        for name, field in section.model_fields.items():
            waiting += sections_in(field.annotation)
            default = field.get_default(call_default_factory=True)
            is_said_below = isinstance(default, BaseModel) and not isinstance(default, Part)
            if not (field.is_required() or is_said_below or name in ("name", "description", "kind")):
                yield f"{section.__name__}.{name}", to_jsonable_python(default, exclude_none=True)
        if issubclass(section, Part) and hasattr(section, "of") and section is not Part:
            kinds = section.kinds()
            waiting += [
                one for one in kinds.registry.values() if isinstance(one, type) and issubclass(one, BaseModel)
            ]
            for kind, entry in kinds.registry.items():
                for name, one in kinds.parameters(entry).items():
                    if one.default is not one.empty and not hasattr(entry, "model_fields"):
                        yield (
                            f"{section.__name__}.{kind}.{name}",
                            to_jsonable_python(one.default, fallback=repr),
                        )


if __name__ == "__main__":
    text = json.dumps(dict(sorted(every_default())), indent=1, ensure_ascii=False)
    DEFAULTS.write_text(f"{text}\n", encoding="utf-8")

"""A text that is not TOML is refused in one line with its place."""

from __future__ import annotations

import pytest

from fedwave.errors import ConfigError, ProblemError
from fedwave.toml_text import toml_from_text


def test_a_text_becomes_its_tables() -> None:
    assert toml_from_text("a = 1\n[b]\nc = [2.5]", name="x") == {"a": 1, "b": {"c": [2.5]}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1\nb = = 2", "line 2"),
        ("a = " + "[" * 5000, "nested too deeply"),
        ("a = " + "9" * 5000, "digits"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_name_of_the_text(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        toml_from_text(text, name="own.toml")
    assert str(caught.value).startswith("own.toml is not valid TOML: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_caller_chooses_the_error() -> None:
    with pytest.raises(ProblemError):
        toml_from_text("=", name="x", error=ProblemError)

"""``-s section.key=value``: TOML values, bare words, and refusals of what would be lost."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ConfigError
from fedwave.settings import parse_overrides


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-0.5", -0.5),
        ("1e-3", 0.001),
        ("1_000", 1000),
        ("0x10", 16),
        ("true", True),
        ("True", "True"),  # a word: only the lower-case one is TOML
        ('"7"', "7"),
        ("'a b'", "a b"),
        ("[1, 2]", [1, 2]),
        ("[[1], ['x']]", [[1], ["x"]]),
        ("{ a = 1, b.c = 2 }", {"a": 1, "b": {"c": 2}}),
        ("2026-01-02", datetime.date(2026, 1, 2)),
        ("uniform", "uniform"),
        ("  two words  ", "two words"),
        ("paper/nufm", "paper/nufm"),
        ("package.module:factory", "package.module:factory"),
        ("a=b", "a=b"),  # only the first sign of equality parts key and value
        ("1 # why", 1),
        ("1 2", "1 2"),
        ("[1, 2", "[1, 2"),
        ("", ""),
        ("1\nother = 2", "1\nother = 2"),  # a line break cannot smuggle in another key
        ("1\rother = 2", "1\rother = 2"),
        ("[1,\n2]", "[1,\n2]"),
    ],
)
def test_a_value_is_toml_or_else_a_word(text: str, value: Any) -> None:
    got = parse_overrides([f"key={text}"])
    assert got == {"key": value}
    assert type(got["key"]) is type(value)


@given(word=st.text(max_size=20))
def test_any_text_is_one_value_or_one_line_of_refusal(word: str) -> None:
    assert list(parse_overrides([f"key={word}"])) == ["key"]


def test_brackets_without_end_are_a_word() -> None:
    assert parse_overrides(["key=" + "[" * 5000]) == {"key": "[" * 5000}


def test_dots_lead_into_tables_and_later_words_beat_earlier_ones() -> None:
    words = ["a.b.c=1", "a.b.d=2", "a.e=3", " f . g =4", "a.b.c=5", "f.g=6"]
    assert parse_overrides(words) == {"a": {"b": {"c": 5, "d": 2}, "e": 3}, "f": {"g": 6}}
    assert parse_overrides([]) == {}


def test_a_table_written_out_and_dotted_keys_add_up_in_either_order() -> None:
    expected = {"cell": {"preset": "paper", "num_blocks": 3}}
    assert parse_overrides(["cell={ preset = 'paper' }", "cell.num_blocks=3"]) == expected
    assert parse_overrides(["cell.num_blocks=3", "cell={ preset = 'paper' }"]) == expected
    assert parse_overrides(["cell.num_blocks=3", "cell={ num_blocks = 4 }"]) == {"cell": {"num_blocks": 4}}


@pytest.mark.parametrize("word", ["seed", "", "=1", ".=1", "a.=1", ".a=1", "a..b=1", " =1", "a. .b=1"])
def test_a_word_without_a_key_or_a_value_is_refused(word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_overrides([word])
    assert str(caught.value) == f'-s takes KEY=VALUE, got "{word}". For example: -s seed=1.'


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["seed=1", "seed.x=2"], "seed"),
        (["seed.x=2", "seed=1"], "seed"),
        (["a.b=1", "a.b.c=2"], "b"),
        (["a.b.c=2", "a.b=1"], "b"),
        (["a={ b = 1 }", "a.b.c=2"], "b"),
    ],
)
def test_a_key_cannot_be_both_a_value_and_a_table(words: list[str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_overrides(words)
    expected = f'-s sets "{key}" both as a value and as a table, in "{words[-1]}". Keep one.'
    assert str(caught.value) == expected

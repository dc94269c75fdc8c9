"""Every message is one line: what is wrong, what was got, how to mend it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fedwave.errors import (
    MAX_SHOWN,
    ConfigError,
    DeprecatedWarning,
    FedwaveError,
    MissingExtraError,
    ProblemError,
    deprecated,
    did_you_mean,
    import_extra,
    naming_fields,
    require_count,
    require_type,
    shown,
)


def test_a_message_is_one_line_whatever_is_in_it() -> None:
    assert str(FedwaveError("a file\nwith a\r\nstrange name")) == "a file with a strange name"


def test_a_wrong_value_is_shown_on_one_short_line() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    assert shown("a") == "'a'"
    assert shown(Silent()) == "a Silent"
    assert shown("x" * (MAX_SHOWN - 2)) == repr("x" * (MAX_SHOWN - 2))
    long = shown("x" * MAX_SHOWN)
    assert (len(long), long[-3:]) == (MAX_SHOWN, "...")


def test_an_argument_of_another_type_is_said_with_both_types() -> None:
    require_type(1, (str, int), name="seed", fix="Give one.")
    with pytest.raises(TypeError, match=r"seed must be of type str or int, got 1\.5 \(float\)\. Give one\."):
        require_type(1.5, (str, int), name="seed", fix="Give one.")


@pytest.mark.parametrize("value", [True, 0, 2.0, "3", None])
def test_a_count_is_a_whole_number_from_the_least_on(value: object) -> None:
    assert require_count("rounds", 1, at_least=1) == 1
    with pytest.raises(ConfigError, match="rounds must be a whole number >= 1, got"):
        require_count("rounds", value, at_least=1)


def test_the_nearest_word_is_proposed_or_all_are_listed() -> None:
    assert did_you_mean("optimum", ["optimal", "ives"]) == 'Did you mean "optimal"?'
    assert did_you_mean("zzz", ["optimal", "ives"]) == "Choose one of: optimal, ives."
    presets = ["paper/nufm", "digits/nufm", "digits/nufm-greedy"]
    assert did_you_mean("nufm", presets) == 'Did you mean "paper/nufm" or "digits/nufm"?'
    assert did_you_mean("mnist", ["digits", "fashion-mnist"]) == 'Did you mean "fashion-mnist"?'
    assert did_you_mean("gi", ["digits", "iris"]) == "Choose one of: digits, iris."  # too little to guess by
    many = ["abc-number-one", "abc-number-two", "abc-number-three", "abc-number-four"]
    assert (
        did_you_mean("abc", many[:3])
        == 'Did you mean "abc-number-one" or "abc-number-two" or "abc-number-three"?'
    )
    assert did_you_mean("abc", many) == f"Choose one of: {', '.join(many)}."


def test_a_dataclass_that_names_its_fields_says_which_was_meant() -> None:
    @naming_fields
    @dataclass
    class Lamp:
        watts: float = 1.0

        def doubled(self) -> float:
            return 2.0 * self.watts

    assert Lamp(watts=3.0).doubled() == Lamp(3.0).doubled() == 6.0
    with pytest.raises(ProblemError, match="^Lamp has no field 'wats'. Did you mean \"watts\"[?]$"):
        Lamp(wats=3.0)  # type: ignore[call-arg]


def test_what_is_not_installed_is_said_with_the_way_to_get_it() -> None:
    assert import_extra("math", purpose="Sums", extra="none").sqrt(4.0) == 2.0
    with pytest.raises(MissingExtraError, match=r"Pictures needs no_such_thing.*fedwave\[plots\]"):
        import_extra("no_such_thing.inside", purpose="Pictures", extra="plots")


def test_what_goes_in_a_later_version_says_so_where_it_is_used() -> None:
    def old_name() -> int:
        deprecated("old_name()", use="new_name()", gone_in="0.4.0")
        return 1

    with pytest.warns(DeprecatedWarning) as said:
        assert old_name() == 1
    assert [str(one.message) for one in said] == [
        "old_name() is deprecated and goes in 0.4.0. Use new_name()."
    ]
    assert said[0].filename == __file__  # not the line in the package that warns
    assert issubclass(DeprecatedWarning, FutureWarning)  # which Python shows by default

"""Stored JSON is read exactly, and what decides how it is read costs little."""

from __future__ import annotations

import json
import time

import pytest

from assent.kernel import canonical, jsontext


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, -(2**63) - 1, 2**64 - 1, 2**64, 10**40, 1e23, 0.1, -0.0])
@pytest.mark.parametrize("encode", [str, str.encode])
def test_a_number_comes_back_as_it_was_stored(number: float, encode: type) -> None:
    text = jsontext.dump({"before": "é 😀", "number": [number]})
    loaded_settings = jsontext.load(encode(text))["number"][0]
    assert (type(loaded_settings), repr(loaded_settings)) == (type(number), repr(number))


def test_a_row_of_an_older_release_is_read_exactly() -> None:
    stored = json.dumps({"text": "x" * 1000, "number": 10**4000, "spaced": [1, 2]})
    assert jsontext.load(stored) == {"text": "x" * 1000, "number": 10**4000, "spaced": [1, 2]}


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [("1" * 18, 19, False), ("1" * 19, 19, True), ("1" * 18 + "." + "1" * 18, 19, False), ("٣" * 30, 19, False)],
)
def test_only_consecutive_ascii_digits_count_as_a_long_number(text: str, count: int, expected: bool) -> None:
    assert canonical.has_digits(text, count) is expected
    assert canonical.has_digits(text.encode(), count) is expected


def test_checking_a_megabyte_takes_milliseconds() -> None:
    text = ("1" * 18 + " ") * 52_000
    taken = []
    for _ in range(5):
        started = time.process_time()
        assert not canonical.has_digits(text, 19)
        taken.append(time.process_time() - started)
    assert min(taken) < 0.01


def test_a_long_row_of_digits_in_a_string_is_accepted() -> None:
    text = json.dumps({"digits": "7" * 5000, "number": int("7" * canonical.MAX_DIGITS)})
    assert canonical.parse(text)["digits"] == "7" * 5000

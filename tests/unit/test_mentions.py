"""Mentions in a text: whole names only, the longest, and never in an address."""

import pytest

from assent.review.collaboration.mentions import named_in

PEOPLE = ["ana", "Ana María", "ben", "王芳", "o'neil"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@ana", ["ana"]),
        ("@ANA: look, @Ben!", ["ana", "ben"]),
        ("@ana maría knows", ["Ana María"]),
        ("(@ben)", ["ben"]),
        ("请看，@王芳。", ["王芳"]),
        ("@o'neil's", ["o'neil"]),
        ("@anastasia, @ana_2, @ana2", []),
        ("mail@ben, me@ana.example, @@ben", []),
        ("@ ben, ben, @nobody", []),
        ("@be", []),
        ("", []),
    ],
)
def test_text_names_exactly_these_people(text: str, names: list[str]) -> None:
    assert [named.name for named in named_in(text, PEOPLE)] == names


def test_position_covers_the_sign_and_the_name() -> None:
    [named] = named_in("hi @Ben.", PEOPLE)
    assert "hi @Ben."[named.start : named.end] == "@Ben"

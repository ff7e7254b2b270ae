"""The exception tree: drawn once, with stable codes."""

import re

from assent import errors
from assent.errors import AssentError, Unavailable
from assent.surfaces.cli.output import EXIT_CODES
from tests.docs.surface import errors as all_errors

LINE = re.compile(r"^    (?P<indent>[│├└─ ]*)(?P<name>[A-Z]\w+) +(?P<code>[a-z_]+) +(?P<status>\d{3})", re.MULTILINE)


def drawn() -> list[tuple[str, str, str, int]]:
    """(parent, name, code, status) of every line of the drawing."""
    found, stack = [], [(-1, "Exception")]
    for line in LINE.finditer(errors.__doc__ or ""):
        depth = len(line["indent"])
        while stack[-1][0] >= depth:
            stack.pop()
        found.append((stack[-1][1], line["name"], line["code"], int(line["status"])))
        stack.append((depth, line["name"]))
    return found


def declared() -> list[tuple[str, str, str, int]]:
    """The same of every class of the module."""
    return [
        (kind.__mro__[1].__name__, kind.__name__, kind.code, kind.status)
        for kind in all_errors()
        if kind.__module__ == errors.__name__
    ]


def test_documented_tree_matches_the_error_classes() -> None:
    assert sorted(drawn()) == sorted(declared())
    assert len(drawn()) >= 18


def test_codes_are_unique_and_plain() -> None:
    codes = [kind.code for kind in all_errors()]
    assert len(codes) == len(set(codes)), sorted(codes)
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", code) for code in codes)


def test_every_class_says_in_one_line_what_it_means() -> None:
    for kind in all_errors():
        message = (kind.__doc__ or "").partition("\n")[0]
        assert message, kind
        assert not message.startswith("Something went wrong") or kind is AssentError


def test_message_is_the_docstring_unless_another_is_given() -> None:
    assert str(errors.NotFound()) == "Not found."
    assert str(errors.NotFound("no key")) == "no key"
    assert errors.NotFound("no key", hint="look again", id="7").extra == {"id": "7"}


def test_statuses_are_errors_and_retryable_errors_say_when_to_retry() -> None:
    for kind in all_errors():
        assert 400 <= kind.status < 600
        assert (kind.status in (503, 507)) is issubclass(kind, Unavailable)


def test_every_error_has_an_exit_code() -> None:
    for kind in all_errors():
        assert any(issubclass(kind, known) for known in EXIT_CODES)
    assert len(EXIT_CODES) == len({*EXIT_CODES})
    assert 0 not in EXIT_CODES.values()

"""Exit codes, and that an error is one line."""

import json
from collections.abc import Iterator

import pytest

from assent import errors
from assent.errors import AssentError
from assent.surfaces.cli import output

EXPECTED = {
    errors.AssentError: 1,
    errors.Invalid: 2,
    errors.InvalidJson: 2,
    errors.ConfigError: 3,
    errors.UnsafeStart: 3,
    errors.Unauthenticated: 4,
    errors.Forbidden: 4,
    errors.OriginRefused: 4,
    errors.NotFound: 5,
    errors.Conflict: 6,
    errors.AlreadyExists: 6,
    errors.Unavailable: 7,
    errors.StoreBusy: 7,
    errors.StorageFull: 7,
    errors.AuditBroken: 8,
}


@pytest.mark.parametrize(("kind", "code"), EXPECTED.items())
def test_error_class_gives_its_exit_code(
    kind: type[AssentError], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert output.fail(kind("went wrong")) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == "assent: went wrong"


def test_an_error_is_one_line_and_its_hint_another(capsys: pytest.CaptureFixture[str]) -> None:
    output.fail(errors.ConfigError("first\nsecond [/b] :smile:", hint="do [this]"))
    assert capsys.readouterr().err == "assent: first second [/b] :smile:\n  do [this]\n"


def test_long_line_is_not_wrapped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    output.say("x" * 100)
    output.fail(errors.NotFound("y" * 100))
    out, err = capsys.readouterr()
    assert out == "x" * 100 + "\n"
    assert err == f"assent: {'y' * 100}\n"


def _all(kind: type[AssentError]) -> Iterator[type[AssentError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _all(child)


def test_specific_error_is_listed_before_its_base_class() -> None:
    """The table is read from the top, so a class must stand before those it descends from."""
    seen: list[type[AssentError]] = []
    for kind in output.EXIT_CODES:
        assert not any(issubclass(kind, earlier) for earlier in seen), kind
        seen.append(kind)


def test_table_in_a_pipe_has_one_line_per_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    rows = [{"item_id": "0199d3e2-1111-7222-8333-444455556666", "note": "many words " * 20}]
    output.table(rows, ["item_id", "note"], empty="")
    [_, row] = capsys.readouterr().out.splitlines()
    assert row.split()[0] == rows[0]["item_id"]


HIDDEN = "\x1b]0;\x07 \x9b31m \x7f \u202etxt.exe \u200b"
SHOWN = r"\u001b]0;\u0007 \u009b31m \u007f \u202etxt.exe \u200b"


def test_text_of_others_does_not_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.table([{"payload": f"title: {HIDDEN}", "names": ["a", HIDDEN]}], ["payload", "names"], empty="")
    output.emit({"payload": HIDDEN})
    output.fail(errors.NotFound(f"no {HIDDEN}", hint=f"see {HIDDEN}\n  or {HIDDEN}"))
    out, err = capsys.readouterr()
    table, printed = out.split("{", 1)
    assert table.count(SHOWN) == 2
    assert json.loads("{" + printed) == {"payload": HIDDEN}
    assert err.splitlines() == [f"assent: no {SHOWN}", f"  see {SHOWN}", f"  or {SHOWN}"]
    assert not [character for character in out + err if character != "\n" and not character.isprintable()]


def test_line_of_ours_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """The control: what was escaped above is what a terminal would get."""
    output.say(HIDDEN)
    assert capsys.readouterr().out == HIDDEN + "\n"

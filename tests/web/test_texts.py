"""Hostile and deceptive text: inert, and every character of it can be seen."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import FormData

from assent.kernel import canonical
from assent.surfaces.web.text import diffs, markdown, texts
from assent.surfaces.web.views import forms

UNSEEN = (
    "\u202e\u202d\u2066\u2069\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\u061c\u180e\u0000\u0008\u001b\u007f\u0085"
)
UNSEEN += "\u00a0\u2003\u2028\u2029\u3000\u3164\u115f\u2800\u034f\ufe0f\U000e0041\U000e0100\ue000"
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.promise("P11")
@pytest.mark.parametrize("char", UNSEEN, ids=lambda char: f"U+{ord(char):04X}")
def test_what_cannot_be_seen_becomes_a_chip(char: str) -> None:
    code = f"⟨U+{ord(char):04X}⟩"
    for markup in (texts.shown(f"a{char}b"), markdown.words(f"a{char}b"), markdown.words(f"`a{char}b`")):
        if char == "\0" and code not in markup:  # CommonMark replaces it
            assert "\ufffd" in markup
            continue
        assert code in markup
        assert char not in markup
    assert texts.spelled(char) == code


@given(st.text())
def test_shown_text_holds_every_character_once_and_no_markup_of_its_own(text: str) -> None:
    shown = str(texts.shown_exactly(text))
    assert not any(texts.is_unseen(char) for char in shown)
    plain = re.sub(r'<span class="chip" title="[^"<>]*">(.*?)</span>', r"\1", shown)
    assert "<" not in plain
    assert len(re.findall("⟨U\\+", plain)) >= sum(map(texts.is_unseen, text))


def test_letters_of_all_scripts_stay_as_they_are() -> None:
    for text in ("naïve", "שלום", "你好", "नमस्ते", "a\nb\tc"):
        assert "chip" not in texts.shown(unicodedata.normalize("NFC", text))


def test_blanks_at_the_ends_can_be_counted() -> None:
    assert str(texts.shown_exactly("a  \n b\t")).count('class="chip"') == 4


@pytest.mark.promise("P11", "INBOX-19")
@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](java\nscript:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x)",
        "<javascript:alert(1)>",
        '[x](https://a.example "onmouseover=alert(1)")',
        "![x](https://evil.example/x.png)",
        "[x]: javascript:alert(1)\n\n[x]",
        "```html\n<script>alert(1)</script>\n```",
        "<style>*{display:none}</style>",
        "<svg/onload=alert(1)>",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
    ],
)
def test_markdown_runs_and_loads_nothing(source: str) -> None:
    markup = str(markdown.words(source))
    tags = set(re.findall(r"<([a-z0-9]+)", markup))
    assert tags <= {"p", "a", "span", "code", "pre", "br"}
    hrefs = re.findall(r'href="([^"]*)"', markup)
    assert all(href.startswith("https://") for href in hrefs)
    assert not re.search(r"<[^>]*\son\w+=", markup)


def test_links_show_their_host_and_tell_nothing_on() -> None:
    markup = str(markdown.words("[your bank](https://bank.example.evil.example/login)"))
    assert "(bank.example.evil.example)" in markup
    assert 'rel="noopener noreferrer nofollow"' in markup
    assert 'target="_blank"' in markup


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=5))
def test_an_untouched_form_changes_nothing(args: dict[str, canonical.Json]) -> None:
    """As a browser sends it: with CRLF for every line end, ticks only where there are any."""
    fields = forms.of_args(args, None)
    shown = {f"p.{field.name}": field.shown for field in fields if field.kind != "flag" or field.shown}
    sent = {name: text.replace("\n", "\r\n") for name, text in shown.items()}
    assert canonical.text(forms.edited(args, fields, "p.", FormData(sent))) == canonical.text(args)
    assert diffs.of_args(args, forms.edited(args, fields, "p.", FormData(sent))) == []


def test_line_ends_stay_what_they_were() -> None:
    args = {"crlf": "a\r\nb", "lone": "a\rb", "nul": "a\0b"}
    fields = forms.of_args(args, None)
    assert [field.name for field in fields] == ["crlf"], "the others are left to the raw JSON"
    assert forms.edited(args, fields, "", FormData({"crlf": "a\r\nc"}))["crlf"] == "a\r\nc"


def test_references_and_alternatives_with_null_are_followed() -> None:
    schema = {
        "properties": {
            "level": {"$ref": "#/$defs/Level"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "loop": {"$ref": "#/$defs/Loop"},
        },
        "$defs": {"Level": {"enum": ["low", "high"]}, "Loop": {"$ref": "#/$defs/Loop"}},
    }
    level, note, loop = forms.of_schema(schema)
    assert (level.kind, note.kind, loop.kind) == ("choice", "text", "json")


@pytest.mark.parametrize("unit", ["é", "\u200b", " ", "a \n", "\u200bé", "\t \u00a0", "x" + " " * 999])
def test_a_million_characters_are_shown_in_linear_time(unit: str) -> None:
    """Each of these once took from seconds to hours; the suite would not end."""
    text = unit * (1_000_000 // len(unit)) + "x"
    assert texts.shown(text)
    assert texts.shown_exactly(text)
    assert texts.spelled(text)


def test_a_row_of_blanks_that_does_not_end_a_line_is_passed_over_once() -> None:
    text = "x" + " " * 200_000 + "x"
    assert texts.shown_exactly(text) == text

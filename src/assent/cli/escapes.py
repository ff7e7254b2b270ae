"""What agents write, made safe to print: their text never drives the terminal and never hides in it.

Whatever a terminal would obey or not show (control and format characters, bidirectional overrides, blanks that look
like nothing) is printed as its JSON escape, so `\\u202e` stands where the text would have turned around.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from assent.domain.hidden import is_hidden


def escaped(text: str) -> str:
    """In one line, with nothing hidden."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def quoted(text: str) -> list[str]:
    """A text of several lines, each marked as somebody's words: none of them can pass for a line of ours."""
    return [f"  | {escaped(line)}" for line in text.replace("\r\n", "\n").split("\n")]


def emit(value: Any) -> None:
    """JSON for scripts. The escapes are JSON's own, so it reads as the same value."""
    lines = json.dumps(value, indent=2, ensure_ascii=False).split("\n")
    sys.stdout.write("\n".join(map(escaped, lines)) + "\n")


def _shown(character: str) -> str:
    if not is_hidden(character):
        return character
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]

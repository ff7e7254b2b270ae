"""Escapes text from agents, so that it neither controls the terminal nor hides in it.

Characters that a terminal interprets or does not show (control and format characters, bidirectional overrides,
invisible blanks) are printed as their JSON escapes, such as `\\u202e`.
"""

from __future__ import annotations

import json

from assent.kernel.hidden import is_hidden


def escaped(text: str) -> str:
    """The text in one line, with hidden characters escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def quoted(text: str) -> list[str]:
    """The lines of a text, each marked as a quote, so that none looks like a line of ours."""
    return [f"  | {escaped(line)}" for line in text.replace("\r\n", "\n").split("\n")]


def _shown(character: str) -> str:
    if not is_hidden(character):
        return character
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]

"""What the assistant answers, as it comes over the wire: word by word where it speaks, and its reply at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from assent.cli.escapes import escaped, quoted
from assent.cli.output import say

STREAM = "text/event-stream"
ACCEPT = f"{STREAM}, application/json"

View = dict[str, Any]


class BrokenOff(Exception):
    """The connection ended before the reply: the assistant goes on without it."""


class Speaker:
    """Shows what the assistant says while it says it. Each line is marked as its words, whatever they hold."""

    def __init__(self) -> None:
        self._message_id: str | None = None
        self._said = ""

    def hear(self, words: Mapping[str, Any]) -> None:
        if words["message_id"] != self._message_id:
            self.pause()
            self._message_id, self._said = str(words["message_id"]), ""
            sys.stdout.write("assistant:\n  | ")
        text = str(words["text"])
        self._said += text
        sys.stdout.write("\n  | ".join(map(escaped, text.replace("\r\n", "\n").split("\n"))))
        sys.stdout.flush()

    def pause(self) -> None:
        """Ends the line, where one was begun."""
        if self._message_id is not None:
            say()
        self._message_id = None

    def end(self, answer: str) -> None:
        """The whole answer, unless it was heard just so."""
        heard = self._message_id is not None and self._said == answer
        self.pause()
        if not heard:
            show(answer)


def show(answer: str) -> None:
    say("\n".join(["assistant:", *quoted(answer)]))


def is_spoken(response: httpx.Response) -> bool:
    return str(response.headers.get("content-type", "")).startswith(STREAM)


def reply(response: httpx.Response, speaker: Speaker) -> View:
    """The reply at the end of what is spoken."""
    for name, data in _events(response):
        if name == "words":
            speaker.hear(data)
        elif name == "reply":
            return data
    raise BrokenOff


def _events(response: httpx.Response) -> Iterator[tuple[str, View]]:
    name = ""
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)

"""Reads the assistant's response: a stream of words with the reply at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from assent.surfaces.cli.escapes import escaped, quoted
from assent.surfaces.cli.output import say

STREAM = "text/event-stream"
ACCEPT = f"{STREAM}, application/json"

View = dict[str, Any]


class BrokenOff(Exception):
    """The connection ended before the reply: the assistant continues."""


class Speaker:
    """Prints the assistant's text as it arrives. Each line is marked as a quote."""

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
        """Ends the line if one was begun."""
        if self._message_id is not None:
            say()
        self._message_id = None

    def end(self, answer: str) -> None:
        """Prints the whole answer, unless exactly that was streamed."""
        streamed = self._message_id is not None and self._said == answer
        self.pause()
        if not streamed:
            show(answer)


def show(answer: str) -> None:
    say("\n".join(["assistant:", *quoted(answer)]))


def is_stream(response: httpx.Response) -> bool:
    return str(response.headers.get("content-type", "")).startswith(STREAM)


def reply(response: httpx.Response, speaker: Speaker) -> View:
    """The reply at the end of the stream."""
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

"""Masks the secrets of a thread: in its state, its questions, its runs and their stream frames.

Calls are detected anywhere, in the formats of LangChain, OpenAI, Anthropic and the dialects, and their covers define
the masked parts; outside of calls a secret's name is enough. Every masked value of a call or a question is then removed
from all other texts: messages, results, descriptions, errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from assent.kernel.canonical import Json
from assent.review.model.json_texts import is_document
from assent.review.model.secrets import (
    EVERYTHING,
    MASK,
    SECRET_NAMES,
    Cover,
    Text,
    is_secret_name,
    leaves,
    looks_secret,
    shown_schema,
)

_TOOLS = ("name", "tool_name", "action")
_ARGUMENTS = ("args", "arguments")
_IDS = ("call_id", "tool_call_id", "id")
_UNFINISHED = ("tool_call_chunks", "partial_json", "input_json_delta")
"""Parts of calls that are still being streamed: they may begin a secret."""
_ASKED = ("__interrupt__", "interrupts")
_CALLED = (("tool_use", None), (None, "tool-started"))
"""The types and events of objects whose `input` holds the arguments of a call."""
_CALL_PARTS = ("tool_call_chunk", "server_tool_call_chunk")
"""Content blocks of the event protocol."""
_SCHEMA = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"})
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHORTEST_NUMBER = 3
CHUNK = "AIMessageChunk"

CoverFor = Callable[[str], Cover]
"""The cover of the arguments of the tool with this name."""

_QUOTED = frozenset({"title", "notes", "text"})
"""The fields of a payload that contain texts of people and agents."""


class Covering:
    """Collects secrets from everything that it masks, so that later values do not repeat them either."""

    def __init__(
        self, cover_for: CoverFor, known: Iterable[str] = (), calls: Mapping[str, Cover] | None = None
    ) -> None:
        """`known` are secrets of the thread; `calls` are the covers of reviewed calls, by their id."""
        self._cover_for = cover_for
        self._calls = calls or {}
        self._words = Text(known)
        self._unsaid: dict[tuple[str, ...], str] = {}
        self.tools = set[str]()
        """The tools in whose calls secrets were found so far."""

    def __call__(self, value: Json) -> Json:
        self._words.add(self._secrets(value))
        return self._covered(value, SECRET_NAMES, ())

    def within(self, work: float) -> Covering:
        """Limits the work, because other callers wait: beyond it, every text is masked as a whole."""
        self._words.limit(work)
        return self

    def text(self, text: str) -> str:
        return self._words.without(text)

    def part(self, event: str, value: Json) -> Json:
        """Masks a part of a stream. Text that may begin a secret is held back until the next part."""
        return self._held_back(event, self(value))

    # Collecting secrets

    def _secrets(self, value: Json, *, asked: bool = False) -> Iterator[str]:
        """The masked values of calls, and of questions by name alone."""
        if isinstance(value, list):
            for entry in value:
                yield from self._secrets(entry, asked=asked)
        elif isinstance(value, dict):
            place, cover, tool = self._call(value)
            for name, part in value.items():
                if name in _UNFINISHED:
                    self.tools |= _begun(part)
                elif name == place:
                    secrets = cover.texts(_parsed(part))
                    self.tools |= {tool} if secrets and tool else set()
                    yield from secrets
                elif asked and is_secret_name(name):
                    yield from leaves(part)
                elif not _is_schema(value, name):
                    yield from self._secrets(part, asked=asked or name in _ASKED)
        elif isinstance(value, str) and (inner := _document(value)) is not None:
            yield from self._secrets(inner, asked=asked)

    def _call(self, value: Mapping[str, Any]) -> tuple[str | None, Cover, str | None]:
        """The field with the arguments of a call, their cover, and the tool; None if the object is not a call."""
        place = next((field for field in _ARGUMENTS if field in value), None)
        if place is None and "input" in value and (value.get("type"), value.get("event")) in _CALLED:
            place = "input"
        tool = next((value[field] for field in _TOOLS if isinstance(value.get(field), str)), None)
        reviewed = next((self._calls[value[field]] for field in _IDS if _is_in(value.get(field), self._calls)), None)
        if place is None or (tool is None and reviewed is None and not _is_later_part(value)):
            return None, SECRET_NAMES, None
        cover = self._cover_for(tool) if tool else EVERYTHING if reviewed is None else reviewed
        return place, cover if reviewed is None else cover.joined(reviewed), tool

    # Masking

    def _covered(self, value: Json, cover: Cover, path: tuple[str, ...]) -> Json:
        if path and cover.hides(path):
            return MASK
        if isinstance(value, dict):
            place, own, _ = self._call(value)
            return {name: self._field(value, name, place, own, cover, (*path, name)) for name in value}
        if isinstance(value, list):
            return [self._covered(entry, cover, path) for entry in value]
        if isinstance(value, str):
            return self._text(value, cover, path)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return MASK if number and len(str(value)) >= _SHORTEST_NUMBER and value in self._words else value

    def _field(
        self, holder: dict[str, Json], name: str, place: str | None, own: Cover, cover: Cover, path: tuple[str, ...]
    ) -> Json:
        value = holder[name]
        if name == place:
            return self._arguments(value, own)
        if name in _UNFINISHED or (name == "error" and holder.get("type") == "invalid_tool_call"):
            return self._unfinished(value)
        if _is_schema(holder, name):
            return {
                field: self._covered(shown_schema(inner, field), SECRET_NAMES, ()) for field, inner in value.items()
            }
        return self._covered(value, cover, path)

    def _arguments(self, value: Json, cover: Cover) -> Json:
        if not isinstance(value, str):
            return self._covered(value, cover, ())
        parsed = _parsed(value)
        if isinstance(parsed, dict):
            return _written(value, parsed, self._covered(parsed, cover, ()))
        return MASK if value.strip(" {}") else value

    def _unfinished(self, value: Json) -> Json:
        if isinstance(value, list):
            return [self._unfinished(entry) for entry in value]
        if isinstance(value, dict):
            return {name: MASK if name == "args" and part else self._text_or(part) for name, part in value.items()}
        return MASK if value else value

    def _text_or(self, value: Json) -> Json:
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str, cover: Cover = SECRET_NAMES, path: tuple[str, ...] = ()) -> str:
        if _UUID.fullmatch(text) and text not in self._words:
            return text
        inner = _document(text)
        if inner is not None:
            text = _written(text, inner, self._covered(inner, cover, path))
        return MASK if inner is None and looks_secret(text) else self._words.without(text)

    # Streams

    def _held_back(self, event: str, value: Json) -> Json:
        if isinstance(value, list):
            return [self._held_back(event, entry) for entry in value]
        if not isinstance(value, dict):
            return value
        if value.get("type") == CHUNK:
            last = value.get("chunk_position") == "last"
            text = self._spoken((event, str(value.get("id"))), value.get("content"), last=last)
            return {**value, "content": text}
        if str(value.get("event")).startswith("content-block-"):
            return self._of_block(event, value)
        if event == "messages/partial":
            return {**value, "content": self._so_far(value.get("content"))}
        return {name: self._held_back(event, part) for name, part in value.items()}

    def _of_block(self, event: str, value: dict[str, Json]) -> Json:
        """An event of a content block of the protocol. The last one repeats the whole text."""
        key = (event, "block", str(value.get("index")))
        if value["event"] != "content-block-delta":
            self._unsaid.pop(key, None)
            return value
        return {**value, "delta": self._block(key, value.get("delta"), last=False)}

    def _spoken(self, key: tuple[str, ...], content: Json, *, last: bool) -> Json:
        """A streamed text, with the part held back before it and without the part to hold back now."""
        if isinstance(content, list):
            return [self._block((*key, str(index)), block, last=last) for index, block in enumerate(content)]
        if not isinstance(content, str):
            return content
        whole = self._words.without(self._unsaid.pop(key, "") + content)
        released = whole if last else self._words.safe(whole)
        if len(released) < len(whole):
            self._unsaid[key] = whole[len(released) :]
        return released

    def _block(self, key: tuple[str, ...], block: Json, *, last: bool) -> Json:
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            return {**block, "text": self._spoken(key, block["text"], last=last)}
        return block

    def _so_far(self, content: Json) -> Json:
        if isinstance(content, list):
            return [
                {**block, "text": self._words.safe(block["text"])}
                if isinstance(block, dict) and isinstance(block.get("text"), str)
                else block
                for block in content
            ]
        return self._words.safe(content) if isinstance(content, str) else content


def _is_in(value: Any, known: Mapping[str, Any]) -> bool:
    return isinstance(value, str) and value in known


def _begun(pieces: Json) -> set[str]:
    """The tool names in streamed parts of calls."""
    named = (piece.get("name") for piece in (pieces if isinstance(pieces, list) else ()) if isinstance(piece, dict))
    return {name for name in named if isinstance(name, str) and name}


def _is_later_part(value: Mapping[str, Any]) -> bool:
    """Whether this is a later part of a streamed call; only the first part has the name."""
    return value.get("type") in _CALL_PARTS or ("name" in value and value["name"] in (None, ""))


def _is_schema(holder: Mapping[str, Any], name: str) -> bool:
    """Whether this field is the list of properties in a JSON Schema: their names are not arguments."""
    value = holder.get(name)
    if name != "properties" or holder.get("type") != "object" or not isinstance(value, dict):
        return False
    return all(isinstance(property, dict) and not _SCHEMA.isdisjoint(property) for property in value.values())


def _document(text: str) -> Json:
    """The object or list in a JSON text; None for any other text."""
    if not is_document(text):
        return None
    document = _parsed(text)
    return document if isinstance(document, dict | list) and document else None


def _parsed(value: Json) -> Json:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _written(text: str, before: Json, after: Json) -> str:
    return text if after == before else json.dumps(after, ensure_ascii=False)


def quoted(told: Any, words: Text) -> Any:
    """The payload of an item's event, with a mask over secrets that were found after it was written. Only texts of
    people and agents can repeat one; Assent's own texts stay readable."""
    if not isinstance(told, dict):
        return told
    return {name: words.inside(value) if name in _QUOTED else value for name, value in told.items()}

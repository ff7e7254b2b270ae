"""Encodes the values of checkpoints and writes as parts, and decodes them.

An attempt remembers the parts that it has stored or loaded, and does not store them again. A message that has not
changed since is not even serialised again: a fingerprint of its fields is compared, which also detects a message that
was changed in place. This module imports LangChain.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core import messages
from langgraph.checkpoint.serde.base import SerializerProtocol

from assent.errors import UnreadableState
from assent.threads.model import parts
from assent.threads.model.parts import Inline, Listed, Part, Ref, Whole

_INLINE = 128
_SLICE = 1024
_MOST_MESSAGES = 50_000
_MARSHAL = 2  # later versions encode references, which depend on more than the values
_MESSAGES = frozenset(
    {
        messages.AIMessage,
        messages.AIMessageChunk,
        messages.ChatMessage,
        messages.FunctionMessage,
        messages.HumanMessage,
        messages.HumanMessageChunk,
        messages.RemoveMessage,
        messages.SystemMessage,
        messages.ToolMessage,
    }
)


class _Seen(NamedTuple):
    message: Any  # kept, so that no other object gets its id
    fingerprint: tuple[type, bytes]
    name: bytes


class Known:
    """The parts of a thread that this attempt, or this edit, has stored or loaded."""

    def __init__(self) -> None:
        self.sizes: dict[bytes, int] = {}
        self.widths: dict[str, int] = {}
        self._seen: dict[int, _Seen] = {}

    def add(self, new: Sequence[Part]) -> None:
        self.sizes.update((part.name, len(part.data)) for part in new)

    def see(self, message: Any, name: bytes) -> None:
        if (fingerprint := _fingerprint(message)) is not None:
            if len(self._seen) >= _MOST_MESSAGES:
                self._seen.clear()
            self._seen[id(message)] = _Seen(message, fingerprint, name)

    def unchanged(self, message: Any) -> bytes | None:
        """The name of the message's part, if it has one."""
        seen = self._seen.get(id(message))
        if seen is None or seen.fingerprint != _fingerprint(message) or seen.name not in self.sizes:
            return None
        return seen.name


def _fingerprint(message: Any) -> tuple[type, bytes] | None:
    """Equal only for messages with equal bytes; None if the message holds more than plain data."""
    try:
        return type(message), marshal.dumps((message.__dict__, message.__pydantic_extra__), _MARSHAL)
    except ValueError:
        return None


class Encoder:
    """Encodes one checkpoint, or the writes of one task. `new` has the parts to store, `size` the bytes of all."""

    def __init__(self, serde: SerializerProtocol, known: Known) -> None:
        self._serde = serde
        self._known = known
        self.new: dict[bytes, Part] = {}
        self.size = 0

    def encode(self, channel: str, value: Any) -> Ref:
        if type(value) is list and value:
            return self._list(channel, value)
        return self._whole(self._serde.dumps_typed([value]))

    def _whole(self, encoded: tuple[str, bytes]) -> Ref:
        if len(encoded[1]) <= _INLINE:
            self.size += len(encoded[1])
            return Inline(*encoded)
        return Whole(self._store(encoded))

    def _list(self, channel: str, values: list[Any]) -> Ref:
        if _MESSAGES.issuperset(map(type, values)):
            return self._tree([self._message(message) for message in values], 1)
        width = self._known.widths.get(channel)
        slices = self._slices(values, width) if width else []
        average = sum(len(data) for _, data in slices) / len(values)
        if width is None or _width(average) != width:
            whole = self._serde.dumps_typed([values])
            if len(whole[1]) <= _SLICE:
                return self._whole(whole)
            width = _width(len(whole[1]) / len(values))
            slices = self._slices(values, width)
        self._known.widths[channel] = width
        return self._tree([self._store(encoded) for encoded in slices], width)

    def _slices(self, values: list[Any], width: int) -> list[tuple[str, bytes]]:
        return [self._serde.dumps_typed(values[at : at + width]) for at in range(0, len(values), width)]

    def _message(self, message: Any) -> bytes:
        name = self._known.unchanged(message)
        if name is not None:
            self.size += self._known.sizes[name]
            return name
        name = self._store(self._serde.dumps_typed([message]))
        self._known.see(message, name)
        return name

    def _tree(self, names: list[bytes], width: int) -> Ref:
        ref, nodes = parts.listed(names, width)
        for node in nodes:
            self._add(node)
        return ref

    def _store(self, encoded: tuple[str, bytes]) -> bytes:
        self.size += len(encoded[1])
        return self._add(parts.part(*encoded))

    def _add(self, part: Part) -> bytes:
        if part.name not in self._known.sizes:
            self.new[part.name] = part
        return part.name


def _width(average: float) -> int:
    """The number of elements in a slice, a power of two, so that a list that grows evenly keeps it."""
    return 1 << max(0, int(_SLICE / max(average, 1)).bit_length() - 1)


class Decoder:
    """Decodes values from their loaded parts. `known` remembers them; None: not."""

    def __init__(self, serde: SerializerProtocol, loaded: Mapping[bytes, Part], known: Known | None) -> None:
        self._serde = serde
        self._loaded = loaded
        self._known = known
        if known is not None:
            known.add(list(loaded.values()))

    def decode(self, channel: str, ref: Ref) -> Any:
        if isinstance(ref, Inline):
            return self._serde.loads_typed((ref.type, ref.data))[0]
        if isinstance(ref, Whole):
            return self._slice(ref.name)[0]
        return self._list(channel, ref)

    def _list(self, channel: str, ref: Listed) -> list[Any]:
        names = list(ref.names)
        for _ in range(ref.depth):
            names = [below for name in names for below in parts.names_in(self._part(name).data)]
        slices = self._slices([self._part(name) for name in names])
        values = [value for each in slices for value in each]
        if self._known is not None:
            self._known.widths[channel] = ref.width
            for name, each in zip(names, slices, strict=True):
                if len(each) == 1 and type(each[0]) in _MESSAGES:
                    self._known.see(each[0], name)
        return values

    def _slices(self, leaves: Sequence[Part]) -> list[list[Any]]:
        """All in one call, which is faster, where the format allows it."""
        if any(leaf.type != "msgpack" for leaf in leaves):
            return [self._serde.loads_typed((leaf.type, leaf.data)) for leaf in leaves]
        joined = b"\xdd" + len(leaves).to_bytes(4, "big") + b"".join(leaf.data for leaf in leaves)
        slices: list[list[Any]] = self._serde.loads_typed(("msgpack", joined))
        return slices

    def _slice(self, name: bytes) -> list[Any]:
        part = self._part(name)
        loaded: list[Any] = self._serde.loads_typed((part.type, part.data))
        return loaded

    def _part(self, name: bytes) -> Part:
        try:
            return self._loaded[name]
        except KeyError:
            raise UnreadableState("a part of the checkpoint is missing") from None

"""Encodes the values of checkpoints and writes as parts, and decodes them.

An attempt remembers the parts that it has stored or loaded, and does not store them again. A message that has not
changed since is not even serialised again: the shapes of messages are compared, which also detects one that was changed
in place. This module imports LangChain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import attrgetter, is_
from typing import Any, NamedTuple

from langchain_core import messages
from langgraph.checkpoint.serde.base import SerializerProtocol

from assent.runs.checkpoints.recent import AT_ONCE, Blueprint, Copies, Kept, Recent, Shape, array, shape_of
from assent.threads.model import parts
from assent.threads.model.messages import MESSAGES
from assent.threads.model.parts import INLINE, SLICE, Inline, Listed, Part, Ref, Tree, Whole, slice_width

_PLAIN = "msgpack"  # not encrypted
_MOST_MESSAGES = 50_000
_MESSAGES = frozenset(getattr(messages, name) for _, name in MESSAGES)
_SIZE = attrgetter("size")


class _Seen(NamedTuple):
    message: Any  # kept, so that no other object gets its id
    shape: Shape
    name: bytes


class _Loaded(NamedTuple):
    """Messages that follow one another in a loaded list, and the names of their parts."""

    copies: Copies
    names: Sequence[bytes]
    size: int

    def are_at(self, place: int, messages: Sequence[Any]) -> bool:
        """Whether the list still has them there, and none of them was changed."""
        there = messages[place : place + len(self.names)]
        same = len(there) == len(self.names) and all(map(is_, self.copies.messages, there))
        return same and self.copies.are_unchanged()


class Known:
    """The parts of a thread that this attempt, or this edit, has stored or loaded."""

    def __init__(self) -> None:
        self.sizes: dict[bytes, int] = {}
        self.widths: dict[str, int] = {}
        self.trees: defaultdict[str, Tree] = defaultdict(Tree)
        self._seen: dict[int, _Seen] = {}
        self._loaded: dict[int, _Loaded] = {}

    def add(self, new: Sequence[Part]) -> None:
        self.sizes.update((part.name, len(part.data)) for part in new)

    def see(self, message: Any, name: bytes, shape: Shape | None) -> None:
        if shape is not None:
            if len(self._seen) >= _MOST_MESSAGES:
                self._seen.clear()
            self._seen[id(message)] = _Seen(message, shape, name)

    def see_loaded(self, copies: Copies, names: Sequence[bytes]) -> None:
        size = sum(map(self.sizes.__getitem__, names))
        if len(self._loaded) >= _MOST_MESSAGES // AT_ONCE:
            self._loaded.clear()
        self._loaded[id(copies.messages[0])] = _Loaded(copies, names, size)

    def loaded_at(self, place: int, messages: Sequence[Any]) -> _Loaded | None:
        """The unchanged messages that were loaded together and are in the list from this place on."""
        loaded = self._loaded.get(id(messages[place]))
        if loaded is None or loaded.are_at(place, messages):
            return loaded
        self._separate(loaded)
        return None

    def name_of(self, message: Any) -> bytes | None:
        """The name of the message's part; None if it has none, or was changed."""
        seen = self._seen.get(id(message))
        if seen is None or seen.name not in self.sizes or shape_of(message) != seen.shape:
            return None
        return seen.name

    def _separate(self, loaded: _Loaded) -> None:
        """Remembers each message by itself, because one of them was changed, removed or replaced."""
        del self._loaded[id(loaded.copies.messages[0])]
        for message, shape, name in zip(loaded.copies.messages, loaded.copies.shapes, loaded.names, strict=True):
            self.see(message, name, shape)


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
        if len(encoded[1]) <= INLINE:
            self.size += len(encoded[1])
            return Inline(*encoded)
        return Whole(self._store(encoded))

    def _list(self, channel: str, values: list[Any]) -> Ref:
        if _MESSAGES.issuperset(map(type, values)):
            return self._tree(channel, self._messages(values), 1)
        width = self._known.widths.get(channel)
        slices = self._slices(values, width) if width else []
        average = sum(len(data) for _, data in slices) / len(values)
        if width is None or slice_width(average) != width:
            whole = self._serde.dumps_typed([values])
            if len(whole[1]) <= SLICE:
                return self._whole(whole)
            width = slice_width(len(whole[1]) / len(values))
            slices = self._slices(values, width)
        self._known.widths[channel] = width
        return self._tree(channel, [self._store(encoded) for encoded in slices], width)

    def _slices(self, values: list[Any], width: int) -> list[tuple[str, bytes]]:
        return [self._serde.dumps_typed(values[at : at + width]) for at in range(0, len(values), width)]

    def _messages(self, messages: list[Any]) -> list[bytes]:
        names = list[bytes]()
        while len(names) < len(messages):
            if loaded := self._known.loaded_at(len(names), messages):
                names += loaded.names
                self.size += loaded.size
            else:
                names.append(self._message(messages[len(names)]))
        return names

    def _message(self, message: Any) -> bytes:
        if (name := self._known.name_of(message)) is not None:
            self.size += self._known.sizes[name]
            return name
        name = self._store(self._serde.dumps_typed([message]))
        self._known.see(message, name, shape_of(message))
        return name

    def _tree(self, channel: str, names: list[bytes], width: int) -> Ref:
        ref, nodes = self._known.trees[channel].over(names, width)
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


class Decoder:
    """Decodes values from their loaded parts. `known` remembers these, unless it is None."""

    def __init__(
        self, serde: SerializerProtocol, loaded: Mapping[bytes, Kept], known: Known | None, recent: Recent | None = None
    ) -> None:
        self._serde = serde
        self._loaded = loaded
        self._known = known
        self._recent = recent
        if known is not None:
            known.sizes.update(zip(loaded, map(_SIZE, loaded.values()), strict=True))
        if recent is not None:
            recent.add_parts(loaded)

    def decode(self, channel: str, ref: Ref) -> Any:
        if isinstance(ref, Inline):
            return self._serde.loads_typed((ref.type, ref.data))[0]
        if isinstance(ref, Whole):
            return self._slice(ref.name)[0]
        return self._list(channel, ref)

    def _list(self, channel: str, ref: Listed) -> list[Any]:
        names = list[bytes]()
        for level in reversed(ref.levels):
            names = [below for name in names for below in parts.below(self._kept(name))]
            names += level
        if self._known is not None:
            self._known.widths[channel] = ref.width
        values, rest = list[Any](), iter(names)
        for kind, group in groupby(self._all_kept(names), key=type):
            kept = [*group]
            some = [*islice(rest, len(kept))]
            values += self._copied(some, kept) if kind is Blueprint else self._parsed(some, kept)
        return values

    def _copied(self, names: Sequence[bytes], blueprints: Sequence[Blueprint]) -> Iterator[Any]:
        for start in range(0, len(names), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            copies = Copies(blueprints[some])
            if self._known is not None:
                self._known.see_loaded(copies, names[some])
            yield from copies.messages

    def _parsed(self, names: Sequence[bytes], leaves: Sequence[Part]) -> Iterator[Any]:
        for name, leaf, elements in zip(names, leaves, self._slices(leaves), strict=True):
            yield from elements
            if len(elements) == 1 and type(elements[0]) in _MESSAGES:
                self._learn(elements[0], name, leaf)

    def _learn(self, message: Any, name: bytes, leaf: Part) -> None:
        """Keeps a blueprint of the message if a copy has exactly the stored bytes."""
        shape = shape_of(message)
        if self._known is not None:
            self._known.see(message, name, shape)
        if self._recent is not None and shape is not None and leaf.type == _PLAIN:
            blueprint = Blueprint(shape, frozenset(message.__pydantic_fields_set__), len(leaf.data))
            if self._serde.dumps_typed(Copies([blueprint]).messages) == (leaf.type, leaf.data):
                self._recent.add(name, blueprint)

    def _slices(self, leaves: Sequence[Part]) -> list[list[Any]]:
        """All in one call, which is faster, where the format allows it."""
        if any(leaf.type != _PLAIN for leaf in leaves):
            return [self._serde.loads_typed((leaf.type, leaf.data)) for leaf in leaves]
        slices: list[list[Any]] = self._serde.loads_typed((_PLAIN, array([leaf.data for leaf in leaves])))
        return slices

    def _slice(self, name: bytes) -> list[Any]:
        kept = self._kept(name)
        if isinstance(kept, Blueprint):  # of a message that is an element elsewhere
            return Copies([kept]).messages
        loaded: list[Any] = self._serde.loads_typed((kept.type, kept.data))
        return loaded

    def _kept(self, name: bytes) -> Kept:
        kept: Kept = self._all_kept([name])[0]
        return kept

    def _all_kept(self, names: Sequence[bytes]) -> list[Any]:
        try:
            return [self._loaded[name] for name in names]
        except KeyError:
            raise parts.missing() from None

"""Encodes the values of checkpoints and writes as parts, and decodes them.

An attempt remembers the parts that it has stored or loaded, and does not store them again. A message that has not
changed since is not even serialised again: the shape of its fields is compared, which also detects a message that was
changed in place. This module imports LangChain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core import messages
from langgraph.checkpoint.serde.base import SerializerProtocol

from assent.runs.checkpoints.recent import Blueprint, Kept, Recent, Shape, shape_of
from assent.threads.model import parts
from assent.threads.model.messages import MESSAGES
from assent.threads.model.parts import INLINE, SLICE, Inline, Listed, Part, Ref, Tree, Whole, slice_width

_PLAIN = "msgpack"  # not encrypted
_MOST_MESSAGES = 50_000
_MESSAGES = frozenset(getattr(messages, name) for _, name in MESSAGES)


class _Seen(NamedTuple):
    message: Any  # kept, so that no other object gets its id
    shape: Shape
    name: bytes


class Known:
    """The parts of a thread that this attempt, or this edit, has stored or loaded."""

    def __init__(self) -> None:
        self.sizes: dict[bytes, int] = {}
        self.widths: dict[str, int] = {}
        self.trees: defaultdict[str, Tree] = defaultdict(Tree)
        self._seen: dict[int, _Seen] = {}

    def add(self, new: Sequence[Part]) -> None:
        self.sizes.update((part.name, len(part.data)) for part in new)

    def see(self, message: Any, name: bytes, shape: Shape | None) -> None:
        if shape is not None:
            if len(self._seen) >= _MOST_MESSAGES:
                self._seen.clear()
            self._seen[id(message)] = _Seen(message, shape, name)

    def unchanged(self, messages: Sequence[Any]) -> list[bytes | None]:
        """The names of the messages' parts; None for a message that has none, or was changed."""
        names = list[bytes | None]()
        for message in messages:
            seen = self._seen.get(id(message))
            fits = seen is not None and seen.shape.fits(message) and seen.name in self.sizes
            names.append(seen.name if seen is not None and fits else None)
        return names


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
            unchanged = self._known.unchanged(values)
            self.size += sum(self._known.sizes[name] for name in unchanged if name is not None)
            names = [name or self._message(message) for message, name in zip(values, unchanged, strict=True)]
            return self._tree(channel, names, 1)
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

    def _message(self, message: Any) -> bytes:
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
            known.sizes.update((name, kept.size) for name, kept in loaded.items())
        if recent is not None:
            for name, kept in loaded.items():
                if isinstance(kept, Part):
                    recent.add(name, kept)

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
        leaves = [self._kept(name) for name in names]
        parsed = iter(self._slices([leaf for leaf in leaves if isinstance(leaf, Part)]))
        values = list[Any]()
        for name, leaf in zip(names, leaves, strict=True):
            if isinstance(leaf, Blueprint):
                values.append(message := leaf.message())
                self._see(message, name, leaf.shape)
            else:
                values += (elements := next(parsed))
                if len(elements) == 1 and type(elements[0]) in _MESSAGES:
                    self._learn(elements[0], name, leaf)
        return values

    def _see(self, message: Any, name: bytes, shape: Shape | None) -> None:
        if self._known is not None:
            self._known.see(message, name, shape)

    def _learn(self, message: Any, name: bytes, leaf: Part) -> None:
        """Keeps a blueprint of the message if a copy has exactly the stored bytes."""
        shape = shape_of(message)
        self._see(message, name, shape)
        if self._recent is not None and shape is not None and leaf.type == _PLAIN:
            blueprint = Blueprint(shape, frozenset(message.__pydantic_fields_set__), len(leaf.data))
            if self._serde.dumps_typed([blueprint.message()]) == (leaf.type, leaf.data):
                self._recent.add(name, blueprint)

    def _slices(self, leaves: Sequence[Part]) -> list[list[Any]]:
        """All in one call, which is faster, where the format allows it."""
        if any(leaf.type != _PLAIN for leaf in leaves):
            return [self._serde.loads_typed((leaf.type, leaf.data)) for leaf in leaves]
        joined = b"\xdd" + len(leaves).to_bytes(4, "big") + b"".join(leaf.data for leaf in leaves)
        slices: list[list[Any]] = self._serde.loads_typed((_PLAIN, joined))
        return slices

    def _slice(self, name: bytes) -> list[Any]:
        kept = self._kept(name)
        if isinstance(kept, Blueprint):  # of a message that is an element elsewhere
            return [kept.message()]
        loaded: list[Any] = self._serde.loads_typed((kept.type, kept.data))
        return loaded

    def _kept(self, name: bytes) -> Kept:
        try:
            return self._loaded[name]
        except KeyError:
            raise parts.missing() from None

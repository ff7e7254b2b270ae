"""Secrets in questions of agents: the secret parts of a call's arguments, and their masks.

`Cover` defines the secret parts: a policy masks and unmasks paths, a schema marks some, and some names are secret by
themselves. `Text` removes the hidden values from any text that repeats them, in every common encoding.
"""

from __future__ import annotations

import html
import json
import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.json_texts import Part, is_document, parts
from assent.review.model.schemas.present import X_NOW

MASK = "••••••"
Path = tuple[str, ...]

ANY = "*"
"""A step of a path that matches every key."""

_NAMES = frozenset(
    {
        *("password", "passwd", "pin", "secret", "clientsecret", "token", "accesstoken", "refreshtoken"),
        *("apikey", "privatekey", "authorization", "credential", "credentials", "ssn", "cardnumber", "cvv"),
    }
)
_EXAMPLES = ("default", "const", "example", "examples", X_NOW)
_MOST_NODES = 5_000
_DEEPEST_SCHEMA = 12
_SHORTEST_KEY = 4
_MOST_TEXTS = 4
"""The maximum nesting of JSON texts inside texts that are searched."""
_MOST_SHAPES = 50
"""The limit, because every path is compared with each of them."""
_MISSING = object()
_START = 4
"""The number of first characters by which a secret is looked up. A shorter secret matches only as a whole word."""
_LONG_NUMBER = 8
_MOST_FIRSTS = 200
_UNIT = 256
"""The number of characters whose comparison costs one unit of work."""
_WORK_PER_CHARACTER, _WORK_PER_TEXT, _WORK_PER_SECRET = 5, 200, 20
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
"""Characters that no encoding changes."""
_QUOTED = re.compile(r"""["']([\w-]{3,20})["']\s*:""")


def is_secret_name(name: str) -> bool:
    """Whether an argument of this name is a secret by default. Case, `-` and `_` do not matter."""
    return name.casefold().replace("-", "").replace("_", "") in _NAMES


@dataclass(frozen=True)
class Cover:
    """The secret parts of a call's arguments. A list adds no step to a path: its entries have the path of the list.

    `masks` and `unmasks` come from a policy; `masks` win. `marked` are the paths that a schema marks as secret.
    """

    masks: frozenset[Path] = frozenset()
    unmasks: frozenset[Path] = frozenset()
    marked: frozenset[Path] = frozenset()

    def hides(self, path: Path) -> bool:
        if path in self.masks:
            return True
        if path in self.unmasks:
            return False
        return path in self.marked or bool(path and is_secret_name(path[-1])) or self._is_marked(path)

    def masked(self, value: Json) -> Json:
        """The value with a mask over every secret."""
        return self._masked(value, ())

    def texts(self, value: Json) -> set[str]:
        """The secrets in the value, each as a text."""
        return set(self._texts(value, ()))

    def holds(self, value: Json) -> bool:
        """Whether there is a secret in the value."""
        return bool(canonical.text(self.masked(value)) != canonical.text(value))

    def kept(self, value: Json, original: Json) -> Json:
        """The value with each mask replaced by the original's secret at the same place. Any other mask stays, to be
        refused."""
        return self._kept(value, original, ())

    def joined(self, other: Cover) -> Cover:
        """Hides the parts that either of them hides."""
        return Cover(self.masks | other.masks, self.unmasks & other.unmasks, self.marked | other.marked)

    @cached_property
    def _patterns(self) -> dict[int, dict[tuple[int, ...], set[Path]]]:
        """The patterns by length and by the positions of their named steps."""
        patterns = defaultdict[int, dict[tuple[int, ...], set[Path]]](dict)
        for path in self.marked:
            if ANY in path:
                patterns[len(path)].setdefault(_named_at(path), set()).add(tuple(step for step in path if step != ANY))
        return patterns

    def _is_marked(self, path: Path) -> bool:
        shapes = self._patterns.get(len(path), {})
        return any(tuple(path[index] for index in named) in steps for named, steps in shapes.items())

    def _masked(self, value: Json, path: Path) -> Json:
        if self.hides(path):
            return MASK
        if isinstance(value, dict):
            return {name: self._masked(part, (*path, name)) for name, part in value.items()}
        if isinstance(value, list):
            return [self._masked(entry, path) for entry in value]
        return self._masked_text(value, path) if isinstance(value, str) else value

    def _masked_text(self, text: str, path: Path, left: int = _MOST_TEXTS) -> str:
        """Masks the secrets of JSON inside a text, and changes nothing else of it."""
        pieces, done = list[str](), 0
        for part in (json_parts := self._parts(text, path, left)) or ():
            shown = MASK if part.whole else self._masked_text(part.value, part.path, left - 1)
            if part.whole or shown != part.value:
                pieces += text[done : part.start], json.dumps(shown, ensure_ascii=False)
                done = part.end
        return MASK if json_parts is None else "".join([*pieces, text[done:]])

    def _parts(self, text: str, path: Path, left: int) -> list[Part] | None:
        """The parts of JSON inside a text; None if it may contain a secret that cannot be located."""
        if not is_document(text):
            return []
        try:
            located = parts(text, path, self.hides) if left else None
        except ValueError:
            located = None
        return [] if located is None and not looks_secret(text) else located

    def _texts(self, value: Json, path: Path) -> Iterator[str]:
        if self.hides(path):
            yield from leaves(value)
        elif isinstance(value, dict):
            for name, part in value.items():
                yield from self._texts(part, (*path, name))
        elif isinstance(value, list):
            for entry in value:
                yield from self._texts(entry, path)
        elif isinstance(value, str):
            yield from self._texts_in(value, path)

    def _texts_in(self, text: str, path: Path, left: int = _MOST_TEXTS) -> Iterator[str]:
        located = self._parts(text, path, left)
        if located is None:
            yield text
        for part in located or ():
            yield from leaves(part.value) if part.whole else self._texts_in(part.value, part.path, left - 1)

    def _kept(self, value: Json, original: Any, path: Path) -> Json:
        if value == MASK and self.hides(path):
            return value if original is _MISSING else original
        if isinstance(value, dict) and isinstance(original, dict):
            return {name: self._kept(part, original.get(name, _MISSING), (*path, name)) for name, part in value.items()}
        if isinstance(value, list) and isinstance(original, list):
            return self._entries(value, original, path) if holds_mask(value) else value
        unchanged = isinstance(original, str) and holds_mask(value) and value == self._masked(original, path)
        return original if unchanged else value

    def _entries(self, values: list[Json], originals: list[Json], path: Path) -> list[Json]:
        """Restores entries that are otherwise unchanged. For a changed entry, the matching secret is ambiguous."""
        alike = defaultdict[str, dict[str, Json]](dict)
        for original in originals:
            alike[_same(self._masked(original, path))][_same(original)] = original
        candidates = [alike.get(_same(value), {}) if holds_mask(value) else {} for value in values]
        return [
            next(iter(matches.values())) if len(matches) == 1 else value
            for value, matches in zip(values, candidates, strict=True)
        ]


EVERYTHING = Cover(marked=frozenset({(ANY,)}))
"""The cover of a call about which too little is known."""


SECRET_NAMES = Cover()
"""Masks values that are secret by their name alone."""


def cover_of(schema: Json, masks: Iterable[str] = (), unmasks: Iterable[str] = ()) -> Cover:
    """The cover of arguments with this schema under a policy that masks and unmasks these paths (`card.number`)."""
    return Cover(frozenset(map(_steps, masks)), frozenset(map(_steps, unmasks)), marked_in(schema))


def marked_in(schema: Json) -> frozenset[Path]:
    """The paths that a JSON Schema marks as secret: `writeOnly`, `format: password` or `x-secret`."""
    marked = frozenset(_Marks(schema).below(schema, ()))
    shapes = {(len(path), _named_at(path)) for path in marked}
    return marked if len(shapes) <= _MOST_SHAPES else EVERYTHING.marked


def _named_at(path: Path) -> tuple[int, ...]:
    return tuple(index for index, step in enumerate(path) if step != ANY)


def is_marked(schema: Json) -> bool:
    """Whether the schema marks the whole value as a secret."""
    if not isinstance(schema, dict):
        return False
    return schema.get("writeOnly") is True or schema.get("x-secret") is True or schema.get("format") == "password"


def shown_schema(schema: Json, name: str = "") -> Json:
    """The schema without examples and defaults of secret fields."""
    if isinstance(schema, list):
        return [shown_schema(part, name) for part in schema]
    if not isinstance(schema, dict):
        return schema
    secret = is_marked(schema) or is_secret_name(name)
    return {key: _shown_part(key, part, name, secret=secret) for key, part in schema.items()}


def leaves(value: Json) -> Iterator[str]:
    """All values as texts, without empty ones. Keys that look like field names are left out."""
    if isinstance(value, dict):
        yield from (name for name in value if not _is_field(name))
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)
    elif value not in (None, "", MASK) and not isinstance(value, bool):
        yield str(value)


def _is_field(name: str) -> bool:
    """Whether a key is a word or two, or too short to be a secret: `user_name` must not be masked in every text."""
    return len(name) < _SHORTEST_KEY or name.replace("_", "").replace("-", "").isalpha()


def looks_secret(text: str) -> bool:
    """Whether the text is JSON-like and contains a secret's name."""
    return text.lstrip()[:1] in ("{", "[") and any(is_secret_name(name) for name in _QUOTED.findall(text))


def masks_in(value: Json, path: str = "", *, whole: bool = False) -> Iterator[str]:
    """The paths of masks in the value, alone or inside a text; only alone if `whole`."""
    if isinstance(value, str):
        if value == MASK or (MASK in value and not whole):
            yield path
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from masks_in(part, canonical.join(path, str(name)), whole=whole)
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from masks_in(part, canonical.join(path, index), whole=whole)


def holds_mask(value: Json) -> bool:
    return next(masks_in(value), None) is not None


class Text:
    """Removes secrets from texts. A short number is removed only as a whole word: it could be part of other text by
    accident.

    The work grows with the text, not with the number of secrets: candidates are looked up by their first characters,
    and then by length. A text that would take longer is masked as a whole.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._left = math.inf
        self._known = set[str]()
        self._spelled = set[str]()
        self._sorted: list[str] = []
        self._lengths: dict[str, list[int]] = {}
        self._longest = 0
        self._firsts = set[str]()
        self._places = re.compile(r"(?!)")
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        fresh = {secret for secret in secrets if secret.strip()} - self._known
        self._known |= fresh
        self._left -= sum(_WORK_PER_SECRET + len(secret) // _START for secret in fresh)
        if self._left < 0:
            return
        added = {spelling for secret in fresh for spelling in spellings(secret)} - self._spelled
        if not added:
            return
        self._spelled |= added
        self._sorted = sorted([*self._sorted, *added])
        lengths = defaultdict[str, set[int]](set)
        for spelling in added:
            lengths[_start(spelling)].add(len(spelling))
        for start, fresh_lengths in lengths.items():
            self._lengths[start] = sorted(fresh_lengths.union(self._lengths.get(start, ())))
        self._longest = max(self._longest, *map(len, added))
        self._look_for({spelling[0] for spelling in added})

    def limit(self, work: float) -> None:
        """Limits the work: beyond it, every text is masked as a whole."""
        self._left = work

    def __contains__(self, value: object) -> bool:
        return str(value) in self._known

    def without(self, text: str) -> str:
        """The text with a mask over every secret in it, including one truncated at its end."""
        if not text or not (self._spelled or self._left < 0):
            return text
        try:
            masked = _replaced(text, self._spans(text))
        except _TooMuchWork:
            return MASK
        return f"{self.safe(masked[:-1])}…" if masked.endswith("…") else masked

    def inside(self, value: Json) -> Json:
        """The same for every text in the value."""
        if isinstance(value, dict):
            return {name: self.inside(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.inside(entry) for entry in value]
        return self.without(value) if isinstance(value, str) else value

    def safe(self, text: str) -> str:
        """The text up to where its end could begin a secret."""
        if self._left < 0:
            return ""
        first = max(len(text) - self._longest + 1, 0)
        left = _most_work(len(text) - first)
        for place in self._places.finditer(text, first):
            rest = text[place.start() :]
            left -= 1 + len(rest) // _UNIT
            index = bisect_left(self._sorted, rest)
            longer = (candidate for candidate in self._sorted[index : index + 2] if candidate != rest)
            if left < 0 or any(candidate.startswith(rest) for candidate in longer):
                return text[: place.start()]
        return text

    def _look_for(self, firsts: set[str]) -> None:
        """Compiles the pattern of first characters. A long list of characters would be slow to search."""
        if firsts <= self._firsts:
            return
        self._firsts |= firsts
        listed = "".join(map(re.escape, sorted(self._firsts)))
        self._places = re.compile(f"[{listed}]" if len(self._firsts) <= _MOST_FIRSTS else r"[\s\S]")

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The positions of secrets: at each start, the longest match. They may overlap."""
        left = most = min(_most_work(len(text)), self._left)
        for place in self._places.finditer(text):
            at = place.start()
            left -= 1
            for length in self._fitting(text, at):
                left -= 1 + length // _UNIT
                if left < 0:
                    break
                if text[at : at + length] in self._spelled and _is_secret_match(text, at, at + length):
                    yield at, at + length
                    break
            if left < 0:
                break
        self._left -= most - left
        if left < 0:
            raise _TooMuchWork

    def _fitting(self, text: str, at: int) -> Iterable[int]:
        """The lengths of the secrets that could begin there, the longest first."""
        start, first = text[at : at + _START], text[at]
        if start not in self._lengths and first not in self._lengths:
            return ()
        return chain(self._lengths_within(start, len(text) - at), self._lengths_within(first, len(text) - at))

    def _lengths_within(self, start: str, room: int) -> Iterator[int]:
        lengths = self._lengths.get(start, [])
        return (lengths[index] for index in range(bisect_right(lengths, room) - 1, -1, -1))


class _TooMuchWork(Exception):
    """Looking for secrets in this text takes too long."""


def _most_work(length: int) -> int:
    return _WORK_PER_CHARACTER * length + _WORK_PER_TEXT


def _start(spelling: str) -> str:
    return spelling[: _START if len(spelling) >= _START else 1]


def _is_secret_match(text: str, at: int, stop: int) -> bool:
    """Whether the match is long enough to be a secret anywhere, or is a whole word."""
    length = stop - at
    if length >= _LONG_NUMBER or (length >= _START and not text[at:stop].isdecimal()):
        return True
    return not text[at - 1 : at].isalnum() and not text[stop : stop + 1].isalnum()


def _replaced(text: str, spans: Iterable[tuple[int, int]]) -> str:
    parts, end = list[str](), 0
    for at, stop in spans:
        if at >= end:
            parts += text[end:at], MASK
        end = max(end, stop)
    return "".join([*parts, text[end:]])


def spellings(secret: str) -> set[str]:
    """The encodings of a secret: plain, JSON or Python once or twice, HTML, URL; also line by line."""
    if _PLAIN.fullmatch(secret):
        return {secret}
    parts = {secret, *(line.strip() for line in secret.splitlines() if len(line.strip()) >= 4)}
    variants = set(parts)
    for _ in range(2):
        variants |= {write(variant) for variant in variants for write in _WRITERS}
    variants |= {write(variant) for variant in parts for write in (html.escape, _percent, _without_nul)}
    return {variant for variant in variants if variant.strip()}


def _json_ascii(text: str) -> str:
    return json.dumps(text)[1:-1]


def _json_unicode(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _python(text: str) -> str:
    return repr(text)[1:-1]


def _percent(text: str) -> str:
    encoded = text.encode("utf-8", "replace")
    return "".join(chr(byte) if byte < 128 and _PLAIN.fullmatch(chr(byte)) else f"%{byte:02X}" for byte in encoded)


def _without_nul(text: str) -> str:
    return text.replace("\0", "\N{SYMBOL FOR NULL}")


_WRITERS: tuple[Callable[[str], str], ...] = (_json_ascii, _json_unicode, _python)


def _same(value: Json) -> str:
    """The same text for values that are equal as JSON."""
    return canonical.text(canonical.numbered(value))


def _steps(path: str) -> Path:
    return tuple(path.split("."))


def _shown_part(key: str, value: Json, name: str, *, secret: bool) -> Json:
    if secret and key in _EXAMPLES:
        return MASK
    if key in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, dict):
        return {inner: shown_schema(part, inner if key == "properties" else "") for inner, part in value.items()}
    return shown_schema(value, name) if key in ("items", "anyOf", "oneOf", "allOf", "additionalProperties") else value


class _Marks:
    """The walk over one schema. A schema that is too large marks everything."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._left = _MOST_NODES

    def below(self, schema: Json, path: Path, named: tuple[Json, ...] = ()) -> Iterator[Path]:
        """`named` are the references on the way here: a cyclic one is followed once more, then stopped."""
        if not isinstance(schema, dict) or len(path) > _DEEPEST_SCHEMA:
            return
        self._left -= 1
        if self._left < 0:
            yield (ANY,)
            return
        if path and is_marked(schema):
            yield path
            return
        for step, inner in self._parts(schema):
            yield from self.below(inner, path if step is None else (*path, step), named)
        reference = schema.get("$ref")
        if named.count(reference) < 2:
            yield from self.below(self._named(reference), path, (*named, reference))

    def _parts(self, schema: dict[str, Json]) -> Iterator[tuple[str | None, Json]]:
        properties = schema.get("properties")
        yield from properties.items() if isinstance(properties, dict) else ()
        patterns = schema.get("patternProperties")
        others = [*(patterns.values() if isinstance(patterns, dict) else ()), schema.get("additionalProperties")]
        yield from ((ANY, other) for other in others if isinstance(other, dict))
        yield None, schema.get("items")
        for name in ("anyOf", "oneOf", "allOf", "prefixItems"):
            options = schema.get(name)
            yield from ((None, option) for option in (options if isinstance(options, list) else ()))

    def _named(self, reference: Json) -> Json:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        target = self._root
        for step in reference[2:].split("/"):
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        return target

"""Secrets in what agents ask: which values are, by their schema or by policy, and what stands in their place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest

from assent.domain.canonical import Json

MASK = "••••••"
Path = tuple[str, ...]


def secret_paths(schema: Json, named: Iterable[str] = ()) -> list[Path]:
    """Where secrets stand: what a policy names (`card.number`), and what the schema says is written but not read."""
    return [*(tuple(path.split(".")) for path in named), *_in_schema(schema, ())]


def masked(value: Json, paths: Sequence[Path]) -> Json:
    """The value with a mask over every secret. In a list, the path goes on in each entry."""
    for path in paths:
        value = _masked(value, path)
    return value


def covered(text: str | None, value: Json, paths: Sequence[Path]) -> str | None:
    """A text about the value, with a mask over every secret of it: agents like to repeat arguments in their words."""
    return without(text, spelled(value, paths))


def spelled(value: Json, paths: Sequence[Path]) -> set[str]:
    """The secrets of the value, as a text would spell them."""
    return {one for path in paths for one in _texts(value, path)}


def without(text: str | None, secrets: Collection[str]) -> str | None:
    """The text with a mask over every one of the secrets. The longest go first: a shorter one may be a part of them."""
    for secret in sorted(secrets, key=len, reverse=True) if text else ():
        text = text and text.replace(secret, MASK)
    return text


def _texts(value: Json, path: Path) -> Iterator[str]:
    """What stands at a path, in the words of a text."""
    if isinstance(value, list):
        for one in value:
            yield from _texts(one, path)
    elif isinstance(value, dict):
        for name in [path[0]] if path else list(value):
            yield from _texts(value.get(name), path[1:])
    elif not path and value not in (None, "") and not isinstance(value, bool):
        yield str(value)


def kept(value: Json, original: Json, paths: Sequence[Path]) -> Json:
    """The value with every mask that still stands over a secret taken for the secret itself."""
    for path in paths:
        value = _kept(value, original, path)
    return value


def _kept(value: Json, original: Json, path: Path) -> Json:
    if not path:
        return original if value == MASK else value
    if isinstance(value, list) and isinstance(original, list):
        return [_kept(one, other, path) for one, other in zip_longest(value, original[: len(value)])]
    if not isinstance(value, dict) or not isinstance(original, dict) or path[0] not in value:
        return value
    return {**value, path[0]: _kept(value[path[0]], original.get(path[0]), path[1:])}


def _masked(value: Json, path: Path) -> Json:
    if not path:
        return MASK
    if isinstance(value, list):
        return [_masked(one, path) for one in value]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    return {**value, path[0]: _masked(value[path[0]], path[1:])}


def _in_schema(schema: Json, path: Path, depth: int = 8) -> Iterator[Path]:
    if not isinstance(schema, dict) or depth == 0:
        return
    if path and (schema.get("writeOnly") is True or schema.get("format") == "password"):
        yield path
        return
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        yield from _in_schema(inner, (*path, name), depth - 1)
    yield from _in_schema(schema.get("items"), path, depth - 1)

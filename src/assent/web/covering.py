"""Secrets of items, covered where a thread's state repeats them. An item shows a mask; what stands behind it is found
by looking for the same call in the state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from assent.domain.secrets import MASK
from assent.web import conversation


def secrets(items: Sequence[Mapping[str, Any]], values: Any) -> tuple[str, ...]:
    """What stands behind the masks of the items; the longest first."""
    shown = [(str(one["call_id"] or ""), one["args"]) for item in items for one in item["actions"]]
    masked = [(call_id, args) for call_id, args in shown if _holds_mask(args)]
    if not masked:
        return ()
    calls = [(call.id, call.args) for one in conversation.of(values).messages for call in one.calls]
    found = {
        secret
        for call_id, args in masked
        for raw in [*(raw for id, raw in calls if id and id == call_id), *_likenesses(args, values)]
        for secret in _behind(args, raw)
    }
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def covered(value: Any, secrets: Sequence[str]) -> Any:
    """The value with a mask over every secret in it."""
    if isinstance(value, dict):
        return {name: covered(one, secrets) for name, one in value.items()}
    if isinstance(value, list):
        return [covered(one, secrets) for one in value]
    if isinstance(value, str):
        return reduce(lambda text, secret: text.replace(secret, MASK), secrets, value)
    return MASK if not isinstance(value, bool) and str(value) in secrets else value


def _likenesses(masked: Any, values: Any) -> Iterator[Any]:
    """Whatever in the state equals the arguments but for what is masked."""
    if _alike(masked, values):
        yield values
    inner = values.values() if isinstance(values, dict) else values if isinstance(values, list) else ()
    for one in inner:
        yield from _likenesses(masked, one)


def _alike(masked: Any, raw: Any) -> bool:
    if masked == MASK:
        return True
    if isinstance(masked, dict) and isinstance(raw, dict):
        return masked.keys() == raw.keys() and all(_alike(masked[name], raw[name]) for name in masked)
    if isinstance(masked, list) and isinstance(raw, list):
        return len(masked) == len(raw) and all(map(_alike, masked, raw))
    return bool(masked == raw)


def _holds_mask(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value == MASK or any(map(_holds_mask, inner))


def _behind(masked: Any, raw: Any) -> Iterator[str]:
    if masked == MASK and raw != MASK:
        yield from _texts(raw)
    elif isinstance(masked, dict) and isinstance(raw, dict):
        for name in masked:
            yield from _behind(masked[name], raw.get(name))
    elif isinstance(masked, list) and isinstance(raw, list):
        for one, other in zip(masked, raw, strict=False):
            yield from _behind(one, other)


def _texts(value: Any) -> Iterator[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _texts(one)
    if not isinstance(value, dict | list | bool) and value not in (None, "", MASK):
        yield str(value)

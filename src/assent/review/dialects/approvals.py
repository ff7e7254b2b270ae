"""Heuristics that detect an approval in a question whose form does not show it.

Callers of the thread may answer a question that approves nothing. So each check errs on the safe side: an unknown key,
a text that is JSON, a schema that accepts a boolean or cannot be checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from assent.kernel import canonical
from assent.kernel.canonical import Json

_CALL_KEYS = frozenset(
    {
        "action_request",
        "actionRequests",
        "action_requests",
        "approvals",
        "args",
        "arguments",
        "gate",
        "reviewConfigs",
        "review_configs",
        "tool",
        "tool_call",
        "tool_call_id",
        "tool_calls",
        "tool_name",
    }
)
"""Keys of a tool call in some dialect."""

_MOST_OBJECTS = 200


def has_other_keys(value: Json, known: Collection[str]) -> bool:
    """Whether the value has other fields than these."""
    return not isinstance(value, dict) or not value.keys() <= set(known)


def is_packed(value: Json) -> bool:
    """Whether a text looks like a JSON object or list."""
    return isinstance(value, str) and value.lstrip()[:1] in ("{", "[")


def contains_call(value: Json) -> bool:
    """Whether the value contains a key of a tool call, at any depth."""
    if isinstance(value, dict):
        return not _CALL_KEYS.isdisjoint(value) or any(map(contains_call, value.values()))
    return is_packed(value) or (isinstance(value, list) and any(map(contains_call, value)))


def takes_boolean(schema: Json) -> bool:
    """Whether true or false can be the whole answer, alone or as every field of an object. A schema that cannot be
    checked, or not quickly, counts as accepting it."""
    return _takes_boolean(canonical.text(schema))


@lru_cache(maxsize=256)
def _takes_boolean(schema_text: str) -> bool:
    from assent.review.model.schemas import validation as schemas  # slow to import, and many agents have no schema

    schema = canonical.parse(schema_text, max_depth=2 * canonical.MAX_DEPTH)
    if schemas.defect(schema) is not None:
        return True
    forms = set(map(frozenset, _objects(schema)))
    if len(forms) > _MOST_OBJECTS:
        return True
    answers = [answer for whole in (True, False) for answer in (whole, *(dict.fromkeys(form, whole) for form in forms))]
    return schemas.accepts_any(schema, answers)


def _objects(schema: Json) -> Iterator[list[str]]:
    """The field names of each object in the schema, at any depth; the schema itself validates the candidates."""
    children: Iterable[Json] = schema if isinstance(schema, list) else ()
    if isinstance(schema, dict):
        children = schema.values()
        yield from filter(None, (_names(schema, "properties"), _names(schema, "required")))
    for child in children:
        yield from _objects(child)


def _names(schema: dict[str, Json], keyword: str) -> list[str]:
    names = schema.get(keyword)
    return [name for name in names if isinstance(name, str)] if isinstance(names, (dict, list)) else []

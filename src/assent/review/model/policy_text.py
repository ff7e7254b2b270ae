"""Writes a policy as TOML, for people to read, edit and activate again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from assent.kernel.canonical import Json
from assent.kernel.hidden import is_hidden
from assent.review.model import policies
from assent.review.model.policies import StandingApproval


def to_toml(policy: Mapping[str, Json]) -> str:
    """Leaves out defaults, and escapes hidden characters."""
    default = _explicit(policy["default"])
    short = default["then"] if default == {"name": "default", "then": default["then"]} else default
    rules = ["\n".join(["[[rules]]", *_fields(_explicit(rule))]) for rule in policy["rules"]]
    return "\n\n".join([f"default = {_value(short)}", *rules])


def standing_lines(approval: StandingApproval) -> list[str]:
    """A standing approval as TOML, for the diff that is shown before it is given."""
    arguments = "exactly those of the item" if approval.args_hash else None
    scope: dict[str, Json] = {
        "tool": approval.tool,
        "graph": approval.graph,
        "agent": approval.agent,
        "arguments": arguments,
        "when": approval.condition,
        "uses": approval.uses_left,
        "until": approval.expires_at.isoformat(timespec="minutes"),
    }
    return ["[[standing_approvals]]", *_fields(scope)]


def _explicit(rule: Mapping[str, Json]) -> dict[str, Json]:
    """The fields that differ from their defaults."""
    bare = policies.from_json({"default": rule["then"]})
    usual = policies.to_json(bare)["default"]
    return {name: value for name, value in rule.items() if name in ("name", "then") or value != usual.get(name)}


def _fields(table: Mapping[str, Json]) -> Iterator[str]:
    for name, value in table.items():
        if value is not None and value != []:
            yield f"{name} = {_value(value)}"


def _value(value: Json) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(_fields(value))} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return "".join(map(_shown, json.dumps(value, ensure_ascii=False)))


def _shown(character: str) -> str:
    if not is_hidden(character):
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

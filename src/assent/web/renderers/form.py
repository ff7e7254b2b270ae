"""A form: what it is for, and what it wants to know. The inputs themselves are the page's own."""

from __future__ import annotations

import re

from assent.web.language import gettext as _
from assent.web.renderers.blocks import Caution, Facts, Rendering, Text, Value
from assent.web.renderers.reading import View, actions, entries, mapping, text
from assent.web.renderers.registry import renders

_SECRET = re.compile(
    r"passw|passphrase|secret|token|api.?key|\bpin\b|\bcvv\b|card.?number|\bssn\b|\biban\b", re.IGNORECASE
)


@renders("form")
def form(item: View) -> Rendering | None:
    found = actions(item)
    if len(found) != 1:
        return None
    schema = mapping(found[0].get("schema"))
    message = text(mapping(found[0].get("args")), "message", "question") or text(item, "description")
    fields = mapping(schema.get("properties"))
    needed = entries(schema.get("required"))
    secrets = [name for name, one in fields.items() if _is_secret(name, mapping(one))]
    return Rendering(
        Text(message, large=True) if message else None,
        Facts({"Asks for": [_field(name, mapping(one), name in needed) for name, one in fields.items()]}),
        Caution("It asks for a secret. Do you know who will get it?", ", ".join(secrets)) if secrets else None,
    )


def _field(name: str, schema: View, needed: bool) -> Value:
    return Value(text(schema, "title") or name, "" if needed else _("optional"))


def _is_secret(name: str, schema: View) -> bool:
    hidden = schema.get("writeOnly") is True or schema.get("format") == "password"
    return hidden or bool(_SECRET.search(f"{name} {text(schema, 'title')}"))

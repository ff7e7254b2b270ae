"""Forms: the message and the requested fields. The page itself draws the inputs."""

from __future__ import annotations

import re

from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.blocks import Caution, Facts, Rendering, Text, Value
from assent.surfaces.web.renderers.registry import renders
from assent.surfaces.web.renderers.values.reading import View, actions, entries, mapping, text

_SECRET = re.compile(
    r"passw|passphrase|secret|token|api.?key|\bpin\b|\bcvv\b|card.?number|\bssn\b|\biban\b", re.IGNORECASE
)


FIELDS = "Requested fields"
"""The label of the list that stands where there is no input for each field."""


@renders("form")
def form(item: View) -> Rendering | None:
    forms = actions(item)
    if len(forms) != 1:
        return None
    schema = mapping(forms[0].get("schema"))
    message = text(mapping(forms[0].get("args")), "message", "question") or text(item, "description")
    fields = mapping(schema.get("properties"))
    needed = entries(schema.get("required"))
    secrets = [name for name, field in fields.items() if _is_secret(name, mapping(field))]
    return Rendering(
        Text(message, large=True) if message else None,
        Facts({FIELDS: [_field(name, mapping(field), name in needed) for name, field in fields.items()]}),
        Caution("Asks for a secret. Check who receives it.", ", ".join(secrets)) if secrets else None,
    )


def _field(name: str, schema: View, needed: bool) -> Value:
    return Value(text(schema, "title") or name, "" if needed else _("optional"))


def _is_secret(name: str, schema: View) -> bool:
    hidden = schema.get("writeOnly") is True or schema.get("format") == "password"
    return hidden or bool(_SECRET.search(f"{name} {text(schema, 'title')}"))

"""Present values of what a call changes: `x-now` of a field in the schema of the arguments."""

from __future__ import annotations

from assent.kernel import canonical
from assent.kernel.canonical import Json

X_NOW = "x-now"


def values_now(schema: Json, args: Json) -> dict[str, Json]:
    """The present values of the arguments that differ from them."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not isinstance(args, dict):
        return {}
    now = {name: part[X_NOW] for name, part in properties.items() if isinstance(part, dict) and X_NOW in part}
    return {name: value for name, value in now.items() if name in args and not canonical.same(value, args[name])}

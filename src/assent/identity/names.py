"""Valid names of people and keys: shown in one line and used in a URL."""

from __future__ import annotations

from assent.errors import Invalid

_LONGEST = 200


def checked(name: str) -> str:
    stripped = name.strip()
    if not 0 < len(stripped) <= _LONGEST or not stripped.isprintable() or "/" in stripped:
        raise Invalid(f"a name has 1 to {_LONGEST} printable characters and no slash")
    return stripped

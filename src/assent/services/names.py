"""What people and keys may be called: something that can be shown in one line and put in an address."""

from __future__ import annotations

from assent.errors import Invalid

_LONGEST = 200


def checked(name: str) -> str:
    stripped = name.strip()
    if not 0 < len(stripped) <= _LONGEST or not stripped.isprintable() or "/" in stripped:
        raise Invalid(f"a name has 1 to {_LONGEST} printable characters and no slash")
    return stripped

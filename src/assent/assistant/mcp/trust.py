"""Whether the annotations of MCP servers count if no setting names the trusted servers: not under `assent serve`, where
the operator has to say so."""

from __future__ import annotations

_by_default = False


def trust_by_default(trusts: bool) -> None:
    """Set once, by the command that runs."""
    global _by_default
    _by_default = trusts


def trusted_by_default() -> bool:
    return _by_default

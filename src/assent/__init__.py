"""Assent runs LangGraph agents, stops them where a person must approve, and gives people one place to decide.

The API for agent authors is imported from here. It is loaded at first use, so that `import assent` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assent.gate.decorator import gated
    from assent.gate.elsewhere.inbox import RemoteInbox
    from assent.gate.inbox import LocalInbox
    from assent.gate.keeper import current_grant
    from assent.gate.middleware import ApprovalMiddleware
    from assent.review.dialects.human_interrupt import (
        ActionRequest,
        HumanInterrupt,
        HumanInterruptConfig,
        HumanResponse,
    )

__all__ = [
    "ActionRequest",
    "ApprovalMiddleware",
    "HumanInterrupt",
    "HumanInterruptConfig",
    "HumanResponse",
    "LocalInbox",
    "RemoteInbox",
    "current_grant",
    "gated",
]

_INTERRUPTS = ("ActionRequest", "HumanInterrupt", "HumanInterruptConfig", "HumanResponse")
_HOMES = dict.fromkeys(_INTERRUPTS, "assent.review.dialects.human_interrupt") | {
    "ApprovalMiddleware": "assent.gate.middleware",
    "LocalInbox": "assent.gate.inbox",
    "RemoteInbox": "assent.gate.elsewhere.inbox",
    "current_grant": "assent.gate.keeper",
    "gated": "assent.gate.decorator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'assent' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

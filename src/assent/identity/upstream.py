"""The private parts of the LangGraph SDK that Assent uses: the handlers that an author's `Auth` object holds.

The SDK has no public way to read them; its server reads the same fields. `tests/unit/test_upstream.py` fails when they
move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph_sdk import Auth


@dataclass(frozen=True, slots=True)
class Handlers:
    authenticate: Callable[..., Any] | None
    on: Mapping[tuple[str, str], Sequence[Callable[..., Any]]]
    """By resource and action, each of which may be `*`."""

    on_everything: Sequence[Callable[..., Any]]


def handlers_of(auth: Auth) -> Handlers:
    return Handlers(auth._authenticate_handler, auth._handlers, auth._global_handlers)

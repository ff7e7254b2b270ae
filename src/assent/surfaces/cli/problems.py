"""Explains an error of a server to the person at the terminal: one line, and hints for the next attempt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assent.errors import AssentError
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.item_views import View, decided

_KEY = "give a key with --key or ASSENT_API_KEY, or assent login; assent keys create makes one"
_RIGHT = "use a key that has it: --key, ASSENT_API_KEY or --profile"
_ADDRESS = "check --url (or ASSENT_URL)"


def explained(error: AssentError) -> AssentError:
    """The same error, with its texts escaped and the facts as its hint."""
    error.message = escaped(error.message)
    error.hint = "; ".join(_hints(error)) or None
    return error


def candidates(items: Sequence[View]) -> str:
    return "\n  ".join(f"{item['id']}  {escaped(item['title'])}" for item in items)


def _hints(error: AssentError) -> Iterator[str]:
    """Facts for the next attempt: the earlier decision, the current revision, the possible actions."""
    code, facts = error.code, error.extra
    if decision := facts.get("decision"):
        yield decided(decision)
    if code == "stale_revision":
        yield f"the current revision is {facts['revision']}, hash {facts['hash']}"
    if code == "claimed_by_other":
        yield f"claimed by {escaped(str(facts.get('claimed_by')))} until {facts.get('until')}"
    if code == "invalid_transition":
        yield f"possible from {facts.get('from')}: {', '.join(map(str, facts.get('allowed') or ())) or 'nothing'}"
    if code == "internal_error":
        yield f"request {escaped(str(facts['request_id']))}" if facts.get("request_id") else _ADDRESS
    if code == "confirmation_required" and facts.get("url"):
        yield f"its page: {escaped(str(facts['url']))}"
    if code == "unauthenticated":
        yield _KEY
    elif error.hint:
        yield escaped(error.hint)
    elif facts.get("missing"):
        yield _RIGHT

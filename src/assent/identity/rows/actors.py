"""Whether an actor of the timeline may still act. A credential is checked with each request; a queued run starts later,
when its person or program may have lost that right."""

from __future__ import annotations

from sqlalchemy import bindparam, func, select

from assent.identity.model.access import Kind, Scope
from assent.identity.rows import users
from assent.kernel.store.prepared import Prepared
from assent.kernel.store.tables import TENANT, api_keys
from assent.kernel.store.transaction import Tx

_KEYS_OF = Prepared(
    select(api_keys.c.revoked_at, api_keys.c.expires_at).where(
        api_keys.c.tenant_id == TENANT,
        api_keys.c.kind == bindparam("kind"),
        func.coalesce(api_keys.c.principal_id, api_keys.c.key_id) == bindparam("principal"),
    )
)


def why_dismissed(tx: Tx, actor: str) -> str | None:
    """Why runs of this actor may not start; None where they may. Users of the project's auth handler and the parts of
    this server have no rows here, and are not checked."""
    kind, _, actor_id = actor.partition(":")
    if kind == Kind.REVIEWER:
        return _why_person_dismissed(tx, actor_id)
    if kind in (Kind.AGENT, Kind.SERVICE):
        return _why_program_dismissed(tx, kind, actor_id)
    return None


def _why_person_dismissed(tx: Tx, user_id: str) -> str | None:
    user = users.by_id(tx, user_id)
    if user is None or user.may(Scope.RUNS_WRITE):
        return None
    return "its person was disabled" if user.disabled_at is not None else "its person may no longer start runs"


def _why_program_dismissed(tx: Tx, kind: str, principal_id: str) -> str | None:
    """Revoking all its keys dismisses a program; an expired key does not, and neither does revoking one of two."""
    keys = tx.all(_KEYS_OF, kind=kind, principal=principal_id)
    now = tx.now()
    works = any(key.revoked_at is None and (key.expires_at is None or key.expires_at > now) for key in keys)
    revoked = any(key.revoked_at is not None for key in keys)
    return f"the keys of its {kind} were revoked" if revoked and not works else None

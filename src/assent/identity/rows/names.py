"""Finds people and agents by name."""

from __future__ import annotations

from sqlalchemy import bindparam, func, select

from assent.identity.model.access import Kind
from assent.kernel.store.tables import TENANT, api_keys, users
from assent.kernel.store.transaction import Tx

_MOST = 50
_PEOPLE = select(users.c.user_id, users.c.name).where(users.c.tenant_id == TENANT)
_PEOPLE_NAMED = _PEOPLE.where(func.lower(users.c.name) == bindparam("name"))
_PROGRAMS = select(api_keys.c.kind, api_keys.c.principal_id, api_keys.c.name).where(
    api_keys.c.tenant_id == TENANT, api_keys.c.principal_id.is_not(None)
)
_PROGRAMS_NAMED = _PROGRAMS.where(func.lower(api_keys.c.name) == bindparam("name"))


def actors_named(tx: Tx, name: str) -> list[str]:
    """The people, agents and services with exactly this name, without regard to case."""
    people = [f"{Kind.REVIEWER}:{row.user_id}" for row in tx.all(_PEOPLE_NAMED, name=name.lower())]
    programs = [f"{row.kind}:{row.principal_id}" for row in tx.all(_PROGRAMS_NAMED, name=name.lower())]
    return list(dict.fromkeys([*people, *programs]))


def actors_like(tx: Tx, part: str) -> list[str]:
    """Those with a name that contains this part; some of them, if they are very many."""
    people = tx.all(_PEOPLE.where(users.c.name.icontains(part, autoescape=True)).limit(_MOST))
    programs = tx.all(_PROGRAMS.where(api_keys.c.name.icontains(part, autoescape=True)).limit(_MOST))
    reviewers = [f"{Kind.REVIEWER}:{row.user_id}" for row in people]
    return list(dict.fromkeys([*reviewers, *(f"{row.kind}:{row.principal_id}" for row in programs)]))

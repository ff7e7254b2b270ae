"""Who may decide what: a person, and only one whom the terms of the item let in."""

from __future__ import annotations

from itertools import takewhile

from assent.domain.access import Kind, Principal, Role, Scope
from assent.domain.policies import Decider
from assent.errors import Forbidden, SelfApproval
from assent.services.carrying import Case
from assent.store import items, users
from assent.store.transaction import Tx


def require_right(tx: Tx, caller: Principal, case: Case) -> None:
    """An agent never decides. Answering what it only asks to know is not deciding."""
    if case.item.dialect == "clarification":
        return caller.require_any(Scope.RUNS_WRITE, Scope.DECIDE)
    if not is_person(caller):
        raise Forbidden(
            f"{caller.kind} {caller.name!r} may not decide",
            hint="decide as a person: in the inbox, or with a reviewer key",
            missing=[Scope.DECIDE.value],
            item=case.item.id,
        )
    edited_by = caller.actor if caller.actor in editors(tx, case) else None
    refusal = case.terms.refusal(_decider(tx, caller), started_by=case.item.requester, edited_by=edited_by)
    if refusal is not None:
        refused = SelfApproval if refusal.code == SelfApproval.code else Forbidden
        raise refused(refusal.reason, missing=[refusal.rule], item=case.item.id)


def editors(tx: Tx, case: Case) -> set[str]:
    """Everyone whose changes are in what is asked now: each builds on those before, back to what the agent asked."""
    if not case.revision.edits:
        return set()
    back = reversed(items.revisions(tx, case.item.id))
    return {one.author for one in takewhile(lambda revision: revision.edits, back)}


def is_person(caller: Principal) -> bool:
    """Nobody else's word ever becomes a grant, whoever let them come this far."""
    return caller.kind is Kind.REVIEWER and caller.may(Scope.DECIDE)


def _decider(tx: Tx, caller: Principal) -> Decider:
    user = users.by_id(tx, caller.id)
    role, groups = (user.role, user.groups) if user else (Role.REVIEWER, frozenset[str]())
    return Decider(caller.id, caller.name, role, groups)

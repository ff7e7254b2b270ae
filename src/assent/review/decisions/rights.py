"""The right to decide: only people have it, within the terms of the item."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import takewhile

from assent.errors import AssentError, Conflict, Forbidden, SelfApproval
from assent.identity.authorization import owned_by
from assent.identity.model.access import Kind, Principal, Role, Scope
from assent.identity.model.users import User
from assent.identity.rows import users
from assent.kernel.store.transaction import Tx
from assent.review.decisions.consequences import Case
from assent.review.model.decisions import DECISION, REVISION_REQUEST, Decision
from assent.review.model.items import Item
from assent.review.model.policies import Decider, Refusal, Rule, may_decide
from assent.review.rows import decisions, items
from assent.threads.rows import contributors
from assent.threads.visible_threads import sees_thread


def require_right(tx: Tx, caller: Principal, case: Case, *, lock: bool = False) -> None:
    """An agent never decides; answering an advisory clarification is not a decision. `lock`: the caller keeps the right
    until the transaction ends; read-only transactions cannot lock."""
    if case.item.dialect == "clarification" and not case.item.gated:
        caller.require_any(Scope.RUNS_WRITE, Scope.DECIDE)
        return _require_open(tx, caller, case)
    if not is_person(caller):
        raise Forbidden(
            f"{caller.kind} {caller.name!r} may not decide",
            hint="decide as a person: in the inbox, or with a reviewer key",
            missing=[Scope.DECIDE.value],
            item=case.item.id,
        )
    user = _user(tx, caller.id, lock=lock)
    if user is not None and not user.may(Scope.DECIDE):
        raise Forbidden(f"{caller.name!r} may no longer decide", missing=[Scope.DECIDE.value], item=case.item.id)
    refusal = _refusal(tx, _decider(caller, user), case)
    if refusal is not None:
        refused = SelfApproval if refusal.code == SelfApproval.code else Forbidden
        raise refused(refusal.reason, missing=[refusal.rule], item=case.item.id)


def _require_open(tx: Tx, caller: Principal, case: Case) -> None:
    """A program may answer on the threads that it may run."""
    limited = owned_by(caller) is not None and case.item.thread_id is not None
    if limited and not sees_thread(tx, caller, str(case.item.thread_id)):
        raise Forbidden(
            f"{caller.kind} {caller.name!r} may not answer on another owner's private thread",
            hint="its owner can share the thread, or a person can answer",
            item=case.item.id,
        )


def counted(tx: Tx, case: Case, *, lock: bool = False) -> list[Decision]:
    """The approvals of the current revision whose authors may still decide."""
    approvals = (decision for decision in decisions.standing(tx, case.item) if decision.kind == DECISION)
    return [decision for decision in approvals if may_still_decide(tx, decision.actor, case, lock=lock)]


def may_still_decide(tx: Tx, actor: str, case: Case, *, lock: bool = False) -> bool:
    """Whether a person who had the right to decide the item still has it. The project's auth handler's users are not
    stored here, so they keep it."""
    user = _user(tx, actor.removeprefix(f"{Kind.REVIEWER}:"), lock=lock)
    if user is None:
        return True
    return user.may(Scope.DECIDE) and _refusal(tx, _of_user(user), case) is None


def is_allowed(tx: Tx, caller: Principal, rules: Iterable[Rule]) -> bool:
    """Whether each of these rules allows this person to decide, with the person's current rights."""
    user = _user(tx, caller.id, lock=False)
    if not is_person(caller) or (user is not None and not user.may(Scope.DECIDE)):
        return False
    person = _decider(caller, user)
    return all(may_decide(rule, person, started_by="") is None for rule in rules)


def editors(tx: Tx, case: Case) -> set[str]:
    """The authors of all edits in the current revision: each builds on the one before, back to the agent's question."""
    if not case.revision.edits:
        return set()
    back = reversed(items.revisions(tx, case.item.id))
    return {revision.author for revision in takewhile(lambda revision: revision.edits, back)}


def contributors_to(tx: Tx, case: Case) -> set[str]:
    """The people who influenced the question by more than a bare approval: on its thread since the last completed turn,
    or, for a request, by notes and comments that its agent received before it asked."""
    if not case.terms.separate_duties:
        return set()
    if case.item.thread_id is not None:
        return contributors.of_turn(tx, case.item.thread_id)
    noted = {decision.actor for decision in decisions.of_item(tx, case.item.id) if decision.kind == REVISION_REQUEST}
    return noted | {row.actor for row in items.comments_of(tx, case.item.id) if _reached_agent(case, row.at)}


def _reached_agent(case: Case, at: datetime) -> bool:
    """The agent receives comments with the request for a revision."""
    return case.revision.created_at is not None and at <= case.revision.created_at


def is_person(caller: Principal) -> bool:
    """Only a person's decision issues grants."""
    return caller.kind is Kind.REVIEWER and caller.may(Scope.DECIDE)


def _refusal(tx: Tx, person: Decider, case: Case) -> Refusal | None:
    return case.terms.refusal(
        person,
        started_by=case.item.requester,
        edited_by=editors(tx, case),
        contributors=contributors_to(tx, case),
    )


def _user(tx: Tx, user_id: str, *, lock: bool) -> User | None:
    return users.hold(tx, user_id) if lock else users.by_id(tx, user_id)


def _decider(caller: Principal, user: User | None) -> Decider:
    """A user of the project's auth handler is known by the identity alone: the display name may be their own choice."""
    if user is not None:
        return _of_user(user)
    return Decider(caller.id, caller.name if caller.user is None else caller.id, Role.REVIEWER)


def _of_user(user: User) -> Decider:
    return Decider(user.id, user.name, user.role, user.groups)


def undo_refusal(tx: Tx, caller: Principal, item: Item, decision: Decision) -> AssentError | None:
    """The reason why the caller cannot undo the closing decision. Its author can, during the grace period."""
    if decision.actor != caller.actor:
        return Forbidden("only the author of a decision can undo it", missing=[decision.actor])
    if item.undo_until is None or tx.now() >= item.undo_until or decision.revision != item.revision:
        return Conflict("too late to undo: the grace period is over")
    return None

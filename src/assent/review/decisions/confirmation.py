"""A fresh passkey confirmation of an approval, where the terms of the item require one.

The challenge is bound to one decision of one person: this revision, this hash, these verdicts. The transaction of the
decision consumes it, and fails without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from assent.errors import ConfirmationRefused, ConfirmationRequired
from assent.identity import assertions
from assent.identity.model.access import Principal
from assent.identity.model.passkeys import LIFETIME, Party, Passkey, Proof, bound, request_options
from assent.identity.rows import challenges, passkeys
from assent.kernel.store.transaction import Tx
from assent.review.model import questions
from assent.review.model.decisions import verdict_to_json
from assent.review.model.items import Item
from assent.review.model.questions import Verdict
from assent.review.model.search.terms import Terms

Options = dict[str, Any]


def approves(verdicts: Sequence[Verdict]) -> bool:
    """Whether any action is approved; an unreadable answer counts as an approval."""
    return not verdicts or questions.outcome(verdicts).status == "APPROVED"


def decision(item: Item, verdicts: Sequence[Verdict], notes: str | None) -> str:
    """The text that a signature for a decision is bound to."""
    actions = [verdict_to_json(verdict) for verdict in verdicts]
    return bound(act="decide", item=item.id, revision=item.revision, hash=item.hash, said=actions, notes=notes)


def another_run(item: Item, grant_id: str | None) -> str:
    """The text that a signature for another run of a call is bound to."""
    return bound(act="run_again", item=item.id, revision=item.revision, hash=item.hash, grant=grant_id)


def require(tx: Tx, caller: Principal, item: Item, what: str, proof: Proof | None) -> str:
    """Returns the passkey that the caller has just confirmed `what` with; raises if there is none."""
    if proof is None:
        raise _required(tx, caller, item)
    try:
        return _confirmed(tx, caller, what, proof)
    except ConfirmationRefused as error:
        raise ConfirmationRefused(error.message, hint=error.hint, item=item.id) from None


def ask(tx: Tx, caller: Principal, item: Item, what: str, party: Party | None) -> Options:
    """The WebAuthn options for the browser to confirm `what` with the caller's passkey."""
    if party is None:
        raise assertions.nowhere(item=item.id)
    own = passkeys.of_person(tx, caller.id)
    here = [passkey for passkey in own if passkey.party == party.id]
    if not own:
        raise _required(tx, caller, item)
    if not here:
        raise ConfirmationRefused(
            f"your passkeys are registered at {own[0].party}, not at {party.id}",
            hint="open the inbox at that address, or register a passkey here",
            item=item.id,
        )
    challenge = assertions.new_challenge()
    challenges.give(tx, challenge, user_id=caller.id, subject=item.subject, bound=what, lifetime=LIFETIME)
    return request_options(party, challenge, here)


def require_unneeded(items: Iterable[Item]) -> None:
    """Refuses to move a thread past an item whose approval needs a passkey."""
    for item in items:
        if item.status.open and Terms.from_json(item.policy).confirm:
            raise ConfirmationRequired(
                "the thread waits for a decision that needs a passkey; decide it in the inbox first",
                **_facts(item),
            )


def _confirmed(tx: Tx, caller: Principal, what: str, proof: Proof) -> str:
    if proof.party is None:
        raise assertions.nowhere()
    challenge = assertions.challenge_in(proof.answer)
    bound_to = challenges.spend(tx, challenge, user_id=caller.id)
    if bound_to is None:
        raise ConfirmationRefused("this confirmation was used before, or has expired")
    if bound_to != what:
        raise ConfirmationRefused("this confirmation is for a different decision")
    passkey = _own(tx, caller, assertions.credential_in(proof.answer), proof.party)
    count = assertions.verified(proof.answer, challenge, proof.party, passkey)
    passkeys.use(tx, passkey.id, count)
    return passkey.id


def _own(tx: Tx, caller: Principal, credential_id: str, party: Party) -> Passkey:
    passkey = passkeys.lock(tx, credential_id)
    if passkey is None or passkey.user_id != caller.id:
        raise ConfirmationRefused("this passkey is not registered for you")
    if passkey.party != party.id:
        raise ConfirmationRefused(f"this passkey was registered at {passkey.party}")
    return passkey


def _required(tx: Tx, caller: Principal, item: Item) -> ConfirmationRequired:
    if passkeys.of_person(tx, caller.id):
        return ConfirmationRequired(**_facts(item))
    if passkeys.holders(tx):
        return ConfirmationRequired(
            "approving this needs a confirmation with your passkey, and you have registered none",
            hint="register one in the inbox under Settings, Account",
            **_facts(item),
        )
    return ConfirmationRequired(
        "approving this needs a confirmation with a passkey, and nobody has registered one",
        hint="register one in the inbox under Settings, Account",
        **_facts(item),
    )


def _facts(item: Item) -> dict[str, Any]:
    return {"confirm": Terms.from_json(item.policy).confirm or "passkey", "item": item.id, "url": f"/inbox/{item.id}"}

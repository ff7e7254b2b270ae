"""The problem of a policy's condition shows no secret of the call."""

from __future__ import annotations

import json

import pytest

from assent.review.model import conditions
from tests.faults.arena import Arena

pytestmark = pytest.mark.promise("P10")

DIGITS = "7193" * 74


async def opened(arena: Arena) -> str:
    """All views of an item with a secret that its condition cannot read, as an agent and a person open them."""
    rule = {"name": "small", "tool": "pay", "then": "ask", "risk": "low", "when": "args.amount < 1000"}
    await arena.policy({"rules": [rule], "default": {"name": "rest", "then": "ask"}})
    call = {"name": "pay", "args": {"amount": 5, "private_key": int(DIGITS)}}
    made = await arena.agent.post(
        "/api/inbox/items",
        content=json.dumps({"type": "payment", "title": "Pay", "actions": [call]}),
        headers={"content-type": "application/json"},
    )
    assert made.status_code == 201, made.text
    url = f"/api/inbox/items/{made.json()['id']}"
    assert (await arena.ben.get(url)).json()["policy"]["problems"], "the condition has failed"
    pages = [url, f"{url}/revisions", f"{url}/timeline", f"/inbox/{made.json()['id']}"]
    read = [await client.get(page) for client in (arena.other, arena.ben) for page in pages]
    return "".join(response.text for response in read)


async def test_problem_of_a_condition_does_not_quote_a_secret(arena: Arena) -> None:
    assert DIGITS[:40] not in await opened(arena)


async def test_control_unshortened_quotation_shows_the_secret(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "_discreet", lambda error, text: str(error)[:300])
    assert DIGITS[:40] in await opened(arena)

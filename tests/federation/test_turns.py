"""A thread with several questions gets one answer at a time, however many are decided at once."""

from __future__ import annotations

from typing import Any

import pytest

from assent.federation import answers
from assent.settings import Mode
from assent.threads.rows.remote import remote_threads
from tests.api.house import Builder
from tests.federation.desk import Desk
from tests.federation.peer import Peer, asking_at_once
from tests.waiting import until

Json = dict[str, Any]
QUESTIONS = ("shall I", "how many")


async def test_answers_of_one_thread_are_sent_in_turn(build_on_both: Builder) -> None:
    desk = await Desk.at(await build_on_both(Mode.DEV))
    async with asking_at_once(*QUESTIONS) as peer:
        items = await decide_at_once(desk, peer)
        [waiting] = await waits(desk, items)
        [sent] = set(items) - {waiting}
        await until_delivered(desk, sent)
        assert await attempts_after_another_look(desk, peer, waiting) == 0, "waiting is no failed attempt"
        assert len(peer.runs) == 1
        peer.end_run()
        await until(lambda: has_runs(peer, 2), "the second answer is not sent")
        peer.end_run()
        await until_delivered(desk, waiting)
    assert (set(peer.answers), peer.lost) == (set(QUESTIONS), 0)


@pytest.mark.parametrize("defence", ["turn", "look"])
async def test_one_answer_is_lost_without(build: Builder, monkeypatch: pytest.MonkeyPatch, defence: str) -> None:
    """The turn lasts until the deployment knows the run; the look covers the time until its end."""
    if defence == "turn":
        monkeypatch.setattr(remote_threads, "take_turn", lambda *_: True)
    else:
        monkeypatch.setattr(answers, "is_answered", lambda _: False)
    desk = await Desk.at(await build(Mode.DEV))
    async with asking_at_once(*QUESTIONS) as peer:
        await decide_at_once(desk, peer)
        await until(lambda: has_runs(peer, 2), "the second answer is not sent")
        assert peer.lost == 1


async def decide_at_once(desk: Desk, peer: Peer) -> list[str]:
    """Decides both questions, and holds the deliveries just before they would send. Returns the items."""
    await desk.add(peer.url)

    async def asked() -> list[Json] | None:
        items = await desk.items()
        return items if len(items) == len(QUESTIONS) else None

    items: list[Json] = await until(asked, "the questions do not appear")
    decided = [item["id"] for item in items]
    peer.may_list.clear()
    for item in items:
        await desk.decide(item, verb="respond", message="yes")

    async def both_came() -> bool:
        return peer.listing + len(await waits(desk, decided)) == len(QUESTIONS)

    await until(both_came, "the answers are not on their way")
    peer.may_list.set()
    return decided


async def until_delivered(desk: Desk, item_id: str) -> None:
    async def delivered() -> bool:
        return bool((await desk.item(item_id))["delivery"]["status"] == "delivered")

    await until(delivered, "the answer is not delivered")


async def attempts_after_another_look(desk: Desk, peer: Peer, item_id: str) -> int:
    before = (await desk.item(item_id))["delivery"]["due_at"]

    async def looked() -> Json | None:
        delivery: Json = (await desk.item(item_id))["delivery"]
        again = delivery["status"] == "pending" and delivery["due_at"] != before
        return delivery if again or len(peer.runs) > 1 else None

    return int((await until(looked, "the waiting answer is not tried again"))["attempts"])


async def waits(desk: Desk, items: list[str]) -> list[str]:
    """Those whose answer waits for that of another."""
    shown = [await desk.item(item_id) for item_id in items]
    return [item["id"] for item in shown if "another answer" in (item["delivery"]["failure"] or "")]


async def has_runs(peer: Peer, number: int) -> bool:
    return len(peer.runs) == number

"""The crons page: what starts by itself, when next, what was missed and why; people disable and delete."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Role
from assent.kernel.store.transaction import Tx
from assent.threads.rows import crons
from tests.web.conftest import Desk

PATH = "/inbox/crons"


def plain(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


async def read(browser: httpx.AsyncClient, path: str = PATH, status: int = 200) -> str:
    page = await browser.get(path)
    assert page.status_code == status, page.text
    return page.text


async def make(desk: Desk, **more: Any) -> str:
    graph = next(iter(desk.house.engine.project.graphs))
    body = {"assistant_id": graph, "schedule": "0 9 * * mon", "timezone": "Europe/Paris", "input": {}, **more}
    response = await desk.agent.post("/runs/crons", json=body)
    assert response.status_code == 200, response.text
    made: str = response.json()["cron_id"]
    return made


async def test_no_crons_is_said_plainly(desk: Desk) -> None:
    page = await read(desk.ana)
    assert "No crons." in plain(page)
    assert f'href="{PATH}" aria-current="page"' in page


async def test_crons_are_listed_with_schedule_owner_and_problem(desk: Desk) -> None:
    made = await make(desk)

    def fail(tx: Tx) -> None:
        cron = crons.get(tx, made)
        assert cron is not None
        tx.change(crons._CHANGE.values(missed=3, problem="<b>the key was revoked</b>"), id=made)

    await desk.house.services.store.write("default", fail)
    page = await read(desk.ana)
    words = plain(page)
    assert "0 9 * * mon Europe/Paris Not fired" in words
    assert "&lt;b&gt;the key was revoked&lt;/b&gt;" in page
    assert "<b>the key" not in page


async def test_people_disable_and_delete_crons_of_others(desk: Desk) -> None:
    made = await make(desk)
    answer = await desk.ana.post(f"{PATH}/{made}/state", data={"enabled": "no"})
    assert answer.status_code == 303
    page = await read(desk.ana, answer.headers["location"])
    assert "Disabled. It does not fire" in plain(page)
    assert f"{PATH}/{made}/state" not in page
    assert (await desk.ana.post(f"{PATH}/{made}/state", data={"enabled": "yes"})).status_code == 403
    assert (await desk.agent.get(f"/runs/crons/{made}")).json()["enabled"] is False
    answer = await desk.ana.post(f"{PATH}/{made}/removal")
    assert "Deleted." in plain(await read(desk.ana, answer.headers["location"]))
    assert (await desk.agent.get(f"/runs/crons/{made}")).status_code == 404
    assert (await desk.ana.post(f"{PATH}/{made}/removal")).status_code == 404


async def test_owner_enables_a_cron_again(desk: Desk) -> None:
    graph = next(iter(desk.house.engine.project.graphs))
    body = {"assistant_id": graph, "schedule": "0 9 * * *", "input": {}, "enabled": False}
    made = await desk.ana.post("/runs/crons", json=body)
    assert made.status_code == 200, made.text
    answer = await desk.ana.post(f"{PATH}/{made.json()['cron_id']}/state", data={"enabled": "yes"})
    assert "Enabled. It fires" in plain(await read(desk.ana, answer.headers["location"]))


async def test_pages_turn(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assent.surfaces.web.pages.crons.PAGE", 2)
    for _ in range(3):
        await make(desk)
    first, second = await read(desk.ana), await read(desk.ana, f"{PATH}?offset=2")
    assert (first.count("/removal"), second.count("/removal")) == (2, 1)
    assert f'href="{PATH}?offset=2"' in first
    assert f'href="{PATH}?offset=0"' in second


async def test_viewers_are_told_what_they_lack(desk: Desk) -> None:
    viewer = await desk.house.signed_in("val", Role.VIEWER)
    assert "runs:write" in await read(viewer, status=403)


async def test_page_speaks_chinese(desk: Desk) -> None:
    await make(desk)
    await desk.ana.post("/inbox/preferences", data={"language": "zh"})
    page = plain(await read(desk.ana))
    for words in ("定时任务", "已计划", "停用", "所有者"):
        assert words in page

"""An attempt that begins after the graph has ended: the process was lost between the last checkpoint and the end.

The frames of the first attempt may be lost with its process, so the next one sends the values that it ended with.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from assent.errors import Unavailable
from assent.runs.engine.feed import Feed
from assent.threads.model.frames import END
from assent.threads.run_requests import RunRequest
from tests.contract.queues import CALLER, Site, queue, queue_settings, site

__all__ = ["queue", "queue_settings", "site"]


@pytest.mark.promise("SERVE-06")
@pytest.mark.parametrize(("modes", "sent"), [(("values", "updates"), ["values"]), (("updates",), [])])
async def test_attempt_without_anything_left_to_do_sends_the_values(
    site: Site, monkeypatch: pytest.MonkeyPatch, modes: tuple[str, ...], sent: list[str]
) -> None:
    keep, lost = Feed.keep, list[Feed]()

    async def keep_second(feed: Feed) -> None:
        if not lost:
            lost.append(feed)
            raise Unavailable("the process is lost here")
        await keep(feed)

    monkeypatch.setattr(Feed, "keep", keep_second)
    request = RunRequest(
        "traced",
        input={"tag": "t"},
        stream_mode=modes,
        create_thread=True,
        durability="sync",  # otherwise the last step is stored with the end
    )
    _, frames = await site.engine.runs.begin(CALLER, None, request)
    told = list[tuple[str, Any]]()
    while not told or told[-1][0] != END:
        frame = await frames.next()
        told.append((frame.event, json.loads(frame.data)))
    frames.close()
    begins = [index for index, (event, _) in enumerate(told) if event == "metadata"]
    second = told[begins[-1] + 1 : -1]
    assert [data["attempt"] for event, data in told if event == "metadata"] == [1, 2]
    assert [event for event, _ in second] == sent
    assert all(data == {"tag": "t", "done": ["t.a", "t.b"]} for _, data in [*second, told[-1]])

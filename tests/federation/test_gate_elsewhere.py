"""LangGraph's own server with our gate in its process: the inbox that follows it has one item, which is binding."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client

import assent
from bench.reference import ENVIRONMENT, reference
from bench.served import Served, serving
from tests.missing import missing
from tests.servers import dev_server, running
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
PAY: Any = {"messages": [{"role": "user", "content": json.dumps([{"name": "pay", "args": {"amount": 5}}])}]}


def written(folder: Path, url: str, key: str) -> Path:
    """The project of the other server."""
    shutil.copy(ROOT / "tests" / "graphs_elsewhere" / "paying.py", folder)
    installed = next(path for path in sys.path if "site-packages" in path)
    packages = [str(ROOT), str(Path(assent.__file__).parents[1]), installed]
    environment = {"ASSENT_URL": url, "ASSENT_API_KEY": key, "EFFECTS": str(folder / "effects")}
    environment["PACKAGES"] = os.pathsep.join(packages)
    project = {
        "dependencies": ["."],
        "graphs": {"paying": "./paying.py:graph", "batched": "./paying.py:batched"},
        "env": environment,
    }
    (folder / "langgraph.json").write_text(json.dumps(project))
    return folder


@pytest.mark.promise("P1")
@pytest.mark.timeout(300)
def test_question_of_a_gate_on_langgraphs_server_is_one_binding_item(tmp_path: Path) -> None:
    if not ENVIRONMENT.exists():
        missing("LangGraph's server: tools/setup reference")
    with running(dev_server(f"sqlite:///{tmp_path}/inbox.db", ASSENT_GATE_PATIENCE="2s")) as inbox:
        folder = tmp_path / "project"
        folder.mkdir()
        project = written(folder, inbox.url, inbox.printed("agent key"))
        person = httpx.Client(base_url=inbox.url, headers={"x-api-key": inbox.printed("reviewer key")}, timeout=30)
        with person, serving(reference, project) as served, get_sync_client(url=_url(served), api_key=None) as client:
            url = _url(served)
            added = person.post("/api/deployments", json={"url": url}).json()
            assert added["problem"] is None, added
            threads = [client.threads.create()["thread_id"] for _ in range(2)]
            for thread_id, graph in zip(threads, ("paying", "batched"), strict=True):
                client.runs.wait(thread_id, graph, input=PAY)

            def listed() -> list[Any]:
                items: list[Any] = person.get("/api/inbox/items").json()["items"]
                return items

            def linked() -> bool:
                return [item["source"]["deployment"] for item in listed()] == [added["id"]] * 2

            wait_until(linked, f"the items are not linked: {listed()}")
            first, second = (next(item for item in listed() if _on(item, thread_id)) for thread_id in threads)
            approval: Any = {"decisions": [{"type": "approve"}]}
            client.runs.wait(threads[1], "batched", command={"resume": approval})  # by nobody
            assert not (folder / "effects").exists()
            for item, verb in ((first, "approve"), (second, "reject")):
                seen = {"revision": item["revision"], "hash": item["hash"], "verb": verb}
                assert person.post(f"/api/inbox/items/{item['id']}/decision", json=seen).status_code == 200
            wait_until(
                lambda: all(client.threads.get(thread_id)["status"] == "idle" for thread_id in threads),
                "the threads do not continue",
            )
            assert (folder / "effects").read_text() == "5\n"
            assert person.get(f"/api/inbox/items/{first['id']}").json()["execution"] == "done"
            assert len(listed()) == 2, "no second items"


def _url(served: Served) -> str:
    return f"http://127.0.0.1:{served.port}"


def _on(item: Any, thread_id: str) -> bool:
    return bool(item["source"]["remote"] and item["source"]["remote"]["thread_id"] == thread_id)

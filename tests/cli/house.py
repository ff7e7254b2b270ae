"""One real `assent dev` for the tests of a module, and `assent …` as the people and agents around it run it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from uuid import uuid4

import httpx

from tests.cli.command import Result
from tests.cli.conftest import Assent
from tests.servers import ServerProcess
from tests.waiting import wait_until


@dataclass
class House:
    server: ServerProcess
    assent: Assent
    key: str = field(init=False)
    agent_key: str = field(init=False)

    def __post_init__(self) -> None:
        self.key, self.agent_key = self.server.printed("reviewer key"), self.server.printed("agent key")

    def __call__(self, *arguments: str, key: str | None = None) -> Result:
        """The command as the person does it, unless another key is given."""
        return self.assent(*arguments, "--url", self.server.url, "--key", key or self.key)

    def inbox(self, *arguments: str, key: str | None = None) -> Result:
        return self("inbox", *arguments, key=key)

    def http(self, key: str | None = None) -> httpx.Client:
        headers = {"x-api-key": key or self.agent_key}
        return httpx.Client(base_url=self.server.url, headers=headers, trust_env=False, timeout=30)

    def paused(self, graph: str = "hitl", **values: Any) -> tuple[str, str]:
        """Runs a graph up to its question: the item and the thread."""
        with self.http() as agent:
            thread_id = agent.post("/threads", json={}).json()["thread_id"]
            run = {"assistant_id": graph, "input": values}
            agent.post(f"/threads/{thread_id}/runs/wait", json=run).raise_for_status()
            listed_items = agent.get("/api/inbox/items", params={"filter": f"thread:{thread_id}"}).json()["items"]
        return str(listed_items[0]["id"]), thread_id

    def calls(self, *calls: dict[str, Any]) -> tuple[str, str]:
        """An agent whose model makes these calls, all asked about at once."""
        return self.paused("hitl_batched", messages=[{"role": "user", "content": json.dumps(calls)}])

    def finished(self, thread_id: str) -> dict[str, Any]:
        """What became of the thread."""
        found: dict[str, Any] = {}

        def idle() -> bool:
            with self.http() as agent:
                found.update(agent.get(f"/threads/{thread_id}").json())
            return bool(found["status"] == "idle")

        wait_until(idle, f"the thread did not go on: {found}")
        values: dict[str, Any] = found["values"]
        return values

    def request(self, title: str | None = None, **parts: Any) -> str:
        """An item that an agent asks for through the API."""
        body = {"type": "config_change", "title": title or f"change {uuid4()}", "payload": {"limit": 5}, **parts}
        with self.http() as agent:
            made = agent.post("/api/inbox/items", json=body)
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def item(self, item_id: str) -> dict[str, Any]:
        with self.http() as agent:
            body: dict[str, Any] = agent.get(f"/api/inbox/items/{item_id}").json()
        return body


def lines(result: Result) -> Iterator[str]:
    assert result.code == 0, result.err
    yield from result.out.splitlines()


class Unreliable(ThreadingHTTPServer):
    """A way to a server that fails once: it does what a POST says and loses the answer, or says that it is busy."""

    daemon_threads = True

    def __init__(self, upstream: str, *, loses: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Way)
        self.upstream, self.loses = upstream, loses
        self.keys = list[str | None]()
        self.read = list[str]()
        """The paths of every GET."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Way(BaseHTTPRequestHandler):
    server: Unreliable
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.read.append(self.path)
        self._answer(self._forwarded())

    def do_POST(self) -> None:
        self.server.keys.append(self.headers["Idempotency-Key"])
        if len(self.server.keys) > 1:
            return self._answer(self._forwarded())
        self.close_connection = True
        if self.server.loses:
            self._forwarded()
        else:
            self.rfile.read(int(self.headers["Content-Length"]))
            busy = {"code": "store_busy", "detail": "busy"}
            self._answer(httpx.Response(503, json=busy, headers={"content-type": "application/problem+json"}))

    def _forwarded(self) -> httpx.Response:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kept = ("x-api-key", "idempotency-key", "content-type")
        passed = {name: value for name, value in self.headers.items() if name.lower() in kept}
        url = f"{self.server.upstream}{self.path}"
        with httpx.Client(trust_env=False, timeout=30) as client:
            return client.request(self.command, url, content=body, headers=passed)

    def _answer(self, response: httpx.Response) -> None:
        self.send_response(response.status_code)
        self.send_header("Content-Type", response.headers["content-type"])
        self.send_header("Content-Length", str(len(response.content)))
        self.end_headers()
        self.wfile.write(response.content)

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def unreliable(upstream: str, *, loses: bool) -> Iterator[Unreliable]:
    with Unreliable(upstream, loses=loses) as way:
        serving = Thread(target=way.serve_forever, daemon=True)
        serving.start()
        yield way
        way.shutdown()
        serving.join()

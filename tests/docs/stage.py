"""The surroundings of the documentation's examples: real servers, pending items, a failed delivery."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from tests.cli.command import PATIENCE
from tests.docs.shell import Shell
from tests.waiting import wait_until

PROJECT = Path(__file__).parent / "project"
MAIL = {
    "action_request": {"action": "send_email", "args": {"to": "ann@example.org", "amount": 100}},
    "config": {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True},
}
TRANSFERS = {
    "kind": "confirmation",
    "tool_calls": [
        {"call_id": f"c{place}", "tool_name": "transfer", "arguments": {"account": place}} for place in (1, 2, 3)
    ],
}


class Served:
    """A server, known by what its start printed."""

    def __init__(self, printed: str) -> None:
        self.said = {line[2:15].strip(): line[15:].split()[0] for line in printed.splitlines() if line.startswith("  ")}

    @property
    def url(self) -> str:
        return self.said["listening"]


class Stage:
    """The surroundings of all pages that one worker tests; each part is made when an example first needs it."""

    def __init__(self, folder: Path, forking: Path, open_until_the_end: ExitStack) -> None:
        self._folder, self._forking, self._stack = folder, forking, open_until_the_end

    @cached_property
    def dev(self) -> Served:
        return self._served("dev")

    @cached_property
    def demo(self) -> Served:
        return self._served("demo")

    def _served(self, command: str) -> Served:
        folder = self._folder / command
        shutil.copytree(PROJECT, folder)
        shell = Shell(folder, self._forking, {})
        self._stack.callback(shell.stop_servers)
        return Served(shell.run(f"assent {command}"))

    @property
    def database(self) -> str:
        return f"sqlite:///{self._folder}/dev/.assent/assent.db"

    @property
    def reviewer_key(self) -> str:
        return self.dev.said["reviewer key"]

    @property
    def agent_key(self) -> str:
        return self.dev.said["agent key"]

    def call(self, method: str, path: str, **body: Any) -> Any:
        """A request to the development server as its agent."""
        headers = {"x-api-key": self.agent_key}
        with httpx.Client(base_url=self.dev.url, headers=headers, trust_env=False, timeout=PATIENCE) as client:
            return client.request(method, path, json=body or None).raise_for_status().json()

    def ask(self, question: Any) -> dict[str, Any]:
        """The item of a run that stops to ask."""
        thread = self.call("POST", "/threads", metadata={})["thread_id"]
        self.call("POST", f"/threads/{thread}/runs/wait", assistant_id="agent", input={"question": question})
        listed_items: dict[str, Any] = self.call("GET", f"/api/inbox/items?filter=thread:{thread}")["items"][0]
        return listed_items

    @cached_property
    def mail(self) -> dict[str, Any]:
        stored_item: dict[str, Any] = self.call("GET", f"/api/inbox/items/{self.ask(MAIL)['id']}")
        return stored_item

    def failed_delivery(self) -> str:
        """The id of a webhook that its receiver refused for good."""
        receiver = self._stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), _Gone))
        Thread(target=receiver.serve_forever, daemon=True).start()
        webhook = f"http://127.0.0.1:{receiver.server_port}/"
        self.call("POST", "/runs/wait", assistant_id="agent", input={"text": "hi"}, webhook=webhook)
        self._stack.callback(receiver.shutdown)
        wait_until(lambda: bool(self._failed()), "the delivery has not failed")
        return str(self._failed()[0]["id"])

    def _failed(self) -> list[dict[str, Any]]:
        headers = {"x-api-key": self.reviewer_key}
        listed_deliveries = httpx.get(f"{self.dev.url}/api/deliveries?status=failed", headers=headers, timeout=PATIENCE)
        deliveries: list[dict[str, Any]] = listed_deliveries.json()["items"]
        return deliveries


class _Gone(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_response(410)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


SWAPS: dict[str, Callable[[Stage], str]] = {
    "http://127.0.0.1:2024": lambda stage: stage.dev.url,
    "http://127.0.0.1:8002": lambda stage: stage.demo.url,
    "https://assent.example.com": lambda stage: stage.dev.url,
    "asnt_reviewer_…": lambda stage: stage.reviewer_key,
    "asnt_agent_…": lambda stage: stage.agent_key,
    "/srv/agents/langgraph.json": lambda _: str(PROJECT / "langgraph.json"),
    "01a1e198-186d-73e2-aaf5-f0cc5154fa88": lambda stage: str(stage.ask(MAIL)["id"]),
    "01a1e1a3-d7a8-76ae-9c0e-9d1f15949683": lambda stage: str(stage.ask(MAIL)["id"]),
    "01a1e04e-66d2-7708-a484-33445aa42df4": lambda stage: stage.failed_delivery(),
    "0199d3e2": lambda stage: str(stage.ask(TRANSFERS)["id"]),
    '"hash": "…"': lambda stage: f'"hash": "{stage.mail["hash"]}"',
    "@URL": lambda stage: stage.dev.url,
    "@KEY": lambda stage: stage.reviewer_key,
    "@AGENT": lambda stage: stage.agent_key,
    "@ID": lambda stage: str(stage.mail["id"]),
    "@DATABASE": lambda stage: stage.database,
}
"""What stands in a page, and what stands in for it when the page is tested. Those with @ are for `PRELUDES`."""

SECRET = 'export ASSENT_SECRET_KEY="$(openssl rand -base64 32)"'
PRELUDES = {
    ("README.md", "export ASSENT_API_KEY"): "export ASSENT_URL=@URL",
    ("agent-server.md", "assent dev"): f"{SECRET}; assent users create ana --role admin --database postgresql://…",
    (
        "agents.md",
        'curl -s $URL/api/agents -H "x-api-key: $ADMIN_KEY"',
    ): (
        "export URL=@URL ADMIN_KEY=@KEY AGENT_KEY=@AGENT ASSENT_URL=@URL ASSENT_API_KEY=@KEY; "
        "assent users create ana --database @DATABASE"
    ),
    ("cli.md", "assent inbox decide"): "echo '{\"account\": 20}' > args.json",
    (
        "inbox.md",
        'curl -s $URL/api/inbox/items -H "x-api-key: $KEY"',
    ): "export URL=@URL KEY=@KEY AGENT_KEY=@AGENT ID=@ID",
    ("operations.md", "assent audit public-key"): "assent audit head > heads.jsonl",
    ("webhooks.md", "assent deliveries list"): "export ASSENT_DATABASE=@DATABASE",
}
"""What a reader has done before the block of a page that begins like this."""

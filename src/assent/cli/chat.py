"""`assent chat`: the reference assistant at a terminal, over the same routes as any other client.

What it asks for is answered here, or anywhere else: another window, the web inbox, a program. A talk has a name, and
goes on under it where it was left.
"""

from __future__ import annotations

import shlex
import time
from typing import Annotated, Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx
import typer

from assent.cli import problems
from assent.cli.chat_questions import QUIT, Left, ask, read
from assent.cli.escapes import escaped, quoted
from assent.cli.item_views import decided
from assent.cli.options import settings
from assent.cli.output import say
from assent.cli.remote import Key, Url, item_path
from assent.errors import AssentError, Forbidden, Invalid, NotFound, Unauthenticated, Unavailable
from assent.services.assistant import OWN_ID, last_answer, pending_action
from assent.settings import is_loopback

View = dict[str, Any]

_HELP = f"""Say what you want done. What the assistant may only do with your consent, it asks for here.
  {QUIT}   leave; what is pending stays so, also for the inbox
  /help   this"""
_LOOK_EVERY_SECONDS = 0.5
_CONNECT_SECONDS = 10.0


def add_to(app: typer.Typer) -> None:
    app.command()(chat)


def chat(
    url: Url = None,
    key: Key = None,
    thread: Annotated[str | None, typer.Option(help="The talk to go on with; without it a new one.")] = None,
) -> None:
    """Talk to the assistant: ask it for things, answer its questions, approve what it wants to do."""
    found = settings(url=url, api_key=key)
    secret = found.api_key.get_secret_value().strip() if found.api_key else ""
    if not (secret.isascii() and secret.isprintable()):
        raise Invalid("that is not an API key", hint="give it with --key or ASSENT_API_KEY")
    # It takes as long as the assistant needs, and no proxy of the surroundings is asked for what runs on this machine.
    with httpx.Client(
        base_url=found.url,
        headers={"x-api-key": secret} if secret else {},
        timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
        trust_env=not is_loopback(urlsplit(found.url).hostname or ""),
    ) as client:
        Chat(client, found.url, thread or f"chat-{uuid4().hex[:8]}").talk(again=thread is not None)


class Chat:
    def __init__(self, client: httpx.Client, where: str, thread: str) -> None:
        self._client = client
        self._where = where
        self._thread = thread

    def talk(self, *, again: bool) -> None:
        say(f"Assistant at {self._where}, thread {escaped(self._thread)}. /help says more, {QUIT} leaves.")
        try:
            if again:
                self._go_on()
            while True:
                self._turn(read("you> ").strip())
        except Left:
            say(f"To go on later: assent chat --url {self._where} --thread {escaped(shlex.quote(self._thread))}")

    def _turn(self, line: str) -> None:
        if line.startswith("/"):
            return say(_HELP)
        if line:
            self._settle(self._post("/run", user_request=line))

    def _settle(self, reply: httpx.Response) -> None:
        """Shows what came back and answers what is asked, until nothing is."""
        while True:
            body = self._read(reply)
            asked = body.get("pending_action") or {}
            if reply.status_code == 200:
                return _show(str(body.get("response") or ""))
            if reply.status_code != 202:
                self._complain(reply, body)
                if "decision" in body:  # someone else was first, and the talk goes on from there
                    return self._go_on()
            if asked.get("kind", "no_action_needed") == "no_action_needed":
                return
            if body.get("message") and reply.status_code == 202:
                say(escaped(str(body["message"])))
            reply = self._post("/resume", **ask(asked))

    def _go_on(self) -> None:
        """Where the talk stands: its last answer, and what it waits for."""
        thread = self._rested()
        if thread is None:
            return say("Nothing was said in this thread yet.")
        if answer := last_answer(thread.get("values") or {}):
            _show(answer)
        if (item := self._pending(str(thread["thread_id"]))) is not None:
            self._settle(self._post("/resume", **ask(pending_action(item))))

    def _pending(self, thread_id: str) -> View | None:
        """The item that the thread waits for."""
        listed = self._read(self._send("GET", "/api/inbox/items", params={"filter": f"is:pending thread:{thread_id}"}))
        ids = [item["id"] for item in listed["items"]]
        return self._read(self._send("GET", item_path(ids[-1]))) if ids else None

    def _rested(self) -> View | None:
        """The thread, once nothing runs on it; None where there is none yet."""
        told = False
        while (thread := self._find()) is not None and thread["status"] == "busy":
            if not told:
                say("The assistant is still at it …")
            told = True
            time.sleep(_LOOK_EVERY_SECONDS)
        return thread

    def _find(self) -> View | None:
        if _is_id(self._thread):
            response = self._send("GET", f"/threads/{self._thread}")
            return None if response.status_code == 404 else self._read(response)
        query = {"metadata": {OWN_ID: self._thread}, "limit": 1}
        found = self._send("POST", "/threads/search", json=query)
        if not found.is_success:
            self._read(found)
        return next(iter(found.json()), None)

    def _post(self, path: str, **body: Any) -> httpx.Response:
        return self._send("POST", path, json={"thread_id": self._thread, **body})

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            return self._client.request(method, path, **more)
        except httpx.TransportError as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            hint = "is it running, and is --url (or ASSENT_URL) right? assent demo listens on port 8002"
            raise Unavailable(f"{self._where} does not answer: {reason}", hint=hint) from None

    def _read(self, response: httpx.Response) -> View:
        """The body, where it is one of the assistant's; what ends the talk is raised."""
        try:
            body = response.json()
        except ValueError:
            raise problems.not_an_assent(response, self._where) from None
        if not isinstance(body, dict) or not {"status", "code", "items"} & body.keys():
            raise problems.not_an_assent(response, self._where)
        if error := _END.get(response.status_code):
            message, hint = body.get("message") or body.get("detail"), body.get("hint")
            raise error(escaped(str(message)), hint=_HINTS.get(error) or (escaped(str(hint)) if hint else None))
        return body

    def _complain(self, reply: httpx.Response, body: View) -> None:
        say(f"! {escaped(str(body.get('message') or reply.status_code))}")
        if decision := body.get("decision"):
            say(f"  {decided(decision)}")


_END: dict[int, type[AssentError]] = {401: Unauthenticated, 403: Forbidden, 404: NotFound, 503: Unavailable}
_HINTS: dict[type[AssentError], str] = {
    Unauthenticated: "give a person's key with --key or ASSENT_API_KEY; assent demo needs none",
    NotFound: "does this server serve an assistant? see the setting assistant",
}


def _show(answer: str) -> None:
    say("\n".join(["assistant:", *quoted(answer)]))


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False

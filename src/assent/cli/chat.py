"""`assent chat`: the reference assistant at a terminal, over the same routes as any other client.

What it asks for is answered here, or anywhere else: another window, the web inbox, a program. A talk has a name, and
goes on under it where it was left.
"""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx
import typer

from assent.cli import problems
from assent.cli.chat_hearing import ACCEPT, BrokenOff, Speaker, is_spoken, reply, show
from assent.cli.chat_questions import QUIT, Left, agreed, ask, read
from assent.cli.escapes import escaped
from assent.cli.item_views import decided
from assent.cli.options import settings
from assent.cli.output import say
from assent.cli.remote import Key, Url, item_path
from assent.errors import AssentError, AssistantFailed, Forbidden, Invalid, NotFound, Unauthenticated, Unavailable
from assent.services.assistant import OWN_ID
from assent.services.assistant_views import last_answer, pending_action
from assent.settings import is_loopback

View = dict[str, Any]

_HELP = f"""Say what you want done. What the assistant may only do with your consent, it asks for here.
  {QUIT}   leave; what is pending stays so, also for the inbox
  /help   this"""
_LOOK_EVERY_SECONDS = 0.5
_ON_ITS_WAY_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_INTERRUPTED = 130


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
    if sys.stdin.isatty():
        with suppress(ImportError):  # which not every Python has
            import readline  # noqa: F401 - lines can be edited, and come again
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
        self._speaker = Speaker()

    def talk(self, *, again: bool) -> None:
        self._require_assistant()
        say(f"Assistant at {self._where}, thread {escaped(self._thread)}. /help says more, {QUIT} leaves.")
        try:
            if again:
                self._go_on()
            while True:
                self._turn(read("you> ").strip())
        except Left:
            say(f"To go on later: {self._to_go_on}")
        except KeyboardInterrupt:
            self._speaker.pause()
            say(f"\nWhat it is at goes on without you. To go on later: {self._to_go_on}")
            raise typer.Exit(_INTERRUPTED) from None

    @property
    def _to_go_on(self) -> str:
        return f"assent chat --url {self._where} --thread {escaped(shlex.quote(self._thread))}"

    def _require_assistant(self) -> None:
        """Whatever would end the talk at its first words ends it before them."""
        for path in ("/health-check", "/api/me"):
            response = self._send("GET", path)
            if not response.is_success:
                self._read(response)

    def _turn(self, line: str) -> None:
        if line.startswith("/"):
            return say(_HELP)
        if line:
            self._settle(self._post("/run", user_request=line))

    def _settle(self, body: View) -> None:
        """Shows what came back and answers what is asked, until nothing is."""
        while True:
            status = body.get("status", "error")
            if status == "success":
                return self._speaker.end(str(body.get("response") or ""))
            self._speaker.pause()
            if status == "error":
                _complain(body)
                if "decision" in body:  # someone else was first, and the talk goes on from there
                    return self._go_on()
            elif body.get("message"):
                say(escaped(str(body["message"])))
            asked = body.get("pending_action") or {}
            if asked.get("kind", "no_action_needed") == "no_action_needed":
                return None
            if asked["kind"] == "other":
                return self._wait_for_inbox(asked)
            body = self._answered(ask(asked))

    def _answered(self, answer: View) -> View:
        """What comes of an answer. Where the assistant failed after it, the same answer lets it try again."""
        while (body := self._post("/resume", **answer)).get("code") == AssistantFailed.code:
            self._speaker.pause()
            _complain(body)
            if not agreed("  Your answer is kept. Try again? [y/n] "):
                return {"status": "kept"}
        return body

    def _wait_for_inbox(self, asked: View) -> None:
        """Until someone has decided there what cannot be decided here."""
        while True:
            say("The assistant waits for something that is decided in the inbox:")
            for line in _where_to_decide(asked, self._where):
                say(f"  {line}")
            read("  Enter when it is decided: ")
            _, item = self._rested()
            if item is None or pending_action(item)["kind"] != "other":
                return self._go_on()

    def _go_on(self) -> None:
        """Where the talk stands: its last answer, and what it waits for."""
        thread, item = self._rested()
        if thread is None:
            return say("Nothing was said in this thread yet.")
        if answer := last_answer(thread.get("values") or {}):
            show(answer)
        if item is not None:
            self._settle({"status": "pending", "pending_action": pending_action(item)})

    def _pending(self, thread_id: str) -> View | None:
        """The item that the thread waits for: one to decide, or one that nobody knows the end of."""
        for wanted in ("is:pending", "is:in-doubt"):
            query = {"filter": f"{wanted} thread:{thread_id}"}
            found = self._read(self._send("GET", "/api/inbox/items", params=query))["items"]
            if found:
                return self._read(self._send("GET", item_path(found[-1]["id"])))
        return None

    def _rested(self) -> tuple[View | None, View | None]:
        """The thread, once nothing runs on it, and what it waits for; None where there is none yet. What was decided a
        moment ago is still on its way to it."""
        told, end = False, time.monotonic() + _ON_ITS_WAY_SECONDS
        while (thread := self._find()) is not None:
            waits = thread["status"] == "interrupted"
            item = self._pending(str(thread["thread_id"])) if waits else None
            on_its_way = waits and item is None and time.monotonic() < end
            if thread["status"] != "busy" and not on_its_way:
                return thread, item
            if not told:
                say("The assistant is still at it …")
            told = True
            time.sleep(_LOOK_EVERY_SECONDS)
        return None, None

    def _find(self) -> View | None:
        if _is_id(self._thread):
            response = self._send("GET", f"/threads/{self._thread}")
            return None if response.status_code == 404 else self._read(response)
        query = {"metadata": {OWN_ID: self._thread}, "limit": 1}
        found = self._send("POST", "/threads/search", json=query)
        if not found.is_success:
            self._read(found)
        return next(iter(found.json()), None)

    def _post(self, path: str, **body: Any) -> View:
        """What the assistant replies, heard as it speaks."""
        given = {"thread_id": self._thread, **body}
        try:
            with self._client.stream("POST", path, json=given, headers={"accept": ACCEPT}) as response:
                if is_spoken(response):
                    return reply(response, self._speaker)
                response.read()
                return self._read(response)
        except (httpx.ReadError, httpx.RemoteProtocolError, BrokenOff):
            self._speaker.pause()
            told = f"{self._where} broke off before the assistant had answered"
            raise Unavailable(told, hint=f"to see what came of it: {self._to_go_on}") from None
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            return self._client.request(method, path, **more)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: httpx.TransportError) -> Unavailable:
        reason = " ".join(str(error).split()) or type(error).__name__
        hint = "is it running, and is --url (or ASSENT_URL) right? assent demo listens on port 8002"
        return Unavailable(f"{self._where} does not answer: {reason}", hint=hint)

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


_END: dict[int, type[AssentError]] = {401: Unauthenticated, 403: Forbidden, 404: NotFound, 503: Unavailable}
_HINTS: dict[type[AssentError], str] = {
    Unauthenticated: "give a person's key with --key or ASSENT_API_KEY; assent demo needs none",
    NotFound: "does this server serve an assistant? see the setting assistant",
}


def _complain(body: View) -> None:
    say(f"! {escaped(str(body.get('message') or body.get('code')))}")
    if decision := body.get("decision"):
        say(f"  {decided(decision)}")


def _where_to_decide(asked: View, where: str) -> list[str]:
    if "item_id" not in asked:
        return [f"{where}/inbox"]
    item_id, title = (escaped(str(asked[name])) for name in ("item_id", "title"))
    return [title, f"{where}/inbox/{item_id}", f"or: assent inbox get {item_id}"]


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False

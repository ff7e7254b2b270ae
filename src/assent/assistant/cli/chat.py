"""`assent chat`: the reference assistant at a terminal, over the same routes as any other client.

Its questions can be answered here or elsewhere: in another window, in the web inbox, by a program. A conversation has
a name, by which it can be continued.
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

from assent.assistant.cli import chat_prompts
from assent.assistant.cli.chat_hearing import ACCEPT, BrokenOff, Speaker, is_stream, reply, show
from assent.assistant.cli.chat_questions import QUIT, Left, agreed, ask, read
from assent.assistant.talk.service import OWN_ID
from assent.assistant.talk.views import last_answer, pending_action
from assent.client import problems
from assent.client.inbox import item_path
from assent.errors import AssentError, AssistantFailed, Forbidden, Invalid, NotFound, Unauthenticated, Unavailable
from assent.settings import is_loopback
from assent.surfaces.cli import problems as explaining
from assent.surfaces.cli.escapes import escaped, quoted
from assent.surfaces.cli.item_views import decided
from assent.surfaces.cli.options import settings
from assent.surfaces.cli.output import say
from assent.surfaces.cli.remote import Key, Url

View = dict[str, Any]

_HELP = f"""Write a request. The assistant asks for your approval here if it needs it.
  {QUIT}   leave; pending questions stay open, also in the inbox
  /help   this help
  {chat_prompts.LIST}  the prompts of the MCP servers
  {chat_prompts.USE} NAME name=value …  shows the text of a prompt, and sends it if you agree
  Ctrl-C  stop the work on a request; at the prompt: leave"""
_LOOK_EVERY_SECONDS = 0.5
_ON_ITS_WAY_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_INTERRUPTED = 130


def add_to(app: typer.Typer) -> None:
    app.command()(chat)


def chat(
    url: Url = None,
    key: Key = None,
    thread: Annotated[str | None, typer.Option(help="The conversation to continue; by default a new one.")] = None,
) -> None:
    """Chat with the assistant: make requests, answer its questions, approve its calls."""
    conf = settings(url=url, api_key=key)
    secret = conf.api_key.get_secret_value().strip() if conf.api_key else ""
    if not (secret.isascii() and secret.isprintable()):
        raise Invalid("the API key has invalid characters", hint="set it with --key or ASSENT_API_KEY")
    if sys.stdin.isatty():
        with suppress(ImportError):  # not every Python has it
            import readline  # noqa: F401 - line editing and history
    # No read timeout: the assistant may take long. Requests to this machine do not use the environment's proxy.
    with httpx.Client(
        base_url=conf.url,
        headers={"x-api-key": secret} if secret else {},
        timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
        trust_env=not is_loopback(urlsplit(conf.url).hostname or ""),
    ) as client:
        Chat(client, conf.url, thread or f"chat-{uuid4().hex[:8]}").talk(again=thread is not None)


class Chat:
    def __init__(self, client: httpx.Client, where: str, thread: str) -> None:
        self._client = client
        self._where = where
        self._thread = thread
        self._speaker = Speaker()

    def talk(self, *, again: bool) -> None:
        self._require_assistant()
        say(f"Assistant at {self._where}, thread {escaped(self._thread)}. /help shows help, {QUIT} leaves.")
        try:
            if again:
                self._show_and_ask()
            while True:
                self._turn_or_stop(read("you> ").strip())
        except Left:
            say(f"To continue later: {self._to_continue}")
        except KeyboardInterrupt:
            self._speaker.pause()
            say(f"\nThe assistant continues its work. To continue later: {self._to_continue}")
            raise typer.Exit(_INTERRUPTED) from None

    @property
    def _to_continue(self) -> str:
        return f"assent chat --url {self._where} --thread {escaped(shlex.quote(self._thread))}"

    def _require_assistant(self) -> None:
        """Checks server and key before the first request."""
        for path in ("/health-check", "/api/me"):
            response = self._send("GET", path)
            if not response.is_success:
                self._read(response)

    def _turn_or_stop(self, line: str) -> None:
        """Ctrl-C stops the work on a request; a second one leaves."""
        try:
            self._turn(line)
        except KeyboardInterrupt:
            self._speaker.pause()
            response = self._send("POST", "/cancel", json={"thread_id": self._thread})
            if not response.is_success:
                raise
            say("\nStopped. Calls that had started are not undone.")

    def _turn(self, line: str) -> None:
        if line.startswith("/"):
            return self._commanded(line)
        if line:
            self._settle(self._post("/run", user_request=line))

    def _commanded(self, line: str) -> None:
        command = line.split()[0]
        if command not in (chat_prompts.LIST, chat_prompts.USE):
            return say(_HELP)
        try:
            listed = self._prompts("GET")
            if command == chat_prompts.LIST:
                return chat_prompts.show(listed)
            name, given = chat_prompts.parsed(line)
            prompt = next((prompt for prompt in listed["prompts"] if prompt["name"] == name), None)
            arguments = chat_prompts.completed(prompt, given) if prompt else given
            text = str(self._prompts("POST", json={"name": name, "arguments": arguments})["text"])
        except Invalid as error:
            return say(f"! {escaped(error.message)}")
        say("\n".join(["The prompt:", *quoted(text)]))
        if agreed("  Send it? [y/n] "):
            self._settle(self._post("/run", user_request=text))

    def _prompts(self, method: str, **more: Any) -> View:
        response = self._send(method, "/prompts", **more)
        if response.status_code in (404, 422, 502):  # the conversation goes on
            raise Invalid(str(response.json().get("message")))
        answer: View = response.json() if response.is_success else self._read(response)
        return answer

    def _settle(self, body: View) -> None:
        """Shows the response and asks its questions, until none is left."""
        answer: View = {}
        while True:
            status = body.get("status", "error")
            if status in ("success", "incomplete"):
                return self._speaker.end(str(body.get("response") or ""))
            self._speaker.pause()
            if status == "error":
                _complain(body)
                if "decision" in body:  # another person decided first, and the conversation continues from there
                    return self._show_and_ask()
            elif body.get("message"):
                say(escaped(str(body["message"])))
            asked = body.get("pending_action") or {}
            if asked.get("kind", "no_action_needed") == "no_action_needed":
                return None
            if asked["kind"] == "other":
                if not self._is_decided_elsewhere(asked) or not answer:
                    return self._show_and_ask()
                body = self._answered(answer)
                continue
            seen: View = {name: body[name] for name in ("revision", "hash") if name in body}
            answer = {**ask(asked), **seen}
            body = self._answered(answer)

    def _answered(self, answer: View) -> View:
        """Sends an answer. If the assistant fails after it, the same answer retries."""
        while (body := self._post("/resume", **answer)).get("code") == AssistantFailed.code:
            self._speaker.pause()
            _complain(body)
            if not agreed("  Your answer is saved. Try again? [y/n] "):
                return {"status": "kept"}
        return body

    def _is_decided_elsewhere(self, asked: View) -> bool:
        """Waits for a decision that is only possible in the inbox. True if the thread has failed before it: then the
        same answer continues it."""
        while True:
            say("The assistant waits for a decision in the inbox:")
            for line in _where_to_decide(asked, self._where):
                say(f"  {line}")
            read("  Enter when it is decided: ")
            thread, item = self._idle_thread()
            if item is None or pending_action(item)["kind"] != "other":
                return thread is not None and thread["status"] == "error"

    def _show_and_ask(self) -> None:
        """Shows the last answer and asks the pending question."""
        thread, item = self._idle_thread()
        if thread is None:
            return say("This thread has no messages yet.")
        if answer := last_answer(thread.get("values") or {}):
            show(answer)
        if item is not None:
            seen = {"revision": item["revision"], "hash": item["hash"]}
            self._settle({"status": "pending", "pending_action": pending_action(item), **seen})

    def _pending(self, thread_id: str) -> View | None:
        """The pending item of the thread: one to decide, or one in doubt."""
        for wanted in ("is:pending", "is:in-doubt"):
            query = {"filter": f"{wanted} thread:{thread_id}"}
            items = self._read(self._send("GET", "/api/inbox/items", params=query))["items"]
            if items:
                return self._read(self._send("GET", item_path(items[-1]["id"])))
        return None

    def _idle_thread(self) -> tuple[View | None, View | None]:
        """The thread, once no run is active, and its pending item; None if there is no thread yet. Waits for a recent
        decision to reach the thread."""
        announced, end = False, time.monotonic() + _ON_ITS_WAY_SECONDS
        while (thread := self._find()) is not None:
            waits = thread["status"] == "interrupted"
            item = self._pending(str(thread["thread_id"])) if waits else None
            on_its_way = waits and item is None and time.monotonic() < end
            if thread["status"] != "busy" and not on_its_way:
                return thread, item
            if not announced:
                say("The assistant is still working …")
            announced = True
            time.sleep(_LOOK_EVERY_SECONDS)
        return None, None

    def _find(self) -> View | None:
        if _is_id(self._thread):
            response = self._send("GET", f"/threads/{self._thread}")
            return None if response.status_code == 404 else self._read(response)
        query = {"metadata": {OWN_ID: self._thread}, "limit": 1}
        response = self._send("POST", "/threads/search", json=query)
        if not response.is_success:
            self._read(response)
        return next(iter(response.json()), None)

    def _post(self, path: str, **body: Any) -> View:
        """Sends a request and shows the reply as it arrives."""
        request = {"thread_id": self._thread, **body}
        try:
            with self._client.stream("POST", path, json=request, headers={"accept": ACCEPT}) as response:
                if is_stream(response):
                    return reply(response, self._speaker)
                response.read()
                return self._read(response)
        except (httpx.ReadError, httpx.RemoteProtocolError, BrokenOff):
            self._speaker.pause()
            message = f"the connection to {self._where} was lost before the assistant answered"
            raise Unavailable(message, hint=f"to see the result: {self._to_continue}") from None
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            return self._client.request(method, path, **more)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: httpx.TransportError) -> Unavailable:
        reason = " ".join(str(error).split()) or type(error).__name__
        hint = "check that it runs, and --url (or ASSENT_URL); assent demo listens on port 8002"
        return Unavailable(f"{self._where} does not answer: {reason}", hint=hint)

    def _read(self, response: httpx.Response) -> View:
        """The body of an assistant's response; raises errors that end the conversation."""
        try:
            body = response.json()
        except ValueError:
            raise explaining.explained(problems.not_an_assent(response, self._where)) from None
        if not isinstance(body, dict) or not {"status", "code", "items"} & body.keys():
            raise explaining.explained(problems.not_an_assent(response, self._where))
        if error := _END.get(response.status_code):
            message, hint = body.get("message") or body.get("detail"), body.get("hint")
            if body.get("code") == "confirmation_required":
                hint = f"{hint}: {body.get('url')}"
            raise error(escaped(str(message)), hint=_HINTS.get(error) or (escaped(str(hint)) if hint else None))
        return body


_END: dict[int, type[AssentError]] = {401: Unauthenticated, 403: Forbidden, 404: NotFound, 503: Unavailable}
_HINTS: dict[type[AssentError], str] = {
    Unauthenticated: "set a person's key with --key or ASSENT_API_KEY; assent demo needs none",
    NotFound: "check that the server has an assistant: see the setting assistant",
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

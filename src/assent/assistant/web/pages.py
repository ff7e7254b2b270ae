"""The pages of conversations: the list, and one conversation with its forms. Every form redirects to the conversation;
scripts request the part `talk` of it, and get the words of the run that a form starts as events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import APIRouter, Form, Header, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import AfterValidator

from assent.assistant.talk.prompts import Prompts
from assent.assistant.talk.service import Assistant
from assent.assistant.talk.turns import Turn
from assent.assistant.web import talk_page
from assent.assistant.web.talk_page import Sources
from assent.errors import AssentError, AssistantFailed, Invalid, NotFound
from assent.identity.model.access import Principal, Scope
from assent.kernel.ids import new_id, new_token
from assent.review import live
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.limits.execution import Executing
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.rendering import draw
from assent.surfaces.web.text import words
from assent.surfaces.web.views import decisions, item_page
from assent.surfaces.web.views.shell import Shell

PATH = "/inbox/assistant"
PART = "talk"
HERE = "assistant"
_ARGUMENT = "argument."
_NOTHING_KEPT = {"prompt": "", "arguments": {}}
_LONGEST_TEXT = 100_000
_MOST_FIELDS = 20_000
_NO_UNDO = timedelta()
"""The grace period here: people wait for the result. The card says so. In the inbox it is the setting `undo_window`."""

_A_MOMENT = 1.5
"""How long a page without a script waits for the assistant, before it shows that it works."""


def _typed(text: str) -> str:
    """Browsers send the lines of a text area with CRLF."""
    return text.replace("\r\n", "\n").strip()


Part = Annotated[str, Header(alias="Assent-Part", max_length=20)]
Text = Annotated[str, Form(max_length=_LONGEST_TEXT), AfterValidator(_typed)]
Start = Callable[[], Awaitable[Turn | None]]


def routes(assistant: Assistant, prompts: Prompts, sources: Sources, shell: Shell) -> APIRouter:
    web = APIRouter(prefix=PATH, include_in_schema=False, route_class=PageRoute)
    pages = _Pages(assistant, prompts, sources, shell)
    _look(web, pages)
    _act(web, pages)
    _fill_in(web, pages)
    return web


def _look(web: APIRouter, pages: _Pages) -> None:
    @web.get("")
    async def list_page(caller: Caller) -> Response:
        if not caller.may(Scope.RUNS_WRITE):
            return await pages.shell.refuse(caller, Scope.RUNS_WRITE, here=HERE, title=_("Assistant"))
        return await pages.list(caller)

    @web.get("/{thread_id:uuid}")
    async def show_page(caller: Caller, thread_id: UUID, part: Part = "") -> Response:
        return await pages.show(caller, str(thread_id), part)

    @web.get("/{thread_id:uuid}/words")
    async def follow(caller: Caller, thread_id: UUID) -> Response:
        """An event `done` once the assistant has finished its work, for a page that was opened meanwhile."""
        return await pages.follow(caller, str(thread_id))


def _act(web: APIRouter, pages: _Pages) -> None:
    @web.post("")
    async def start(caller: Caller, executing: Executing, text: Text = "") -> Response:
        if not text:
            return await pages.list(caller, Invalid("write what the assistant should do"))
        return await pages.say(caller, executing, new_id(), text)

    @web.post("/{thread_id:uuid}/message")
    async def say(caller: Caller, executing: Executing, thread_id: UUID, text: Text = "", part: Part = "") -> Response:
        return await pages.say(caller, executing, str(thread_id), text, part)

    @web.post("/{thread_id:uuid}/items/{item_id:uuid}/decision")
    async def decide(
        request: Request, caller: Caller, executing: Executing, thread_id: UUID, item_id: UUID, part: Part = ""
    ) -> Response:
        return await pages.decide(request, caller, executing, str(thread_id), str(item_id), part)

    @web.post("/{thread_id:uuid}/cancel")
    async def cancel(caller: Caller, executing: Executing, thread_id: UUID, part: Part = "") -> Response:
        async def stop() -> None:
            await pages.assistant.cancel(caller, str(thread_id))

        return await pages.attempt(caller, executing, str(thread_id), part, stop)

    @web.post("/{thread_id:uuid}/retry")
    async def retry(caller: Caller, executing: Executing, thread_id: UUID, part: Part = "") -> Response:
        return await pages.attempt(
            caller, executing, str(thread_id), part, lambda: pages.assistant.retry(caller, str(thread_id))
        )


def _fill_in(web: APIRouter, pages: _Pages) -> None:
    """The prompts of the MCP servers: the text of one fills in the request, and the person sends it."""

    @web.get("/prompts")
    async def prompts_page(caller: Caller, thread: UUID | None = None) -> Response:
        return await pages.prompts(caller, thread)

    @web.post("/prompts")
    async def fill_in(request: Request, caller: Caller, name: Text = "", thread: UUID | None = None) -> Response:
        posted = await request.form(max_fields=_MOST_FIELDS)
        given = {key.removeprefix(_ARGUMENT): str(value) for key, value in posted.items() if key.startswith(_ARGUMENT)}
        return await pages.fill_in(caller, thread, name, given)


class _Pages:
    def __init__(self, assistant: Assistant, prompts: Prompts, sources: Sources, shell: Shell) -> None:
        self.assistant = assistant
        self._prompts = prompts
        self.shell = shell
        self._sources = sources

    async def list(self, caller: Principal, problem: AssentError | None = None, text: str = "") -> Response:
        earlier = await talk_page.earlier(self._sources, caller, self.assistant.graph_id)
        status = problem.status if problem else 200
        facts = {"earlier": earlier, "problem": problem, "text": text, "prompts": self._prompts.are_possible}
        return await self.shell.show(caller, "assistant.html", here=HERE, status=status, **facts)

    async def prompts(
        self, caller: Principal, thread: UUID | None, problem: AssentError | None = None, kept: Any = None
    ) -> Response:
        """The prompts, each with a form; after a refused one, with the reason and the person's input."""
        listed = await self._prompts.list(caller)
        facts = {
            "listed": listed,
            "thread": thread,
            "problem": problem,
            "kept": kept or {"prompt": "", "arguments": {}},
        }
        status = problem.status if problem else 200
        return await self.shell.show(caller, "assistant_prompts.html", here=HERE, status=status, **facts)

    async def fill_in(self, caller: Principal, thread: UUID | None, name: str, given: dict[str, str]) -> Response:
        try:
            text = await self._prompts.text(caller, name, given)
        except (Invalid, NotFound, AssistantFailed) as error:
            return await self.prompts(caller, thread, error, {"prompt": name, "arguments": given})
        if thread is None:
            return await self.list(caller, text=text)
        return await self.show(caller, str(thread), typed={"text": text})

    async def show(
        self, caller: Principal, thread_id: str, part: str = "", problem: AssentError | None = None, typed: Any = None
    ) -> Response:
        """The conversation; after a refused form, with the reason and the person's input."""
        after = await self._sources.store.read(caller.tenant, live.position)
        standing = await self.assistant.standing(caller, thread_id)
        page = await talk_page.gather(self._sources, caller, thread_id, standing)
        status = problem.status if problem else 200
        facts = {"talk": page, "problem": problem, "kept": typed or {}, "key": lambda: new_token("web")}
        facts["prompts"] = self._prompts.are_possible
        if part == PART:
            return await draw("parts/assistant_talk.html", status=status, caller=caller, **facts)
        facts |= {"kinds": " ".join(words.KINDS), "after": after}
        return await self.shell.show(caller, "assistant_talk.html", here=HERE, status=status, **facts)

    async def say(self, caller: Principal, executing: Any, thread_id: str, text: str, part: str = "") -> Response:
        if not text:
            return await self.show(caller, thread_id, part, Invalid("write what the assistant should do"))
        return await self.attempt(
            caller,
            executing,
            thread_id,
            part,
            lambda: self.assistant.run(caller, thread_id, text, aloud=True),
            typed={"text": text},
        )

    async def decide(
        self, request: Request, caller: Principal, executing: Any, thread_id: str, item_id: str, part: str
    ) -> Response:
        await self.assistant.require(caller, thread_id)
        posted = await request.form(max_fields=_MOST_FIELDS)
        page = await item_page.gather(self._sources.inbox, self._sources.store, caller, item_id)
        if page.item["source"]["thread_id"] != thread_id:
            raise NotFound()

        async def decided() -> Turn | None:
            seen = item_page.seen_by(page, posted) or page.item
            proposal = decisions.proposal(seen, posted, grace=_NO_UNDO)
            key = str(posted.get("key") or "")[:200] or None
            after = await self._sources.inbox.decide(caller, item_id, proposal, key=key)
            delivery = after["delivery"]
            return self.assistant.followed(caller, thread_id, delivery["id"]) if delivery else None

        return await self.attempt(
            caller, executing, thread_id, part, decided, typed=item_page.kept(item_page.seen_by(page, posted), posted)
        )

    async def attempt(
        self, caller: Principal, executing: Any, thread_id: str, part: str, start: Start, typed: Any = None
    ) -> Response:
        """Does it, and shows the conversation; after a refusal with the reason."""
        try:
            turn = await start()
        except AssentError as error:
            problem = mendable(error)
            try:
                return await self.show(caller, thread_id, part, problem, typed)
            except NotFound:
                return await self.list(caller, problem)
        executing.end()
        if part == PART:
            shown = await self.show(caller, thread_id, part)
            return shown if turn is None else _events(_streamed(turn, bytes(shown.body)))
        await _ended_soon(turn)
        return RedirectResponse(f"{PATH}/{thread_id}", 303)

    async def follow(self, caller: Principal, thread_id: str) -> Response:
        run_id = (await self.assistant.standing(caller, thread_id)).run_id
        turn = self.assistant.followed(caller, thread_id, run_id) if run_id else None
        return _events(_streamed(turn))


def _events(stream: AsyncIterator[bytes]) -> Response:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _ended_soon(turn: Turn | None) -> None:
    """Waits a moment for the end of the turn. The next page shows how it ended, or that it goes on."""
    if turn is None:
        return
    try:
        async with asyncio.timeout(_A_MOMENT):
            await turn.reply()
    except (TimeoutError, AssentError):
        turn.close()


async def _streamed(turn: Turn | None, page: bytes | None = None) -> AsyncIterator[bytes]:
    """The page first, if it is given: it has the request, and the way to stop it."""
    try:
        if page is not None:
            yield _event("page", page.decode())
        if turn is not None:
            async with aclosing(turn.words()) as stream:
                async for said in stream:
                    words = said and {"id": said.message_id, "text": said.text}
                    yield _event("words", words) if words else b": heartbeat\n\n"
    except AssentError:
        pass  # the page says why
    finally:
        if turn is not None:
            turn.close()
    yield _event("done", None)


def _event(name: str, data: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(data) + b"\n\n"

"""Access to the secrets of a thread: for its owner, whose agent needs them, and for people who may reveal them.

All other callers see masks in the thread's state, history, runs and streams. Revealing a secret to a person is recorded
in the timeline, once for each state of the thread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from assent.errors import AssentError, Forbidden, Invalid
from assent.identity.model.access import Principal, Scope
from assent.kernel import events, fair_threads, jsonable
from assent.kernel.canonical import Json
from assent.kernel.limits import is_small
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.decisions.consequences import case_of
from assent.review.decisions.rights import is_allowed, is_person, require_right
from assent.review.model.items import Item
from assent.review.model.masking import Covering
from assent.review.model.secrets import masks_in
from assent.review.rows import items, secrets
from assent.threads.bus import Subscription
from assent.threads.model.frames import END, Frame
from assent.threads.model.runs import Run, run_view
from assent.threads.model.threads import Thread
from assent.threads.model.webhooks import addressed_by_host
from assent.threads.rows import threads

REVEALED = "thread.revealed"

_SHOWN = ("values", "interrupts", "error", "metadata", "config")
"""The fields of a thread's row with content from graphs and callers."""


def owns(caller: Principal, thread: Thread) -> bool:
    """Whether the caller owns the thread: its agent needs the values."""
    return thread.owner == caller.actor


def may_reveal(tx: Tx, caller: Principal, asked: Iterable[Item]) -> bool:
    """Whether the caller is a person who may decide every item of the thread."""
    return is_person(caller) and all(_may_decide(tx, caller, item) for item in asked)


def sees_secrets(tx: Tx, caller: Principal, thread: Thread) -> bool:
    return owns(caller, thread) or may_reveal(tx, caller, items.of_thread(tx, thread.id))


def require_unmasked(value: Json, name: str, *, whole: bool = False) -> None:
    """Refuses masks in input: they would overwrite the secrets. `whole`: only values that are a mask as a whole."""
    problems = [
        {"path": path, "message": "contains the mask of a secret"} for path in masks_in(value, name, whole=whole)
    ]
    if problems:
        raise Invalid(
            f"{problems[0]['path']} contains the mask of a secret, which would overwrite the secret",
            hint="leave it out, or send the value itself",
            errors=problems,
        )


async def require_all_unmasked(**values: Json) -> None:
    """The same for the values of a request. A large value is searched in a worker thread."""
    for name, value in values.items():
        if is_small(value):
            require_unmasked(value, name)
        else:
            await fair_threads.beside(require_unmasked, value, name)


def covering(tx: Tx, thread_id: str) -> Covering:
    """The masking of the thread. The items of a deleted thread are unknown: only names identify its secrets."""
    thread = threads.get(tx, thread_id, values=False)
    return secrets.covering_of(tx, ()) if thread is None else secrets.covering(tx, thread)


class View:
    """One caller's view of one thread. `covering` masks its secrets; None for its owner. `reveals`: the caller is a
    person who may see them, which the timeline records."""

    def __init__(
        self, store: Store, caller: Principal, thread: Thread | None, covering: Covering | None, *, reveals: bool
    ) -> None:
        self._store = store
        self._caller = caller
        self._thread = thread
        self._covering = covering
        self._reveals = reveals
        self._noted = False

    @property
    def whole(self) -> bool:
        """Whether everything is shown without a record."""
        return self._covering is None

    @property
    def masked(self) -> bool:
        return self._covering is not None and not self._reveals

    async def of(self, value: Any, *, pick: Callable[[Any], Any] = lambda value: value) -> Any:
        """The value as the caller may see it; `pick` selects the part to show."""
        if self._covering is None:
            return pick(value)
        plain = jsonable.plain(value)
        return await self._shown(pick(plain), pick(await fair_threads.beside(self._covering, plain)))

    async def learn(self, value: Any) -> None:
        """Collects the secrets of this value, so that they are masked in other values."""
        if self._covering is not None:
            await fair_threads.beside(self._covering, jsonable.plain(value))

    async def each(self, values: Sequence[Any], *, pick: Callable[[Any], Any]) -> list[Any]:
        """All values as the caller may see them: a secret of one is masked in earlier ones too."""
        for value in values:
            await self.learn(value)
        return [await self.of(value, pick=pick) for value in values]

    async def hides(self, value: Any) -> bool:
        """Whether any part of the value is masked for the caller."""
        plain = jsonable.plain(value)
        return not self.whole and await self.of(plain) != plain

    async def hides_of_thread(self) -> bool:
        """The same for the thread's row."""
        return await self.hides({name: getattr(self._thread, name) for name in _SHOWN})

    async def thread(self) -> Thread:
        assert self._thread is not None
        if self._covering is None:
            return self._thread
        return replace(self._thread, **await self.of({name: getattr(self._thread, name) for name in _SHOWN}))

    async def run(self, run: Run) -> dict[str, Any]:
        """Shows the webhook's address, which may contain a credential, only to the actor who set it."""
        view: dict[str, Any] = await self.of(run_view(run))
        own = run.named_by == self._caller.actor or self._caller.may(Scope.ADMIN)
        return view if own else addressed_by_host(view)

    async def frame(self, frame: Frame) -> Frame:
        if self._covering is None:
            return frame
        part, covered = await fair_threads.beside(self._covered, frame)
        shown = await self._shown(part, covered)
        return replace(frame, data=await fair_threads.beside(jsonable.dump, shown))

    def _covered(self, frame: Frame) -> tuple[Any, Any]:
        """The content of the frame, unmasked and masked."""
        assert self._covering is not None
        part = json.loads(frame.data)
        return part, self._covering(part) if self._reveals else self._covering.part(frame.event, part)

    async def frames(self, frames: Sequence[Frame]) -> list[Frame]:
        return [await self.frame(frame) for frame in frames]

    def following(self, subscription: Subscription) -> Subscription:
        return subscription if self.whole else _Following(subscription, self)

    async def _shown(self, plain: Any, covered: Any) -> Any:
        """Shows a secret to a person only if the rules for its call allow them to decide it, including calls that
        appeared during the stream."""
        if self._reveals and covered != plain:
            self._reveals = await self._store.read(
                self._caller.tenant, _is_allowed_by, self._caller, self._thread, self._covering
            )
            if self._reveals:
                await self._note()
        return plain if self._reveals else covered

    async def _note(self) -> None:
        if not self._noted and self._thread is not None:
            self._noted = True
            await self._store.write(self._caller.tenant, _note, self._caller, self._thread)


class _Following:
    """A subscription that masks frames for its reader. A frame whose reader was cancelled is returned next."""

    def __init__(self, inner: Subscription, view: View) -> None:
        self._inner = inner
        self._view = view
        self._showing: asyncio.Task[Frame] | None = None

    async def next(self) -> Frame:
        if self._showing is None:
            self._showing = asyncio.create_task(self._view.frame(await self._inner.next()))
        try:
            frame = await asyncio.shield(self._showing)
        except Exception:
            self._showing = None
            raise
        self._showing = None
        return frame

    async def end(self) -> Frame:
        while True:
            if self._showing is None:
                self._showing = asyncio.create_task(self._view.frame(await self._inner.end()))
            if (frame := await self.next()).event == END:
                return frame

    def close(self) -> None:
        if self._showing is not None:
            self._showing.cancel()
        self._inner.close()


class Secrets:
    """Views of threads. Without `reveal`, every caller sees masks: on pages, where viewing is no decision."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def view(self, caller: Principal, thread: Thread, *, reveal: bool = True) -> View:
        covering, reveals = await self._store.read(caller.tenant, _masking_for, caller, thread, reveal)
        return View(self._store, caller, thread, covering, reveals=reveals)

    async def view_of(self, caller: Principal, thread_id: str) -> View:
        """The same by the thread's id, for frames and runs: the state of the thread is not read. The items of a deleted
        thread are unknown: only names identify its secrets."""
        return self.view_with(caller, await self._store.read(caller.tenant, masking_by_id, caller, thread_id))

    def view_with(self, caller: Principal, masking: Masking) -> View:
        """The same with the masking that the caller's transaction has read."""
        covering, reveals, thread = masking
        return View(self._store, caller, thread, covering, reveals=reveals)

    @asynccontextmanager
    async def refusals(self, caller: Principal, thread_id: str | None) -> AsyncIterator[None]:
        """Masks errors, which contain pending questions and answers of the thread, for the caller. Errors about threads
        that the caller did not name contain neither."""
        try:
            yield
        except AssentError as error:
            if thread_id is None:
                error.extra.pop("pending", None)
            elif {"pending", "decision"} & error.extra.keys():
                view = await self.view_of(caller, thread_id)
                error.extra, error.message = await view.of([error.extra, error.message])
            raise


def _masking_for(tx: Tx, caller: Principal, thread: Thread, reveal: bool) -> tuple[Covering | None, bool]:
    """The masking of the thread for the caller, and whether they may see the secrets anyway."""
    if reveal and owns(caller, thread):
        return None, False
    asked = items.of_thread(tx, thread.id)
    return secrets.covering(tx, thread, asked), reveal and may_reveal(tx, caller, asked)


Masking = tuple[Covering | None, bool, Thread | None]


def masking_by_id(tx: Tx, caller: Principal, thread_id: str) -> Masking:
    thread = threads.get(tx, thread_id, values=False)
    if thread is None:
        return covering(tx, thread_id), False, None
    return *_masking_for(tx, caller, thread, reveal=True), thread


def _is_allowed_by(tx: Tx, caller: Principal, thread: Thread | None, covering: Covering | None) -> bool:
    graph = thread.graph_id if thread else None
    tools = covering.tools if covering else ()
    return is_allowed(tx, caller, [rule for tool in tools for rule in secrets.rules_about(tx, tool, graph)])


def _may_decide(tx: Tx, caller: Principal, item: Item) -> bool:
    try:
        require_right(tx, caller, case_of(tx, item))
    except Forbidden:
        return False
    return True


def _note(tx: Tx, caller: Principal, thread: Thread) -> None:
    """Records it once for each state of the thread."""
    subject, state = f"thread:{thread.id}", thread.state_updated_at and thread.state_updated_at.isoformat()
    latest = events.search(tx, subject=subject, kind=REVEALED, actor=caller.actor, limit=1, cursor=None).items
    if not latest or json.loads(latest[0][1] or "{}").get("state") != state:
        events.append(tx, caller, REVEALED, subject, {"state": state})

"""The screen of `assent inbox triage`: a list, the item, and one line to type in.

Its keys are those of the web inbox, from the same table, with the same cautions: a key acts only on the item that is
both highlighted and shown, and typed text is no series of keys. A decision has a grace period, so that `z` undoes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import ClassVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import Event, Key
from textual.widgets import Footer, Input, Label, ListItem, ListView, Static

from assent.client import AsyncInbox, Item
from assent.client.inbox import item_path
from assent.client.views import Summary, Verb
from assent.errors import AssentError
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.inbox.typing_burst import PAUSE, TypingBurst
from assent.surfaces.cli.item_views import shown, when
from assent.surfaces.web.text.words import KEYS

GRACE_SECONDS = 10.0
_SNOOZE = timedelta(hours=1)
_RISKY = ("high", "critical")
_ACTIONS = {
    "j": "following",
    "k": "previous",
    "a": "approve",
    "r": "reject",
    "v": "revise",
    "c": "comment",
    "h": "snooze",
    "z": "undo",
    "/": "search",
    "?": "keys",
}
"""The keys of the web inbox that this screen has."""

_MOVES = ("following", "previous", "undo", "search", "keys")
"""The actions that decide nothing about the highlighted item, so that they can follow each other quickly."""

_NAMES = {"/": "slash", "?": "question_mark"}
_NOT_READY = "not done: wait until the item is shown and the last step has ended, then press the key again"
_BURST = "not done: keys that follow each other quickly are taken for text"
Then = Callable[[str], Awaitable[None]]


def _bindings() -> list[BindingType]:
    words = dict(KEYS)
    own: list[BindingType] = [
        Binding(_NAMES.get(key, key), action, words[key], key_display=key, priority=True)
        for key, action in _ACTIONS.items()
    ]
    return [*own, Binding("escape", "leave", "back", show=False), Binding("q", "quit", "quit")]


class Triage(App[None]):
    AUTO_FOCUS = "#list"
    BINDINGS: ClassVar[list[BindingType]] = _bindings()
    CSS = """
    ListView { width: 38%; border-right: solid $panel; }
    #item { padding: 0 1; }
    #said { height: 1; color: $text-muted; }
    Input { display: none; }
    Input.open { display: block; }
    """

    def __init__(self, inbox: AsyncInbox, filter: str) -> None:
        super().__init__()
        self._inbox, self.filter = inbox, filter
        self._items: list[Summary] = []
        self._item: Item | None = None
        self._decided: str | None = None
        self._then: Then | None = None
        self._about: Item | None = None
        self.is_busy = False
        self._burst = TypingBurst()
        self._pressed_at = 0.0

    @property
    def shows(self) -> str | None:
        """The id of the item on the screen, which is the highlighted one."""
        return self._item["id"] if self._item else None

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield ListView(id="list")
            with VerticalScroll():
                yield Static(id="item", markup=False)
        yield Label("", id="said", markup=False)
        yield Input(id="line", disabled=True)
        yield Footer()

    def on_mount(self) -> None:
        self._start(self._load)

    # Keys

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key) and not event.is_forwarded and event.is_printable:
            self._pressed(event)
        await super().on_event(event)

    def _pressed(self, event: Key) -> None:
        self._pressed_at = monotonic()
        if self._then is not None:
            self._burst.text(self._pressed_at)
        elif _ACTIONS.get(event.character or "") not in _MOVES:
            self._burst.key(self._pressed_at)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that are pressed while the line is open are its text."""
        return self._then is None or action not in _ACTIONS.values()

    def _calm(self) -> bool:
        """A key is dropped within typed text, and while a request is under way."""
        if self._burst.typing(self._pressed_at):
            self._say(_BURST)
        elif self.is_busy:
            self._say(_NOT_READY)
        else:
            return True
        return False

    def _target(self) -> Item | None:
        """The item that a key acts on."""
        if not self._calm():
            return None
        if self._item is None:
            self._say(_NOT_READY)
        return self._item

    # Moving

    def on_list_view_highlighted(self, event: ListView.Highlighted) -> None:
        self._open_highlighted()

    def _open_highlighted(self) -> None:
        index = self.query_one("#list", ListView).index
        if index is not None and index < len(self._items) and self._items[index]["id"] != self.shows:
            self._open(self._items[index]["id"])

    def action_following(self) -> None:
        self.query_one("#list", ListView).action_cursor_down()

    def action_previous(self) -> None:
        self.query_one("#list", ListView).action_cursor_up()

    # Deciding

    def action_approve(self) -> None:
        """Approves once no other key follows within a pause: a key that begins a text approves nothing."""
        if (item := self._target()) is not None:
            pressed = self._pressed_at
            self.set_timer(PAUSE, lambda: self._approve_if_alone(item, pressed))

    def _approve_if_alone(self, item: Item, pressed: float) -> None:
        if self._pressed_at != pressed or self._item is not item or self.is_busy:
            return self._say(_BURST)
        if item["risk"] not in _RISKY:
            return self._start(lambda: self._decide(item, "approve"))

        async def typed(text: str) -> None:
            if text.strip().lower() == "approve":
                return await self._decide(item, "approve")
            self._say("not approved")

        self._ask(f"The risk is {item['risk']}: type approve", typed, item)

    def action_reject(self) -> None:
        if (item := self._target()) is not None:
            self._ask("The reason, for the agent", lambda text: self._decide(item, "reject", text or None), item)

    def action_revise(self) -> None:
        if (item := self._target()) is not None:
            self._ask("The requested changes", lambda text: self._request_revision(item, text), item)

    async def _request_revision(self, item: Item, notes: str) -> None:
        await self._try(lambda: self._inbox.request_revision(item, notes), "sent back", leaves=True)

    async def _decide(self, item: Item, verb: Verb, message: str | None = None) -> None:
        """Decides the revision that was shown when the key was pressed."""
        self._decided = item["id"]
        await self._try(
            lambda: self._inbox.decide(item, verb, message=message, grace_seconds=GRACE_SECONDS),
            f"{verb} {escaped(item['title'])}: z undoes it for {GRACE_SECONDS:.0f} seconds",
            leaves=True,
        )

    def action_undo(self) -> None:
        if self._decided is not None and self._calm():
            decided = self._decided
            self._start(lambda: self._try(lambda: self._inbox.undo(decided), "undone", leaves=True))

    # Collaboration

    def action_comment(self) -> None:
        if (item := self._target()) is not None:
            self._ask("Comment", lambda text: self._comment(item["id"], text), item)

    async def _comment(self, item_id: str, text: str) -> None:
        if await self._try(lambda: self._inbox.comment(item_id, text), "commented"):
            self._open(item_id)

    def action_snooze(self) -> None:
        if (item := self._target()) is not None:
            path, until = item_path(item["id"], "snooze"), (datetime.now(UTC) + _SNOOZE).isoformat()
            send = self._inbox.connection.send
            said = "out of your list for an hour"
            self._start(lambda: self._try(lambda: send("PUT", path, {"until": until}), said, leaves=True))

    # The line

    def action_search(self) -> None:
        if self._calm():
            self._ask("Filter", self._search, value=self.filter)

    async def _search(self, text: str) -> None:
        before, self.filter = self.filter, text
        if not await self._load():
            self.filter = before

    def action_keys(self) -> None:
        words = dict(KEYS)
        lines = [f"{key:<8}{words[key]}" for key in _ACTIONS]
        self._item = None
        self.query_one("#item", Static).update("\n".join(["Keys", "", *lines, f"{'q':<8}quit", "", "Escape: back"]))

    def action_leave(self) -> None:
        self._close_line()
        self._say("")
        if self._item is None:
            self._open_highlighted()

    def _ask(self, label: str, then: Then, about: Item | None = None, value: str = "") -> None:
        line = self.query_one(Input)
        self._then, self._about, line.placeholder, line.value = then, about, label, value
        line.disabled = False
        line.add_class("open")
        self.screen.set_focus(line)  # at once: the next key is text

    def on_input_submitted(self, event: Input.Submitted) -> None:
        then, about = self._then, self._about
        self._close_line()
        if about is not None and about is not self._item:
            self._say("not done: another item is shown")
        elif then is not None:
            self._start(lambda: then(event.value))

    def _close_line(self) -> None:
        line = self.query_one(Input)
        self._then = None
        line.remove_class("open")
        line.disabled = True
        self.screen.set_focus(self.query_one("#list", ListView))

    # Requests

    def _start(self, step: Callable[[], Awaitable[object]]) -> None:
        """Runs a step beside the screen, which keeps reading keys."""
        self.is_busy = True

        async def run() -> None:
            try:
                await step()
            finally:
                self.is_busy = False

        self.run_worker(run())

    async def _try(self, act: Callable[[], Awaitable[object]], said: str, *, leaves: bool = False) -> bool:
        """`leaves`: the item may no longer belong to the list."""
        try:
            await act()
        except AssentError as error:
            self._refused(error)
            return False
        if not leaves or await self._load():
            self._say(said)
        return True

    async def _load(self) -> bool:
        """Shows the items of the filter, unless the server refuses it."""
        try:
            self._items = (await self._inbox.page(self.filter, limit=200))["items"]
        except AssentError as error:
            self._refused(error)
            return False
        await self._show_items()
        return True

    async def _show_items(self) -> None:
        listing = self.query_one("#list", ListView)
        index = listing.index or 0
        self._item = None
        await listing.clear()
        await listing.extend([ListItem(Label(_row(item), markup=False)) for item in self._items])
        if not self._items:
            self.query_one("#item", Static).update("No items.")
            return
        listing.index = min(index, len(self._items) - 1)
        self._open_highlighted()

    @work(exclusive=True, group="open")
    async def _open(self, item_id: str) -> None:
        """Shows an item; a later one that is highlighted meanwhile takes its place."""
        self._item = None
        try:
            item = await self._inbox.get(item_id)
            comments = await self._inbox.comments(item_id)
        except AssentError as error:
            return self._refused(error)
        view, said = dict(item), [dict(comment) for comment in comments]
        self.query_one("#item", Static).update("\n".join(shown(view, said)))
        self._item = item

    def _refused(self, error: AssentError) -> None:
        self._say(f"{error.message}{f' ({error.hint})' if error.hint else ''}")

    def _say(self, text: str) -> None:
        self.query_one("#said", Label).update(text)


def _row(item: Summary) -> str:
    risk = f" [{item['risk']}]" if item["risk"] else ""
    return f"{escaped(item['title'])}{risk}\n  {escaped(item['summary'])[:60]}  {when(item['created_at'])}"

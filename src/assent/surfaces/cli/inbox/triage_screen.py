"""The screen of `assent inbox triage`: a list, the item, and one line to type in.

Its keys are those of the web inbox, from the same table. A decision has a grace period, so that `z` undoes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer, Input, Label, ListItem, ListView, Static

from assent.client import AsyncInbox, Item
from assent.client.inbox import item_path
from assent.client.views import Summary, Verb
from assent.errors import AssentError
from assent.surfaces.cli.escapes import escaped
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

_NAMES = {"/": "slash", "?": "question_mark"}
Then = Callable[[str], Awaitable[None]]


def _bindings() -> list[BindingType]:
    words = dict(KEYS)
    own: list[BindingType] = [
        Binding(_NAMES.get(key, key), action, words[key], key_display=key) for key, action in _ACTIONS.items()
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

    @property
    def shows(self) -> str | None:
        """The id of the item on the screen."""
        return self._item["id"] if self._item else None

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield ListView(id="list")
            with VerticalScroll():
                yield Static(id="item", markup=False)
        yield Label("", id="said", markup=False)
        yield Input(id="line", disabled=True)
        yield Footer()

    async def on_mount(self) -> None:
        await self._load()

    # Moving

    async def on_list_view_highlighted(self, event: ListView.Highlighted) -> None:
        index = self.query_one("#list", ListView).index
        if index is not None and index < len(self._items):
            await self._open(self._items[index]["id"])

    def action_following(self) -> None:
        self.query_one("#list", ListView).action_cursor_down()

    def action_previous(self) -> None:
        self.query_one("#list", ListView).action_cursor_up()

    # Deciding

    async def action_approve(self) -> None:
        item = self._item
        if item is not None and item["risk"] in _RISKY:
            return self._ask(f"The risk is {item['risk']}: type approve", self._approve_typed)
        await self._decide("approve")

    async def _approve_typed(self, text: str) -> None:
        if text.strip().lower() == "approve":
            await self._decide("approve")
        else:
            self._say("not approved")

    def action_reject(self) -> None:
        self._ask("The reason, for the agent", self._reject)

    async def _reject(self, text: str) -> None:
        await self._decide("reject", text or None)

    def action_revise(self) -> None:
        self._ask("The requested changes", self._revise)

    async def _revise(self, text: str) -> None:
        if self._item is not None:
            item = self._item
            await self._try(lambda: self._inbox.request_revision(item, text), "sent back", leaves=True)

    async def _decide(self, verb: Verb, message: str | None = None) -> None:
        """Decides the revision that is shown."""
        if self._item is None:
            return
        item, self._decided = self._item, self._item["id"]
        await self._try(
            lambda: self._inbox.decide(item, verb, message=message, grace_seconds=GRACE_SECONDS),
            f"{verb} {escaped(item['title'])}: z undoes it for {GRACE_SECONDS:.0f} seconds",
            leaves=True,
        )

    async def action_undo(self) -> None:
        if self._decided is not None:
            decided = self._decided
            await self._try(lambda: self._inbox.undo(decided), "undone", leaves=True)

    # Collaboration

    def action_comment(self) -> None:
        self._ask("Comment", self._comment)

    async def _comment(self, text: str) -> None:
        if self._item is not None:
            item_id = self._item["id"]
            await self._try(lambda: self._inbox.comment(item_id, text), "commented")
            await self._open(item_id)

    async def action_snooze(self) -> None:
        if self._item is not None:
            path, until = item_path(self._item["id"], "snooze"), (datetime.now(UTC) + _SNOOZE).isoformat()
            send = self._inbox.connection.send
            await self._try(lambda: send("PUT", path, {"until": until}), "out of your list for an hour", leaves=True)

    # The line

    def action_search(self) -> None:
        self._ask("Filter", self._search, self.filter)

    async def _search(self, text: str) -> None:
        before, self.filter = self.filter, text
        if not await self._load():
            self.filter = before

    def action_keys(self) -> None:
        words = dict(KEYS)
        lines = [f"{key:<8}{words[key]}" for key in _ACTIONS]
        self.query_one("#item", Static).update("\n".join(["Keys", "", *lines, f"{'q':<8}quit"]))

    def action_leave(self) -> None:
        self._close_line()
        self._say("")

    def _ask(self, label: str, then: Then, value: str = "") -> None:
        line = self.query_one(Input)
        self._then, line.placeholder, line.value = then, label, value
        line.disabled = False
        line.add_class("open")
        line.focus()

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        then, self._then = self._then, None
        self._close_line()
        if then is not None:
            await then(event.value)

    def _close_line(self) -> None:
        line = self.query_one(Input)
        line.remove_class("open")
        line.disabled = True
        self.query_one("#list", ListView).focus()

    # Helpers

    async def _try(self, act: Callable[[], Awaitable[object]], said: str, *, leaves: bool = False) -> None:
        """`leaves`: the item may no longer belong to the list."""
        try:
            await act()
        except AssentError as error:
            return self._refused(error)
        if leaves:
            await self._load()
        self._say(said)

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
        await listing.clear()
        await listing.extend([ListItem(Label(_row(item), markup=False)) for item in self._items])
        if not self._items:
            self._item = None
            self.query_one("#item", Static).update("No items.")
            return
        listing.index = min(index, len(self._items) - 1)
        await self._open(self._items[listing.index]["id"])

    async def _open(self, item_id: str) -> None:
        try:
            self._item = await self._inbox.get(item_id)
            comments = await self._inbox.comments(item_id)
        except AssentError as error:
            return self._refused(error)
        view, said = dict(self._item), [dict(comment) for comment in comments]
        self.query_one("#item", Static).update("\n".join(shown(view, said)))

    def _refused(self, error: AssentError) -> None:
        self._say(f"{error.message}{f' ({error.hint})' if error.hint else ''}")

    def _say(self, text: str) -> None:
        self.query_one("#said", Label).update(text)


def _row(item: Summary) -> str:
    risk = f" [{item['risk']}]" if item["risk"] else ""
    return f"{escaped(item['title'])}{risk}\n  {escaped(item['summary'])[:60]}  {when(item['created_at'])}"

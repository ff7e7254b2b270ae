"""`assent inbox approve`, `edit`, `reject` and the other verbs that decide an item.

Each command reads the item first and decides exactly that revision, by its hash. `--revision` and `--hash` pin an
earlier view; if the item has changed since, nothing is decided.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from assent.errors import AssentError, Invalid, StaleRevision
from assent.surfaces.cli import output
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.inbox import edits, reasons
from assent.surfaces.cli.inbox.verdicts import Each
from assent.surfaces.cli.item_views import call as call_lines
from assent.surfaces.cli.item_views import is_open, state
from assent.surfaces.cli.remote import Place, Remote, View, call, placed

ItemId = Annotated[str, typer.Argument(help="The item's id, or at least its first 8 characters.", metavar="ID")]
ItemIds = Annotated[
    list[str], typer.Argument(help="The ids of the items, or at least their first 8 characters.", metavar="ID...")
]
Revision = Annotated[int | None, typer.Option(help="Only if this is still the revision.", metavar="N")]
Hash = Annotated[str | None, typer.Option(help="Only if the hash is this or begins with it.", metavar="HASH")]
ActionKey = Annotated[str | None, typer.Option(help="The action, if there are several.", metavar="KEY")]
Others = Annotated[str | None, typer.Option(help="With --action: the verb for all others.", metavar="VERB")]
Message = Annotated[str | None, typer.Option(help="A message to the agent.")]
Saved = Annotated[str | None, typer.Option(help="A saved reason as the message.", metavar="NAME")]
Notes = Annotated[str | None, typer.Option(help="Notes for people, stored with the decision.")]
NotesFile = Annotated[
    Path | None, typer.Option(help="A file with the text; - reads standard input.", metavar="FILE", allow_dash=True)
]
Grace = Annotated[float, typer.Option(help="Grace period for undo, at most 300.", metavar="SECONDS")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation on a terminal.")]
Args = Annotated[str | None, typer.Option(help="The new arguments, as JSON.", metavar="JSON")]
ArgsFile = Annotated[Path | None, typer.Option(help="A file with the new arguments, as JSON.", metavar="FILE")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change one argument: amount=50, address.city=Bern.", metavar="A=VALUE"),
]

_SHORTEST_HASH = 8
_ALSO = {"approve": "accept", "reject": "decline", "respond": "accept", "ignore": "cancel"}
"""The verbs of forms and logins."""

Verdict = dict[str, Any]
Say = Callable[[View], Verdict]
"""Returns the verdict on an action."""


def add_to(app: typer.Typer) -> None:
    for command in (approve, edit, reject, respond, ignore, decide, undo):
        app.command()(placed(command))
    app.command("request-revision")(placed(request_revision))


def approve(
    place: Place,
    item_ids: ItemIds,
    revision: Revision = None,
    hash: Hash = None,
    action: ActionKey = None,
    others: Others = None,
    notes: Notes = None,
    grace: Grace = 0,
    yes: Yes = False,
) -> None:
    """Approve items as they are."""
    plan, seen = _Plan("approve", _word("approve"), action, others), Seen(revision, hash)
    several = len(item_ids) > 1
    each(item_ids, lambda name: _decide(place, name, plan, seen, notes=notes, grace=grace, yes=yes, several=several))


def edit(
    place: Place,
    item_id: ItemId,
    args: Args = None,
    args_file: ArgsFile = None,
    setting: Settings = None,
    revision: Revision = None,
    hash: Hash = None,
    action: ActionKey = None,
    others: Others = None,
    notes: Notes = None,
    grace: Grace = 0,
    yes: Yes = False,
) -> None:
    """Approve an item with changed arguments; the changes are shown first."""

    def say(asked: View) -> Verdict:
        after = edits.edited(asked["args"], args, args_file, setting or ())
        if not list(edits.changes(asked["args"], after)):
            raise Invalid("nothing would be changed", hint="use --set, --args or --args-file; or approve it")
        return {"key": asked["key"], "verb": "edit", "args": after}

    plan = _Plan("edit", say, action, others)
    _decide(place, item_id, plan, Seen(revision, hash), notes=notes, grace=grace, yes=yes)


def reject(
    place: Place,
    item_ids: ItemIds,
    message: Message = None,
    saved: Saved = None,
    message_file: NotesFile = None,
    revision: Revision = None,
    hash: Hash = None,
    action: ActionKey = None,
    others: Others = None,
    notes: Notes = None,
    grace: Grace = 0,
    yes: Yes = False,
) -> None:
    """Reject items; the agent receives the message."""
    said = _said(place, message, saved, "--message")
    said = said if message_file is None else edits.text(said, message_file, "--message")
    plan, seen = _Plan("reject", _word("reject", said), action, others), Seen(revision, hash)
    several = len(item_ids) > 1
    each(item_ids, lambda name: _decide(place, name, plan, seen, notes=notes, grace=grace, yes=yes, several=several))


def respond(
    place: Place,
    item_id: ItemId,
    message: Message = None,
    args: Args = None,
    args_file: ArgsFile = None,
    revision: Revision = None,
    hash: Hash = None,
    action: ActionKey = None,
    others: Others = None,
    notes: Notes = None,
    grace: Grace = 0,
    yes: Yes = False,
) -> None:
    """Answer a question: with a message, or with JSON such as the content of a form."""
    if (message is None) == (args is None and args_file is None):
        raise Invalid("an answer is required", hint="a text with --message, or JSON with --args or --args-file")

    def say(asked: View) -> Verdict:
        content = {} if message is not None else {"args": edits.edited(None, args, args_file, ())}
        return _word("respond", message)(asked) | content

    plan = _Plan("respond", say, action, others)
    _decide(place, item_id, plan, Seen(revision, hash), notes=notes, grace=grace, yes=yes)


def ignore(
    place: Place,
    item_id: ItemId,
    revision: Revision = None,
    hash: Hash = None,
    action: ActionKey = None,
    others: Others = None,
    notes: Notes = None,
    grace: Grace = 0,
    yes: Yes = False,
) -> None:
    """Let the agent continue without an answer."""
    plan = _Plan("ignore", _word("ignore"), action, others)
    _decide(place, item_id, plan, Seen(revision, hash), notes=notes, grace=grace, yes=yes)


def decide(
    place: Place,
    item_id: ItemId,
    words: Annotated[
        list[str], typer.Argument(help='For each action: 1=approve 2=edit:args.json 3=reject:"why".', metavar="N=VERB")
    ],
    revision: Revision = None,
    hash: Hash = None,
    notes: Notes = None,
    grace: Grace = 0,
    yes: Yes = False,
) -> None:
    """Decide several actions at once, each with its own verb."""
    _decide(place, item_id, Each(words), Seen(revision, hash), notes=notes, grace=grace, yes=yes)


def request_revision(
    place: Place,
    item_ids: ItemIds,
    notes: Annotated[
        str | None, typer.Option(help="The requested changes; the agent receives them. Asked for on a terminal.")
    ] = None,
    saved: Saved = None,
    notes_file: NotesFile = None,
    revision: Revision = None,
    hash: Hash = None,
    grace: Grace = 0,
    yes: Yes = False,
) -> None:
    """Send items back to their agents, with notes on what to change."""
    said = edits.text(_said(place, notes, saved, "--notes"), notes_file, "--notes")

    def ask(item_id: str) -> None:
        async def use(server: Remote) -> View:
            item: Any = await server.item(item_id)
            Seen(revision, hash).check(item)
            _confirm(place, item, [f"request a revision: {escaped(said)}"], "request-revision", yes=yes)
            return dict(await server.inbox.request_revision(item, said, grace_seconds=grace))

        _report(place, call(place, use), several=len(item_ids) > 1)

    each(item_ids, ask)


def each(item_ids: Sequence[str], act: Callable[[str], None]) -> None:
    """Acts on each item. An error does not stop the others; the first one gives the exit code."""
    codes = [0]
    for item_id in item_ids:
        try:
            act(item_id)
        except AssentError as error:
            if len(item_ids) == 1:
                raise
            codes.append(output.fail(error))
    if code := next(filter(None, codes), 0):
        raise typer.Exit(code)


def undo(place: Place, item_id: ItemId) -> None:
    """Undo your own decision during its grace period."""

    async def use(server: Remote) -> View:
        return dict(await server.inbox.undo((await server.item(item_id))["id"]))

    _report(place, call(place, use))


def _said(place: Place, text: str | None, saved: str | None, option: str) -> str | None:
    """The text, or the one of a saved reason."""
    if saved is None:
        return text
    if text is not None:
        raise Invalid(f"use {option} or --saved, not both")
    reason: View = call(place, lambda server: reasons.named(server, saved))
    return str(reason["text"])


class Seen:
    """The revision that the person has reviewed."""

    def __init__(self, revision: int | None, hash: str | None) -> None:
        if hash is not None and len(hash) < _SHORTEST_HASH:
            raise Invalid(f"--hash: use at least {_SHORTEST_HASH} characters")
        self._revision, self._hash = revision, hash

    def check(self, item: View) -> None:
        """Checks open items only: for a closed item the server reports the decision."""
        same_revision = self._revision in (None, item["revision"])
        same_hash = self._hash is None or item["hash"].startswith(self._hash.lower())
        if is_open(item) and not (same_revision and same_hash):
            raise StaleRevision(
                hint=f"the current revision is {item['revision']}, hash {item['hash']}: assent inbox get {item['id']}"
            )


class _Plan:
    """The verdicts on the actions of an item."""

    def __init__(self, verb: str, say: Say, action: str | None, others: str | None) -> None:
        if others is not None and action is None:
            raise Invalid("--others needs --action")
        self.verb, self._say, self._action, self._others = verb, say, action, others

    def verdicts(self, actions: Sequence[View]) -> list[Verdict]:
        keys = [action["key"] for action in actions]
        if self._action is not None and self._action not in keys:
            raise Invalid(f"there is no action {self._action!r}", hint=f"one of: {escaped(', '.join(keys))}")
        if len(keys) > 1 and self.verb == "edit" and self._action is None:
            raise Invalid("the item has several actions", hint=f"choose one: --action {escaped(' or '.join(keys))}")
        if len(keys) > 1 and self._action is not None and self._others is None:
            raise Invalid(
                "the item has several actions, and all of them are decided at once",
                hint="decide the others too: --others approve, or --others reject",
            )
        return [self._verdict(action) for action in actions]

    def _verdict(self, action: View) -> Verdict:
        if self._action in (None, action["key"]):
            return self._say(action)
        return _word(str(self._others))(action)


def _word(verb: str, message: str | None = None) -> Say:
    def say(action: View) -> Verdict:
        allowed, also = action["allowed"], _ALSO.get(verb)
        chosen = also if verb not in allowed and also in allowed else verb
        text = {} if message is None else {"message": message}
        return {"key": action["key"], "verb": chosen, **text}

    return say


def _decide(
    place: Place,
    item_id: str,
    plan: _Plan | Each,
    seen: Seen,
    *,
    notes: str | None,
    grace: float,
    yes: bool,
    several: bool = False,
) -> None:
    async def use(server: Remote) -> View:
        item: Any = await server.item(item_id)
        seen.check(item)
        verdicts: Any = plan.verdicts(item["actions"])
        _confirm(place, item, _spelled(item, verdicts), plan.verb, yes=yes)
        return dict(await server.inbox.decide(item, actions=verdicts, notes=notes, grace_seconds=grace))

    _report(place, call(place, use), several=several)


def _spelled(item: View, verdicts: Sequence[Verdict]) -> list[str]:
    """The decision in words: the arguments of an approved call, the changes of an edited one."""
    lines: list[str] = []
    for action, verdict in zip(item["actions"], verdicts, strict=True):
        head, *args = call_lines(action)
        lines.append(f"{verdict['verb']} {head}")
        if verdict["verb"] == "edit":
            lines += [f"  {change}" for change in edits.changes(action["args"], verdict["args"])]
            lines.append(f"  {edits.HINT}")
        elif verdict["verb"] == "approve":
            lines += args
        elif "args" in verdict:
            lines += [f"  {change}" for change in edits.changes({}, verdict["args"])]
        if verdict.get("message"):
            lines.append(f"  {escaped(verdict['message'])}")
    return lines


def _confirm(place: Place, item: View, lines: Sequence[str], word: str, *, yes: bool) -> None:
    """Prints the decision and asks for confirmation on a terminal, if the item is open."""
    if not is_open(item):
        return
    risk = f", risk {item['risk']}" if item["risk"] else ""
    head = f"{escaped(item['title'])} (revision {item['revision']}{risk})"
    output.say("\n".join([head, *(f"  {line}" for line in lines)]), to_stderr=place.as_json)
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        typer.confirm(f"{word}?", abort=True, err=True)


def _report(place: Place, item: View, *, several: bool = False) -> None:
    """`several`: one line of JSON for each item."""
    if place.as_json:
        return output.say(escaped(json.dumps(item, ensure_ascii=False))) if several else output.emit(item)
    resolution = f" ({item['resolution'].replace('_', ' ')})" if item["resolution"] else ""
    output.say(f"{state(item)}{resolution}: item {item['id']}, revision {item['revision']}, hash {item['hash']}")
    if item["undo_until"]:
        output.say(f"undo until {item['undo_until'][:19]}: assent inbox undo {item['id']}")

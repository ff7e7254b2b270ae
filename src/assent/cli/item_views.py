"""An item as the terminal shows it. What agents wrote is escaped, and labelled as theirs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from assent.cli.escapes import escaped, quoted
from assent.domain import canonical, durations

View = dict[str, Any]

_NARROWEST, _UNBOUNDED = 110, 10_000
_OPEN = ("PENDING", "REVISION_REQUESTED")


def is_open(item: View) -> bool:
    return item["status"] in _OPEN


def table(items: Sequence[View]) -> None:
    """One line each. The id is whole at any width, to be copied; in a pipe nothing is cut."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = max(console.width, _NARROWEST) if sys.stdout.isatty() else _UNBOUNDED
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("id", "status", "type", "title", "risk", "requested", "deadline"):
        grid.add_column(column, no_wrap=True, overflow="ellipsis")
    for item in items:
        grid.add_row(
            item["id"],
            state(item),
            escaped(item["type"]),
            escaped(item["title"]),
            item["risk"] or "",
            when(item["created_at"]),
            when(item["expires_at"]),
        )
    console.print(grid)


def shown(item: View, comments: Sequence[View] = ()) -> list[str]:
    """Everything a person needs to decide, what will run first."""
    lines = [escaped(item["title"]), *_facts(item)]
    for action in item["actions"]:
        lines += ["", *call(action), f"  allowed: {', '.join(action['allowed']) or 'nothing'}"]
    for one in item["doubts"]:
        lines += ["", f"the same call of {escaped(one['tool'])} may have been made: settle item {one['item_id']} first"]
    for whose, text in _words(item):
        lines += ["", f"{whose}:", *quoted(text)]
    if item["problems"]:
        lines += ["", "not understood:"]
        lines += [f"  {escaped(one['path'] or 'the whole')}: {escaped(one['message'])}" for one in item["problems"]]
    if item["decisions"]:
        lines += ["", "decided:", *(f"  {decided(one)}" for one in item["decisions"])]
    for comment in comments:
        lines += ["", f"comment by {escaped(comment['actor'])}, {when(comment['at'])}:", *quoted(comment["text"])]
    return [*lines, "", f"you may: {', '.join(item['can']) or 'look'}"]


def call(action: View) -> list[str]:
    """What will run, argument by argument, each in the canonical text that its hash covers."""
    head = f"{escaped(action['name'])} [{escaped(action['key'])}]{' (edited)' if action['edited'] else ''}"
    args = action["args"]
    if not isinstance(args, dict) or not args:
        return [head, f"  {escaped(action['args_text'])}"]
    names = {name: escaped(canonical.join("", name)) for name in sorted(args)}
    width = max(map(len, names.values()))
    return [head, *(f"  {shown:<{width}}  {text(args[name])}" for name, shown in names.items())]


def text(value: Any) -> str:
    return escaped(canonical.text(value))


def state(item: View) -> str:
    word: str = item["status"].lower().replace("_", " ")
    given, needed = item["approvals"]["given"], item["approvals"]["needed"]
    doubt = ", in doubt" if item["execution"] == "in_doubt" else ""
    return f"{word} {given}/{needed}{doubt}" if needed > 1 and is_open(item) else word + doubt


def decided(decision: View) -> str:
    """Who said what, and when, in one line."""
    said = ", ".join(dict.fromkeys(one["verb"] for one in decision["actions"])) or decision["kind"].replace("_", " ")
    who = f"{said} by {escaped(decision['actor'])}, {when(decision['at'])}, revision {decision['revision']}"
    notes = f": {escaped(decision['notes'])}" if decision["notes"] else ""
    return f"{who}{'' if decision['standing'] else ' (taken back)'}{notes}"


def event(entry: View) -> str:
    payload = "" if entry["payload"] is None else text(entry["payload"])
    return f"{entry['at'][:19]}  {escaped(entry['kind'])}  {escaped(entry['actor'])}  {payload}".rstrip()


def when(at: str | None) -> str:
    """How long ago, or how long from now: to the minute, and from a day on to the hour."""
    if at is None:
        return ""
    passed = datetime.now(UTC) - datetime.fromisoformat(at)
    length, ahead = abs(passed), passed.total_seconds() < 0
    unit = 3600 if length.days else 60 if length.total_seconds() >= 60 else 1
    rounded = length - type(length)(seconds=length.total_seconds() % unit)
    spelled = durations.text(rounded)
    if not spelled:
        return "now"
    return f"in {spelled}" if ahead else f"{spelled} ago"


def _facts(item: View) -> Iterator[str]:
    risk = f", risk {item['risk']}" if item["risk"] else ""
    resolution = f" ({item['resolution'].replace('_', ' ')})" if item["resolution"] else ""
    yield f"  {state(item)}{resolution}, {escaped(item['type'])}{risk}{'' if item['gated'] else ', advisory'}"
    yield f"  item      {item['id']}"
    yield f"  revision  {item['revision']}, hash {item['hash']}"
    yield f"  requested {when(item['created_at'])} by {escaped(item['requester'])}"
    source = {name: value for name, value in item["source"].items() if value and name in ("graph_id", "thread_id")}
    if source:
        yield f"  from      {', '.join(f'{name[:-3]} {escaped(value)}' for name, value in source.items())}"
    if item["recipient"]:
        yield f"  for       {escaped(item['recipient'])}"
    if item["expires_at"]:
        yield f"  deadline  {when(item['expires_at'])}, {item['expires_at'][:19]}"
    if item["claim"]:
        yield f"  claimed   by {escaped(item['claim']['by'])} until {item['claim']['until'][:19]}"
    if item["undo_until"]:
        yield f"  undo      until {item['undo_until'][:19]}"


def _words(item: View) -> Iterator[tuple[str, str]]:
    if item["description"]:
        yield "the agent's words", item["description"]
    for action in item["actions"]:
        if action["description"] and action["description"] != item["description"]:
            yield f"the agent's words on {escaped(action['name'])} [{escaped(action['key'])}]", action["description"]

"""Items in the terminal. Text from agents is escaped and labelled."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from assent.kernel import canonical, durations
from assent.surfaces.cli.escapes import escaped, quoted
from assent.surfaces.cli.output import UNBOUNDED

View = dict[str, Any]

_NARROWEST = 110
_OPEN = ("PENDING", "REVISION_REQUESTED")


def is_open(item: View) -> bool:
    return item["status"] in _OPEN


def table(items: Sequence[View]) -> None:
    """One line per item. Ids are never truncated; in a pipe nothing is."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = max(console.width, _NARROWEST) if sys.stdout.isatty() else UNBOUNDED
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("id", "status", "type", "title", "risk", "owner", "requested", "deadline", "graph", "arguments"):
        grid.add_column(column, no_wrap=True, overflow="ellipsis")
    for item in items:
        grid.add_row(
            item["id"],
            state(item),
            escaped(item["kind"]),
            escaped(item["title"]),
            item["risk"] or "",
            escaped(item["owner_name"] or item["owner"] or ""),
            when(item["created_at"]),
            when(item["expires_at"]),
            escaped(_origin(item["source"])),
            "; ".join(map(_arguments, item["actions"])),
        )
    console.print(grid)


def _origin(source: View) -> str:
    """The graph, and the deployment where it runs if that is another one."""
    graph, remote = source["graph_id"] or "", source.get("remote")
    return f"{graph} at {remote['name']}".lstrip() if remote else graph


def _arguments(action: View) -> str:
    return escaped(action["args_text"])


def shown(item: View, comments: Sequence[View] = ()) -> list[str]:
    """All details for a decision, the calls first."""
    lines = [escaped(item["title"]), *_facts(item)]
    several = len(item["actions"]) > 1
    for place, action in enumerate(item["actions"], start=1):
        head, *args = call(action)
        lines += ["", f"{place}. {head}" if several else head, *args, *_risk(action)]
        lines.append(f"  allowed: {', '.join(action['allowed']) or 'nothing'}")
    for doubt in item["doubts"]:
        tool, other = escaped(doubt["tool"]), doubt["item_id"]
        lines += ["", f"the same call of {tool} may have been made: settle item {other} first"]
    for label, text in _descriptions(item):
        lines += ["", f"{label}:", *quoted(text)]
    if item["policy"]["problems"]:
        lines += ["", "policy errors:", *(f"  {escaped(problem)}" for problem in item["policy"]["problems"])]
    if item["failure"]:
        failure = f"{item['failure']['error']}: {item['failure']['message']}"
        lines += ["", _failed(item), *quoted(failure)]
    if item["problems"]:
        lines += ["", "not understood:"]
        lines += [
            f"  {escaped(fault['path'] or 'the whole')}: {escaped(fault['message'])}" for fault in item["problems"]
        ]
    if item["decisions"]:
        lines += ["", "decided:", *(f"  {decided(decision)}" for decision in item["decisions"])]
    for comment in comments:
        lines += ["", f"comment by {escaped(comment['actor'])}, {when(comment['at'])}:", *quoted(comment["text"])]
    if is_open(item) and item["refusal"]:
        lines += ["", f"you may not decide it: {escaped(item['refusal'])}"]
    return [*lines, "", f"you may: {', '.join(item['can']) or 'look'}"]


def call(action: View) -> list[str]:
    """The call, argument by argument, each in the canonical text that its hash covers."""
    head = f"{escaped(action['name'])} (key {escaped(action['key'])}){' (edited)' if action['edited'] else ''}"
    args = action["args"]
    if not isinstance(args, dict) or not args:
        return [head, f"  {escaped(action['args_text'])}"]
    names = {name: escaped(canonical.join("", name)) for name in sorted(args)}
    width = max(map(len, names.values()))
    return [head, *(f"  {shown:<{width}}  {text(args[name])}" for name, shown in names.items())]


def _risk(action: View) -> Iterator[str]:
    """The risk of the call with its reasons, and the cautions about it."""
    reasons = [escaped(reason["rule"]) for reason in action["risk_reasons"] if "rule" in reason]
    if action["risk"]:
        rules = f" (rule {', '.join(reasons)})" if reasons else ""
        yield f"  risk: {action['risk']}{rules}"
    for caution in action["cautions"]:
        yield f"  caution: {escaped(caution['text'])} {escaped(caution['detail'])}".rstrip()


def text(value: Any) -> str:
    return escaped(canonical.text(value))


def state(item: View) -> str:
    word: str = item["status"].lower().replace("_", " ")
    given, needed = item["approvals"]["given"], item["approvals"]["needed"]
    doubt = ", in doubt" if item["execution"] == "in_doubt" else ""
    return f"{word} {given}/{needed}{doubt}" if needed > 1 and is_open(item) else word + doubt


def decided(decision: View) -> str:
    """A decision with its author and time, in one line."""
    verbs = dict.fromkeys(verdict["verb"] for verdict in decision["actions"] if decision["kind"] == "decision")
    verb = ", ".join(verbs) or decision["kind"].replace("_", " ")
    line = f"{verb} by {escaped(decision['actor'])}, {when(decision['at'])}, revision {decision['revision']}"
    notes = f": {escaped(decision['notes'])}" if decision["notes"] else ""
    return f"{line}{'' if decision['standing'] else ' (no longer in force)'}{notes}"


def deciders(named: View) -> str:
    """The deciders of a rule; one of them is enough."""
    kinds = {"role": named["roles"], "group": named["groups"], "": named["people"]}
    return " or ".join(f"{kind} {name}".strip() for kind, names in kinds.items() for name in names)


def event(entry: View) -> str:
    payload = "" if entry["payload"] is None else text(entry["payload"])
    return f"{entry['at'][:19]}  {escaped(entry['kind'])}  {escaped(entry['actor'])}  {payload}".rstrip()


def when(at: str | None) -> str:
    """The time before or after now, to the minute; from a day on, to the hour."""
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


def _failed(item: View) -> str:
    if not is_open(item):
        return "the run failed after the answer:"
    if item["follows"]:
        return "the previous answer was not processed: the run failed and asks again:"
    return "the run that requested it failed:"


def _facts(item: View) -> Iterator[str]:
    risk = f", risk {item['risk']}" if item["risk"] else ""
    resolution = f" ({item['resolution'].replace('_', ' ')})" if item["resolution"] else ""
    yield f"  {state(item)}{resolution}, {escaped(item['type'])}{risk}{'' if item['gated'] else ', advisory'}"
    yield f"  item      {item['id']}"
    yield f"  revision  {item['revision']}, hash {item['hash']}"
    yield from _source(item)
    if item["recipient"]:
        yield f"  for       {escaped(item['recipient_name'] or item['recipient'])}"
    if item["routing"]:
        yield f"  route     {escaped(' → '.join(item['routing']['chain'])) or 'unknown agent'}"
        if "advice" in item["routing"]:
            yield f"  unrouted: {item['routing']['advice']}"
    for allowed in item["deciders"] if is_open(item) else ():
        yield f"  decided by {escaped(deciders(allowed))} (rule {escaped(allowed['rule'])})"
    if item["expires_at"]:
        yield f"  deadline  {when(item['expires_at'])}, {item['expires_at'][:19]}"
    if item["owner"]:
        yield f"  owner     {escaped(item['owner_name'] or item['owner'])}"
    if item["claim"]:
        yield f"  claimed   by {escaped(item['claim']['by'])} until {item['claim']['until'][:19]}"
    if item["undo_until"]:
        yield f"  undo      until {item['undo_until'][:19]}"


def _source(item: View) -> Iterator[str]:
    remote = item["source"].get("remote")
    requester = f"deployment {remote['name']}" if remote else item["requester"]
    yield f"  requested {when(item['created_at'])} by {escaped(requester)}"
    source = {name: value for name, value in item["source"].items() if value and name in ("graph_id", "thread_id")}
    if source:
        yield f"  from      {', '.join(f'{name[:-3]} {escaped(value)}' for name, value in source.items())}"
    if remote:
        yield f"  there     {escaped(remote['url'])}, thread {escaped(remote['thread_id'])}"


def _descriptions(item: View) -> Iterator[tuple[str, str]]:
    if item["description"]:
        yield "about this thread" if item["dialect"] == "breakpoint" else "from the agent", item["description"]
    for action in item["actions"]:
        if action["description"] and action["description"] != item["description"]:
            named = f"{escaped(action['name'])} (key {escaped(action['key'])})"
            yield f"from the agent, on {named}", action["description"]

"""Asks the assistant's questions at a terminal and builds the answers for `/resume`.

All text from the assistant is escaped: it neither controls the terminal nor looks like a line of ours.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from assent.errors import Invalid
from assent.kernel import canonical
from assent.review.model.secrets import is_marked
from assent.surfaces.cli.escapes import escaped, quoted
from assent.surfaces.cli.inbox import edits
from assent.surfaces.cli.item_views import text
from assent.surfaces.cli.output import say

View = dict[str, Any]

QUIT = "/quit"
_YES, _NO = ("y", "yes", "true"), ("n", "no", "false")
_NOTHING = object()


class Left(Exception):
    """The person postpones the question."""


def ask(action: Mapping[str, Any]) -> View:
    """Asks, and returns the part of `/resume` that answers. Raises `Left` at /quit and at the end of the input."""
    asking: Mapping[str, Callable[[Mapping[str, Any]], View]] = {
        "clarification": _clarification,
        "confirmation": _confirmation,
        "oauth_url": _login,
        "form_elicitation": _form,
    }
    return asking[str(action["kind"])](action)


def read(prompt: str, *, secret: bool = False) -> str:
    """Reads one line; the end of the input is the same as /quit."""
    terminal = sys.stdin.isatty()
    try:
        line = getpass.getpass(prompt) if secret and terminal else input(prompt)
    except EOFError:
        say()
        raise Left from None
    if not terminal:  # input from a pipe is echoed
        say("***" if secret else escaped(line))
    if line.strip() == QUIT:
        raise Left
    return line


def agreed(prompt: str) -> bool:
    return _choice(prompt, ("yes", "no")) == "yes"


def call_table(call: Mapping[str, Any], title: str) -> list[str]:
    """A tool call, argument by argument, each in its canonical text."""
    args = call["arguments"]
    rows = {escaped(canonical.join("", name)): text(args[name]) for name in sorted(args)} or {"(none)": ""}
    width = max(map(len, ("argument", *rows)))
    lines = [f"  {title}: {escaped(str(call['tool_name']))}"]
    if call.get("description"):
        lines += ["    about:", *(f"  {line}" for line in quoted(str(call["description"])))]
    lines.append(f"    {'argument':<{width}}  value")
    return lines + [f"    {name:<{width}}  {value}".rstrip() for name, value in rows.items()]


def _clarification(action: Mapping[str, Any]) -> View:
    responses = []
    for asked in action["clarifications"]:
        say("\n".join(["The assistant asks:", *quoted(str(asked["question"]))]))
        if asked.get("context"):
            say("\n".join(["  about:", *quoted(str(asked["context"]))]))
        responses.append({"call_id": asked["call_id"], "response": _needed("answer> ")})
    return {"clarification_responses": responses}


def _confirmation(action: Mapping[str, Any]) -> View:
    calls = action["tool_calls"]
    say(f"The assistant wants to make {len(calls)} call{'s' if len(calls) > 1 else ''}:")
    approvals = []
    for number, call in enumerate(calls, 1):
        say("\n".join(call_table(call, f"{number} of {len(calls)}")))
        approvals.append({"call_id": call["call_id"], **_verdict(call)})
    return {"approvals": approvals}


def _verdict(call: Mapping[str, Any]) -> View:
    chosen = _choice("  approve, edit or reject? [a/e/r] ", ("approve", "edit", "reject"))
    if chosen == "reject":
        return {"approved": False, "feedback": _needed("  why not? ")}
    if chosen == "approve":
        return {"approved": True}
    return {"approved": True, "arguments": _edited(call["arguments"])}


def _edited(before: Mapping[str, Any]) -> Any:
    """Reads changes and shows each as old → new; an empty line ends it."""
    after: Any = dict(before)
    say(f"  {edits.HINT}")
    while setting := read("  name=value, empty when done: ").strip():
        try:
            after = edits.edited(after, None, None, [setting])
        except Invalid as error:
            say(f"  {escaped(error.message.removeprefix('--set '))}")
            continue
        say("\n".join(f"    {line}" for line in edits.changes(dict(before), after)) or "    nothing changes")
    return after


def _login(action: Mapping[str, Any]) -> View:
    url = str(action["url"])
    say("\n".join(["The assistant needs you to sign in:", *quoted(str(action.get("message") or ""))]))
    say(f"  host  {escaped(urlsplit(url).netloc)}\n  link  {escaped(url)}")
    line = read("  Open the link if you trust that host. Enter when done, or decline: ").strip().lower()
    return {"elicitation": {"action": "decline" if line.startswith("d") and line != "done" else "accept"}}


def _form(action: Mapping[str, Any]) -> View:
    say("\n".join(["The assistant asks you to fill in a form:", *quoted(str(action.get("message") or ""))]))
    schema = action.get("schema") or {}
    chosen = _choice("  fill in, decline or cancel? [f/d/c] ", ("fill in", "decline", "cancel"))
    if chosen != "fill in":
        return {"elicitation": {"action": chosen}}
    fields = schema.get("properties")
    if not isinstance(fields, dict):
        return {"elicitation": {"action": "accept", "content": _value({}, "value", required=True)}}
    needed = schema.get("required") or ()
    values = {name: _value(_plain(field), name, required=name in needed) for name, field in fields.items()}
    content = {name: value for name, value in values.items() if value is not _NOTHING}
    return {"elicitation": {"action": "accept", "content": content}}


def _value(field: Mapping[str, Any], name: str, *, required: bool) -> Any:
    """Reads one field; an empty line means its default or no value."""
    say(f"  {_described(field, name, required)}")
    secret = is_marked(field)
    while True:
        line = read("    > ", secret=secret)
        if not line.strip():
            if "default" in field:
                return field["default"]
            if not required:
                return _NOTHING
            say("    this field is required")
            continue
        try:
            return _parsed(field, line)
        except Invalid as error:
            say(f"    {error.message}")


def _described(field: Mapping[str, Any], name: str, required: bool) -> str:
    title = escaped(str(field.get("title") or name))
    kind = escaped(str(field.get("type", "text"))).replace("string", "text")
    facts = [kind, "required" if required else "optional"]
    if isinstance(field.get("enum"), list):
        facts.append(f"one of {', '.join(text(value) for value in field['enum'])}")
    if "default" in field:
        facts.append(f"default {text(field['default'])}")
    more = f": {escaped(str(field['description']))}" if field.get("description") else ""
    return f"{title} ({', '.join(facts)}){more}"


def _parsed(field: Mapping[str, Any], line: str) -> Any:
    kind = field.get("type")
    if kind == "string":
        return line.strip() if "enum" in field else line
    if kind == "boolean":
        word = line.strip().lower()
        if word not in (*_YES, *_NO):
            raise Invalid("answer yes or no")
        return word in _YES
    try:
        return canonical.parse(line)
    except canonical.JsonError:
        if kind in ("number", "integer", "array", "object"):
            raise Invalid(f"that is not a JSON {kind}") from None
        return line


def _plain(field: Any) -> Mapping[str, Any]:
    return field if isinstance(field, Mapping) else {}


def _choice(prompt: str, words: Sequence[str]) -> str:
    """Reads one of these words, or a prefix of it."""
    while True:
        line = read(prompt).strip().lower()
        for word in words:
            if line and word.startswith(line):
                return word
        say(f"  {', '.join(words)}; or {QUIT} to leave it for later")


def _needed(prompt: str) -> str:
    while not (line := read(prompt).strip()):
        say("  a value is required")
    return line

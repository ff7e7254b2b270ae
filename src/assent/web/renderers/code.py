"""Programs and commands: numbered lines in their language, and what is known to do harm."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from assent.domain.canonical import Json
from assent.web.renderers.blocks import Caution, Code, Facts, Rendering
from assent.web.renderers.reading import View, call, first, only, others, text
from assent.web.renderers.registry import renders

EXAMINED = 50_000
_PROGRAMS = ("code", "source", "program", "script")
_COMMANDS = ("command", "cmd", "commands", "script")
_RUNS_PROGRAMS = re.compile(
    r"(?i)(?:run|exec\w*|eval\w*)_?(?:code|python|javascript|js|script)|python_?repl|code_?interpreter"
)
_RUNS_COMMANDS = re.compile(r"(?i)shell|bash|terminal|(?:run|exec\w*)_?(?:command|cmd)")

_LOADS = re.compile(r"\b(?:curl|wget)\b")
_INTO_SHELL = re.compile(r"\|\s*(?:sudo\s+)?(?:\S{0,40}/)?(?:ba|z|da|k|fi)?sh\b")
_OF_LOADED = re.compile(r"\b(?:sh|bash|zsh|eval|source)\s[^\n]{0,20}(?:<\(|\$\(|`)\s*(?:curl|wget)\b")
_HARMS = (
    (
        re.compile(r"\brm\s+(?:-\S{1,40}\s+){0,8}-[a-zA-Z]{0,8}(?:r[a-zA-Z]{0,8}f|f[a-zA-Z]{0,8}r)", re.IGNORECASE),
        "rm -rf",
    ),
    (
        re.compile(
            r"\brm\s+(?:-\S{1,40}\s+){0,8}(?:-r|--recursive)\s+(?:-\S{1,40}\s+){0,8}(?:-f|--force)\b", re.IGNORECASE
        ),
        "rm -rf",
    ),
    (
        re.compile(
            r"\brm\s+(?:-\S{1,40}\s+){0,8}(?:-f|--force)\s+(?:-\S{1,40}\s+){0,8}(?:-r|--recursive)\b", re.IGNORECASE
        ),
        "rm -rf",
    ),
    (re.compile(r"\b(?:sudo|doas)\b"), "sudo"),
    (re.compile(r"\bmkfs(?:\.\w{1,10})?\b|\bdd\s[^\n]{0,200}\bof=/dev/|>\s{0,4}/dev/(?:sd|nvme|hd|disk)"), "disk"),
    (re.compile(r"\bchmod\s+(?:-R\s+)?(?:0?777|a\+rwx)\b"), "chmod 777"),
    (re.compile(r"\bgit\s+push\b[^\n]{0,200}\s(?:-f|--force)\b"), "git push --force"),
)
_TOLD = {
    "rm -rf": "It deletes whole folders without asking (rm -rf).",
    "sudo": "It acts with the rights of an administrator (sudo).",
    "curl | sh": "It runs what it has just downloaded (curl | sh).",
    "disk": "It writes over a disk.",
    "chmod 777": "It lets everybody write (chmod 777).",
    "git push --force": "It writes over what others have pushed (git push --force).",
    "long": "It is too long to be examined to its end.",
}


def runs_programs(item: View) -> bool:
    name, args = call(item)
    return bool(_RUNS_PROGRAMS.search(name)) and bool(text(args, *_PROGRAMS))


def runs_commands(item: View) -> bool:
    name, args = call(item)
    return bool(_RUNS_COMMANDS.search(name)) and bool(_command(first(args, *_COMMANDS)))


@renders("code", label="Code", icon="code", matches=runs_programs)
def code(item: View) -> Rendering | None:
    args = only(item)
    program = text(args, *_PROGRAMS)
    if not program:
        return None
    language = text(args, "language", "lang") or ("python" if "python" in call(item)[0].lower() else "")
    about = others(args, _PROGRAMS, ("language", "lang"))
    return Rendering(*cautions(program), Code(program, language), Facts(about) if about else None)


@renders("shell", "command", label="Command", icon="tool", matches=runs_commands)
def shell(item: View) -> Rendering | None:
    args = only(item)
    command = _command(first(args, *_COMMANDS))
    if not command:
        return None
    about = others(args, _COMMANDS)
    return Rendering(*cautions(command), Code(command, "shell"), Facts(about) if about else None)


def cautions(source: str) -> list[Caution]:
    found = dict(_seen(source[:EXAMINED].replace("\\\n", " ")))
    if len(source) > EXAMINED:
        found["long"] = ""
    return [Caution(_TOLD[what], where) for what, where in found.items()]


def _seen(source: str) -> Iterator[tuple[str, str]]:
    for harm, what in _HARMS:
        if match := harm.search(source):
            yield what, _line(source, match.start())
    for line in source.split("\n"):
        loads = _LOADS.search(line)
        if loads and (_INTO_SHELL.search(line, loads.end()) or _OF_LOADED.search(line)):
            yield "curl | sh", line.strip()


def _line(source: str, at: int) -> str:
    end = source.find("\n", at)
    return source[source.rfind("\n", 0, at) + 1 : end if end >= 0 else None].strip()


def _command(value: Json) -> str:
    """A line as it is; a list of words, quoted as a shell would need it."""
    if isinstance(value, str):
        return value if value.strip() else ""
    words = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return shlex.join(value) if words and value else ""

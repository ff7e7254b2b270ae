"""Programs and shell commands, with cautions about dangerous operations."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from assent.kernel.canonical import Json
from assent.review.model.calls.arguments import Args, first, text
from assent.review.model.calls.cautions import Caution
from assent.review.model.policies import Risk

EXAMINED = 50_000
PROGRAMS = ("code", "source", "program", "script")
COMMANDS = ("command", "cmd", "commands", "script")
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
_CAUTIONS = {
    "rm -rf": ("Deletes whole folders without confirmation (rm -rf).", Risk.HIGH),
    "sudo": ("Runs as administrator (sudo).", Risk.HIGH),
    "curl | sh": ("Runs downloaded code (curl | sh).", Risk.CRITICAL),
    "disk": ("Overwrites a disk.", Risk.CRITICAL),
    "chmod 777": ("Makes files writable for everyone (chmod 777).", Risk.HIGH),
    "git push --force": ("Overwrites commits that others pushed (git push --force).", Risk.HIGH),
    "long": ("Too long to check completely.", Risk.HIGH),
}


def runs_program(name: str, args: Args) -> bool:
    return bool(_RUNS_PROGRAMS.search(name)) and bool(program(args))


def runs_command(name: str, args: Args) -> bool:
    return bool(_RUNS_COMMANDS.search(name)) and bool(command(args))


def program(args: Args) -> str:
    return text(args, *PROGRAMS)


def command(args: Args) -> str:
    """The command line; a list of words is quoted for the shell."""
    value: Json = first(args, *COMMANDS)
    if isinstance(value, str):
        return value if value.strip() else ""
    words = isinstance(value, list) and all(isinstance(word, str) for word in value)
    return shlex.join(value) if words and value else ""


def cautions(source: str) -> list[Caution]:
    harms = dict(_seen(source[:EXAMINED].replace("\\\n", " ")))
    if len(source) > EXAMINED:
        harms["long"] = ""
    return [Caution(text, line, risk) for harm, line in harms.items() for text, risk in (_CAUTIONS[harm],)]


def _seen(source: str) -> Iterator[tuple[str, str]]:
    for pattern, harm in _HARMS:
        if match := pattern.search(source):
            yield harm, _line(source, match.start())
    for line in source.split("\n"):
        loads = _LOADS.search(line)
        if loads and (_INTO_SHELL.search(line, loads.end()) or _OF_LOADED.search(line)):
            yield "curl | sh", line.strip()


def _line(source: str, at: int) -> str:
    end = source.find("\n", at)
    return source[source.rfind("\n", 0, at) + 1 : end if end >= 0 else None].strip()

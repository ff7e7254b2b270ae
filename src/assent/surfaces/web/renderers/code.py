"""Programs and shell commands as numbered lines, with cautions about dangerous operations."""

from __future__ import annotations

from assent.review.model.calls import commands
from assent.review.model.calls.commands import COMMANDS, PROGRAMS
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.blocks import Caution, Code, Facts, Rendering
from assent.surfaces.web.renderers.registry import renders
from assent.surfaces.web.renderers.values.reading import View, call, only, others, text


def runs_programs(item: View) -> bool:
    return commands.runs_program(*call(item))


def runs_commands(item: View) -> bool:
    return commands.runs_command(*call(item))


def command_line(item: View) -> str | None:
    command = commands.command(only(item))
    return _("Run %(command)s") % {"command": " ".join(command.split())} if command else None


@renders("code", label="Code", icon="code", matches=runs_programs)
def code(item: View) -> Rendering | None:
    args = only(item)
    program = commands.program(args)
    if not program:
        return None
    language = text(args, "language", "lang") or ("python" if "python" in call(item)[0].lower() else "")
    about = others(args, PROGRAMS, ("language", "lang"))
    return Rendering(*_cautions(program), Code(program, language), Facts(about) if about else None)


@renders("shell", "command", label="Command", icon="tool", matches=runs_commands, title=command_line)
def shell(item: View) -> Rendering | None:
    args = only(item)
    command = commands.command(args)
    if not command:
        return None
    about = others(args, COMMANDS)
    return Rendering(*_cautions(command), Code(command, "shell"), Facts(about) if about else None)


def _cautions(source: str) -> list[Caution]:
    return [Caution(caution.text, caution.detail) for caution in commands.cautions(source)]

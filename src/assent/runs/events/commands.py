"""Executes commands of the protocol as runs, with the checks and refusals of the runs API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

from assent.errors import AnswerRefused, AssentError, Forbidden, Invalid, NotFound
from assent.identity.model.access import Principal
from assent.runs.engine.protocol import STREAM_MODES
from assent.runs.events.model import commands
from assent.runs.events.model.channels import BadSelection, selection
from assent.runs.events.model.commands import Command, CommandError
from assent.runs.runs import Runs
from assent.threads.model.runs import Run
from assent.threads.model.threads import require_thread_id
from assent.threads.run_requests import RunRequest


class Commands:
    def __init__(self, runs: Runs, parse: Callable[[dict[str, Any]], RunRequest]) -> None:
        """`parse` makes a request of the fields of the runs API."""
        self._runs = runs
        self._parse = parse

    async def execute(self, caller: Principal, thread_id: str, command: Command) -> dict[str, Any]:
        """The answer to the command. A refusal is an answer too; it names the error's code and status."""
        try:
            return commands.success(command, await self._result(caller, thread_id, command))
        except CommandError as error:
            return commands.failure(command.id, error)
        except AssentError as error:
            if error.status >= 500:
                raise
            return commands.failure(command.id, _refusal(error))

    async def _result(self, caller: Principal, thread_id: str, command: Command) -> dict[str, Any]:
        match command.method:
            case commands.START:
                return await self._start(caller, thread_id, command)
            case commands.RESPOND:
                return await self._respond(caller, thread_id, command)
            case commands.SUBSCRIBE:  # over HTTP, the stream itself is the subscription
                try:
                    selection(command.params)
                except BadSelection as error:
                    raise CommandError(commands.INVALID, f"subscription.subscribe: {error}") from None
                return {"subscription_id": str(uuid4()), "replayed_events": 0}
            case commands.UNSUBSCRIBE:
                raise CommandError(commands.NO_SUBSCRIPTION, "There is no such subscription.")
            case commands.TREE | commands.RECONNECT:
                raise CommandError(commands.NO_RUN, "No active run is bound to this thread.")
        raise CommandError(commands.UNKNOWN, f"Unknown protocol command: {command.method[:100]}")

    async def _start(self, caller: Principal, thread_id: str, command: Command) -> dict[str, Any]:
        require_thread_id(thread_id)
        run = await self._create(caller, thread_id, commands.started(command.params))
        return {"run_id": run.id}

    async def _respond(self, caller: Principal, thread_id: str, command: Command) -> dict[str, Any]:
        fields = commands.answered(command.params)
        assistant_id = await self._runs.assistant_of(caller, thread_id)
        if assistant_id is None:
            raise CommandError(commands.NO_RUN, "No interrupted run is bound to this thread.")
        await self._create(caller, thread_id, {**fields, "assistant_id": assistant_id})
        return {}

    async def _create(self, caller: Principal, thread_id: str, fields: dict[str, Any]) -> Run:
        request = replace(self._parse(fields), stream_mode=STREAM_MODES, stream_subgraphs=True, stream_resumable=True)
        return await self._runs.create(caller, thread_id, request)


def _refusal(error: AssentError) -> CommandError:
    facts = {"status": error.status, "code": error.code, **error.extra}
    facts |= {"hint": error.hint} if error.hint else {}
    return CommandError(_code(error), error.message, facts)


def _code(error: AssentError) -> str:
    if isinstance(error, Forbidden):
        return commands.DENIED
    if isinstance(error, AnswerRefused):
        return commands.NO_INTERRUPT
    if isinstance(error, NotFound):
        return commands.NO_RUN
    return commands.INVALID if isinstance(error, Invalid) else commands.ERROR

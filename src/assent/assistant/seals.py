"""Seals on paused calls and on the answers to their questions. Both are kept in the thread's state, which its callers
can write. A pause counts only for the call that paused, in its thread, and an answer only for the question that was
asked. Without a server there are no seals: everybody who can write the state may answer.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolCall
from langgraph.config import get_config

from assent.assistant.mcp.questions import Answers, PausedCall
from assent.assistant.messages import call_id
from assent.gate.places import Place, akeeper_for
from assent.gate.records import Keeper
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id

_SEAL = "seal"


class Seals:
    def __init__(self, keeper: Keeper, thread_id: str) -> None:
        self._keeper = keeper
        self._thread_id = thread_id

    def paused(self, call: ToolCall, paused: PausedCall) -> PausedCall:
        """The paused call with its seal. The id makes each pause different, so that no answer fits two."""
        if _SEAL in paused:
            return paused
        named: PausedCall = {**paused, "id": new_id()}
        return {**named, "seal": self._of_pause(call, named)}

    def fits(self, call: ToolCall, paused: PausedCall) -> bool:
        """Whether exactly this call paused like this."""
        plain = {name: value for name, value in paused.items() if name != _SEAL}
        return _equal(self._of_pause(call, plain), paused.get(_SEAL))

    def answered(self, paused: PausedCall | None, key: str, value: Json, answer: Mapping[str, Json]) -> dict[str, Json]:
        """The answer, with its seal, to the question `value` of the paused call."""
        return {**answer, _SEAL: self._of_answer(paused, key, value, answer)}

    def genuine(self, paused: PausedCall, answers: Answers) -> dict[str, Json]:
        """The answers that a person gave to the questions of the paused call."""
        return {
            key: answer
            for key, answer in answers.items()
            if isinstance(answer, dict) and key in paused["questions"] and self._is_answer(paused, key, answer)
        }

    def _is_answer(self, paused: PausedCall, key: str, answer: dict[str, Json]) -> bool:
        plain = {name: value for name, value in answer.items() if name != _SEAL}
        return _equal(self._of_answer(paused, key, paused["questions"][key], plain), answer.get(_SEAL))

    def _of_pause(self, call: ToolCall, paused: Mapping[str, Any]) -> str | None:
        return self._keeper.seal(
            {
                "thread": self._thread_id,
                "call": call_id(call),
                "tool": call["name"],
                "args": call["args"],
                "paused": dict(paused),
            }
        )

    def _of_answer(self, paused: PausedCall | None, key: str, question: Json, answer: Mapping[str, Json]) -> str | None:
        return self._keeper.seal(
            {
                "thread": self._thread_id,
                "paused": canonical.digest(paused),
                "key": key,
                "question": question,
                "answer": dict(answer),
            }
        )


async def seals_of(inbox: Place | None) -> Seals:
    """Those of the thread that runs."""
    return Seals(await akeeper_for(inbox), str(get_config()["configurable"]["thread_id"]))


def _equal(expected: str | None, given: Any) -> bool:
    return expected is None or hmac.compare_digest(expected.encode(), str(given).encode(errors="replace"))

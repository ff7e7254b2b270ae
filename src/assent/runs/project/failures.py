"""Errors of authors' code, as shown to callers.

In development, callers see the text of any exception. Elsewhere the text can hold confidential data, such as a database
URL or a row, so callers get the class and an id, and the text is logged.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from assent.errors import AssentError

log = logging.getLogger(__name__)

_CLASS = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_WITHOUT_DATA = ("GraphRecursionError",)
"""LangGraph's errors whose texts contain no data of the graph."""


def text_of(error: BaseException) -> str:
    """The error's text. The `__str__` of an author's class may raise."""
    try:
        message = str(error)
    except Exception as silent:  # noqa: BLE001 - the run must end in any case
        message = f"the error has no text: its __str__ raised {type(silent).__name__}"
    return message.encode("utf-8", "replace").decode() or type(error).__name__


class Failures:
    """`shown`: whether callers see the texts."""

    def __init__(self, shown: bool = True) -> None:
        self._shown = shown

    def of_run(self, error: BaseException, run_id: str) -> dict[str, str]:
        name = type(error).__name__
        if self._shows(error):
            return {"error": name, "message": text_of(error)}
        return {"error": name, "message": f"the agent's code failed; the log has the reason under run_id {run_id}"}

    def of_event(self, error: Any) -> Any:
        """The error of a task as it happens: its class and its text, as in the error of a run."""
        if not isinstance(error, BaseException):
            return self.of_task(error)
        return {"error": type(error).__name__, "message": text_of(error) if self._shows(error) else "…"}

    def of_task(self, error: Any) -> str | None:
        """The error of a stored task: the text of its repr."""
        if error is None:
            return None
        text = error if isinstance(error, str) else repr(error)
        if self._shown:
            return text
        name = _CLASS.match(text)
        return f"{name[0] if name else 'Exception'}(…)"

    def of_request(self, error: BaseException) -> str:
        """The reason why the graph refuses a request. LangGraph's own errors concern the request."""
        if self._shows(error) or type(error).__module__.startswith("langgraph."):
            return text_of(error)
        log.error("handle request failed in the agent's code", extra={"error": type(error).__name__}, exc_info=error)
        return f"the agent's code refused this with {type(error).__name__}; the log has the reason"

    def of_load(self, error: BaseException) -> str:
        """The reason why a graph did not load, which was logged at the start."""
        return text_of(error) if self._shown else "the log of the start has the reason"

    def _shows(self, error: BaseException) -> bool:
        return self._shown or isinstance(error, AssentError) or type(error).__name__ in _WITHOUT_DATA


SHOWN = Failures()

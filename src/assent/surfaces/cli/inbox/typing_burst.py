"""Tells text from single keys: text that was meant for a line decides nothing where the line is not open."""

from __future__ import annotations

BURST = 0.4
"""A key that follows another one within this many seconds is text, as on the web pages."""

PAUSE = 0.25
"""A key that approves waits this long for another one."""


class TypingBurst:
    """Follows keys by the time, in seconds, at which each was pressed."""

    def __init__(self) -> None:
        self._last = self._text = float("-inf")

    def key(self, at: float) -> None:
        if at - self._last < BURST:
            self._text = at
        self._last = at

    def text(self, at: float) -> None:
        self._last = self._text = at

    def typing(self, at: float) -> bool:
        return at - self._text < BURST

"""A person at a real terminal: a pseudo-terminal with the command on its other side, as its controlling one."""

from __future__ import annotations

import os
import pty
import re
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.command import PATIENCE, environment
from tests.forking import Forked

CTRL_C, CTRL_D = "\x03", "\x04"
LEADER = """
import fcntl, os, signal, sys, termios
from assent.surfaces.cli.main import main

os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[0] = "assent"
main()
"""
"""The command as the leader of a session on its terminal. It notices Ctrl-C also where the tests run in the background
of a shell, which ignores the signal there."""


class Terminal:
    """`seen` is everything that stood on it; `expect` looks at what came since it last found something."""

    def __init__(self, process: Forked, master: int) -> None:
        self._process, self._master = process, master
        self.seen = ""
        self._at = 0

    def type(self, line: str) -> None:
        self.press(f"{line}\n")

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def expect(self, *texts: str) -> str:
        """Waits for these, one after the other, and returns what stood there up to the last of them."""
        begin = self._at
        for text in texts:
            while (position := self.seen.find(text, self._at)) < 0:
                assert self._read(), f"{text!r} does not come, only:\n{self.seen[self._at :]}"
            self._at = position + len(text)
        return self.seen[begin : self._at]

    def interrupt(self, *, until: str) -> None:
        """Ctrl-C, as often as it takes: one that comes just before the command waits for a key is not noticed."""
        end = time.monotonic() + PATIENCE
        while until not in self.seen[self._at :]:
            assert time.monotonic() < end, f"{until!r} does not come, only:\n{self.seen[self._at :]}"
            self.press(CTRL_C)
            while until not in self.seen[self._at :] and self._read(2):
                pass
        self.expect(until)

    def talk(self, *turns: tuple[str, str]) -> None:
        """Types each line at its prompt."""
        for prompt, line in turns:
            self.expect(prompt)
            self.type(line)

    def ended(self) -> int:
        while self._read():
            pass
        return self._process.wait(PATIENCE)

    def _read(self, patience: float = PATIENCE) -> bool:
        """More of it; False where there is no more."""
        ready, _, _ = select.select([self._master], [], [], patience)
        if not ready:
            return False
        try:
            read = os.read(self._master, 65536)
        except OSError:  # the other side is gone
            return False
        self.seen += read.decode().replace("\r\n", "\n")
        return bool(read)


@contextmanager
def terminal(folder: Path, *arguments: str, **changes: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    surroundings = environment(TERM="dumb", **changes)
    with Forked(arguments, folder=folder, environment=surroundings, program=["-c", LEADER], terminal=slave) as process:
        os.close(slave)
        try:
            yield Terminal(process, master)
        finally:
            process.kill()
            process.wait(PATIENCE)
            os.close(master)


def link_in(text: str) -> str:
    match = re.search(r"link +(http\S+)", text)
    assert match, text
    return match[1]

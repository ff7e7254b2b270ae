"""Other people's time: a process that asks a server the same cheap questions again and again, and times the answers.

It asks for who it is, for the list of items and, where the key may, for a small write: these wait for the event loop,
for the database's readers and for its writer. A process of its own, so that what the attacking test does with its own
CPU time is not measured. It stops when its input ends, and prints what it found.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

MOST_MS = 250.0
ASKED = {
    "who am I": ("GET", "/api/me", None),
    "items": ("GET", "/api/inbox/items?limit=10", None),
    "write": ("POST", "/threads", "{}"),
}


@dataclass
class Lag:
    """What another caller met meanwhile: answers by status, and the longest wait for each question and for any."""

    statuses: dict[str, int] = field(default_factory=dict)
    longest: dict[str, float] = field(default_factory=dict)
    count: int = 0

    @property
    def longest_ms(self) -> float:
        return max(self.longest.values(), default=0.0)

    def __str__(self) -> str:
        return ", ".join(f"{name} {taken:.0f} ms" for name, taken in self.longest.items())


@contextmanager
def measured(url: str, key: str) -> Iterator[Lag]:
    lag = Lag()
    process = subprocess.Popen(
        [sys.executable, "-S", __file__, url, key], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield lag
    finally:
        output, _ = process.communicate("", timeout=120)
    parsed = json.loads(output)
    lag.statuses, lag.longest, lag.count = parsed["statuses"], parsed["longest"], parsed["count"]


def _ask(host: str, key: str, question: str) -> tuple[str, float]:
    """On a connection of its own, as somebody who has just come."""
    method, path, body = ASKED[question]
    headers = {"x-api-key": key, "content-type": "application/json"}
    started = time.perf_counter()
    try:
        connection = http.client.HTTPConnection(host, timeout=60)
        connection.request(method, path, body, headers=headers)
        status = str(connection.getresponse().status)
        connection.close()
    except OSError as error:
        status = type(error).__name__
    return status, (time.perf_counter() - started) * 1000


class _Asking:
    """One thread for each question: a slow answer to one must not hide what the others meet."""

    def __init__(self, host: str, key: str) -> None:
        self.host, self.key = host, key
        self.ended = threading.Event()
        self.statuses: dict[str, int] = {}
        self.longest = dict.fromkeys(ASKED, 0.0)
        self.count = 0
        self._counting = threading.Lock()

    def ask(self, question: str) -> None:
        while not self.ended.wait(0.01):
            status, taken = _ask(self.host, self.key, question)
            with self._counting:
                self.statuses[status] = self.statuses.get(status, 0) + 1
                self.longest[question] = max(self.longest[question], taken)
                self.count += 1


def main(url: str, key: str) -> None:
    asking = _Asking(urlsplit(url).netloc, key)
    for question in ASKED:
        _ask(asking.host, asking.key, question)
    print("ready", flush=True)
    threads = [threading.Thread(target=asking.ask, args=(question,)) for question in ASKED]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    asking.ended.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"statuses": asking.statuses, "longest": asking.longest, "count": asking.count}))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Processes that write until they are killed, and say on standard output what they were told is committed.

`python -m tests.faults.writer URL` forks one for each line that it reads (forking spares every kill the imports):
sixteen writers at once. It says its process id, then the name of each row after its commit, and `end` when it is dead.
A line that ends in `early` makes it speak from inside the function, before the commit: the control, which loses rows.
"""

import asyncio
import os
import sys
import threading

from assent.kernel import events
from assent.kernel.store.drivers.postgres import PostgresStore
from assent.kernel.store.drivers.sqlite import SqliteStore
from assent.kernel.store.transaction import Tx
from tests.contract.tables import add

TENANT = "acme"
WRITERS = 16


def act(tx: Tx, name: str, *, early: bool) -> None:
    """A row and the event that tells of it."""
    add(tx, name)
    events.append(tx, "service:writer", "row.added", name)
    if early:
        say(name)
        threading.Event().wait()


async def write_all_the_time(url: str, run: str, *, early: bool) -> None:
    store = SqliteStore(url) if url.startswith("sqlite") else PostgresStore(url)
    await store.open()

    async def write_on(writer: int) -> None:
        number = 0
        while True:
            name = f"{run}-{writer}-{number}"
            await store.write(TENANT, act, name, early=early)
            say(name)
            number += 1

    await asyncio.gather(*map(write_on, range(WRITERS)))


def say(line: object) -> None:
    os.write(1, f"{line}\n".encode())


def main(url: str) -> None:
    for line in sys.stdin:
        run, _, early = line.strip().partition(" ")
        child = os.fork()
        if child == 0:
            say(os.getpid())
            asyncio.run(write_all_the_time(url, run, early=early == "early"))
        os.waitpid(child, 0)
        say("end")


if __name__ == "__main__":
    main(sys.argv[1])

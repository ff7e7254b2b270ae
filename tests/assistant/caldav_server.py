"""A CalDAV server for tests: Radicale, as a process of its own, with many accounts."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from pydantic import SecretStr

from assent.settings import CaldavServer
from tests.postgres_server import free_port
from tests.waiting import wait_until

PASSWORD = "correct horse"
_ACCOUNTS = 200
_HOME = """<?xml version="1.0"?>
<c:mkcalendar xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop>
<d:displayname>{name}</d:displayname><c:calendar-description>{name} things</c:calendar-description>
<c:supported-calendar-component-set><c:comp name="{kind}"/></c:supported-calendar-component-set>
</d:prop></d:set></c:mkcalendar>"""


class Radicale:
    def __init__(self, url: str) -> None:
        self.url = url
        self._names = iter(f"user{number}" for number in range(_ACCOUNTS))

    def account(self, *calendars: str) -> Account:
        """A new account with these calendars."""
        account = Account(self.url, next(self._names))
        for name in calendars:
            account.add_calendar(name)
        return account


class Account:
    def __init__(self, url: str, user: str) -> None:
        self.server = CaldavServer(f"{url}/", user, SecretStr(PASSWORD))
        self.user = user
        self.url = f"{url}/{user}"
        self._client = httpx.Client(auth=(user, PASSWORD), trust_env=False, timeout=30)

    def add_calendar(self, name: str, kind: str = "VEVENT") -> None:
        self._done("MKCALENDAR", f"{self.url}/{name.lower()}/", _HOME.format(name=name, kind=kind))

    def add(self, name: str, *events: str, calendar: str = "home") -> None:
        """Events as another program writes them: the lines between BEGIN and END."""
        parts = "".join(
            f"BEGIN:VEVENT\nDTSTAMP:20261101T000000Z\nUID:{name}\n{event}\nEND:VEVENT\n" for event in events
        )
        text = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Another//Program//EN\n{parts}END:VCALENDAR\n"
        self._done("PUT", f"{self.url}/{calendar}/{name}.ics", text.replace("\n", "\r\n"))

    def text(self, name: str, calendar: str = "home") -> str:
        """The event as the server has it, with long lines unfolded."""
        return self._done("GET", f"{self.url}/{calendar}/{name}.ics").text.replace("\r\n ", "").replace("\r\n", "\n")

    def _done(self, method: str, url: str, content: str = "") -> httpx.Response:
        return self._client.request(method, url, content=content.encode()).raise_for_status()


@contextmanager
def radicale(folder: Path) -> Iterator[Radicale]:
    users = folder / "users"
    users.write_text("".join(f"user{number}:{PASSWORD}\n" for number in range(_ACCOUNTS)))
    port = free_port()
    options = {
        "server-hosts": f"127.0.0.1:{port}",
        "storage-filesystem-folder": str(folder / "collections"),
        "auth-type": "htpasswd",
        "auth-htpasswd-filename": str(users),
        "auth-htpasswd-encryption": "plain",
        "auth-delay": "0",
    }
    command = [sys.executable, "-m", "radicale", *(part for name in options for part in (f"--{name}", options[name]))]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            wait_until(lambda: _accepts(port) or process.poll() is not None, "the CalDAV server does not start")
            assert process.poll() is None, (folder / "log").read_text()
            yield Radicale(f"http://127.0.0.1:{port}")
        finally:
            process.kill()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True

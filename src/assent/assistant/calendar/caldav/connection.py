"""The connection to a CalDAV server: its calendars, and reading and writing their documents.

It calls the origin that the setting names and no other: a redirect, or an address elsewhere in the server's answers,
would carry appointments and perhaps the password there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from operator import attrgetter
from threading import Lock
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import requests
from caldav.davclient import DAVClient, DAVResponse
from caldav.lib.error import AuthorizationError, DAVError
from caldav.requests import HTTPBearerAuth

from assent.errors import AssentError, Conflict, Forbidden, Unavailable
from assent.settings import CaldavServer

_SECONDS = 30
_AT_ONCE = 8
_NAMES = {"d": "DAV:", "c": "urn:ietf:params:xml:ns:caldav"}
_SPACES = " ".join(f'xmlns:{prefix}="{name}"' for prefix, name in _NAMES.items())
_PRINCIPAL = f"<d:propfind {_SPACES}><d:prop><d:current-user-principal/></d:prop></d:propfind>"
_HOME = f"<d:propfind {_SPACES}><d:prop><c:calendar-home-set/></d:prop></d:propfind>"
_CALENDARS = (
    f"<d:propfind {_SPACES}><d:prop><d:displayname/><d:resourcetype/><c:calendar-description/>"
    "<c:supported-calendar-component-set/></d:prop></d:propfind>"
)
_DOCUMENTS = (
    f"<c:calendar-query {_SPACES}><d:prop><d:getetag/><c:calendar-data/></d:prop><c:filter>"
    '<c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT">%s</c:comp-filter></c:comp-filter>'
    "</c:filter></c:calendar-query>"
)


@dataclass(frozen=True, slots=True)
class Collection:
    """A calendar of the server."""

    url: str
    name: str
    description: str

    @property
    def calendar_id(self) -> str:
        return unquote(self.url.rstrip("/").rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Document:
    """A text of the server, with the tag of this version of it."""

    url: str
    etag: str | None
    text: str


class Connection:
    """Usable by several threads at once."""

    def __init__(self, server: CaldavServer) -> None:
        self._server = server
        self._url = server.url
        self._session = _Session(server.url)
        self._client: DAVClient | None = None
        self._opening = Lock()

    def collections(self) -> list[Collection]:
        """The calendars that hold events, by name."""
        with self._opened() as client:
            principals = _addresses(client, self._url, _PRINCIPAL, "d:current-user-principal")
            homes = [home for url in principals for home in _addresses(client, url, _HOME, "c:calendar-home-set")]
            if not homes:
                raise Unavailable(f"{self._url} does not answer as CalDAV", hint="check ASSISTANT_CALDAV_URL")
            parts = [part for url in homes for part in _answers(client.propfind(url, _CALENDARS, 1), url)]
        return sorted(
            (_collection(url, part) for url, part in parts if _holds_events(part)),
            key=attrgetter("name"),
        )

    def documents(self, collection: Collection, condition: str) -> list[Document]:
        with self._opened() as client:
            reply = client.report(collection.url, _DOCUMENTS % condition, 1)
            _demand(reply.status, HTTPStatus.MULTI_STATUS)
            return [
                Document(url, next(iter(_texts(part, ".//d:getetag")), None), text)
                for url, part in _answers(reply, collection.url)
                for text in _texts(part, ".//c:calendar-data")
            ]

    def put(self, url: str, text: bytes, condition: dict[str, str]) -> bool:
        """False if the condition does not hold."""
        headers = {"Content-Type": "text/calendar; charset=utf-8", **condition}
        with self._opened() as client:
            status = client.put(url, text.decode(), headers).status
            return status != HTTPStatus.PRECONDITION_FAILED and _demand(
                status, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT
            )

    def delete(self, document: Document) -> bool:
        """False if there is another version by now."""
        with self._opened() as client:
            condition = {"If-Match": document.etag} if document.etag else {}
            status = client.request(document.url, "DELETE", "", condition).status
            gone = (HTTPStatus.OK, HTTPStatus.NO_CONTENT, HTTPStatus.NOT_FOUND)
            return status != HTTPStatus.PRECONDITION_FAILED and _demand(status, *gone)

    @contextmanager
    def _opened(self) -> Iterator[DAVClient]:
        try:
            with _faults(self._url):
                with self._opening:
                    self._client = self._client or self._signed_in()
                yield self._client
        except Forbidden:
            self._client = None  # it forgets its password where it is refused
            raise

    def _signed_in(self) -> DAVClient:
        """The library learns from a first refusal how to sign in, which only one thread may do."""
        token, password = self._server.token, self._server.password
        client = DAVClient(
            self._url,
            username=self._server.user,
            password=password.get_secret_value() if password else None,
            auth=HTTPBearerAuth(token.get_secret_value()) if token else None,
            timeout=_SECONDS,
        )
        client.session = self._session
        client.propfind(self._url, _PRINCIPAL, 0)
        if client.auth is None:
            client.build_auth_object(["basic"])
        return client


class _Session(requests.Session):
    """Without proxies and passwords of the environment, for one origin."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.trust_env = False
        for scheme in ("http://", "https://"):
            self.mount(scheme, requests.adapters.HTTPAdapter(pool_maxsize=_AT_ONCE, pool_block=True))
        self._origin = urlsplit(url)[:2]

    def request(self, method: str, url: str | bytes, *args: Any, **options: Any) -> requests.Response:
        self._demand_origin(str(url))
        response = super().request(method, url, *args, **{**options, "allow_redirects": False})
        if response.is_redirect:
            target = urljoin(str(url), response.headers["Location"])
            self._demand_origin(target)
            raise Unavailable(
                f"the calendar's server redirects to {target}", hint="name that address in ASSISTANT_CALDAV_URL"
            )
        return response

    def _demand_origin(self, url: str) -> None:
        scheme, host = urlsplit(url)[:2]
        if (scheme, host) != self._origin:
            raise Unavailable(
                f"the calendar's server refers to {scheme}://{host}, and is not followed there",
                hint="name that address in ASSISTANT_CALDAV_URL if you trust it",
            )


@contextmanager
def _faults(url: str) -> Iterator[None]:
    try:
        yield
    except AssentError:
        raise
    except AuthorizationError:
        raise Forbidden(
            f"the calendar's server at {url} refuses the access",
            hint="check ASSISTANT_CALDAV_USER and ASSISTANT_CALDAV_PASSWORD or _TOKEN, and the rights to the calendar",
        ) from None
    except requests.RequestException as error:
        raise Unavailable(
            f"the calendar's server at {url} cannot be reached ({type(error).__name__})",
            hint="check ASSISTANT_CALDAV_URL, and that it runs",
        ) from None
    except (DAVError, SyntaxError, NotImplementedError, AssertionError) as error:
        # The library asserts what a CalDAV server answers; broken XML is a SyntaxError of lxml.
        raise Unavailable(
            f"the server at {url} does not answer as CalDAV ({type(error).__name__})", hint="check ASSISTANT_CALDAV_URL"
        ) from None


def _addresses(client: DAVClient, url: str, question: str, answer: str) -> list[str]:
    answers = _answers(client.propfind(url, question, 0), url)
    return [urljoin(at, href) for at, part in answers for href in _texts(part, f".//{answer}/d:href")]


def _answers(reply: DAVResponse, url: str) -> list[tuple[str, Any]]:
    """The resources of which the reply tells, each with its part of it."""
    parts = [] if reply.tree is None else reply.tree.iter(f"{{{_NAMES['d']}}}response")
    return [(urljoin(url, href), part) for part in parts for href in _texts(part, "./d:href")[:1]]


def _demand(status: int, *expected: int) -> bool:
    if status in expected:
        return True
    if status == HTTPStatus.CONFLICT:
        raise Conflict("the calendar's server refuses the event: it conflicts with another")
    raise Unavailable(f"the calendar's server answered {status}")


def _holds_events(part: Any) -> bool:
    kinds = part.findall(".//c:supported-calendar-component-set/c:comp", _NAMES)
    is_calendar = part.find(".//d:resourcetype/c:calendar", _NAMES) is not None
    return is_calendar and (not kinds or "VEVENT" in {kind.get("name") for kind in kinds})


def _collection(url: str, part: Any) -> Collection:
    name, description = (
        next(iter(_texts(part, f".//{prop}")), "") for prop in ("d:displayname", "c:calendar-description")
    )
    return Collection(url, name or unquote(url.rstrip("/").rpartition("/")[2]), description)


def _texts(part: Any, path: str) -> list[str]:
    return [text for element in part.findall(path, _NAMES) if (text := (element.text or "").strip())]

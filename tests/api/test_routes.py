"""All routes at once: none answers without a credential unless it is listed here, and no two overlap."""

import re
from collections.abc import Iterator
from itertools import combinations

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount

from assent.settings import Mode
from tests.api.house import Builder, House, call

PUBLIC = {
    ("GET", "/"),
    ("GET", "/ok"),
    ("GET", "/info"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("POST", "/logout"),
    ("GET", "/openapi.json"),
    ("GET", "/static/{path}"),
    ("POST", "/api/session"),
    ("DELETE", "/api/session"),
}
"""Whoever adds a line here opens that door to everyone who can reach the server."""

PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")
CONVERTORS = {"uuid": "[0-9a-f-]{36}", "int": r"\d+", "path": ".*", None: "[^/]+", "str": "[^/]+"}
SAMPLES = {"uuid": "0197c5a0-0000-7000-8000-000000000000", "int": "7"}


def operations(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Every method and path of the app; a mounted app counts as GET on everything below it."""
    for context in iter_route_contexts(app.routes):
        path = context.path or ""
        if isinstance(context.original_route, Mount):
            yield "GET", f"{path}/{{path:path}}"
        for method in sorted((context.methods or set()) - {"HEAD", "OPTIONS"}):
            yield method, path


def plain(path: str) -> str:
    return PARAMETER.sub(r"{\1}", path)


def sample(path: str) -> str:
    return PARAMETER.sub(lambda found: SAMPLES.get(found[2] or "", "sample"), path)


def pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[^}]+\})", path)
    regexes = [CONVERTORS[found[2]] if (found := PARAMETER.fullmatch(part)) else re.escape(part) for part in parts]
    return re.compile("".join(regexes))


def overlapping(found: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Pairs of one method whose paths a single request can match."""
    return [
        (method, one, other)
        for (method, one), (also, other) in combinations(found, 2)
        if method == also and (pattern(one).fullmatch(sample(other)) or pattern(other).fullmatch(sample(one)))
    ]


async def test_the_walk_sees_the_routes(house: House) -> None:
    found = {(method, plain(path)) for method, path in operations(house.app)}
    assert {("GET", "/ok"), ("POST", "/api/keys"), ("GET", "/inbox"), ("GET", "/static/{path}")} <= found
    assert len(found) > 20


@pytest.mark.promise("P10")
async def test_in_production_nothing_answers_without_a_credential_but_what_is_listed(house: House) -> None:
    client = house.client()
    opened = set()
    for method, path in operations(house.app):
        response = await client.request(method, sample(path))
        if response.status_code != 401:
            opened.add((method, plain(path)))
    assert opened <= PUBLIC, f"these routes answer anyone: {sorted(opened - PUBLIC)}"


@pytest.mark.parametrize(
    "path", ["/ok/", "/ok/../api/keys", "//api/keys", "/api/keys/", "/API/keys", "/static/../api/keys"]
)
async def test_no_spelling_of_a_path_slips_past(house: House, path: str) -> None:
    sent = await call(house.app, "GET", path, {})
    assert sent[0]["status"] in (401, 404)
    body = b"".join(message.get("body", b"") for message in sent)
    assert b"items" not in body


@pytest.mark.parametrize("path", ["/api/nothing", "/nothing", "/threads/none/nothing"])
async def test_what_is_not_there_is_not_told_to_strangers(house: House, path: str) -> None:
    assert (await house.client().get(path)).status_code == 401


async def test_control_in_dev_the_same_walk_finds_open_doors(dev_house: House) -> None:
    client = dev_house.client()
    answers = {
        (await client.request(method, sample(path))).status_code
        for method, path in operations(dev_house.app)
        if path != "/api/inbox/events"  # goes on for as long as someone listens
    }
    assert answers & {200, 403, 422}


@pytest.mark.parametrize("mode", list(Mode))
async def test_no_two_routes_overlap(build: Builder, mode: Mode) -> None:
    house = await build(mode)
    assert overlapping(list(operations(house.app))) == []


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("/inbox/{item}", "/inbox/policies", True),
        ("/inbox/{item:uuid}", "/inbox/policies", False),
        ("/threads/{id}/runs/{run}", "/threads/{id}/runs/stream", True),
        ("/static/{path:path}", "/static/x/y", True),
        ("/a/{x}", "/a/{y}/b", False),
        ("/a", "/a", True),
    ],
)
def test_control_an_overlap_is_seen(one: str, other: str, overlap: bool) -> None:
    assert bool(overlapping([("GET", one), ("GET", other)])) is overlap
    assert not overlapping([("GET", one), ("POST", other)])

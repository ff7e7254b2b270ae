"""All routes at once: none answers without a credential unless it is listed here, and no two overlap."""

import json
import re
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import Mount

from assent.settings import Mode
from assent.surfaces.http.routing import router
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
    ("POST", "/api/deployments/look"),  # with the secret of a webhook
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
    regexes = [CONVERTORS[match[2]] if (match := PARAMETER.fullmatch(part)) else re.escape(part) for part in parts]
    return re.compile("".join(regexes))


def overlapping(found: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Pairs of one method whose paths a single request can match."""
    return [
        (method, first, other)
        for (method, first), (also, other) in combinations(found, 2)
        if method == also and (pattern(first).fullmatch(sample(other)) or pattern(other).fullmatch(sample(first)))
    ]


async def test_walk_covers_all_routes(house: House) -> None:
    routes_seen = {(method, plain(path)) for method, path in operations(house.app)}
    assert {("GET", "/ok"), ("POST", "/api/keys"), ("GET", "/inbox"), ("GET", "/static/{path}")} <= routes_seen
    assert len(routes_seen) > 20


async def test_endpoint_is_examined_at_its_first_request(own_house: House) -> None:
    def examined() -> list[str]:
        return [
            route.path for route in own_house.app.routes if isinstance(route, APIRoute) and "dependant" in vars(route)
        ]

    assert examined() == []
    assert (await own_house.client().get("/ok")).status_code == 200
    assert examined() == ["/ok"]


def test_unknown_attribute_of_a_route_is_an_attribute_error() -> None:
    routes = router("/things", "things")
    routes.get("")(lambda: None)
    assert not hasattr(routes.routes[0], "colour")


@pytest.mark.promise("P10")
async def test_only_listed_routes_answer_without_a_credential_in_production(build: Builder) -> None:
    house = await build(Mode.SERVE, rate_limit_anonymous=0)
    client = house.client()
    opened = set()
    for method, path in operations(house.app):
        response = await client.request(method, sample(path))
        if response.status_code != 401:
            opened.add((method, plain(path)))
    assert opened <= PUBLIC, f"these routes answer anyone: {sorted(opened - PUBLIC)}"


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SHADOWED = """
from starlette.responses import PlainTextResponse

async def app(scope, receive, send):
    if scope["type"] == "http":
        await PlainTextResponse("the author's own")(scope, receive, send)
"""


async def _custom(build: Builder, folder: Path, **http: object) -> House:
    """A project whose app answers everything."""
    (folder / "shadow.py").write_text(SHADOWED)
    echo = Path(__file__).parents[1] / "graphs" / "echo.py"
    project = {"graphs": {"echo": f"{echo}:graph"}, "http": {"app": "./shadow.py:app", **http}}
    (folder / "langgraph.json").write_text(json.dumps(project))
    return await build(Mode.SERVE, config=folder / "langgraph.json", assistant="echo", rate_limit_anonymous=0)


async def _opened(house: House) -> set[tuple[str, str]]:
    """What answers without a credential: every path of ours and of others, by every method."""
    others = {"/docs", "/favicon.ico", "/redoc", "/anything"}
    paths = {path for _, path in operations(house.app)} | others
    client, opened = house.client(), set()
    for method, path in product(METHODS, sorted(paths)):
        response = await client.request(method, sample(path))
        if response.status_code != 401:
            opened.add((method, plain(path)))
    return opened


@pytest.mark.promise("P10")
async def test_app_of_the_author_is_not_reached_without_a_credential(build: Builder, tmp_path: Path) -> None:
    house = await _custom(build, tmp_path)
    ours = PUBLIC | {("HEAD", "/ok"), ("HEAD", "/openapi.json"), ("GET", "/health-check")}
    ours |= {(method, "/static/{path}") for method in METHODS}  # which answers 405 to all but GET
    assert await _opened(house) <= ours


@pytest.mark.promise("P10")
async def test_app_of_the_author_behind_our_paths_needs_a_credential(build_on_both: Builder, tmp_path: Path) -> None:
    house = await _custom(build_on_both, tmp_path)
    for method, path in (("POST", "/"), ("GET", "/docs"), ("PUT", "/login"), ("POST", "/ok"), ("PUT", "/api/session")):
        assert (await house.client().request(method, path)).status_code == 401
        answer = await house.client(await house.key()).request(method, path)
        assert answer.text == "the author's own"


async def test_control_a_project_can_open_its_own_app_only(build: Builder, tmp_path: Path) -> None:
    house = await _custom(build, tmp_path, enable_custom_route_auth=False)
    assert (await house.client().get("/anything")).text == "the author's own"
    for path in ("/api/keys", "/inbox", "/threads/x/state", "/metrics"):
        assert (await house.client().get(path)).status_code == 401


async def test_route_without_a_public_mark_needs_a_credential(own_house: House) -> None:
    @own_house.app.get("/ok/new")
    async def new() -> str:
        return "told"

    assert (await own_house.client().get("/ok/new")).status_code == 401


@pytest.mark.parametrize(
    "path", ["/ok/", "/ok/../api/keys", "//api/keys", "/api/keys/", "/API/keys", "/static/../api/keys"]
)
async def test_any_spelling_of_a_path_needs_a_credential(house: House, path: str) -> None:
    sent = await call(house.app, "GET", path, {})
    assert sent[0]["status"] in (401, 404)
    body = b"".join(message.get("body", b"") for message in sent)
    assert b"items" not in body


@pytest.mark.parametrize("path", ["/api/nothing", "/nothing", "/threads/none/nothing"])
async def test_unknown_path_without_a_credential_is_401(house: House, path: str) -> None:
    assert (await house.client().get(path)).status_code == 401


async def test_control_in_dev_the_same_walk_finds_open_routes(dev_house: House) -> None:
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
def test_control_an_overlap_is_found(one: str, other: str, overlap: bool) -> None:
    assert bool(overlapping([("GET", one), ("GET", other)])) is overlap
    assert not overlapping([("GET", one), ("POST", other)])

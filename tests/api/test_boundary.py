"""The boundary of every request: the request id, the log line, the Host check, the size limit."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from io import StringIO

import httpx
import pytest

from assent import logs
from assent.settings import Mode
from tests.api.house import Builder, House, call

MEGABYTE = 1024 * 1024


@pytest.fixture
def lines() -> Iterator[StringIO]:
    """What the server writes to its log, as JSON lines."""
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.JsonLines())
    logger = logging.getLogger("assent")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(level)


def logged(stream: StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


class TestRequestId:
    @pytest.mark.parametrize(
        ("path", "headers", "status"),
        [
            ("/ok", {}, 200),
            ("/api/me", {}, 401),
            ("/api/me", {"host": "elsewhere.example"}, 421),
            ("/api/session", {"content-length": str(99 * MEGABYTE)}, 413),
            ("/failing", {"x-api-key": "an agent's"}, 500),
        ],
    )
    async def test_request_id_is_the_same_in_header_log_and_body(
        self, own_house: House, lines: StringIO, path: str, headers: dict[str, str], status: int
    ) -> None:
        @own_house.app.get("/failing")
        async def fails() -> None:
            raise RuntimeError

        sent = headers | ({"x-api-key": await own_house.key()} if "x-api-key" in headers else {})
        response = await own_house.client().get(path, headers={**sent, "x-request-id": "given-1"})
        assert (response.status_code, response.headers["x-request-id"]) == (status, "given-1")
        if status != 200:
            assert response.json()["request_id"] == "given-1"
        access = [line for line in logged(lines) if line["message"] == "request"]
        assert [(line["request_id"], line["path"], line["status"]) for line in access] == [("given-1", path, status)]
        assert {line["request_id"] for line in logged(lines)} == {"given-1"}

    async def test_missing_request_id_is_generated_uniquely(self, house: House) -> None:
        client = house.client()
        ids = [(await client.get("/ok")).headers["x-request-id"] for _ in range(3)]
        assert len(set(ids)) == 3

    @pytest.mark.parametrize("given", ["a b", "x" * 65, "é", 'a"b', "", "a\tb"])
    async def test_malformed_request_id_is_replaced(self, house: House, given: str) -> None:
        response = await house.client().get("/ok", headers=[(b"x-request-id", given.encode("latin-1"))])
        assert response.headers["x-request-id"] != given

    async def test_request_id_is_not_kept_for_the_next_request(self, house: House) -> None:
        client = house.client()
        await client.get("/ok", headers={"x-request-id": "first"})
        assert logs.request_id.get() is None
        assert (await client.get("/ok")).headers["x-request-id"] != "first"


async def test_every_answer_forbids_content_sniffing(house: House) -> None:
    for path in ("/ok", "/login", "/static/assent.css", "/api/me"):
        assert (await house.client().get(path)).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/x\n2026-11-15 info    request", "/x status=200", "/\x1b[2J", "/\u2028x", "/‮x"])
async def test_a_path_cannot_forge_a_log_line(house: House, path: str, caplog: pytest.LogCaptureFixture) -> None:
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.TextLines())
    logger = logging.getLogger("assent.access")
    logger.addHandler(handler)
    caplog.set_level(logging.INFO, logger.name)
    try:
        await call(house.app, "GET", path, {})
    finally:
        logger.removeHandler(handler)
    (line,) = stream.getvalue().splitlines()
    assert line.count("status=") == 1 or 'path="' in line
    assert line.isprintable()


class TestHost:
    @pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:2024", "localhost:1", "[::1]:2024", "LOCALHOST"])
    async def test_loopback_host_is_answered(self, house: House, host: str) -> None:
        assert (await house.client().get("/ok", headers={"host": host})).status_code == 200

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:2024",
            "127.0.0.1:2024@evil.example",
            "[::1]evil.example",
            "evil.example#127.0.0.1",
            "0.0.0.0",  # noqa: S104 - sent, not bound
            "",
        ],
    )
    async def test_unknown_host_is_refused(self, dev_house: House, host: str) -> None:
        """A page that points its own name at 127.0.0.1 (DNS rebinding) gets nothing, not even keyless in dev."""
        response = await dev_house.client().get("/api/me", headers={"host": host})
        assert (response.status_code, response.json()["code"]) == (421, "host_refused")

    async def test_missing_host_is_refused(self, house: House) -> None:
        sent = await call(house.app, "GET", "/ok", {"host": ""})
        assert sent[0]["status"] == 421

    async def test_host_named_by_the_operator_is_answered(self, build: Builder) -> None:
        house = await build(allowed_hosts=["assent.example"])
        assert (await house.client(url="https://assent.example").get("/ok")).status_code == 200
        assert (await house.client(url="https://other.example").get("/ok")).status_code == 421

    async def test_control_without_the_check_any_host_is_answered(self, build: Builder) -> None:
        house = await build(allowed_hosts=["*"])
        assert (await house.client(url="http://evil.example").get("/ok")).status_code == 200

    async def test_other_host_name_is_never_the_keyless_caller(self, build: Builder) -> None:
        house = await build(Mode.DEV, allowed_hosts=["*"])
        assert (await house.client(url="http://evil.example").get("/api/me")).status_code == 401
        assert (await house.client().get("/api/me")).status_code == 200


class TestBodyLimit:
    @pytest.fixture
    async def small_house(self, build: Builder) -> House:
        return await build(max_body_bytes=64 * 1024)

    async def test_body_over_the_limit_by_its_declared_length_is_refused(self, small_house: House) -> None:
        admin = await small_house.admin()
        response = await admin.post("/api/keys", content=b" " * (64 * 1024 + 1))
        assert (response.status_code, response.json()["code"]) == (413, "too_large")

    @pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", ""])
    async def test_body_over_the_limit_without_a_length_is_refused(self, small_house: House, content_type: str) -> None:
        admin = await small_house.admin()
        response = await admin.post("/api/keys", content=_chunks(65), headers={"content-type": content_type})
        assert (response.status_code, response.json()["code"]) == (413, "too_large")

    async def test_body_longer_than_its_declared_length_is_refused(self, small_house: House) -> None:
        key = {"x-api-key": await small_house.person("ana")}
        sent = await _post(small_house, "/api/keys", 65, {**key, "content-length": "10"})
        assert sent.status_code == 413

    async def test_control_a_body_within_the_limit_is_read(self, small_house: House) -> None:
        admin = await small_house.admin()
        response = await admin.post("/api/keys", content=_chunks(63), headers={"content-type": "application/json"})
        assert response.json()["code"] == "invalid_json"

    @pytest.mark.parametrize("length", ["9" * 5000, "²", "-1", "1e9", ""])
    async def test_malformed_content_length_is_not_a_500(self, small_house: House, length: str) -> None:
        sent = await call(small_house.app, "GET", "/ok", {"content-length": length})
        assert sent[0]["status"] in (200, 413)

    @pytest.mark.parametrize("path", ["/login", "/api/session"])
    async def test_anonymous_caller_has_a_smaller_body_limit(self, house: House, path: str) -> None:
        form = {"content-type": "application/x-www-form-urlencoded" if path == "/login" else "application/json"}
        response = await house.client().post(path, content=_chunks(17), headers=form)
        assert response.status_code == 413
        assert "too_large" in response.text
        assert (await house.client().post(path, content=b"x" * 1000, headers=form)).status_code != 413

    async def test_page_of_an_allowed_origin_can_read_the_refusal(self, build: Builder) -> None:
        house = await build(cors_origins=["https://inbox.example"], max_body_bytes=1024)
        response = await house.client(await house.key()).post(
            "/api/keys", content=b" " * 2000, headers={"origin": "https://inbox.example"}
        )
        assert response.status_code == 413
        assert response.headers["access-control-allow-origin"] == "https://inbox.example"


async def test_disconnected_caller_is_not_logged_as_an_error(house: House, caplog: pytest.LogCaptureFixture) -> None:
    headers = {"x-api-key": await house.person("ana"), "content-type": "application/json", "content-length": "100"}
    with caplog.at_level(logging.INFO):
        sent = await call(
            house.app, "POST", "/api/keys", headers, [{"type": "http.request", "body": b"{", "more_body": True}]
        )
    assert sent == []
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


async def _chunks(kilobytes: int) -> AsyncIterator[bytes]:
    for _ in range(kilobytes):
        yield b"x" * 1024


async def _post(house: House, path: str, kilobytes: int, headers: dict[str, str]) -> httpx.Response:
    messages = [
        {"type": "http.request", "body": b"x" * 1024, "more_body": number < kilobytes - 1}
        for number in range(kilobytes)
    ]
    sent = await call(house.app, "POST", path, headers, messages)
    return httpx.Response(sent[0]["status"])


async def test_request_over_the_limit_is_503_with_retry_after(build: Builder) -> None:
    """Streams count as long as they are open; what a probe asks is answered all the same."""
    house = await build(max_open_requests=10)
    watcher = await house.key()
    streams: list[asyncio.Task[httpx.Response]] = []
    async with asyncio.timeout(90):
        while not any(stream.done() for stream in streams):
            streams.append(asyncio.create_task(house.client(watcher).get("/api/inbox/events")))
            await asyncio.sleep(0.01)
    answer = await house.client(watcher).get("/api/inbox/items")
    assert answer.status_code == 503
    assert (answer.json()["code"], answer.headers["retry-after"]) == ("unavailable", "1")
    assert (await house.client().get("/ok")).status_code == 200
    for stream in streams:
        stream.cancel()
    await asyncio.gather(*streams, return_exceptions=True)
    assert (await house.client(watcher).get("/api/inbox/items")).status_code == 200

"""Errors over HTTP: problem+json under /api, `{"detail"}` elsewhere, and never any internals."""

import logging
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from assent.errors import AssentError, StorageFull, StoreBusy, Unavailable
from tests.api.house import Builder, House, call

SECRET = "the password is swordfish"


def fail_at(app: FastAPI, path: str, error: Exception) -> None:
    @app.post(path)
    async def fails() -> None:
        raise error


async def test_under_api_an_error_is_a_problem_with_a_stable_code(house: House) -> None:
    response = await house.client().get("/api/keys", headers={"x-request-id": "r-1"})
    assert response.status_code == 401
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json() == {
        "type": "urn:assent:error:unauthenticated",
        "title": "unauthenticated",
        "status": 401,
        "detail": "The request has no valid credential.",
        "code": "unauthenticated",
        "hint": "send an API key as x-api-key or as a bearer token, or sign in",
        "request_id": "r-1",
    }


async def test_elsewhere_an_error_is_a_detail_that_is_a_string_with_the_facts_beside_it(house: House) -> None:
    response = await house.client(await house.key()).get("/nothing", headers={"x-request-id": "r-2"})
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {
        "detail": "Not found.",
        "code": "not_found",
        "request_id": "r-2",
    }


async def test_path_that_only_starts_like_api_gets_a_detail(house: House) -> None:
    response = await house.client(await house.key()).get("/apiary")
    assert response.headers["content-type"] == "application/json"


async def test_unknown_method_is_405_with_the_allowed_methods(house: House) -> None:
    response = await (await house.admin()).put("/api/keys", json={})
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    assert response.headers["allow"]


async def test_a_field_that_is_wrong_is_named_with_its_path(house: House) -> None:
    admin = await house.admin()
    response = await admin.post("/api/keys", json={"kind": "agent", "name": "", "scope": []})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
    assert {error["path"] for error in response.json()["errors"]} == {"name", "scope"}


@pytest.mark.parametrize("path", ["/api/failing", "/failing"])
async def test_unexpected_error_is_a_500_with_an_id_and_no_internals(
    own_house: House, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    fail_at(own_house.app, path, RuntimeError(SECRET))
    with caplog.at_level(logging.INFO):
        response = await own_house.client(await own_house.key()).post(path, headers={"x-request-id": "r-3"})
    assert (response.status_code, response.headers["x-request-id"]) == (500, "r-3")
    assert response.json()["request_id"] == "r-3"
    assert "r-3" in response.json()["detail"]
    assert "swordfish" not in response.text
    assert "RuntimeError" not in response.text
    assert "swordfish" in caplog.text, "the log keeps what the response does not tell"


async def test_page_of_an_allowed_origin_can_read_a_500(build: Builder) -> None:
    house = await build(cors_origins=["https://inbox.example"])
    fail_at(house.app, "/failing", RuntimeError(SECRET))
    response = await house.client(await house.key()).post("/failing", headers={"origin": "https://inbox.example"})
    assert response.status_code == 500
    assert response.headers["access-control-allow-origin"] == "https://inbox.example"


@pytest.mark.promise("P12")
@pytest.mark.parametrize(
    ("error", "status", "after"), [(Unavailable(), 503, "1"), (StoreBusy(), 503, "1"), (StorageFull(), 507, "30")]
)
async def test_temporary_error_has_retry_after(own_house: House, error: AssentError, status: int, after: str) -> None:
    fail_at(own_house.app, "/api/failing", error)
    response = await own_house.client(await own_house.key()).post("/api/failing")
    assert (response.status_code, response.headers["retry-after"]) == (status, after)
    assert response.json()["code"] == error.code


async def test_error_during_an_answer_cuts_the_connection(own_house: House) -> None:
    @own_house.app.get("/half")
    async def half() -> StreamingResponse:
        async def lines() -> AsyncIterator[str]:
            yield "first"
            raise RuntimeError(SECRET)

        return StreamingResponse(lines())

    sent = await call(own_house.app, "GET", "/half", {"x-api-key": await own_house.key()})
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[-1]["more_body"], "the server closes the connection, so that nobody takes this for the whole"


async def test_a_missing_credential_says_how_to_send_one(house: House) -> None:
    response = await house.client().get("/api/me")
    assert response.headers["www-authenticate"] == "Bearer"

"""`@auth.authenticate`: who calls is what the author's handler says, and only what it says on purpose is told."""

from typing import Any

import pytest

from assent.identity.model.access import Kind, Role
from tests.api.auth.conftest import Guarded

SECRET = "hunter2"
AGENT = ["comments:write", "items:create", "items:read", "runs:write"]


async def me(guarded: Guarded, token: str) -> dict[str, Any]:
    response = await guarded.user(token).get("/api/me")
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_request_without_a_token_is_refused_by_the_handler(guarded: Guarded) -> None:
    for path in ("/threads/search", "/api/me", "/assistants/search", "/metrics"):
        response = await guarded.client().post(path) if "search" in path else await guarded.client().get(path)
        assert (response.status_code, response.json()["detail"]) == (401, "no token"), path
    for path in ("/ok", "/info"):
        assert (await guarded.client().get(path)).status_code == 200


@pytest.mark.parametrize(
    ("token", "status", "detail"),
    [
        ("teapot", 418, "I'm a teapot"),
        ("forbidden", 403, "not you"),
        ("fine", 403, "nothing wrong"),
    ],
)
async def test_http_error_of_the_handler_keeps_status_and_text(
    guarded: Guarded, token: str, status: int, detail: str
) -> None:
    response = await guarded.user(token).post("/threads", json={})
    assert (response.status_code, response.json()["detail"]) == (status, detail)


@pytest.mark.promise("P7")
@pytest.mark.parametrize(
    ("token", "status"),
    [
        ("key", 401),
        ("value", 401),
        ("own", 401),
        ("no colon", 401),
        ("nobody", 401),
        ("anonymous", 401),
        ("down", 500),
        ("broken", 500),
        ("nameless", 500),
        ("number", 500),
        ("two tenants", 500),
        ("no tenant", 500),
        ("odd tenant", 500),
        ("odd permissions", 500),
    ],
)
async def test_other_error_of_the_handler_refuses_without_details(guarded: Guarded, token: str, status: int) -> None:
    response = await guarded.user(token).post("/threads", json={})
    assert response.status_code == status
    assert SECRET not in response.text
    assert "Traceback" not in response.text


async def test_user_of_the_handler_is_an_agent(guarded: Guarded) -> None:
    assert await me(guarded, "owner:ada") == {
        "kind": "agent",
        "id": "ada",
        "name": "Ada",
        "tenant": "default",
        "scopes": AGENT,
    }


@pytest.mark.promise("P6")
async def test_user_with_the_decide_permission_is_a_reviewer(guarded: Guarded) -> None:
    rita = await me(guarded, "reviewer")
    assert (rita["kind"], rita["id"], rita["name"]) == ("reviewer", "rita", "Rita")
    assert rita["scopes"] == sorted([*AGENT, "decide"])
    assert (await me(guarded, "pair"))["kind"] == "reviewer"
    assert "decide" not in (await me(guarded, "acme"))["scopes"]


async def test_every_form_of_a_user_is_accepted(guarded: Guarded) -> None:
    assert [(await me(guarded, token))["id"] for token in ("text", "object", "pair")] == ["tess", "olga", "pia"]


@pytest.mark.promise("P10")
async def test_the_tenant_comes_from_a_permission(guarded: Guarded) -> None:
    amy, ada = guarded.user("acme"), guarded.user("open:ada")
    assert (await me(guarded, "acme"))["tenant"] == "acme"
    made = (await amy.post("/threads", json={})).json()
    assert (await amy.get(f"/threads/{made['thread_id']}")).status_code == 200
    assert (await ada.get(f"/threads/{made['thread_id']}")).status_code == 404


async def test_own_keys_and_sessions_are_checked_before_the_handler(guarded: Guarded) -> None:
    agent = guarded.client(await guarded.key(Kind.AGENT))
    assert (await agent.get("/api/me")).json()["name"] == "a agent"
    bearer = guarded.user(await guarded.key(Kind.AGENT))
    assert (await bearer.get("/api/me")).json()["kind"] == "agent"
    unknown = await guarded.user("assent_agent_0123456789").get("/api/me")
    assert (unknown.status_code, unknown.json()["code"]) == (401, "unauthenticated")
    person = await guarded.signed_in("ana", Role.ADMIN)
    assert (await person.get("/api/me")).json()["name"] == "ana"
    assert (await person.get("/api/me", headers={"authorization": "Bearer open:ada"})).json()["id"] == "ada"


async def test_key_of_another_service_is_passed_to_the_handler(guarded: Guarded) -> None:
    both = guarded.client("lsv2_pt_0123456789", headers={"x-token": "open:ada"})
    assert (await both.get("/api/me")).json()["id"] == "ada"


async def test_pages_redirect_users_of_the_handler_to_the_sign_in(guarded: Guarded) -> None:
    response = await guarded.user("reviewer", accept="text/html").get("/inbox")
    assert (response.status_code, response.headers["location"]) == (303, "/login?next=/inbox")


@pytest.mark.promise("P7")
async def test_studio_header_gives_no_access(guarded: Guarded, guarded_dev: Guarded) -> None:
    for house in (guarded, guarded_dev):
        response = await house.client(headers={"x-auth-scheme": "langsmith"}).post("/threads", json={})
        assert (response.status_code, response.json()["detail"]) == (401, "no token")


async def test_handler_is_asked_also_on_loopback_in_dev(guarded_dev: Guarded) -> None:
    assert (await guarded_dev.client().post("/threads", json={})).status_code == 401
    assert (await guarded_dev.user("open:ada").post("/threads", json={})).status_code == 200


async def test_the_handler_gets_what_it_asks_for_by_name(guarded: Guarded) -> None:
    ada = guarded.user("open:ada", **{"user-agent": "a test"})
    thread = (await ada.post("/threads", json={})).json()["thread_id"]
    waited = await ada.post(
        f"/threads/{thread}/runs/wait?a=1", json={"assistant_id": "whoami", "input": {}, "metadata": {"ä": [1.0, 2]}}
    )
    assert waited.json()["user"]["seen"] == {
        "path": f"/threads/{thread}/runs/wait",
        "method": "POST",
        "path_params": {"thread_id": thread},
        "query_params": {"a": "1"},
        "agent": "a test",
        "body": {"assistant_id": "whoami", "input": {}, "metadata": {"ä": [1.0, 2]}},
        "read_again": waited.request.content.decode(),
        "optional": "not asked for",
    }


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"metadata": {"a": 1}}' + b" " * 200_000])
async def test_a_body_that_the_handler_has_read_still_reaches_the_route(guarded: Guarded, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    keyed = guarded.client(await guarded.key(Kind.AGENT))
    mine = await guarded.user("open:ada").post("/threads", content=body, headers=headers)
    theirs = await keyed.post("/threads", content=body, headers=headers)
    assert mine.status_code == theirs.status_code
    if mine.status_code == 200:
        assert mine.json()["metadata"] == theirs.json()["metadata"] == {"a": 1}


async def test_size_limit_applies_to_the_body_that_the_handler_reads(guarded: Guarded) -> None:
    large = b" " * (guarded.settings.max_body_bytes + 1)

    async def chunks() -> Any:
        yield large

    assert (await guarded.user("open:ada").post("/threads", content=chunks())).status_code == 413


async def test_a_graph_sees_the_user_as_the_handler_gave_it(guarded: Guarded) -> None:
    ada = guarded.user("owner:ada")
    forged = {"configurable": {"langgraph_auth_user": {"identity": "root"}, "user_id": "root"}}
    answer = (await ada.post("/runs/wait", json={"assistant_id": "whoami", "input": {}, "config": forged})).json()
    user = answer["user"]
    assert {name: user[name] for name in user if name != "seen"} == {
        "identity": "ada",
        "display_name": "Ada",
        "is_authenticated": True,
        "permissions": ["read"],
        "rule": "owner",
    }
    assert answer["named"] == ["ada", "ada", "read"]

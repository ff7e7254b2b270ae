"""API keys: made once, shown once, scoped, expiring, revoked at once; and no program's key ever decides."""

import hashlib
import sqlite3
import time
from datetime import timedelta
from itertools import combinations

import httpx
import pytest
from sqlalchemy import make_url

from assent.domain.access import SCOPE_CEILING, Kind, Role, Scope, operator
from assent.domain.ids import new_token, token_hash
from assent.services import access
from assent.store import keys
from tests.api.house import Builder, House

PROGRAMS = (Kind.AGENT, Kind.SERVICE)


async def create(client: httpx.AsyncClient, **body: object) -> httpx.Response:
    return await client.post("/api/keys", json={"kind": "agent", "name": "bot", **body})


def stored(house: House) -> bytes:
    """Every byte of the database, the journal included."""
    file = make_url(house.settings.database).database
    assert file
    with sqlite3.connect(file) as connection:
        return "\n".join(connection.iterdump()).encode()


async def test_create_list_revoke(house: House) -> None:
    admin = await house.admin()
    new = (await create(admin)).json()
    assert new["key"]["kind"] == "agent"
    assert new["key"]["scopes"] == ["comments:write", "items:create", "items:read", "runs:write"]
    listed = (await admin.get("/api/keys")).json()["items"]
    assert [key["name"] for key in listed] == ["bot", "admin's"]
    assert "secret" not in listed[0]
    revoked = (await admin.delete(f"/api/keys/{new['key']['id']}")).json()
    assert revoked["revoked_at"]
    assert (await house.client(new["secret"]).get("/api/me")).status_code == 401


@pytest.mark.promise("P10")
async def test_only_the_hash_is_stored(house: House) -> None:
    secret = (await create(await house.admin())).json()["secret"]
    assert len(secret.rpartition("_")[2]) >= 43 or len(secret) >= 43 + len("asnt_agent_")
    everything = stored(house)
    assert hashlib.sha256(secret.encode()).hexdigest().encode() in everything
    assert secret.encode() not in everything
    assert secret.removeprefix("asnt_agent_").encode() not in everything


async def test_sent_as_x_api_key_or_as_bearer_token(house: House) -> None:
    secret = await house.key()
    for headers in (
        {"x-api-key": secret},
        {"authorization": f"Bearer {secret}"},
        {"authorization": f"bearer {secret}"},
    ):
        assert (await house.client(headers=headers).get("/api/me")).json()["kind"] == "agent"
    for headers in ({"authorization": secret}, {"authorization": f"Basic {secret}"}, {"cookie": f"x-api-key={secret}"}):
        assert (await house.client(headers=headers).get("/api/me")).status_code == 401
    assert (await house.client().get(f"/api/me?x-api-key={secret}")).status_code == 401


async def test_an_expired_key_is_refused(house: House) -> None:
    secret = (await create(await house.admin(), lifetime_seconds=60)).json()["secret"]
    client = house.client(secret)
    house.pass_time(timedelta(seconds=59))
    assert (await client.get("/api/me")).status_code == 200
    house.forget()
    house.pass_time(timedelta(seconds=1))
    assert (await client.get("/api/me")).status_code == 401


@pytest.mark.parametrize("lifetime", [0, -1, 10**12, "forever"])
async def test_a_lifetime_that_is_none_is_refused(house: House, lifetime: object) -> None:
    assert (await create(await house.admin(), lifetime_seconds=lifetime)).status_code == 422


@pytest.mark.promise("P10")
async def test_a_revocation_takes_effect_within_a_second_where_the_key_was_just_used(build: Builder) -> None:
    house = await build()
    admin, secret = await house.admin(), await house.key()
    agent = house.client(secret)
    assert (await agent.get("/api/me")).status_code == 200, "now it is remembered"
    key_id = (await admin.get("/api/keys?limit=1")).json()["items"][0]["id"]
    await admin.delete(f"/api/keys/{key_id}")
    revoked = asked = time.monotonic()
    while (await agent.get("/api/me")).status_code == 200:
        assert asked - revoked < 1, "who asks a second later is refused, however long the answer takes"
        asked = time.monotonic()
    assert access._REMEMBER_SECONDS < 1


async def test_revoking_twice_is_fine_and_leaves_one_event(house: House) -> None:
    admin, _ = await house.admin(), await house.key()
    key_id = (await admin.get("/api/keys?limit=1")).json()["items"][0]["id"]
    first = (await admin.delete(f"/api/keys/{key_id}")).json()
    assert (await admin.delete(f"/api/keys/{key_id}")).json() == first
    events = (await admin.get(f"/api/audit/events?subject=key:{key_id}")).json()["items"]
    assert [event["kind"] for event in events] == ["key.revoked", "key.created"]


async def test_pages_of_keys_hang_together(house: House) -> None:
    admin = await house.admin()
    for number in range(5):
        await create(admin, name=f"bot {number}")
    page = (await admin.get("/api/keys?limit=2")).json()
    names = [key["name"] for key in page["items"]]
    while page["next"]:
        page = (await admin.get("/api/keys", params={"limit": 2, "cursor": page["next"]})).json()
        names += [key["name"] for key in page["items"]]
    assert names == ["bot 4", "bot 3", "bot 2", "bot 1", "bot 0", "admin's"]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "cursor=nonsense", "cursor=W10", "cursor=%C3%A9"]
)
async def test_a_wrong_page_is_422(house: House, query: str) -> None:
    assert (await (await house.admin()).get(f"/api/keys?{query}")).status_code == 422


@pytest.mark.parametrize("name", ["", "  ", "a" * 201, "two\nlines", "\x1b[31m", "a/b", "‮"])
async def test_a_name_is_something_to_read(house: House, name: str) -> None:
    assert (await create(await house.admin(), name=name)).status_code == 422


@pytest.mark.promise("P6")
class TestNoProgramDecides:
    @pytest.mark.parametrize("kind", PROGRAMS)
    async def test_no_set_of_scopes_with_decide_is_given_to_one(self, house: House, kind: Kind) -> None:
        admin = await house.admin()
        for extra in combinations([scope for scope in Scope if scope is not Scope.DECIDE], 1):
            response = await create(admin, kind=kind, scopes=["decide", *extra])
            assert (response.status_code, response.json()["code"]) == (403, "not_allowed")
            assert "decide" in response.json()["missing"]
        assert len((await admin.get("/api/keys")).json()["items"]) == 1

    async def test_control_a_person_holds_it(self, house: House) -> None:
        me = (await house.client(await house.person("ana")).get("/api/me")).json()
        assert "decide" in me["scopes"]

    @pytest.mark.parametrize("kind", PROGRAMS)
    async def test_not_by_asking_for_everything(self, house: House, kind: Kind) -> None:
        granted = await house.key(kind, *(scope for scope in Scope if scope in SCOPE_CEILING[kind]))
        assert "decide" not in (await house.client(granted).get("/api/me")).json()["scopes"]

    @pytest.mark.parametrize("kind", PROGRAMS)
    async def test_not_by_what_a_row_in_the_database_says(self, house: House, kind: Kind) -> None:
        secret = new_token(f"asnt_{kind}")
        await house.services.store.write(
            "default",
            keys.insert,
            key_id="forged",
            kind=kind,
            name="forged",
            user_id=None,
            token_hash=token_hash(secret),
            scopes=frozenset(Scope),
            expires_at=None,
        )
        scopes = (await house.client(secret).get("/api/me")).json()["scopes"]
        assert scopes == sorted(SCOPE_CEILING[kind])

    async def test_not_by_making_oneself_a_persons_key(self, house: House) -> None:
        service = house.client(await house.key(Kind.SERVICE, "admin"))
        assert (await service.post("/api/users", json={"name": "puppet", "role": "reviewer"})).status_code == 201
        response = await create(service, kind="reviewer", user="puppet")
        assert (response.status_code, response.json()["code"]) == (403, "not_allowed")

    async def test_not_by_signing_oneself_in_as_a_person(self, house: House) -> None:
        await house.person("ana")
        service = house.client(await house.key(Kind.SERVICE, "admin"))
        assert (await service.post("/api/users/ana/login-link")).status_code == 403

    async def test_control_an_administrator_may_do_both(self, house: House) -> None:
        admin = await house.admin()
        await admin.post("/api/users", json={"name": "ana"})
        assert (await create(admin, kind="reviewer", user="ana")).status_code == 201
        assert (await admin.post("/api/users/ana/login-link")).status_code == 201

    @pytest.mark.parametrize("kind", PROGRAMS)
    async def test_not_by_a_session(self, house: House, kind: Kind) -> None:
        response = await house.client().post("/api/session", json={"credential": await house.key(kind)})
        assert response.status_code == 401
        assert "set-cookie" not in response.headers

    async def test_not_by_naming_a_user_on_a_programs_key(self, house: House) -> None:
        await house.person("ana")
        admin = await house.admin()
        assert (await create(admin, kind="agent", user="ana")).status_code == 422
        assert (await create(admin, kind="reviewer")).status_code == 422


class TestAPersonsKey:
    @pytest.mark.promise("P10")
    async def test_follows_the_persons_role_of_now(self, house: House) -> None:
        client = house.client(await house.person("ana", Role.REVIEWER))
        seen = [await self.scopes(house, client)]
        for role in (Role.VIEWER, Role.ADMIN):
            await house.services.users.change(operator(), "ana", role=role)
            seen.append(await self.scopes(house, client))
        reviewer, viewer, admin = seen
        assert viewer == {"items:read"}
        assert "decide" in reviewer
        assert "admin" not in reviewer
        assert {"decide", "admin"} <= admin

    async def test_is_never_more_than_it_was_given(self, house: House) -> None:
        await house.person("ana", Role.ADMIN)
        client = house.client(await house.key_of("ana", "items:read"))
        assert await self.scopes(house, client) == {"items:read"}

    async def test_of_someone_disabled_is_refused_until_enabled(self, house: House) -> None:
        admin, secret = await house.admin(), await house.person("ana")
        for disabled, status in ((True, 401), (False, 200)):
            await admin.patch("/api/users/ana", json={"disabled": disabled})
            house.forget()
            assert (await house.client(secret).get("/api/me")).status_code == status

    async def test_of_someone_erased_never_comes_back(self, house: House) -> None:
        admin, secret = await house.admin(), await house.person("ana")
        await admin.delete("/api/users/ana")
        (gone,) = [user for user in (await admin.get("/api/users")).json()["items"] if user["name"] != "admin"]
        response = await admin.patch(f"/api/users/{gone['name']}", json={"disabled": False})
        assert response.status_code == 409
        house.forget()
        assert (await house.client(secret).get("/api/me")).status_code == 401

    async def test_for_nobody_is_404(self, house: House) -> None:
        response = await create(await house.admin(), kind="reviewer", user="nobody")
        assert (response.status_code, response.json()["code"]) == (404, "not_found")

    @staticmethod
    async def scopes(house: House, client: httpx.AsyncClient) -> set[str]:
        house.forget()
        return set((await client.get("/api/me")).json()["scopes"])


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER])
async def test_only_administrators_manage_keys(house: House, role: Role, method: str) -> None:
    client = house.client(await house.person("ana", role))
    path = "/api/keys/some-id" if method == "DELETE" else "/api/keys"
    body = {"kind": "agent", "name": "bot"} if method == "POST" else None
    response = await client.request(method, path, json=body)
    assert (response.status_code, response.json()["missing"]) == (403, ["admin"])


async def test_who_made_a_key_for_whom_is_in_the_timeline(house: House) -> None:
    admin = await house.admin()
    user = (await admin.post("/api/users", json={"name": "ana"})).json()
    key = (await create(admin, kind="reviewer", user="ana")).json()["key"]
    me = (await admin.get("/api/me")).json()
    (event,) = (await admin.get(f"/api/audit/events?subject=key:{key['id']}")).json()["items"]
    assert event["actor"] == f"reviewer:{me['id']}"
    assert user["id"] in event["payload"]


@pytest.mark.parametrize("change", [{"disabled": True}, {"role": "viewer"}])
async def test_who_loses_their_rights_here_has_lost_them_at_once(house: House, change: dict[str, object]) -> None:
    """Even the key that was used a moment ago, which this process remembers for a while."""
    admin = await house.admin()
    assert (await admin.get("/api/keys")).status_code == 200
    assert (await admin.patch("/api/users/admin", json=change)).status_code == 200
    assert (await create(admin)).status_code in (401, 403)

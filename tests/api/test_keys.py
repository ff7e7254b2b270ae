"""API keys: made once, shown once, scoped, expiring, revoked at once; and no program's key ever decides."""

import hashlib
import sqlite3
import time
from datetime import timedelta
from itertools import combinations

import httpx
import pytest
from sqlalchemy import make_url

from assent.identity import access
from assent.identity.model.access import SCOPE_CEILING, Kind, Role, Scope, operator
from assent.identity.rows import keys
from assent.kernel.ids import new_token, token_hash
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


async def test_key_is_created_listed_and_revoked(house: House) -> None:
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


async def test_key_is_accepted_as_x_api_key_or_bearer_token(house: House) -> None:
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
async def test_invalid_lifetime_is_refused(house: House, lifetime: object) -> None:
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


async def test_pages_of_keys_have_no_gaps(house: House) -> None:
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
async def test_invalid_page_query_is_422(house: House, query: str) -> None:
    assert (await (await house.admin()).get(f"/api/keys?{query}")).status_code == 422


@pytest.mark.parametrize("name", ["", "  ", "a" * 201, "two\nlines", "\x1b[31m", "a/b", "‮"])
async def test_empty_or_unreadable_name_is_refused(house: House, name: str) -> None:
    assert (await create(await house.admin(), name=name)).status_code == 422


@pytest.mark.promise("P6")
class TestNoProgramDecides:
    @pytest.mark.parametrize("kind", PROGRAMS)
    async def test_program_key_with_the_decide_scope_is_refused(self, house: House, kind: Kind) -> None:
        admin = await house.admin()
        for extra in combinations([scope for scope in Scope if scope is not Scope.DECIDE], 1):
            response = await create(admin, kind=kind, scopes=["decide", *extra])
            assert (response.status_code, response.json()["code"]) == (403, "not_allowed")
            assert "decide" in response.json()["missing"]
        assert len((await admin.get("/api/keys")).json()["items"]) == 1

    async def test_control_a_person_holds_the_decide_scope(self, house: House) -> None:
        me = (await house.client(await house.person("ana")).get("/api/me")).json()
        assert "decide" in me["scopes"]

    @pytest.mark.parametrize("kind", PROGRAMS)
    async def test_program_key_with_all_scopes_cannot_decide(self, house: House, kind: Kind) -> None:
        granted = await house.key(kind, *(scope for scope in Scope if scope in SCOPE_CEILING[kind]))
        assert "decide" not in (await house.client(granted).get("/api/me")).json()["scopes"]

    @pytest.mark.parametrize("kind", PROGRAMS)
    async def test_program_key_with_decide_in_its_row_cannot_decide(self, house: House, kind: Kind) -> None:
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

    async def test_program_cannot_make_a_key_of_a_person(self, house: House) -> None:
        service = house.client(await house.key(Kind.SERVICE, "admin"))
        await house.person("puppet")
        response = await create(service, kind="reviewer", user="puppet")
        assert (response.status_code, response.json()["code"]) == (403, "not_allowed")

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("POST", "/api/users", {"name": "puppet", "role": "reviewer"}),
            ("POST", "/api/users", {"name": "puppet", "role": "viewer"}),
            ("PATCH", "/api/users/vic", {"role": "reviewer"}),
            ("PATCH", "/api/users/ana", {"role": "viewer"}),
            ("PATCH", "/api/users/ana", {"groups": ["finance"]}),
            ("PATCH", "/api/users/ana", {"disabled": True, "groups": ["finance"]}),
            ("PATCH", "/api/users/off", {"disabled": False}),
            ("POST", "/api/users/ana/login-link", None),
            ("POST", "/api/keys", {"kind": "reviewer", "name": "x", "user": "ana"}),
        ],
    )
    async def test_program_cannot_change_roles_or_groups(
        self, house: House, method: str, path: str, body: object
    ) -> None:
        for name, role in (("ana", Role.REVIEWER), ("vic", Role.VIEWER), ("off", Role.REVIEWER)):
            await house.person(name, role)
        await house.services.users.change(operator(), "off", disabled=True)
        everything = house.client(await house.key(Kind.SERVICE, *SCOPE_CEILING[Kind.SERVICE]))
        before = await house.services.users.list(operator())
        refused = await everything.request(method, path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
        assert await house.services.users.list(operator()) == before
        allowed = await (await house.admin()).request(method, path, json=body)
        assert allowed.status_code in (200, 201), "the control: an administrator, who is a person, may"

    async def test_a_service_can_disable_people(self, house: House) -> None:
        """Offboarding needs it: disabling takes rights and gives none."""
        await house.person("ana")
        service = house.client(await house.key(Kind.SERVICE, "admin"))
        assert (await service.patch("/api/users/ana", json={"disabled": True})).status_code == 200

    async def test_unknown_stored_scope_gives_no_right_to_decide(self, house: House) -> None:
        """A stored key that still lists `decide:elsewhere` works, and the scope has no effect."""
        secret = await house.key(Kind.SERVICE, "items:read")
        await house.services.store.write(
            None, lambda tx: tx.sql("""UPDATE api_keys SET scopes = '["decide:elsewhere", "items:read"]'""")
        )
        house.forget()
        assert (await house.client(secret).get("/api/me")).json()["scopes"] == ["items:read"]
        assert (await create(await house.admin(), kind="service", scopes=["decide:elsewhere"])).status_code == 422

    async def test_program_cannot_make_a_login_link(self, house: House) -> None:
        await house.person("ana")
        service = house.client(await house.key(Kind.SERVICE, "admin"))
        assert (await service.post("/api/users/ana/login-link")).status_code == 403

    async def test_control_an_administrator_makes_keys_and_login_links_of_people(self, house: House) -> None:
        admin = await house.admin()
        await admin.post("/api/users", json={"name": "ana"})
        assert (await create(admin, kind="reviewer", user="ana")).status_code == 201
        assert (await admin.post("/api/users/ana/login-link")).status_code == 201

    @pytest.mark.parametrize("kind", PROGRAMS)
    async def test_program_key_cannot_open_a_session(self, house: House, kind: Kind) -> None:
        response = await house.client().post("/api/session", json={"credential": await house.key(kind)})
        assert response.status_code == 401
        assert "set-cookie" not in response.headers

    async def test_program_key_that_names_a_user_is_refused(self, house: House) -> None:
        await house.person("ana")
        admin = await house.admin()
        assert (await create(admin, kind="agent", user="ana")).status_code == 422
        assert (await create(admin, kind="reviewer")).status_code == 422


class TestAPersonsKey:
    @pytest.mark.promise("P10")
    async def test_key_of_a_person_follows_the_current_role(self, house: House) -> None:
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

    async def test_key_of_a_person_never_exceeds_its_scopes(self, house: House) -> None:
        await house.person("ana", Role.ADMIN)
        client = house.client(await house.key_of("ana", "items:read"))
        assert await self.scopes(house, client) == {"items:read"}

    async def test_key_of_a_disabled_person_is_refused_until_enabled(self, house: House) -> None:
        admin, secret = await house.admin(), await house.person("ana")
        for disabled, status in ((True, 401), (False, 200)):
            await admin.patch("/api/users/ana", json={"disabled": disabled})
            house.forget()
            assert (await house.client(secret).get("/api/me")).status_code == status

    async def test_key_of_an_erased_person_stays_refused(self, house: House) -> None:
        admin, secret = await house.admin(), await house.person("ana")
        await admin.delete("/api/users/ana")
        (gone,) = [user for user in (await admin.get("/api/users")).json()["items"] if user["name"] != "admin"]
        response = await admin.patch(f"/api/users/{gone['name']}", json={"disabled": False})
        assert response.status_code == 409
        house.forget()
        assert (await house.client(secret).get("/api/me")).status_code == 401

    async def test_key_for_an_unknown_user_is_404(self, house: House) -> None:
        response = await create(await house.admin(), kind="reviewer", user="nobody")
        assert (response.status_code, response.json()["code"]) == (404, "not_found")

    @staticmethod
    async def scopes(house: House, client: httpx.AsyncClient) -> set[str]:
        house.forget()
        return set((await client.get("/api/me")).json()["scopes"])


class TestExpiry:
    @pytest.mark.promise("P10")
    @pytest.mark.parametrize("kind", Kind)
    async def test_key_expires_after_the_default_lifetime(self, house: House, kind: Kind) -> None:
        admin = await house.admin()
        new = (await create(admin, kind=kind, **({"user": "admin"} if kind is Kind.REVIEWER else {}))).json()
        client = house.client(new["secret"])
        house.pass_time(house.settings.key_lifetime - timedelta(seconds=5))
        assert (await client.get("/api/me")).status_code == 200
        house.forget()
        house.pass_time(timedelta(seconds=5))
        assert (await client.get("/api/me")).status_code == 401

    async def test_control_a_key_without_expiry_keeps_working(self, house: House) -> None:
        new = (await create(await house.admin(), lifetime_seconds=None)).json()
        assert new["key"]["expires_at"] is None
        house.pass_time(timedelta(days=4000))
        assert (await house.client(new["secret"]).get("/api/me")).status_code == 200

    async def test_default_lifetime_is_a_setting(self, build: Builder) -> None:
        house = await build(key_lifetime=timedelta(days=1))
        secret = (await create(await house.admin())).json()["secret"]
        house.pass_time(timedelta(days=1))
        assert (await house.client(secret).get("/api/me")).status_code == 401

    async def test_key_that_expires_soon_is_marked(self, house: House) -> None:
        admin = await house.admin()
        key = (await create(admin, lifetime_seconds=30 * 86400)).json()["key"]

        async def state() -> str:
            house.forget()
            listed = (await admin.get("/api/keys")).json()["items"]
            return next(str(item["state"]) for item in listed if item["id"] == key["id"])

        states = [await state()]
        for days in (15, 2, 14):
            house.pass_time(timedelta(days=days))
            states.append(await state())
        await admin.delete(f"/api/keys/{key['id']}")
        assert [*states, await state()] == ["active", "active", "expiring", "expired", "revoked"]


class TestRotation:
    @staticmethod
    async def rotate(client: httpx.AsyncClient, key: dict[str, str], **body: object) -> httpx.Response:
        return await client.post(f"/api/keys/{key['id']}/rotation", json=body)

    @pytest.mark.promise("P10")
    async def test_rotated_key_works_for_the_overlap_only(self, house: House) -> None:
        admin = await house.admin()
        old = (await create(admin, scopes=["runs:write", "items:read"])).json()
        new = (await self.rotate(admin, old["key"], overlap_seconds=3600)).json()
        same = ("kind", "name", "agent", "scopes", "user")
        assert {name: new["key"][name] for name in same} == {name: old["key"][name] for name in same}
        before, after = house.client(old["secret"]), house.client(new["secret"])
        assert (await before.get("/api/me")).json() == (await after.get("/api/me")).json()
        house.pass_time(timedelta(seconds=3599))
        assert (await before.get("/api/me")).status_code == 200
        house.forget()
        house.pass_time(timedelta(seconds=1))
        assert [(await one.get("/api/me")).status_code for one in (before, after)] == [401, 200]

    async def test_rotation_does_not_extend_the_old_key(self, house: House) -> None:
        admin = await house.admin()
        old = (await create(admin, lifetime_seconds=60)).json()
        await self.rotate(admin, old["key"])
        house.pass_time(timedelta(seconds=61))
        assert (await house.client(old["secret"]).get("/api/me")).status_code == 401

    async def test_timeline_records_which_key_replaced_which(self, house: House) -> None:
        admin = await house.admin()
        old = (await create(admin)).json()["key"]
        new = (await self.rotate(admin, old)).json()["key"]
        told = [(await admin.get(f"/api/audit/events?subject=key:{key['id']}")).json()["items"] for key in (old, new)]
        assert [[event["kind"] for event in each] for each in told] == [["key.rotated", "key.created"], ["key.created"]]
        assert new["id"] in told[0][0]["payload"]
        assert old["id"] in told[1][0]["payload"]

    async def test_rotation_of_an_unusable_key_is_refused(self, house: House) -> None:
        admin = await house.admin()
        revoked = (await create(admin)).json()["key"]
        await admin.delete(f"/api/keys/{revoked['id']}")
        assert (await self.rotate(admin, revoked)).status_code == 409
        assert (await self.rotate(admin, {"id": "nobody's"})).status_code == 404

    @pytest.mark.parametrize("overlap", [0, -1, 31 * 86400, "long"])
    async def test_invalid_overlap_is_refused(self, house: House, overlap: object) -> None:
        admin = await house.admin()
        assert (
            await self.rotate(admin, (await create(admin)).json()["key"], overlap_seconds=overlap)
        ).status_code == 422

    @pytest.mark.promise("P6")
    async def test_rotation_gives_no_scope_that_the_caller_lacks(self, house: House) -> None:
        admin = await house.admin()
        person = (await create(admin, kind="reviewer", user="admin")).json()["key"]
        agent = (await create(admin, scopes=["runs:write"])).json()["key"]
        service = house.client(await house.key(Kind.SERVICE, *SCOPE_CEILING[Kind.SERVICE]))
        narrow = house.client(await house.key_of("admin", "admin"))
        tries = [(service, person), (narrow, person), (narrow, agent)]
        assert [(await self.rotate(*attempt)).status_code for attempt in tries] == [403, 403, 403]
        assert [(await self.rotate(*one)).status_code for one in ((service, agent), (admin, person))] == [201, 201]

    async def test_sessions_of_the_old_key_end_with_it(self, house: House) -> None:
        admin, _ = await house.admin(), await house.person("ana")
        secret = await house.key_of("ana")
        browser = house.client()
        await browser.post("/api/session", json={"credential": secret})
        old = (await admin.get("/api/keys?limit=1")).json()["items"][0]
        await self.rotate(admin, old, overlap_seconds=60)
        assert (await browser.get("/api/me")).status_code == 200
        house.pass_time(timedelta(seconds=60))
        assert (await browser.get("/api/me")).status_code == 401


class TestAnAgent:
    async def test_agent_is_the_same_with_each_of_its_keys(self, house: House) -> None:
        admin = await house.admin()
        first = (await create(admin, name="billing")).json()
        by_id = (await create(admin, name=None, agent=first["key"]["agent"])).json()
        by_name = (await create(admin, name="billing", agent="billing")).json()
        each = [(await house.client(new["secret"]).get("/api/me")).json() for new in (first, by_id, by_name)]
        assert each[0] == each[1] == each[2]
        assert (each[0]["id"], each[0]["name"]) == (first["key"]["id"], "billing")
        await admin.delete(f"/api/keys/{first['key']['id']}")
        house.forget()
        assert (await house.client(by_id["secret"]).get("/api/me")).json() == each[0]

    async def test_control_a_key_made_without_naming_the_agent_is_another_agent(self, house: House) -> None:
        admin = await house.admin()
        made = [(await create(admin, name="billing")).json() for _ in range(2)]
        first, second = [(await house.client(new["secret"]).get("/api/me")).json()["id"] for new in made]
        assert first != second

    async def test_ambiguous_agent_name_is_refused(self, house: House) -> None:
        admin = await house.admin()
        first, _ = [(await create(admin, name="billing")).json()["key"] for _ in range(2)]
        refused = await create(admin, name=None, agent="billing")
        assert (refused.status_code, refused.json()["hint"]) == (409, "give the id of the one you mean")
        assert (await create(admin, name=None, agent=first["id"])).json()["key"]["agent"] == first["id"]

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"name": None}, 422),
            ({"name": "other", "agent": "billing"}, 422),
            ({"name": None, "agent": "nobody"}, 404),
            ({"name": None, "agent": "billing", "kind": "service"}, 404),
            ({"name": None, "agent": "billing", "kind": "reviewer", "user": "admin"}, 422),
        ],
    )
    async def test_key_for_an_agent_needs_a_known_agent_of_the_same_kind(
        self, house: House, body: dict[str, object], status: int
    ) -> None:
        admin = await house.admin()
        await create(admin, name="billing")
        assert (await create(admin, **body)).status_code == status

    async def test_agent_of_another_tenant_gets_no_key(self, house: House) -> None:
        stranger = (await create(await house.admin(tenant="acme"), name="billing")).json()["key"]["id"]
        admin = await house.admin()
        for named in (stranger, "billing"):
            assert (await create(admin, name=None, agent=named)).status_code == 404


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER])
async def test_only_administrators_manage_keys(house: House, role: Role, method: str) -> None:
    client = house.client(await house.person("ana", role))
    path = "/api/keys/some-id" if method == "DELETE" else "/api/keys"
    body = {"kind": "agent", "name": "bot"} if method == "POST" else None
    response = await client.request(method, path, json=body)
    assert (response.status_code, response.json()["missing"]) == (403, ["admin"])


async def test_timeline_records_who_made_a_key_for_whom(house: House) -> None:
    admin = await house.admin()
    user = (await admin.post("/api/users", json={"name": "ana"})).json()
    key = (await create(admin, kind="reviewer", user="ana")).json()["key"]
    me = (await admin.get("/api/me")).json()
    (event,) = (await admin.get(f"/api/audit/events?subject=key:{key['id']}")).json()["items"]
    assert event["actor"] == f"reviewer:{me['id']}"
    assert user["id"] in event["payload"]


@pytest.mark.parametrize("change", [{"disabled": True}, {"role": "viewer"}])
async def test_loss_of_rights_takes_effect_at_once_in_this_process(house: House, change: dict[str, object]) -> None:
    """Even the key that was used a moment ago, which this process remembers for a while."""
    admin = await house.admin()
    other = house.client(await house.person("root", Role.ADMIN))
    assert (await admin.get("/api/keys")).status_code == 200
    assert (await other.patch("/api/users/admin", json=change)).status_code == 200
    assert (await create(admin)).status_code in (401, 403)


class TestNobodyGivesMoreThanTheirCredentialHolds:
    """Of an administrator, by a key that was given only some of the rights."""

    MORE: tuple[tuple[str, str, dict[str, object]], ...] = (
        ("POST", "/api/keys", {"kind": "reviewer", "name": "x", "user": "admin"}),
        ("POST", "/api/keys", {"kind": "reviewer", "name": "x", "user": "admin", "scopes": ["decide"]}),
        ("POST", "/api/keys", {"kind": "agent", "name": "x"}),
        ("POST", "/api/keys", {"kind": "service", "name": "x", "scopes": ["policy:write"]}),
        ("POST", "/api/users", {"name": "new", "role": "reviewer"}),
        ("POST", "/api/users", {"name": "new", "role": "viewer", "groups": ["finance"]}),
        ("PATCH", "/api/users/vic", {"role": "admin"}),
        ("PATCH", "/api/users/vic", {"groups": ["finance"]}),
        ("PATCH", "/api/users/off", {"disabled": False}),
        ("POST", "/api/users/admin/login-link", {}),
        ("POST", "/api/users/vic/login-link", {}),
    )

    @staticmethod
    async def people(house: House) -> None:
        for name, role in (("admin", Role.ADMIN), ("vic", Role.VIEWER), ("off", Role.REVIEWER)):
            await house.person(name, role)
        await house.services.users.change(operator(), "off", disabled=True)

    @pytest.mark.promise("P10")
    @pytest.mark.parametrize(("method", "path", "body"), MORE)
    async def test_giving_scopes_that_the_key_lacks_is_refused(
        self, house: House, method: str, path: str, body: dict[str, object]
    ) -> None:
        await self.people(house)
        narrow = house.client(await house.key_of("admin", "admin"))
        refused = await narrow.request(method, path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
        assert refused.json()["missing"]
        assert "secret" not in refused.json()

    @pytest.mark.parametrize(("method", "path", "body"), MORE)
    async def test_control_a_key_with_all_scopes_gives_them(
        self, house: House, method: str, path: str, body: dict[str, object]
    ) -> None:
        await self.people(house)
        full = house.client(await house.key_of("admin"))
        assert (await full.request(method, path, json=body)).status_code in (200, 201)

    async def test_key_may_give_the_scopes_that_it_has(self, house: House) -> None:
        await self.people(house)
        narrow = house.client(await house.key_of("admin", "admin", "items:read"))
        made = await create(narrow, kind="reviewer", user="admin", scopes=["items:read"])
        assert (made.status_code, made.json()["key"]["scopes"]) == (201, ["items:read"])
        assert (await narrow.patch("/api/users/vic", json={"disabled": True})).status_code == 200

    async def test_a_session_is_not_opened_by_a_key_with_some_of_the_rights(self, house: House) -> None:
        await self.people(house)
        narrow = await house.key_of("admin", *(scope for scope in Scope if scope is not Scope.DECIDE))
        for secret, status in ((narrow, 401), (await house.key_of("admin"), 200)):
            signed = await house.client().post("/api/session", json={"credential": secret})
            assert signed.status_code == status

    async def test_a_service_makes_no_agent_with_more_rights(self, house: House) -> None:
        service = house.client(await house.key(Kind.SERVICE, "admin", "items:read"))
        assert (await create(service, scopes=["runs:write"])).status_code == 403
        assert (await create(service, scopes=["items:read"])).status_code == 201


class TestTheLastAdministrator:
    @pytest.mark.parametrize("change", [{"disabled": True}, {"role": "reviewer"}])
    async def test_last_administrator_cannot_be_removed(self, house: House, change: dict[str, object]) -> None:
        admin = await house.admin()
        service = house.client(await house.key(Kind.SERVICE, *SCOPE_CEILING[Kind.SERVICE]))
        assert (await admin.patch("/api/users/admin", json=change)).status_code == 409
        assert (await admin.delete("/api/users/admin")).status_code == 409
        if "disabled" in change:
            refused = await service.patch("/api/users/admin", json=change)
            assert (refused.status_code, refused.json()["detail"]) == (409, "'admin' is the last administrator")
        assert (await service.delete("/api/users/admin")).status_code == 409
        assert (await admin.get("/api/users")).status_code == 200

    @pytest.mark.parametrize("change", [{"disabled": True}, {"role": "reviewer"}])
    async def test_control_one_of_two_administrators_is_removed_by_the_other(
        self, house: House, change: dict[str, object]
    ) -> None:
        admin, root = await house.admin(), house.client(await house.person("root", Role.ADMIN))
        assert (await admin.patch("/api/users/admin", json=change)).status_code == 409
        assert (await root.patch("/api/users/admin", json=change)).status_code == 200
        await house.services.users.change(operator(), "root", disabled=True)


@pytest.mark.parametrize("change", [{"disabled": True}, {"role": "viewer"}, {"role": "admin"}])
async def test_a_login_link_does_not_outlive_a_change_of_rights(house: House, change: dict[str, object]) -> None:
    admin, _ = await house.admin(), await house.person("ana")
    token = await house.link("ana")
    await admin.patch("/api/users/ana", json=change)
    await admin.patch("/api/users/ana", json={"disabled": False})
    assert (await house.client().post("/api/session", json={"credential": token})).status_code == 401
    fresh = await house.link("ana")
    assert (await house.client().post("/api/session", json={"credential": fresh})).status_code == 200


async def test_session_follows_the_current_role(house: House) -> None:
    admin, browser = await house.admin(), await house.signed_in("ana")
    for change, scopes in (({"role": "viewer"}, ["items:read"]), ({"disabled": True}, None)):
        await admin.patch("/api/users/ana", json=change)
        assert (await browser.get("/api/me")).json().get("scopes") == scopes

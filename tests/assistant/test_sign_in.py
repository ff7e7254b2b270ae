"""Signing in at an MCP server by OAuth: a real authorization server and a real protected server, in another process."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import httpx
import httpx2
import pytest
from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assent import LocalInbox
from assent.app import create_store
from assent.assistant.failures import LoginRequired, McpRefused
from assent.assistant.mcp.client import McpClient
from assent.assistant.mcp.configured import create_client
from assent.assistant.mcp.login import desk, rows
from assent.assistant.mcp.login.credentials import Credentials
from assent.assistant.mcp.login.desk import CALLBACK, PURPOSE, START, Logins
from assent.assistant.mcp.login.records import Records
from assent.assistant.mcp.login.tokens import Tokens
from assent.assistant.mcp.questions import Asked
from assent.assistant.mcp.servers import McpServers
from assent.assistant.mcp.targets import server_at
from assent.assistant.talk.service import thread_of
from assent.identity.model.access import Role, operator
from assent.kernel.cipher import Cipher, Undecipherable
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.model.questions import Verb, Verdict
from assent.settings import DEMO_PROJECT, AssistantSettings, Mode, Settings
from assent.surfaces import extensions
from tests import workers
from tests.api.house import Builder, House
from tests.assistant.calendars import served
from tests.assistant.desk import Desk, nodes_of
from tests.assistant.models import call, calls
from tests.servers import ServerProcess
from tests.waiting import wait_until

ACCEPT, DECLINE = Verdict("0", Verb.ACCEPT), Verdict("0", Verb.DECLINE)
ADDRESS = "http://127.0.0.1:8002"
ANA = "reviewer:ana"
SECRET = b"a secret of thirty-two characters"


class Vault:
    """The protected server."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.url = f"{self.address}/mcp"
        self._process = ServerProcess([sys.executable, "-m", "tests.assistant.guarded", str(port)])

    def __enter__(self) -> Vault:
        self._process.launch()
        wait_until(self._answers, "the vault does not answer")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.address}/done", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    async def get(self, path: str) -> str:
        async with httpx.AsyncClient(trust_env=False) as http:
            return (await http.get(f"{self.address}/{path}")).text

    async def revoke(self) -> None:
        async with httpx.AsyncClient(trust_env=False) as http:
            await http.post(f"{self.address}/revoke")

    async def consent(self, link: str) -> dict[str, str]:
        """The person at the authorization server: what it sends them back with."""
        async with httpx.AsyncClient(trust_env=False) as http:
            sent = await http.get(link)
        assert sent.status_code == 302, sent.text
        back = urlsplit(sent.headers["location"])
        assert back.path == CALLBACK
        return dict(parse_qsl(back.query))


@pytest.fixture
def vault() -> Iterator[Vault]:
    with Vault() as running:
        yield running


def records(store: Store, secret: bytes = SECRET) -> Records:
    return Records(store, Cipher(lambda: secret, PURPOSE))


@pytest.fixture
async def store(folder: Path, migrated_file: Path) -> AsyncIterator[Store]:
    shutil.copy(migrated_file, folder / "logins.db")
    opened = create_store(Settings(database=f"sqlite:///{folder / 'logins.db'}"))
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def logins(store: Store) -> AsyncIterator[Logins]:
    """Those of this process."""
    made = Logins(ADDRESS, records(store))
    desk.use(made)
    yield made
    desk.use(None)
    await made.close()


@pytest.fixture
async def client_of(logins: Logins) -> AsyncIterator[Callable[[Vault], McpServers]]:
    """As the settings make it; the control has a key of its own instead."""
    made: list[McpServers] = []

    def make(vault: Vault, **headers: str) -> McpServers:
        settings = AssistantSettings(mcp_url=vault.url, mcp_headers=headers)  # type: ignore[arg-type]
        made.append(create_client(settings))
        return made[-1]

    yield make
    for client in made:
        await client.close()


async def signed_in(logins: Logins, vault: Vault, link: str) -> None:
    back = await vault.consent(await page_of(logins, link))
    assert await logins.complete(back["state"], back["code"], back.get("iss"), ANA)


async def page_of(logins: Logins, link: str) -> str:
    """The page at the authorization server to which the link leads a person."""
    page = await logins.begin(urlsplit(link).path.removeprefix(f"{START}/"), ANA)
    assert page is not None
    return page


async def link_of(client: McpServers) -> str:
    wanted = await client.login(())
    assert wanted is not None
    return str(wanted[1]["questions"]["url"]["url"])


class TestProtocol:
    async def test_link_uses_pkce_and_a_registered_client(self, vault: Vault, client_of: Any, logins: Logins) -> None:
        query = dict(parse_qsl(urlsplit(await page_of(logins, await link_of(client_of(vault)))).query))
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert len(query["code_challenge"]) >= 43
        assert query["redirect_uri"] == f"http://127.0.0.1:8002{CALLBACK}"
        assert query["resource"] == vault.url
        assert (await vault.get("counts")).startswith("1 clients")

    async def test_one_link_waits_at_a_time(self, vault: Vault, client_of: Any) -> None:
        client = client_of(vault)
        assert await link_of(client) == await link_of(client)

    async def test_login_is_stored_encrypted_and_survives_a_restart(
        self, vault: Vault, client_of: Any, logins: Logins, store: Store
    ) -> None:
        await signed_in(logins, vault, await link_of(client_of(vault)))
        stored = await store.read("default", lambda tx: list(tx.sql("SELECT * FROM mcp_logins")))
        assert b"access_token" not in repr(stored).encode()
        assert "look" in [tool.name for tool in await client_of(vault).tools()]
        desk.use(Logins(ADDRESS, records(store, b"another secret of the same length")))
        with pytest.raises(LoginRequired):
            await client_of(vault).tools()

    async def test_expired_token_is_refreshed(self, vault: Vault, client_of: Any, logins: Logins, store: Store) -> None:
        await signed_in(logins, vault, await link_of(client_of(vault)))
        tokens = Tokens(records(store), vault.url)
        first = await tokens.get_tokens()
        assert first
        await tokens.set_tokens(first.model_copy(update={"expires_in": -10}))
        assert await client_of(vault).tools()
        second, ends = await tokens.stored()
        assert second
        assert second.access_token != first.access_token
        assert ends

    async def test_wrong_state_signs_nobody_in(self, vault: Vault, client_of: Any, logins: Logins) -> None:
        client = client_of(vault)
        back = await vault.consent(await page_of(logins, await link_of(client)))
        assert not await logins.complete("guessed", back["code"], None, ANA)
        assert not await logins.complete(back["state"], back["code"], None, "reviewer:ben")  # opened no link
        with pytest.raises(LoginRequired):
            await client_of(vault).tools()

    async def test_callback_is_answered_while_another_server_is_discovered(
        self, vault: Vault, client_of: Any, logins: Logins
    ) -> None:
        asked, answer = threading.Event(), threading.Event()

        def wait(_: Request) -> Response:
            asked.set()
            answer.wait()
            return Response(status_code=404)

        with served(Starlette(routes=[Route("/mcp", wait, methods=["POST"])]), lifespan=False) as slow:
            linking = asyncio.ensure_future(logins.link_to(f"{slow}/mcp"))
            try:
                assert await asyncio.to_thread(asked.wait, 20)
                assert not await logins.complete("guessed", "guessed", None, ANA)
                client = client_of(vault)
                await signed_in(logins, vault, await link_of(client))
                assert await client.login(()) is None
            finally:
                answer.set()
            assert await linking is None

    async def test_stopping_server_ends_the_sign_ins(self, vault: Vault, client_of: Any, logins: Logins) -> None:
        back = await vault.consent(await page_of(logins, await link_of(client_of(vault))))
        await logins.close()
        assert not await logins.complete(back["state"], back["code"], back.get("iss"), ANA)

    async def test_control_without_a_place_credentials_are_refused(self, vault: Vault, client_of: Any) -> None:
        desk.use(None)
        client = client_of(vault)
        assert await client.login(()) is None
        with pytest.raises(McpRefused, match="refused the credentials"):
            await client.tools()

    async def test_server_without_oauth_refuses_the_credentials(self, logins: Logins) -> None:
        refuse = Route("/mcp", lambda _: Response(status_code=401), methods=["GET", "POST", "DELETE"])
        with served(Starlette(routes=[refuse]), lifespan=False) as address:
            client = create_client(AssistantSettings(mcp_url=f"{address}/mcp"))
            assert await client.login(()) is None
            for failing in (client.tools(), client._clients["url"].call("look", {})):
                with pytest.raises(McpRefused, match=r"refused the credentials \(401\): check ASSISTANT_MCP_HEADERS"):
                    await failing
            await client.close()

    async def test_configured_key_that_is_refused_asks_for_no_login(self, vault: Vault, client_of: Any) -> None:
        client = client_of(vault, Authorization="Bearer wrong")
        assert await client.login(()) is None


class TestSeveralProcesses:
    """Each has its own `Logins`; they share the records."""

    async def test_person_comes_back_to_another_process(
        self, vault: Vault, client_of: Any, logins: Logins, store: Store
    ) -> None:
        other = Logins(ADDRESS, records(store))
        await signed_in(other, vault, await link_of(client_of(vault)))
        assert "look" in [tool.name for tool in await client_of(vault).tools()]

    async def test_control_other_records_know_nothing_of_it(
        self, vault: Vault, client_of: Any, logins: Logins, tmp_path: Path, migrated_file: Path
    ) -> None:
        shutil.copy(migrated_file, tmp_path / "other.db")
        elsewhere = create_store(Settings(database=f"sqlite:///{tmp_path / 'other.db'}"))
        await elsewhere.open()
        other = Logins(ADDRESS, records(elsewhere))
        link = await link_of(client_of(vault))
        assert await other.begin(link.rpartition("/")[2], ANA) is None
        back = await vault.consent(await page_of(logins, link))
        assert not await other.complete(back["state"], back["code"], back.get("iss"), ANA)
        await elsewhere.close()

    async def test_processes_give_the_same_link(
        self, vault: Vault, client_of: Any, logins: Logins, store: Store
    ) -> None:
        assert await Logins(ADDRESS, records(store)).link_to(vault.url) == await link_of(client_of(vault))

    async def test_link_of_a_process_that_is_gone_is_replaced(
        self, vault: Vault, client_of: Any, logins: Logins, store: Store
    ) -> None:
        shared = records(store)
        await shared.offer(vault.url, "gone", "state", "http://127.0.0.1:9/authorize")
        client = client_of(vault)
        assert (await link_of(client)).endswith("/gone")
        assert await shared.begin("gone", ANA)
        await store.write("default", lambda tx: rows.change(tx, _server_of(tx, "gone"), until=tx.now()))
        assert await shared.begin("gone", ANA) is None
        assert not await logins.complete("state", "code", None, ANA)
        link = await link_of(client)
        assert not link.endswith("/gone")
        await signed_in(logins, vault, link)


class TestAssistant:
    def _desk(self, folder: Path, inbox: LocalInbox, client: McpServers, *script: Any) -> Desk:
        nodes = nodes_of(FastMCP("none"), inbox, *script, types=["vault"])
        return Desk(folder / "gate.db", replace(nodes, client=client))

    @pytest.mark.promise("ASST-19", "ASST-22")
    async def test_request_goes_on_after_the_sign_in(
        self, vault: Vault, client_of: Any, inbox: LocalInbox, folder: Path, logins: Logins
    ) -> None:
        there = self._desk(folder, inbox, client_of(vault), calls(call("store", thing="a ring")))
        login = await there.say("store a ring")
        assert login["kind"] == "oauth_url"
        again = await there.answer(ACCEPT)  # too early: it is asked again, with the same link
        assert again["url"] == login["url"]
        await signed_in(logins, vault, login["url"])
        assert (await there.answer(ACCEPT))["kind"] == "confirmation"
        assert await there.approve() is None
        assert await vault.get("done") == "store a ring"

    async def test_declined_sign_in_ends_without_those_tools(
        self, vault: Vault, client_of: Any, inbox: LocalInbox, folder: Path
    ) -> None:
        other = McpClient(lambda: _other(), name="other")
        client = McpServers({"vault": client_of(vault)._clients["url"], "other": other})
        there = self._desk(folder, inbox, client, calls(call("look")))
        await there.say("look")
        assert await there.answer(DECLINE) is None
        assert "cannot be used" in str(there.messages[-2].content)
        await other.close()

    async def test_answer_belongs_to_the_server_that_it_was_given_for(
        self, vault: Vault, client_of: Any, inbox: LocalInbox, folder: Path, logins: Logins
    ) -> None:
        with Vault() as second:
            client = McpServers(
                {"first": client_of(vault)._clients["url"], "second": client_of(second)._clients["url"]}
            )
            there = self._desk(folder, inbox, client, calls(call("store", thing="a ring")))
            login = await there.say("store a ring")
            assert (await page_of(logins, login["url"])).startswith(vault.address)
            await signed_in(logins, vault, login["url"])
            login = await there.answer(DECLINE)  # of the first, in which somebody signed in meanwhile
            assert (await page_of(logins, login["url"])).startswith(second.address)
            assert (await there.answer(DECLINE))["kind"] == "confirmation"

    async def test_tools_are_listed_again_only_while_one_is_missing(self, inbox: LocalInbox, folder: Path) -> None:
        class Lists(Middleware):
            count = 0

            async def on_list_tools(self, context: Any, call_next: Any) -> Any:
                self.count += 1
                return await call_next(context)

        server, lists = _other(), Lists()
        server.add_middleware(lists)
        up, down = McpClient(lambda: server, name="up"), McpClient(server_at("http://127.0.0.1:9/mcp", {}), name="down")
        there = self._desk(folder, inbox, McpServers({"up": up}))
        for _ in range(2):
            await there.say("hello")
        assert lists.count == 1
        there = self._desk(folder / "missing", inbox, McpServers({"up": up, "down": down}))
        for _ in range(2):
            await there.say("hello")
        assert lists.count == 3
        await up.close()

    @pytest.mark.promise("ASST-05")
    async def test_revoked_login_pauses_the_approved_call(
        self, vault: Vault, client_of: Any, inbox: LocalInbox, folder: Path, logins: Logins
    ) -> None:
        client = client_of(vault)
        await signed_in(logins, vault, await link_of(client))
        there = self._desk(folder, inbox, client, calls(call("store", thing="a ring")))
        assert (await there.say("store a ring"))["kind"] == "confirmation"
        await vault.revoke()
        login = await there.approve()
        assert login["kind"] == "oauth_url"
        assert await vault.get("done") == ""
        await signed_in(logins, vault, login["url"])
        assert await there.answer(ACCEPT) is None
        assert await vault.get("done") == "store a ring"
        [grant] = there.grants()
        assert grant.status == "done"

    async def test_call_is_asked_and_not_made_without_a_login(
        self, vault: Vault, client_of: Any, logins: Logins
    ) -> None:
        client = client_of(vault)
        await signed_in(logins, vault, await link_of(client))
        await client.tools()
        await vault.revoke()
        with pytest.raises(Asked) as asked:
            await client.call("store", {"thing": "a ring"})
        assert asked.value.questions["url"]["kind"] == "oauth_url"
        assert await vault.get("done") == ""


@pytest.fixture
async def house(
    vault: Vault, logins: Logins, tmp_path: Path, migrated_file: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[House]:
    """A server whose assistant works with the vault."""
    monkeypatch.setenv("ASSISTANT_MCP_URL", vault.url)
    async with AsyncExitStack() as stack:
        build = Builder(tmp_path, migrated_file, stack)
        secret = SECRET.decode()
        yield await build(Mode.SERVE, config=DEMO_PROJECT, assistant="assistant", secret_key=secret, port=8002)
        await extensions.close()


@pytest.mark.promise("ASST-19")
async def test_sign_in_is_an_item_and_202_oauth_required(vault: Vault, house: House) -> None:
    ana = house.client(await house.person("ana"))
    asked = await ana.post("/run", json={"thread_id": "t", "user_request": "what is there?"}, timeout=60)
    assert (asked.status_code, asked.json()["status"]) == (202, "oauth_required")
    [item] = (await ana.get("/api/inbox/items", params={"filter": "is:pending"})).json()["items"]
    assert (item["type"], item["gated"]) == ("oauth", True)
    refused = await ana.get(CALLBACK, params={"code": "x", "state": "y"})
    assert refused.status_code == 400
    leads = await ana.get(asked.json()["url"])
    assert (leads.status_code, leads.headers["location"].startswith(vault.address)) == (303, True)
    back = await ana.get(CALLBACK, params=await vault.consent(leads.headers["location"]))
    assert (back.status_code, "You are signed in" in back.text) == (200, True)
    answer = {"thread_id": "t", "elicitation": {"action": "accept"}}
    ended = await ana.post("/resume", json=answer, timeout=60)
    assert ended.status_code in (200, 202), ended.text
    assert ended.json()["status"] != "oauth_required"


@pytest.mark.promise("P6")
async def test_agent_cannot_sign_in_by_itself(vault: Vault, house: House) -> None:
    """With an account of its own: everybody would act with it. An agent reads the question of its thread."""
    agent, viewer = house.client(await house.key()), house.client(await house.person("val", Role.VIEWER))
    asked = await agent.post("/run", json={"thread_id": "t", "user_request": "what is there?"}, timeout=60)
    link = asked.json()["url"]
    state = await agent.get(f"/threads/{thread_of('default', 't')}/state")
    assert link in state.text
    assert vault.address not in link
    for caller, status in ((agent, 403), (viewer, 403), (house.client(), 401)):
        assert (await caller.get(link)).status_code == status
    ana, ben = house.client(await house.person("ana")), house.client(await house.person("ben"))
    back = await vault.consent((await ana.get(link)).headers["location"])
    for caller, status in ((agent, 403), (viewer, 403), (house.client(), 401), (ben, 400)):
        assert (await caller.get(CALLBACK, params=back)).status_code == status
    assert (await ana.get(CALLBACK, params=back)).status_code == 200  # the control


async def test_person_whom_the_rule_leaves_out_cannot_sign_in(vault: Vault, house: House) -> None:
    rule = {"name": "hers", "tool": "oauth_url", "then": "ask", "by": {"people": ["ana"]}}
    await house.services.policies.put(operator(), {"rules": [rule]})
    ana, ben = house.client(await house.person("ana")), house.client(await house.person("ben"))
    link = (await ana.post("/run", json={"thread_id": "t", "user_request": "look"}, timeout=60)).json()["url"]
    assert (await ben.get(link)).status_code == 403
    back = await vault.consent((await ana.get(link)).headers["location"])  # the control
    assert (await ben.get(CALLBACK, params=back)).status_code == 400


async def test_browser_without_a_session_signs_in_to_assent_first(house: House) -> None:
    browser = house.client(headers={"accept": "text/html"})
    for path in (f"{START}/1", f"{CALLBACK}?code=x"):
        assert (await browser.get(path)).headers["location"] == f"/login?next={quote(path)}"


def test_cipher_is_bound_to_its_place_and_purpose() -> None:
    sealed = Cipher(lambda: SECRET, b"one").seal(b"text", b"here")
    assert Cipher(lambda: SECRET, b"one").open(sealed, b"here") == b"text"
    for cipher, place in ((Cipher(lambda: SECRET, b"one"), b"there"), (Cipher(lambda: SECRET, b"two"), b"here")):
        with pytest.raises(Undecipherable):
            cipher.open(sealed, place)


def _server_of(tx: Tx, sign_in: str) -> str:
    row = rows.lock_sign_in(tx, sign_in)
    assert row is not None
    return str(row.server)


def _other() -> Any:
    server = FastMCP("other")
    server.tool(lambda: "here", name="peek", tags={"vault"})
    return server


async def test_two_writers_lose_no_token(store: Store) -> None:
    async def keep_tokens() -> None:
        for number in range(20):
            await Tokens(records(store), ADDRESS).set_tokens(OAuthToken(access_token=str(number)))

    async def keep_client() -> None:
        for number in range(20):
            client = OAuthClientInformationFull.model_validate({"client_id": str(number), "redirect_uris": None})
            await Tokens(records(store), ADDRESS).set_client_info(client)

    await asyncio.gather(keep_tokens(), keep_client())
    tokens = Tokens(records(store), ADDRESS)
    kept, client = await tokens.get_tokens(), await tokens.get_client_info()
    assert kept
    assert client
    assert (kept.access_token, client.client_id) == ("19", "19")


async def test_cancelled_request_leaves_the_login_to_the_next_one(store: Store) -> None:
    tokens = Tokens(records(store), "http://127.0.0.1:9/mcp")
    await tokens.set_tokens(OAuthToken(access_token="stored", expires_in=600))
    credentials = Credentials("http://127.0.0.1:9/mcp", "http://127.0.0.1:9/callback", tokens)
    request = httpx2.Request("GET", "http://127.0.0.1:9/mcp")
    cancelled = credentials.async_auth_flow(request)
    await anext(cancelled)
    await cancelled.aclose()
    async with asyncio.timeout(10), aclosing(credentials.async_auth_flow(request)) as following:
        sent = await anext(following)
    assert sent.headers["authorization"] == "Bearer stored"


async def test_sign_in_of_a_worker_is_completed_at_the_server(
    vault: Vault, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run waits in the worker's process; the person comes back to this one, which executes nothing."""
    monkeypatch.setenv("ASSISTANT_MCP_URL", vault.url)
    async with AsyncExitStack() as stack:
        build = Builder(tmp_path, tmp_path, stack, lambda: postgres_url)
        shared = {"config": DEMO_PROJECT, "assistant": "assistant", "secret_key": workers.SECRET}
        house = await build(Mode.SERVE, **shared, port=8002, run_in_server=False)
        worker = workers.new_worker(
            postgres_url, graphs=DEMO_PROJECT, ASSENT_ASSISTANT="assistant", ASSENT_PUBLIC_URL="http://localhost:8002"
        )
        stack.callback(worker.kill)
        await asyncio.to_thread(worker.start)
        ana = house.client(await house.person("ana"))
        asked = await ana.post("/run", json={"thread_id": "t", "user_request": "what is there?"}, timeout=120)
        assert asked.json()["status"] == "oauth_required", asked.text
        leads = await ana.get(urlsplit(asked.json()["url"]).path)
        back = await vault.consent(leads.headers["location"])
        assert (await ana.get(CALLBACK, params=back, timeout=120)).status_code == 200
        answer = {"thread_id": "t", "elicitation": {"action": "accept"}}
        ended = await ana.post("/resume", json=answer, timeout=120)
        assert ended.status_code in (200, 202), ended.text
        assert ended.json()["status"] != "oauth_required"
        await extensions.close()


async def test_closed_logins_are_left_by_the_graphs_unless_others_have_replaced_them(store: Store) -> None:
    closed, open_ones = Logins(ADDRESS, records(store)), Logins(ADDRESS, records(store))
    desk.use(closed)
    desk.leave(closed)
    assert await desk.link_to("http://127.0.0.1:9/mcp") is None
    desk.use(open_ones)
    desk.leave(closed)
    assert desk._logins is open_ones

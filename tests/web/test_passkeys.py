"""Passkeys in a real browser, with Chromium's virtual authenticator: added on the account page, used to approve."""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, CDPSession, Page, expect

from assent.identity.model.access import operator
from tests.cli.command import Server, execute, serving
from tests.web.conftest import VIOLATIONS, Desk
from tests.web.test_browser import ask, stands
from tests.web.test_quality import violations

ACCOUNT = "/inbox/settings/account"
POLICY = """
default = "advise"

[[rules]]
name = "transfers"
tool = "transfer"
then = "ask"
when = "args.amount > 100"
confirm = "passkey"

[[rules]]
name = "small ones"
tool = "transfer"
then = "ask"
"""
OPTIONS = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@dataclass
class Seat:
    """A person before a browser at `localhost`, with a device that verifies them."""

    server: Server
    folder: Path
    page: Page
    cdp: CDPSession
    device: str

    @property
    def base(self) -> str:
        return f"http://localhost:{self.server.url.rpartition(':')[2]}"

    async def sign_in(self, base: str | None = None) -> None:
        """By a link that whoever holds the database made."""
        made = execute(self.folder, "users", "login-link", "local", "--url", base or self.base, *DATABASE)
        assert made.code == 0, made.err
        await self.page.goto(made.out.strip())
        await self.page.wait_for_url("**/inbox")

    async def add_passkey(self, name: str = "Laptop") -> None:
        await self.page.goto(f"{self.base}{ACCOUNT}")
        await self.page.get_by_label("Name of the device").fill(name)
        await self.page.get_by_role("button", name="Add a passkey").click()
        await self.page.wait_for_url("**done=added")

    async def verified(self, verified: bool) -> None:
        told = {"authenticatorId": self.device, "isUserVerified": verified}
        await self.cdp.send("WebAuthn.setUserVerified", told)

    async def open(self, item_id: str) -> None:
        await self.page.goto(f"{self.base}/inbox/{item_id}")

    async def approve(self) -> None:
        await self.page.get_by_role("button", name="Approve", exact=True).click()

    def transfer(self, amount: int = 500) -> str:
        return ask(self.server, title="Transfer", actions=[{"name": "transfer", "args": {"to": "m", "amount": amount}}])


DATABASE = ("--database", "sqlite:///.assent/demo.db")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("passkeys")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    (folder / "policy.toml").write_text(POLICY)
    changes = {"ASSENT_POLICY": "policy.toml", "ASSENT_UNDO_WINDOW": "60s"}
    with serving(folder, "demo", "--port", "0", changes=changes) as running:
        yield running


async def seated(server: Server, folder: Path, context: BrowserContext) -> Seat:
    page = await context.new_page()
    cdp = await context.new_cdp_session(page)
    await cdp.send("WebAuthn.enable")
    made: dict[str, Any] = await cdp.send("WebAuthn.addVirtualAuthenticator", {"options": OPTIONS})
    seat = Seat(server, folder, page, cdp, made["authenticatorId"])
    await seat.sign_in()
    return seat


@pytest.fixture
async def seat(server: Server, folder: Path, browser: Browser) -> AsyncIterator[Seat]:
    async with await browser.new_context() as context:
        yield await seated(server, folder, context)


async def test_a_passkey_is_added_and_approves_and_nothing_is_said_on_the_console(seat: Seat, axe: str) -> None:
    said: list[str] = []
    seat.page.on("console", lambda message: said.append(message.text))
    await seat.page.add_init_script(VIOLATIONS)
    await seat.add_passkey("My laptop")
    await expect(seat.page.get_by_role("row", name=re.compile("My laptop.*localhost"))).to_be_visible()
    assert await violations(seat.page, axe) == []
    item_id = seat.transfer()
    await seat.open(item_id)
    await expect(seat.page.get_by_text("You need your passkey to approve this.")).to_be_visible()
    assert await violations(seat.page, axe) == []
    await seat.open(item_id)  # closes what axe has unfolded
    await seat.approve()
    await expect(seat.page.get_by_role("status")).to_contain_text("Approved: Transfer")
    assert stands(seat.server, item_id)["status"] == "APPROVED"
    await seat.page.get_by_role("button", name="Undo").first.click()
    await expect(seat.page.get_by_role("status")).to_contain_text("Undone")
    await seat.open(item_id)
    await seat.approve()
    await expect(seat.page.get_by_role("status")).to_contain_text("Approved: Transfer")
    await seat.open(item_id)
    await expect(seat.page.locator(".timeline")).to_contain_text("with a passkey")
    assert said == []


async def test_who_does_not_confirm_decides_nothing_and_loses_nothing(seat: Seat) -> None:
    await seat.add_passkey()
    item_id = seat.transfer()
    await seat.open(item_id)
    await seat.page.locator("summary", has_text="Edit").click()
    amount = seat.page.get_by_role("textbox", name="amount")
    await amount.fill("450")
    await seat.verified(False)
    button = seat.page.get_by_role("button", name="Approve with 1 change")
    await button.click()
    await expect(seat.page.get_by_role("alert")).to_contain_text("Not confirmed with your passkey")
    await expect(amount).to_have_value("450")
    await expect(button).to_be_enabled()
    assert stands(seat.server, item_id)["status"] == "PENDING"
    assert stands(seat.server, item_id)["revision"] == 1
    await seat.verified(True)
    await button.click()
    await expect(seat.page.get_by_role("status")).to_contain_text("Approved with 1 change")
    assert stands(seat.server, item_id)["actions"][0]["args"]["amount"] == 450


async def test_a_device_without_the_passkey_does_not_confirm(seat: Seat) -> None:
    await seat.add_passkey()
    await seat.cdp.send("WebAuthn.clearCredentials", {"authenticatorId": seat.device})
    item_id = seat.transfer()
    await seat.open(item_id)
    await seat.approve()
    await expect(seat.page.get_by_role("alert")).to_contain_text("Not confirmed with your passkey")
    assert stands(seat.server, item_id)["status"] == "PENDING"


async def test_an_edit_that_falls_under_the_rule_asks_for_it(seat: Seat) -> None:
    """The control is the same item without the edit: nobody is asked for anything."""
    await seat.add_passkey()
    signed: list[str] = []
    seat.page.on(
        "request", lambda request: signed.append(request.post_data or "") if "decision" in request.url else None
    )
    for amount, asks in (("90", False), ("5000", True)):
        item_id = seat.transfer(50)
        await seat.open(item_id)
        await expect(seat.page.locator(".presence")).to_have_count(0)
        await seat.page.locator("summary", has_text="Edit").click()
        await seat.page.get_by_role("textbox", name="amount").fill(amount)
        signed.clear()
        await seat.page.get_by_role("button", name="Approve with 1 change").click()
        await expect(seat.page.get_by_role("status")).to_contain_text("Approved with 1 change")
        assert any("assertion=" in body for body in signed) is asks
        assert stands(seat.server, item_id)["status"] == "APPROVED"


async def test_the_same_form_sent_again_decides_nothing(seat: Seat) -> None:
    """What the page sent is caught, and sent for the item that was taken back meanwhile."""
    await seat.add_passkey()
    item_id, sent = seat.transfer(), list[str]()
    seat.page.on(
        "request", lambda request: sent.append(request.post_data or "") if request.url.endswith("/decision") else None
    )
    await seat.open(item_id)
    await seat.approve()
    await expect(seat.page.get_by_role("status")).to_contain_text("Approved: Transfer")
    await seat.page.get_by_role("button", name="Undo").first.click()
    await expect(seat.page.get_by_role("status")).to_contain_text("Undone")
    [body] = sent
    again = re.sub(r"key=[^&]*", "key=another", body, count=1)
    address = f"{seat.base}/inbox/{item_id}/decision"
    headers = {"content-type": "application/x-www-form-urlencoded", "origin": seat.base}
    refused = await seat.page.request.post(address, data=again, headers=headers)
    assert refused.status == 403
    assert "used before" in await refused.text()
    assert stands(seat.server, item_id)["status"] == "PENDING"


async def test_without_scripts_the_page_says_why_it_cannot_be_approved(
    server: Server, folder: Path, browser: Browser, seat: Seat
) -> None:
    await seat.add_passkey()
    cookies = await seat.page.context.cookies()
    item_id = seat.transfer()
    async with await browser.new_context(java_script_enabled=False) as context:
        await context.add_cookies(cookies)  # type: ignore[arg-type]
        page = await context.new_page()
        await page.goto(f"{seat.base}/inbox/{item_id}")
        await expect(page.get_by_text("Passkeys need JavaScript")).to_be_visible()
        await page.get_by_role("button", name="Approve", exact=True).click()
        await expect(page.get_by_role("alert")).to_contain_text("Approving this needs a confirmation with your passkey")
        assert stands(server, item_id)["status"] == "PENDING"
        await page.goto(f"{seat.base}{ACCOUNT}")
        await expect(page.get_by_text("Adding a passkey needs JavaScript")).to_be_visible()
        await expect(page.get_by_role("button", name="Add a passkey")).to_have_count(0)


async def test_at_an_ip_address_the_pages_lead_to_localhost(seat: Seat) -> None:
    await seat.sign_in(seat.server.url)
    await seat.page.goto(f"{seat.server.url}{ACCOUNT}")
    await expect(seat.page.get_by_role("link", name=f"{seat.base}{ACCOUNT}")).to_be_visible()
    item_id = seat.transfer()
    await seat.page.goto(f"{seat.server.url}/inbox/{item_id}")
    link = seat.page.get_by_role("link", name=seat.base)
    await expect(link).to_have_attribute("href", f"{seat.base}/inbox/{item_id}")
    await seat.approve()
    await expect(seat.page.get_by_role("alert")).to_contain_text("passkeys do not work at this address")
    assert stands(seat.server, item_id)["status"] == "PENDING"


async def test_a_session_that_a_key_opened_is_asked_to_sign_in_again(seat: Seat) -> None:
    await seat.add_passkey()
    await seat.page.goto(f"{seat.base}/login")
    await seat.page.get_by_label("Sign-in token or reviewer key").fill(seat.server.said["reviewer key"].split()[0])
    await seat.page.get_by_role("button", name="Sign in").click()
    await seat.page.wait_for_url("**/inbox")
    await seat.page.goto(f"{seat.base}{ACCOUNT}")
    await expect(seat.page.get_by_text("sign in again with a new sign-in link")).to_be_visible()
    await expect(seat.page.get_by_role("button", name="Add a passkey")).to_have_count(0)
    item_id = seat.transfer()
    await seat.open(item_id)
    await seat.approve()
    await expect(seat.page.get_by_role("status")).to_contain_text("Approved: Transfer")


async def test_a_device_is_added_once_renamed_and_removed(seat: Seat) -> None:
    await seat.add_passkey("Fone")
    await seat.page.get_by_label("Name of the device").fill("Again")
    await seat.page.get_by_role("button", name="Add a passkey").click()
    await expect(seat.page.get_by_role("alert")).to_contain_text("This device is already registered.")
    row = seat.page.get_by_role("row", name=re.compile("Fone"))
    await row.locator("summary").click()
    await row.get_by_label("Name").fill("Phone")
    await row.get_by_role("button", name="Rename").click()
    row = seat.page.get_by_role("row", name=re.compile("Phone"))
    await row.locator("summary").click()
    await row.get_by_role("button", name="Remove").click()
    await expect(seat.page.locator("[role=status]:not(#said)")).to_contain_text("Removed.")
    await expect(seat.page.get_by_role("row", name=re.compile("Phone"))).to_have_count(0)


RULE = {"name": "all", "tool": "*", "then": "ask", "confirm": "passkey"}


class TestPages:
    """What the pages say without a browser's device."""

    async def test_who_has_none_is_led_to_the_account_page(self, desk: Desk) -> None:
        await desk.house.services.policies.put(operator(), {"rules": [RULE]})
        item = await desk.ask()
        refused = await desk.decide(item["id"], "approve")
        assert refused.status_code == 403
        assert "nobody has registered one" in refused.text
        there = desk.house.client(url="http://localhost:2024")
        await there.post("/api/session", json={"credential": await desk.house.link("ana")})
        page = (await there.get(f"/inbox/{item['id']}")).text
        assert "you have none yet" in page
        assert f'href="{ACCOUNT}"' in page
        assert "To add or remove a passkey" not in (await there.get(ACCOUNT)).text

    async def test_what_does_not_hold_is_told_beside_what_was_typed(self, desk: Desk) -> None:
        await desk.house.services.policies.put(operator(), {"rules": [RULE]})
        item = await desk.ask(actions=[{"name": "refund", "args": {"note": "a"}}])
        there = desk.house.client(url="http://localhost:2024")
        await there.post("/api/session", json={"credential": await desk.house.link("ana")})
        page = (await there.get(f"/inbox/{item['id']}")).text
        action = f"/inbox/{item['id']}/decision"
        sent = {"revision": "1", "hash": item["hash"], "verb": "edit", "a0.arg.note": "my words", "assertion": "{}"}
        assert action in page
        refused = await there.post(action, data=sent, headers={"origin": "http://localhost:2024"})
        assert refused.status_code == 403
        assert "this is not a passkey response" in refused.text.lower()
        assert "my words" in refused.text

    async def test_in_bulk_it_is_left_to_its_page(self, desk: Desk) -> None:
        await desk.house.services.policies.put(operator(), {"rules": [RULE]})
        item = await desk.ask()
        chosen = {"do": "approval", "chosen": f"{item['id']} {item['revision']} {item['hash']}", "sure": "yes"}
        told = await desk.ana.post("/inbox/bulk", data=chosen, headers={"origin": "http://127.0.0.1:2024"})
        assert "Needs your passkey: approve it on its own page." in told.text
        assert (await desk.item(item["id"]))["status"] == "PENDING"

    async def test_the_policy_page_tells_what_nobody_could_approve(self, desk: Desk) -> None:
        await desk.house.services.policies.put(operator(), {"rules": [RULE]})
        page = (await desk.ana.get("/inbox/policies")).text
        assert "Too few passkeys" in page
        assert "each confirms with a passkey" in page

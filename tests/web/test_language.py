"""Every word of the pages in both languages."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import assent.assistant.web
import assent.surfaces.web
from assent import errors
from assent.assistant import failures
from assent.assistant.talk import turns
from assent.assistant.web import lines
from assent.identity import assertions, passkeys
from assent.identity.model.access import Kind, Role
from assent.outbox.model import AUDIT_HEAD, RESUME, WEBHOOK
from assent.review.decisions import confirmation
from assent.review.item_views import ItemPage as Found
from assent.review.model import routing
from assent.review.model.calls import kinds
from assent.review.model.rules import loosening
from assent.review.policy.policies import API, BUILT_IN, FILE
from assent.surfaces.web import language, preferences, renderers
from assent.surfaces.web.pages import agents, crons, deployments, insights, reasons, standing
from assent.surfaces.web.pages.identity import keys, people
from assent.surfaces.web.preferences import Preferences
from assent.surfaces.web.rendering import environment
from assent.surfaces.web.text import times, words
from assent.surfaces.web.views import charts, facets, item_page, looks, outcomes, policy_views, shell
from assent.surfaces.web.views.item_list import Listing, Wanted
from assent.surfaces.web.views.people import Names
from assent.surfaces.web.views.threads import conversation, thread_page
from tests.api.house import LOOPBACK
from tests.web.conftest import Desk, hidden

WEB = Path(assent.surfaces.web.__file__).parent
CHAT = Path(assent.assistant.web.__file__).parent
_HOLE = re.compile(r"%\((\w+)\)s|\{(\w+)\}")


def in_templates() -> Iterator[str]:
    for file in (*(WEB / "templates").rglob("*.html"), *(CHAT / "templates").rglob("*.html")):
        for _, function, message in environment().extract_translations(file.read_text(encoding="utf-8")):  # type: ignore[attr-defined]
            texts = [message] if isinstance(message, str) else [one for one in message if one]
            yield texts[1 if function == "ngettext" else 0]


def in_code() -> Iterator[str]:
    for file in (*WEB.rglob("*.py"), *CHAT.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("_", "ngettext"):
                last = node.args[1 if node.func.id == "ngettext" else 0]
                if isinstance(last, ast.Constant):
                    yield str(last.value)


def in_tables() -> Iterator[str]:
    yield from (sign.word for sign in words.TYPES.values())
    yield from (
        sign.word for table in (words._STATUSES, words._RESOLUTIONS, words.DELIVERIES) for sign in table.values()
    )
    yield from (*words.VERBS.values(), *words.KINDS.values(), *words.EXECUTIONS.values())
    yield from (*words.REFUSE.values(), *words.REFUSALS.values(), *(sign.word for sign in outcomes.SIGNS.values()))
    yield from (what for _, what in words.KEYS)
    yield from (said for named in words.DEPLOYMENT_PROBLEMS.values() for said in named)
    yield from (place.label for place in (*shell.PLACES, *shell.MINE))
    yield from (sign.word for sign in (lines.PERSON, lines.ASSISTANT, lines.DONE, lines.FAILED, lines.REJECTED))
    yield from (*failures.sentences().values(), turns.TOOK_TOO_LONG)
    yield from reasons.USES.values()
    yield from preferences.THEMES.values()
    yield looks.AGENT_SAYS
    yield from (risk.capitalize() for risk in facets._RISKS)
    signs = (thread_page.STATUSES, thread_page.RUNS, conversation._ROLES, insights.OUTCOMES, crons.SIGNS, agents.ROUTES)
    yield from (sign.word for table in (*signs, deployments.SIGNS) for sign in table.values())
    yield from (conversation._UNKNOWN.word, *insights.AGES, *(unit for *_, unit in charts._UNITS))
    yield from (sign.word for sign in policy_views.EFFECTS.values())
    yield from (policy_views.LOOSENS.word, *loosening.TEXTS, *standing.LIFETIMES.values())
    yield from (
        *keys.LIFETIMES.values(),
        *keys.OVERLAPS.values(),
        *keys.KINDS.values(),
        *people.ROLES.values(),
        *Kind,
        *Role,
    )
    yield from (*agents.SOURCES.values(), *routing.ADVICE.values())
    yield from (BUILT_IN, FILE, API, WEBHOOK, RESUME, AUDIT_HEAD)
    everything = Found([], None, {}, {"kind": dict.fromkeys(renderers.types(), 1), "agent": {"agent:bot": 1}})
    menus = facets.facets(Listing(Wanted(), everything, Names("")))
    for facet in menus:
        yield from (facet.label, *(choice.label for choice in facet.choices if facet.field != "agent"))
    yield from (words.risk_word(risk) for risk in facets._RISKS)
    yield "Risk"


@cache
def said_words() -> list[str]:
    return sorted({*in_templates(), *in_code(), *in_tables()})


SAME_IN_BOTH = {"SQL", "JSON", "null", "ID", "Assent", "CEL", "TOML", "API"}


@pytest.mark.parametrize("code", [code for code in preferences.LANGUAGES if code != "en"])
def test_every_word_is_translated(code: str) -> None:
    known = language.translations(code)
    assert [one for one in said_words() if one not in known and one not in SAME_IN_BOTH] == []


@pytest.mark.parametrize("code", [code for code in preferences.LANGUAGES if code != "en"])
def test_what_stands_open_in_a_text_stands_open_in_its_translation(code: str) -> None:
    for english, text in language.translations(code).items():
        assert sorted(_HOLE.findall(english)) == sorted(_HOLE.findall(text)), english


def test_nothing_is_translated_that_is_not_said() -> None:
    said = {
        *said_words(),
        *renderers_words(),
        *item_page._REOPENED.values(),
        *(unit for _, unit in times._UNITS),
        *errors_words(),
        *passkey_words(),
    }
    assert [one for one in language.translations("zh") if one not in said] == []


def renderers_words() -> set[str]:
    """Labels that renderers carry as plain texts, and the cautions about calls."""
    texts = set[str]()
    calls = Path(str(kinds.__file__)).parent
    for file in (*(WEB / "renderers").rglob("*.py"), *calls.rglob("*.py")):
        nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        texts |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return texts


def passkey_words() -> set[str]:
    """What stands against a confirmation is told in full: a person has to know why their device was not enough."""
    files = (Path(str(one.__file__)) for one in (assertions, confirmation, passkeys))
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    said = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    kinds = (errors.ConfirmationRequired, errors.ConfirmationRefused, errors.FreshSignInRequired)
    return said | {str(kind.hint) for kind in kinds}


def errors_words() -> set[str]:
    kinds = (one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.AssentError))
    return {(one.__doc__ or "").partition("\n")[0] for one in kinds}


def test_every_kind_of_problem_is_told_in_every_language() -> None:
    assert sorted(errors_words() - set(language.translations("zh"))) == []


class TestPages:
    async def test_a_problem_says_what_it_is_before_its_details(self, desk: Desk) -> None:
        item = await desk.ask(actions=[{"name": "refund", "args": {"order": 5}}])
        page = await desk.open(item["id"])
        headers = {"accept-language": "zh", "origin": LOOPBACK, "sec-fetch-site": "same-origin"}
        address = f"/inbox/{item['id']}/decision"
        refused = await desk.ana.post(address, data={**hidden(page, address), "verb": "respond"}, headers=headers)
        assert refused.status_code == 422
        assert "该决定与请求不符；请求仍待处理。 (" in refused.text

    async def test_a_page_that_is_not_there(self, desk: Desk) -> None:
        accept = {"accept": "text/html,*/*", "accept-language": "zh"}
        missing = await desk.ana.get("/inbox/nonsense", headers=accept)
        assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "没有这个页面。" in missing.text
        program = await desk.ana.get("/inbox/nonsense", headers={"accept": "application/json"})
        assert (program.status_code, program.json()["code"]) == (404, "not_found")

    async def test_the_browsers_language_is_spoken(self, desk: Desk) -> None:
        page = (await desk.ana.get("/inbox", headers={"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"})).text
        assert '<html lang="zh-CN"' in page
        assert "待处理" in page
        assert "Pending" not in page

    async def test_what_is_chosen_wins_and_is_kept(self, desk: Desk) -> None:
        sent = {"origin": LOOPBACK, "sec-fetch-site": "same-origin", "referer": f"{LOOPBACK}/inbox?tab=resolved"}
        kept = await desk.ana.post("/inbox/preferences", data={"language": "zh"}, headers=sent)
        assert (kept.status_code, kept.headers["location"]) == (303, "/inbox?tab=resolved")
        await desk.ana.post("/inbox/preferences", data={"theme": "dark"}, headers=sent)
        page = (await desk.ana.get("/inbox", headers={"accept-language": "en"})).text
        assert '<html lang="zh-CN" data-theme="dark"' in page
        await desk.ana.post("/inbox/preferences", data={"language": "xx", "theme": "><script>"}, headers=sent)
        assert '<html lang="zh-CN" data-theme="dark"' in (await desk.ana.get("/inbox")).text

    async def test_another_site_cannot_choose(self, desk: Desk) -> None:
        sent = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
        refused = await desk.ana.post("/inbox/preferences", data={"language": "zh"}, headers=sent)
        assert refused.status_code == 403

    def test_a_language_that_is_not_spoken_is_english(self) -> None:
        assert Preferences().language == "en"
        assert language.gettext("Pending") == "Pending"

"""2,000 strings that would be scripts and 340 characters that would deceive, in every place where a stranger's text
stands. Each has its control: the same text without our care does what it was made for."""

import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import cycle, islice, product
from typing import Any

import pytest
from markupsafe import escape
from playwright.async_api import Page

from assent.surfaces.web.text import markdown
from assent.surfaces.web.text.texts import is_unseen, shown, spelled
from tests.cli.command import Server
from tests.web.conftest import Desk
from tests.web.test_browser import ask, sign_in

RUN = "window.ran=(window.ran||0)+1"
VECTORS = (
    "<script>{run}</script>",
    "<img src=x onerror={run}>",
    '<img src="x" onerror="{run}">',
    "<svg onload={run}>",
    "<svg><script>{run}</script></svg>",
    "<svg><animate onbegin={run} attributeName=x dur=1s>",
    "<details open ontoggle={run}>",
    "<input autofocus onfocus={run}>",
    "<select autofocus onfocus={run}>",
    "<textarea autofocus onfocus={run}>",
    "<video><source onerror={run}></video>",
    "<video src=x onerror={run}></video>",
    "<audio src=x onerror={run}></audio>",
    "<object data='javascript:{run}'></object>",
    "<embed src='javascript:{run}'>",
    "<iframe src='javascript:{run}'></iframe>",
    "<iframe srcdoc='<script>parent.{run}</script>'></iframe>",
    "<body onload={run}>",
    "<style onload={run}></style>",
    "<style>@import 'javascript:{run}';</style>",
    "<link rel=stylesheet href='javascript:{run}'>",
    "<meta http-equiv=refresh content='0;url=javascript:{run}'>",
    "<base href='javascript:{run}//'>",
    "<form action='javascript:{run}'><button>go</button></form>",
    "<button formaction='javascript:{run}'>go</button>",
    "<a href='javascript:{run}'>go</a>",
    "<a href='data:text/html,<script>{run}</script>'>go</a>",
    "<math><mtext><script>{run}</script></mtext></math>",
    "<math href='javascript:{run}'>go</math>",
    "<template><script>{run}</script></template>",
    "<noscript><p title='</noscript><img src=x onerror={run}>'>",
    "<marquee onstart={run}>x</marquee>",
    "<xmp><p title='</xmp><img src=x onerror={run}>'></xmp>",
    "<title><p title='</title><img src=x onerror={run}>'></title>",
    "<!--><img src=x onerror={run}>-->",
    "<![CDATA[<script>{run}</script>]]>",
    "[go](javascript:{run})",
    "![x](javascript:{run})",
    "[x]: javascript:{run}\n[x]",
    "<javascript:{run}>",
)
BREAKS = ("", '"', "'", ">", '">', "'>", "</textarea>", "</title>", "</script>", "-->", "</pre></td>", "]]>", "`")
DISGUISES = (
    lambda text: text,
    lambda text: text.replace("script", "ScRiPt"),
    lambda text: text.replace("<", "&lt;"),
    lambda text: text.replace("javascript:", "java\tscript:"),
    lambda text: text + "{{7*7}}{% raw %}${7*7}",
)


def strings() -> list[str]:
    made = (f"{start}{vector.format(run=RUN)}" for vector, start in product(VECTORS, BREAKS))
    return list(islice(dict.fromkeys(disguise(text) for disguise, text in product(DISGUISES, list(made))), 2000))


STRINGS = strings()


def deceptive_characters() -> list[str]:
    characters = map(chr, range(sys.maxunicode + 1))
    return [char for char in characters if not 0xD800 <= ord(char) <= 0xDFFF and is_unseen(char)]


@cache
def deceptive_sample() -> list[str]:
    deceptive = deceptive_characters()
    return [
        *(
            char
            for char in deceptive
            if unicodedata.category(char) in ("Cf", "Zs", "Zl", "Zp") or char in "\u115f\u1160\u2800\u3164\uffa0"
        ),
        *(char for char in deceptive if unicodedata.category(char) == "Cc" and char not in "\r\0"),
        *(char for char in deceptive if unicodedata.category(char) == "Mn"),
    ][:340]


class Shape(HTMLParser):
    """The tags of a page and the names of their attributes, in order: what text must never change."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, ...]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, *(name for name, _ in attrs)))


def parts(size: int) -> Iterator[list[str]]:
    for start in range(0, len(STRINGS), size):
        yield STRINGS[start : start + size]


def request(texts: list[str]) -> dict[str, Any]:
    """The strings as names, values and words of one request."""
    words = cycle(texts)
    values = {f"v{n}": text for n, text in enumerate(texts)} | {next(words)[:200]: n for n in range(len(texts) // 4)}
    return {
        "title": next(words)[:400],
        "type": "hostile",
        "actions": [{"name": next(words)[:400], "args": values}],
        "entity": {"type": next(words)[:400], "id": next(words)[:400]},
    }


@pytest.mark.promise("P11")
async def test_no_string_becomes_markup(desk: Desk) -> None:
    assert len(STRINGS) == len(set(STRINGS)) == 2000
    for texts in parts(250):
        hostile, harmless = await desk.ask(**request(texts)), await desk.ask(**request([f"x{n}" for n in range(250)]))
        for one in (hostile, harmless):
            comment = texts[0] if one is hostile else "plain"
            await desk.send(one["id"], "comments", comment=comment)
        shapes = [Shape(await _detail(desk, one["id"])).tags for one in (hostile, harmless)]
        assert shapes[0] == shapes[1]
        await desk.change("UPDATE items SET open = false, status = 'CANCELLED', resolution = 'withdrawn'")


async def _detail(desk: Desk, item_id: str) -> str:
    return (await desk.ana.get(f"/inbox/{item_id}", headers={"assent-part": "detail"})).text


def test_control_unescaped_they_change_the_page() -> None:
    assert sum(bool(Shape(f"<p>{text}</p>").tags[1:]) for text in STRINGS) > 1000


async def test_in_the_agents_words_only_harmless_markup_is_left() -> None:
    allowed = markdown._TAGS
    for text in STRINGS:
        for tag, *names in Shape(str(markdown.words(text))).tags:
            assert tag in allowed, text
            assert not [name for name in names if name.startswith("on") or name in ("style", "src", "srcdoc")], text


@pytest.mark.promise("P11")
async def test_in_a_browser_none_of_them_runs(server: Server, quiet_page: Page) -> None:
    await sign_in(quiet_page, server)
    for texts in (STRINGS[:1000], STRINGS[1000:]):
        item_id = ask(server, **(request(texts) | {"description": "\n\n".join(texts)[:19_000]}))
        await quiet_page.goto(f"{server.url}/inbox/{item_id}")
        await quiet_page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert await quiet_page.evaluate("window.ran") is None
        assert await quiet_page.locator("#detail :is(script, iframe, object, embed, img, svg:not(.icon))").count() == 0


async def test_control_in_a_browser_many_of_them_would_run(page: Page) -> None:
    await page.set_content(f"<div id=here></div>{''.join(STRINGS[:200])}")
    await page.wait_for_function("window.ran > 3")


@pytest.mark.promise("P11")
async def test_every_deceptive_character_can_be_seen(desk: Desk) -> None:
    sample = deceptive_sample()
    assert len(sample) == 340
    for start in range(0, 340, 85):
        chars = sample[start : start + 85]
        args = {f"k{n}": f"pay{char}pal" for n, char in enumerate(chars)}
        item = await desk.ask(title="Look closely", actions=[{"name": "pay", "args": args}])
        page = await _detail(desk, item["id"])
        unseen = [f"{ord(char):04X}" for char in chars if f"⟨U+{ord(char):04X}⟩" not in page]
        assert unseen == []


def test_in_titles_names_and_attributes_as_well() -> None:
    for char in deceptive_sample():
        code = f"⟨U+{ord(char):04X}⟩"
        assert code in shown(f"a{char}b")
        assert spelled(f"a{char}b") == f"a{code}b"
        assert char not in shown(f"a{char}b"), "the character itself is gone, with whatever it would do"


def test_control_escaped_alone_they_would_stay_hidden() -> None:
    for char in deceptive_sample():
        assert char in escape(f"a{char}b")


@pytest.mark.parametrize(
    "text", ["Überweisung an Müller", "付款给供应商", "תשלום", "دفع", "Zahlung 💸", "naïve café", "ﬁnance", "a\tb\nc"]
)
def test_what_people_write_is_left_as_it_is(text: str) -> None:
    assert "⟨U+" not in shown(text)

"""Every setting, command and error is documented, and the documentation matches the code."""

import re
from pathlib import Path

import pytest

from assent.errors import AssentError
from assent.settings import Settings, load
from assent.surfaces.cli.output import EXIT_CODES
from assent.surfaces.web.text import words
from tests.docs.documents import FILES, ROOT, anchors, links, read, rows, sections
from tests.docs.surface import commands, errors

COMMON_OPTIONS = {
    "--config",
    "--host",
    "--port",
    "--database",
    "--tenant",
    "--json",
    "--help",
    "--url",
    "--key",
    "--as",
    "--profile",
}


def described_settings() -> dict[str, list[str]]:
    return {row[0].strip("`"): row for row in rows(read("docs/settings.md")) if row[0].startswith("`")}


def described_errors() -> dict[str, list[str]]:
    return {row[0].strip("`"): row for row in rows(read("docs/errors.md")) if row[0].startswith("`")}


class TestSettings:
    def test_documented_names_match_the_code(self) -> None:
        assert described_settings().keys() == Settings.model_fields.keys()

    @pytest.mark.parametrize("name", Settings.model_fields)
    def test_documented_default_matches_the_code(self, name: str) -> None:
        told = described_settings()[name][2].strip("`")
        default = Settings.model_fields[name].get_default(call_default_factory=True)
        if told == "none":
            assert default in (None, ())
        else:
            assert getattr(load({name: told}, {}, folder=Path("/")).settings, name) == default

    @pytest.mark.parametrize("name", Settings.model_fields)
    def test_documented_example_sets_the_setting(self, name: str) -> None:
        variable, _, value = described_settings()[name][3].strip("`").partition("=")
        assert variable == f"ASSENT_{name.upper()}"
        loaded_settings = load({}, {variable: value}, folder=Path("/"))
        assert loaded_settings.origins[name] == variable
        assert getattr(loaded_settings.settings, name) != Settings.model_fields[name].default, (
            "an example shows something else"
        )


class TestCommands:
    def test_documented_names_match_the_code(self) -> None:
        described = {heading.strip("`").removeprefix("assent ") for heading in sections(read("docs/cli.md"))}
        assert described == commands().keys()

    @pytest.mark.parametrize("name", commands())
    def test_options_of_every_command_are_documented(self, name: str) -> None:
        text = sections(read("docs/cli.md"))[f"`assent {name}`"]
        shown = [parameter for parameter in commands()[name].params if not getattr(parameter, "hidden", False)]
        own = {option for parameter in shown for option in parameter.opts if option.startswith("--")}
        assert not [option for option in own - COMMON_OPTIONS if option not in text]

    def test_documented_exit_codes_match_the_code(self) -> None:
        told = {row[0] for row in rows(sections(read("docs/cli.md"), "##")["Exit codes"]) if row[0].isdigit()}
        assert told == {str(code) for code in EXIT_CODES.values()} | {"0", "130"}


class TestErrors:
    def test_documented_error_codes_and_statuses_match_the_code(self) -> None:
        told = {code: (row[1], row[2]) for code, row in described_errors().items()}
        assert told == {kind.code: (str(kind.status), str(_exit_code(kind))) for kind in errors()}


def _exit_code(kind: type[AssentError]) -> int:
    return next(code for known, code in EXIT_CODES.items() if issubclass(kind, known))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_link_inside_the_documentation_is_dead(file: Path) -> None:
    for link in links(file.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, fragment = link.partition("#")
        page = (file.parent / target).resolve() if target else file
        assert page.is_relative_to(ROOT), link
        assert page.exists(), f"{file.name} links to {link}, which is not there"
        if fragment:
            assert fragment in anchors(page.read_text(encoding="utf-8")), f"{file.name} links to {link}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            link_targets = (link.partition("#")[0] for link in links(page.read_text(encoding="utf-8")))
            waiting += [
                (page.parent / link).resolve() for link in link_targets if link.endswith(".md") and ":" not in link
            ]
    assert set(FILES) <= seen, sorted(str(file.relative_to(ROOT)) for file in set(FILES) - seen)


def test_the_readme_is_short_and_begins_with_the_two_commands() -> None:
    text = read("README.md")
    assert len(text.splitlines()) <= 200
    assert text.index("make demo") < text.index("make test") < 1500


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_pages_contain_no_local_paths(file: Path) -> None:
    assert not re.search(r"/(home|root|Users|work)/\w", file.read_text(encoding="utf-8"))


def test_documented_keyboard_shortcuts_match_the_web_inbox() -> None:
    told = re.findall(r"^\| `([^`]+)` \| (.+) \|$", read("docs/web.md"), re.MULTILINE)
    assert tuple(told) == words.KEYS


def test_every_picture_shows_an_existing_page() -> None:
    shown = {name for file in FILES for name in re.findall(r"images/([a-z-]+\.png)", file.read_text(encoding="utf-8"))}
    assert shown == {file.name for file in (ROOT / "docs" / "images").glob("*.png")}

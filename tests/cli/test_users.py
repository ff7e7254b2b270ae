"""`assent users` and `assent erase` on the database itself."""

import pytest

from tests.cli.command import EVERYWHERE
from tests.cli.conftest import Assent


def test_user_is_created_listed_and_changed(assent: Assent) -> None:
    made = assent("users", "create", "ana", "--role", "viewer", "--email", "ana@example.org", "--json").json
    assert (made["name"], made["role"], made["email"]) == ("ana", "viewer", "ana@example.org")
    assert assent("users", "set-role", "ana", "admin").out == "ana is now admin\n"
    assert assent("users", "disable", "ana").out == "disabled ana\n"
    (listed,) = assent("users", "list", "--json").json
    assert listed["role"] == "admin"
    assert listed["disabled_at"]
    assert assent("users", "enable", "ana").out == "enabled ana\n"
    assert assent("users", "list", "--json").json[0]["disabled_at"] is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("create", "ana"), 6),
        (("create", "two\nlines"), 2),
        (("set-role", "nobody", "admin"), 5),
        (("set-role", "ana", "king"), 2),
        (("disable", "nobody"), 5),
        (("login-link", "nobody"), 5),
    ],
)
def test_invalid_arguments_exit_with_error(assent: Assent, arguments: tuple[str, ...], code: int) -> None:
    assent("users", "create", "ana")
    result = assent("users", *arguments)
    assert (result.code, result.out) == (code, "")
    assert result.err


def test_login_link_prints_a_link_and_nothing_else(assent: Assent) -> None:
    assent("users", "create", "ana")
    assert assent("users", "login-link", "ana").out.startswith("http://127.0.0.1:2024/login#login_")
    link = assent("users", "login-link", "ana", "--url", "https://assent.example/").out
    assert link.startswith("https://assent.example/login#login_")
    assert link.count("\n") == 1


@pytest.mark.parametrize(
    ("host", "shown"), [(EVERYWHERE, "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]"), ("10.0.0.7", "10.0.0.7")]
)
def test_login_link_leads_to_where_the_server_listens(
    assent: Assent, monkeypatch: pytest.MonkeyPatch, host: str, shown: str
) -> None:
    monkeypatch.setenv("ASSENT_HOST", host)
    monkeypatch.setenv("ASSENT_PORT", "80")
    assent("users", "create", "ana")
    assert assent("users", "login-link", "ana").out.startswith(f"http://{shown}:80/login#login_")


def test_names_are_printed_without_markup(assent: Assent) -> None:
    """Nothing in a name is taken for markup of the terminal library, nor breaks its table."""
    for name in ("[red]ana", ":smile:"):
        assert assent("users", "create", name, "--email", "[/red]").code == 0
        assert name in assent("users", "list").out
        assert "[/red]" in assent("users", "list").out


@pytest.mark.promise("P9")
def test_erase_forgets_a_person_and_the_timeline_still_verifies(assent: Assent) -> None:
    assent("users", "create", "ana", "--email", "ana@example.org")
    result = assent("erase", "user:ana")
    assert (result.code, result.out) == (0, "erased 1 payload; the timeline still verifies\n")
    assert "ana" not in assent("users", "list").out.replace("erased-", "")
    assert "ana@example.org" not in assent("audit", "list", "--json").out
    assert assent("audit", "verify").code == 0


@pytest.mark.parametrize(("subject", "code"), [("ana", 2), ("user:", 2), ("user:nobody", 5), ("key:none", 0)])
def test_erase_of_an_invalid_subject_explains_the_format(assent: Assent, subject: str, code: int) -> None:
    assert assent("erase", subject).code == code


def test_groups_are_set_listed_and_cleared(assent: Assent) -> None:
    made = assent("users", "create", "ana", "--group", "ops", "--group", "finance", "--json").json
    assert made["groups"] == ["finance", "ops"]
    assert assent("users", "set-groups", "ana", "legal", "legal").out == "ana is now in legal\n"
    assert assent("users", "list", "--json").json[0]["groups"] == ["legal"]
    assert "legal" in assent("users", "list").out
    assert assent("users", "set-groups", "ana", "--none").out == "ana is now in no group\n"
    told = assent("audit", "list", "--kind", "user.groups_changed", "--json").json
    changes = [one["payload"] for one in told]
    assert changes == ['{"from":["legal"],"to":[]}', '{"from":["finance","ops"],"to":["legal"]}']


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("ana",), 2), (("ana", "x", "--none"), 2), (("nobody", "x"), 5), (("ana", "two\nlines"), 2), (("ana", "a/b"), 2)],
)
def test_invalid_group_names_exit_with_error(assent: Assent, arguments: tuple[str, ...], code: int) -> None:
    assent("users", "create", "ana")
    assert assent("users", "set-groups", *arguments).code == code
    assert assent("audit", "list", "--kind", "user.groups_changed", "--json").json == []

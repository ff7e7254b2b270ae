"""`assent keys` on the database itself."""

import pytest

from tests.cli.conftest import Assent


def test_create_prints_the_secret_alone_on_standard_output(assent: Assent) -> None:
    result = assent("keys", "create", "bot")
    assert result.code == 0
    assert result.out.startswith("asnt_agent_")
    assert result.out.count("\n") == 1, "so that KEY=$(assent keys create bot) works"
    assert "shown this once" in result.err


def test_key_is_created_listed_and_revoked(assent: Assent) -> None:
    new = assent(
        "keys", "create", "bot", "--kind", "service", "--scope", "audit:read", "--expires-in", "90d", "--json"
    ).json
    assert (new["kind"], new["scopes"]) == ("service", ["audit:read"])
    assert new["secret"].startswith("asnt_service_")
    assert new["expires_at"] > new["created_at"]
    assert assent("keys", "revoke", new["id"]).out == f"revoked bot ({new['id']})\n"
    (listed,) = assent("keys", "list", "--json").json
    assert listed["revoked_at"]
    assert "secret" not in listed
    assert new["id"] in assent("keys", "list").out


def test_a_further_key_belongs_to_the_same_agent(assent: Assent) -> None:
    first = assent("keys", "create", "bot", "--json").json
    further = assent("keys", "create", "--agent", "bot", "--json").json
    assert (further["agent"], further["name"]) == (first["agent"], "bot")
    assert assent("keys", "create").code == 2
    assert assent("keys", "create", "--agent", "nobody").code == 5


def test_key_expires_after_the_default_lifetime_unless_given(assent: Assent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_KEY_LIFETIME", "2d")
    made = assent("keys", "create", "bot", "--json").json
    assert made["expires_at"] is not None
    assert made["state"] == "expiring"
    forever = assent("keys", "create", "bot", "--no-expiry", "--json").json
    assert (forever["expires_at"], forever["state"]) == (None, "active")
    assert assent("keys", "create", "bot", "--no-expiry", "--expires-in", "1d").code == 2
    assert "expiring" in assent("keys", "list").out


def test_rotated_key_is_replaced_after_the_overlap(assent: Assent) -> None:
    old = assent("keys", "create", "bot", "--no-expiry", "--json").json
    rotated = assent("keys", "rotate", old["id"], "--overlap", "1h")
    assert (rotated.code, rotated.out.startswith("asnt_agent_"), rotated.out.count("\n")) == (0, True, 1)
    new, before = assent("keys", "list", "--json").json
    assert (new["agent"], new["name"]) == (old["agent"], "bot")
    assert before["expires_at"] is not None
    assert assent("keys", "rotate", "nobody").code == 5
    assert assent("keys", "rotate", new["id"], "--overlap", "31d").code == 2


def test_an_empty_list_says_what_to_do_next(assent: Assent) -> None:
    assert "assent keys create" in assent("keys", "list").out
    assert assent("keys", "list", "--json").json == []


def test_keys_of_tenants_are_separate(assent: Assent) -> None:
    new = assent("keys", "create", "bot", "--tenant", "acme", "--json").json
    assert assent("keys", "list", "--json").json == []
    assert assent("keys", "revoke", new["id"]).code == 5
    assert assent("keys", "revoke", new["id"], "--tenant", "acme").code == 0


@pytest.mark.promise("P6")
@pytest.mark.parametrize("kind", ["agent", "service"])
def test_program_key_with_decide_is_refused(assent: Assent, kind: str) -> None:
    result = assent("keys", "create", "bot", "--kind", kind, "--scope", "decide")
    assert (result.code, result.err) == (4, f"assent: a key of kind {kind} can never hold decide\n")


def test_reviewer_key_without_a_known_user_is_refused(assent: Assent) -> None:
    assert assent("keys", "create", "laptop", "--kind", "reviewer").code == 2
    assert assent("keys", "create", "laptop", "--kind", "reviewer", "--user", "ana").code == 5
    assent("users", "create", "ana")
    assert assent("keys", "create", "laptop", "--kind", "reviewer", "--user", "ana", "--json").json["user"] == "ana"


@pytest.mark.parametrize("lifetime", ["tomorrow", "0s", "-1d", "99999999999d", "999999d"])
def test_invalid_lifetime_exits_with_error(assent: Assent, lifetime: str) -> None:
    result = assent("keys", "create", "bot", f"--expires-in={lifetime}")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("assent: ")

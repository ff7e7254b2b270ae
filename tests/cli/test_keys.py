"""`assent keys` on the database itself."""

import pytest

from tests.cli.conftest import Assent


def test_create_prints_the_secret_alone_on_standard_output(assent: Assent) -> None:
    result = assent("keys", "create", "bot")
    assert result.code == 0
    assert result.out.startswith("asnt_agent_")
    assert result.out.count("\n") == 1, "so that KEY=$(assent keys create bot) works"
    assert "shown this once" in result.err


def test_create_list_revoke(assent: Assent) -> None:
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


def test_an_empty_list_says_what_to_do_next(assent: Assent) -> None:
    assert "assent keys create" in assent("keys", "list").out
    assert assent("keys", "list", "--json").json == []


def test_tenants_stay_apart(assent: Assent) -> None:
    new = assent("keys", "create", "bot", "--tenant", "acme", "--json").json
    assert assent("keys", "list", "--json").json == []
    assert assent("keys", "revoke", new["id"]).code == 5
    assert assent("keys", "revoke", new["id"], "--tenant", "acme").code == 0


@pytest.mark.promise("P6")
@pytest.mark.parametrize("kind", ["agent", "service"])
def test_no_program_is_given_the_right_to_decide(assent: Assent, kind: str) -> None:
    result = assent("keys", "create", "bot", "--kind", kind, "--scope", "decide")
    assert (result.code, result.err) == (4, f"assent: a key of kind {kind} can never hold decide\n")


def test_a_persons_key_needs_its_person(assent: Assent) -> None:
    assert assent("keys", "create", "laptop", "--kind", "reviewer").code == 2
    assert assent("keys", "create", "laptop", "--kind", "reviewer", "--user", "ana").code == 5
    assent("users", "create", "ana")
    assert assent("keys", "create", "laptop", "--kind", "reviewer", "--user", "ana", "--json").json["user"] == "ana"


@pytest.mark.parametrize("lifetime", ["tomorrow", "0s", "-1d", "99999999999d", "999999d"])
def test_a_lifetime_that_is_none(assent: Assent, lifetime: str) -> None:
    result = assent("keys", "create", "bot", f"--expires-in={lifetime}")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("assent: ")

"""Permissions: scopes, roles and the maximum scopes of a program's key."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assent.errors import Forbidden, Invalid
from assent.identity.access import is_key, require_person
from assent.identity.model.access import (
    DEFAULT_SCOPES,
    ROLE_SCOPES,
    SCOPE_CEILING,
    Kind,
    Principal,
    Role,
    Scope,
    local_agent,
    operator,
    parse_scopes,
)
from assent.identity.model.keys import ApiKey
from assent.kernel.ids import new_token

NOW = datetime(2026, 11, 15, tzinfo=UTC)
PROGRAMS = (Kind.AGENT, Kind.SERVICE)


def key(kind: Kind = Kind.AGENT, **changes: object) -> ApiKey:
    fields = {
        "id": "k",
        "tenant": "default",
        "kind": kind,
        "name": "key",
        "user_id": "u" if kind is Kind.REVIEWER else None,
        "owner": "ana" if kind is Kind.REVIEWER else None,
        "scopes": DEFAULT_SCOPES[kind],
        "created_at": NOW,
        "expires_at": None,
        "revoked_at": None,
        "last_used_at": None,
        "role": Role.REVIEWER if kind is Kind.REVIEWER else None,
        "owner_disabled": False,
        "read_at": NOW,
        "principal_id": "u" if kind is Kind.REVIEWER else "k",
    }
    return ApiKey(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.promise("P6")
@given(kind=st.sampled_from(PROGRAMS), names=st.sets(st.sampled_from(list(Scope))))
def test_no_choice_of_scopes_gives_a_program_the_right_to_decide(kind: Kind, names: set[Scope]) -> None:
    beyond = names - SCOPE_CEILING[kind]
    if not beyond:
        assert Scope.DECIDE not in parse_scopes(kind, names)
        return
    with pytest.raises(Forbidden) as refused:
        parse_scopes(kind, names)
    assert set(refused.value.extra["missing"]) == beyond


@pytest.mark.promise("P6")
def test_only_people_can_hold_the_right_to_decide() -> None:
    assert [kind for kind in Kind if Scope.DECIDE in SCOPE_CEILING[kind]] == [Kind.REVIEWER]
    assert Scope.DECIDE not in local_agent().scopes | operator().scopes
    assert Scope.ADMIN not in SCOPE_CEILING[Kind.AGENT]


def test_each_role_has_what_the_one_below_has() -> None:
    assert ROLE_SCOPES[Role.VIEWER] < ROLE_SCOPES[Role.REVIEWER] < ROLE_SCOPES[Role.ADMIN]
    assert Scope.DECIDE not in ROLE_SCOPES[Role.VIEWER]


def test_no_scope_implies_another() -> None:
    admin = Principal(Kind.SERVICE, "s", "s", "default", frozenset({Scope.ADMIN}))
    for scope in set(Scope) - {Scope.ADMIN}:
        with pytest.raises(Forbidden) as refused:
            admin.require(scope)
        assert refused.value.extra == {"missing": [scope.value]}


def test_unknown_scope_is_named_with_the_known_ones() -> None:
    with pytest.raises(Invalid, match="'aprove'") as refused:
        parse_scopes(Kind.AGENT, ["aprove"])
    assert refused.value.hint
    assert all(scope in refused.value.hint for scope in Scope)


@pytest.mark.parametrize("role", list(Role))
def test_a_persons_key_has_what_both_the_key_and_the_role_allow(role: Role) -> None:
    assert key(Kind.REVIEWER, role=role).principal().scopes == ROLE_SCOPES[role]
    narrow = key(Kind.REVIEWER, role=role, scopes=frozenset({Scope.ITEMS_READ, Scope.ADMIN})).principal()
    assert narrow.scopes == ROLE_SCOPES[role] & {Scope.ITEMS_READ, Scope.ADMIN}
    assert (narrow.id, narrow.via) == ("u", "k")


@pytest.mark.parametrize(
    ("changes", "usable"),
    [
        ({}, True),
        ({"expires_at": NOW + timedelta(microseconds=1)}, True),
        ({"expires_at": NOW}, False),
        ({"revoked_at": NOW - timedelta(days=1)}, False),
        ({"owner_disabled": True}, False),
    ],
)
def test_key_is_usable_unless_expired_or_revoked(changes: dict[str, object], usable: bool) -> None:
    assert key(**changes).usable(NOW) is usable  # type: ignore[arg-type]


@pytest.mark.promise("P6")
def test_only_people_and_the_holder_of_the_database_make_credentials_of_people() -> None:
    service = Principal(Kind.SERVICE, "0197", "operator", "default", SCOPE_CEILING[Kind.SERVICE])
    person = Principal(Kind.REVIEWER, "u", "ana", "default", ROLE_SCOPES[Role.ADMIN])
    for program in (service, local_agent()):
        with pytest.raises(Forbidden):
            require_person(program)
    for allowed in (person, operator(), operator("acme")):
        require_person(allowed)


def test_tokens_are_long_unique_and_prefixed_by_kind() -> None:
    tokens = {new_token("asnt_agent") for _ in range(100)}
    assert len(tokens) == 100
    assert all(is_key(token) and len(token.removeprefix("asnt_agent_")) == 43 for token in tokens)
    assert not is_key(new_token("login"))
    assert not is_key("lsv2_pt_123")


def test_the_timeline_names_people_by_id_so_that_names_can_be_erased() -> None:
    assert key(Kind.REVIEWER).principal().actor == "reviewer:u"

"""Secrets in arguments: found by name, by schema and by policy, masked wherever they stand, and nothing else is."""

import json
import re
import time
from typing import Any

import pytest

from assent.review.model.secrets import MASK, Cover, Text, cover_of, is_secret_name, marked_in, masks_in, shown_schema

pytestmark = pytest.mark.promise("P10")

CANARY = "h'u\"n\\t\ner2 ünï"


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    "name",
    [
        *("password", "Passwd", "PIN", "secret", "client_secret", "clientSecret", "token", "access-token"),
        *("refresh_token", "api_key", "apiKey", "API-KEY", "private_key", "Authorization", "credential"),
        *("credentials", "ssn", "card_number", "cardNumber", "cvv"),
    ],
)
def test_a_name_of_the_list_is_secret_in_any_case_and_spelling(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["tokens", "max_tokens", "pin_code", "opinion", "secretary", "key", "passwords", ""])
def test_a_name_that_only_resembles_one_is_not_secret(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("found", "paths"),
    [
        (None, set()),
        ("odd", set()),
        (schema(a={"type": "string"}), set()),
        (schema(a={"writeOnly": True}, b={"format": "password"}, c={"writeOnly": "yes"}), {("a",), ("b",)}),
        (schema(a={"x-secret": True}, b={"x-secret": "no"}), {("a",)}),
        (schema(card=schema(number={"format": "password"})), {("card", "number")}),
        (schema(card={"writeOnly": True, **schema(number={"writeOnly": True})}), {("card",)}),
        (schema(keys={"type": "array", "items": schema(secret={"writeOnly": True})}), {("keys", "secret")}),
        (schema(keys={"type": "array", "items": {"format": "password"}}), {("keys",)}),
        (schema(a={"anyOf": [{"writeOnly": True}, {"type": "null"}]}), {("a",)}),
        ({**schema(a={"$ref": "#/$defs/A"}), "$defs": {"A": schema(b={"writeOnly": True})}}, {("a", "b")}),
        (schema(a={"additionalProperties": {"writeOnly": True}}), {("a", "*")}),
        ({"properties": ["odd"]}, set()),
        ({"writeOnly": True}, set()),
    ],
)
def test_fields_marked_secret_in_a_schema_are_secret(found: Any, paths: set[Any]) -> None:
    assert marked_in(found) == paths


def test_recursive_schema_is_read_without_looping() -> None:
    node = schema(left={"$ref": "#/$defs/N"}, right={"$ref": "#/$defs/N"}, code={"writeOnly": True})
    marked_paths = marked_in({"$ref": "#/$defs/N", "$defs": {"N": node}})
    assert {("code",), ("left", "code"), ("right", "code")} <= marked_paths
    assert ("*",) not in marked_paths


def test_a_schema_too_large_to_read_marks_everything() -> None:
    wide = schema(**{f"a{n}": {"type": "string"} for n in range(6000)})
    assert cover_of(wide).masked({"x": 1, "y": {"z": 2}}) == {"x": MASK, "y": MASK}


@pytest.mark.parametrize(
    ("value", "cover", "shown"),
    [
        ({"a": 1, "b": 2}, cover_of(None, ["a"]), {"a": MASK, "b": 2}),
        ({"a": {"b": [1, 2]}}, cover_of(None, ["a.b"]), {"a": {"b": MASK}}),
        ({"a": [{"b": 1, "c": 2}, {"b": 3}, 4]}, cover_of(None, ["a.b"]), {"a": [{"b": MASK, "c": 2}, {"b": MASK}, 4]}),
        ({"a": None}, cover_of(None, ["a"]), {"a": MASK}),
        ({"a": 1}, cover_of(None, ["b"]), {"a": 1}),
        ({"a": "text"}, cover_of(None, ["a.b"]), {"a": "text"}),
        ("text", cover_of(None, ["a"]), "text"),
        ({"deep": [{"Api-Key": 1, "n": 2}]}, Cover(), {"deep": [{"Api-Key": MASK, "n": 2}]}),
        ({"token": 1, "in": {"token": 2}}, cover_of(None, (), ["token"]), {"token": 1, "in": {"token": MASK}}),
        ({"token": 1}, cover_of(None, ["token"], ["token"]), {"token": MASK}),
        ({"a": 1}, cover_of(schema(a={"writeOnly": True}), (), ["a"]), {"a": 1}),
        ({"credentials": {"user": "u"}}, Cover(), {"credentials": MASK}),
        ('{"password": "half', Cover(), MASK),
        ({"a": ['{"password": "half']}, Cover(), {"a": [MASK]}),
        ({"a": ' {"pin" :1,\n"n": 1.50}'}, Cover(), {"a": f' {{"pin" :"{MASK}",\n"n": 1.50}}'}),
        ({"a": '[{"pin": 1, "pin": {"b": 2}}, "x"]'}, Cover(), {"a": f'[{{"pin": "{MASK}", "pin": "{MASK}"}}, "x"]'}),
        ({"a": r'{"\u0070in": 1}'}, Cover(), {"a": rf'{{"\u0070in": "{MASK}"}}'}),
        ({"a": '{"b": 1, "pin": 2}'}, cover_of(None, ["a.b"], ["a.pin"]), {"a": f'{{"b": "{MASK}", "pin": 2}}'}),
        ({"a": '{"b": "{\\"pin\\": 1}"}'}, Cover(), {"a": f'{{"b": "{{\\"pin\\": \\"{MASK}\\"}}"}}'}),
        ({"a": '{"note": "pin"}', "b": "[pin]", "c": "{}", "d": " "}, Cover(), None),
        ('{"note": "half', Cover(), '{"note": "half'),
    ],
)
def test_the_mask_covers_the_secret_and_nothing_else(value: Any, cover: Cover, shown: Any) -> None:
    before = repr(value)
    assert cover.masked(value) == (value if shown is None else shown)
    assert repr(value) == before, "the original is untouched"


@pytest.mark.parametrize(
    "written",
    [
        *(
            CANARY,
            repr(CANARY),
            repr({"pin": CANARY}),
            json.dumps(CANARY),
            json.dumps({"a": CANARY}, ensure_ascii=False),
        ),
        *(json.dumps(json.dumps({"a": CANARY})), repr(json.dumps(CANARY)), repr(repr(CANARY))),
    ],
)
def test_a_text_that_repeats_a_secret_in_any_spelling_has_a_mask_there(written: str) -> None:
    words = Text([CANARY])
    shown = words.without(f"before {written} after")
    assert "er2" not in shown
    assert MASK in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


def test_a_text_that_is_cut_off_within_a_secret_shows_no_part_of_it() -> None:
    assert Text(["abcdefgh"]).without("the key is abcde…") == "the key is …"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("pin 1234.", f"pin {MASK}."), ("id 91234", "id 91234"), ("x1234", "x1234"), ("1234", MASK)],
)
def test_a_short_number_is_masked_only_where_it_stands_alone(text: str, shown: str) -> None:
    assert Text(["1234"]).without(text) == shown


def test_longest_of_several_secrets_is_masked_first() -> None:
    assert Text(["abc", "abcd"]).without("abcd abc True None") == f"{MASK} {MASK} True None"


def test_empty_and_boolean_values_are_no_secret_texts() -> None:
    value = {"pin": ["x", None, True, "", {"deep": 77}]}
    assert Cover().texts(value) == {"x", "77"}


def test_secrets_are_found_in_json_in_a_text_up_to_a_depth() -> None:
    inner = json.dumps({"pin": "4711-x"})
    for _ in range(3):
        assert Cover().texts({"body": inner}) == {"4711-x"}
        inner = json.dumps([inner])
    deep = "[" * 100_000
    assert Cover().masked({"body": deep}) == {"body": deep}
    assert Cover().masked({"body": deep + '"pin": 1'}) == {"body": MASK}


@pytest.mark.parametrize(
    ("value", "original", "kept"),
    [
        ({"pin": MASK, "to": "b"}, {"pin": 1, "to": "a"}, {"pin": 1, "to": "b"}),
        ({"pin": 2, "to": "b"}, {"pin": 1, "to": "a"}, {"pin": 2, "to": "b"}),
        ({"a": f'{{"pin": "{MASK}"}}'}, {"a": '{"pin": 1}'}, {"a": '{"pin": 1}'}),
        ({"a": f'{{"pin": "{MASK}" }}'}, {"a": '{"pin": 1}'}, {"a": f'{{"pin": "{MASK}" }}'}),
        ({"pin": MASK, "to": MASK}, {"to": "a"}, {"pin": MASK, "to": MASK}),
        ({"all": [{"pin": MASK, "u": "b"}]}, {"all": [{"pin": 1, "u": "a"}, {"pin": 2, "u": "b"}]}, None),
        ({"all": [{"pin": MASK, "u": "c"}]}, {"all": [{"pin": 1, "u": "a"}]}, {"all": [{"pin": MASK, "u": "c"}]}),
    ],
)
def test_mask_is_replaced_by_the_secret_of_its_own_path_only(value: Any, original: Any, kept: Any) -> None:
    assert Cover().kept(value, original) == (kept or {"all": [{"pin": 2, "u": "b"}]})


def test_masks_are_found_by_their_path() -> None:
    value = {"a": [1, {"b": MASK}], "c": f"Bearer {MASK}"}
    assert list(masks_in(value, "args")) == ["args.a[1].b", "args.c"]
    assert list(masks_in(value, "args", whole=True)) == ["args.a[1].b"]


def test_a_schema_is_shown_without_the_values_of_its_secrets() -> None:
    given = schema(api_key={"type": "string", "default": "sk-1"}, n={"default": 1}, a={"writeOnly": True, "const": 7})
    shown = shown_schema(given)["properties"]
    assert shown == {
        "api_key": {"type": "string", "default": MASK},
        "n": {"default": 1},
        "a": {"writeOnly": True, "const": MASK},
    }


def work(text: str, secrets: list[str]) -> float:
    words = Text(secrets)
    words.limit(1e9)
    words.without(text)
    return 1e9 - words._left


@pytest.mark.parametrize("text", ["a" * 10_000, "atoken1 " * 1_250, "lorem a ipsum " * 700])
def test_the_work_does_not_grow_with_the_number_of_secrets(text: str) -> None:
    few, many = ([f"a{number:06}" for number in range(count)] for count in (10, 10_000))
    assert work(text, many) <= 2 * work(text, few) + 100


def test_control_one_expression_for_all_secrets_takes_a_multiple_of_the_time() -> None:
    secrets, text = [f"a{number % 10}{number:06}" for number in range(3_000)], "a" * 20_000
    words, expression = Text(secrets), re.compile("|".join(secrets))
    started = time.process_time()
    words.without(text)
    taken, started = time.process_time() - started, time.process_time()
    expression.sub(MASK, text)
    assert time.process_time() - started > 5 * taken


@pytest.mark.parametrize(
    "secrets",
    [
        ["a" * length + "b" for length in range(5, 1_000)],
        ["a" * 50_000 + "b"],
        ["ab" * 3_000, *("ab" * length for length in range(2, 500))],
    ],
)
def test_text_that_takes_too_long_is_masked_completely(secrets: list[str]) -> None:
    text = (secrets[0][:1] + secrets[0][1:2]) * 50_000
    assert Text(secrets).without(text) == MASK
    assert work(text, secrets) <= 6 * len(text) + 1_000


def test_after_the_work_limit_every_text_is_masked_completely() -> None:
    words = Text(["a secret"])
    words.limit(1_000)
    assert words.without("not a secret") == f"not {MASK}"
    words.add(f"another{number}" for number in range(1_000))
    assert (words.without("harmless"), words.safe("harmless")) == (MASK, "")


def test_secrets_that_overlap_leave_no_part_of_one_another() -> None:
    assert Text(["abcdef", "defghi"]).without("x abcdefghi y") == f"x {MASK} y"


def test_secrets_learnt_one_by_one_are_masked_as_if_they_were_learnt_at_once() -> None:
    secrets = ["hunter2", CANARY, "1234", "x", "abcd\nefgh"]
    text = " ".join([*secrets, *map(repr, secrets), "hunter"])
    words = Text()
    for secret in secrets:
        words.add([secret])
    assert words.without(text) == Text(secrets).without(text)
    assert words.safe(text) == Text(secrets).safe(text) == text.removesuffix("hunter")


def test_a_secret_in_a_url_is_masked_whatever_its_letters() -> None:
    assert Text(["ünï&x"]).without("https://x.org/?key=%C3%BCn%C3%AF%26x&a=1") == f"https://x.org/?key={MASK}&a=1"


def test_schema_with_many_patterns_is_matched_in_one_pass() -> None:
    marked = {"additionalProperties": schema(x={"writeOnly": True})}
    cover = cover_of(schema(**{f"p{number}": marked for number in range(1_500)}))
    assert cover.masked({"p7": {"any": {"x": 1}}, "q": {"any": {"x": 1}}}) == {
        "p7": {"any": {"x": MASK}},
        "q": {"any": {"x": 1}},
    }
    assert sum(map(len, cover._patterns.values())) == 1


def test_schema_with_too_many_pattern_shapes_marks_everything() -> None:
    nested: dict[str, Any] = {"writeOnly": True}
    for _ in range(7):
        nested = {"properties": {"a": nested}, "additionalProperties": nested}
    assert cover_of(nested).masked({"b": 1}) == {"b": MASK}


def test_a_list_of_thousands_of_masks_gets_its_secrets_back() -> None:
    original = [{"id": number, "pin": number * 7} for number in range(3_000)]
    edited = [{"id": float(number), "pin": MASK} for number in range(3_000)]
    started = time.process_time()
    assert Cover().kept({"all": edited}, {"all": original}) == {"all": original}
    assert time.process_time() - started < 2

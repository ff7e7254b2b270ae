"""`assent audit`: read the timeline, prove that it is whole, take it elsewhere."""

import json
import sqlite3
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.cli.conftest import Assent


@pytest.fixture
def told(assent: Assent) -> Assent:
    """A timeline with a few events in two tenants."""
    for name in ("ana", "bob", "eve"):
        assent("users", "create", name)
    assent("keys", "create", "bot", "--tenant", "acme")
    return assent


def change(folder: Path, statement: str) -> None:
    with sqlite3.connect(folder / ".assent" / "assent.db") as connection:
        connection.execute(statement)


def test_list_filters_events_by_kind_tenant_and_limit(told: Assent) -> None:
    rows = told("audit", "list", "--json").json
    assert [row["seq"] for row in rows] == [3, 2, 1]
    assert {row["kind"] for row in rows} == {"user.created"}
    assert len(told("audit", "list", "--limit", "1", "--json").json) == 1
    assert told("audit", "list", "--kind", "key.created", "--json").json == []
    assert len(told("audit", "list", "--kind", "key.created", "--tenant", "acme", "--json").json) == 1
    assert "user.created" in told("audit", "list").out
    assert told("audit", "list", "--actor", "nobody").out == "No events.\n"


@pytest.mark.promise("P9")
def test_verify_reports_every_tenant_as_ok(told: Assent) -> None:
    result = told("audit", "verify")
    assert result.code == 0
    assert [line.split(",")[0] for line in result.out.splitlines()] == ["acme: ok", "default: ok"]
    assert all(verdict["ok"] for verdict in told("audit", "verify", "--json").json)


@pytest.mark.promise("P9")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET actor = 'reviewer:eve' WHERE seq = 2 AND tenant_id = 'default'",
        "DELETE FROM events WHERE seq = 3 AND tenant_id = 'default'",
        "UPDATE event_payloads SET payload = '{}' WHERE seq = 1 AND tenant_id = 'default'",
    ],
)
def test_verify_of_a_changed_event_exits_with_8(told: Assent, folder: Path, statement: str) -> None:
    change(folder, statement)
    result = told("audit", "verify")
    assert result.code == 8
    assert "default: broken" in result.out
    assert "acme: ok" in result.out
    assert result.err.startswith("assent: the timeline is broken in ")
    verdicts = told("audit", "verify", "--json")
    assert verdicts.code == 8
    assert [(one["tenant"], one["ok"]) for one in verdicts.json] == [("acme", True), ("default", False)]


@pytest.mark.promise("P9")
def test_export_is_verified_without_the_database(told: Assent, folder: Path) -> None:
    result = told("audit", "export", "--out", "timeline.jsonl")
    assert (folder / "timeline.jsonl").stat().st_mode & 0o777 == 0o600
    assert result.out == "3 events written to timeline.jsonl\n"
    assert told("audit", "export").out == (folder / "timeline.jsonl").read_text()
    (folder / ".assent" / "assent.db").unlink()
    assert told("audit", "verify", "--file", "timeline.jsonl").code == 0
    lines = (folder / "timeline.jsonl").read_text().splitlines()
    (folder / "cut.jsonl").write_text("\n".join([*lines[:1], *lines[2:]]))
    assert told("audit", "verify", "--file", "cut.jsonl").code == 8
    (folder / "unfinished.jsonl").write_text("\n".join(lines[:-1]))
    assert told("audit", "verify", "--file", "unfinished.jsonl").code == 2


@pytest.mark.promise("P9")
def test_a_head_kept_elsewhere_shows_that_the_end_was_cut_off(told: Assent, folder: Path) -> None:
    told("audit", "export", "--out", "before.jsonl")
    head = json.loads((folder / "before.jsonl").read_text().splitlines()[-1])["head"]
    kept = f"{head['seq']}:{head['hash']}"
    assert told("audit", "verify", "--tenant", "default", "--head", kept).code == 0
    assert told("audit", "verify", "--file", "before.jsonl", "--head", kept).code == 0
    other = f"{head['seq']}:{'0' * 64}"
    assert told("audit", "verify", "--file", "before.jsonl", "--head", other).code == 8
    assert told("audit", "verify", "--tenant", "default", "--head", other).code == 8


def test_a_head_belongs_to_one_tenant(told: Assent) -> None:
    result = told("audit", "verify", "--head", f"1:{'0' * 64}")
    assert (result.code, result.err.splitlines()[0]) == (2, "assent: a head belongs to one tenant")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("verify", "--head", "nonsense"), 2),
        (("verify", "--file", "absent.jsonl"), 5),
        (("list", "--limit", "0"), 2),
        (("export", "--out", "absent/folder/x"), 3),
    ],
)
def test_invalid_arguments_exit_with_error(told: Assent, arguments: tuple[str, ...], code: int) -> None:
    result = told("audit", *arguments)
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("assent: ")


def test_verify_without_events_reports_none(assent: Assent) -> None:
    assert assent("audit", "verify").out == "no events yet\n"


@pytest.mark.promise("P9")
def test_a_rewritten_chain_is_found_by_a_signed_head_and_the_public_key_alone(
    told: Assent, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSENT_SECRET_KEY", "0123456789abcdef0123456789abcdef")
    heads, pem, export = tmp_path / "heads.jsonl", tmp_path / "audit.pem", tmp_path / "export.jsonl"
    heads.write_text(told("audit", "head").out)
    assert told("audit", "public-key", "--out", str(pem)).code == 0
    assert {json.loads(line)["tenant"] for line in heads.read_text().splitlines()} == {"acme", "default"}
    assert told("audit", "export", "--out", str(export)).code == 0
    monkeypatch.delenv("ASSENT_SECRET_KEY")
    offline = ["--heads", str(heads), "--public-key", str(pem)]
    verified = told("audit", "verify", *offline)
    assert (verified.code, verified.out.count("compared with 1 signed heads")) == (0, 2)
    assert told("audit", "verify", "--file", str(export), *offline).code == 0
    assert told("audit", "verify", "--heads", str(heads)).code == 5, "no key to check them with"
    for table in ("events", "event_payloads", "event_heads"):
        change(folder, f"DELETE FROM {table} WHERE tenant_id = 'default'")
    assert told("audit", "verify").code == 0, "the control: the chain alone says nothing"
    assert told("audit", "verify", *offline).code == 8
    forged = tmp_path / "forged.jsonl"
    lines = export.read_text().splitlines()
    end = json.loads(lines[-1])["head"]
    forged.write_text(
        json.dumps({"head": {name: end[name] for name in ("tenant",)} | {"seq": 0, "hash": "0" * 64}}) + "\n"
    )
    assert told("audit", "verify", "--file", str(forged)).code == 0
    assert told("audit", "verify", "--file", str(forged), "--public-key", str(pem)).code == 8


def test_configured_signing_key_is_used(told: Assent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = Ed25519PrivateKey.generate()
    file = tmp_path / "audit.pem"
    file.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    file.chmod(0o600)
    monkeypatch.setenv("ASSENT_AUDIT_KEY", str(file))
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert told("audit", "public-key").out == public.decode()
    file.write_text("nonsense")
    refused = told("audit", "public-key")
    assert (refused.code, "not an Ed25519 private key" in refused.err) == (3, True)


@pytest.mark.parametrize("content", ["", "nonsense\n", "{}\n"])
def test_a_file_without_any_signed_head_is_refused(told: Assent, tmp_path: Path, content: str) -> None:
    heads = tmp_path / "heads"
    heads.write_text(content)
    told("audit", "head")
    pem = tmp_path / "key.pem"
    pem.write_text("nonsense")
    assert told("audit", "verify", "--heads", str(heads), "--public-key", str(pem)).code == 2
    assert told("audit", "verify", "--heads", str(tmp_path / "missing"), "--public-key", str(pem)).code in (2, 5)

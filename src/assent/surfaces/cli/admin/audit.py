"""`assent audit` and `assent erase`: list, verify and export the timeline, and erase payloads."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assent import audit_key
from assent.app import Services
from assent.audit.service import Heads, Verdict, read_heads, verify_export
from assent.errors import AuditBroken, Invalid, NotFound
from assent.identity.model.access import Principal, operator
from assent.kernel.events import Entry
from assent.kernel.timeline import Head, SignedHead
from assent.surfaces.cli import output
from assent.surfaces.cli.options import TENANT, AsJson, Config, Database, Tenant, run_beside, settings

if TYPE_CHECKING:
    from assent.audit.signatures import AuditKey, PublicKeys

Whose = Annotated[str | None, typer.Option(help="The tenant; all tenants by default.")]
_COLUMNS = ["seq", "at", "kind", "actor", "subject", "payload"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(list_events)
    app.command()(verify)
    app.command()(export)
    app.command()(head)
    app.command("public-key")(public_key)
    return app


def add_erase_to(app: typer.Typer) -> None:
    app.command()(erase)


def list_events(
    subject: Annotated[str | None, typer.Option(help="Only events about this, such as key:ID.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only events of this kind.")] = None,
    actor: Annotated[str | None, typer.Option(help="Only events by this principal.")] = None,
    text: Annotated[str | None, typer.Option(help="Only events whose payload contains this.")] = None,
    since: Annotated[datetime | None, typer.Option(help="Only events from this time on, UTC.")] = None,
    until: Annotated[datetime | None, typer.Option(help="Only events before this time, UTC.")] = None,
    limit: Annotated[int, typer.Option(help="The maximum number.")] = 50,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """List events, newest first."""

    async def use(services: Services, caller: Principal) -> list[Entry]:
        begin, end = (at.replace(tzinfo=UTC) if at else None for at in (since, until))
        page = await services.audit.search(
            caller, subject=subject, kind=kind, actor=actor, since=begin, until=end, text=text, limit=limit
        )
        return page.items

    rows = [_row(entry) for entry in run_beside(database, config, tenant, use)]
    if as_json:
        return output.emit(rows)
    output.table(rows, _COLUMNS, empty="No events.")


def verify(
    file: Annotated[Path | None, typer.Option(help="Check an export instead of the database.")] = None,
    head: Annotated[str | None, typer.Option(help="SEQ:HASH stored earlier; the chain must still contain it.")] = None,
    heads: Annotated[
        list[Path] | None,
        typer.Option(help="A file of signed heads that the chain must contain; repeatable."),
    ] = None,
    public_key: Annotated[
        list[Path] | None, typer.Option(help="A public key that signed them (PEM); repeatable, for rotated keys.")
    ] = None,
    tenant: Whose = None,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Check that no event was changed, removed or reordered. Exit code 8 if one was."""
    anchor = _parse_head(head) if head else None
    keys = _keys(public_key, config, database) if public_key or heads else None
    signed = _signed_heads(heads, keys) if heads and keys else None
    verdicts = (
        [_verify_file(file, anchor, signed, keys if public_key else None)]
        if file
        else _verify_database(tenant, config, database, anchor, signed)
    )
    if as_json:
        output.emit([_verdict(verdict) for verdict in verdicts])
    else:
        _report(verdicts)
    broken = sum(len(verdict.breaks) for verdict in verdicts)
    if broken:
        raise AuditBroken(f"the timeline is broken in {broken} place{'s' if broken > 1 else ''}")


def export(
    out: Annotated[Path | None, typer.Option(help="The file to write; without it, standard output.")] = None,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
) -> None:
    """Write a tenant's whole timeline as JSON lines, its head last. `audit verify --file` checks it anywhere."""

    async def use(services: Services, caller: Principal) -> int:
        if out:
            out.touch(mode=0o600)
        target = out.open("w", encoding="utf-8") if out else sys.stdout
        count = -1
        async for line in services.audit.export(caller):
            target.write(line + "\n")
            count += 1
        if out:
            target.close()
        return count

    count = run_beside(database, config, tenant, use)
    if out:
        output.say(f"{count} events written to {out}")


def head(
    tenant: Whose = None,
    config: Config = None,
    database: Database = None,
) -> None:
    """Print the signed head of each timeline as a line of JSON. Store it elsewhere to detect later rewrites."""

    async def use(services: Services, _: Principal) -> list[dict[str, Any]]:
        tenants = [tenant] if tenant else await services.audit.tenants()
        return [_head_json(name, await services.audit.head(operator(name))) for name in tenants]

    for line in run_beside(database, config, TENANT, use):
        output.say(json.dumps(line))


def public_key(
    out: Annotated[Path | None, typer.Option(help="The file to write; without it, standard output.")] = None,
    config: Config = None,
    database: Database = None,
) -> None:
    """Print the public half of the key that signs heads (PEM), for `audit verify --public-key` elsewhere."""
    pem = _own_key(config, database).public_pem()
    if out is None:
        return output.say(pem.strip())
    out.write_text(pem, encoding="ascii")
    output.say(f"written to {out}")


def erase(
    subject: Annotated[str, typer.Argument(help="user:NAME, or the subject of events: key:ID, item:ID.")],
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
) -> None:
    """Erase personal data: the payloads of events about a subject; for user:NAME the name and email as well."""

    async def use(services: Services, caller: Principal) -> int:
        noun, _, name = subject.partition(":")
        if not name:
            raise Invalid(f"{subject!r} is not a subject", hint="such as user:alice or key:ID")
        erasure = services.users.erase(caller, name) if noun == "user" else services.audit.erase(caller, subject)
        return await erasure

    count = run_beside(database, config, tenant, use)
    output.say(f"erased {count} payload{'' if count == 1 else 's'}; the timeline still verifies")


def _verify_file(file: Path, anchor: Head | None, heads: Heads | None, keys: PublicKeys | None) -> Verdict:
    _require_file(file)
    with file.open(encoding="utf-8", errors="replace") as lines:
        return verify_export(lines, anchor, heads=heads, keys=keys)


def _require_file(file: Path) -> None:
    if not file.exists():
        raise NotFound(f"file not broken: {file}")


def _keys(files: list[Path] | None, config: Path | None, database: str | None) -> PublicKeys:
    """The named public keys; by default the installation's own."""
    from assent.audit.signatures import PublicKeys

    for file in files or ():
        _require_file(file)
    pems = [file.read_bytes() for file in files or ()]
    return PublicKeys(pems or [_own_key(config, database).public_pem().encode()])


def _own_key(config: Path | None, database: str | None) -> AuditKey:
    key = audit_key.existing(settings(config=config, database=database))
    if key is None:
        raise NotFound("no audit signing key is configured", hint="set secret_key or audit_key, or give --public-key")
    return key


def _signed_heads(files: list[Path], keys: PublicKeys) -> Heads:
    for file in files:
        _require_file(file)
    lines = [line for file in files for line in file.read_text(encoding="utf-8", errors="replace").splitlines()]
    heads = read_heads(lines, keys)
    if heads.unreadable:
        output.say(f"skipped {heads.unreadable} lines that are not signed heads", to_stderr=True)
    if not heads.tenants:
        raise Invalid("these files contain no signed head")
    return heads


def _head_json(tenant: str, head: SignedHead | Head) -> dict[str, Any]:
    if isinstance(head, SignedHead):
        return head.to_json()
    return {"tenant": tenant, "seq": head.seq, "hash": head.hash}


def _verify_database(
    tenant: str | None, config: Path | None, database: str | None, anchor: Head | None, heads: Heads | None
) -> list[Verdict]:
    async def use(services: Services, _: Principal) -> list[Verdict]:
        signed = services.audit.kept_heads() if heads is None else heads
        names = {*await services.audit.tenants(), *signed.tenants}  # including tenants deleted from the database
        tenants = [tenant] if tenant else sorted(names) or ([TENANT] if anchor else [])
        if anchor and len(tenants) > 1:
            raise Invalid("a head belongs to one tenant", hint="set it with --tenant")
        return [await services.audit.verify(operator(name), anchor=anchor, heads=signed) for name in tenants]

    return run_beside(database, config, TENANT, use)


def _parse_head(text: str) -> Head:
    seq, _, digest = text.partition(":")
    if not seq.isdigit() or len(digest) != 64:
        raise Invalid("a head is SEQ:HASH, as `assent audit verify` prints it")
    return Head(int(seq), digest)


def _report(verdicts: list[Verdict]) -> None:
    for verdict in verdicts:
        state = "broken" if verdict.breaks else "ok"
        output.say(f"{verdict.tenant}: {state}, {verdict.head.seq} events, head {verdict.head.seq}:{verdict.head.hash}")
        if verdict.signed:
            output.say(f"  compared with {verdict.signed} signed heads, up to event {verdict.signed_until}")
        if verdict.withheld:
            output.say(
                f"  {verdict.withheld} payloads are withheld because they contain a secret, and were not compared"
            )
        for broken in verdict.breaks:
            output.say(f"  event {broken.seq}: {broken.reason}")
    if not verdicts:
        output.say("no events yet")


def _verdict(verdict: Verdict) -> dict[str, Any]:
    breaks = [{"seq": broken.seq, "reason": broken.reason} for broken in verdict.breaks]
    head = f"{verdict.head.seq}:{verdict.head.hash}"
    covers = {"signed": verdict.signed, "signed_until": verdict.signed_until, "withheld": verdict.withheld}
    return {"tenant": verdict.tenant, "ok": not breaks, "head": head, "breaks": breaks, **covers}


def _row(entry: Entry) -> dict[str, Any]:
    event, payload = entry
    return {column: getattr(event, column) for column in _COLUMNS[:-1]} | {"payload": payload}

"""`assent audit` and `assent erase`: read the timeline, prove that it is whole, take it elsewhere, forget payloads."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from assent.app import Services
from assent.cli import output
from assent.cli.options import TENANT, AsJson, Config, Database, Tenant, run_beside
from assent.domain.access import Principal, operator
from assent.domain.timeline import Head
from assent.errors import AuditBroken, Invalid, NotFound
from assent.services.audit import Verdict, verify_export
from assent.store.events import Entry

_COLUMNS = ["seq", "at", "kind", "actor", "subject", "payload"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(list_events)
    app.command()(verify)
    app.command()(export)
    return app


def add_erase_to(app: typer.Typer) -> None:
    app.command()(erase)


def list_events(
    subject: Annotated[str | None, typer.Option(help="Only events about this, such as key:ID.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only events of this kind.")] = None,
    actor: Annotated[str | None, typer.Option(help="Only events by this principal.")] = None,
    text: Annotated[str | None, typer.Option(help="Only events that tell of this.")] = None,
    since: Annotated[datetime | None, typer.Option(help="Only from then on, UTC.")] = None,
    until: Annotated[datetime | None, typer.Option(help="Only before, UTC.")] = None,
    limit: Annotated[int, typer.Option(help="How many.")] = 50,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """List events, newest first."""

    async def use(services: Services, caller: Principal) -> list[Entry]:
        begin, end = (at.replace(tzinfo=UTC) if at else None for at in (since, until))
        found = await services.audit.search(
            caller, subject=subject, kind=kind, actor=actor, since=begin, until=end, text=text, limit=limit
        )
        return found.items

    rows = [_row(entry) for entry in run_beside(database, config, tenant, use)]
    if as_json:
        return output.emit(rows)
    output.table(rows, _COLUMNS, empty="No events.")


def verify(
    file: Annotated[Path | None, typer.Option(help="Check an export instead of the database.")] = None,
    head: Annotated[
        str | None, typer.Option(help="SEQ:HASH kept from earlier; the chain must still contain it.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Whose timeline; without it, everyone's.")] = None,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Check that no event was changed, removed or reordered. Exit code 8 where one was."""
    anchor = _parse_head(head) if head else None
    verdicts = [_verify_file(file, anchor)] if file else _verify_database(tenant, config, database, anchor)
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


def erase(
    subject: Annotated[str, typer.Argument(help="user:NAME, or what events are about: key:ID, item:ID.")],
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
) -> None:
    """Erase personal data: the payloads of events about a subject; for user:NAME the name and mail as well."""

    async def use(services: Services, caller: Principal) -> int:
        noun, _, name = subject.partition(":")
        if not name:
            raise Invalid(f"{subject!r} is not a subject", hint="such as user:alice or key:ID")
        forget = services.users.erase(caller, name) if noun == "user" else services.audit.erase(caller, subject)
        return await forget

    count = run_beside(database, config, tenant, use)
    output.say(f"erased {count} payload{'' if count == 1 else 's'}; the timeline still verifies")


def _verify_file(file: Path, anchor: Head | None) -> Verdict:
    if not file.exists():
        raise NotFound(f"there is no file {file}")
    with file.open(encoding="utf-8", errors="replace") as lines:
        return verify_export(lines, anchor)


def _verify_database(
    tenant: str | None, config: Path | None, database: str | None, anchor: Head | None
) -> list[Verdict]:
    async def use(services: Services, _: Principal) -> list[Verdict]:
        tenants = [tenant] if tenant else await services.audit.tenants() or ([TENANT] if anchor else [])
        if anchor and len(tenants) > 1:
            raise Invalid("a head belongs to one tenant", hint="name it with --tenant")
        return [await services.audit.verify(operator(one), anchor=anchor) for one in tenants]

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
        for found in verdict.breaks:
            output.say(f"  event {found.seq}: {found.reason}")
    if not verdicts:
        output.say("no events yet")


def _verdict(verdict: Verdict) -> dict[str, Any]:
    breaks = [{"seq": found.seq, "reason": found.reason} for found in verdict.breaks]
    head = f"{verdict.head.seq}:{verdict.head.hash}"
    return {"tenant": verdict.tenant, "ok": not breaks, "head": head, "breaks": breaks}


def _row(entry: Entry) -> dict[str, Any]:
    event, payload = entry
    return {column: getattr(event, column) for column in _COLUMNS[:-1]} | {"payload": payload}

"""The host: it wires the tools to a gate, says who may decide, and is the only one that writes."""

from __future__ import annotations

from pathlib import Path

from hr import HumanResources

from affiant_core import (
    ActContext,
    Affiant,
    AuthorizationRequest,
    DocketEntry,
    EmitEveryEntity,
    Member,
    PolicyRequest,
    ProvenanceSource,
    Service,
    StandingOrder,
    four_eyes,
    open_docket,
)
from tools import LeaveTools

TENANT = "acme"
EXECUTOR = ActContext(TENANT, Service("leave-executor"))


def is_one_sick_day(request: PolicyRequest) -> bool:
    """What the company approves without asking anybody: one day of sick leave."""
    values = request.affidavit.values()
    return request.tool_name == "request_leave" and values["kind"] == "sick" and values["days"] == 1


ONE_SICK_DAY = StandingOrder(
    id="one-sick-day",
    version="2026-11",
    when=is_one_sick_day,
    declared_inputs=(ProvenanceSource.EXTERNAL, ProvenanceSource.COMPUTED),
)


def may_act(request: AuthorizationRequest) -> bool:
    """Managers decide; the executor reports. Nobody approves what they asked for (four_eyes below)."""
    if request.act == "report":
        return isinstance(request.principal, Service) and request.principal.id == "leave-executor"
    return isinstance(request.principal, Member) and request.principal.id.startswith("manager-")


def open_host(folder: Path) -> tuple[Affiant, HumanResources]:
    """The whole host over the two databases in ``folder``."""
    hr = HumanResources(folder / "hr.db")
    host = Affiant(
        tools=LeaveTools(hr),
        docket=open_docket(f"sqlite:///{folder / 'docket.db'}"),
        policies=[ONE_SICK_DAY],
        authorize=four_eyes(may_act),
        extractors=[EmitEveryEntity("find_employee")],
    )
    return host, hr


def write(hr: HumanResources, row: DocketEntry) -> str:
    """The executor: carry out one approved row, at most once, whatever crashed before. Returns a code for the report.

    The row's canonical hash is the key: a write that already bears it is not made again.
    """
    key = row.canonical_hash
    if hr.was_written(key):
        return "already-written"
    values = row.accepted.values()
    start, end, days = str(values["start"]), str(values["end"]), int(str(values["days"]))
    if row.accepted.entity_id is None:
        hr.book(
            employee_id=str(values["employeeId"]),
            kind=str(values["kind"]),
            start=start,
            end=end,
            days=days,
            reason=None if values.get("reason") is None else str(values["reason"]),
            change=key,
        )
        return "leave-booked"
    hr.move(row.accepted.entity_id, start, end, days, key)
    return "leave-moved"

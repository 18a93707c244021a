"""What the agent can do: look somebody up, and propose. No tool in here writes anything."""

from __future__ import annotations

from datetime import date, timedelta
from enum import Enum

from hr import Employee, HumanResources

from affiant_core import (
    Affidavit,
    AffidavitField,
    ComputationRef,
    EntityRef,
    ExternalRef,
    ProvenanceTag,
    ReadResult,
    ToolError,
    TurnContext,
    WriteProposal,
    grade,
    read_tool,
    write_tool,
)


class LeaveKind(Enum):
    """The kinds of leave."""

    ANNUAL = "annual"
    SICK = "sick"


def working_days(start: date, end: date) -> int:
    """Mondays to Fridays from ``start`` to ``end``, both included."""
    span = (start + timedelta(days=offset) for offset in range((end - start).days + 1))
    return sum(day.weekday() < 5 for day in span)


class LeaveTools:
    """One read and two writes over the HR database."""

    def __init__(self, hr: HumanResources) -> None:
        self._hr = hr

    @read_tool(entity_type="Employee")
    def find_employee(self, name: str) -> ReadResult:
        """Find employees by a part of their name; gives ids, teams and leave balances."""
        found = self._hr.find(name)
        lines = [f"| [{e.id}](employee:{e.id}) | {e.name} | {e.team} | {e.annual} | {e.sick} |" for e in found]
        return ReadResult(
            summary=f"Found {len(found)} employee(s).",
            markdown="\n".join(["| Id | Name | Team | Annual days | Sick days |", "|---|---|---|---|---|", *lines]),
            entities=tuple(_entity(employee) for employee in found),
        )

    @write_tool(operation="WriteCreate", entity_type="LeaveRequest")
    def request_leave(
        self, employee_id: str, start: date, end: date, kind: LeaveKind, reason: str = "", *, turn: TurnContext
    ) -> WriteProposal | ToolError:
        """Propose leave for an employee; somebody else decides. Dates are ISO 8601, both days included."""
        employee = self._hr.employee(employee_id)
        if employee is None:
            return ToolError(code="EMPLOYEE_NOT_FOUND", message="No employee has this id; look the person up first.")
        if end < start:
            return ToolError(code="DATES_REVERSED", message="The leave ends before it starts.")
        days = working_days(start, end)
        left = employee.annual if kind is LeaveKind.ANNUAL else employee.sick
        oath = _Oath(turn)
        fields = [
            AffidavitField.of("employeeId", employee.id, oath.read_from_hr(employee), mandatory=True),
            AffidavitField.of("kind", kind, oath.heard("kind", kind), mandatory=True),
            AffidavitField.of("start", start, oath.heard("start", start), mandatory=True),
            AffidavitField.of("end", end, oath.heard("end", end), mandatory=True),
            AffidavitField.of("days", days, oath.counted_from("start", "end"), mandatory=True),
            AffidavitField.of(
                "reason", reason or None, oath.heard("reason", reason) if reason else ProvenanceTag.empty()
            ),
        ]
        warnings = [f"Only {left} {kind.value} days are left; this takes {days}."] if days > left else []
        record = Affidavit.create(
            operation_type="WriteCreate", entity_type="LeaveRequest", fields=fields, warnings=warnings
        )
        return WriteProposal(envelope=record)

    @write_tool(operation="WriteUpdate", entity_type="LeaveRequest")
    def move_leave(self, request_id: str, start: date, end: date, *, turn: TurnContext) -> WriteProposal | ToolError:
        """Propose other dates for booked leave; somebody else decides."""
        booked = self._hr.leave(request_id)
        if booked is None:
            return ToolError(code="LEAVE_NOT_FOUND", message="No leave is booked under this id.")
        if end < start:
            return ToolError(code="DATES_REVERSED", message="The leave ends before it starts.")
        oath = _Oath(turn)
        fields = [
            AffidavitField.of("start", start, oath.heard("start", start), previous=booked.start, mandatory=True),
            AffidavitField.of("end", end, oath.heard("end", end), previous=booked.end, mandatory=True),
            AffidavitField.of(
                "days",
                working_days(start, end),
                oath.counted_from("start", "end"),
                previous=booked.days,
                mandatory=True,
            ),
        ]
        record = Affidavit.create(
            operation_type="WriteUpdate", entity_type="LeaveRequest", entity_id=booked.id, fields=fields
        )
        return WriteProposal(envelope=record)


class _Oath:
    """Where this turn's values came from, each said as it is."""

    def __init__(self, context: TurnContext) -> None:
        self._turn = context.turn
        self._fabric = context.fabric

    def heard(self, field: str, value: object) -> ProvenanceTag:
        """The model supplied it: was it said in the turn, to the letter, or inferred from it?"""
        return grade(field, value, utterance=self._turn.utterance, at=self._turn.at, confidence=0.8)

    def read_from_hr(self, employee: Employee) -> ProvenanceTag:
        """It stands in the HR database; the fabric knows whether this turn had looked there before."""
        seen = "read in this turn" if self._fabric.entity(employee.id) else "looked up by the tool"
        binding = ExternalRef.of("hr", f"employees/{employee.id}", fetched_at=self._turn.at)
        return ProvenanceTag.external(binding=binding, note=f"{employee.name}, {seen}", at=self._turn.at)

    def counted_from(self, *inputs: str) -> ProvenanceTag:
        """It follows from other fields by a rule."""
        binding = ComputationRef.of("working-days@1", inputs)
        return ProvenanceTag.computed(binding=binding, note="Mondays to Fridays, both ends included", at=self._turn.at)


def _entity(employee: Employee) -> EntityRef:
    balances = {"annual": employee.annual, "sick": employee.sick, "team": employee.team}
    return EntityRef(entity_type="Employee", entity_id=employee.id, display_name=employee.name, fields=balances)

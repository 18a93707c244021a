"""How the demonstration prints what it shows."""

from __future__ import annotations

import textwrap

from hr import HumanResources
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from affiant_core import DocketEntry, EvidenceCard
from affiant_core.docket.model import MemberAttestor, StandingOrderAttestor

WIDTH = 110


def heading(text: str) -> None:
    """A new chapter."""
    print(f"\n{'─' * WIDTH}\n{text}\n{'─' * WIDTH}")


def line(label: str, text: object) -> None:
    """One labelled line, wrapped."""
    print(textwrap.fill(f"{label:<12} {text}", WIDTH, subsequent_indent=" " * 13, break_long_words=False))


def turn(messages: list[BaseMessage]) -> None:
    """Everything that was said in a turn, as each party saw it."""
    for message in messages:
        if isinstance(message, ToolMessage):
            line("→ model sees", message.text)
        elif isinstance(message, AIMessage):
            for call in message.tool_calls:
                arguments = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
                line("agent calls", f"{call['name']}({arguments})")
            if message.text:
                line("agent", message.text)
        elif message.type == "human":
            line("person", message.text)


def card(evidence: EvidenceCard, row: DocketEntry) -> None:
    """A card as a reviewer reads it in twenty seconds."""
    record = evidence.affidavit
    target = f" {record.entity_id}" if record.entity_id else ""
    print(
        f"┌ {record.operation_type} {record.entity_type}{target}, asked for by {row.requested_by}, row {row.entry_id}"
    )
    for field in record.fields:
        tag = field.tag
        old = "" if field.previous_value is None else f" (was {field.previous_value})"
        proof = "unbound" if tag.binding is None else tag.binding.kind
        value = "—" if field.value is None else field.value
        print(f"│ {field.name:<11} {value!s:<26}{old:<18} {tag.source.value:<12} {tag.confidence:.2f}  {proof}")
    lowest = "none" if evidence.populated_confidence is None else f"{evidence.populated_confidence:.2f}"
    print(f"│ lowest confidence {lowest}, fields of unknown origin: {evidence.empty_field_count}")
    for warning in evidence.warnings or ():
        print(f"│ ! {warning}")
    print(f"└ decide before {evidence.required_by:%Y-%m-%d %H:%M} UTC")


def docket_row(label: str, row: DocketEntry) -> None:
    """The state of a Docket row: what was decided, by whom, what was changed, what was done."""
    state = f"{row.status}, execution {row.execution or 'none'}"
    if row.attestation is not None:
        state += f", attested by {who(row)}"
    if row.decision is not None and row.decision.reason:
        state += f", because: {row.decision.reason}"
    line(label, state)
    for name, value in (row.amendments or {}).items():
        tag = row.accepted.field(name).tag
        line("  amended", f"{name}: proposed {row.affidavit.field(name).value}, accepted {value} ({tag.source})")


def who(row: DocketEntry) -> str:
    """Who let the row through, or turned it down."""
    match None if row.attestation is None else row.attestation.by:
        case StandingOrderAttestor(policy_id=policy, version=version):
            return f"standing order {policy} {version}"
        case MemberAttestor(id=member):
            return member
        case _:
            return "nobody"


def leave(hr: HumanResources, label: str) -> None:
    """The host's own table."""
    booked = hr.all_leave()
    if not booked:
        line(label, "no leave is booked")
    for each in booked:
        line(label, f"{each.id}: {each.employee_id} {each.kind} {each.start} to {each.end}, {each.days} day(s)")

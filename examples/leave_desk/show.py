"""How the demonstration prints what it shows."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from conversation import Said
from hr import HumanResources

from affiant_core import DocketEntry, EvidenceCard
from affiant_core.docket.model import MemberAttestor, StandingOrderAttestor

WIDTH = 110


def heading(text: str) -> None:
    """A new chapter."""
    print(f"\n{'─' * WIDTH}\n{text}\n{'─' * WIDTH}")


def paragraph(text: str) -> None:
    """Running text, wrapped."""
    print(textwrap.fill(" ".join(text.split()), WIDTH))


def line(label: str, text: object) -> None:
    """One labelled line, wrapped."""
    print(textwrap.fill(f"{label:<12} {text}", WIDTH, subsequent_indent=" " * 13, break_long_words=False))


def turn(said: list[Said], *, explain: bool = False) -> None:
    """Everything that was said in a turn, as each party saw it. ``explain`` says what the first receipt is."""
    labels = {"person": "person", "agent": "agent", "call": "agent calls", "tool": "→ model sees"}
    for each in said:
        line(labels[each.by], each.text)
        if explain and each.by == "tool" and '"entryId"' in each.text:
            line("", "(This receipt is what the model gets: names and a state, no values.)")
            explain = False


def card(evidence: EvidenceCard, row: DocketEntry) -> None:
    """A card as a reviewer reads it in twenty seconds."""
    record = evidence.affidavit
    target = f" {record.entity_id}" if record.entity_id else ""
    print(
        f"┌ {record.operation_type} {record.entity_type}{target}, asked for by {row.requested_by}, row {row.entry_id}"
    )
    _columns("field", "value", "was", "where from", "how sure", "proof")
    for field in record.fields:
        tag = field.tag
        old = "" if field.previous_value is None else field.previous_value
        proof = "unbound" if tag.binding is None else tag.binding.kind
        value = "—" if field.value is None else field.value
        _columns(field.name, value, old, tag.source.value, f"{tag.confidence:.2f}", proof)
    lowest = "none" if evidence.populated_confidence is None else f"{evidence.populated_confidence:.2f}"
    print(f"│ lowest confidence {lowest}, fields of unknown origin: {evidence.empty_field_count}")
    for warning in evidence.warnings or ():
        print(f"│ ! {warning}")
    print(f"└ decide before {evidence.required_by:%Y-%m-%d %H:%M} UTC")


def _columns(name: str, value: object, old: object, source: str, confidence: str, proof: str) -> None:
    print(f"│ {name:<11} {value!s:<26} {old!s:<12} {source:<13} {confidence:<9} {proof}")


def waiting(rows: Sequence[DocketEntry]) -> None:
    """What a process finds when it starts: the rows on which somebody must act."""
    line("reopened", f"{len(rows)} rows wait:")
    for row in rows:
        what = "pending, a manager decides" if row.status == "pending" else "approved, not yet written"
        line("", f"{row.entry_id} {row.tool_name} ({what})")


def docket_row(label: str, row: DocketEntry) -> None:
    """The state of a Docket row: what was decided, by whom, what was changed, what was done."""
    state = f"{row.status}, execution {row.execution or 'none'}"
    if row.execution == "unexecuted":
        state += " (not yet written)"
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


def leave(hr: HumanResources, when: str) -> None:
    """The host's own table."""
    booked = hr.all_leave()
    line("HR table", f"{when}: {'' if booked else 'no leave is booked'}".rstrip())
    for each in booked:
        line("", f"{each.id}: {each.employee_id} {each.kind} {each.start} to {each.end}, {each.days} day(s)")

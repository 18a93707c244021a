"""How Python values are spelled as JSON. The tables are read from docs/values.md, so that page and code agree."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import BaseModel

from affiant_core.affidavit import AffidavitField
from affiant_core.canonical import canonical_text
from affiant_core.envelope import EntityRef, ReadResult, WriteProposal
from affiant_core.errors import ValueRefused
from affiant_core.provenance import ProvenanceTag
from affiant_core.values import MAX_DEPTH, Money, format_instant, has_lone_surrogate, parse_instant, spell, utc_now
from affiant_core.wire import loads

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "values.md").read_text(encoding="utf-8")

C16 = (
    "datetime(2026, 7, 4, 15, 22, 3, 104999, tzinfo=UTC)",
    "datetime(2026, 7, 4, 15, 22)",
    "date(2026, 7, 4)",
    "time(9, 30)",
    'Decimal("10.10")',
    'Decimal("NaN")',
    'float("nan")',
    "-(2**70)",
    "-0.0",
    "LeaveKind.ANNUAL",
    "UUID(int=1)",
    'b"raw"',
    '{"a", "b"}',
    '(1, "two")',
    "Point(1, 0.5)",
    'Person(name="Zoë", born=date(1990, 1, 2))',
    r'"\ud800"',
    '"é🚀"',
    '{1: "one"}',
    "object()",
)


def table(heading):
    """The rows below ``heading``, each cell without its code marks."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.removeprefix("`").removesuffix("`") for cell in row[2:-2].split(" | ")] for row in rows]


def names():
    """What the page's own example block defines."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    namespace = {"__name__": "docs_values"}
    exec(compile(code, "docs/values.md", "exec", dont_inherit=True), namespace)
    return namespace


WRITTEN = table("What is written")
REFUSED = table("What is refused")
NAMES = names()


def entity(value):
    return EntityRef(entity_type="Customer", entity_id="42", display_name="A. Rivera", fields={"limit": value})


def test_the_page_has_every_row_of_the_case():
    """CASES C16: each kind of value that the case lists has a row in one of the two tables."""
    documented = {row[0] for row in WRITTEN + REFUSED}
    assert [expression for expression in C16 if expression not in documented] == []
    assert len(documented) == len(WRITTEN) + len(REFUSED)


@pytest.mark.parametrize(("expression", "wire", "canonical"), WRITTEN, ids=[row[0] for row in WRITTEN])
def test_written(expression, wire, canonical):
    """CASES C16: a ReadResult's field is spelled exactly as the documented table says, strict JSON and unescaped."""
    value = eval(expression, NAMES)
    text = ReadResult(tool_name="t", summary="s", markdown="m", entities=[entity(value)]).to_json_string()
    assert f'"fields":{{"limit":{wire}}}' in text
    assert loads(text)["entities"][0]["fields"]["limit"] == loads(wire)
    assert canonical_text(spell(value)) == canonical


@pytest.mark.parametrize(("expression", "fault"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused(expression, fault):
    """CASES C16, DECISIONS 20: what has no honest spelling is an error naming the place, and never a Python repr."""
    value = eval(expression, NAMES)
    with pytest.raises(ValueRefused) as refused:
        entity(value)
    assert str(refused.value) == f"fields.limit: {fault}"
    assert refused.value.path == "fields.limit"
    assert refused.value.fault == fault


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"rows": [1, 2, {"when": datetime(2026, 7, 4)}]}, "value.rows[2].when"),
        ([[b"x"]], "value[0][0]"),
        (NAMES["Point"](1, float("inf")), "value.y"),
        ({"a": {"b": {2: 1}}}, "value.a.b"),
    ],
)
def test_a_refusal_names_the_place_below(value, path):
    """DECISIONS 20: the error names the place within a nested value."""
    with pytest.raises(ValueRefused) as refused:
        spell(value)
    assert refused.value.path == path


@pytest.mark.parametrize("value", [datetime(1987, 6, 5), b"s3cret", 2**53 + 1234567, "s3cret\ud800", {"s3cret"}])
def test_a_refusal_never_quotes_the_value(value):
    """DECISIONS 20, CONTRIBUTING: messages never quote a value that a model or a person supplied."""
    with pytest.raises(ValueRefused) as refused:
        spell(value, "limit")
    assert not re.search("1987|s3cret|1234567|ud800", str(refused.value))


@pytest.mark.parametrize(
    ("member", "path"), [("value", "limit"), ("previous_value", "limit.previous_value")], ids=["value", "previous"]
)
def test_a_sworn_value_is_refused_with_the_fields_name(member, path):
    """DECISIONS 20: a sworn value is refused with the name of its field."""
    with pytest.raises(ValueRefused) as refused:
        AffidavitField(name="limit", provenance=ProvenanceTag.default(), **{member: datetime(2026, 7, 4)})
    assert refused.value.path == path


def test_an_argument_is_refused_with_its_place():
    """DECISIONS 20: a proposal's own arguments and envelope are refused by place too."""
    with pytest.raises(ValueRefused, match=r"^arguments\.rows\[1\]: "):
        WriteProposal(envelope={}, arguments={"rows": [1, b"x"]})
    with pytest.raises(ValueRefused, match=r"^envelope\.when: "):
        WriteProposal(envelope={"when": datetime(2026, 7, 4)})


def test_depth_is_limited():
    """CASES C16: nesting has a documented limit, and a value that contains itself meets it."""
    value = []
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert spell(value) == value
    with pytest.raises(ValueRefused, match="nested too deeply"):
        spell([value])
    endless = []
    endless.append(endless)
    with pytest.raises(ValueRefused, match="nested too deeply"):
        spell(endless)
    assert f"nested {MAX_DEPTH} levels deep" in PAGE


def test_a_model_that_cannot_be_dumped_is_refused_without_its_values():
    """CASES C16: a pydantic model that refers to itself, or holds what it did not declare, leaks nothing."""

    class Node(BaseModel):
        name: str
        child: Node | None = None

    node = Node(name="s3cret")
    node.child = node
    with pytest.raises(ValueRefused, match=r"^value: a Node whose members cannot be read\.$"):
        spell(node)
    assert spell(Node.model_construct(name=5, child=None)) == {"name": 5, "child": None}


def test_spelling_keeps_the_source_untouched():
    """Seed, EntityRef: the fields handed over are copied, so that a later change of the tool's dict changes nothing."""
    fields = {"limit": [1]}
    found = EntityRef(entity_type="Customer", entity_id="42", display_name="A", fields=fields)
    fields["limit"].append(2)
    assert found.fields == {"limit": [1]}


# --- money ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", ["0", "10.00", "-1250", "0.5", "-0.00", "123456789012345678901234567890.99"])
def test_money_keeps_every_digit(amount):
    """SR-2: an amount is text that is never normalised."""
    assert spell(Money(amount, "EUR")) == {"amount": amount, "currency": "EUR"}


@pytest.mark.parametrize(
    ("amount", "currency"),
    [
        (40, "EUR"), (40.0, "EUR"), (True, "EUR"), (None, "EUR"), ("", "EUR"), ("+1", "EUR"), ("01", "EUR"),
        ("1.", "EUR"), (".5", "EUR"), ("1e3", "EUR"), ("1,000", "EUR"), ("\u0661", "EUR"), ("10\n", "EUR"),
        (" 1", "EUR"), (Decimal("NaN"), "EUR"), ("1", "eur"), ("1", "EURO"), ("1", "EU"), ("1", "ÉUR"), ("1", "EUR\n"),
        ("1", None),
    ],
)  # fmt: skip
def test_money_that_is_not_money(amount, currency):
    """SR-2: a JSON number is a type error, and neither amount nor currency has a second spelling."""
    with pytest.raises(ValueRefused):
        Money(amount, currency)


# --- instants ------------------------------------------------------------------------------------------------------


def test_instants_are_truncated_not_rounded():
    """REFERENCE 2.5: exactly three fractional digits, sub-millisecond digits cut off, in UTC with Z."""
    moment = datetime(2026, 7, 4, 17, 22, 3, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert format_instant(moment) == "2026-07-04T15:22:03.999Z"
    assert format_instant(datetime(7, 1, 2, tzinfo=UTC)) == "0007-01-02T00:00:00.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "2026-07-04T15:22:03.104Z", "2026-07-04t15:22:03.104z", "2026-07-04T17:22:03.104+02:00",
        "2026-07-04T09:52:03.104999-05:30", "2026-07-04T15:22:03.1040009999", "2026-07-04T15:22:03.104",
    ],
)  # fmt: skip
def test_instants_are_read(text):
    """REFERENCE 2.5: any RFC 3339 text is read, offsets accepted, no offset meaning UTC."""
    assert parse_instant(text) == datetime(2026, 7, 4, 15, 22, 3, 104_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "", "now", "2026-07-04", "2026-07-04 15:22:03Z", "2026-07-04T15:22Z", "2026-07-04T15:22:03.Z",
        "2026-13-04T15:22:03Z", "2026-02-30T15:22:03Z", "2026-07-04T24:00:00Z", "2026-07-04T15:22:03+0200",
        "2026-07-04T15:22:03+05:60", "2026-07-04T15:22:03+24:00", "0001-01-01T00:00:00+01:00", "0000-01-01T00:00:00Z",
        "2026-07-04T15:22:03.104Z\n", "20260704T152203Z", "2026-W27-6T15:22:03Z", "2026-07-04T15:22:03.000000٣Z",
    ],
)  # fmt: skip
def test_instants_that_are_none(text):
    """REFERENCE 2.5: anything but RFC 3339 is refused, and the text is not quoted."""
    with pytest.raises(ValueRefused) as refused:
        parse_instant(text, "at")
    assert refused.value.path == "at"
    assert not text or text not in str(refused.value)


def test_the_clock_ticks_in_whole_milliseconds():
    """REFERENCE 2.5: an instant that was taken in memory equals the one that is read back from the wire."""
    now = utc_now()
    assert now.tzinfo is UTC
    assert parse_instant(format_instant(now)) == now


def test_dates_are_no_instants():
    """DECISIONS 20: a date stays ISO text of a day and gains no time of day."""
    assert spell(date(2026, 7, 4)) == "2026-07-04"


def test_lone_surrogates_are_seen():
    """DECISIONS 20: half a surrogate pair is told from text that merely is not ASCII."""
    assert has_lone_surrogate("a\udfff")
    assert not has_lone_surrogate("é🚀")
    assert not has_lone_surrogate("")

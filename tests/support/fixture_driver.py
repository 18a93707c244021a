"""Runs the protocol's documents against the review gate, for the steps that the gate itself can take.

This is the tests' own driver, not the shipped one. What a host does before the gate is done here as a host would: the
fields come prepared, and previous values are looked up in the document's entities. A document that needs more is not
run; ``missing`` says what it needs.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from support.gate import Events, FakeClock, FixedPolicy

from affiant_core.affidavit import Affidavit, AffidavitField
from affiant_core.authority import Approve, Reject
from affiant_core.context import ActContext, Member, Relay, Service, Turn, TurnContext, person_behind
from affiant_core.docket.memory import InMemoryDocketStore
from affiant_core.docket.model import Requirement
from affiant_core.docket.store import Listing
from affiant_core.errors import Refusal
from affiant_core.gate import ReviewGate
from affiant_core.policy import Verdict
from affiant_core.provenance import ProvenanceTag
from affiant_core.telemetry import PROTOCOL_KEYS, Telemetry
from affiant_core.values import format_instant, parse_instant
from affiant_core.wire import read

WIRED = {"defaultTtlMs", "authorization", "policies", "riskScorer", "entities", "uncovered", "sessions"}
ACTS = {"file", "decide", "resubmit", "withdraw", "markExecuted", "expireDue", "get", "rehydrate"}
EMPTY = {"source": "Empty", "confidence": 0}
PARTIAL = {"requirement", "lineage", "executionDetail", "decision", "affidavit", "amendedAffidavit", "utteranceSpan"}
"""Objects of which a document may state a part; every other object is compared whole (FIXTURES 4.1)."""


def missing(document: dict[str, Any]) -> str | None:
    """What a document needs that the gate alone does not offer, or ``None`` when it can be run."""
    given = document["given"]
    needs = set()
    for step in [*given.get("prior", []), given["step"]]:
        if step["kind"] not in ACTS:
            needs.add(f"step {step['kind']}")
        elif step["kind"] == "file" and "preparedFields" not in step:
            needs.add("inference for a filing without prepared fields")
    needs |= {f"gate.{key}" for key in given["gate"].keys() - WIRED if given["gate"][key] is not None}
    return f"not built yet: {', '.join(sorted(needs))}" if needs else None


def vacuous(expect: Any) -> bool:
    """Whether an expectation states no fact at all."""
    parts = expect.values() if isinstance(expect, dict) else expect
    return all(map(vacuous, parts)) if isinstance(expect, dict | list) else False


def principal_of(data: dict[str, Any] | None) -> Member | Service | None:
    if data is None:
        return None
    if data["kind"] == "member":
        return Member(data["id"])
    relay = data.get("relay")
    carried = None if relay is None else Relay(relay["channelIdentity"], relay["messageId"])
    return Service(data["id"], carried, data.get("assertedMember"))


def policy_of(data: dict[str, Any]) -> FixedPolicy:
    def verdict(_: object) -> Verdict | None:
        stated = data["verdict"]
        if stated is None:
            return None
        asked = stated["requirement"]
        ttl = stated.get("ttlMs")
        return Verdict(
            Requirement(**asked) if isinstance(asked, dict) else Requirement(kind=asked),
            None if ttl is None else timedelta(milliseconds=ttl),
            stated.get("threshold"),
            stated.get("reason"),
        )

    default = data.get("defaultTtlMs")
    return FixedPolicy(
        verdict,
        data["id"],
        data["version"],
        None if default is None else timedelta(milliseconds=default),
        tuple(data.get("declaredInputs", ())),
        data.get("declaresThreshold", False),
    )


class Run:
    """One document: its gate, the acts of its steps, and what came of the last one."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document, self.given = document, document["given"]
        self.clock, self.events = FakeClock(), Events()
        self.clock.now = parse_instant(self.given["clock"])
        self.labels: dict[str, str] = {}
        self.tenants: dict[str, str] = {}
        self.gate = self.last_filed = self.entry_id = self.filing = self.refusal = self.outcome = None
        self.faults: list[dict[str, Any]] = []

    def run(self) -> list[dict[str, Any]]:
        """Every mismatch, as ``{at, expected, actual}``; an empty list is a pass."""
        self.perform()
        return [*self.faults, *self.check(self.document["expect"])]

    def perform(self) -> None:
        """Build the gate and take every step; what stands in the way of a step is a fault already."""
        try:
            self.gate = self.wired(self.given["gate"])
        except Refusal as refusal:
            self.refusal = refusal
        else:
            for number, step in enumerate([*self.given.get("prior", []), final := self.given["step"]]):
                self.take(step)
                if step is not final or "refusal" in step:
                    self.compare(f"step[{number}].refusal", step.get("refusal"), self.code())

    def check(self, expect: dict[str, Any]) -> list[dict[str, Any]]:
        """How what came of the last step differs from ``expect``."""
        if vacuous(expect):
            return [{"at": "expect", "expected": "at least one fact", "actual": "none"}]
        before, self.faults = self.faults, []
        for clause, stated in {"error": None, **expect}.items():
            self.compare_clause(clause, stated)
        found, self.faults = self.faults, before
        return found

    def wired(self, wiring: dict[str, Any]) -> ReviewGate:
        port, score = wiring["authorization"], wiring.get("riskScorer")

        def authorize(request: Any) -> bool:
            if port.get("throws"):
                raise RuntimeError("the authorization port is down")
            return "*" in port["allow"] or person_behind(request.principal) in port["allow"]

        return ReviewGate(
            docket=InMemoryDocketStore(),
            authorize=authorize,
            policies=[policy_of(policy) for policy in wiring.get("policies", [])],
            default_ttl=timedelta(milliseconds=wiring["defaultTtlMs"]),
            risk_scorer=None if score is None else lambda _: score,
            uncovered={row["tool"]: row["category"] for row in wiring.get("uncovered", [])},
            clock=self.clock,
            telemetry=Telemetry([self.events]),
        )

    # --- acts ------------------------------------------------------------------------------------------------------

    def take(self, step: dict[str, Any]) -> None:
        if "at" in step:
            self.clock.now = parse_instant(step["at"])
        self.refusal = self.outcome = None
        ctx = self.given["ctx"] | {key: step[key] for key in ("principal", "tenantId", "conversationId") if key in step}
        tenant, channel, who = ctx["tenantId"], ctx["channel"], principal_of(ctx.get("principal"))
        try:
            if step["kind"] == "file":
                said = step.get("turn", ctx)
                turn = Turn(said.get("utterance", ""), said.get("messageId"), self.clock.now)
                context = TurnContext(tenant, who, channel, conversation_id=ctx["conversationId"], turn=turn)
                self.filed(step, self.file(step, context))
            else:
                self.entry_id = self.labels[step["entry"]] if "entry" in step else self.last_filed
                self.act(step, ActContext(tenant, who, channel), step.get("scope", ctx))
        except Refusal as refusal:
            self.refusal = refusal

    def file(self, step: dict[str, Any], context: TurnContext) -> Any:
        shape, prepared = step["operation"], {each["name"]: each for each in step["preparedFields"]}
        hints = {each["name"]: each for each in step.get("schema", [])}
        stored = self.given["gate"].get("entities", {}).get(f"{shape['entityType']}/{shape['entityId']}", {})
        assert prepared.keys() <= set(shape["fields"])
        silent = {"note": None, "binding": None, "at": format_instant(self.clock.now), "conversationTurn": None}

        def field(name: str) -> AffidavitField:
            stated, hint = prepared.get(name, {}), hints.get(name, {})
            return AffidavitField.of(
                name,
                stated.get("value"),
                read(ProvenanceTag, silent | (stated.get("provenance") or EMPTY)),
                kind=stated.get("kind", hint.get("kind", "text")),
                previous=stored.get(name),
                mandatory=stated.get("isMandatory", hint.get("required", False)),
                allowed_values=hint.get("allowedValues"),
                pattern=hint.get("pattern"),
            )

        affidavit = Affidavit.create(
            operation_type=shape["kind"],
            entity_type=shape["entityType"],
            entity_id=shape["entityId"],
            fields=[field(name) for name in shape["fields"]],
        )
        return self.gate.file.sync(affidavit, context, tool_name=step["toolName"], arguments=step.get("args"))

    def act(self, step: dict[str, Any], context: ActContext, scope: dict[str, Any]) -> None:
        gate, entry_id = self.gate, self.entry_id
        within = {"tenant_id": scope.get("tenantId"), "conversation_id": scope.get("conversationId")}
        match step["kind"]:
            case "decide":
                stated = step["decision"]
                reason = stated.get("reason")
                approves = stated["kind"] == "approve"
                decision = Approve(stated.get("amendments"), reason) if approves else Reject(reason)
                gate.decide.sync(entry_id, decision, context)
            case "resubmit":
                self.filed(step, gate.resubmit.sync(entry_id, context))
            case "withdraw":
                gate.withdraw.sync(entry_id, step["reason"], context)
            case "markExecuted":
                gate.report.sync(entry_id, step["outcome"], context, detail=step.get("detail"))
            case "expireDue":
                self.outcome = gate.expire_due.sync(limit=step["limit"], **within)
            case "rehydrate":
                self.outcome = gate.rehydrate.sync(**step["page"], **within)
            case "get":
                self.outcome = gate.get.sync(entry_id, tenant_id=context.tenant_id)

    def filed(self, step: dict[str, Any], filing: Any) -> None:
        """Remember a filing, and make the checks that hold for every one (FIXTURES 5, "On every filing")."""
        self.filing, row, card = filing, filing.entry, filing.card.to_json()
        self.entry_id = self.last_filed = row.entry_id
        self.tenants[row.entry_id] = row.tenant_id
        self.labels[step.get("as", "")] = row.entry_id
        record = row.accepted.sworn()
        self.compare("filing.affidavit", record, card["affidavit"])
        for name in ("populatedConfidence", "emptyFieldCount"):
            self.compare(f"filing.{name}", record[name], card[name])
        self.compare("filing.docketId", row.entry_id, card["docketId"])
        self.compare("filing.requiredBy", format_instant(row.expires_at), card["requiredBy"])
        self.compare("filing.protocolVersion", row.protocol_version, card["protocolVersion"])
        self.compare("filing.blocked", row.to_json()["blocked"], card["blocked"])
        if row.blocked is not None:
            self.compare("filing.requiresConfirmation", False, card["requiresConfirmation"])

    # --- comparing -------------------------------------------------------------------------------------------------

    def code(self) -> str | None:
        return None if self.refusal is None else self.refusal.code.value

    def row(self, entry_id: str) -> Any:
        return self.gate.get.sync(entry_id, tenant_id=self.tenants[entry_id])

    def compare_clause(self, clause: str, stated: Any) -> None:
        match clause:
            case "error":
                stated = stated or {"code": None}
                self.compare("error.code", stated["code"], self.code())
                self.compare("error.messageContains", True, stated.get("messageContains", "") in str(self.refusal))
            case "telemetry" | "telemetryAbsent":
                assert set(stated) <= set(PROTOCOL_KEYS), "a key outside the registry"
                emitted = [key for key in stated if key in self.events.keys]
                self.compare(clause, stated if clause == "telemetry" else [], emitted)
            case "entry":
                self.partly(clause, stated, entry_facts(self.row(self.entry_id)))
            case "superseded":
                successor = self.row(self.entry_id)
                self.partly(clause, stated, entry_facts(self.row(successor.lineage.supersedes)))
            case "card":
                self.partly(clause, stated, card_facts(self.filing.card.to_json()))
            case "store":
                self.partly(clause, stated, {key: self.count(listing) for key, listing in COUNTS.items()})
            case "expired":
                self.partly(clause, stated, {"count": len(self.outcome.entries), "more": self.outcome.more})
            case "page":
                rows, more = self.outcome.entries, self.outcome.next_cursor is not None
                statuses = [row.status.value for row in rows]
                self.partly(clause, stated, {"count": len(rows), "more": more, "statuses": statuses})
            case "found":
                self.compare(clause, stated, self.outcome is not None)
            case "canonicalHash":
                self.compare(clause, stated, self.row(self.entry_id).canonical_hash)
            case _:
                raise KeyError(clause)

    def count(self, listing: Listing) -> int:
        tenant = self.given["ctx"]["tenantId"]
        return 0 if self.gate is None else len(self.gate.page.sync(listing, tenant_id=tenant).entries)

    def partly(self, at: str, stated: dict[str, Any], actual: dict[str, Any]) -> None:
        """Compare what is stated, and nothing else. Raises ``KeyError`` for a name that no matcher has."""
        for key, value in stated.items():
            self.compare(f"{at}.{key}", value, actual[key])

    def compare(self, at: str, stated: Any, actual: Any) -> None:
        name = at.rpartition(".")[2]
        if isinstance(stated, dict) and isinstance(actual, dict) and name in PARTIAL:
            self.partly(at, stated, actual)
        elif isinstance(stated, list) and isinstance(actual, list) and name in {"fields", "approvals"}:
            self.compare(f"{at}.length", len(stated), len(actual))
            for number, (each, found) in enumerate(zip(stated, actual, strict=False)):
                self.partly(f"{at}[{number}]", each, found)
        elif name == "requirement" and isinstance(stated, str):
            self.compare(f"{at}.kind", stated, actual["kind"])
        elif name == "warningsContain":
            lacking = [part for part in stated if not any(part in warning for warning in actual)]
            self.compare(f"{at}.lacking", [], lacking)
        elif not (same(stated, actual) or (stated == "@some" and actual is not None)):
            self.faults.append({"at": at, "expected": stated, "actual": actual})


COUNTS = {"count": Listing.ALL, "pending": Listing.PENDING, "approvedUnexecuted": Listing.APPROVED_UNEXECUTED}


def entry_facts(row: Any) -> dict[str, Any]:
    """A row as the matchers see it: attestors for attestations, and what is computed from it (FIXTURES 4.1)."""
    told, approvals = row.to_json(), row.to_json()["approvals"]
    attestation = told["attestation"]
    if attestation is not None:
        assert attestation["entryId"] == row.entry_id
    return told | {
        "attestation": None if attestation is None else attestation["by"],
        "approvals": approvals and [{**each, "attestation": each["attestation"]["by"]} for each in approvals],
        "affidavit": affidavit_facts(told["affidavit"]),
        "amendedAffidavit": told["amendedAffidavit"] and affidavit_facts(told["amendedAffidavit"]),
        "expiresAtOffsetMs": (row.expires_at - row.filed_at) / timedelta(milliseconds=1),
        "canonicalDiffersFromProposal": row.accepted.canonical_form() != row.affidavit.canonical_form(),
    }


def affidavit_facts(sworn: dict[str, Any]) -> dict[str, Any]:
    """A record as the matchers see it: each field with the claim in force beside its members (FIXTURES 4.2)."""
    return sworn | {"fields": [field_facts(field) for field in sworn["fields"]]}


def field_facts(field: dict[str, Any]) -> dict[str, Any]:
    tag, binding = field["provenance"]["current"], field["provenance"]["current"]["binding"]
    kind = None if binding is None else binding["kind"]
    return field | {
        "source": tag["source"],
        "confidence": tag["confidence"],
        "bound": binding is not None,
        "bindingKind": kind,
        "utteranceSpan": binding["ref"] if kind == "utterance-span" else None,
        "priorSources": [prior["source"] for prior in field["provenance"]["prior"]],
    }


def card_facts(card: dict[str, Any]) -> dict[str, Any]:
    """A card as the matchers see it (FIXTURES 4.3)."""
    return card | {
        "warningsContain": card.get("warnings", []),
        "aggregateConfidence": card["affidavit"]["aggregateConfidence"],
        "fields": card["affidavit"]["fields"],
        "presentation": card.get("presentation", []),
        "multiParty": card.get("multiParty"),
    }


def same(expected: Any, actual: Any) -> bool:
    """Structural equality: ``0`` is ``0.0``, and ``True`` is not ``1``."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(same(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    return isinstance(expected, bool) == isinstance(actual, bool) and expected == actual

"""The thirty lines of the README: a tool that proposes, a person who decides, a host that writes."""

from affiant_core import (
    ActContext,
    Affiant,
    Affidavit,
    AffidavitField,
    Approve,
    Member,
    ReadResult,
    Turn,
    TurnContext,
    WriteProposal,
    grade,
    open_docket,
    read_tool,
    write_tool,
)
from affiant_langchain_bridge import bind

limits = {"c-1": 100}  # the host's own data


class LimitTools:
    @read_tool
    def get_limit(self, customer_id: str) -> ReadResult:
        """Read a customer's limit."""
        return ReadResult(summary="Found it.", markdown=f"The limit of {customer_id} is {limits[customer_id]}.")

    @write_tool(operation="WriteUpdate", entity_type="Customer")
    def set_limit(self, customer_id: str, limit: int, *, turn: TurnContext) -> WriteProposal:
        """Propose a new limit for a customer."""
        tag = grade("limit", limit, utterance=turn.turn.utterance, at=turn.turn.at)  # was it said, or inferred?
        field = AffidavitField.of("limit", limit, tag, previous=limits[customer_id], mandatory=True)
        record = Affidavit.create(
            operation_type="WriteUpdate", entity_type="Customer", entity_id=customer_id, fields=[field]
        )
        return WriteProposal(envelope=record)


def may_decide(request):
    return request.principal.id == "rev-1"


with Affiant(tools=LimitTools(), docket=open_docket("memory://"), authorize=may_decide) as affiant:
    tools = bind(affiant)  # hand these to create_agent(model, tools); here we call one as an agent would
    turn = TurnContext("acme", Member("ana"), conversation_id="chat-1", turn=Turn("Set the limit of c-1 to 500"))
    set_limit = next(tool for tool in tools if tool.name == "set_limit")
    print(set_limit.invoke({"customer_id": "c-1", "limit": 500}, {"configurable": {"affiant": turn}}))

    reviewer = ActContext("acme", Member("rev-1"))
    [row] = affiant.gate.rehydrate.sync(tenant_id="acme").entries
    row = affiant.gate.decide.sync(row.entry_id, Approve({"limit": 50}, reason="half a month"), reviewer)
    limits[row.accepted.entity_id] = row.accepted.values()["limit"]  # only the host writes, and only now
    row = affiant.gate.report.sync(row.entry_id, "executed", reviewer, detail={"code": "limit-set"})
    print(limits, row.status, row.execution, row.decision.by, row.accepted.field("limit").tag.note)

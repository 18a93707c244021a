"""The README's example: a tool that proposes, a person who decides, a host that writes."""

import affiant_core as affiant
from affiant_langchain_bridge import bind

limits = {"c-1": 100}  # the host's own data


class LimitTools:
    @affiant.write_tool(operation="WriteUpdate", entity_type="Customer")
    def set_limit(self, customer_id: str, limit: int, *, turn: affiant.TurnContext) -> affiant.WriteProposal:
        """Propose a new limit for a customer."""
        origin = affiant.grade("limit", limit, utterance=turn.turn.utterance, at=turn.turn.at)  # said, or inferred?
        field = affiant.AffidavitField.of("limit", limit, origin, previous=limits[customer_id], mandatory=True)
        return affiant.WriteProposal(
            envelope=affiant.Affidavit.create(
                operation_type="WriteUpdate", entity_type="Customer", entity_id=customer_id, fields=[field]
            )
        )


def may_act(request: affiant.AuthorizationRequest) -> bool:
    return request.principal.id == "rev-1"


with affiant.Affiant(tools=LimitTools(), docket=affiant.open_docket("memory://"), authorize=may_act) as host:
    [set_limit] = bind(host)  # hand these to create_agent(model, tools); here we call one as an agent would
    said = affiant.Turn("Set the limit of c-1 to 500")
    turn = affiant.TurnContext("acme", affiant.Member("ana"), conversation_id="chat-1", turn=said)
    print(set_limit.invoke({"customer_id": "c-1", "limit": 500}, {"configurable": {"affiant": turn}}))

    reviewer = affiant.ActContext("acme", affiant.Member("rev-1"))
    [row] = host.gate.rehydrate.sync(tenant_id="acme").entries
    row = host.gate.decide.sync(row.entry_id, affiant.Approve({"limit": 50}, reason="half a month"), reviewer)
    limits["c-1"] = row.accepted.values()["limit"]  # only the host writes, and only now
    row = host.gate.report.sync(row.entry_id, "executed", reviewer, detail={"code": "limit-set"})
    print(limits, row.status, row.execution, row.accepted.field("limit").tag.note)

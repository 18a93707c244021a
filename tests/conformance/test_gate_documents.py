"""The protocol's public documents on the gate: each one that the gate alone can run, and why the others are not run."""

from __future__ import annotations

from copy import deepcopy
from hashlib import sha256

import pytest
from support.fixture_driver import Run, missing, same, vacuous
from support.protocol import index, load, protocol_dir

SETS = ("gate", "decide", "sequence-a", "sequence-c")
ROWS = {row["id"]: row for row in index()["conformance"] if row["set"] in SETS}


def document(name):
    return load(protocol_dir() / ROWS[name]["file"])


RUNNABLE = sorted(name for name in ROWS if missing(document(name)) is None)
BY_MUTATION = "decide/expired-amendments-preserved", "decide/amend-recompute", "gate/standing-order-unbound-input"


@pytest.mark.parametrize("name", sorted(ROWS))
def test_the_document(name):
    """FIXTURES 2 to 5: the gate does what the protocol's document of this name expects, rule by rule."""
    read = document(name)
    assert (read["id"], read["rules"]) == (name, ROWS[name]["rules"])
    reason = missing(read)
    if reason:
        pytest.skip(reason=reason)
    assert Run(read).run() == []


@pytest.mark.parametrize("name", sorted(ROWS))
def test_the_document_is_the_published_one(name):
    """FIXTURES 10.1: the documents are those that the index lists, byte for byte."""
    content = (protocol_dir() / ROWS[name]["file"]).read_bytes()
    assert sha256(content).hexdigest() == ROWS[name]["sha256"]


def test_most_documents_are_run():
    """FIXTURES 1: the run is driven by the index; what is left out needs a step or a port that the gate does not
    have.
    """
    left_out = {missing(document(name)) for name in set(ROWS) - set(RUNNABLE)}
    assert all(reason.startswith("not built yet: ") for reason in left_out)
    assert len(RUNNABLE) >= 57


# --- the driver can fail -------------------------------------------------------------------------------------------


def leaves(node, path=()):
    """The places of every fact in an expectation."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif isinstance(node, list) and node:
        for number, value in enumerate(node):
            yield from leaves(value, (*path, number))
    else:
        yield path


def spoiled(value):
    """Something else of the same kind."""
    match value:
        case None:
            return "something"
        case bool():
            return not value
        case int() | float():
            return value + 1
        case []:
            return ["something"]
        case {}:
            return {"something": 1}
        case _:
            return f"not {value}"


@pytest.mark.parametrize("name", RUNNABLE)
def test_every_stated_fact_is_looked_at(name):
    """FIXTURES 5, "Matching": a document with any one of its expected facts spoiled no longer passes."""
    expect = document(name)["expect"]
    run = Run(document(name))
    run.perform()
    assert run.check(expect) == []
    for path in leaves(expect):
        changed = node = deepcopy(expect)
        for step in path[:-1]:
            node = node[step]
        value = node[path[-1]]
        if path[0] == "telemetry":
            node[path[-1]] = "policy.invalid"
        elif path[0] == "telemetryAbsent":
            node[path[-1]] = "affidavit.filed"
        else:
            node[path[-1]] = None if value == "@some" else spoiled(value)
        assert run.check(changed), f"nobody noticed {path}"


@pytest.mark.parametrize("name", BY_MUTATION)
def test_a_spoiled_proposal_is_noticed(name):
    """FIXTURES 5: a document whose act differs from the one that it describes fails."""
    changed = document(name)
    steps = [*changed["given"].get("prior", []), changed["given"]["step"]]
    for step in steps:
        for field in step.get("preparedFields", []):
            field["value"] = "spoiled"
    changed["given"]["gate"]["defaultTtlMs"] += 1
    assert Run(changed).run() != []


@pytest.mark.parametrize("expect", [{}, {"entry": {}}, {"telemetryAbsent": []}])
def test_a_document_without_a_fact_fails(expect):
    """FIXTURES 5, "Strictness": a document that states nothing proves nothing, and is reported."""
    changed = document("decide/approve")
    changed["expect"] = expect
    assert vacuous(expect)
    assert Run(changed).run() == [{"at": "expect", "expected": "at least one fact", "actual": "none"}]


@pytest.mark.parametrize("clause", [{"telemetry": ["no.such.key"]}, {"nosuch": 1}, {"entry": {"nosuch": 1}}])
def test_an_unknown_key_is_not_overlooked(clause):
    """FIXTURES 5, "Strictness": an unknown clause, member or telemetry key fails instead of passing unseen."""
    changed = document("decide/approve")
    changed["expect"] = clause
    with pytest.raises((AssertionError, AttributeError, KeyError)):
        Run(changed).run()


def test_equality_is_structural():
    """FIXTURES 5, "Matching": 0 is 0.0, True is not 1, objects compare by keys and arrays by length and element."""
    assert same({"a": [0, None]}, {"a": [0.0, None]})
    assert not same(1, True)
    assert not same([False], [0])
    assert not same({"a": 1}, {"a": 1, "b": None})
    assert not same([1], [1, 2])

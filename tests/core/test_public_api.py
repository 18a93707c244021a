"""What the package exports, says of itself, and loads."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import affiant_core
from affiant_core import bridge, errors

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(affiant_core.__file__).parent
PROGRAMS = sorted((ROOT / "tests" / "typing").glob("core_*.py"))

HEAVY = ("sqlalchemy", "langchain", "langchain_core", "langgraph", "opentelemetry", "anyio", "asyncpg", "agents")


def in_a_fresh_process(program):
    """What a program prints in an interpreter that has loaded nothing yet."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    return ran.stdout.split()


# --- what is exported ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [affiant_core, bridge], ids=lambda module: module.__name__)
def test_all_is_sorted_and_says_every_name_once(module):
    """DECISIONS 1, CONTRIBUTING: the public names stand in one sorted list without repeats."""
    assert list(module.__all__) == sorted(set(module.__all__))


def test_all_is_what_the_package_exports():
    """DECISIONS 1: what is in the list exists, and what the package imports for its users is in the list."""
    exported = {
        name
        for name, thing in vars(affiant_core).items()
        if not name.startswith("_") and not isinstance(thing, ModuleType)
    }
    assert exported == set(affiant_core.__all__)


def test_what_a_bridge_may_use_exists():
    """DECISIONS 1: the names that bridges share are there."""
    assert [name for name in bridge.__all__ if not hasattr(bridge, name)] == []


def test_a_star_import_gives_the_public_names():
    """DECISIONS 1: a user who imports everything gets the list and nothing besides."""
    names = in_a_fresh_process(
        "from affiant_core import *; print(*(name for name in dir() if not name.startswith('__')))"
    )
    assert names == affiant_core.__all__


def test_the_package_is_typed():
    """DECISIONS 1, "py.typed": the marker lies beside the code."""
    assert (SOURCE / "py.typed").is_file()


# --- what it says of itself ----------------------------------------------------------------------------------------

PUBLIC = [(module, name) for module in (affiant_core, bridge) for name in module.__all__]


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=[name for _, name in PUBLIC])
def test_every_public_object_has_a_docstring(module, name):
    """CONTRIBUTING: every public class and function has a docstring of its own; two aliases speak for themselves."""
    thing = getattr(module, name)
    if inspect.isclass(thing):
        own = vars(thing).get("__doc__") or ""
        assert own.strip(), name
        assert not own.startswith(f"{name}("), f"{name} has only the docstring that dataclasses write"
    elif inspect.isroutine(thing):
        assert (thing.__doc__ or "").strip(), name
    else:
        assert name in {"Binding", "Principal"}, f"{name} is neither a class nor a function"


POLICIES = (affiant_core.StandingOrder, affiant_core.Referral, affiant_core.ReviewerConfirmation)
"""Ready-made policies: they do what the protocol ``Policy`` says."""


def public_methods():
    for name in affiant_core.__all__:
        kind = getattr(affiant_core, name)
        if inspect.isclass(kind) and not getattr(kind, "_is_protocol", False):
            for member_name, member in vars(kind).items():
                if not member_name.startswith("_") and (
                    inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)
                ):
                    yield pytest.param(kind, member_name, member, id=f"{name}.{member_name}")


@pytest.mark.parametrize(("kind", "name", "member"), list(public_methods()))
def test_every_public_method_has_a_docstring(kind, name, member):
    """CONTRIBUTING: so has every public method, unless it does what a protocol's method of that name says."""
    function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    implements_a_protocol = (kind, name) in {
        (affiant_core.InMemoryDocketStore, method) for method in vars(affiant_core.DocketStore)
    } or (name in vars(affiant_core.Policy) and issubclass(kind, tuple(POLICIES)))
    assert (function.__doc__ or "").strip() or implements_a_protocol


# --- exceptions ----------------------------------------------------------------------------------------------------


def documented_tree():
    """The tree in the docstring of errors.py, as (name, name of its base) in order."""
    (block,) = re.findall(r"^::\n\n((?:    .*\n)+)", errors.__doc__, re.MULTILINE)
    tree, path = [], []
    for line in block.splitlines():
        match = re.match(r"^    ([│ ]*)(?:[├└]── )?(\w+)", line)
        depth = len(match[1]) // 4 + ("── " in line)
        path[depth:] = [match[2]]
        tree.append((match[2], path[depth - 1] if depth else "Exception"))
    return tree


def actual_tree():
    return {
        (
            name,
            next(base.__name__ for base in kind.__mro__[1:] if base is Exception or base.__module__ == errors.__name__),
        )
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, Exception)
    }


def test_the_tree_of_exceptions_is_the_documented_one():
    """errors, "Every exception this package raises on purpose": the tree names each class under its base."""
    tree = documented_tree()
    assert tree[0] == ("AffiantError", "Exception")
    assert len(tree) == len(set(tree)) > 20
    assert set(tree) == actual_tree()


def test_a_comment_in_the_tree_is_the_classs_own_business():
    """errors: each exception's docstring says when it is raised, or whose base it is."""
    for name, _ in documented_tree():
        assert re.match(r"(Raised |Base of |The protocol refused )", getattr(errors, name).__doc__), name


def test_every_refusal_has_a_code_of_its_own():
    """RULES, refusal codes: one class for each code, but WiringError, which is a WireupInvalid with a list."""
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.Refusal)]
    codes = [kind.code for kind in kinds if kind not in {errors.Refusal, errors.WiringError}]
    assert len(codes) == len(set(codes))
    # This version runs no requirement level that it refuses by raising; such rows are filed blocked (AZ-4).
    assert set(errors.RefusalCode) - set(codes) == {errors.RefusalCode.REQUIREMENT_NOT_IMPLEMENTED}


def test_no_exception_is_defined_elsewhere_but_for_arguments():
    """errors, "Every exception this package raises on purpose": other modules define none, save bridge and kit."""
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if path.parent.name == "standard":
                continue  # the kit's tests play hosts, which have exceptions of their own
            if isinstance(node, ast.ClassDef) and path.name != "errors.py":
                bases = {ast.unparse(base) for base in node.bases}
                if bases & ({name for name, _ in documented_tree()} | {"Exception", "ValueError", "RuntimeError"}):
                    found.append(f"{path.name}:{node.name}")
    assert sorted(found) == ["arguments.py:ArgumentsRefused", "harness.py:Unsupported"]


# --- what is loaded ------------------------------------------------------------------------------------------------


def test_importing_the_package_loads_nothing_heavy():
    """DECISIONS 1, CONTRIBUTING: the import touches no database, agent framework, event-loop library or telemetry."""
    program = "import sys, affiant_core; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = set(in_a_fresh_process(program))
    assert "pydantic" in loaded
    assert loaded & set(HEAVY) == set()


def test_filing_and_deciding_in_memory_loads_no_database():
    """DECISIONS 21: a synchronous host with a Docket in memory loads neither SQLAlchemy nor a loop's library."""
    program = """
import sys
from affiant_core import *
gate = ReviewGate(docket=open_docket("memory://"), authorize=lambda request: True)
turn = TurnContext("acme", Member("u"), conversation_id="c", turn=Turn("limit 10"))
field = AffidavitField.of("limit", 10, grade("limit", 10, utterance="limit 10", at=turn.turn.at))
record = Affidavit.create(operation_type="WriteCreate", entity_type="Customer", fields=[field])
row = gate.file.sync(record, turn, tool_name="set_limit").entry
print(gate.decide.sync(row.entry_id, Approve(), turn).status.value)
print(*{name.partition('.')[0] for name in sys.modules})
"""
    status, *loaded = in_a_fresh_process(program)
    assert status == "approved"
    assert set(loaded) & {"sqlalchemy", "langchain_core", "anyio"} == set()


# --- the programs that mypy checks ---------------------------------------------------------------------------------


def test_there_are_typing_programs():
    """DECISIONS 1, typed: user programs stand in tests/typing for mypy --strict."""
    assert len(PROGRAMS) >= 4


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_typing_program_runs_as_well(program):
    """DECISIONS 1, typed: what type-checks as a user's program works as one."""
    runpy.run_path(str(program), run_name="__main__")


@pytest.mark.parametrize(
    "error",
    [
        errors.DecisionExpired("DK-1: too late.", amendments_preserved=True),
        errors.WiringError([errors.WiringFault("tool 'a'", "it is wrong.", "Mend it.")]),
        errors.ValueRefused("fields.limit", "NaN is not JSON."),
        errors.AmendmentRefused("no such field."),
    ],
)
def test_an_error_crosses_to_another_process(error):
    """RULES, "A refusal = code + human reason": what a worker process raises arrives whole, details and all."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (type(error), str(error))
    for name in ("reason", "details", "faults", "path"):
        assert getattr(copy, name, None) == getattr(error, name, None)

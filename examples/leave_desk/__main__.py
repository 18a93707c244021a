"""The leave desk: an agent proposes, a manager decides, the host writes, and two crashes lose nothing.

Each act below runs in a process of its own over the same two SQLite files: the HR database and the Docket. The first
process is killed right after the agent filed; the second right after the host wrote and before it could report.
"""

from __future__ import annotations

import argparse
import logging
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import show
from agent import FRAMEWORKS, say
from conversation import Script
from host import EXECUTOR, TENANT, open_host, write
from hr import HEADCOUNT, HumanResources

from affiant_core import ActContext, Affiant, Approve, Listing, Member, Refusal, Reject
from affiant_core.gate import DEFAULT_TTL

ZOE = "emp-017"
MANAGER = ActContext(TENANT, Member("manager-product"), channel="desk")
HOLIDAY = "Please book annual leave for Zoë Nakamura from 2027-03-01 to 2027-03-05, family visit"
SICK = "I was sick on 2026-11-27, please record one day of sick leave for Zoë Nakamura"
MOVE = "Please move leave-1 to 2027-03-08 until 2027-03-11"
INTRODUCTION = f"""
An HR database of {HEADCOUNT} employees, an agent that may read it, and an empty Docket. The Docket is the durable list
of what the agent proposed; each proposal is one row. A card is a row as a reviewer sees it: each value, the value it
replaces, where it came from, and how sure that is. Five acts follow, each in a process of its own over the same two
files: the agent proposes, a manager decides and the host writes, the host reports, a second proposal is turned down,
and the Docket tells it all. Two of the processes are killed on the way.
"""


def die_hard() -> None:
    """What a power cut does: no clean-up of any kind."""
    sys.stdout.flush()
    signal.raise_signal(signal.SIGKILL)


def propose(host: Affiant, hr: HumanResources, framework: str) -> None:
    """Act 1: two turns of conversation; the process is killed when the agent has filed."""
    find = [("find_employee", {"name": "Zoë"})]
    holiday = {
        "employee_id": ZOE, "start": "2027-03-01", "end": "2027-03-05", "kind": "annual", "reason": "family visit",
    }  # fmt: skip
    sick = {"employee_id": ZOE, "start": "2026-11-27", "end": "2026-11-27", "kind": "sick"}
    script: Script = [find, [("request_leave", holiday)], "It is filed; your manager decides."]
    show.turn(say(framework, host, ZOE, HOLIDAY, "chat-1", script), explain=True)
    print()
    show.turn(
        say(framework, host, ZOE, SICK, "chat-1", [find, [("request_leave", sick)], "A standing order approved it."])
    )
    show.leave(hr, "after both turns")
    print("\n*** The process is killed here (SIGKILL). ***")
    die_hard()


def decide_and_crash(host: Affiant, hr: HumanResources, framework: str) -> None:
    """Act 2: a new process finds everything, a manager decides, the host writes, and dies before it reports."""
    waiting = host.gate.rehydrate.sync(tenant_id=TENANT).entries
    show.waiting(waiting)
    pending = next((row for row in waiting if row.status == "pending"), None)
    if pending is None:
        raise SystemExit("The model proposed nothing that a person must decide; run the scripted one.")
    show.card(host.gate.card(pending), pending)
    minutes = int(DEFAULT_TTL.total_seconds() // 60)
    show.line(
        "deadline", f"{minutes} minutes after filing, as this host sets no other; from then on the row is expired."
    )
    try:
        host.gate.decide.sync(pending.entry_id, Approve(), ActContext(TENANT, Member(ZOE)))
    except Refusal as refusal:
        show.line("Zoë herself", f"tries to approve it: {refusal}")
        show.line("", "Why: she asked for it herself, and this host wants four eyes. Every no reads the same.")
    approval = Approve({"end": "2027-03-04", "days": 4}, reason="Friday is the release")
    show.docket_row("row before", pending)
    show.docket_row("row after", host.gate.decide.sync(pending.entry_id, approval, MANAGER))
    show.leave(hr, "before the host writes")
    for approved in host.gate.page.sync(Listing.APPROVED_UNEXECUTED, tenant_id=TENANT).entries:
        show.line("host writes", f"{approved.entry_id}: {write(hr, approved)}")
    show.leave(hr, "after the host wrote")
    print("\n*** The process is killed here (SIGKILL): the host has written and reported nothing. ***")
    die_hard()


def report(host: Affiant, hr: HumanResources, framework: str) -> None:
    """Act 3: the rows still say approved and unexecuted; the key shows that the writes were made; the host reports."""
    for row in host.gate.page.sync(Listing.APPROVED_UNEXECUTED, tenant_id=TENANT).entries:
        code = write(hr, row)
        done = host.gate.report.sync(row.entry_id, "executed", EXECUTOR, detail={"code": code})
        show.line("host reports", f"{row.entry_id}: {code}")
        show.docket_row("row after", done)
    show.leave(hr, "after the report")


def reject(host: Affiant, hr: HumanResources, framework: str) -> None:
    """Act 4: an update with previous values is rejected, and the agent that tries again is told so."""
    call = [("move_leave", {"request_id": "leave-1", "start": "2027-03-08", "end": "2027-03-11"})]
    show.turn(say(framework, host, ZOE, MOVE, "chat-2", [call, "It is filed; your manager decides."]))
    [pending] = host.gate.page.sync(Listing.PENDING, tenant_id=TENANT).entries
    show.card(host.gate.card(pending), pending)
    show.docket_row("row before", pending)
    rejection = Reject("two others are away that week")
    show.docket_row("row after", host.gate.decide.sync(pending.entry_id, rejection, MANAGER))
    print()
    show.turn(say(framework, host, ZOE, MOVE, "chat-2", [call, "Your manager said no: two others are away that week."]))
    show.leave(hr, "unchanged")


def record(host: Affiant, hr: HumanResources, framework: str) -> None:
    """Act 5: what the Docket can answer about every value in the HR table."""
    for row in host.gate.page.sync(Listing.ALL, tenant_id=TENANT).entries:
        show.line(
            "row", f"{row.entry_id} {row.tool_name}: {row.status} by {show.who(row)}, {row.execution or 'not executed'}"
        )
        for field in row.accepted.fields:
            earlier = "".join(f", before that {tag.source}" for tag in field.provenance.prior)
            show.line("", f"{field.name} = {field.value}: {field.tag.source}{earlier}; {field.tag.note or 'no note'}")


ACTS: dict[str, tuple[str, Callable[[Affiant, HumanResources, str], None]]] = {
    "propose": ("1. The agent reads, and proposes. Nothing is written.", propose),
    "decide": ("2. A new process: the manager decides, the host writes.", decide_and_crash),
    "report": ("3. A new process: nothing was lost, nothing is written twice.", report),
    "reject": ("4. A rejection reaches the model as data.", reject),
    "record": ("5. The record: who approved it, and where each value came from.", record),
}
KILLED = {"propose", "decide"}


def run_act(name: str, folder: Path, framework: str) -> None:
    """One act, in this process."""
    title, act = ACTS[name]
    show.heading(title)
    host, hr = open_host(folder)
    with host:
        act(host, hr, framework)


def run_all(folder: Path, framework: str) -> int:
    """All acts, each in a process of its own."""
    HumanResources.create(folder / "hr.db")
    show.paragraph(f"{INTRODUCTION} The agent runs on {FRAMEWORKS[framework]}; the tools are the same on each.")
    for name in ACTS:
        sys.stdout.flush()
        command = [sys.executable, str(Path(__file__)), "--act", name, "--folder", str(folder)]
        command += ["--framework", framework]
        status = subprocess.run(command, check=False).returncode
        expected = -signal.SIGKILL if name in KILLED else 0
        if status != expected:
            print(f"The act {name!r} ended with status {status} instead of {expected}.")
            return 1
    print("\nDone: two crashes, no row lost, no write made twice.")
    return 0


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="leave_desk", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--folder", type=Path, help="keep the two databases in this empty folder; a temporary one otherwise"
    )
    parser.add_argument("--act", choices=list(ACTS), help="run one act over a folder that earlier acts have filled")
    parser.add_argument(
        "--framework", choices=list(FRAMEWORKS), default="langchain", help="whose agent loop to play it on"
    )
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if options.act:
        if options.folder is None:
            parser.error("--act needs --folder")
        run_act(options.act, options.folder, options.framework)
        return 0
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        if any(options.folder.iterdir()):
            parser.error(f"{options.folder} is not empty")
        return run_all(options.folder, options.framework)
    with tempfile.TemporaryDirectory(prefix="leave-desk-") as folder:
        return run_all(Path(folder), options.framework)


if __name__ == "__main__":
    sys.exit(main())

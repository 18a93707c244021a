"""A right bridge, to a framework of a few lines, and wrong ones, each with the one fault that its name says."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from affiant_core import bridge as shared
from affiant_core.context import Member, TurnContext
from affiant_core.driver import ASYNCHRONOUS, SYNCHRONOUS, run_now
from affiant_core.envelope import ToolEnvelope, ToolError
from affiant_core.errors import WireupInvalid
from affiant_core.pipeline import Stage, ToolInvocation
from affiant_core.testing import Backend, Capability, Gap, Harness, Transcript, answers, never
from affiant_core.vocabulary import CoverageCategory


class Right(Backend):
    """A framework in a few lines and its bridge, which lacks nothing. Each wrong bridge replaces one step of it."""

    stage = Stage.WHOLE

    def __init__(self, affiant, native, hosted):
        self.affiant = affiant
        self.wired(native, hosted)
        self.functions = self.bound()
        self.native = {each.__name__: each for each in native}
        self.pipeline = affiant.pipeline(stage=self.stage)

    def wired(self, native, hosted):
        runs_elsewhere = dict.fromkeys(hosted, CoverageCategory.PROVIDER_EXECUTED)
        self.affiant.check([each.__name__ for each in native], runs_elsewhere)

    def bound(self):
        return {each.descriptor.name: each for each in shared.bound_functions(self.affiant)}

    # One call, step by step.

    def named(self, name):
        return name

    def turn(self, context):
        return context

    def admitted(self, name, context):
        return shared.admitted(self.affiant, name, self.turn, context, remedy="Pass one.")

    def parsed(self, call):
        sent = call.arguments
        return shared.parse_arguments(sent) if isinstance(sent, str) else shared.carried_arguments(sent)

    def carried(self, call, arguments):
        return dict(arguments)

    async def body(self, name, driver, arguments, turn):
        if name in self.native:
            return self.native[name](**arguments)
        return await self.functions[name].call(driver, arguments, turn)

    def text(self, invocation):
        return shared.whole_text(invocation, ceiling=self.affiant.result_ceiling, telemetry=self.affiant.telemetry)

    async def run(self, invocation, body):
        await self.pipeline.run(invocation, body)

    async def outcome(self, call, context, driver=ASYNCHRONOUS):
        name = self.named(call.name)
        if name not in self.functions and name not in self.native:
            return ToolError(
                tool_name=name, code="UNKNOWN_TOOL", message="There is no such tool."
            ).to_json_string(), False
        descriptor, turn = self.admitted(name, context)
        invocation = ToolInvocation(name, turn, descriptor=descriptor, driver=driver)
        try:
            arguments = self.parsed(call)
        except shared.ArgumentsRefused as refused:
            return shared.invalid_arguments(name, refused.places).to_json_string(), False
        invocation.arguments = self.carried(call, arguments)

        async def body():
            try:
                return await self.body(name, driver, arguments, turn)
            except shared.ArgumentsRefused as refused:
                return shared.invalid_arguments(name, refused.places)

        await self.run(invocation, body)
        return self.text(invocation), invocation.terminate

    async def call(self, call, context):
        return (await self.outcome(call, context))[0]

    def call_now(self, call, context):
        return run_now(self.outcome(call, context, SYNCHRONOUS))[0]

    # One turn.

    async def play(self, script, context, *, mode="plain"):
        pairs = []
        for requests, reply in enumerate(script, 1):
            if isinstance(reply, str):
                return self.transcript(pairs, reply, requests)
            outcomes = await asyncio.gather(*(self.outcome(each, context) for each in reply))
            pairs += self.shown([(call.id, text) for call, (text, _) in zip(reply, outcomes, strict=True)])
            if any(terminate for _, terminate in outcomes):
                return self.transcript(pairs, "", requests)
        return self.transcript(pairs, "done", len(script) + 1)

    def shown(self, pairs):
        return pairs

    def transcript(self, pairs, final, requests):
        return Transcript(answers(pairs), final, requests, tuple(map(repr, pairs)))

    def play_now(self, script, context):
        return asyncio.run(self.play(script, context))

    async def play_nested(self, script, context, *, mode="plain"):
        return await self.play(script, context, mode=mode)


class Kit(Harness):
    """The harness of every bridge here."""

    name = "toy"

    def __init__(self, backend):
        self.backend = backend

    def wire(self, affiant):
        return self.backend(affiant, (), ())

    def wire_beside(self, affiant, *, native=(), hosted=()):
        return self.backend(affiant, native, hosted)

    def __repr__(self):
        return self.backend.__name__


# --- the gate ------------------------------------------------------------------------------------------------------


class Ungated(Right):
    """Leaves the review out."""

    stage = Stage.INVOCATION


class GatingTwice(Right):
    """Puts a second gate around the first when it is installed a second time."""

    gated: ClassVar[list[object]] = []

    def __init__(self, *parts):
        super().__init__(*parts)
        self.is_second = any(each is self.affiant for each in self.gated)
        self.gated.append(self.affiant)

    async def run(self, invocation, body):
        await super().run(invocation, body)
        if self.is_second:
            first = invocation.result

            async def again():
                return first

            await super().run(invocation, again)


class NeverEnding(Right):
    """Pays no heed to a host that ends the turn once a person has to decide."""

    async def outcome(self, *parts):
        return (await super().outcome(*parts))[0], False


# --- arguments -----------------------------------------------------------------------------------------------------


class Dropping(Right):
    """Says that it carries the arguments to the gate, and carries none."""

    def carried(self, call, arguments):
        return {}


class Secretly(Right):
    """Says that it carries no arguments, and carries them."""


class Adding(Right):
    """Carries its framework's own values as if the model had sent them."""

    numbers = 0

    def carried(self, call, arguments):
        Adding.numbers += 1
        return {**arguments, "run": Adding.numbers}


class Forgetting(Right):
    """Leaves out the names that it does not know."""

    async def body(self, name, driver, arguments, turn):
        known = {each: arguments[each] for each in arguments if each in self.functions[name].model.model_fields}
        return await super().body(name, driver, known, turn)


class Casting(Right):
    """Makes a value what the annotation says, by calling it."""

    async def body(self, name, driver, arguments, turn):
        kinds = {"force": bool, "limit": int}
        with contextlib.suppress(ValueError, TypeError):
            arguments = {each: kinds.get(each, lambda value: value)(value) for each, value in arguments.items()}
        return await super().body(name, driver, arguments, turn)


class Lenient(Right):
    """Reads a model's text with a parser that takes anything."""

    def parsed(self, call):
        sent = call.arguments
        if not isinstance(sent, str):
            return super().parsed(call)
        try:
            return json.loads(sent)
        except ValueError:
            raise shared.ArgumentsRefused("it is not JSON.") from None


class Ending(Right):
    """Ends the turn for a model's mistake."""

    def parsed(self, call):
        try:
            return super().parsed(call)
        except shared.ArgumentsRefused as refused:
            raise RuntimeError("the model made a mistake") from refused


class Forged(Right):
    """Lets a model bring its own turn."""

    async def body(self, name, driver, arguments, turn):
        bound = self.functions[name]
        if bound.turn in arguments:
            own = {each: arguments[each] for each in (*bound.model.model_fields, bound.turn) if each in arguments}
            return await driver.offload(lambda: bound.function(**own))
        return await super().body(name, driver, arguments, turn)


# --- the context ---------------------------------------------------------------------------------------------------


class OneTenant(Right):
    """Files everything for one tenant."""

    def turn(self, context):
        return replace(context, tenant_id="default") if isinstance(context, TurnContext) else context


class Remembering(Right):
    """Takes the last context where there is none."""

    last = None

    def turn(self, context):
        if isinstance(context, TurnContext):
            self.last = context
        return self.last if context is None else context


class Mixing(Right):
    """Keeps the turn on itself while a body runs."""

    async def body(self, name, driver, arguments, turn):
        self.now = turn
        await asyncio.sleep(0)
        return await super().body(name, driver, arguments, self.now)


class Repairing(Right):
    """Makes a context of what looks like one."""

    def turn(self, context):
        if isinstance(context, dict):
            return TurnContext(context["tenant_id"], Member(context["principal"]), "chat", conversation_id="c-1")
        return context


class Whispering(Right):
    """Tells the model, and not the host, that there is no context."""

    async def outcome(self, call, *parts):
        try:
            return await super().outcome(call, *parts)
        except WireupInvalid as refusal:
            return ToolError(tool_name=call.name, code="wireup-invalid", message=str(refusal)).to_json_string(), False


class Late(Right):
    """Looks at the context only where something is to be filed."""

    def admitted(self, name, context):
        if not isinstance(context, TurnContext) and not self.affiant.registry.find(name).is_write:
            context = TurnContext("nobody", None, "chat", conversation_id="none")
        return super().admitted(name, context)


# --- failures ------------------------------------------------------------------------------------------------------


class Persistent(Right):
    """Tries each attempt twice."""

    async def body(self, *parts):
        try:
            return await super().body(*parts)
        except TimeoutError:
            return await super().body(*parts)


class Resigned(Right):
    """Never tries again."""

    async def run(self, invocation, body):
        invocation.next_is_tool_body = False
        await super().run(invocation, body)


class Obedient(Right):
    """Tries again because the tool says that one may."""

    async def body(self, *parts):
        result = await super().body(*parts)
        return await super().body(*parts) if isinstance(result, ToolError) and result.retryable else result


class Talkative(Right):
    """Tells the model what the exception says."""

    async def body(self, name, *parts):
        try:
            return await super().body(name, *parts)
        except RuntimeError as error:
            return ToolError(tool_name=name, code="UNKNOWN", message=f"Error: {error!r}")


class Deaf(Right):
    """Answers a call that was cancelled."""

    async def run(self, invocation, body):
        try:
            await super().run(invocation, body)
        except asyncio.CancelledError:
            invocation.result = ToolError(tool_name=invocation.tool_name, code="CANCELLED", message="Cancelled.")


class Unstoppable(Right):
    """Lets a call go on that was cancelled."""

    async def call(self, *parts):
        return await asyncio.shield(super().call(*parts))

    async def play(self, *parts, **options):
        return await asyncio.shield(super().play(*parts, **options))


class Undoing(Right):
    """Takes back what was filed when the call was cancelled."""

    async def run(self, invocation, body):
        try:
            await super().run(invocation, body)
        except asyncio.CancelledError:
            self.affiant.docket._rows.clear()
            raise


# --- results -------------------------------------------------------------------------------------------------------


class Printing(Right):
    """Tells the model how Python would print an envelope."""

    def text(self, invocation):
        result = invocation.result
        return repr(result) if isinstance(result, ToolEnvelope) else super().text(invocation)


class Twice(Right):
    """Answers each call of a turn twice."""

    def shown(self, pairs):
        return pairs * 2


class Swapping(Right):
    """Gives the calls of one message each other's answers."""

    def shown(self, pairs):
        texts = [text for _, text in pairs]
        return [(call, text) for (call, _), text in zip(pairs, reversed(texts), strict=True)]


# --- coverage ------------------------------------------------------------------------------------------------------


class Trusting(Right):
    """Offers whatever the framework holds."""

    def wired(self, native, hosted):
        self.affiant.check((), dict.fromkeys(hosted, CoverageCategory.PROVIDER_EXECUTED))


class OneByOne(Right):
    """Stops at the first undeclared tool."""

    def wired(self, native, hosted):
        for each in native:
            self.affiant.check([each.__name__])
        super().wired((), hosted)


class Hosting(Right):
    """Offers what a provider runs."""

    def wired(self, native, hosted):
        super().wired(native, ())


class Refusing(Right):
    """Refuses what a provider runs, although the host has accepted it."""

    def wired(self, native, hosted):
        if hosted:
            self.affiant.check((), dict.fromkeys(hosted, CoverageCategory.HOSTED_MCP))
        super().wired(native, hosted)


class Past(Right):
    """Runs the framework's own tools past the pipeline."""

    async def outcome(self, call, *parts):
        if call.name in self.native:
            return self.native[call.name](**call.arguments), False
        return await super().outcome(call, *parts)


class Guessing(Right):
    """Takes a name for the nearest one."""

    def named(self, name):
        near = difflib.get_close_matches(name, [*self.functions, *self.native], 1)
        return near[0] if near else name


# --- concurrency ---------------------------------------------------------------------------------------------------


class Blocking(Right):
    """Runs plain functions on the event loop."""

    async def body(self, name, driver, arguments, turn):
        return await super().body(name, SYNCHRONOUS, arguments, turn)


class Elsewhere(Right):
    """Runs bodies without the caller's context variables."""

    async def body(self, *parts):
        whole = asyncio.get_running_loop().run_in_executor
        return await whole(None, lambda: asyncio.run(super(Elsewhere, self).body(*parts)))


class AtHome(Right):
    """Belongs to the event loop on which it was first used."""

    home = None

    async def call(self, *parts):
        loop = asyncio.get_running_loop()
        self.home = self.home or loop
        if loop is not self.home:
            raise RuntimeError("this belongs to another event loop")
        return await super().call(*parts)


class Looping(Right):
    """Opens an event loop for a call from code without one."""

    def call_now(self, *parts):
        with contextlib.closing(self.call(*parts)) as call:  # asyncio.run does not close what it refuses
            return asyncio.run(call)


# --- turns ---------------------------------------------------------------------------------------------------------


class Stream(Right):
    """Streams past the gate."""

    async def play(self, script, context, *, mode="plain"):
        backend = Ungated(self.affiant, (), ()) if mode == "streamed" else super()
        return await backend.play(script, context)


class Hidden(Right):
    """Runs a turn without an event loop in a conversation of its own."""

    def play_now(self, script, context):
        return super().play_now(script, replace(context, conversation_id="sync"))


class Lost(Right):
    """Gives an agent that is a tool a conversation of its own."""

    async def play_nested(self, script, context, *, mode="plain"):
        return await self.play(script, replace(context, conversation_id="inner"))


class Watched(Right):
    """Shows observers what the tool returned."""

    async def body(self, *parts):
        result = await super().body(*parts)
        self.seen = (*getattr(self, "seen", ()), repr(result), str(result))
        return result

    def transcript(self, *parts):
        whole = super().transcript(*parts)
        return replace(whole, seen=(*whole.seen, *self.seen))


class Silent(Kit):
    """Says that the gate gets no arguments."""

    gaps: Mapping[str, Gap] = {Capability.ARGUMENTS_AT_THE_GATE: never("it says so")}


def harnesses(names):
    """A harness for each of these bridges."""
    return [(Silent if name == "Secretly" else Kit)(globals()[name]) for name in names]

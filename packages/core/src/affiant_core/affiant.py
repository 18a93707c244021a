"""The host's one object: its tools, its gate and the pipeline around every call, wired and checked together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import Self

from affiant_core.authority import Authorize, deny_all
from affiant_core.card import Transport
from affiant_core.context import TurnContext, require_turn
from affiant_core.docket.store import DocketStore
from affiant_core.driver import ASYNCHRONOUS
from affiant_core.errors import RefusalCode, WireupInvalid, WiringError, WiringFault
from affiant_core.filters.extraction import ContextExtractionFilter, ContextExtractor
from affiant_core.filters.failures import ErrorRule, ToolErrorFilter
from affiant_core.filters.review import (
    DefaultReviewContextProvider,
    ModelView,
    ReviewContextProvider,
    ReviewGateFilter,
)
from affiant_core.filters.short_circuit import DeterministicShortCircuit, Interceptor
from affiant_core.filters.tracing import ToolTracingFilter
from affiant_core.gate import DEFAULT_TTL, ReviewGate
from affiant_core.pipeline import Filter, Pipeline, Stage
from affiant_core.policy import Policy, RiskScorer
from affiant_core.reading import Clock
from affiant_core.registry import FieldDeclaration, ToolDescriptor, ToolRegistry
from affiant_core.telemetry import Listener, Telemetry
from affiant_core.values import utc_now
from affiant_core.vocabulary import CoverageCategory

DEFAULT_RESULT_CEILING = 256 * 1024
"""The most bytes of UTF-8 that one tool result may put before a model, unless the host says otherwise."""

MINIMUM_RESULT_CEILING = 2 * 1024


class Affiant(AbstractContextManager["Affiant"]):
    """Everything that a bridge needs from a host.

    ``tools`` is a tool object, a function, or several of them; tools that the framework already holds are declared with
    :meth:`declare_read` and :meth:`declare_write`. ``authorize`` is required as soon as a tool writes. ``policies`` are
    asked in order for each proposal. ``extractors``, ``interceptors`` and ``filters`` are the host's own layers of the
    pipeline; ``filters`` stand outside everything else. ``errors`` names the host's own exceptions. ``model_view`` is
    what a model gets after filing: a receipt without values, or the filed proposal. ``terminate_on_review`` ends the
    turn when a person is asked. ``result_ceiling`` is in bytes of UTF-8.

    Raises ``WiringError`` with every fault of its own parts in one error. What depends on the tools, which a host may
    still declare, is checked by :meth:`check`, which every bridge calls (CV-1).
    """

    def __init__(
        self,
        *,
        docket: DocketStore,
        tools: object = (),
        authorize: Authorize | None = None,
        policies: Sequence[Policy] = (),
        default_ttl: timedelta = DEFAULT_TTL,
        risk_scorer: RiskScorer | None = None,
        transport: Transport | None = None,
        uncovered: Mapping[str, CoverageCategory] | None = None,
        registry: ToolRegistry | None = None,
        context_provider: ReviewContextProvider | None = None,
        extractors: Sequence[ContextExtractor] = (),
        interceptors: Sequence[Interceptor] = (),
        filters: Sequence[Filter] = (),
        errors: Mapping[type[BaseException], ErrorRule] | None = None,
        model_view: ModelView = "receipt",
        terminate_on_review: bool = False,
        result_ceiling: int = DEFAULT_RESULT_CEILING,
        clock: Clock = utc_now,
        listeners: Iterable[Listener] = (),
    ) -> None:
        self.registry: ToolRegistry = ToolRegistry() if registry is None else registry
        self.telemetry: Telemetry = Telemetry(listeners)
        self.docket = docket
        self.result_ceiling = result_ceiling
        self._has_authorization = authorize is not None
        faults = self._walk(tools)
        faults += _own_faults(result_ceiling, model_view, errors or {})
        try:
            self.gate: ReviewGate = ReviewGate(
                docket=docket,
                authorize=deny_all if authorize is None else authorize,
                policies=policies,
                default_ttl=default_ttl,
                risk_scorer=risk_scorer,
                transport=transport,
                uncovered=uncovered,
                clock=clock,
                telemetry=self.telemetry,
            )
        except WiringError as error:
            faults += error.faults
        if faults:
            raise WiringError(faults)
        self._context_provider = DefaultReviewContextProvider() if context_provider is None else context_provider
        self._model_view: ModelView = model_view
        self.terminate_on_review = terminate_on_review
        self._layers = (tuple(filters), tuple(interceptors), tuple(extractors))
        self._errors = dict(errors or {})
        self._uncovered = dict(uncovered or {})

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await ASYNCHRONOUS.offload(self.close)

    def close(self) -> None:
        """Close the Docket. The object is not used again."""
        self.docket.close()

    def pipeline(
        self, propagates: Callable[[BaseException], bool] = lambda _: False, *, stage: Stage = Stage.WHOLE
    ) -> Pipeline:
        """The layers around a call, outermost first. ``propagates`` names a framework's own control flow.

        This list is the order, and the only place that states it. The review stands inside everything that looks at
        results, so that they see what the gate made of a proposal, and outside the tool. Where a framework has two
        hooks, each carries its ``stage``: the review and a mapping of its failures, or all the rest. The host's own
        layers are part of the rest, and stand before the review there.
        """
        host_filters, interceptors, extractors = self._layers
        failures = ToolErrorFilter(self.telemetry, self._errors, propagates)
        review = ReviewGateFilter(
            self.gate,
            self._context_provider,
            model_view=self._model_view,
            terminate_on_review=self.terminate_on_review,
            propagates=failures.propagates,
        )
        if stage is Stage.COMPLETION:
            return Pipeline([failures, review], stage)
        is_whole = stage is Stage.WHOLE
        return Pipeline(
            [
                *host_filters,
                failures,
                *([DeterministicShortCircuit(interceptors, review if is_whole else None)] if interceptors else []),
                ToolTracingFilter(self.telemetry),
                *(ContextExtractionFilter(each, self.telemetry, failures.propagates) for each in extractors),
                *([review] if is_whole else []),
            ],
            stage,
        )

    def declare_read(self, name: str, *, plugin: str | None = None, entity_type: str | None = None) -> ToolDescriptor:
        """Declare that a tool which the framework holds writes nothing."""
        return self.registry.declare_read(name, plugin=plugin, entity_type=entity_type)

    def declare_write(
        self,
        name: str,
        *,
        operation: str,
        entity_type: str,
        plugin: str | None = None,
        fields: Sequence[FieldDeclaration] = (),
        strategy: object = None,
    ) -> ToolDescriptor:
        """Declare that a tool which the framework holds proposes a write, and makes none itself (GT-6)."""
        return self.registry.declare_write(
            name, operation=operation, entity_type=entity_type, plugin=plugin, fields=fields, strategy=strategy
        )

    def check(
        self,
        tool_names: Iterable[str] = (),
        hosted: Mapping[str, CoverageCategory] | None = None,
        *,
        faults: Iterable[WiringFault] = (),
    ) -> None:
        """Check the whole wiring, with the names of the tools that a framework is about to offer.

        ``hosted`` are the tools among them that no seam stands in front of, such as those that a provider runs itself,
        and why. Each is refused with ``coverage-refused`` unless the host has named it in ``uncovered`` (CV-4).
        ``faults`` are what a bridge has found by itself, to be told with the rest.

        Raises ``WiringError`` listing every undeclared tool and every other fault at once (CV-1).
        """
        faults = [*faults, *self.registry.faults(), *self.registry.undeclared(tool_names)]
        faults += [
            WiringFault(f"uncovered tool {name!r}", "no such tool is declared.", "Declare it, or leave it out.")
            for name, category in self._uncovered.items()
            # What runs elsewhere is known to a framework or a provider, and to no registry.
            if category == CoverageCategory.NO_EXECUTE and self.registry.find(name) is None
        ]
        for name, category in (hosted or {}).items():
            if self._uncovered.get(name) != category:
                faults.append(uncovered_fault(name, category))
                self.telemetry.emit(
                    "coverage.refused",
                    {"gen_ai.tool.name": name, "coverage.category": category.value, "phase": "wire-up"},
                )
        faults += self._authorization_faults()
        if faults:
            raise WiringError(list(dict.fromkeys(faults)))

    def admit(
        self, tool_name: str, context: object, *, plugin: str | None = None, remedy: str = "Pass one explicitly."
    ) -> tuple[ToolDescriptor, TurnContext]:
        """Let a call in before any body runs, read or write: it has a context and its tool is declared (CV-2).

        ``remedy`` says how the framework passes a context. Raises ``WireupInvalid``, which a bridge lets through to the
        host: the turn fails closed (DECISIONS 12, 13).
        """
        turn = require_turn(context, f"a call of {tool_name!r}", remedy)
        descriptor = self.registry.find(tool_name) if plugin is None else self.registry.find_exact(tool_name, plugin)
        if descriptor is None:
            named = f"{plugin}.{tool_name}" if plugin else tool_name
            raise WireupInvalid(
                f"the tool {named!r} is not declared, so nobody can tell whether it writes. Declare it with "
                "affiant.declare_read(...) or affiant.declare_write(...), or take it out."
            )
        return descriptor, turn

    def _authorization_faults(self) -> list[WiringFault]:
        if self._has_authorization:
            return []
        return [
            WiringFault(
                f"tool {descriptor.qualified_name!r}",
                "it writes, and nobody could ever approve it: there is no authorization port.",
                "Pass authorize=, a function of an AuthorizationRequest that returns True for a yes.",
            )
            for descriptor in self.registry
            if descriptor.is_write
        ]

    def _walk(self, tools: object) -> list[WiringFault]:
        faults: list[WiringFault] = []
        for target in tools if isinstance(tools, list | tuple) else (tools,):
            try:
                if not self.registry.walk(target):
                    faults.append(_without_tools(target))
            except WiringError as error:
                faults += error.faults
        return faults


def uncovered_fault(name: str, category: CoverageCategory) -> WiringFault:
    """The fault of a tool that no seam stands in front of, and which the host has not named (CV-4)."""
    return WiringFault(
        f"tool {name!r}",
        f"coverage-refused ({category.value}): {_WHERE_IT_RUNS[category]}, where no gate can stand.",
        f"Leave it out, put a tool of your own in its place, or accept it by name: uncovered={{{name!r}: "
        f"CoverageCategory.{category.name}}}.",
        RefusalCode.COVERAGE_REFUSED,
    )


_WHERE_IT_RUNS = {
    CoverageCategory.NO_EXECUTE: "the framework runs it past every hook",
    CoverageCategory.PROVIDER_EXECUTED: "it runs at the model's provider",
    CoverageCategory.HOSTED_MCP: "the model's provider calls it on another server",
}


def _without_tools(target: object) -> WiringFault:
    return WiringFault(
        f"tools: a {type(target).__name__}",
        "it has no tools: no public instance methods.",
        "Pass the object whose methods are the tools, a function, or a list of those.",
    )


def _own_faults(
    result_ceiling: object, model_view: object, errors: Mapping[type[BaseException], ErrorRule]
) -> list[WiringFault]:
    faults: list[WiringFault] = []
    if isinstance(result_ceiling, bool) or not isinstance(result_ceiling, int):
        faults.append(WiringFault("result_ceiling", "it is not a whole number of bytes.", "Pass an int."))
    elif result_ceiling < MINIMUM_RESULT_CEILING:
        faults.append(
            WiringFault("result_ceiling", "no envelope fits.", f"Pass at least {MINIMUM_RESULT_CEILING} bytes.")
        )
    if model_view not in ("receipt", "proposal"):
        faults.append(WiringFault("model_view", "it is not known.", "Pass 'receipt' or 'proposal'."))
    faults += [
        WiringFault(
            f"errors: {kind.__name__}",
            "its rule has no code or no message.",
            "Give an ErrorRule with both, such as ErrorRule('CUSTOMER_GONE', 'The customer has left.').",
        )
        for kind, rule in errors.items()
        if not isinstance(rule, ErrorRule) or not rule.code or not rule.message
    ]
    return faults

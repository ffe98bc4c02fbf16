"""`torch.compile(model, backend="lmsc", options={"budget": …})`: PyTorch runs a plan of lmsc.

PyTorch traces forward and backward as one joint graph. It becomes a planning problem (`problem`), the library plans it within the budget, and
the plan is written as a forward and a backward graph (`write`): the operators in the plan's order, copies to the host and back, operators that
run again. A checker that shares no code with the writer (`check`) compares them with the joint graph before they run.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.convert_frame import compile_lock
from torch._functorch.partitioners import _extract_fwd_bwd_outputs
from torch.fx.graph import _BoxedCodeGen
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils.weak import WeakIdKeyDictionary

from ..._lmsc import Error
from .check import Unsound
from .planning import Form, Options, Plan, Plans, Portion, Written, budget_of_a_step, log, planned, size
from .state import RestingState
from .problem import device_of
from .shares import Costs, Share
from .steps import Call, Pass, Step, refusal, step_of
from .write import Ends

__all__ = ["Plan", "Plans", "Unsound", "backend", "plan", "plans"]

#: The plans of compiled graphs that are still there, by the order in which they were made, and the parameters and buffers that each graph has read. A
#: compiled graph holds its plan.
_PLANS: dict[int, tuple[weakref.ref[Plan], WeakIdKeyDictionary]] = {}
_graphs = itertools.count()

#: The function of Dynamo that compiles a frame.
_COMPILE = torch._dynamo.convert_frame._compile.__code__


def backend(graph: fx.GraphModule, inputs: Sequence[Any], *, options: dict[str, Any] | None = None) -> Callable[..., Any]:
    """The compiled graph; a backend for `torch.compile`.

    An error of lmsc is raised by the call of the graph, not from here: PyTorch would hide it in a report about its compiler.
    """
    return _compiled(graph, inputs, options, moving=True)


def _compiled(graph: fx.GraphModule, inputs: Sequence[Any], options: dict[str, Any] | None, moving: bool) -> Callable[..., Any]:
    """The compiled graph. With `moving` the state of the optimizers rests on the host from now on."""
    try:
        compilation = _Compilation(Options.of(options), step_of(options))
        run = compilation.compiled(graph, inputs)
        for state in compilation.states if moving else ():
            state.move()
    except Error as error:
        return _refusing(error, graph, inputs)
    run._lmsc_plans = compilation.plans
    return run


def _refusing(error: Error, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """A function that raises the error when it is called."""
    tracing = torch._guards.TracingContext.try_get()
    if tracing is None or tracing.ddp_optimizer_ctx is None:
        return torch._dynamo.disable(functools.partial(_refuse, error))
    # DistributedDataParallel compiles a graph in pieces, and runs each with tensors without bytes, to learn what the next one gets.
    unplanned = aot_autograd(fw_compiler=_boxed, bw_compiler=_boxed)(graph, inputs)

    def run(*args: Any) -> Any:
        return unplanned(*args) if torch._guards.detect_fake_mode(args) else _refuse(error)

    return torch._dynamo.disable(run)


def _refuse(error: Error, *_: Any) -> Any:
    raise error.with_traceback(None)


class _Compilation:
    """The compilation of one graph of Dynamo, and once more when the budget of its step is divided."""

    def __init__(self, options: Options, step: Step):
        self.options, self.step, self.goal, self.number = options, step, options.budget, next(_graphs)
        self.states = [RestingState.of(optimizer) for optimizer in options.optimizer]
        self.costs_of_states = [state.costs() for state in self.states]
        compile_id = torch._guards.CompileContext.current_compile_id()
        self.name = f"graph {compile_id or self.number}"
        self.plans: list[Plan] = []
        self.read = WeakIdKeyDictionary()
        #: The bytes of parameters and buffers of the latest call, by their storages.
        self.lasting: dict[int, int] = {}
        self.has_backward = False
        self.costs: Costs | None = None
        self.portion: Portion | None = None
        self.call: Call | None = None
        #: Dynamo's graph, until the plan is final.
        self.graph: fx.GraphModule | None = None

    @property
    def plan(self) -> Plan | None:
        return self.plans[-1] if self.plans else None

    def compiled(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        nodes = zip(graph.graph.find_nodes(op="placeholder"), inputs, strict=False)
        self.places = [place for place, (node, _) in enumerate(nodes) if _is_of_a_module(node)]
        if self.options.several or _is_of_several(graph, inputs) or self.step.held():
            self.portion = Portion(None, None)
        self.is_alone = self.portion is None
        run = self._planned(graph, inputs)
        self.step.add(self)
        if self.costs is not None:
            self.graph = graph
        return self._following(run)

    def _planned(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """The planned graph."""
        self.call = self._call(inputs)
        try:
            return self._compiled(graph, inputs)
        finally:
            self.call = None  # The graph may outlive the model.

    def _call(self, args: Sequence[Any]) -> Call:
        """The bytes of the arguments, by their storages."""
        lasting, inputs = {}, {}
        gradients = {}
        for place, value in enumerate(args):
            if _has_storage(value):
                storage = value.untyped_storage()
                (lasting if place in self.places else inputs)[storage._cdata] = storage.nbytes()
                if value.requires_grad and value.is_leaf:
                    gradients[storage._cdata] = storage.nbytes()
        self.lasting = lasting
        return Call(self, lasting, inputs, gradients)

    def _following(self, first: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which follows its step: it notes the parameters and buffers that it gets, for Dynamo runs one graph for all modules of the same
        code, and the calls whose tensors are held. After the step's division it is another one."""
        run, latest = first, None
        read, places = self.read, self.places

        def following(*args: Any) -> Any:
            nonlocal run, latest
            if places and (latest is None or latest() is not args[places[0]]):
                latest = weakref.ref(args[places[0]])
                for place in places:
                    read[args[place]] = None
            if not self._is_followed():
                return run(*args)
            call = self._call(args)
            # Several threads may call the graphs of a step. Dynamo holds this lock while it compiles one of them.
            with compile_lock:
                self.step.begin(call, self.budget(0) if self.options.of_the_machine else 0)
                if self.portion is not None and self.portion.share is not None:
                    run = self._planned(self.graph, args)
                    self._settle()
                now = run
            results = now(*args)
            with compile_lock:
                self._note(call, results)
            return results

        return following

    def _is_followed(self) -> bool:
        """Whether a call may hold tensors for a backward pass. While checkpoints or other hooks take the saved tensors, the graph holds none, and a
        backward pass that PyTorch compiles runs no hooks of ours."""
        return (
            self.has_backward
            and torch.is_grad_enabled()
            and torch._guards.TracingContext.try_get() is None
            and not torch._dynamo.config.compiled_autograd
            and torch._C._autograd._top_saved_tensors_default_hooks(True) is None
        )

    def _note(self, call: Call, results: Sequence[Any]) -> None:
        """Notes that the results of the call, and what it saves, are held until its backward pass begins."""
        given = {**call.lasting, **call.inputs}
        storages = [value.untyped_storage() for value in results if _has_storage(value)]
        made = {storage._cdata: storage.nbytes() for storage in storages if storage._cdata not in given}
        nodes = [value.grad_fn for value in results if isinstance(value, torch.Tensor) and value.grad_fn is not None]
        if nodes:
            one = Pass(dataclasses.replace(call, results=made))
            next((node for node in nodes if "CompiledFunction" in node.name()), nodes[0]).register_prehook(one.begin)
            self.step.add_pass(one)

    def budget(self, as_it_is: int) -> int:
        """The bytes of the step's budget, if the step takes so many without a plan."""
        return budget_of_a_step(self.options, self.target, as_it_is)

    def take(self, share: Share, budget: int, seconds: float) -> None:
        """Has the graph planned within the share before its next call, unless its plan is as good."""
        fits = self.plan.peak <= share.bytes and self.plan.held <= share.held and self.plan.seconds <= seconds
        if fits:
            self._keep(dataclasses.replace(self.plan, budget=budget, beside=budget - share.bytes, first=False))
            log.info("%s", self.plan)
            self._settle()
        else:
            self.portion = Portion(share, budget)

    def _settle(self) -> None:
        """The plan is final."""
        self.portion = self.graph = None
        told = self.step.told(self)
        if told is not None:
            log.info("%s", told)

    def _compiled(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        if self.options.inner == "inductor":
            from . import inductor  # It loads Inductor.

            try:
                return inductor.compiled(graph, inputs, self._written)
            except inductor.NotCompiled as reason:
                log.warning("%s is not compiled by Inductor, but run by PyTorch's own operators: %s", self.name, reason)
        how = aot_autograd(
            fw_compiler=self._run, bw_compiler=self._run, inference_compiler=self._inference, partition_fn=self._partition
        )
        return how(graph, inputs)

    def _run(self, graph: fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        run = _boxed(graph, inputs)
        run._lmsc_plans = self.plans  # They are in force as long as the graph is there.
        return run

    def _partition(self, joint: fx.GraphModule, _inputs: Any, *, num_fwd_outputs: int, **_: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        written = self._written(joint, Ends(*_extract_fwd_bwd_outputs(joint, num_fwd_outputs=num_fwd_outputs)))
        return written.forward, written.backward

    def _inference(self, graph: fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        """AOTAutograd calls no partitioner for a graph without a backward pass."""
        outputs = list(next(iter(graph.graph.find_nodes(op="output"))).args[0])
        written = self._written(graph, Ends(outputs, [], [None] * len(outputs), []))
        return self._run(written.forward, inputs)

    def _written(self, graph: fx.GraphModule, ends: Ends, form: Form = Form()) -> Written:  # noqa: B008 (it is frozen)
        """The graphs of a plan that keeps within the share of the step's budget, or within what its other graphs leave of it."""
        self.target = self.options.machine(device_of(graph.graph))
        self.has_backward = bool(ends.backward)
        portion = self.portion
        if portion is not None and portion.share is None and self.options.of_the_machine:
            portion = Portion(None, self.budget(0))
        stays = sum(costs.stays for costs in self.costs_of_states)
        earlier = self.step.beside(self.call)
        written = planned(graph, ends, self.options, self.name, set(self.places), earlier, stays, form, portion)
        plan = written.plan
        if self.states and ends.backward:
            plan = dataclasses.replace(plan, state=sum(costs.rests for costs in self.costs_of_states), update=self._bytes_of_an_update(plan))
            if self.options.of_the_machine and plan.update > plan.budget:
                reason = f"an update of the optimizer takes {plan.update} bytes of a budget of {plan.budget}: parameters, gradients, and a part of its state"
                raise refusal(reason, plan.update, plan.budget, plan.update)
        log.info("%s", plan)
        self._keep(plan)
        self.costs = written.costs if self.portion is None or self.portion.share is None else None
        return written

    def _bytes_of_an_update(self, plan: Plan) -> int:
        """The most bytes of the device while an optimizer updates: parameters, buffers, gradients, what the loop holds, and a part of the state."""
        trained = [p for state in self.states for p in state.trained()]
        storages = {p.untyped_storage()._cdata: p.untyped_storage().nbytes() for p in trained}
        beside = sum(bytes_ for storage, bytes_ in (self.step.lasting() | storages).items() if storage not in self.lasting)
        own = {storage: bytes_ for storage, bytes_ in self.call.gradients.items() if storage in self.lasting}
        return plan.resident + plan.results + beside + sum((own | storages).values()) + max(costs.update for costs in self.costs_of_states)

    def _keep(self, plan: Plan) -> None:
        self.plans[:] = [plan]
        _PLANS[self.number] = weakref.ref(plan), self.read


def _has_storage(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and not is_traceable_wrapper_subclass(value)


def _is_of_several(graph: fx.GraphModule, inputs: Sequence[Any]) -> bool:
    """Whether the graph is known to be one of several: Dynamo or DistributedDataParallel goes on with another, autograd has recorded what comes before, or
    a module that is called now has further parameters."""
    reason = getattr(graph, "compile_subgraph_reason", None)
    recorded = any(isinstance(value, torch.Tensor) and not value.is_leaf for value in inputs)
    running, called = _running_modules()
    own = {id(value) for value in (*inputs, *(parameter for module in called for parameter in module.parameters()))}
    further = any(id(parameter) not in own for module in running for parameter in module.parameters())
    return reason is not None and reason.graph_break or recorded or further


def _running_modules() -> tuple[list[torch.nn.Module], list[torch.nn.Module]]:
    """The modules that are called now, and of these the one whose forward pass Dynamo compiles, if it is not compiled with its call."""
    found: list[torch.nn.Module] = []
    compiled_code = None
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code is _COMPILE:
            compiled_code = frame.f_locals["code"]
        if frame.f_code is torch.nn.Module._call_impl.__code__:
            found.append(frame.f_locals["self"])
        frame = frame.f_back
    return found, [module for module in found[:1] if getattr(module.forward, "__code__", None) is compiled_code]


def _is_of_a_module(node: fx.Node) -> bool:
    """Whether an input of Dynamo's graph is a parameter or a buffer: it keeps its address, and no loop fills it anew."""
    return node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type") is not None


def _boxed(graph: fx.GraphModule, _inputs: Any = None) -> Callable[..., Any]:
    """The graph as it is, run by PyTorch. The caller's list of arguments is emptied, so that each tensor is freed after its last use."""
    graph.graph.set_codegen(_BoxedCodeGen())
    graph.recompile()

    def run(args: list[Any]) -> Any:
        return graph.forward(args)

    run._boxed_call = True
    return run


def plans(model: torch.nn.Module | None = None) -> Plans:
    """The plans in force, oldest first: one for each compiled graph that is still there; with a model, for each that has read a
    parameter or a buffer of it."""
    alive = {key: plan for key, (reference, _) in _PLANS.items() if (plan := reference()) is not None}
    for key in set(_PLANS) - set(alive):
        del _PLANS[key]
    if model is None:
        return Plans(alive.values())
    own = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    return Plans(plan for key, plan in alive.items() if any(id(tensor) in own for tensor in _PLANS[key][1]))


def plan(model: torch.nn.Module, example: Any, budget: str | int, **options: Any) -> Plans:
    """The plans that `torch.compile(model, backend="lmsc", options={"budget": budget, …})` would make, one for each graph of the model: a list that
    prints as a table, and that a notebook, or the page of its `save`, shows as pictures.

    `example` is a batch: the arguments of the model. The model is traced and runs forward once within the budget, twice if it is several graphs; its
    buffers and the generators of random numbers are then as before.

    Raises:
        Refusal: A graph has no plan within the budget; `smallest_budget` has one.
    """
    example = example if isinstance(example, (list, tuple)) else (example,)
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    asked = {"budget": budget, **options}
    found: list[list[Plan]] = []

    def planning(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        run = _compiled(graph, inputs, asked, moving=False)
        found.append(getattr(run, "_lmsc_plans", []))
        return run

    step = step_of(asked)
    try:
        with torch.random.fork_rng():
            call = torch.compile(model, backend=planning)
            call(*example)
            if step.is_undivided():
                call(*example)
    finally:
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                if name in buffers:
                    buffer.copy_(buffers[name])
    return Plans(itertools.chain.from_iterable(found))

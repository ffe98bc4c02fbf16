"""`torch.compile(model, backend="lmsc", options={"budget": …})`: PyTorch runs a plan of lmsc.

PyTorch traces forward and backward as one joint graph. It becomes a planning problem (`problem`), the library plans it within the budget, and
the plan is written as a forward and a backward graph (`write`): the operators in the plan's order, copies to the host and back, operators that
run again. A checker that shares no code with the writer (`check`) compares them with the joint graph before they run.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import _extract_fwd_bwd_outputs
from torch.fx.graph import _BoxedCodeGen
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils.weak import WeakIdKeyDictionary

from ..._lmsc import Error
from .check import Unsound
from .planning import Form, Options, Plan, Written, log, planned, size
from .state import RestingState
from .steps import Share, Step, refusal, step_of
from .write import Ends

__all__ = ["Plan", "Unsound", "backend", "plan", "plans"]

#: The plans of compiled graphs that are still there, by the order in which they were made, and the parameters and buffers that each graph has read. A
#: compiled graph holds its plan.
_PLANS: dict[int, tuple[weakref.ref[Plan], WeakIdKeyDictionary]] = {}
_count = itertools.count()


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
    """The compilation of one graph of Dynamo."""

    def __init__(self, options: Options, step: Step):
        self.options, self.step = options, step
        self.states = [RestingState.of(optimizer) for optimizer in options.optimizer]
        self.costs = [state.costs() for state in self.states]
        self.plans: list[Plan] = []
        self.lasting: dict[int, Any] = {}
        self.read = WeakIdKeyDictionary()

    def compiled(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        nodes = zip(graph.graph.find_nodes(op="placeholder"), inputs, strict=False)
        self.lasting = {place: value for place, (node, value) in enumerate(nodes) if _is_of_a_module(node)}
        places = list(self.lasting)
        try:
            return self._noting(self._compiled(graph, inputs), places)
        finally:
            # The graph may outlive the model.
            self.lasting = {}

    def _compiled(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        if self.options.inner == "inductor":
            from . import inductor  # It loads Inductor.

            try:
                run = inductor.compiled(graph, inputs, self._written)
                run._lmsc_step = self.step
                return run
            except inductor.NotCompiled as reason:
                log.warning("%s is not compiled by Inductor, but run by PyTorch's own operators: %s", self._name(), reason)
            self.plans.clear()
        how = aot_autograd(
            fw_compiler=self._run, bw_compiler=self._run, inference_compiler=self._inference, partition_fn=self._partition
        )
        return how(graph, inputs)

    def _noting(self, run: Callable[..., Any], places: list[int]) -> Callable[..., Any]:
        """The function, which notes the parameters and buffers that it gets at these places: Dynamo runs one graph for all modules of the same code."""
        if not places:
            return run
        read, latest = self.read, None

        def noting(*args: Any) -> Any:
            nonlocal latest
            if latest is None or latest() is not args[places[0]]:
                latest = weakref.ref(args[places[0]])
                for place in places:
                    read[args[place]] = None
            return run(*args)

        return noting

    def _run(self, graph: fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        run = _boxed(graph, inputs)
        run._lmsc_plans, run._lmsc_step = self.plans, self.step  # They are in force as long as the graph is there.
        return run

    def _partition(self, joint: fx.GraphModule, _inputs: Any, *, num_fwd_outputs: int, **_: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        written = self._written(joint, Ends(*_extract_fwd_bwd_outputs(joint, num_fwd_outputs=num_fwd_outputs)))
        return written.forward, written.backward

    def _inference(self, graph: fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        """AOTAutograd calls no partitioner for a graph without a backward pass."""
        outputs = list(next(iter(graph.graph.find_nodes(op="output"))).args[0])
        written = self._written(graph, Ends(outputs, [], [None] * len(outputs), []))
        return self._run(written.forward, inputs)

    def _name(self) -> str:
        return f"graph {torch._guards.CompileContext.current_compile_id() or len(self.plans)}"

    def _written(self, graph: fx.GraphModule, ends: Ends, form: Form = Form()) -> Written:  # noqa: B008 (it is frozen)
        """The graphs of a plan that keeps within what the other graphs of the step leave of the budget."""
        compile_id = torch._guards.CompileContext.current_compile_id()
        frame = compile_id.frame_id if compile_id else None
        storages = {value.untyped_storage()._cdata: value.untyped_storage().nbytes() for value in self.lasting.values() if _has_storage(value)}
        earlier = self.step.held_before(frame, storages)
        stays = sum(costs.stays for costs in self.costs)
        written = planned(graph, ends, self.options, self._name(), self.lasting.keys(), earlier, stays, form)
        plan = written.plan
        if self.states and ends.backward:
            plan = dataclasses.replace(plan, state=sum(costs.rests for costs in self.costs), update=self._bytes_of_an_update(plan, storages))
            if self.options.of_the_machine and plan.update > plan.budget:
                reason = f"an update of the optimizer takes {plan.update} bytes of a budget of {plan.budget}: parameters, gradients, and a part of its state"
                raise refusal(reason, plan.update, plan.budget, plan.update)
        log.info("%s", plan)
        self._keep(plan)
        self.step.add(frame, plan, Share(plan.name, plan.peak, plan.as_it_is, plan.held, plan.gradients, storages))
        if self.step.graphs() > 1:
            log.info("%s is one of %d of its step, which together take at most %s", plan.name, self.step.graphs(), size(self.step.peak()))
            if self.options.of_the_machine:
                self.step.check(plan.budget)
        return written

    def _bytes_of_an_update(self, plan: Plan, storages: dict[int, int]) -> int:
        """The most bytes of the device while an optimizer updates: parameters, buffers, gradients, what the loop holds, and a part of the state."""
        trained = [p for state in self.states for p in state.trained()]
        others = self.step.lasting() | {p.untyped_storage()._cdata: p.untyped_storage().nbytes() for p in trained}
        beside = sum(bytes_ for storage, bytes_ in others.items() if storage not in storages)
        lasting = [value for value in self.lasting.values() if _has_storage(value) and value.requires_grad]
        gradients = {id(p): p.nbytes for p in (*lasting, *trained)}
        return plan.resident + plan.results + beside + sum(gradients.values()) + max(costs.update for costs in self.costs)

    def _keep(self, plan: Plan) -> None:
        self.plans.append(plan)
        _PLANS[next(_count)] = weakref.ref(plan), self.read


def _has_storage(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and not is_traceable_wrapper_subclass(value)


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


def plans(model: torch.nn.Module | None = None) -> list[Plan]:
    """The plans in force, oldest first: one for each compiled graph that is still there; with a model, for each that has read a
    parameter or a buffer of it."""
    alive = {key: plan for key, (reference, _) in _PLANS.items() if (plan := reference()) is not None}
    for key in set(_PLANS) - set(alive):
        del _PLANS[key]
    if model is None:
        return list(alive.values())
    own = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    return [plan for key, plan in alive.items() if any(id(tensor) in own for tensor in _PLANS[key][1])]


def plan(model: torch.nn.Module, example: Any, budget: str | int, **options: Any) -> list[Plan]:
    """The plans that `torch.compile(model, backend="lmsc", options={"budget": budget, …})` would make, one for each graph of the model.

    `example` is a batch: the arguments of the model. The model is traced and runs forward once within the budget; its buffers and the generators
    of random numbers are then as before.

    Raises:
        Refusal: A graph has no plan within the budget; `smallest_budget` has one.
    """
    example = example if isinstance(example, (list, tuple)) else (example,)
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    found: list[Plan] = []
    asked = {"budget": budget, **options}

    def planning(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        run = _compiled(graph, inputs, asked, moving=False)
        found.extend(getattr(run, "_lmsc_plans", ()))
        return run

    try:
        with torch.random.fork_rng():
            torch.compile(model, backend=planning)(*example)
    finally:
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                if name in buffers:
                    buffer.copy_(buffers[name])
    return found

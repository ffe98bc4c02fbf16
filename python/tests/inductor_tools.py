"""Measures the bytes of steps that Inductor has compiled for the processor; for test_inductor.py and scripts/check_inductor.py."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from backend_tools import Live
from torch._inductor import config
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.output_code import CompiledFxGraph


class KernelMeter:
    """While entered, `live` counts what compiled graphs allocate, what operators make that they call, and their inputs."""

    def __init__(self) -> None:
        self.live = Live()

    def __enter__(self) -> KernelMeter:
        allocate, call = self.before = torch._C._dynamo.guards._empty_strided_cpu, CompiledFxGraph.__call__

        def allocating(*args: Any) -> torch.Tensor:
            made = allocate(*args)
            self.live.add(made)
            return made

        def calling(graph: CompiledFxGraph, inputs: Any) -> Any:
            self.live.add(inputs)
            with self.live:
                return call(graph, inputs)

        torch._C._dynamo.guards._empty_strided_cpu, CompiledFxGraph.__call__ = allocating, calling
        return self

    def __exit__(self, *_: Any) -> None:
        torch._C._dynamo.guards._empty_strided_cpu, CompiledFxGraph.__call__ = self.before


@contextlib.contextmanager
def without_kernels() -> Iterator[None]:
    """While entered, Inductor generates kernels for the processor, but compiles none: bytes are right, values are not."""
    compile_ = AsyncCompile.cpp_pybinding
    AsyncCompile.cpp_pybinding = lambda *_, **__: lambda *args: None
    try:
        # What is in the cache has kernels.
        with config.patch(force_disable_caches=True):
            yield
    finally:
        AsyncCompile.cpp_pybinding = compile_


def losses_differ(one: list[float], other: list[float]) -> float:
    """The largest relative difference."""
    return max(abs(a - b) / max(abs(a), 1e-6) for a, b in zip(one, other, strict=True))

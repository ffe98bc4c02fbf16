"""The Large Model Support compiler, from Python.

`compile` fits the training step of an ONNX model into a budget of device memory and proves the result; a `Session` runs it.
`lmsc.torch` turns a PyTorch module, a loss and an optimizer into such a step, and trains with it.

>>> import lmsc
>>> step = b'''step (float[2] x, float[2] w) => (float[] loss, float[2] w_new) {
...     [product] float[2] y = Mul(x, w)
...     [square] float[2] s = Mul(y, y)
...     [loss] float[] loss = ReduceSum<keepdims = 0>(s)
...     [two] float[2] d = Add(y, y)
...     [gradient] float[2] g = Mul(d, x)
...     [update] float[2] w_new = Sub(w, g) updates (w as w_new)
... }'''
>>> compiled = lmsc.compile(step, budget="1KiB", target="host")
>>> session = compiled.session()
>>> session.load_state({"w": [1.0, 0.5]})
>>> float(session.step({"x": [0.25, 0.5]})["loss"])
0.125
>>> session.state()["w"]
array([0.875, 0.25 ], dtype=float32)
"""

from ._commands import inspect, opt, plan, sweep, targets
from ._compile import Compiled, Plan, compile
from ._lmsc import Error, InputError, InternalError, Refusal, __version__
from ._session import Session

__all__ = [
    "Compiled",
    "Error",
    "InputError",
    "InternalError",
    "Plan",
    "Refusal",
    "Session",
    "__version__",
    "compile",
    "inspect",
    "opt",
    "plan",
    "sweep",
    "targets",
]

"""The Large Model Support compiler, from Python.

`lmsc.torch` turns a PyTorch module, a loss and an optimizer into one ONNX training step, which the command `lmsc` plans
within a memory budget and runs.
"""

__version__ = "0.1.0"

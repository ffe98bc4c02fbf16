"""PyTorch in, a training step out.

```python
import torch, lmsc.torch
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
example = torch.randn(4, 8), torch.randint(0, 2, (4,))
step = lmsc.torch.TrainStep(model, torch.nn.functional.cross_entropy, optimizer, example=example, budget="1MiB")
loss = step(*example)
step.sync()
```

`TrainStep(…, kernels="torch")` lets PyTorch run the plan, `torch.compile(model, backend="lmsc")` plans a loop as it is, `export_step` writes the step as
an ONNX file, `fit` finds the cards and batches that it fits, and `shard` splits the parameters over several processes.
"""

from .backend import Plan, Plans, plan, plans
from .capture import batch_names
from .errors import CaptureError, UnsupportedOperator
from .export import export_step
from .fit import Fit, fit
from .shard import shard
from .step import TrainStep

__all__ = [
    "CaptureError", "Fit", "Plan", "Plans", "TrainStep", "UnsupportedOperator", "batch_names", "export_step", "fit", "plan", "plans", "shard",
]

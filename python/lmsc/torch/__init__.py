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

`export_step` writes the same step as an ONNX file.
"""

from .backend import Plan, plan, plans
from .capture import batch_names
from .errors import CaptureError, UnsupportedOperator
from .export import export_step
from .step import TrainStep

__all__ = ["CaptureError", "Plan", "TrainStep", "UnsupportedOperator", "batch_names", "export_step", "plan", "plans"]

"""PyTorch in, one ONNX training step out.

```python
import torch, lmsc.torch
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
example = torch.randn(4, 8), torch.randint(0, 2, (4,))
step = lmsc.torch.export_step(model, torch.nn.functional.cross_entropy, optimizer, example, path="step.onnx")
```
"""

from .capture import batch_names
from .errors import CaptureError, UnsupportedOperator
from .export import export_step

__all__ = ["CaptureError", "UnsupportedOperator", "batch_names", "export_step"]

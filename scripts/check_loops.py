"""Trains a Llama by transformers' Trainer and a module by Lightning's, as they are and with one changed line, `model.compile(backend="lmsc", …)`.

The losses must differ by at most 1e-4, and each plan must keep its budget. Prints two lines a loop; the exit status is 1 if one is wrong. Needs the
libraries of requirements-torch-models.txt.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import lightning
import lmsc.torch
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F

TOLERANCE = 1e-4

Trained = tuple[list[float], nn.Module]


class Sentences(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        ids = torch.randint(0, 64, (24,), generator=torch.Generator().manual_seed(place))
        return {"input_ids": ids, "labels": ids}


def by_transformers(change: Callable[[nn.Module], None]) -> Trained:
    """Accumulation, clipping, a schedule, evaluations and checkpoints."""
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=64, max_position_embeddings=64, **sizes))
    change(model)
    with tempfile.TemporaryDirectory() as folder:
        how = transformers.TrainingArguments(
            output_dir=folder, per_device_train_batch_size=4, max_steps=4, gradient_accumulation_steps=2, max_grad_norm=1.0, learning_rate=1e-2,
            logging_steps=1, save_steps=2, eval_strategy="steps", eval_steps=2, report_to=[], use_cpu=True, disable_tqdm=True, seed=1,
        )  # fmt: skip
        trainer = transformers.Trainer(model=model, args=how, train_dataset=Sentences(), eval_dataset=Sentences())
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    return [value for line in trainer.state.log_history for name, value in line.items() if name in ("loss", "eval_loss")], model


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        hidden = (nn.Linear(64, 64), nn.GELU(), nn.Dropout(0.1))
        self.net, self.losses = nn.Sequential(nn.Linear(16, 64), nn.GELU(), *hidden, nn.Linear(64, 3)), []

    def training_step(self, batch: tuple[Tensor, Tensor], _: int) -> Tensor:
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.losses.append(float(loss))
        return loss

    def validation_step(self, batch: tuple[Tensor, Tensor], place: int) -> None:
        self.training_step(batch, place)

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), 1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


def by_lightning(change: Callable[[nn.Module], None]) -> Trained:
    """Accumulation, clipping, a schedule, dropout and evaluations."""
    rows = torch.utils.data.TensorDataset(torch.randn(256, 16), torch.randint(0, 3, (256,)))
    module = Classifier()
    change(module.net)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", accumulate_grad_batches=2, gradient_clip_val=1.0, **quiet)
    trainer.fit(module, torch.utils.data.DataLoader(rows, 64), torch.utils.data.DataLoader(rows, 64))
    return module.losses, module


def compiled(model: nn.Module) -> None:
    model.compile(backend="lmsc", options={"budget": "0.9x"})


def main() -> int:
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    wrong = 0
    for loop in (by_transformers, by_lightning):
        torch.manual_seed(0)
        want, _ = loop(lambda _: None)
        torch.manual_seed(0)
        have, model = loop(compiled)
        plans = lmsc.torch.plans(model)
        most = max(abs(a - b) for a, b in zip(want, have, strict=True))
        is_right = most <= TOLERANCE and len(plans) > 1 and all(plan.peak <= plan.budget for plan in plans)
        wrong += not is_right
        bytes_ = ", ".join(f"{plan.peak} of {plan.as_it_is}" for plan in plans)
        print(f"{loop.__name__}: {len(want)} losses, the most different by {most:.0e}; bytes of the plans: {bytes_}", flush=True)
        print("right" if is_right else "WRONG", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

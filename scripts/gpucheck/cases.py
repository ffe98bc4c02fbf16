"""The models that the check on a GPU runs: of full size, and in their place small ones for a rehearsal."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS = ROOT / "testdata" / "models"
OPERATORS = ROOT / "testdata" / "operators.lms"

# The target that plans are made for. An H200 computes as fast and has more memory, so its runs differ in the prediction alone.
TARGET = "h100-sxm"
FASTER = "h200-sxm"


@dataclass(frozen=True)
class Case:
    """A model with its dimensions, and the budgets that it is planned for."""

    model: str
    dims: tuple[tuple[str, int], ...]
    budgets: tuple[str, ...] = ()
    # Whether a step fits a card of 80 GB without a plan.
    fits: bool = True
    # The model's name in testdata/models/make/models.py, and how PyTorch runs the same step.
    peers: tuple[str, ...] = ()
    # An input of floats.
    floats: str = ""

    @property
    def name(self) -> str:
        return " ".join([self.model, *(f"{name}={value}" for name, value in self.dims)])

    def source(self, optimizer: str | None = "optimizer_model.onnx") -> list[str]:
        """The arguments that read the model."""
        folder = MODELS / self.model
        arguments = [str(folder / "training_model.onnx")]
        if optimizer:
            arguments += ["--optimizer", str(folder / optimizer)]
        return arguments + [part for name, value in self.dims for part in ("--dim", f"{name}={value}")]

    def plan(self, budget: str, precision: str = "f32") -> str:
        """The name of the file with the plan for this budget, and for convolutions in this precision."""
        rounded = "" if precision == "f32" else f" {precision}"
        return f"{self.name} {budget}{rounded}".replace(" ", "-").replace("=", "") + ".onnx"

    def tight(self, planner: str) -> str:
        """The name of the file with the planner's plan for the first of the budgets of `TIGHT` that one fits."""
        return self.plan(planner)


# The planner whose plans bring tensors back when they are needed, and not before.
LATE = "lru"
# The budget of a small model: the first of these shares of its peak that a plan fits. One planner swaps tensors, the other
# recomputes nodes.
PLANNERS = ("auto", "memonger")
TIGHT = ("0.6x", "0.7x", "0.8x", "0.9x")

# As a user of PyTorch trains: as it is, with TF32, with automatic mixed precision, compiled; and each way to save memory.
PEERS = ("f32", "tf32", "bf16", "checkpoint", "save_on_cpu", "bf16 compiled", "bf16 budget 0.5")


# Precisions of convolutions. Their engines need different workspaces.
PRECISIONS = ("f32", "tf32")


@dataclass(frozen=True)
class Cases:
    """All that is run."""

    # Part I, the first of which is measured kernel by kernel in part H; K; and M.
    resnet: tuple[Case, ...]
    gpt2: tuple[Case, ...]
    rest: tuple[Case, ...]
    # Models of which every element is compared with the host, each with two optimizers, and planned.
    parity: tuple[Case, ...]
    # Models of full size, of which gradients are compared.
    large: tuple[Case, ...]
    steps: int

    def budgeted(self) -> list[tuple[Case, str, str]]:
        """The cases with their budgets and precisions, each of which has a plan of its own."""
        cases = [*self.resnet, *self.gpt2, *self.rest]
        return [(case, budget, precision) for case in cases for budget in case.budgets for precision in PRECISIONS]

    @property
    def waits(self) -> tuple[Case, str]:
        """The first case, and the name of its plan of which waits are left out.

        It is one that copies nothing back before computing needs it. By the plans of other planners copies are done before
        computing comes to wait for them, so that nothing shows.
        """
        return self.resnet[0], self.resnet[0].plan(LATE)


def case(
    model: str, *budgets: str, fits: bool = True, peers: tuple[str, ...] = (), floats: str = "", **dims: int
) -> Case:
    return Case(model, tuple(dims.items()), budgets, fits, peers, floats)


FULL = Cases(
    resnet=(
        case("resnet50", "4GiB", "2GiB", batch=64, peers=PEERS),
        case("resnet50", "16GiB", "8GiB", batch=256, peers=("tf32", "bf16", "checkpoint")),
        case("resnet50", "16GiB", batch=1024, fits=False, peers=("bf16", "checkpoint")),
    ),
    gpt2=(case("gpt2_small", "4GiB", batch=8, seq=512, peers=PEERS),),
    rest=(
        case("unet3d", "800MiB", batch=8, peers=("tf32", "bf16")),
        case("bert_base", "2GiB", batch=32, peers=("tf32", "bf16")),
    ),
    parity=(
        case("tiny_bert", batch=2),
        case("tiny_charlstm", batch=2, batch_seq=16),
        case("tiny_cnn", batch=2),
        case("tiny_densenet", batch=4),
        case("tiny_gpt2", batch=2, seq=8),
        case("tiny_gpt_hand", batch=2, batch_seq=16),
        case("tiny_mlp", batch=4),
        case("tiny_mlp_mse", batch=4),
        case("tiny_resnet18", batch=4),
        case("tiny_unet2d", batch=2),
        case("tiny_unet3d", batch=2),
        case("tiny_vgg", batch=2),
        case("tiny_vgg_dropout", batch=2),
    ),
    large=(case("resnet50", batch=4, floats="input"), case("gpt2_small", batch=1, seq=64)),
    steps=8,
)

REHEARSAL = Cases(
    resnet=(
        case("tiny_resnet18", "0.9x", "0.8x", batch=16, peers=("f32", "bf16 compiled")),
        case("tiny_resnet18", "0.8x", batch=32, fits=False, peers=("checkpoint",)),
    ),
    gpt2=(case("tiny_gpt2", "0.9x", batch=4, seq=8, peers=("f32", "save_on_cpu")),),
    rest=(case("tiny_unet3d", "0.9x", batch=2, peers=("bf16",)),),
    parity=(case("tiny_mlp", batch=4), case("tiny_vgg_dropout", batch=2)),
    large=(case("tiny_cnn", batch=2, floats="input"),),
    steps=3,
)

"""A stack of layers on several processes with FSDP2, each layer compiled within the budget: `torchrun --nproc-per-node 2 fsdp.py`."""

import argparse

import lmsc.torch
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.dropout(self.down(F.gelu(self.up(self.norm(x)))), 0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--budget", default="0.8x", help="bytes, such as 2GiB, or a share of a layer's own peak")
    args = parser.parse_args()
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, device = dist.get_rank(), torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 128), *(Layer(128) for _ in range(4)), nn.Linear(128, 10)).to(device)
    for layer in model[1:-1]:
        # The wrapper gathers and releases the parameters of a layer; the plan decides which activations stay.
        layer.compile(backend="lmsc", options={"budget": args.budget})
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(rank)  # Each process has data of its own.
    x, labels = torch.randn(256, 32, device=device), torch.randint(0, 10, (256,), device=device)
    for step in range(args.steps):
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step + 1}: loss {loss.item():.4f}")
    if rank == 0:
        for plan in lmsc.torch.plans():
            print(plan)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

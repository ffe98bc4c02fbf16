"""Models of libraries as they are trained, for check_backend.py: with dropout, checkpointed blocks, adapters and other types.

Those of torch_libraries.py, which stand in the table, too, do without: a runtime of its own would draw other numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from backend_models import Model, WithLoss, draw, labels, words
from torch import Tensor, nn
from torch.nn import functional as F

CASES: dict[str, Callable[[], Model]] = {}

SIZES = {"vocab_size": 100, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
LLAMA = {**SIZES, "num_key_value_heads": 2, "max_position_embeddings": 64}


def case(name: str) -> Callable[[Callable[[], Model]], None]:
    """Registers a function that makes a model."""

    def register(make: Callable[[], Model]) -> None:
        def build() -> Model:
            torch.manual_seed(0)
            return make()

        CASES[name] = build

    return register


class Language(nn.Module):
    """A model of transformers that computes its loss itself."""

    def __init__(self, net: nn.Module, autocast: bool = False):
        super().__init__()
        self.net, self.autocast = net, autocast

    def forward(self, text: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.autocast):
            return self.net(input_ids=text, labels=text).loss


def language(name: str, kind: str, change: Callable[[Any], Any] = lambda net: net, autocast: bool = False, **options: Any) -> None:
    @case(name)
    def _() -> Model:
        import transformers

        config = getattr(transformers, f"{kind.split('For')[0].removesuffix('LMHeadModel')}Config")(**options)
        net = change(getattr(transformers, kind)(config))
        return Model(Language(net, autocast), lambda i: (words(i, 2),))


def checkpointed(net: Any) -> Any:
    net.gradient_checkpointing_enable({"use_reentrant": False})
    return net


class Adapter(nn.Module):
    """A frozen layer with a trained addition of low rank."""

    def __init__(self, layer: nn.Linear):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down, self.up = nn.Linear(layer.in_features, 4, bias=False), nn.Linear(4, layer.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + 2.0 * self.up(self.down(F.dropout(x, 0.1, self.training)))


def adapted(net: Any) -> Any:
    net.requires_grad_(False)
    for layer in net.model.layers:
        for name in ("q_proj", "v_proj"):
            setattr(layer.self_attn, name, Adapter(getattr(layer.self_attn, name)))
    return net


language("transformers BERT, dropout", "BertForMaskedLM", **SIZES)
language("transformers BERT, dropout, eager attention", "BertForMaskedLM", **SIZES, attn_implementation="eager")
language("transformers GPT-2, dropout", "GPT2LMHeadModel", vocab_size=100, n_embd=64, n_layer=2, n_head=4, n_positions=64)
language(
    "transformers T5, dropout", "T5ForConditionalGeneration", vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=1, num_heads=4,
    decoder_start_token_id=0, pad_token_id=0,
)  # fmt: skip
language("transformers Llama, checkpointed blocks", "LlamaForCausalLM", checkpointed, **LLAMA)
language("transformers Llama, adapters of low rank", "LlamaForCausalLM", adapted, **LLAMA)
language("transformers Llama, bfloat16", "LlamaForCausalLM", lambda net: net.bfloat16(), **LLAMA)
language("transformers Qwen3, autocast to bfloat16", "Qwen3ForCausalLM", autocast=True, **LLAMA, head_dim=16)


@case("transformers ViT, dropout")
def _() -> Model:
    import transformers

    sizes = {key: value for key, value in SIZES.items() if key != "vocab_size"}
    dropout = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    net = transformers.ViTForImageClassification(transformers.ViTConfig(**sizes, **dropout, image_size=32, patch_size=8, num_labels=5))
    return Model(WithLoss(net, lambda out, y: F.cross_entropy(out.logits, y)), pictures(32))


def pictures(size: int) -> Callable[[int], tuple[Tensor, Tensor]]:
    return lambda i: (torch.randn(4, 3, size, size, generator=draw(i)), labels(i, 4))


def vision(name: str, size: int, make: Callable[[], nn.Module]) -> None:
    case(name)(lambda: Model(WithLoss(make()), pictures(size)))


def of_timm(kind: str, **options: Any) -> nn.Module:
    import timm

    return timm.create_model(kind, num_classes=5, **options)


def of_torchvision(kind: str, *args: Any, **options: Any) -> nn.Module:
    import torchvision

    return getattr(torchvision.models, kind)(*args, num_classes=5, **options)


vision(
    "timm ViT, dropout and stochastic depth", 32,
    lambda: of_timm("vit_tiny_patch16_224", img_size=32, depth=4, drop_rate=0.1, drop_path_rate=0.2),
)  # fmt: skip
vision("timm MLP-Mixer", 64, lambda: of_timm("mixer_s32_224", img_size=64))
vision("torchvision MobileNetV3, dropout", 32, lambda: of_torchvision("mobilenet_v3_small"))
vision(
    "torchvision Swin, stochastic depth", 32,
    lambda: of_torchvision("SwinTransformer", [2, 2], 16, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.3),
)  # fmt: skip

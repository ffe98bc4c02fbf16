"""Models of torchvision, timm, transformers and diffusers with random weights, for check_torch.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch_models import adamw, case, images, sgd, slow_sgd


def without_draws(model: nn.Module) -> nn.Module:
    """The model without dropout, whose draws would differ."""
    for m in model.modules():
        if isinstance(m, (nn.Dropout, nn.Dropout2d)) or type(m).__name__ == "StochasticDepth":
            m.p = 0.0
        elif type(m).__name__ == "DropPath":
            m.drop_prob = 0.0
    return model


_KINKED: dict[Any, Callable[..., Tensor]] = {
    F.relu: F.silu, torch.relu: F.silu, torch.relu_: F.silu, F.relu6: F.silu, F.hardtanh: F.silu, F.hardswish: F.silu, F.hardsigmoid: torch.sigmoid,
}  # fmt: skip


class _WithoutKinks(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _KINKED[func](args[0]) if func in _KINKED else func(*args, **(kwargs or {}))


class Smooth(nn.Module):
    """A network with smooth activations, and an epsilon of 0.1 in batch normalization.

    Where a rounding error turns one ReLU over, or a variance is next to nothing, a gradient differs by percents in any
    implementation. In this network only a wrong gradient differs.
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        for m in net.modules():
            if isinstance(m, nn.modules.batchnorm._BatchNorm):
                m.eps = 0.1

    def forward(self, *args: Any) -> Any:
        with _WithoutKinks():
            return self.net(*args)


def network(
    name: str, make: Callable[[], nn.Module], batch: Any, loss: Any = F.cross_entropy, optimizer: Any = None, smooth: bool = False,
    plain: bool = True,
) -> None:  # fmt: skip
    """A case of the unchanged network (`plain`), and one without kinks (`smooth`)."""
    if plain:
        case(name, optimizer or slow_sgd)(lambda: (without_draws(make()), loss, batch))
    if smooth:
        case(f"{name}, smooth", optimizer or gentle_sgd)(lambda: (Smooth(without_draws(make())), loss, batch))


def gentle_sgd(params: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(params, lr=1e-3, momentum=0.9, weight_decay=1e-4)


# torchvision.


def vision(name: str, size: int = 64, n: int = 8, smooth: bool = True, plain: bool = True, **options: Any) -> None:
    def make() -> nn.Module:
        import torchvision

        return getattr(torchvision.models, name)(num_classes=10, **options)

    network(f"torchvision {name}", make, images(n, size, 10), smooth=smooth, plain=plain)


vision("resnet18")
vision("mobilenet_v2")
vision("mobilenet_v3_small", smooth=False)
for _name in ("efficientnet_b0", "shufflenet_v2_x0_5", "mnasnet0_5", "regnet_y_400mf"):
    vision(_name, plain=False)
vision("squeezenet1_1", smooth=False)
vision("alexnet", smooth=False)
vision("vgg11_bn", 32, 4, plain=False)
vision("resnext50_32x4d", n=4, plain=False)
vision("googlenet", n=4, plain=False, aux_logits=False, init_weights=False)
vision("inception_v3", 80, 4, plain=False, aux_logits=False, init_weights=False)


def made(name: str, make: Callable[[Any], nn.Module], size: int = 32, n: int = 4, optimizer: Any = None, smooth: bool = False) -> None:
    """A network of torchvision's parts, smaller than its own."""

    def build() -> nn.Module:
        import torchvision

        return make(torchvision.models)

    network(f"torchvision {name}", build, images(n, size, 10), optimizer=optimizer, smooth=smooth)


made("DenseNet", lambda m: m.DenseNet(8, (2, 3, 2), 16, num_classes=10), smooth=True)
made("EfficientNetV2", lambda m: m.EfficientNet(
    [m.efficientnet.FusedMBConvConfig(4, 3, 2, 24, 24, 1), m.efficientnet.MBConvConfig(4, 3, 2, 24, 32, 2)], 0.0, 0.0, 10, last_channel=64
), smooth=True)  # fmt: skip
made("ConvNeXt", lambda m: m.ConvNeXt(
    [m.convnext.CNBlockConfig(16, 32, 2), m.convnext.CNBlockConfig(32, None, 2)], 0.0, 1.0, 10
), optimizer=adamw)  # fmt: skip
made("Swin", lambda m: m.SwinTransformer([2, 2], 16, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.0, num_classes=10), optimizer=adamw)
made("Swin v2", lambda m: m.SwinTransformer(
    [2, 2], 16, [2, 2], [2, 4], [4, 4], stochastic_depth_prob=0.0, num_classes=10, block=m.swin_transformer.SwinTransformerBlockV2,
    downsample_layer=m.swin_transformer.PatchMergingV2,
), optimizer=adamw)  # fmt: skip
made("MaxViT", lambda m: m.MaxVit((32, 32), 8, 4, [8, 16], [1, 1], 8, 0.0, num_classes=10), optimizer=adamw)


def _vit(m: Any) -> nn.Module:
    model = m.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10)
    nn.init.normal_(model.heads.head.weight, std=0.02)
    return model


made("ViT", _vit, n=2, optimizer=adamw)


def segmentation(name: str, make: Callable[[Any], nn.Module]) -> None:
    def build() -> nn.Module:
        import torchvision

        return make(torchvision.models)

    def loss(y: Any, t: Tensor) -> Tensor:
        return F.cross_entropy(y["out"], t) + (0.4 * F.cross_entropy(y["aux"], t) if "aux" in y else 0.0)

    batch = lambda: (torch.randn(2, 3, 64, 64), torch.randint(0, 4, (2, 64, 64)))  # noqa: E731
    network(f"torchvision {name}", build, batch, loss, smooth=True)


def _body(m: Any) -> nn.Module:
    from torchvision.models._utils import IntermediateLayerGetter

    return IntermediateLayerGetter(m.resnet18(), {"layer3": "aux", "layer4": "out"})


segmentation("LR-ASPP", lambda m: m.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4))
segmentation("FCN", lambda m: m.segmentation.FCN(_body(m), m.segmentation.fcn.FCNHead(512, 4), m.segmentation.fcn.FCNHead(256, 4)))
segmentation("DeepLab v3", lambda m: m.segmentation.DeepLabV3(_body(m), m.segmentation.deeplabv3.DeepLabHead(512, 4, (2, 4))))


@case("torchvision RetinaNet head on a pyramid", slow_sgd)
def _() -> Any:
    from torchvision.models.detection.retinanet import RetinaNetHead
    from torchvision.ops import FeaturePyramidNetwork, sigmoid_focal_loss

    class Detector(nn.Module):
        """The network and losses of RetinaNet over targets that are matched before the step."""

        def __init__(self) -> None:
            super().__init__()
            self.stem, self.deep = nn.Conv2d(3, 8, 3, stride=4, padding=1), nn.Conv2d(8, 16, 3, stride=2, padding=1)
            self.pyramid, self.head = FeaturePyramidNetwork([8, 16], 32), RetinaNetHead(32, 2, 3)

        def forward(self, image: Tensor, labels: Tensor, boxes: Tensor) -> Tensor:
            a = F.silu(self.stem(image))
            found = self.head(list(self.pyramid({"0": a, "1": F.silu(self.deep(a))}).values()))
            hot, some = F.one_hot(labels, 4)[..., 1:].float(), (labels > 0).float()
            near = F.smooth_l1_loss(found["bbox_regression"], boxes, reduction="none").sum(-1)
            return sigmoid_focal_loss(found["cls_logits"], hot, reduction="sum") / 10 + (near * some).sum() / some.sum().clamp(min=1)

    places = 2 * (8 * 8 + 4 * 4)
    return Detector(), None, lambda: (torch.randn(2, 3, 32, 32), torch.randint(0, 4, (2, places)), torch.randn(2, places, 4))


# transformers, tiny random configurations.
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 60}


def configured(kind: str, **options: Any) -> Any:
    """A configuration of transformers without dropout."""
    import transformers

    config = getattr(transformers, f"{kind}Config")(**options)
    for key in [k for k in config.to_dict() if ("drop" in k or "mask_time" in k) and isinstance(getattr(config, k, None), float)]:
        setattr(config, key, 0.0)
    return config


def frozen_keys(model: nn.Module) -> nn.Module:
    """The model with frozen biases of keys, whose gradient is zero, and a rounding error where it is computed."""
    for name, parameter in model.named_parameters():
        if name.endswith("k_proj.bias"):
            parameter.requires_grad_(False)
    return model


def language(name: str, kind: str, length: int = 8, experts: str | None = None, **options: Any) -> None:
    @case(f"transformers {name}")
    def _() -> Any:
        import transformers

        model = getattr(transformers, f"{name}{kind}")(configured(name, **{**SIZES, **options}))
        if experts is not None:
            model.set_experts_implementation(experts)

        def batch() -> Any:
            ids = torch.randint(4, 60, (2, length))
            return {
                "input_ids": ids,
                "labels": torch.randint(0, 2, (2,)) if "Sequence" in kind else torch.randint(4, 60, (2, length)),
            }

        return frozen_keys(model.train()) if name == "OPT" else model.train(), None, batch


_KV = {"num_key_value_heads": 2}
language("Llama", "ForCausalLM", **_KV)
language("Mistral", "ForCausalLM", **_KV)
language("Qwen2", "ForCausalLM", **_KV)
language("Qwen3", "ForCausalLM", **_KV, head_dim=8)
language("Gemma", "ForCausalLM", **_KV, head_dim=8)
language("Gemma2", "ForCausalLM", **_KV, head_dim=8)
language("Phi", "ForCausalLM")
language("Phi3", "ForCausalLM", pad_token_id=0)
language("GPTNeoX", "ForCausalLM")
language("Olmo", "ForCausalLM")
language("Falcon", "ForCausalLM")
language("Mixtral", "ForCausalLM", **_KV, num_local_experts=4)
language("Bert", "ForMaskedLM")
language("Roberta", "ForMaskedLM", max_position_embeddings=40)
language("Electra", "ForMaskedLM", embedding_size=32)
language("Albert", "ForMaskedLM", embedding_size=16)
language("ModernBert", "ForMaskedLM", pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
language("DebertaV2", "ForMaskedLM")
language("GPT2", "LMHeadModel", n_embd=32, n_layer=2, n_head=4)
language("OPT", "ForCausalLM", ffn_dim=64, word_embed_proj_dim=32)
language("Bloom", "ForCausalLM", n_layer=2, n_head=4)
language("DistilBert", "ForMaskedLM", dim=32, n_layers=2, n_heads=4, hidden_dim=64)
language("Mamba", "ForCausalLM", state_size=4)
language("T5", "ForConditionalGeneration", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0)
language("Bart", "ForConditionalGeneration", d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
         decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64)  # fmt: skip


@case("transformers CLIP")
def _() -> Any:
    import transformers

    text = {**SIZES, "max_position_embeddings": 8, "eos_token_id": 2}
    vision_ = {k: v for k, v in SIZES.items() if k != "vocab_size"} | {"image_size": 16, "patch_size": 8}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision_, projection_dim=16)
    model = transformers.CLIPModel(config)
    batch = lambda: {"input_ids": torch.randint(4, 60, (3, 8)), "pixel_values": torch.randn(3, 3, 16, 16), "return_loss": True}  # noqa: E731
    return frozen_keys(model.train()), None, batch


@case("transformers Whisper")
def _() -> Any:
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=60, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, pad_token_id=0,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=16, max_target_positions=16,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=3, suppress_tokens=[], begin_suppress_tokens=[],
    )  # fmt: skip
    batch = lambda: {"input_features": torch.randn(2, 8, 32), "labels": torch.randint(4, 60, (2, 8))}  # noqa: E731
    return transformers.WhisperForConditionalGeneration(config).train(), None, batch


_SPEECH = {
    "vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "conv_dim": (8, 8),
    "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2, "ctc_loss_reduction": "mean", "apply_spec_augment": False, "pad_token_id": 0,
}  # fmt: skip


def speech(name: str, **options: Any) -> None:
    def loss(out: Any, labels: Tensor) -> Tensor:
        frames = out.logits.log_softmax(-1).transpose(0, 1)
        return F.ctc_loss(frames, labels, torch.full((2,), frames.shape[0]), torch.full((2,), labels.shape[1]))

    @case(f"transformers {name}, CTC", sgd)
    def _() -> Any:
        import transformers

        model = getattr(transformers, f"{name}ForCTC")(configured(name, **_SPEECH, **options))
        # The model's own loss reads the largest label, and selects labels by a mask.
        return model.train(), loss, lambda: (torch.randn(2, 400), torch.randint(1, 20, (2, 5)))


speech("Wav2Vec2")
speech("Hubert")
speech("Wav2Vec2Conformer", conv_depthwise_kernel_size=5)


@case("transformers ViTMAE")
def _() -> Any:
    import transformers

    sizes = {k: v for k, v in SIZES.items() if k != "vocab_size"}
    config = configured("ViTMAE", **sizes, image_size=16, patch_size=4, decoder_num_attention_heads=2, decoder_hidden_size=16,
                        decoder_num_hidden_layers=1, decoder_intermediate_size=32)  # fmt: skip
    model = transformers.ViTMAEForPreTraining(config)
    return model.train(), None, lambda: {"pixel_values": torch.randn(2, 3, 16, 16), "noise": torch.rand(2, 16)}


@case("transformers SegFormer")
def _() -> Any:
    import transformers

    config = configured("Segformer", num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3],
                        strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16, num_labels=4)  # fmt: skip
    model = Smooth(transformers.SegformerForSemanticSegmentation(config).train())
    # The first forward pass adds hooks to the layers, which a step may not.
    with torch.no_grad():
        model(torch.randn(2, 3, 32, 32))
    loss = lambda out, t: F.cross_entropy(F.interpolate(out.logits, size=(32, 32), mode="bilinear", align_corners=False), t)  # noqa: E731
    return model, loss, lambda: (torch.randn(2, 3, 32, 32), torch.randint(0, 4, (2, 32, 32)))


# timm.


def timm_model(name: str, size: int = 64, n: int = 4, optimizer: Any = None, smooth: bool = False, **options: Any) -> None:
    def make() -> nn.Module:
        import timm

        return timm.create_model(name, num_classes=10, drop_rate=0.0, **options)

    # Of networks with many batch normalizations only that variant is tried.
    network(f"timm {name}", make, images(n, size, 10), optimizer=optimizer or gentle_sgd, smooth=smooth, plain=not smooth)


timm_model("deit_tiny_patch16_224", 32, img_size=32, depth=2)
timm_model("xcit_nano_12_p8_224", 32, optimizer=adamw, img_size=32, depth=2)
timm_model("cait_xxs24_224", 32, img_size=32, depth=2, depth_token_only=1)
timm_model("poolformer_s12", 32)
timm_model("convnext_atto", 32)
timm_model("nfnet_l0", 32, smooth=True)
timm_model("ghostnet_050", smooth=True)
timm_model("mobilenetv4_conv_small", smooth=True)
timm_model("mobilevit_xxs", smooth=True)
timm_model("repvgg_a0", smooth=True)
timm_model("levit_128s", smooth=True, img_size=64)


# diffusers.


@case("diffusers U-Net")
def _() -> Any:
    from diffusers import UNet2DModel

    class Denoise(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = UNet2DModel(
                16, 3, 3, down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
                block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4, attention_head_dim=4,
            )  # fmt: skip

        def forward(self, x: Tensor, t: Tensor) -> Tensor:
            return self.net(x, t).sample

    return Denoise(), F.mse_loss, lambda: (torch.randn(2, 3, 16, 16), torch.randint(0, 1000, (2,)), torch.randn(2, 3, 16, 16))


@case("diffusers conditional U-Net")
def _() -> Any:
    from diffusers import UNet2DConditionModel

    class Denoise(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = UNet2DConditionModel(
                16, 4, 4, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
                block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4, cross_attention_dim=8, attention_head_dim=2,
            )  # fmt: skip

        def forward(self, x: Tensor, t: Tensor, text: Tensor) -> Tensor:
            return self.net(x, t, text).sample

    batch = lambda: (torch.randn(2, 4, 16, 16), torch.randint(0, 1000, (2,)), torch.randn(2, 5, 8), torch.randn(2, 4, 16, 16))  # noqa: E731
    return Denoise(), F.mse_loss, batch


@case("diffusers VAE")
def _() -> Any:
    from diffusers import AutoencoderKL

    class Variational(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = AutoencoderKL(
                3, 3, ("DownEncoderBlock2D",) * 2, ("UpDecoderBlock2D",) * 2, (8, 16), layers_per_block=1, norm_num_groups=4
            )

        def forward(self, x: Tensor, noise: Tensor) -> Tensor:
            found = self.net.encode(x).latent_dist
            return F.mse_loss(self.net.decode(found.mean + found.std * noise).sample, x) + 1e-3 * found.kl().mean()

    return Variational(), None, lambda: (torch.randn(2, 3, 16, 16), torch.randn(2, 4, 8, 8))


@case("diffusers DiT")
def _() -> Any:
    from diffusers import DiTTransformer2DModel

    class Denoise(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = DiTTransformer2DModel(2, 8, 4, 4, num_layers=2, sample_size=8, patch_size=2, num_embeds_ada_norm=20, norm_num_groups=4)
            for block in self.net.transformer_blocks:
                block.norm1.emb.class_embedder.dropout_prob = 0.0

        def forward(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
            return self.net(x, t, label).sample

    batch = lambda: (torch.randn(2, 4, 8, 8), torch.randint(0, 20, (2,)), torch.randint(0, 20, (2,)), torch.randn(2, 4, 8, 8))  # noqa: E731
    return without_draws(Denoise()), F.mse_loss, batch

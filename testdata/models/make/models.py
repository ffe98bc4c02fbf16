"""The models whose training graphs are committed beside this folder.

`SPECS` maps a name to a `Spec`. Every model is built after `torch.manual_seed(SEED)`, with random weights, in training mode.
"""

from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn
from torch.nn import functional as F

SEED = 20240919


class Mlp(nn.Module):
    def __init__(self, activation: type[nn.Module], *widths: int):
        super().__init__()
        layers = []
        for fan_in, fan_out in zip(widths, widths[1:]):
            layers += [nn.Linear(fan_in, fan_out), activation()]
        self.net = nn.Sequential(*layers[:-1])

    def forward(self, x):
        return self.net(x)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 8, 3, padding=1)
        self.c2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(256, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.avg_pool2d(F.relu(self.c2(x)), 2)
        return self.fc(torch.flatten(x, 1))


class Vgg(nn.Module):
    """VGG's plan with 8, 16 and 32 channels."""

    def __init__(self, dropout: bool):
        super().__init__()
        layers, channels = [], 3
        for width in (8, 8, None, 16, 16, None, 32, None):
            if width is None:
                layers.append(nn.MaxPool2d(2))
            else:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(2)
        hidden = [nn.Linear(128, 64), nn.ReLU(inplace=True)] + ([nn.Dropout(0.5)] if dropout else [])
        self.classifier = nn.Sequential(*hidden, nn.Linear(64, 10))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def narrow_resnet18() -> nn.Module:
    """torchvision's ResNet with one block per stage, narrowed to 4, 8, 16 and 32 channels."""
    from torchvision.models.resnet import BasicBlock, ResNet

    model = ResNet(BasicBlock, [1, 1, 1, 1], num_classes=10)
    model.inplanes = 4
    model.conv1, model.bn1 = nn.Conv2d(3, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4)
    model.layer1 = model._make_layer(BasicBlock, 4, 1)
    model.layer2 = model._make_layer(BasicBlock, 8, 1, stride=2)
    model.layer3 = model._make_layer(BasicBlock, 16, 1, stride=2)
    model.layer4 = model._make_layer(BasicBlock, 32, 1, stride=2)
    model.fc = nn.Linear(32, 10)
    return model


def narrow_densenet() -> nn.Module:
    from torchvision.models import DenseNet

    return DenseNet(growth_rate=8, block_config=(2, 2, 2), num_init_features=16, bn_size=2, num_classes=10)


def torchvision_model(name: str) -> Callable[[], nn.Module]:
    def build():
        import torchvision

        return getattr(torchvision.models, name)(weights=None)

    return build


class DoubleConv(nn.Module):
    def __init__(self, dims: int, channels: int, middle: int, out: int):
        super().__init__()
        conv = nn.Conv3d if dims == 3 else nn.Conv2d
        norm = nn.BatchNorm3d if dims == 3 else nn.BatchNorm2d
        layers = []
        for a, b in ((channels, middle), (middle, out)):
            layers += [conv(a, b, 3, padding=1, bias=False), norm(b), nn.ReLU(inplace=True)]
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


class UNet(nn.Module):
    """Ronneberger et al. in two dimensions, Çiçek et al. in three, with padding.

    In three dimensions a stage doubles its channels in its second convolution, and going up keeps them.
    """

    def __init__(self, dims: int, channels: int, widths: tuple[int, ...], classes: int):
        super().__init__()
        three = dims == 3
        transposed = nn.ConvTranspose3d if three else nn.ConvTranspose2d
        self.pool = F.max_pool3d if three else F.max_pool2d
        self.down, self.up, self.dec = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for width in widths:
            self.down.append(DoubleConv(dims, channels, width // 2 if three else width, width))
            channels = width
        for width in reversed(widths[:-1]):
            raised = channels if three else width
            self.up.append(transposed(channels, raised, 2, stride=2))
            self.dec.append(DoubleConv(dims, raised + width, width, width))
            channels = width
        self.head = (nn.Conv3d if three else nn.Conv2d)(channels, classes, 1)

    def forward(self, x):
        skips = []
        for k, stage in enumerate(self.down):
            if k:
                x = self.pool(x, 2)
            x = stage(x)
            skips.append(x)
        skips.pop()
        for up, dec in zip(self.up, self.dec):
            x = dec(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


class CharLstm(nn.Module):
    def __init__(self, vocabulary: int, embedding: int, hidden: int, layers: int):
        super().__init__()
        self.emb = nn.Embedding(vocabulary, embedding)
        self.rnn = nn.LSTM(embedding, hidden, layers, batch_first=True)
        self.fc = nn.Linear(hidden, vocabulary)
        self.vocabulary = vocabulary

    def forward(self, x):
        return self.fc(self.rnn(self.emb(x))[0]).reshape(-1, self.vocabulary)


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.width, self.heads = width, heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.act = nn.GELU()

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(self.width, dim=2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * (self.width // self.heads) ** -0.5 + mask
        mixed = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, t, c)
        x = x + self.proj(mixed)
        return x + self.fc2(self.act(self.fc1(self.ln2(x))))


class HandGpt(nn.Module):
    """A decoder written out by hand, with its mask and positions as buffers."""

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, length: int):
        super().__init__()
        self.vocabulary = vocabulary
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.lnf = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        mask = torch.full((length, length), -1e9).triu(1)
        self.register_buffer("mask", mask[None, None])
        self.register_buffer("pos", torch.arange(length)[None])
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, x):
        x = self.wte(x) + self.wpe(self.pos)
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.lnf(x)).reshape(-1, self.vocabulary)


class Gpt2(nn.Module):
    """GPT-2 of `transformers`; the model computes its loss itself."""

    def __init__(self, **config):
        from transformers import GPT2Config, GPT2LMHeadModel

        super().__init__()
        self.m = GPT2LMHeadModel(GPT2Config(use_cache=False, attn_implementation="eager", **config))

    def forward(self, input_ids, labels):
        return self.m(input_ids=input_ids, labels=labels).loss


class Bert(nn.Module):
    """BERT of `transformers` with its masked-language-model head; the model computes its loss itself."""

    def __init__(self, **config):
        from transformers import BertConfig, BertForMaskedLM

        super().__init__()
        self.m = BertForMaskedLM(BertConfig(attn_implementation="eager", **config))

    def forward(self, input_ids, labels):
        return self.m(input_ids=input_ids, attention_mask=torch.ones_like(input_ids), labels=labels).loss


TINY_GPT2 = dict(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
TINY_BERT = dict(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=16
)
NO_GPT2_DROPOUT = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
NO_BERT_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


@dataclass(frozen=True)
class Spec:
    """One model: its constructor, its inputs, and the loss that is put on it.

    `sample` is the shape of one element of the batch; `tokens` is the vocabulary if the input is text. `loss` is `ce`
    (cross entropy), `mse`, `ce_nd` (cross entropy of every voxel) or `inmodel` (the model returns its loss). `batch` is
    the batch of the symbolic graphs' sample inputs, `static_batch` that of `static/`.
    """

    build: Callable[[], nn.Module]
    sample: tuple[int, ...]
    loss: str = "ce"
    batch: int = 2
    static_batch: int = 2
    tokens: int | None = None
    symbolic_length: bool = False


IMAGE, TINY_IMAGE = (3, 224, 224), (3, 32, 32)

SPECS = {
    "tiny_mlp": Spec(lambda: Mlp(nn.ReLU, 16, 32, 32, 10), (16,), batch=4, static_batch=4),
    "tiny_mlp_mse": Spec(lambda: Mlp(nn.Tanh, 16, 32, 4), (16,), "mse", batch=4, static_batch=4),
    "tiny_cnn": Spec(Cnn, TINY_IMAGE),
    "tiny_vgg": Spec(lambda: Vgg(dropout=False), TINY_IMAGE),
    "tiny_vgg_dropout": Spec(lambda: Vgg(dropout=True), TINY_IMAGE),
    "tiny_resnet18": Spec(narrow_resnet18, TINY_IMAGE, batch=4, static_batch=4),
    "tiny_densenet": Spec(narrow_densenet, TINY_IMAGE, batch=4, static_batch=4),
    "tiny_unet2d": Spec(lambda: UNet(2, 3, (8, 16, 32), 2), TINY_IMAGE, "ce_nd"),
    "tiny_unet3d": Spec(lambda: UNet(3, 1, (4, 8, 16), 3), (1, 16, 16, 16), "ce_nd"),
    "tiny_charlstm": Spec(lambda: CharLstm(32, 16, 32, 1), (8,), tokens=32),
    "tiny_gpt_hand": Spec(lambda: HandGpt(64, 32, 2, 2, 8), (8,), tokens=64),
    "tiny_gpt2": Spec(lambda: Gpt2(**TINY_GPT2, **NO_GPT2_DROPOUT), (8,), "inmodel", tokens=64, symbolic_length=True),
    "tiny_bert": Spec(lambda: Bert(**TINY_BERT, **NO_BERT_DROPOUT), (8,), "inmodel", tokens=64),
    "tiny_bert_dynseq_bad": Spec(
        lambda: Bert(**TINY_BERT, **NO_BERT_DROPOUT), (8,), "inmodel", tokens=64, symbolic_length=True
    ),
    "resnet18": Spec(torchvision_model("resnet18"), IMAGE, static_batch=32),
    "resnet50": Spec(torchvision_model("resnet50"), IMAGE, static_batch=32),
    "vgg16": Spec(torchvision_model("vgg16"), IMAGE, static_batch=8),
    "densenet121": Spec(torchvision_model("densenet121"), IMAGE, static_batch=32),
    "unet3d": Spec(lambda: UNet(3, 1, (64, 128, 256, 512), 3), (1, 32, 32, 32), "ce_nd", static_batch=8),
    "unet3d_128": Spec(lambda: UNet(3, 1, (64, 128, 256, 512), 3), (1, 128, 128, 128), "ce_nd", static_batch=1),
    "charlstm": Spec(lambda: CharLstm(96, 128, 512, 2), (64,), tokens=96, static_batch=32),
    "gpt2_small": Spec(lambda: Gpt2(), (64,), "inmodel", batch=1, static_batch=8, tokens=50257, symbolic_length=True),
    "bert_base": Spec(lambda: Bert(), (64,), "inmodel", batch=1, static_batch=8, tokens=30522),
}


def build(name: str) -> nn.Module:
    """The model in training mode, with the weights that `SEED` gives."""
    torch.manual_seed(SEED)
    return SPECS[name].build().train()


def inputs(name: str, batch: int) -> tuple[torch.Tensor, ...]:
    """The arguments of the model's `forward`: one tensor, or token ids and labels if it computes its loss."""
    torch.manual_seed(SEED + 1)
    spec = SPECS[name]
    if spec.tokens is None:
        return (torch.randn(batch, *spec.sample),)
    ids = torch.randint(0, spec.tokens, (batch, *spec.sample))
    return (ids, ids.clone()) if spec.loss == "inmodel" else (ids,)

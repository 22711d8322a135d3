"""Whole models in PyTorch, with weights and inputs of a fixed seed; nothing is downloaded."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS = 1000


@dataclass(frozen=True)
class Model:
    """A model and its example inputs.

    Attributes:
        make: Makes the module.
        inputs: Makes the arguments for a batch size.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[Tensor, ...]]

    def seeded(self) -> nn.Module:
        """Returns the module with its weights, for inference."""
        torch.manual_seed(0)
        module = self.make().eval()
        for name, buffer in module.named_buffers():  # as training would leave them, not 0 and 1
            if name.endswith("running_mean"):
                buffer.normal_(0, 0.1)
            elif name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5)
        return module

    def arguments(self, batch: int) -> tuple[Tensor, ...]:
        """Returns the arguments for a batch size, always the same ones."""
        torch.manual_seed(batch)
        return self.inputs(batch)


class Perceptron(nn.Module):
    """Three layers of 512 on 784 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(784, 512),
            nn.ReLU(),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Linear(512, 10),
            nn.Softmax(-1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class _ResidualBlock(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outer)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outer)
        self.short = nn.Identity()
        if stride > 1 or inner != outer:
            self.short = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(y)) + self.short(x))


class ResNet(nn.Module):
    """ResNet-18, on images of 64 x 64."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(64)
        widths = (64, 64, 128, 256, 512)
        blocks: list[nn.Module] = []
        for inner, outer in itertools.pairwise(widths):
            stride = 1 if inner == outer else 2
            blocks += [_ResidualBlock(inner, outer, stride), _ResidualBlock(outer, outer, 1)]
        self.blocks = nn.Sequential(*blocks)
        self.out = nn.Linear(512, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.stem(x)))
        x = functional.max_pool2d(x, 3, 2, 1)
        return self.out(self.blocks(x).mean((2, 3)))


def _normed(inner: int, outer: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inner, outer, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outer),
    )


class _InvertedResidual(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inner * expansion
        layers = [_normed(wide, wide, 3, stride, wide), nn.ReLU6(), _normed(wide, outer, 1)]
        if expansion > 1:
            layers = [_normed(inner, wide, 1), nn.ReLU6(), *layers]
        self.layers = nn.Sequential(*layers)
        self.adds = stride == 1 and inner == outer

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return x + y if self.adds else y


class MobileNet(nn.Module):
    """MobileNetV2, on images of 64 x 64."""

    def __init__(self) -> None:
        super().__init__()
        rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
        inner = 32
        layers: list[nn.Module] = [_normed(3, inner, 3, 2), nn.ReLU6()]
        for expansion, outer, count, stride in rows:
            for index in range(count):
                layers.append(_InvertedResidual(inner, outer, 1 if index else stride, expansion))
                inner = outer
        self.layers = nn.Sequential(*layers, _normed(inner, 1280, 1), nn.ReLU6())
        self.out = nn.Linear(1280, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.layers(x).mean((2, 3)))


class _Layer(nn.Module):
    """Attention and a perceptron; norms stand before them, or behind their sums."""

    def __init__(self, width: int, heads: int, norm_first: bool) -> None:
        super().__init__()
        self.heads, self.norm_first = heads, norm_first
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_first:
            x = x + self.attended(self.norms[0](x))
            return x + self.outer(functional.gelu(self.inner(self.norms[1](x))))
        x = self.norms[0](x + self.attended(x))
        return self.norms[1](x + self.outer(functional.gelu(self.inner(x))))

    def attended(self, x: Tensor) -> Tensor:
        batch, words, width = x.shape
        parts = self.project(x).view(batch, words, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        return self.merge(mixed.transpose(1, 2).reshape(batch, words, width))


class Encoder(nn.Module):
    """BERT's form, four layers of 256 with four heads, on 64 words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 256)
        self.places = nn.Parameter(torch.randn(64, 256) * 0.02)
        self.norm = nn.LayerNorm(256)
        self.layers = nn.Sequential(*(_Layer(256, 4, norm_first=False) for _ in range(4)))
        self.out = nn.Linear(256, 2)

    def forward(self, words: Tensor) -> Tensor:
        x = self.layers(self.norm(self.words(words) + self.places))
        return self.out(torch.tanh(x[:, 0]))


class _CachedBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, at: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch, _, width = x.shape
        parts = self.project(self.before(x)).view(batch, 1, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        is_here = (torch.arange(keys.shape[2]) == at)[:, None]
        keys = torch.where(is_here, key, keys)
        values = torch.where(is_here, value, values)
        scores = query @ keys.transpose(-1, -2) / math.sqrt(query.shape[-1])
        is_past = torch.arange(keys.shape[2]) <= at
        weights = torch.softmax(torch.where(is_past, scores, -1e9), -1)
        x = x + self.merge((weights @ values).transpose(1, 2).reshape(batch, 1, width))
        hidden = functional.gelu(self.inner(self.after(x)), approximate="tanh")
        return x + self.outer(hidden), keys, values


class Decoder(nn.Module):
    """A step of GPT's form, four layers of 256 with four heads and a cache of 128 words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 256), nn.Embedding(128, 256)
        self.blocks = nn.ModuleList(_CachedBlock(256, 4) for _ in range(4))
        self.norm = nn.LayerNorm(256)
        self.out = nn.Linear(256, WORDS, bias=False)

    def forward(
        self, word: Tensor, at: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = self.words(word) + self.places(at)
        new_keys, new_values = [], []
        for index, block in enumerate(self.blocks):
            x, key, value = block(x, keys[index], values[index], at)
            new_keys.append(key)
            new_values.append(value)
        return self.out(self.norm(x)), torch.stack(new_keys), torch.stack(new_values)


class Recurrent(nn.Module):
    """An LSTM of 128 units over 50 steps of 64 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.out = nn.LSTM(64, 128, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.cells(x)[0][:, -1])


class VisionTransformer(nn.Module):
    """ViT, four layers of 192 with three heads, on images of 32 x 32 in patches of 4 x 4."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 192, 4, 4)
        self.label = nn.Parameter(torch.randn(1, 1, 192) * 0.02)
        self.places = nn.Parameter(torch.randn(65, 192) * 0.02)
        self.layers = nn.Sequential(*(_Layer(192, 3, norm_first=True) for _ in range(4)))
        self.norm, self.out = nn.LayerNorm(192), nn.Linear(192, 10)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.label.expand(x.shape[0], -1, -1), patches], 1) + self.places
        return self.out(self.norm(self.layers(x)[:, 0]))


def _twice(inner: int, outer: int) -> nn.Sequential:
    return nn.Sequential(_normed(inner, outer, 3), nn.ReLU(), _normed(outer, outer, 3), nn.ReLU())


class UNet(nn.Module):
    """Three levels of 16, 32 and 64 channels, on images of 64 x 64."""

    def __init__(self) -> None:
        super().__init__()
        self.down0, self.down1, self.low = _twice(1, 16), _twice(16, 32), _twice(32, 64)
        self.up1, self.up0 = nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)
        self.merge1, self.merge0 = _twice(64, 32), _twice(32, 16)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        high = self.down0(x)
        middle = self.down1(functional.max_pool2d(high, 2))
        low = self.low(functional.max_pool2d(middle, 2))
        middle = self.merge1(torch.cat([middle, self.up1(low)], 1))
        return self.out(self.merge0(torch.cat([high, self.up0(middle)], 1)))


def _numbers(*shape: int) -> Callable[[int], tuple[Tensor, ...]]:
    return lambda batch: (torch.randn(batch, *shape),)


def _words(batch: int) -> tuple[Tensor, ...]:
    return (torch.randint(0, WORDS, (batch, 64)),)


def _step(batch: int) -> tuple[Tensor, ...]:
    cache = (4, batch, 4, 128, 64)
    word = torch.randint(0, WORDS, (batch, 1))
    return word, torch.tensor([100]), torch.randn(cache), torch.randn(cache)


MODELS = {
    "mlp": Model(Perceptron, _numbers(784)),
    "resnet": Model(ResNet, _numbers(3, 64, 64)),
    "mobilenet": Model(MobileNet, _numbers(3, 64, 64)),
    "bert": Model(Encoder, _words),
    "gpt": Model(Decoder, _step),
    "lstm": Model(Recurrent, _numbers(50, 64)),
    "vit": Model(VisionTransformer, _numbers(3, 32, 32)),
    "unet": Model(UNet, _numbers(1, 64, 64)),
}

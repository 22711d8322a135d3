"""Programs that the report times, as functions with JAX's API and by PyTorch's own operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Arrays and modules of any library.
Function = Callable[..., Any]


@dataclass(frozen=True)
class Timed:
    """A program with its bytes and operations on a GPU.

    Attributes:
        name: Its name in the report.
        build: Makes the function, of a library with JAX's API and its `numpy`.
        shapes: Those of its arguments.
        dtype: The type of its arguments.
        operations: How many floating-point operations it does.
        precision: Precision of f32 products: "f32", or "tf32" if the library supports it (axir does
            not).
        torch: The same by PyTorch, which is passed first.
    """

    name: str
    build: Callable[[Any, Any], Function]
    shapes: Sequence[tuple[int, ...]]
    dtype: str = "float32"
    operations: float = 0.0
    precision: str = "f32"
    torch: Function | None = None

    def arguments(self) -> list[np.ndarray]:
        """Returns small normal numbers, as float32."""
        generator = np.random.default_rng(0)
        drawn = (generator.standard_normal(shape, np.float32) for shape in self.shapes)
        return [x * np.float32(0.1) for x in drawn]


def _matmul(n: int, dtype: str, precision: str = "f32") -> Timed:
    word = {"float32": precision, "bfloat16": "bf16", "float16": "f16"}[dtype]
    return Timed(
        f"product {word} {n}",
        lambda jax, jnp: lambda x, y: x @ y,
        [(n, n), (n, n)],
        dtype,
        2.0 * n**3,
        precision,
        lambda torch, x, y: x @ y,
    )


def _attention(length: int, dtype: str, is_causal: bool, batch: int = 4, heads: int = 16) -> Timed:
    def build(jax: Any, jnp: Any) -> Function:
        def attend(q: Any, k: Any, v: Any) -> Any:
            scores = (q @ jnp.swapaxes(k, -1, -2)).astype(np.float32) / np.float32(8)
            if is_causal:
                scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
            return jax.nn.softmax(scores).astype(v.dtype) @ v

        return attend

    def torch_attention(torch: Any, q: Any, k: Any, v: Any) -> Any:
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(q, k, v, is_causal=is_causal)

    name = f"{'causal ' * is_causal}attention {dtype} {batch}x{heads}x{length}x64"
    shapes = [(batch, heads, length, 64)] * 3
    operations = 4.0 * batch * heads * length**2 * 64 / (2 if is_causal else 1)
    return Timed(name, build, shapes, dtype, operations, torch=torch_attention)


def _layer_norm(rows: int, width: int, dtype: str) -> Timed:
    def build(jax: Any, jnp: Any) -> Function:
        def normalize(x: Any, scale: Any, bias: Any) -> Any:
            y = x.astype(np.float32)
            mean = y.mean(-1, keepdims=True)
            centered = y - mean
            variance = (centered**2).mean(-1, keepdims=True)
            return (centered * jax.lax.rsqrt(variance + 1e-5)).astype(x.dtype) * scale + bias

        return normalize

    def torch_norm(torch: Any, x: Any, scale: Any, bias: Any) -> Any:
        return torch.nn.functional.layer_norm(x, (width,), scale, bias)

    shapes = [(rows, width), (width,), (width,)]
    return Timed(f"layer norm {dtype} {rows}x{width}", build, shapes, dtype, torch=torch_norm)


def _normalized(jax: Any, x: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-5)


def _transformer_step(batch: int, length: int, width: int, heads: int, dtype: str) -> Timed:
    """A step of gradient descent of one block, on the mean square of its result."""

    def build(jax: Any, jnp: Any) -> Function:
        def loss(params: Any, x: Any) -> Any:
            mix, out, up, down = params
            parts = (_normalized(jax, x) @ mix).reshape(batch, length, 3, heads, width // heads)
            q, k, v = (jnp.moveaxis(parts[:, :, n], 1, 2) for n in range(3))
            scores = (q @ jnp.swapaxes(k, -1, -2)).astype(np.float32) / np.sqrt(width // heads)
            mixed = jax.nn.softmax(scores.astype(np.float32)).astype(x.dtype) @ v
            x = x + jnp.moveaxis(mixed, 1, 2).reshape(x.shape) @ out
            x = x + jax.nn.gelu(_normalized(jax, x) @ up) @ down
            return jnp.mean(x.astype(np.float32) ** 2)

        def step(mix: Any, out: Any, up: Any, down: Any, x: Any) -> Any:
            params = (mix, out, up, down)
            slopes = jax.grad(loss)(params, x)
            return [p - (0.1 * g).astype(p.dtype) for p, g in zip(params, slopes, strict=True)]

        return step

    def torch_step(torch: Any, mix: Any, out: Any, up: Any, down: Any, x: Any) -> Any:
        functional = torch.nn.functional
        params = [p.detach().requires_grad_() for p in (mix, out, up, down)]
        first, second, third, fourth = params
        parts = functional.layer_norm(x, (width,)) @ first
        parts = parts.reshape(batch, length, 3, heads, width // heads)
        q, k, v = (parts[:, :, n].transpose(1, 2) for n in range(3))
        mixed = functional.scaled_dot_product_attention(q, k, v)
        y = x + mixed.transpose(1, 2).reshape(x.shape) @ second
        hidden = functional.gelu(functional.layer_norm(y, (width,)) @ third, approximate="tanh")
        y = y + hidden @ fourth
        slopes = torch.autograd.grad((y.float() ** 2).mean(), params)
        return [p.detach() - 0.1 * g for p, g in zip(params, slopes, strict=True)]

    sizes = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    products = sum(a * b for a, b in sizes) * batch * length
    operations = 6.0 * products + 12.0 * batch * length**2 * width
    name = f"transformer step {dtype} {batch}x{length}x{width}"
    return Timed(name, build, [*sizes, (batch, length, width)], dtype, operations, torch=torch_step)


def _convolution(batch: int, side: int, channels: int, dtype: str) -> Timed:
    def build(jax: Any, jnp: Any) -> Function:
        numbers = ("NHWC", "HWIO", "NHWC")

        def convolve(x: Any, kernel: Any) -> Any:
            return jax.lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=numbers
            )

        return convolve

    def torch_convolution(torch: Any, x: Any, kernel: Any) -> Any:
        images = x.permute(0, 3, 1, 2)  # with channels last in memory
        return torch.nn.functional.conv2d(images, kernel.permute(3, 2, 0, 1), padding=1)

    shapes = [(batch, side, side, channels), (3, 3, channels, channels)]
    operations = 2.0 * batch * side**2 * channels**2 * 9
    name = f"convolution {dtype} {batch}x{side}x{side}x{channels}"
    return Timed(name, build, shapes, dtype, operations, torch=torch_convolution)


def _elementwise(n: int) -> list[Timed]:
    return [
        Timed(f"x + 1 {n}", lambda jax, jnp: lambda x: x + 1, [(n,)], torch=lambda t, x: x + 1),
        Timed(
            f"x + y bf16 {n}",
            lambda jax, jnp: lambda x, y: x + y,
            [(n,), (n,)],
            "bfloat16",
            torch=lambda t, x, y: x + y,
        ),
        Timed(
            f"gelu {n}",
            lambda jax, jnp: jax.nn.gelu,
            [(n,)],
            torch=lambda t, x: t.nn.functional.gelu(x, approximate="tanh"),
        ),
    ]


def _reductions(n: int) -> list[Timed]:
    square = [(n, n)]
    return [
        Timed(f"sum of all {n}x{n}", lambda jax, jnp: jnp.sum, square, torch=lambda t, x: x.sum()),
        Timed(
            f"sums of rows {n}x{n}",
            lambda jax, jnp: lambda x: x.sum(1),
            square,
            torch=lambda t, x: x.sum(1),
        ),
        Timed(
            f"sums of columns {n}x{n}",
            lambda jax, jnp: lambda x: x.sum(0),
            square,
            torch=lambda t, x: x.sum(0),
        ),
        Timed(
            f"argmax of rows {n}x{n}",
            lambda jax, jnp: lambda x: jnp.argmax(x, 1),
            square,
            torch=lambda t, x: x.argmax(1),
        ),
        Timed(
            f"softmax {n}x{n}",
            lambda jax, jnp: jax.nn.softmax,
            square,
            torch=lambda t, x: t.softmax(x, -1),
        ),
        Timed(
            f"cumsum of rows {n}x{n}",
            lambda jax, jnp: lambda x: jnp.cumsum(x, 1),
            square,
            torch=lambda t, x: x.cumsum(1),
        ),
        Timed(
            f"transpose {n}x{n}",
            lambda jax, jnp: lambda x: x.T + 0,
            square,
            torch=lambda t, x: x.T.contiguous(),
        ),
    ]


def _sort(shape: tuple[int, ...]) -> Timed:
    name = f"sort {'x'.join(map(str, shape))}"
    build = lambda jax, jnp: lambda x: jnp.sort(x, -1)  # noqa: E731
    return Timed(name, build, [shape], torch=lambda t, x: t.sort(x, -1)[0])


def programs(is_tiny: bool) -> list[Timed]:
    """Returns the programs, the most telling first; tiny ones for software devices."""
    if is_tiny:
        return [
            _matmul(64, "float32"),
            _attention(16, "float32", True, 1, 2),
            _layer_norm(8, 32, "float32"),
            _elementwise(1000)[0],
            *_reductions(32)[:2],
            _sort((100,)),
            _transformer_step(1, 8, 16, 2, "float32"),
        ]
    return [
        *(_matmul(n, "bfloat16") for n in (1024, 2048, 4096, 8192)),
        *(_matmul(n, "float32") for n in (1024, 2048, 4096, 8192)),
        *(_matmul(n, "float32", "tf32") for n in (1024, 2048, 4096, 8192)),
        _attention(1024, "bfloat16", False),
        _attention(2048, "bfloat16", True),
        _attention(1024, "float32", False),
        *_elementwise(1 << 26),
        *_reductions(8192),
        _layer_norm(16384, 1024, "float32"),
        _layer_norm(16384, 1024, "bfloat16"),
        _transformer_step(8, 512, 1024, 16, "bfloat16"),
        _transformer_step(8, 512, 1024, 16, "float32"),
        _sort((1 << 20,)),
        _sort((1 << 24,)),
        _sort((4096, 1024)),
        _convolution(32, 56, 64, "float16"),
        _convolution(32, 56, 64, "float32"),
        _matmul(4096, "float16"),
    ]

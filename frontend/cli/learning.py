"""Losses of saved functions, steps of gradient descent, and models of other libraries as bundles.

Elsewhere: gradients, which are a pass (`transforms.py`).
"""

from __future__ import annotations

import errno
import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import click

import axir
import axir.numpy as jnp
from axir import tree
from axir._bundles.bundle import Bundle
from axir._bundles.exported import Exported
from axir._foreign.onnx_models import from_onnx
from axir._foreign.torch_programs import read_torch
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Extent, Options, UserFunction, UserObject
from axir.dialect.core.errors import ParameterError
from axir.export import export

from .bundles import BUNDLE, open_functions, shape_option
from .group import Verb, note, verbose_option


def _squared_error(value: UserObject, target: UserObject) -> UserObject:
    return jnp.mean((value - target) ** 2)


def _cross_entropy(value: UserObject, target: UserObject) -> UserObject:
    return -jnp.mean(jnp.sum(target * axir.nn.log_softmax(value), axis=-1))


LOSSES: dict[str, Callable[[UserObject, UserObject], UserObject]] = {
    "squared-error": _squared_error,
    "cross-entropy": _cross_entropy,
}


def loss_of(exported: Exported, kind: str, number: int) -> Exported:
    """Returns a function of the same arguments and a target, with a loss as its result.

    Args:
        exported: The function.
        kind: One of `LOSSES`.
        number: The result that the target is compared with; both are of one type.
    """

    def loss(*args: UserObject, **kwargs: Options) -> dict[str, UserObject]:
        *own, target = args
        return {"loss": LOSSES[kind](tree.leaves(exported(*own, **kwargs))[number], target)}

    target = exported.out_avals[number]
    return _exported(loss, exported, ("target", target.shape, target.dtype))


def step_of(exported: Exported, number: int, names: Sequence[str]) -> Exported:
    """Returns a function that replaces parameters by those a step down the gradient.

    It takes the arguments and a rate, and returns the function's results.

    Args:
        exported: The function.
        number: The result that is made smaller, a real scalar.
        names: The parameters.

    Raises:
        ParameterError: if no parameter is named.
    """
    if not names:
        raise ParameterError(
            f"{exported.fun_name!r} has no parameters that a step could replace.",
            "Weights of modules become parameters where a bundle is written: -o model.axir.",
            where="",
        )

    def step(*args: UserObject, **kwargs: Options) -> tuple[dict[str, UserObject], UserObject]:
        *own, rate = args

        def value(changed: dict[str, UserObject]) -> tuple[UserObject, UserObject]:
            found = exported.with_parameters(changed)(*own, **kwargs)
            return tree.leaves(found)[number], found

        before = {name: exported.parameters[name] for name in names}
        gradient, found = axir.grad(value, has_aux=True)(before)
        after = {name: x - (rate * gradient[name]).astype(x.dtype) for name, x in before.items()}
        return after, found

    kind = exported.out_avals[number]
    if kind.shape or not dtypes.is_float(kind.dtype):
        raise ParameterError(
            f"A step makes a real scalar smaller; result {number} is {kind}.",
            "Name a loss of it: --loss squared-error, --loss cross-entropy.",
            where="",
        )
    updates = {name: f"result[0][{name!r}]" for name in names}
    rate = ("rate", (), exported.out_avals[number].dtype)
    return _exported(step, exported, rate, updates)


def _exported(
    function: UserFunction,
    exported: Exported,
    addition: tuple[str, tuple[Extent, ...], UserObject],
    updates: dict[str, str] | None = None,
) -> Exported:
    """Exports a function of another one's arguments, followed by one more array.

    Args:
        function: The function to export.
        exported: The function with the arguments.
        addition: Name, shape and dtype of the array.
        updates: As for `export`.
    """
    name, shape, dtype = addition
    kinds = inspect.Parameter
    named = list(exported.__signature__.parameters.values())
    place = next((n for n, x in enumerate(named) if x.kind == kinds.KEYWORD_ONLY), len(named))
    if any(x.name == name for x in named):
        raise ParameterError(
            f"{exported.fun_name!r} has an argument {name!r} already.",
            "Export the function with another name for it.",
            where="",
        )
    named.insert(place, kinds(name, kinds.POSITIONAL_OR_KEYWORD))
    function.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    flat = [axir.ShapeDtypeStruct(x.shape, x.dtype) for x in exported.in_avals]
    given: UserObject = exported.in_tree.unflatten(flat)
    args, kwargs = given
    function.__name__ = exported.fun_name
    exporter: UserObject = export(function, updates=updates or {})
    found: Exported = exporter(*args, axir.ShapeDtypeStruct(shape, dtype), **kwargs)
    return found


# Import -------------------------------------------------------------------------------------------


@click.command("import", cls=Verb)
@click.argument("file", metavar="MODEL", type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="What to call the function.")
@shape_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Bundle to write (.axir); by default MODEL's name.",
)
@verbose_option
def import_(
    file: Path, name: str | None, shapes: dict[str, tuple[int | str, ...]], output: Path | None
) -> None:
    """Make a bundle of a model of another program.

    MODEL is a program of torch.export (.pt2), a model of ONNX (.onnx), or StableHLO as text,
    bytecode, a portable artifact or the output of jax.export's serialize. Weights become parameters
    of the bundle, and inputs and outputs keep their names. Programs of PyTorch need
    `pip install axir[torch]`, and models of ONNX need `pip install axir[onnx]`.

    Examples:
      axir import model.pt2 -o model.axir
      axir import model.onnx --shape x=1x3x224x224
      axir import exported.bin --name predict -o model.axir
    """
    if output is None and str(file) == "-":
        raise click.UsageError("A module from stdin needs -o FILE.")
    output = output or Path(file.stem + BUNDLE)
    if output.suffix != BUNDLE:
        raise click.UsageError(f"-o {output}: what is imported is a bundle, a .axir file.")
    if str(file) != "-" and not file.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
    if file.suffix == ".pt2":
        exported = read_torch(file, name or "forward", shapes)
        bundle = Bundle({exported.fun_name: exported})
    elif file.suffix == ".onnx":
        exported = from_onnx(file, name=name or "main", shapes=shapes)
        bundle = Bundle({exported.fun_name: exported})
    else:
        bundle = open_functions(file, shapes)
        if name is not None and len(bundle) > 1:
            raise click.UsageError(f"--name {name}: {file} has the functions {', '.join(bundle)}.")
        bundle = Bundle({name or each: function for each, function in bundle.items()})
    bundle.save(output)
    functions = ", ".join(map(repr, bundle.values()))
    note(f"wrote {output}: {functions}")

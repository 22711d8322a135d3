"""Saving functions, and loading them without their Python source.

`export(f)(*args)` traces; the result prints as MLIR of the jaxpr dialect or of StableHLO, is saved
to a file, and is called. `load` reads such a file. Both give an `Exported`, which can be jitted,
differentiated and vectorized like any function, or a `Bundle` of several that share parameters.
The names are those of `jax.export`. What does not live here: what is saved and how it is called
(`frontend/_bundles/`), compiled programs (`frontend/_programs/compiled_modules.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from axir._arguments.arguments import check_callable
from axir._bundles.bound_arguments import parameter_names, unbound
from axir._bundles.bundle import Bundle, open_bundle
from axir._bundles.captures import Parametrized, names_in, parametrized, shared
from axir._bundles.exported import Exported, signature_of
from axir._bundles.manifest import FunctionEntry
from axir._bundles.saving import is_function_name
from axir._programs.compiled_modules import open_program
from axir._transforms.jit import JitFunction, jit
from axir._trees import tree
from axir.dialect.core.annotations import Options, UserFunction, UserObject
from axir.dialect.core.errors import ParameterError, UnexpectedTracerError
from axir.dialect.program.tracer import Tracer
from axir.dialect.text.module_reader import read_file
from axir.dialect.text.summary import summarize

__all__ = ["Bundle", "Exported", "deserialize", "export", "load"]


def export(fun: UserFunction | Mapping[str, UserFunction]) -> Callable[..., UserObject]:
    """Returns a function that exports `fun` for the types of given arguments.

    Args:
        fun: A jitted function, or a plain one. Static arguments are fixed to the values given.
            Or several of these by name, which become a `Bundle`. What `functools.partial` binds
            becomes parameters, which are saved with the function.

    Returns:
        A function of arrays, or of anything with `shape` and `dtype` such as `ShapeDtypeStruct`,
        that returns an `Exported`. For several functions it takes the arguments of each as a tuple
        under its name, and returns a `Bundle`.

    Raises:
        NonArrayArgumentError: if `fun` is not callable, or by the call, if an argument is no array.
        ParameterError: by the call, if the arguments of a function are missing.
        UnexpectedTracerError: by the call, if `fun` uses values of a trace that is going on.

    >>> import axir, axir.numpy as jnp
    >>> exported = export(lambda x: jnp.sin(x))(jnp.ones(3))
    >>> exported.in_avals, exported.argument_names
    ((ShapedArray(float32[3]),), ['x'])
    >>> print(exported.stablehlo())
    module {
      func.func @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
        %0 = stablehlo.sine %arg0 : tensor<3xf32>
        return %0 : tensor<3xf32>
      }
    }
    <BLANKLINE>
    >>> export({"double": lambda x: x * 2, "half": lambda x: x / 2})(double=(1.0,), half=(1.0,))
    <Bundle of double(x), half(x)>
    """
    if isinstance(fun, Mapping):
        return _exporter_of_several(fun)
    check_callable(fun, "export")

    def exporter(*args: Options, **kwargs: Options) -> Exported:
        traced = _trace(fun, args, kwargs)
        return _exported(traced, traced.found)

    return exporter


def _exporter_of_several(functions: Mapping[str, UserFunction]) -> Callable[..., Bundle]:
    for fun in functions.values():
        check_callable(fun, "export")

    def exporter(**arguments: UserObject) -> Bundle:
        wrong = set(arguments).symmetric_difference(functions)
        if wrong:
            raise ParameterError(
                f"export of {', '.join(functions)} was called with arguments of "
                f"{', '.join(arguments) or 'none'}.",
                "Give the arguments of each function as a tuple under its name: "
                "export({'f': f, 'g': g})(f=(x,), g=(x, y)).",
            )
        traced = {}
        for name, fun in functions.items():
            args, kwargs = _split(arguments[name])
            traced[name] = _trace(fun, args, kwargs, name)
        found = shared({name: each.found for name, each in traced.items()})
        return Bundle({name: _exported(each, found[name]) for name, each in traced.items()})

    return exporter


def _split(arguments: UserObject) -> tuple[tuple[UserObject, ...], dict[str, Options]]:
    """Returns positional and keyword arguments: a mapping stands for the latter."""
    if isinstance(arguments, Mapping):
        return (), dict(arguments)
    return tuple(arguments) if isinstance(arguments, (tuple, list)) else (arguments,), {}


class _Traced(NamedTuple):
    """A function traced: what the manifest says of it, the function, and its structures."""

    entry: FunctionEntry
    found: Parametrized
    in_tree: tree.TreeDef
    out_tree: tree.TreeDef


def _trace(
    fun: UserFunction,
    args: tuple[UserObject, ...],
    kwargs: dict[str, Options],
    name: str | None = None,
) -> _Traced:
    """Traces a function for given arguments, under a name if one is given."""
    fun, bound = unbound(fun)
    jitted = fun if isinstance(fun, JitFunction) else jit(fun)
    if bound.is_empty:
        lowered = jitted.lower(*args, **kwargs)
        in_tree, values = lowered.in_tree, {}
    else:
        lowered = jit(bound.taking_them_last(fun)).lower(args, kwargs, *bound)
        in_tree, values = tree.structure((args, kwargs)), bound.by_name(fun)
    function = lowered.function
    if any(type(x) is Tracer for x in function.captured):
        raise UnexpectedTracerError(
            f"export: {function.name!r} uses values of a function that is being traced.",
            "Export outside of jit, grad and vmap, or pass these values as arguments.",
        )
    names = list(_argument_names(jitted, args, kwargs, len(bound.args)))
    found = parametrized(function, names_in(jitted._function), values)
    entry = FunctionEntry(
        name or _symbol(function.name),
        signature_of(found.function, in_tree, lowered.out_tree, names),
        tuple(found.parameters),
        () if values else tuple(lowered._donated),
    )
    return _Traced(entry, found, in_tree, lowered.out_tree)


def _symbol(name: str) -> str:
    """Returns what a single function is called: its name, or `main` if it is a lambda."""
    return name if is_function_name(name) else "main"


def _exported(traced: _Traced, found: Parametrized) -> Exported:
    entry = replace(traced.entry, parameters=tuple(found.parameters))
    return Exported(entry, found.function, found.parameters, traced.in_tree, traced.out_tree)


def _argument_names(
    jitted: JitFunction,
    args: tuple[UserObject, ...],
    kwargs: dict[str, Options],
    skipped: int = 0,
) -> Iterator[str]:
    """Yields the name of each leaf: that of the parameter, and the path below it.

    The first positional parameters are skipped where they are bound.
    """
    positional, rest = parameter_names(jitted)
    positional = positional[skipped:]
    static = {n % len(args) for n in jitted._static_argnums} if args else set()
    for index, value in enumerate(args):
        if index in static:
            continue
        beyond = index - len(positional)
        name = positional[index] if beyond < 0 else f"{rest}[{beyond}]"
        yield from (name + path for path in tree.paths(value))
    for name in sorted(kwargs):
        if name not in jitted._static_argnames:
            yield from (name + path for path in tree.paths(kwargs[name]))


def load(path: str | Path) -> UserObject:
    """Loads what was saved: a bundle, or a module of the jaxpr dialect.

    Returns:
        An `Exported`, whose trees are those it was saved with; of a bundle of several functions a
        `Bundle`. A module of StableHLO, or a compiled `.vmfb`, gives a compiled program instead:
        it can be called, but not transformed.

    Raises:
        OSError: if there is no such file.
        BundleError, BundleVersionError: if a bundle is damaged, or of a newer axir.
        ParseError, UnknownOpError, VerificationError: if the file holds no valid module.
    """
    if Path(path).suffix == ".axir":
        return _only(open_bundle(path))
    if Path(path).suffix == ".vmfb":
        return open_program(path)
    module = read_file(path)
    if summarize(module).dialect != "jaxpr":
        return open_program(path)
    return Exported.from_module(module, str(path))


def deserialize(blob: bytes | bytearray) -> UserObject:
    """Returns what `serialize` of an `Exported` or a `Bundle` returned the bytes of; see `load`.

    Raises:
        BundleError, BundleVersionError: if they are damaged, or of a newer axir.

    >>> deserialize(export(lambda x: x + 1)(1.0).serialize())(2.0)
    Array(3., dtype=float32)
    """
    return _only(open_bundle(bytes(blob)))


def _only(bundle: Bundle) -> Exported | Bundle:
    return next(iter(bundle.values())) if len(bundle) == 1 else bundle

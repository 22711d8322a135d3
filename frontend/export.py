"""Saving functions, and loading them without their Python source.

`export(f)(*args)` traces; the result prints as MLIR of the jaxpr dialect or of StableHLO, is saved
to a file, and is called. `load` reads such a file. Both give an `Exported`, which can be jitted,
differentiated and vectorized like any function, or a `Bundle` of several that share parameters.
The names are `jax.export`'s. Elsewhere: saved functions and their calls (`frontend/_bundles/`),
compiled programs (`frontend/_programs/compiled_modules.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from axir._arguments.arguments import check_callable, type_of
from axir._arguments.symbolic_shapes import symbolic_shape
from axir._bundles.bundle import Bundle, open_bundle
from axir._bundles.captures import shared
from axir._bundles.exported import Exported
from axir._bundles.module_functions import functions_of_module
from axir._bundles.saving import DisabledSafetyCheck
from axir._bundles.tracing import trace
from axir._devices.shape_dtype_struct import ShapeDtypeStruct
from axir._programs.compiled_modules import compile_program, open_module, open_program
from axir._trees import tree
from axir._trees.serialized import (
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from axir.dialect.core.annotations import Extent, Options, PyTree, Tree, UserObject
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic.texts import SymbolicScope
from axir.dialect.core.symbolic_dims import SymbolicDim, is_symbolic_dim, symbolic_dim_bounds
from axir.dialect.text.file_kinds import is_bundle, is_program
from axir.runtime import default_device
from axir.runtime.compiler.target import BACKENDS

__all__ = [
    "Bundle", "DisabledSafetyCheck", "Exported", "SymbolicDim", "SymbolicScope",
    "default_export_platform", "deserialize", "export", "from_onnx", "from_torch",
    "is_symbolic_dim", "load", "register_namedtuple_serialization",
    "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_dim_bounds",
    "symbolic_shape", "to_cpp",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def export(
    fun_jit: Callable[..., object] | Mapping[str, Callable[..., object]],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    updates: Mapping[str, UserObject] = MappingProxyType({}),
) -> Callable[..., UserObject]:
    """Returns a function that exports `fun_jit` for the types of given arguments.

    Args:
        fun_jit: A jitted function, or a plain one. Static arguments are fixed to the values given.
            Or several of these by name, which become a `Bundle`. Arguments bound by
            `functools.partial` become parameters, which are saved with the function.
        platforms: Platforms to run on: some of "cpu", "cuda", "vulkan". The result runs on each.
        disabled_checks: Checks to skip; see `DisabledSafetyCheck`.
        updates: By name, or by what several names begin with, parameters and the results that are
            their new values: `{"params": "result[0]"}`. For several functions by their names.

    Returns:
        A function of arrays, or of anything with `shape` and `dtype` such as `ShapeDtypeStruct`,
        that returns an `Exported`. Dimensions may be open (`symbolic_shape`): then the program is
        one for all sizes. For several functions it takes the arguments of each as a tuple under
        its name, and returns a `Bundle`.

    Raises:
        NonArrayArgumentError: if `fun_jit` is not callable, or by the call, if an argument is no
            array.
        ParameterError: if the platform does not exist; by the call, if the arguments of a function
            or the results named by `updates` are missing.
        SymbolicDimError: by the call, if `fun_jit` does something with an open dimension that
            depends on its size.
        ShapeError: by the call, if an open dimension does not follow from the shapes of arguments.
        UnexpectedTracerError: by the call, if `fun_jit` uses values of a trace that is going on.

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
    _check_platforms(platforms)
    checks_rows = DisabledSafetyCheck.rows() not in disabled_checks
    if isinstance(fun_jit, Mapping):
        return _exporter_of_several(fun_jit, checks_rows, updates)
    check_callable(fun_jit, "export")

    def exporter(*args: object, **kwargs: object) -> Exported:
        traced = trace(fun_jit, args, kwargs, checks_rows=checks_rows, updates=updates)
        return traced.exported(traced.found)

    return exporter


def _check_platforms(platforms: Sequence[str] | None) -> None:
    for name in platforms or ():
        if name not in BACKENDS:
            raise ParameterError(
                f"export: there is no platform {name!r}.", f"Choose among {', '.join(BACKENDS)}."
            )


def _exporter_of_several(
    functions: Mapping[str, Callable[..., object]],
    checks_rows: bool,
    updates: Mapping[str, Mapping[str, str]],
) -> Callable[..., Bundle]:
    for fun in functions.values():
        check_callable(fun, "export")
    if not set(updates) <= set(functions):
        raise ParameterError(
            f"export: updates are those of {', '.join(updates)}; the functions are "
            f"{', '.join(functions)}.",
            "Write updates={'step': {'params': 'result[0]'}}.",
        )

    def exporter(**arguments: object) -> Bundle:
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
            traced[name] = trace(fun, args, kwargs, name, checks_rows, updates.get(name, {}))
        found = shared({name: each.found for name, each in traced.items()})
        return Bundle({name: each.exported(found[name]) for name, each in traced.items()})

    return exporter


def _split(arguments: object) -> tuple[tuple[UserObject, ...], dict[str, Options]]:
    """Returns positional and keyword arguments: a mapping stands for the latter."""
    if isinstance(arguments, Mapping):
        return (), dict(arguments)
    return tuple(arguments) if isinstance(arguments, (tuple, list)) else (arguments,), {}


def symbolic_args_specs(
    args: Tree,
    shapes_specs: Tree,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> PyTree:
    """Returns the types of arguments, with some of their extents open.

    Args:
        args: A tree of arrays, or of anything with a shape and a dtype.
        shapes_specs: A tree of texts for `symbolic_shape`, which may be a prefix of the tree of
            arguments; None, or `...` in a text, for extents that stay fixed.
        constraints: Conditions on the open extents: `"b >= 8"`, `"mod(t, 4) == 0"`.
        scope: Constraints that several shapes share; see `symbolic_shape`.

    Raises:
        ParameterError: if a text does not fit.
        TreeError: if the trees do not fit.

    >>> import numpy as np
    >>> symbolic_args_specs((np.ones((4, 3), np.float32),), "b, ...")
    (ShapeDtypeStruct(shape=(b, 3), dtype=float32),)
    """
    texts = tree.broadcast_prefix(shapes_specs, args, "shapes_specs")
    leaves, structure = tree.flatten(args)
    if constraints:
        scope = (scope or SymbolicScope()).adding(constraints)
    return structure.unflatten(
        [_open_spec(x, text, scope) for x, text in zip(leaves, texts, strict=True)]
    )


def _open_spec(leaf: object, text: str | None, scope: SymbolicScope | None) -> ShapeDtypeStruct:
    kind = type_of(leaf)
    shape = kind.shape if text is None else symbolic_shape(text, like=kind.shape, scope=scope)
    return ShapeDtypeStruct(shape, kind.dtype, weak_type=kind.weak_type)


def default_export_platform() -> str:
    """Returns the platform that programs run on by default: `cpu`, `cuda` or `vulkan`."""
    return default_device().platform


def to_cpp(
    functions: Exported | Mapping[str, Exported],
    directory: str | Path,
    *,
    name: str = "model",
    errors: str = "exceptions",
    target_cpu: str | Sequence[str] | None = None,
    target_triple: str | None = None,
    opt_level: int = 2,
    embed_limit: int = 1 << 20,
) -> list[Path]:
    """Writes functions as a C++ library that needs neither Python nor IREE.

    The folder has the header `NAME.hpp`, the sources, an object file with the kernels, the headers
    of axir, a `CMakeLists.txt`, and a program `example.cpp`. See docs/cpp.md.

    Args:
        functions: An exported function, which becomes a method with its name, or a bundle.
            Parameters that a function replaces (`export(..., updates=...)`) are the model's state.
        directory: The folder; it is made if need be.
        name: The name of the namespace, the files, and the library.
        errors: `exceptions`, or `status` for methods that return an `axir::Status`.
        target_cpu: The CPU that the kernels are for: `host`, `generic`, or one that LLVM knows. Or
            several, such as `["x86-64", "x86-64-v3"]`: a model takes the fastest kernels that the
            CPU on which it is made can run. By default all CPUs of the architecture, of x86-64
            with kernels for `x86-64`, `x86-64-v3` and `x86-64-v4`.
        target_triple: Another kind of machine, as LLVM calls it: `aarch64-linux-gnu`.
        opt_level: How hard to optimize, from 0 to 3.
        embed_limit: Parameters of up to so many bytes are embedded in the program; of more they
            are written to `NAME.safetensors`, which is mapped into memory.

    Returns:
        The files that were written.

    Raises:
        ParameterError: if a name is no identifier, an option has no such value, or a function
            takes any number of rows and does not name some (`with_rows`).
        CppEmissionError: if a function does something that cannot be written as C++.
        CompileError: if IREE cannot compile the functions.
    """
    from axir._cpp import writing  # late: few programs are written as C++

    functions = {functions.fun_name: functions} if isinstance(functions, Exported) else functions
    options = writing.CppOptions(name, errors, target_cpu, target_triple, opt_level, embed_limit)
    return writing.write_cpp(functions, Path(directory), options)


def load(
    path: str | Path,
    *,
    compiled: bool = False,
    shapes: Mapping[str, Sequence[Extent]] = MappingProxyType({}),
) -> UserObject:
    """Loads a saved bundle, a module of the jaxpr dialect, or StableHLO from any source.

    Args:
        path: A `.axir`, `.mlir`, `.mlirbc` or `.vmfb` file. StableHLO may be text, bytecode, or a
            portable artifact.
        compiled: Whether to compile a module as it is, which gives a program that can be called
            but not transformed.
        shapes: Shapes of StableHLO arguments with open extents, by argument name. Their elements
            are numbers, and names or symbolic extents for extents that stay open.

    Returns:
        An `Exported` with the saved trees; of a bundle of several functions a `Bundle`. StableHLO
        is raised into the jaxpr dialect; its arguments are flat. A `.vmfb` gives a compiled
        program.

    Raises:
        OSError: if the file does not exist.
        BundleError, BundleVersionError: if a bundle is damaged, or of a newer axir.
        ParseError, UnknownOpError, VerificationError: if the file holds no valid module.
        RaisingError: if an operation of StableHLO has no counterpart in the jaxpr dialect.
        ShapeError: if a shape does not match, or the argument does not exist.
        WeightsError: if weights of the module are missing or damaged.
    """
    if is_bundle(Path(path)):
        return _only(open_bundle(path))
    if compiled or is_program(Path(path)):
        return open_program(path)
    module, dialect = open_module(path)
    if dialect not in ("jaxpr", "stablehlo"):
        return compile_program(module, dialect, Path(path).stem)
    functions = functions_of_module(module, dialect, str(path), shapes)
    if len(functions) == 1:
        return next(iter(functions.values()))
    return functions["main"] if "main" in functions else Bundle(functions)


def from_torch(
    program: object,
    *,
    name: str = "forward",
    shapes: Mapping[str, Sequence[Extent]] = MappingProxyType({}),
) -> Exported:
    """Returns a PyTorch program as a function, with the module's state as its parameters.

    The packages torch and torch-mlir read it: `pip install 'axir[torch]'`.

    Args:
        program: The result of `torch.export.export(module, args)` or `torch.export.load`.
        name: Name of the function.
        shapes: Shapes of arguments that the program leaves open (`torch.export.Dim`), by name.
            Their elements are numbers, and names or symbolic extents for extents that stay open.

    Returns:
        A function of arrays in the trees that the module takes and returns. Arguments have the
        names of `forward`, parameters the names of `state_dict`.

    Raises:
        ModelImportError: if a package is missing, or cannot read the program.
        RaisingError: if an operation has no counterpart in the jaxpr dialect.
        ShapeError: if a shape does not fit.
    """
    from axir._foreign import torch_programs  # late: few programs import models

    return torch_programs.from_torch(program, name=name, shapes=shapes)


def from_onnx(
    path: str | Path,
    *,
    name: str = "main",
    shapes: Mapping[str, Sequence[Extent]] = MappingProxyType({}),
) -> Exported:
    """Returns a model in ONNX's format as a function, with the initializers as its parameters.

    The packages onnx and torch-mlir read it: `pip install 'axir[onnx]'`.

    Args:
        path: The `.onnx` file. Its external data files are read as well.
        name: Name of the function.
        shapes: Shapes of inputs that the model leaves open, by name. Their elements are numbers,
            and names or symbolic extents for extents that stay open.

    Returns:
        A function of the model's inputs, in order. Arguments, results and parameters have the names
        that they have in the model.

    Raises:
        OSError: if the file does not exist.
        ModelImportError: if a package is missing, or cannot read the model.
        RaisingError: if an operation has no counterpart in the jaxpr dialect.
        ShapeError: if a shape does not fit.
    """
    from axir._foreign import onnx_models  # late: few programs import models

    return onnx_models.from_onnx(Path(path), name=name, shapes=shapes)


def deserialize(blob: bytes | bytearray) -> UserObject:
    """Inverts `serialize` of an `Exported` or a `Bundle`; see `load`.

    Raises:
        BundleError, BundleVersionError: if they are damaged, or of a newer axir.

    >>> deserialize(export(lambda x: x + 1)(1.0).serialize())(2.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return _only(open_bundle(bytes(blob)))


def _only(bundle: Bundle) -> Exported | Bundle:
    return next(iter(bundle.values())) if len(bundle) == 1 else bundle

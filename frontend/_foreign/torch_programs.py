"""Programs of `torch.export`: graphs of PyTorch, with the state of the module that they are of."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import ml_dtypes
import numpy as np

from axir._bundles.exported import Exported
from axir.dialect.core.annotations import Extent, HostArray, UserObject

from .importing import WITHOUT_IT, ModelImportError, Names, imported, needed, text_of, told

_EXTRA = "torch"


def from_torch(
    program: UserObject,
    *,
    name: str = "forward",
    shapes: Mapping[str, Sequence[Extent]] | None = None,
) -> Exported:
    """Returns a program of `torch.export.export` as a function; see `axir.export.from_torch`."""
    decompositions = needed("torch_mlir.extras.fx_decomp_util", _EXTRA)
    where = "the program of PyTorch"
    reduced = told(
        f"{where} cannot be decomposed",
        WITHOUT_IT,
        lambda: program.run_decompositions(decompositions.get_decomposition_table()),
    )
    arguments, trees = _interface(reduced, program.call_spec)
    weights = _Weights(reduced)
    said: list[str] = []
    module = told(
        f"torch-mlir cannot read {where}",
        WITHOUT_IT,
        lambda: _lowered(reduced, weights, said),
        said,
    )
    names = Names(name, arguments)
    return imported(text_of(module), where, weights.arrays, names, shapes or {}, trees=trees)


def _lowered(program: object, weights: _Weights, said: list[str]) -> UserObject:
    """Returns a program as torch-mlir's module of StableHLO.

    Args:
        program: The program.
        weights: Its tensors.
        said: Collects torch-mlir's error messages, which it would print.
    """
    fx = needed("torch_mlir.fx", _EXTRA)
    importer = needed("torch_mlir.extras.fx_importer", _EXTRA)
    torch_dialect = needed("torch_mlir.dialects.torch", _EXTRA)
    ir = needed("torch_mlir.ir", _EXTRA)
    context = ir.Context()
    torch_dialect.register_dialect(context)

    def hear(diagnostic: UserObject) -> bool:
        said.append(f"{diagnostic.location}: error: {diagnostic.message}")
        return True

    with context.attach_diagnostic_handler(hear):
        return fx.export_and_import(
            program,
            output_type="stablehlo",
            func_name="main",
            fx_importer=importer.FxImporter(context=context, hooks=weights.hooks()),
            decomposition_table={},
        )


def _interface(
    program: UserObject, call: UserObject
) -> tuple[list[str], tuple[UserObject, UserObject]]:
    """Returns the tensors that a program takes, and the trees of its arguments and results.

    Numbers, texts and None that it was exported for leave its graph; None stands for them in the
    trees.

    Args:
        program: The program, which is changed.
        call: Its trees.

    Returns:
        Names of the tensors, the tree of their numbers, and the tree of the results' numbers.

    Raises:
        ModelImportError: if it writes to some of them, or to its buffers, or takes or returns
            numbers that are open.
    """
    signature = program.graph_signature
    kinds = needed("torch.export.graph_signature", _EXTRA)
    _check_writes(signature)
    taken = [each.arg for each in signature.input_specs if each.kind == kinds.InputKind.USER_INPUT]
    given = [each.arg for each in signature.output_specs]
    for argument in taken:
        if not isinstance(argument, (kinds.TensorArgument, kinds.ConstantArgument)):
            raise ModelImportError(
                f"The argument {argument.name!r} is no tensor, and it is open what it is.",
                "Export the program for one value of it, or make it a tensor of one number.",
            )
    for result in given:
        what = getattr(result, "value", result.name)  # a constant, which has no name
        if what is not None and not isinstance(result, kinds.TensorArgument):
            raise ModelImportError(
                f"The module returns {what!r}, which is no tensor.",
                "Have forward return tensors, or None in its place.",
            )
    is_taken, is_given = (
        [isinstance(x, kinds.TensorArgument) for x in part] for part in (taken, given)
    )
    names = [x.name for x, is_tensor in zip(taken, is_taken, strict=True) if is_tensor]
    _drop_constants(program.graph, {x.name for x in taken} - set(names), is_given)
    unflatten = needed("torch.utils._pytree", _EXTRA).tree_unflatten
    inputs = unflatten(_numbered(is_taken), call.in_spec)
    return names, (inputs, unflatten(_numbered(is_given), call.out_spec))


def _drop_constants(graph: UserObject, taken: set[str], is_given: Sequence[bool]) -> None:
    """Removes a graph's constant arguments and results, because torch-mlir reads only tensors.

    Args:
        graph: The graph, in which these arguments have been replaced by their values.
        taken: Names of the arguments.
        is_given: Which results stay.
    """
    for node in list(graph.nodes):
        if node.op == "placeholder" and node.name in taken and not node.users:
            graph.erase_node(node)
    output = graph.output_node()
    output.args = (tuple(itertools.compress(output.args[0], is_given)),)


def _check_writes(signature: object) -> None:
    """Raises if a program writes to its buffers, parameters or arguments."""
    # Signatures of older versions have no field for changed parameters.
    kinds = ("buffers_to_mutate", "parameters_to_mutate", "user_inputs_to_mutate")
    written = [name for kind in kinds for name in getattr(signature, kind, {}).values()]
    if written:
        raise ModelImportError(
            f"The module changes {', '.join(map(repr, written))} when it runs, and functions of "
            "axir change nothing.",
            "Export it after eval(), or have forward return what it would write.",
        )


def _numbered(flags: Sequence[bool]) -> list[int | None]:
    """Returns consecutive numbers where a flag is true, and None elsewhere."""
    numbers = itertools.count()
    return [next(numbers) if flag else None for flag in flags]


def read_torch(path: Path, name: str, shapes: Mapping[str, Sequence[Extent]]) -> Exported:
    """Reads a file of `torch.export.save` as a function."""
    torch = needed("torch", _EXTRA)
    needed("torch_mlir", _EXTRA)
    path.open("rb").close()  # a file that is missing is no fault of the model
    again = "Write it again, with torch.export.save."
    with _quiet("torch.export"):  # it logs at length why it could not, and raises that
        program = told(f"{path} cannot be read", again, lambda: torch.export.load(str(path)))
    return from_torch(program, name=name, shapes=shapes)


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Lets a package log nothing below critical errors."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Weights:
    """The tensors that a program holds, by name.

    Attributes:
        arrays: The tensors' contents.
    """

    def __init__(self, program: UserObject):
        state = {**program.state_dict, **program.constants}
        self._names: dict[int, str] = {}
        for name, tensor in state.items():
            self._names.setdefault(id(tensor), name)
        self._kept = list(state.values())
        tensor_type = needed("torch", _EXTRA).Tensor
        self.arrays: dict[str, HostArray] = {
            name: _host(tensor) for name, tensor in state.items() if isinstance(tensor, tensor_type)
        }

    def hooks(self) -> UserObject:
        """Returns the callbacks that give tensors to torch-mlir, which would make lists of them."""
        importer = needed("torch_mlir.extras.fx_importer", _EXTRA)
        ir = needed("torch_mlir.ir", _EXTRA)
        tensor_type = needed("torch", _EXTRA).Tensor
        made: dict[str, UserObject] = {}

        def resolve_literal(
            _: object, node: UserObject, literal: object, info: object
        ) -> UserObject:
            if not isinstance(literal, tensor_type) or literal.numel() < 2:
                return None
            name = self._name_of(literal)
            if name not in made:
                made[name] = ir.DenseResourceElementsAttr.get_from_buffer(
                    self.arrays[name].reshape(-1).view(np.uint8),
                    name,
                    importer.create_mlir_tensor_type(literal),
                )
            return ir.Operation.create(
                "torch.vtensor.literal",
                results=[node._cc.tensor_to_vtensor_type(literal)],
                attributes={"value": made[name]},
            ).result

        methods = {"resolve_literal": resolve_literal}
        return type("Hooks", (importer.FxImporterHooks,), methods)()

    def _name_of(self, tensor: object) -> str:
        name = self._names.get(id(tensor))
        if name is None:  # made by torch-mlir, of truth values for instance
            name = f"constant_{len(self._kept)}"
            self._names[id(tensor)] = name
            self._kept.append(tensor)
            self.arrays[name] = _listed(tensor)
        return name


def _host(tensor: UserObject) -> HostArray:
    """Returns a copy of a tensor's contents, because training may go on in its memory."""
    torch = needed("torch", _EXTRA)
    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        words: HostArray = plain.view(torch.int16).numpy().copy()
        return words.view(ml_dtypes.bfloat16)
    host: HostArray = plain.numpy().copy()
    return host


def _listed(tensor: UserObject) -> HostArray:
    """Returns the elements of a tensor, also where its memory cannot be accessed."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    return np.array(tensor.tolist(), kind)

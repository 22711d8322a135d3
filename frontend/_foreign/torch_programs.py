"""Programs of `torch.export`: graphs of PyTorch, with the state of the module that they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np

from axir._bundles.exported import Exported
from axir.dialect.core.annotations import HostArray, UserObject

from .importing import WITHOUT_IT, imported, needed, text_of, told, with_trees

_EXTRA = "torch"


def from_torch(
    program: UserObject,
    *,
    name: str = "forward",
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Exported:
    """Returns a program of `torch.export.export` as a function; see `axir.export.from_torch`."""
    fx = needed("torch_mlir.fx", _EXTRA)
    decompositions = needed("torch_mlir.extras.fx_decomp_util", _EXTRA)
    where = "the program of PyTorch"
    signature = program.graph_signature
    arguments = list(signature.user_inputs)
    call = program.call_spec
    reduced = told(
        f"{where} cannot be decomposed",
        WITHOUT_IT,
        lambda: program.run_decompositions(decompositions.get_decomposition_table()),
    )
    weights = _Weights(reduced)
    module = told(
        f"torch-mlir cannot read {where}",
        WITHOUT_IT,
        lambda: fx.export_and_import(
            reduced,
            output_type="stablehlo",
            func_name="main",
            hooks=weights.hooks(),
            decomposition_table={},
        ),
    )
    made = imported(text_of(module), where, weights.arrays, name, arguments, shapes or {})
    pytree = needed("torch.utils._pytree", _EXTRA)
    inputs, outputs = (
        pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
        for spec in (call.in_spec, call.out_spec)
    )
    return with_trees(made, inputs, outputs)


def read_torch(path: Path, name: str, shapes: Mapping[str, Sequence[int]]) -> Exported:
    """Returns what `torch.export.save` wrote as a function."""
    torch = needed("torch", _EXTRA)
    needed("torch_mlir", _EXTRA)
    path.open("rb").close()  # a file that is missing is no fault of the model
    again = "Write it again, with torch.export.save."
    program = told(f"{path} cannot be read", again, lambda: torch.export.load(str(path)))
    return from_torch(program, name=name, shapes=shapes)


class _Weights:
    """The tensors that a program holds, by name.

    Attributes:
        arrays: What they hold.
    """

    def __init__(self, program: UserObject):
        state = {**program.state_dict, **program.constants}
        self._names = {id(tensor): name for name, tensor in state.items()}
        self._kept = list(state.values())
        tensor_type = needed("torch", _EXTRA).Tensor
        self.arrays: dict[str, HostArray] = {
            name: _host(tensor) for name, tensor in state.items() if isinstance(tensor, tensor_type)
        }

    def hooks(self) -> UserObject:
        """Returns what torch-mlir asks for tensors, whose elements it would make lists of."""
        importer = needed("torch_mlir.extras.fx_importer", _EXTRA)
        ir = needed("torch_mlir.ir", _EXTRA)
        tensor_type = needed("torch", _EXTRA).Tensor
        made: dict[str, UserObject] = {}

        def resolve_literal(
            _: UserObject, node: UserObject, literal: UserObject, info: UserObject
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

    def _name_of(self, tensor: UserObject) -> str:
        name = self._names.get(id(tensor))
        if name is None:  # made by torch-mlir, of truth values for instance
            name = f"constant_{len(self._kept)}"
            self._names[id(tensor)] = name
            self._kept.append(tensor)
            self.arrays[name] = _listed(tensor)
        return name


def _host(tensor: UserObject) -> HostArray:
    """Returns the memory of a tensor as an array."""
    torch = needed("torch", _EXTRA)
    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        words: HostArray = plain.view(torch.int16).numpy()
        return words.view(ml_dtypes.bfloat16)
    host: HostArray = plain.numpy()
    return host


def _listed(tensor: UserObject) -> HostArray:
    """Returns the elements of a tensor that has no memory to look at while a program is read."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    return np.array(tensor.tolist(), kind)

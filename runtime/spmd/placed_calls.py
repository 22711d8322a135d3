"""Calls traced functions where their arguments lie: on one device, or on the devices of a mesh.

Elsewhere: programs for one device (`runtime/calls/compiled_function.py`) and for several
(`program.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from axir.dialect.core.array import ConcreteArray, as_array
from axir.dialect.core.config import config
from axir.dialect.core.memo import derived
from axir.dialect.core.places import common_place
from axir.dialect.ops.calls import jit_call as call
from axir.dialect.program.function import Function, unit_of
from axir.dialect.program.rules import Operand
from axir.runtime.calls.compiled_function import CompiledFunction, compiled
from axir.runtime.device.devices import Device, default_device

from .partitioned import Place, device_for, local_program, mesh_for
from .placement import Placement
from .program import MeshProgram

ResultPlaces = tuple[Placement | None, ...]


def device_of(arguments: Sequence[ConcreteArray]) -> Device:
    """Returns the device that arguments are committed to, else the default device.

    Raises:
        IncompatibleDevicesError: they are committed to different ones.
    """
    place = common_place("a call", arguments)
    return default_device() if place is None or place.is_spread else place


def placed(
    function: Function,
    places: tuple[Place, ...],
    common: Place,
    donated: tuple[int, ...] = (),
    waits: bool | None = None,
    result_places: ResultPlaces = (),
) -> CompiledFunction | MeshProgram:
    """Returns the compiled form of a function for arguments that lie somewhere.

    Args:
        function: The function.
        places: Where each argument is committed to lie.
        common: Where all of them are: one of `places`, or where to run if none says.
        donated: Indices of arguments that the program may overwrite.
        waits: As for `compiled`.
        result_places: The required places of results, where they are given.

    Raises:
        IncompatibleDevicesError: the function, its arguments and results name different devices.
    """
    if mesh_for(function, common, result_places) is None:
        device = device_for(function, common)
        assert not isinstance(device, Placement)  # otherwise it has a mesh
        return compiled(function, device or default_device(), donated, waits)
    key = config.cache_key
    return _on_mesh(function, places, common, donated, result_places, key)


@derived
def _on_mesh(
    function: Function,
    places: tuple[Place, ...],
    common: Place,
    donated: tuple[int, ...],
    result_places: ResultPlaces,
    options: Hashable,
) -> MeshProgram:
    """Returns a function as a program of a mesh, under the current options."""
    mesh = mesh_for(function, common, result_places)
    assert mesh is not None
    captured = [as_array(x) for x in function.captured]
    unit = unit_of(function)
    lying = (*places, *(x._device for x in captured))
    local = local_program(
        unit,
        mesh.axes,
        tuple(
            mesh.layout_at(place, v.type.ndim) if isinstance(place, Placement) else None
            for place, v in zip(lying, unit.inputs, strict=True)
        ),
        tuple(
            None if place is None else mesh.layout_at(place, v.type.ndim)
            for place, v in zip(
                result_places or (None,) * len(unit.outputs), unit.outputs, strict=True
            )
        ),
    )
    found = [mesh.place_of(layout) for layout in local.out_layouts]
    for number, wanted in enumerate(result_places):
        if wanted is not None and wanted == found[number]:
            found[number] = wanted  # with the user's sharding
    return MeshProgram(
        local.function,
        mesh.devices,
        mesh.axes,
        [mesh.place_of(layout) for layout in local.in_layouts],
        found,
        donated,
        captured,
    )


def execute_call(function: Function, operands: Sequence[Operand]) -> list[ConcreteArray]:
    """Runs the body of a nested `jit` on concrete operands, as one compiled unit."""
    arrays = [x if type(x) is ConcreteArray else as_array(x) for x in operands]
    common = common_place(function.name, arrays, _argument)
    if config.jax_disable_jit and mesh_for(function, common) is None:
        return function.interpret(arrays)
    places = tuple([x._device for x in arrays])
    unit = unit_of(function)
    results = placed(unit, places, common).run(arrays)
    return committed(results, device_for(unit, common))


def committed(results: list[ConcreteArray], place: Place) -> list[ConcreteArray]:
    """Commits the results of a program for one device to it, if its arguments are."""
    if place is not None and not place.is_spread:
        for x in results:
            x._device = place
    return results


def _argument(number: int) -> str:
    return f"argument {number}"


call.set_executor(execute_call)

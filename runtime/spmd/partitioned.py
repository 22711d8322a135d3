"""Converts functions of whole arrays to programs on parts: the mesh, and each device's program.

A function runs on a mesh if its arguments lie on one, if its results must, or if an operation in it
names one (`shard_map`, `sharding_constraint`). Elsewhere: cutting a function into parts
(`passes/partition/`), and running it (`program.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from axir.dialect.core.annotations import Foreign
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import IncompatibleDevicesError
from axir.dialect.core.memo import derived, quickly_derived
from axir.dialect.core.places import devices_at
from axir.dialect.ops.sharding.parts import body_to_run
from axir.dialect.program.function import Function, functions_of, unit_of
from axir.dialect.program.meshes.layouts import DeviceNames, Layout, MeshAxes, replicated
from axir.passes.partition.partition import partition_function
from axir.runtime.device.devices import Device, devices

from .placement import Placement

Place = Device | Placement | None
"""Where an array is committed to lie."""


@dataclass(frozen=True)
class DeviceMesh:
    """The devices that run a program, and the names of the axes that they are arranged along.

    Attributes:
        devices: The devices; the last axis counts fastest.
        axes: Names and extents.
    """

    devices: tuple[Device, ...]
    axes: MeshAxes

    def layout_at(self, place: Place, ndim: int) -> Layout:
        """Returns the layout of an array's placement on these axes; whole if it has other axes."""
        if not isinstance(place, Placement) or place.axes != self.axes:
            return replicated(ndim)
        return (*place.layout, *replicated(ndim - len(place.layout)))

    def place_of(self, layout: Layout) -> Placement:
        """Returns the placement of arrays with a layout."""
        return Placement(self.devices, self.axes, layout)

    def __str__(self) -> str:
        return f"the mesh of {', '.join(map(str, self.devices))}"


def device_name(device: Device) -> int | str:
    """Returns a device's name in ops: its number, on the default platform, or else a name."""
    is_default = device.platform == devices()[0].platform
    return device.id if is_default else f"{device.platform}:{device.id}"


def _devices_named(names: DeviceNames, common: Place) -> tuple[Device, ...] | None:
    """Returns the devices that an op names, None if fewer exist here."""
    found = []
    for name in names:
        platform, _, number = name.partition(":") if isinstance(name, str) else (None, "", name)
        if platform is None and common is not None:
            platform = common.platform
        known = devices(platform)
        if int(number) >= len(known):
            return None
        found.append(known[int(number)])
    return tuple(found)


def device_for(function: Function, common: Place) -> Place:
    """Returns the device of a function that is on no mesh of several devices; None if it is open.

    Args:
        function: The function, which may name a mesh of one device.
        common: The place that its arguments are committed to.

    Raises:
        IncompatibleDevicesError: the function names another device than its arguments.
    """
    for names, _ in meshes_named_in(function):
        found = _devices_named(names, common)
        if found is None or len(found) > 1:
            continue
        if isinstance(common, Device) and common is not found[0]:
            raise IncompatibleDevicesError(
                f"Received incompatible devices for {function.name}: it is written for a mesh of "
                f"{found[0]}, but an argument is committed to {common}.",
                "Move the arguments with axir.device_put(x, sharding), or use one mesh for all.",
            )
        return found[0] if common is None else common
    return common


@quickly_derived
def meshes_named_in(function: Function) -> list[tuple[DeviceNames, MeshAxes]]:
    """Returns names of devices and axes of the meshes that a function names.

    If several have the same devices, only the first is returned.
    """
    found: dict[DeviceNames, MeshAxes] = {}
    for equation in function.equations:
        names = equation.params.get("devices", ())
        if names:
            found.setdefault(names, equation.params["axes"])
        for inner in functions_of(equation.params):
            for devices_of, axes in meshes_named_in(inner):
                found.setdefault(devices_of, axes)
    return list(found.items())


def mesh_for(
    function: Function, common: Place, result_places: Sequence[Placement | None] = ()
) -> DeviceMesh | None:
    """Returns the mesh that a function runs on, None if it runs on one device.

    Args:
        function: The function.
        common: The place that its arguments are committed to; see `common_place`.
        result_places: The required places of its results, where they are given.

    Raises:
        IncompatibleDevicesError: the function, its arguments and results name different devices.
    """
    found = _meshes("its results are to lie on", result_places)
    for names, axes in meshes_named_in(function):
        named = _devices_named(names, common) if len(names) > 1 else None
        if named is not None:
            found.append(("it is written for", DeviceMesh(named, axes)))
    found += _meshes("its arguments lie on", [common])
    captured = [x._device for x in function.captured if type(x) is ConcreteArray]
    found += _meshes("it uses an array that lies on", captured)
    if not found:
        return None
    what, mesh = found[0]
    others = [(f"{other} {which}", which.devices) for other, which in found[1:]]
    if isinstance(common, Device):
        others.append((f"an argument is committed to {common}", devices_at(common)))
    for described, chosen in others:
        if chosen != mesh.devices:
            raise IncompatibleDevicesError(
                f"Received incompatible devices for {function.name}: {what} {mesh}, but "
                f"{described}.",
                "Move the arguments with axir.device_put(x, sharding), or use one mesh for all.",
            )
    return mesh


def _meshes(what: str, places: Sequence[Place]) -> list[tuple[str, DeviceMesh]]:
    """Returns the meshes among places, each with words that describe its place in an error."""
    return [(what, DeviceMesh(p.devices, p.axes)) for p in places if isinstance(p, Placement)]


@dataclass(frozen=True)
class LocalProgram:
    """The program of each device of a mesh.

    Attributes:
        function: A function from a device's parts of the arguments to its parts of the results.
        in_layouts: The layouts of the arguments.
        out_layouts: The layouts of the results.
    """

    function: Function
    in_layouts: tuple[Layout, ...]
    out_layouts: tuple[Layout, ...]


@derived
def local_program(
    function: Function,
    axes: MeshAxes,
    in_layouts: tuple[Layout | None, ...],
    out_layouts: tuple[Layout | None, ...],
) -> LocalProgram:
    """Returns the program of each device for a function of whole arrays.

    Args:
        function: The function, without captures.
        axes: The axes of the mesh.
        in_layouts: The layouts of the arguments; None leaves a layout open.
        out_layouts: The required layouts of the results; None leaves a layout open.
    """
    alone = _shard_map_alone(function, axes)
    if alone is not None and not any(layout is not None for layout in out_layouts):
        return alone
    found = partition_function(function, axes, in_layouts, out_layouts)
    return LocalProgram(found.local, tuple(found.in_layouts), tuple(found.out_layouts))


def _shard_map_alone(function: Function, axes: MeshAxes) -> LocalProgram | None:
    """Returns the body of a function that consists of one map over the mesh.

    Its arguments are moved to the required places before, without the program.
    """
    if len(function.equations) != 1:
        return None
    (equation,) = function.equations
    params = equation.params
    is_map = equation.primitive.name == "shard_map" and params["axes"] == axes
    operands = [*function.inputs, *function.captures]
    if not (is_map and not params.get("auto") and _same(equation.operands, operands)):
        return None
    if not _same(equation.results, function.outputs):
        return None
    body = unit_of(body_to_run(**params))  # its captures are operands of the map
    return LocalProgram(body, params["in_layouts"], params["out_layouts"])


def _same(first: Sequence[Foreign], second: Sequence[Foreign]) -> bool:
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))

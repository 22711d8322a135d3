"""`Bundle`: functions that share parameters, in one file.

Elsewhere: one function (`exported.py`), the format (`manifest.py`, `archive.py`).
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from axir._trees import tree
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import HostArray, UserObject
from axir.dialect.core.array import ConcreteArray
from axir.dialect.core.errors import BundleError, ParameterError
from axir.dialect.core.extended_dtypes import keys_of
from axir.dialect.core.types import ShapedArray
from axir.dialect.program.function import Function
from axir.dialect.text.module_reader import parse_module, read_module
from axir.runtime import Target

from .archive import Archive, archive_bytes
from .bound_arguments import trees_of
from .captures import with_captures
from .exported import Exported
from .manifest import FunctionEntry, ProgramEntry
from .manifest_reading import read_manifest
from .open_sizes import combinations, for_sizes
from .programs import Programs, compile_functions, target_of
from .saving import MANIFEST, bundle_entries, check_names, save_bundle, shared_parameters
from .tensors import read_tensors

# Larger entries are checked when they are first used: reading all of one takes longer than mapping
# it.
_CHECKED_AT_ONCE = 1 << 22


class Bundle(Mapping[str, Exported]):
    """Functions by name, and the parameters that they share.

    Args:
        functions: By name.
        programs: Their compiled programs.
        reader: The reader of the file that they come from.

    Raises:
        ParameterError: if a function's name is not a Python identifier.

    >>> import functools, axir.numpy as jnp
    >>> from axir.export import export
    >>> w = jnp.array([1.0, 2.0])
    >>> scale, shift = (functools.partial(f, w) for f in (jnp.multiply, jnp.add))
    >>> bundle = export({"scale": scale, "shift": shift})(scale=(w,), shift=(w,))
    >>> bundle
    <Bundle of scale(y), shift(y)>
    >>> list(bundle.parameters), bundle.scale(w)
    (['x'], Array([1., 4.], dtype=float32))
    """

    def __init__(
        self,
        functions: Mapping[str, Exported],
        programs: Programs | None = None,
        reader: _Reader | None = None,
    ):
        check_names(functions)
        self._functions = dict(functions)
        self._programs = programs
        self._reader = reader

    @property
    def parameters(self) -> dict[str, ConcreteArray]:
        """The arrays that functions share, by name."""
        return shared_parameters(self._functions)

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the writers of the file that it was opened from, by name; else empty."""
        return self._reader.manifest.versions if self._reader else {}

    def verify(self) -> None:
        """Checks the whole file that it was opened from, and verifies its functions.

        Otherwise, entries larger than 4 MiB are checked when they are first used.

        Raises:
            BundleError: if something differs.
        """
        if self._reader is not None:
            for file in self._reader.manifest.files:
                self._reader.check(file)
            for exported in self.values():
                _ = exported.function

    @property
    def programs(self) -> tuple[ProgramEntry, ...]:
        """The compiled programs: files in the bundle, their targets, and the names of functions."""
        return self._programs.entries if self._programs else ()

    def _contents(self) -> tuple[tuple[ProgramEntry, bytes | memoryview], ...]:
        return self._programs.content() if self._programs else ()

    def compile(
        self, target: Target, *, rows: Sequence[int] = (), debug_info: bool = True
    ) -> Bundle:
        """Returns the bundle with one more program, compiled for a target.

        Args:
            target: The target of compilation. A program for the same target is replaced.
            rows: Numbers of rows for functions with an open leading dimension that name no numbers.
            debug_info: Whether the program holds the lines of the source that ops come from.

        Raises:
            ParameterError: if it is a CPU that a bundle cannot recognize later, or the number of
                rows of a function is open and no number is given.
            CompileError: if IREE cannot compile a function.
        """
        functions = self.with_rows(*rows) if rows else self
        described = target_of(target)
        kept = [(entry, data) for entry, data in self._contents() if entry.target != described]
        taken = {entry.file for entry, _ in kept}
        file = next(f for n in itertools.count() if (f := f"programs/{n}.vmfb") not in taken)
        made = compile_functions(functions, target, file, debug_info)
        contents = {entry.file: data for entry, data in [*kept, made]}
        programs = Programs([*(entry for entry, _ in kept), made[0]], contents.__getitem__)
        return Bundle({n: each.with_programs(programs) for n, each in functions.items()}, programs)

    def with_rows(self, *counts: int) -> Bundle:
        """Returns the bundle with programs for some numbers of rows, of functions that take any.

        Raises:
            ParameterError: if a number is not positive.
        """
        functions = {n: each.with_rows(*counts) if each.batch else each for n, each in self.items()}
        return Bundle(functions, self._programs)

    def with_functions(self, functions: Mapping[str, Exported]) -> Bundle:
        """Returns the bundle with functions that name other sizes to compile for."""
        return Bundle(functions, self._programs)

    def with_sizes(self, **sizes: int | Sequence[int]) -> Bundle:
        """Returns the bundle with programs for combinations of sizes of open dimensions.

        Each function takes the sizes of its dimensions; a function without open dimensions stays as
        it is. Without any sizes, programs of all functions are compiled when they are called.

        Raises:
            ParameterError: if no function has a dimension of a name, or a dimension has no size.
            ShapeError: if a constraint does not hold.
        """
        if sizes:
            return self.with_functions(for_sizes(self, (), list(combinations(sizes))))
        return self.with_functions({n: x.with_sizes() if x.symbols else x for n, x in self.items()})

    def with_parameters(self, values: Mapping[str, object]) -> Bundle:
        """Returns the bundle with other values of some parameters, in all functions.

        Raises:
            ParameterError: if the bundle has no such parameter.
            ShapeError, DTypeError: if a value is not of the type of the parameter.
        """
        known = self.parameters
        unknown = [name for name in values if name not in known]
        if unknown:
            raise ParameterError(
                f"The bundle has no parameter {unknown[0]!r}.",
                f"It has {', '.join(known) or 'none at all'}.",
            )
        functions = {
            name: each.with_parameters({n: x for n, x in values.items() if n in each.parameters})
            for name, each in self.items()
        }
        return Bundle(functions, self._programs)

    def advance(self, name: str, *args: object, **kwargs: object) -> tuple[UserObject, Bundle]:
        """Calls a function, and makes those results that are new parameter values the parameters.

        Args:
            name: The function; `export(..., updates=...)` said which results these are.
            *args: Its arguments.
            **kwargs: Keyword arguments.

        Returns:
            Its results, and the bundle with the new parameters.

        >>> import functools, axir, axir.numpy as jnp
        >>> from axir.export import export
        >>> step = functools.partial(lambda n, x: (n + x, n), jnp.zeros(1))
        >>> counter = export({"add": step}, updates={"add": {"n": "result[0]"}})(add=(1.0,))
        >>> _, counter = counter.advance("add", 2.0)
        >>> counter.parameters
        {'n': Array([2.], dtype=float32)}
        """
        exported = self[name]
        results = exported.call(*args, **kwargs)
        pairs = zip(exported.entry.updates, tree.leaves(results), strict=False)
        new = {parameter: value for parameter, value in pairs if parameter is not None}
        return results, self.with_parameters(new)

    def changed(self, functions: Mapping[str, Exported]) -> Bundle:
        """Returns the bundle with further functions, or with replacements of its functions.

        The compiled programs of replaced functions are dropped.
        """
        programs = self._programs.only(set(self) - set(functions)) if self._programs else None
        kept = {
            name: each.with_programs(programs) if programs else each for name, each in self.items()
        }
        return Bundle({**kept, **functions}, programs)

    def __getitem__(self, name: str) -> Exported:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __getattr__(self, name: str) -> Exported:
        functions = self.__dict__.get("_functions", {})
        if name not in functions:
            raise AttributeError(f"The bundle has no function {name!r}: it has {list(functions)}.")
        return functions[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._functions]

    def __repr__(self) -> str:
        calls = (f"{n}({', '.join(f.argument_names)})" for n, f in self.items())
        return f"<Bundle of {', '.join(calls)}>"

    def save(self, path: str | Path, *, debug_info: bool = True) -> None:
        """Writes the bundle to a `.axir` file; readers see the whole file or none.

        Args:
            path: The file.
            debug_info: Whether to write the lines of the source that ops come from, and with them
                the paths of its files.

        Raises:
            ParameterError: if the path has another suffix.
            SerializationError: if a function has no textual form.
        """
        save_bundle(self, path, self._contents(), debug_info)

    def serialize(self) -> bytes:
        """Returns the content of the file that `save` would write."""
        return archive_bytes(bundle_entries(self, self._contents()))


def open_bundle(source: str | Path | bytes, name: str | None = None) -> Bundle:
    """Opens a bundle: a file, which is mapped, or the content of one.

    Raises:
        OSError: if the file cannot be read.
        BundleVersionError: if a newer axir wrote it.
        BundleError: if it is no bundle, or one that is damaged or was changed.
    """
    if not isinstance(source, bytes):
        source = Path(source)
    return _Reader(source, name or (str(source) if isinstance(source, Path) else "bundle")).bundle()


class _Reader:
    """Reads the parts of a bundle on demand, once each, and checks them before."""

    def __init__(self, source: Path | bytes, name: str):
        self.name = name
        self.entries = Archive(source, name).entries
        if MANIFEST not in self.entries:
            raise BundleError(
                f"{name} is a zip archive without {MANIFEST}, so it is no bundle.",
                "Bundles are written by axir.export: exported.save('model.axir').",
                where="",
            )
        self.manifest = read_manifest(bytes(self.entries[MANIFEST]), name)
        self._checked: set[str] = set()
        self._lock = threading.Lock()
        self._functions: dict[str, Function] | None = None
        self._check_files()

    def bundle(self) -> Bundle:
        """Returns the bundle; its module is read when a function is asked for."""
        manifest = self.manifest
        parameters = self._parameters()
        programs = Programs(manifest.programs, self._read)
        functions = {
            name: Exported(
                entry,
                self._reading(entry, parameters),
                parameters,
                *trees_of(entry.signature, f"{self.name}: {name}"),
                programs,
            )
            for name, entry in manifest.functions.items()
        }
        return Bundle(functions, programs, self)

    def _check_files(self) -> None:
        """Compares the archive with its description in the manifest."""
        described = {MANIFEST, *self.manifest.files}
        if set(self.entries) != described:
            others = sorted(described.symmetric_difference(self.entries))
            raise self._damaged(f"it lacks, or has besides what its manifest names, {others[0]!r}")
        for file, (size, _) in self.manifest.files.items():
            found = len(self.entries[file])
            if found != size:
                raise self._damaged(f"{file} has {found:,} bytes instead of {size:,}")
            if size <= _CHECKED_AT_ONCE:
                self.check(file)

    def _read(self, file: str) -> memoryview:
        """Returns the entry of a program, after checking it and the parameters."""
        self.check(file)
        if self.manifest.parameter_file is not None:
            self.check(self.manifest.parameter_file)
        return self.entries[file]

    def check(self, file: str) -> None:
        """Compares the SHA-256 of an entry with that in the manifest, once."""
        with self._lock:
            if file in self._checked:
                return
            if hashlib.sha256(self.entries[file]).hexdigest() != self.manifest.files[file][1]:
                raise self._damaged(f"the content of {file} is not what its checksum says")
            self._checked.add(file)

    def _damaged(self, reason: str) -> BundleError:
        return BundleError(
            f"{self.name} is damaged or was changed: {reason}.",
            "Copy it again from where it was made, or save it again.",
            where="",
        )

    def _parameters(self) -> dict[str, ConcreteArray]:
        manifest = self.manifest
        if manifest.parameter_file is None:
            return {}
        stored = read_tensors(self.entries[manifest.parameter_file], self.name)
        if set(stored) != set(manifest.parameters):
            others = sorted(set(stored).symmetric_difference(manifest.parameters))
            raise self._damaged(f"parameters and manifest do not both have {others[0]!r}")
        return {
            name: self._parameter(name, kind, stored[name])
            for name, kind in manifest.parameters.items()
        }

    def _parameter(self, name: str, kind: ShapedArray, stored: HostArray) -> ConcreteArray:
        host: UserObject = stored
        if dtypes.is_key(kind.dtype):
            if (stored.shape, stored.dtype) == (kind.words.shape, kind.words.dtype):
                return ConcreteArray(kind, keys_of(stored, kind.dtype))
        elif dtypes.is_complex(kind.dtype):
            real = dtypes.real_dtype(kind.dtype)
            if (stored.shape, stored.dtype) == ((*kind.shape, 2), real):
                host = stored.view(kind.dtype).reshape(kind.shape)
                host.flags.writeable = False
        if (host.shape, host.dtype) != (kind.shape, kind.dtype):
            raise self._damaged(
                f"the parameter {name!r} is {host.dtype}{list(host.shape)} instead of {kind}"
            )
        return ConcreteArray(kind, host)

    def _reading(
        self, entry: FunctionEntry, parameters: Mapping[str, ConcreteArray]
    ) -> Callable[[], Function]:
        return lambda: self._function(entry, parameters)

    def _function(self, entry: FunctionEntry, parameters: Mapping[str, ConcreteArray]) -> Function:
        """Returns a function of the module, its parameters as captures."""
        with self._lock:
            if self._functions is None:
                text = bytes(self.entries[self.manifest.module])
                where = f"{self.name}:{self.manifest.module}"
                self._functions = read_module(parse_module(text, where))
        if entry.parameters:
            self.check(self.manifest.parameter_file or "")
        read = self._functions.get(entry.name)
        captured = [parameters[name] for name in entry.parameters]
        wanted = [value.type for value in entry.signature.arguments]
        results = [value.type for value in entry.signature.results]
        types = [*wanted, *(x.type for x in captured)]
        if read is None or not (
            _are_same(read.input_types, types) and _are_same(read.output_types, results)
        ):
            raise self._damaged(f"{entry.name} is not in its module as the manifest describes it")
        return with_captures(read, len(wanted), captured)


def _are_same(found: list[ShapedArray], wanted: list[ShapedArray]) -> bool:
    pairs = [(x.shape, x.dtype) for x in found], [(x.shape, x.dtype) for x in wanted]
    return pairs[0] == pairs[1]

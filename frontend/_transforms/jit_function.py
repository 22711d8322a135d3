"""`JitFunction`: a function that is compiled for each combination of argument types.

A call flattens its arguments, looks their types up, and goes straight to the compiled program; a
miss traces the function, lowers it, and compiles. When an argument is a tracer the call leaves a
`jit` op instead. Elsewhere: `jit` with its options (`jit.py`), and lowering, compiling and running
(`runtime/calls/compiled_function.py`).
"""

from __future__ import annotations

import copy
import functools
import logging
import operator
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Generic, cast

from axir._arguments.arguments import (
    FlatFunction,
    ResultTree,
    flatten_arguments,
    to_values,
    trace_abstract,
    type_of,
)
from axir._arguments.wrapping import boundary, leave_out_own_frames
from axir._trees import tree
from axir._trees.registration import compared
from axir.dialect.core.annotations import P, R, UserFunction, UserObject
from axir.dialect.core.array import as_array
from axir.dialect.core.config import config
from axir.dialect.core.errors import (
    RefScopeError,
    TracingForbiddenError,
    execution_forbidden,
    user_line,
)
from axir.dialect.core.places import common_place
from axir.dialect.core.single_flight import made_once
from axir.dialect.core.state import axes_in_scope, state
from axir.dialect.core.timeline import TRACED, timed
from axir.dialect.ops.calls.jit_call import call
from axir.dialect.program.effects import is_staged
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import function_name
from axir.dialect.program.key_reuse import use, used_inputs
from axir.dialect.program.tracer import Tracer
from axir.runtime import Device
from axir.runtime.calls.compiled_function import CompiledFunction
from axir.runtime.compiler import expect_compilation
from axir.runtime.spmd.partitioned import Place, device_for
from axir.runtime.spmd.placed_calls import committed, placed
from axir.runtime.spmd.program import MeshProgram

from .carried_refs import call_with_refs
from .signatures import AsNumber, clear_tables, cleared_with_caches, kept_number, signature
from .stages import Lowered, Lying, Traced, described_place
from .static_arguments import StaticArguments

_LOGGER = logging.getLogger(__name__)
# Signatures that a message lists.
_EXPLAINED = 4
# Signatures remembered for one function; a program with more makes a new one each time.
# The smallest program takes 120 KB.
_ENTRY_LIMIT = 1024


class _Entry:
    """The cached programs for one call signature of a jitted function.

    `is_staged` tells that a call while something is traced becomes part of that, even if all values
    are known: callbacks wait for the run of the program. `is_closed` tells that the function does
    not use values of a trace that is going on around it; only then it is remembered.
    """

    __slots__ = (
        "committed",
        "compiled",
        "function",
        "is_closed",
        "is_staged",
        "out_tree",
        "returns_one_array",
        "used_keys",
    )

    def __init__(self, function: Function, out_tree: tree.TreeDef):
        self.function = function
        self.out_tree = out_tree
        self.is_staged = is_staged(function)
        self.is_closed = not any(type(x) is Tracer for x in function.captured)
        # Made by the first call, before which no signature leads here.
        self.compiled: CompiledFunction | MeshProgram | None = None
        # The device that results are committed to, for arguments or `jit` are.
        self.committed: Device | None = None
        self.returns_one_array = out_tree.is_leaf()
        # Numbers of the arguments that are random keys which the function uses, if that is asked.
        self.used_keys = used_inputs(function) if config.jax_debug_key_reuse else []


def _is_closed(entry: _Entry) -> bool:
    return entry.is_closed


# One table of entries for each function and set of options, shared by all its `jit` wrappers.
_tables: weakref.WeakKeyDictionary[UserObject, dict[UserObject, dict[UserObject, _Entry]]] = (
    cleared_with_caches(weakref.WeakKeyDictionary())
)


# All live jitted functions, so that their caches can be cleared.
_functions: weakref.WeakSet[UserObject] = weakref.WeakSet()


def _table_of(function: Callable[..., object], options: object) -> dict[UserObject, _Entry]:
    try:
        return _tables.setdefault(function, {}).setdefault(options, {})
    except TypeError:  # neither hashable nor weakly referable
        return {}


def _computes_by_ops(args: object, kwargs: object) -> bool:
    """Tells whether results must be computed op by op, because a trace records the ops."""
    if state.shows_captures:
        return False
    return not any(type(x) is Tracer for x in tree.leaves((args, kwargs)))


class JitFunction(Generic[P, R]):
    """A function that is compiled when called; made by `jit`."""

    def __init__(
        self,
        function: Callable[P, R],
        static_argnums: tuple[int, ...],
        static_argnames: tuple[str, ...],
        donate_argnums: tuple[int, ...],
        donate_argnames: tuple[str, ...],
        device: UserObject,
        inline: bool,
        wait: bool | None,
    ):
        functools.update_wrapper(self, function)
        self.__name__ = getattr(function, "__name__", None) or function_name(function)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self._function = function
        self._static = StaticArguments(static_argnums, static_argnames, self.__name__)
        self._has_static = bool(static_argnums or static_argnames)
        self._donate_argnums = donate_argnums
        self._donate_argnames = donate_argnames
        is_giving = bool(donate_argnums or donate_argnames)
        self._as_number: AsNumber = as_array if is_giving else kept_number
        self._device = device
        self._inline = inline
        self._wait = wait
        self._options = (
            static_argnums,
            static_argnames,
            donate_argnums,
            donate_argnames,
            device,
            inline,
            wait,
        )
        self._entries = _table_of(function, self._options)
        # Entries by the `signature` of a call.
        self._known: dict[UserObject, _Entry] = {}
        # Functions with refs as arguments, by the positions of the refs in a call.
        self._ref_forms: dict[UserObject, tuple[UserFunction, UserObject]] = {}
        self._outside_refs: dict[UserObject, tuple[UserObject, ...]] = {}
        _functions.add(self)

    def share_programs(self, function: Callable[..., object], options: object) -> None:
        """Shares programs with all jitted functions made from one function with equal options.

        Args:
            function: The function from which this one's function was made.
            options: The options of making it; unhashable options share nothing.
        """
        self._entries = _table_of(function, options)

    def __repr__(self) -> str:
        return f"<axir.jit of {self._function!r}>"

    def __copy__(self) -> JitFunction:
        return self._copy_of(self._function)

    def __deepcopy__(self, memo: dict[int, UserObject]) -> JitFunction:
        # A function is its own copy, but a method is bound to the copied object.
        return self._copy_of(copy.deepcopy(self._function, memo))

    def _copy_of(self, function: Callable[..., object]) -> JitFunction:
        """Returns `function` compiled with the options of this one; programs are not copied."""
        made = JitFunction(function, *self._options)
        made.__dict__.update({k: v for k, v in vars(self).items() if k not in vars(made)})
        return made

    def __reduce__(self) -> UserObject:
        """Pickles by the name in its module, else as the function and the options."""
        module = sys.modules.get(self.__module__)
        try:
            is_named = operator.attrgetter(self.__qualname__)(module) is self
        except AttributeError:
            is_named = False
        return self.__qualname__ if is_named else (JitFunction, (self._function, *self._options))

    def __get__(self, instance: UserObject, owner: object = None) -> UserObject:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the compiled program, made on the first call with arguments of these types."""
        try:
            if config.jax_disable_jit or (state.keeps_origins and _computes_by_ops(args, kwargs)):
                return self._function(*args, **kwargs)
            static: UserObject = None
            if self._has_static:
                args, kwargs, static = self._static.split(args, kwargs)
            key, values = signature(args, kwargs, static, self._as_number)
            if key is not None:
                entry = self._known.get(key)
                if entry is not None and not (entry.is_staged and state.ambient is not None):
                    results = entry.compiled.run(values)  # type: ignore[union-attr]
                    if entry.committed is not None:
                        for x in results:
                            x._device = entry.committed
                    given: UserObject = (
                        results[0] if entry.returns_one_array else entry.out_tree.unflatten(results)
                    )
                    return given
            return self._call_anew(args, kwargs, static, key)
        except Exception as error:
            leave_out_own_frames(error)
            raise

    def _call_anew(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        static: object,
        signature_key: object,
    ) -> UserObject:
        """Calls with arguments that no remembered signature describes."""
        leaves, in_tree = flatten_arguments((args, kwargs))
        if isinstance(cast(object, in_tree), ResultTree):
            signature_key = None  # of a result as an argument it describes no leaves
        touched = None
        if not self._ref_forms:
            try:
                return self._call_with(leaves, in_tree, args, kwargs, static, signature_key)
            except RefScopeError as error:
                touched = error.ref
        return self._call_with_refs(args, kwargs, static, touched)

    def _call_with(
        self,
        leaves: list[object],
        in_tree: tree.TreeDef,
        args: object,
        kwargs: object,
        static: object,
        signature_key: object,
    ) -> object:
        """Calls with leaves that are not all uncommitted arrays, or for the first time."""
        values = to_values(leaves, (args, kwargs) if kwargs else args, self.__name__)
        if any(type(x) is Tracer for x in values):
            return self._call_traced(values, in_tree, static)
        places, common = self._places(values, (args, kwargs) if kwargs else args)
        types = tuple([x.type for x in values])
        key = (in_tree, static, types, config.cache_key, places, common)
        expect_compilation()
        entry = self._entry(key)
        if not entry.is_closed or (entry.is_staged and state.ambient is not None):
            return entry.out_tree.unflatten(call(entry.function, *values))
        if config.jax_no_execution:
            raise execution_forbidden(self.__name__)
        if entry.compiled is None:
            donated = self._donated_leaves(in_tree)
            entry.compiled = self._placed(entry, places, common, donated)
            device = device_for(entry.function, common)
            if isinstance(device, Device):
                entry.committed = device
        for number in entry.used_keys:
            if number < len(values):
                use(values[number])
        if signature_key is not None and self._entries.get(key) is entry and not entry.used_keys:
            self._remember(signature_key, entry)
        results = committed(entry.compiled(values), entry.committed)  # type: ignore[arg-type]
        return entry.out_tree.unflatten(results)

    def _places(
        self, values: Sequence[UserObject], trees: object
    ) -> tuple[tuple[Place, ...] | None, Place]:
        """Returns where each argument is committed to lie, if any is, and where to run, if said.

        Raises:
            IncompatibleDevicesError: they are committed to different devices.
        """
        places = tuple([x._device for x in values])
        if self._device is not None or not any(place is not None for place in places):
            return None, self._device

        def described(number: int) -> str:
            return f"argument {tree.paths(trees)[number]}"

        return places, common_place(f"jit of {self.__name__!r}", values, described)

    def _placed(
        self,
        entry: _Entry,
        places: tuple[Place, ...] | None,
        common: Place,
        donated: tuple[int, ...],
    ) -> CompiledFunction | MeshProgram:
        """Returns the compiled form of an entry's program."""
        lying = places or (None,) * len(entry.function.inputs)
        return placed(entry.function, lying, common, donated, self._wait)

    def _call_with_refs(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        static: UserObject,
        touched: UserObject,
    ) -> object:
        def make(function: Callable[..., object]) -> JitFunction:
            return JitFunction(function, (), (), (), (), self._device, self._inline, self._wait)

        function = self._function if static is None else static.bound(self._function)
        return call_with_refs(self, function, (args, kwargs), static, make, touched)

    def _remember(self, signature_key: object, entry: _Entry) -> None:
        if len(self._known) >= _ENTRY_LIMIT:
            self._known.clear()
        self._known[signature_key] = entry

    def _entry(self, key: UserObject) -> _Entry:
        """Returns the entry of a call signature, traced by one thread for all that call."""
        if state.axis_sizes and key not in self._entries:
            # A function traced without named axes uses none.
            key = (*key, axes_in_scope())

        def trace() -> _Entry:
            in_tree, static, types, *_ = key
            if config.jax_explain_cache_misses or config.jax_no_tracing:
                self._explain_miss(types)
            entry = self._trace(in_tree, types, static)
            if len(self._entries) >= _ENTRY_LIMIT:
                self._entries.clear()
                self._known.clear()
            return entry

        try:
            return made_once(self._entries, key, trace, _is_closed)
        except ValueError:
            compared(f"jit of {self.__name__!r}", lambda: key in self._entries)
            raise

    def _explain_miss(self, types: tuple[object, ...]) -> None:
        """Logs, or raises, that the function is traced for arguments of types."""
        given = ", ".join(map(str, types))
        known = sorted({", ".join(map(str, key[2])) for key in self._entries})
        before = "; ".join(f"({each})" for each in known[-_EXPLAINED:]) or "nothing"
        message = f"{self.__name__!r} is traced for ({given}), and has been for {before}."
        if config.jax_no_tracing:
            raise TracingForbiddenError(
                f"re-tracing function {message}",
                "Call it with arguments of types that it was called with before, or unset the "
                "option jax_no_tracing.",
            )
        _LOGGER.warning("TRACING CACHE MISS at %s: %s", user_line(), message)

    def _call_traced(
        self, values: list[UserObject], in_tree: tree.TreeDef, static: object
    ) -> object:
        types = tuple([x.type for x in values])
        key = (in_tree, static, types, config.cache_key, "traced")
        entry = self._entry(key)
        if self._inline:
            return entry.out_tree.unflatten(entry.function.evaluate(*values))
        return entry.out_tree.unflatten(call(entry.function, *values))

    def _trace(
        self, in_tree: tree.TreeDef, types: tuple[UserObject, ...], static: UserObject
    ) -> _Entry:
        function = self._function if static is None else static.bound(self._function)
        flat = FlatFunction(function, in_tree)
        with timed(TRACED, self.__name__):
            traced = trace_abstract(flat, types, "Jit")
        return _Entry(traced, flat.out_tree)

    def _donated_leaves(self, in_tree: tree.TreeDef) -> tuple[int, ...]:
        if not (self._donate_argnums or self._donate_argnames):
            return ()
        whole = in_tree.unflatten(range(in_tree.num_leaves))
        args, kwargs = cast(tuple[tuple[UserObject, ...], dict[str, UserObject]], whole)
        static = {n for n in self._static.numbers if n >= 0}
        dynamic = [n for n in range(len(args) + len(static)) if n not in static]
        donated: list[int] = []
        for number, subtree in zip(dynamic, args, strict=False):
            if number in self._donate_argnums:
                donated += tree.leaves(subtree)
        for name in self._donate_argnames:
            donated += tree.leaves(kwargs.get(name, ()))
        return tuple(donated)

    @boundary
    def trace(self, *args: object, **kwargs: object) -> Traced:
        """Traces for the types of given arguments."""
        static: UserObject = None
        if self._has_static:
            args, kwargs, static = self._static.split(args, kwargs)
        leaves, in_tree = flatten_arguments((args, kwargs))
        types = tuple([type_of(x) for x in leaves])
        entry = self._entry((in_tree, static, types, config.cache_key, "traced"))
        donated = self._donated_leaves(in_tree)
        lying = self._lying(leaves, in_tree, entry.out_tree)
        return Traced(entry.function, in_tree, entry.out_tree, donated, self._device, lying)

    def _lying(
        self, leaves: Sequence[object], in_tree: tree.TreeDef, out_tree: tree.TreeDef
    ) -> Lying:
        """Returns where arrays are for which the function is traced, and structs of such."""
        return Lying(tuple([described_place(x) for x in leaves]))

    @boundary
    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Traces and lowers for the types of given arguments, without compiling."""
        return self.trace(*args, **kwargs).lower()

    @boundary
    def eval_shape(self, *args: object, **kwargs: object) -> UserObject:
        """Returns shapes and dtypes of the results; see `axir.eval_shape`."""
        return self.trace(*args, **kwargs).out_info

    def _cache_size(self) -> int:
        """Returns for how many signatures the function has been traced, as libraries ask."""
        return len(self._entries)

    def clear_cache(self) -> None:
        """Forgets all traced and compiled versions."""
        self._entries.clear()
        self._known.clear()
        self._ref_forms.clear()
        self._outside_refs.clear()


def forget_programs() -> None:
    """Drops all traced and compiled programs of jitted functions."""
    for function in list(_functions):
        function.clear_cache()
    clear_tables()

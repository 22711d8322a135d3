"""Parts of `jax._src`: options, values and effects of programs, texts, places, tracebacks.

An effect may be anywhere here: in loops, in rematerialized computations, in compiled programs. The
sets of allowed effects know all of axir's types. Effects are unordered unless they are registered
as ordered. axir's errors name the innermost line that is neither in axir nor in a library that has
registered its path.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import FrameType

from axir._devices.partitions import as_sharding
from axir._transforms.static_arguments import chosen
from axir.core import ShapedArray
from axir.dialect.core.annotations import OptionValue, UserFunction, UserObject
from axir.dialect.core.config import config
from axir.dialect.core.context import hidden_paths, is_user_file
from axir.dialect.core.options import OPTIONS
from axir.extend.core import Effect
from axir.sharding import NamedSharding, PartitionSpec

# No place: `in_shardings` and `out_shardings` are None then.
UNSPECIFIED = None
UnspecifiedValue = type(None)
# XLA's backends; there is never one here.
_backends: dict[str, UserObject] = {}
config_with_absl = config.config_with_absl
parse_flags_with_absl = config.parse_flags_with_absl


class State:
    """An option: `enable_x64.value` is its value, `with enable_x64(True):` overrides it."""

    def __init__(self, name: str):
        self._name = name

    @property
    def value(self) -> OptionValue:
        """The value in this thread."""
        return config.read(self._name)

    def __call__(self, new_val: OptionValue = True) -> AbstractContextManager[None]:
        """Overrides the option in this thread."""
        return config(**{self._name: new_val})

    def __bool__(self) -> bool:
        raise TypeError(f"{self._name!r} is an option: its value is what .value gives.")


def option_named(name: str) -> State:
    """Returns the option of a name of `jax._src.config`."""
    for full in (f"jax_{name}", name):
        if full in OPTIONS:
            return State(full)
    raise AttributeError(f"module 'jax._src.config' has no attribute {name!r}")


# Values and effects -------------------------------------------------------------------------------


def full_lower(val: object) -> UserObject:
    """Returns a value as it is: tracers here hold no other tracers."""
    return val


def get_referent(val: object) -> UserObject:
    """Returns the value, which is its own referent here."""
    return val


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """Returns the type of an array's memory."""
    return aval


class EffectTypeSet:
    """A set of effect types: the added types and their subclasses."""

    def __init__(self, *types: type) -> None:
        self._types = [*types]

    def add_type(self, effect_type: type) -> None:
        """Adds a type."""
        self._types.append(effect_type)

    def contains(self, effect: object) -> bool:
        """Tells whether an effect is of one of the types."""
        return isinstance(effect, tuple(self._types))

    def filter_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """Returns the effects among some that are of one of the types."""
        return list(filter(self.contains, effects))

    def filter_not_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """Returns the effects among some that are of no type in the set."""
        return [effect for effect in effects if not self.contains(effect)]


control_flow_allowed_effects = EffectTypeSet(Effect)
custom_derivatives_allowed_effects = EffectTypeSet(Effect)
lowerable_effects = EffectTypeSet(Effect)
ordered_effects = EffectTypeSet()
partial_eval_kept_effects = EffectTypeSet(Effect)
remat_allowed_effects = EffectTypeSet(Effect)
shardable_ordered_effects = EffectTypeSet()


# Texts as documents, which `format` and `str` write -----------------------------------------------


@dataclass(frozen=True)
class Doc:
    """A text in one line."""

    content: str = ""

    def format(self) -> str:
        """Returns the text."""
        return self.content

    def __str__(self) -> str:
        return self.content

    def __add__(self, other: Doc) -> Doc:
        return Doc(self.content + other.content)


def text(s: str, annotation: str | None = None) -> Doc:
    """Returns a text as a document."""
    return Doc(s)


def concat(docs: Sequence[Doc]) -> Doc:
    """Returns documents in sequence."""
    return Doc("".join(doc.content for doc in docs))


def nil() -> Doc:
    """Returns the empty document."""
    return Doc()


# Arguments, places, tracebacks --------------------------------------------------------------------


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Sequence[int] | None,
    argnames: str | Sequence[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Returns numbers and names of arguments, each inferred from the other if only one is given."""

    def function(*args: object) -> None:
        raise AssertionError("it only has the signature")

    vars(function)["__signature__"] = sig
    return chosen(function, argnums, argnames, "static")


def canonicalize_sharding(
    sharding: object, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """Returns a sharding unchanged, and a specification as a sharding over the mesh in use.

    Raises:
        TypeError: for other objects.
        MissingMeshError: for a specification if no mesh is in use.
    """
    if sharding is None or (isinstance(sharding, NamedSharding) and sharding.mesh.empty):
        return None
    if not isinstance(sharding, (NamedSharding, PartitionSpec)):
        raise TypeError(f"{api_name}: out_sharding is a {type(sharding).__name__}: {sharding}.")
    found = as_sharding(sharding, api_name)
    return found if isinstance(found, NamedSharding) else None


def register_exclusion(path: str) -> None:
    """Excludes the lines of files under a path from errors."""
    hidden_paths.append(path)


def include_frame(f: FrameType) -> bool:
    """Tells whether a frame belongs to the user."""
    return is_user_file(f.f_code.co_filename)


def api_boundary(fun: Callable[..., object], **options: bool) -> UserFunction:
    """Returns the function: tracebacks stay whole, and errors name the user's line."""
    return fun

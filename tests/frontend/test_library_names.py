"""Names that JAX libraries use: names used by at least two exist, under JAX's names.

`library_names.json` lists them by module, as `support.library_names` found them in the sources of
77 libraries: BlackJAX, Brax, Chex, Diffrax, Distrax, Equinox, Flax, Haiku, Keras, NetKet, NumPyro,
Optax, Orbax, PennyLane, TFP and others.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support import library_names

NAMES = Path(__file__).with_name("library_names.json")

# Names of JAX's inner modules that a single library uses, and that work.
PROGRAM = """
import axir.as_jax
import jax, jax.numpy as jnp, numpy as np
from jax._src import array, checkify, core, dtypes, earray, effects, pretty_printer, sharding_impls
from jax._src import util, xla_bridge
from jax._src.ad_checkpoint import remat_p
from jax._src.interpreters.batching import is_vmappable
from jax._src.tree_util import BuiltInKeyEntry
from jax._src.pjit import UNSPECIFIED, UnspecifiedValue
from jax.sharding import NamedSharding, PartitionSpec

assert isinstance(jnp.ones(1), array.ArrayImpl) and not isinstance(jnp.ones(1), earray.EArray)
assert issubclass(checkify.FailedCheckError, checkify.JaxException)
with core.take_current_trace() as trace, core.set_current_trace(trace):
    assert core.full_lower(3) == core.get_referent(3) == 3
assert isinstance(core.TraceTag(), jax.extend.core.TraceTag)
assert core.safe_map(abs, [-1]) == [1] and core.safe_zip([1], [2]) == [(1, 2)]
assert core.call_p is jax.make_jaxpr(jax.jit(abs))(1.0).eqns[0].primitive
assert remat_p is jax.make_jaxpr(jax.checkpoint(abs))(1.0).eqns[0].primitive
assert [str(dtypes.dtype(x)) for x in (1, 1.0, np.int8(1))] == ["int32", "float32", "int8"]
assert [str(dtypes.to_complex_dtype(t)) for t in ("int8", "float64")] == ["complex64", "complex128"]
assert [str(dtypes.to_inexact_dtype(t)) for t in ("int8", "float16")] == ["float32", "float16"]
assert [str(dtypes.to_numeric_dtype(t)) for t in ("bool", "int8")] == ["int32", "int8"]
effects.lowerable_effects.add_type(str)
assert effects.lowerable_effects.contains("") and not effects.remat_allowed_effects.contains("")
known, ordered = [jax.extend.core.Effect(), "a"], effects.ordered_effects
assert effects.remat_allowed_effects.filter_in(known) == known[:1]
assert effects.remat_allowed_effects.filter_not_in(known) == known[1:]
assert ordered.filter_in(known) == effects.shardable_ordered_effects.filter_in(known) == []
doc = pretty_printer.concat([pretty_printer.text("a"), pretty_printer.nil()])
assert str(doc + pretty_printer.text("b")) == doc.format() + "b" == "ab"
mesh = jax.make_mesh((1,), ("x",))
with jax.set_mesh(mesh):
    found = sharding_impls.canonicalize_sharding(PartitionSpec("x"), "f")
assert found == NamedSharding(mesh, PartitionSpec("x"))
assert sharding_impls.canonicalize_sharding(None, "f") is None
try:
    sharding_impls.canonicalize_sharding(3, "f")
except TypeError as error:
    assert "f: out_sharding is a int: 3" in str(error)
assert isinstance(UNSPECIFIED, UnspecifiedValue)
assert float(jax.jit(abs, in_shardings=UNSPECIFIED, out_shardings=UNSPECIFIED)(-1.0)) == 1.0
partial = util.HashablePartial(max, 1, key=abs)
assert partial(-2) == -2 and partial == util.HashablePartial(max, 1, key=abs)
assert hash(partial) == hash(util.HashablePartial(max, 1, key=abs))
assert xla_bridge.get_backend().platform == "cpu" and "cpu" in xla_bridge.backends()
assert not is_vmappable([1]) and isinstance(jax.tree_util.DictKey("a"), BuiltInKeyEntry)
print("all")
"""


def test_names_that_several_libraries_use_are_there() -> None:
    by_module = json.loads(NAMES.read_text())
    names = [
        f"{module}.{name}".lstrip(".") for module, listed in by_module.items() for name in listed
    ]
    assert len(names) > 800
    assert library_names.missing(names, "-m", "axir.as_jax") == set()


def test_what_single_libraries_use_works() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "all\n"


def test_names_are_read_from_imports_and_attributes() -> None:
    source = """
import jax.numpy as jnp, jax.scipy.special
from jax._src import core as inner
from jax import lax
from . import jax as own

def f(x):
    import jaxlib
    return jnp.linalg.norm(x) + jax.scipy.special.erf(x).sum() + inner.Tracer + jaxlib.version
"""
    assert library_names.names_in(source) == {
        "jax.numpy", "jax.scipy.special", "jax._src.core", "jax.lax", "jaxlib",
        "jax.numpy.linalg.norm", "jax.scipy.special.erf", "jax._src.core.Tracer", "jaxlib.version",
    }  # fmt: skip


def test_the_scan_counts_libraries_and_finds_what_is_missing(tmp_path: Path) -> None:
    for library, text in (("a", "import jax\njax.no_such\n"), ("b", "from jax import no_such")):
        (tmp_path / library).mkdir()
        (tmp_path / library / "module.py").write_text(text)
    (tmp_path / "a" / "broken.py").write_text("def")
    users = library_names.libraries_by_name(tmp_path)
    assert users["jax.no_such"] == {"a", "b"}
    assert library_names.missing(["jax.no_such", "jax.jit"], "-m", "axir.as_jax") == {"jax.no_such"}

"""`axir.as_jax`: `import jax` gives axir, and missing names raise clear errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

from axir._as_jax import JAX_VERSION
from axir._as_jax.installation import install
from axir._as_jax.modules import JaxFinder, StandInDistribution, own_name

# Everything that holds in one process, as a table of expressions and their values.
EXPRESSIONS: dict[str, Any] = {
    "jax.__version__": JAX_VERSION,
    "list(jax.__version_info__)": [int(part) for part in JAX_VERSION.split(".")],
    "jax.version.__version__": JAX_VERSION,
    "jax.lib.__version__": JAX_VERSION,
    "jaxlib.__version__": JAX_VERSION,
    "isinstance(jax.jit(abs), importlib.import_module('jaxlib.xla_extension').PjitFunction)": True,
    "raised(lambda: check_close({'a': 1.0}, {'a': 1.1}))[0]": "AssertionError",
    "[str(x.dtype) for x in util.promote_dtypes_complex(1, 2.0)]": ["complex64", "complex64"],
    "[x.shape for x in util.promote_shapes('f', [1, 2], 3)] == [(2,), (2,)]": True,
    "raised(lambda: util.check_arraylike('f', 'text'))[0]": "NonArrayArgumentError",
    "jax._src.ad_util.add_any_p is lax.add_p": True,
    "jax._src.pjit.reshard is jax.sharding.reshard": True,
    "jaxlib.xla_client.Device is jax.Device": True,
    "isinstance(1, jax._src.literals.TypedInt)": False,
    "importlib.metadata.version('jax')": JAX_VERSION,
    "importlib.metadata.version('jaxlib')": JAX_VERSION,
    "jax.numpy.__name__": "axir.numpy",
    "sys.modules['jax.numpy.linalg'] is sys.modules['axir.numpy.linalg']": True,
    "initializers.__name__": "axir.nn.initializers",
    "jax._src.core.trace_state_clean()": True,
    "list in jax._src.tree_util._registry": True,
    "jax._src.tree_util._registry[tuple].to_iter((1, 2))[0] == (1, 2)": True,
    "jax._src.tree_util._registry[list].from_iter(None, [3]) == [3]": True,
    "hash(jax._src.tree_util._registry[dict].to_iter({'b': 1, 'a': 2})[1]) is None": False,
    "jax._src.tree_util._registry[dict].from_iter(('a', 'b'), (2, 1)) == {'a': 2, 'b': 1}": True,
    "len(jax._src.tree_util.prefix_errors([1, 2], [1, 2]))": 0,
    "'axes[1]' in str(jax._src.tree_util.prefix_errors([1, [2]], [1, 2])[0]('axes'))": True,
    "jax._src.lax.lax.sin is lax.sin is internal.sin": True,
    "jax._src.api.vmap is jax.vmap and jax._src.random is jax.random": True,
    "[str(x.dtype) for x in util.promote_dtypes_inexact(1, 2.0)]": ["float32", "float32"],
    "[x.shape for x in util.ensure_arraylike('f', 1, [2])]": [[], [1]],
    "len(util.promote_dtypes(1, 2))": 2,
    "static_by(argnums=None, argnames='y')": [[1], ["y"]],
    "static_by(argnums=0, argnames=None)": [[0], ["x"]],
    "jax._src.pjit.jit_p is jax.make_jaxpr(jax.jit(lax.neg))(1.0).eqns[0].primitive": True,
    "jax.core.ShapedArray((2,), int).at_least_vspace().str_short()": "float0[2]",
    "[type(jax.numpy.ones(1)).__module__, jax.Array.__module__]": ["jaxlib._jax", "jax"],
    "{f.__module__[:4] for f in (jax.numpy.sin, lax.scan, jax.jit, jax.nn.relu)} == {'jax.'}": True,
    "module_of_tracers() == ['jax._src.core']": True,
    "importlib.import_module('jaxlib._jax').ArrayImpl is type(jax.numpy.ones(1))": True,
    "pickle.loads(pickle.dumps(jax.nn.relu)) is jax.nn.relu": True,
    "jax._src.core.concrete_or_error(int, np.int32(3))": 3,
    "raised(lambda: jax.jit(lambda x: jax._src.core.concrete_or_error(int, x))(1))[0]": (
        "ConcretizationTypeError"
    ),
    "internal_client.XlaRuntimeError is jax.errors.JaxRuntimeError": True,
    "jax._src.pallas.pallas_call.pallas_call is jax.experimental.pallas.pallas_call": True,
    "jax._src.state.indexing.ds(1, 2) == jax._src.pallas.core.ds(1, 2)": True,
    "[str(jax._src.dtypes.default_int_dtype()), jax._src.dtypes.itemsize_bits('int4')]": [
        "int32",
        4,
    ],
    "jax._src.config.enable_x64.value": False,
    "raised(lambda: bool(jax._src.config.enable_x64))": ["TypeError", "'jax_enable_x64'"],
    "overridden()": True,
    "hasattr(jax._src.config, 'no_such_option')": False,
    "hasattr(jax._src, 'no_such') or hasattr(jax._src.lax, 'no_such')": False,
    "jax.config.jax_threefry_partitionable": True,
    "importlib.util.find_spec('jax') is not None": True,
    "hasattr(jax, 'no_such_name')": False,
    "'jit' in dir(jax)": True,
    "float(jax.grad(lax.sin)(0.0))": 1.0,
    "threefry": True,
    "raised(lambda: jax.no_such_name)": ["JaxNameError", "jax", "is axir here"],
    "raised(lambda: jax.numpy.no_such)": ["JaxNameError", "The program asks for jax.numpy.no_such"],
    "raised(lambda: lax.no_such)": ["JaxNameError", "jax.lax.no_such", "JAX itself runs where"],
    "imported('import jax.no_such')": ["JaxModuleNotFoundError", "jax.no_such", "is axir here"],
    "imported('from jax import no_such')": [
        "JaxModuleNotFoundError",
        "axir.no_such",
        "libraries.md",
    ],
    "imported('from jax.numpy import no_such')": ["JaxImportError", "jax.numpy", "is axir here"],
    "imported('from jax.lax import exp_p, no_such')": ["JaxImportError", "jax.lax.no_such"],
    "[hasattr(jax.numpy, name) for name in ('sin', 'no_such', '__no_such__')]": [
        True,
        False,
        False,
    ],
    "imported('import jax._src.lax.no_such')": ["JaxModuleNotFoundError", "jax._src.lax.no_such"],
    "imported('import jax.config.no_such.one')": ["ModuleNotFoundError", "jax.config.no_such"],
    "imported('import jax._transforms')": ["JaxModuleNotFoundError", "axir._transforms"],
}
PROGRAM = """
import axir.as_jax
import importlib.metadata, importlib.util, inspect, json, sys
import importlib
import jax, jaxlib.xla_client, jax.numpy.linalg, jax._src.literals, jax._src.core, jax.version
import jax._src.random
from jax import lax
from jax._src.api import vmap
from jax._src.api_util import infer_argnums_and_argnames
from jax._src.lax import lax as internal
from jax._src.numpy import util
from jax._src.public_test_util import check_close
import jax._src.ad_util, jax._src.pallas.pallas_call, jax._src.state.indexing
import jax.experimental.pallas, pickle
import numpy as np
from jax._src.lib import xla_client as internal_client
from jax.nn import initializers

def module_of_tracers():
    found = []
    jax.eval_shape(lambda x: found.append(type(x).__module__), 1.0)
    return found

def overridden():
    with jax._src.config.enable_x64(True):
        return jax._src.config.enable_x64.value

def static_by(**options):
    return infer_argnums_and_argnames(inspect.signature(lambda x, y: 0), **options)

def raised(call):
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]

def imported(statement):
    return raised(lambda: exec(statement, {}))

threefry = jax.random.bits(jax.random.key(0), (3,)).tolist() == BITS
print(json.dumps([eval(text) for text in EXPRESSIONS]))
"""


def run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == code, finished.stderr
    return finished


def test_a_process_has_axir_for_jax() -> None:
    bits = jax.random.bits(jax.random.key(0), (3,)).tolist()
    program = PROGRAM.replace("EXPRESSIONS", repr(list(EXPRESSIONS))).replace("BITS", repr(bits))
    values = json.loads(run("-c", program).stdout)
    for (text, expected), value in zip(EXPRESSIONS.items(), values, strict=True):
        if isinstance(expected, list) and isinstance(value[1], str):
            assert value[0] == expected[0], text
            assert all(part in value[1] for part in expected[1:]), (text, value)
        else:
            assert value == expected, text


def test_the_names_are_those_of_the_jax_that_tests_compare_with() -> None:
    assert JAX_VERSION == jax.__version__


def test_jax_imported_before_is_refused() -> None:
    from axir._as_jax.errors import RealJaxLoadedError  # late: beside its use

    with pytest.raises(RealJaxLoadedError, match=r"(?s)has imported jax from .*first import"):
        install()
    assert not any(isinstance(finder, JaxFinder) for finder in sys.meta_path)


def test_a_script_runs_as_python_runs_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import jax\nvalue = jax.numpy.arange(3).sum()\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, pickle, beside\nclass Kept: pass\npickle.loads(pickle.dumps(Kept()))\n"
        "print(__name__, sys.argv[1:], beside.value)\n"
    )
    finished = run("-m", "axir.as_jax", script, "-c", "--flag")
    assert finished.stdout == "__main__ ['-c', '--flag'] 3\n"


def test_an_error_names_the_library_the_name_and_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "needy").mkdir()
    (tmp_path / "needy/__init__.py").write_text("from jax.numpy import no_such_function\n")
    (tmp_path / "other.py").write_text("import jax\n\ndef f():\n    return jax.lax.no_such\n")
    script = tmp_path / "script.py"
    script.write_text("import other\ntry:\n    other.f()\nfinally:\n    import needy\n")
    errors = run("-m", "axir.as_jax", script, code=1).stderr
    assert "needy asks for jax.numpy.no_such_function: cannot import name" in errors
    assert "needy/__init__.py:1 in <module>" in errors
    assert "docs/libraries.md of axir tells which libraries run." in errors
    assert f"The names are those of JAX {JAX_VERSION}: take a version of needy" in errors
    assert "or run needy on JAX itself, without axir.as_jax." in errors
    assert "other asks for jax.lax.no_such: module 'jax.lax' is axir here" in errors


def test_a_module_and_code_run() -> None:
    finished = run("-m", "axir.as_jax", "-m", "timeit", "-n", "1", "-r", "1", "import jax")
    assert "1 loop" in finished.stdout
    code = "import sys, jax; print(sys.argv, jax.__name__); sys.exit(3)"
    assert run("-m", "axir.as_jax", "-c", code, "x", code=3).stdout == "['-c', 'x'] jax\n"


def test_a_traceback_shows_the_program_alone() -> None:
    finished = run("-m", "axir.as_jax", "-c", "import jax\n1 / 0", code=1)
    lines = finished.stderr.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[1] == '  File "<string>", line 2, in <module>'
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_wrong_usage_is_told(tmp_path: Path) -> None:
    assert "usage: python -m axir.as_jax" in run("-m", "axir.as_jax", code=2).stderr
    assert "usage: python -m axir.as_jax" in run("-m", "axir.as_jax", "--help").stdout
    finished = run("-m", "axir.as_jax", tmp_path / "none.py", code=2)
    assert "there is no file" in finished.stderr


def test_names_of_modules() -> None:
    assert own_name("jax.numpy.fft") == "axir.numpy.fft"
    assert own_name("jax.version") == "axir._as_jax.version"
    assert own_name("jaxlib") == "axir._as_jax.jaxlib"


def test_a_distribution_that_stands_in_has_metadata_and_no_other_file() -> None:
    distribution = StandInDistribution("jax")
    assert distribution.version == JAX_VERSION
    assert distribution.read_text("RECORD") is None

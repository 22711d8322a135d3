"""The command line: output on stdout and stderr, and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import axir
from axir.cli import cli
from axir.cli.inputs import read_inputs
from axir.dialect.core import dtypes
from axir.dialect.core.errors import AxirError, DTypeError, ParameterError, ShapeError
from axir.dialect.text.signature import Argument, Signature, parse_type
from axir.export import export
from axir.passes.framework.registry import pass_names

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
W = np.array([[1.0], [0.5], [0.25]], np.float32)
EXPECTED = np.tanh(X @ W)
VERBS = ["bench", "cache", "compile", "completion", "diff", "grad", "info", "inspect", "opt"]
VERBS += ["passes", "run", "vmap"]


def predict(params: Any, x: Any) -> Any:
    return axir.numpy.tanh(x @ params["w"])


def axir_command(*arguments: Any, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments], input=stdin, prog_name="axir")


def succeeds(*arguments: Any, stdin: str | bytes | None = None) -> str:
    result = axir_command(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def fails(*arguments: Any, stdin: str | bytes | None = None, code: int = 1) -> str:
    """Runs a command that must fail; returns its message."""
    result = axir_command(*arguments, stdin=stdin)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert "This is a fault of axir itself" not in result.stderr
    assert result.stderr.startswith("error: " if code == 1 else "Usage: ")
    return result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    export(axir.jit(predict))({"w": W}, X).save(folder / "model.mlir")
    np.save(folder / "x.npy", X)
    np.save(folder / "w.npy", W)
    np.savez(folder / "inputs.npz", **{"x": X, "params['w']": W})
    np.savez(folder / "unnamed.npz", W, X)
    np.save(folder / "double.npy", X.astype(np.float64))
    np.save(folder / "objects.npy", np.array([{}], object), allow_pickle=True)
    (folder / "empty.npy").write_bytes(b"")
    return folder


@pytest.fixture
def model(folder: Path) -> Path:
    return folder / "model.mlir"


@pytest.fixture(scope="module")
def program(folder: Path) -> Path:
    succeeds("compile", folder / "model.mlir", "-o", folder / "model.vmfb")
    return folder / "model.vmfb"


class TestHelp:
    @pytest.mark.parametrize("verb", VERBS)
    def test_each_verb_shows_examples(self, verb: str) -> None:
        text = succeeds(verb, "--help")
        assert f"Examples:\n    axir {verb}" in text

    def test_the_command_lists_its_verbs(self) -> None:
        text = succeeds("--help")
        assert all(f"\n  {verb} " in text for verb in VERBS)
        assert succeeds("--version") == f"axir, version {axir.__version__}\n"

    def test_wrong_usage_exits_with_2(self, model: Path) -> None:
        assert "No such option" in fails("opt", model, "--bogus", code=2)
        assert "There is no verb" in fails("bogus", code=2)
        assert "Missing argument 'FILE'" in fails("run", code=2)


class TestInspect:
    def test_module(self, model: Path) -> None:
        text = succeeds("inspect", model)
        assert "jaxpr module" in text
        assert "argument  params['w']  3x1xf32" in text
        assert "1  jaxpr.dot_general" in text
        assert "constants: 0 bytes" in text

    def test_constants_are_listed_by_the_users_line(self, folder: Path) -> None:
        table = np.arange(100, dtype=np.float32)
        export(lambda x: axir.numpy.asarray(table) * x)(np.float32(1)).save(folder / "table.mlir")
        found = json.loads(succeeds("inspect", folder / "table.mlir", "--json"))
        assert found["constants"]["bytes"] == 400
        assert Path(__file__).name in next(iter(found["constants"]["lines"]))

    def test_json(self, model: Path, program: Path) -> None:
        functions = json.loads(succeeds("inspect", model, "--json"))["functions"]
        assert functions["main"]["arguments"][1] == {
            "name": "x",
            "type": "2x3xf32",
            "dtype": "float32",
            "shape": [2, 3],
        }
        compiled = json.loads(succeeds("inspect", program, "--json"))
        # 2 * 2 * 3 for the product, and a tangent for each of its elements.
        assert functions["main"].pop("costs")["flops"] == 14
        assert compiled["functions"] == functions
        assert (compiled["kind"], compiled["platform"]) == ("vmfb", "cpu")

    def test_stablehlo_from_stdin(self, model: Path) -> None:
        text = succeeds("inspect", "-", stdin=succeeds("opt", model, "--to", "stablehlo"))
        assert "StableHLO module" in text
        assert "1  stablehlo.tanh" in text


class TestOpt:
    def test_output_parses_back_to_itself(self, model: Path) -> None:
        text = succeeds("opt", model)
        assert succeeds("opt", "-", stdin=text) == text

    def test_passes_run_in_the_order_given(self, model: Path, folder: Path) -> None:
        out = folder / "batched.mlir"
        pipeline = "vmap{axis_size=5,in_axes=(none,0)},simplify"
        assert succeeds("opt", model, "-p", pipeline, "-o", out) == ""
        batch = np.stack([X] * 5)
        np.save(folder / "batch.npy", batch)
        succeeds(
            "run",
            out,
            "x=@" + str(folder / "batch.npy"),
            f"params.w=@{folder / 'w.npy'}",
            "--out",
            folder / "y.npy",
        )
        np.testing.assert_allclose(np.load(folder / "y.npy"), np.tanh(batch @ W), rtol=1e-6)

    def test_only_files_keep_the_users_lines(self, model: Path, folder: Path) -> None:
        line = f'{Path(__file__).name}":{predict.__code__.co_firstlineno + 1}:'
        succeeds("opt", model, "-p", "jvp", "-o", folder / "jvp.mlir")
        assert line in (folder / "jvp.mlir").read_text()
        assert "loc(" not in succeeds("opt", model, "-p", "jvp")

    def test_bytecode(self, model: Path, folder: Path) -> None:
        succeeds("opt", model, "-o", folder / "model.mlirbc")
        assert (folder / "model.mlirbc").read_bytes().startswith(b"ML\xefR")
        assert succeeds("opt", folder / "model.mlirbc") == succeeds("opt", model)

    def test_verify_only_prints_nothing(self, model: Path) -> None:
        assert succeeds("opt", model, "--verify-only") == ""

    def test_printing_goes_to_stderr(self, model: Path) -> None:
        result = axir_command("opt", model, "-p", "jvp,simplify", "--print-ir-after", "jvp")
        assert result.stderr.startswith("// -----// IR after jvp //----- //\nmodule {")
        assert result.stdout.startswith("module {")
        assert "IR after simplify" not in result.stderr

    def test_stablehlo_goes_back(self, model: Path) -> None:
        text = succeeds("opt", model, "--to", "stablehlo")
        assert '"jaxpr.dot_general"' in succeeds("opt", "-", "--to", "jaxpr", stdin=text)
        assert '"jaxpr.dot_general"' in succeeds("opt", "-", "-p", "jvp", stdin=text)
        passes = ("-p", "expand-trigonometry")
        assert "cannot become one of jaxpr" in fails(
            "opt", "-", *passes, "--to", "jaxpr", stdin=text
        )

    def test_wrong_modules(self, model: Path, folder: Path) -> None:
        text = model.read_text()
        assert "There is no file or folder missing.mlir" in fails("opt", "missing.mlir")
        assert "is empty" in fails("opt", "-", stdin="")
        assert "is not valid MLIR" in fails("opt", "-", stdin=text[: len(text) // 2])
        message = fails("opt", "-", stdin=text.replace("jaxpr.tanh", "jaxpr.tahn"))
        line = predict.__code__.co_firstlineno + 1
        assert "Op 'jaxpr.tahn' is not one of the jaxpr dialect" in message
        assert f"at <stdin>:5, which comes from {__file__}:{line}" in message
        assert "Did you mean jaxpr.tan" in message
        assert "Is a directory" in fails("opt", folder)
        bad_name = '"jaxpr.s\\FFn"() : () -> ()'
        assert "a name that is not valid UTF-8: jaxpr.s\\FFn" in fails("opt", "-", stdin=bad_name)

    def test_wrong_pipelines(self, model: Path) -> None:
        assert "Did you mean 'vmap'" in fails("opt", model, "-p", "vmpa")
        message = fails("opt", model, "-p", "jvp", "--print-ir-after", "vmap", code=2)
        assert "the pipeline has no such pass; it is jvp" in message

    def test_generic_form(self, model: Path, folder: Path) -> None:
        out = folder / "generic.mlir"
        assert succeeds("opt", model, "--generic", "-o", out) == ""
        assert '"func.func"()' in out.read_text()
        assert succeeds("opt", out) == succeeds("opt", model)
        message = fails("opt", model, "--generic", "-o", folder / "generic.mlirbc", code=2)
        assert "generic form is text, saved as .mlir" in message

    def test_wrong_outputs(self, model: Path, folder: Path) -> None:
        assert ".mlir (text) or .mlirbc" in fails("opt", model, "-o", folder / "model.txt")
        assert "There is no file or folder" in fails("opt", model, "-o", folder / "no" / "m.mlir")


class TestCompileAndRun:
    def test_compiled_program_keeps_the_names(self, program: Path, folder: Path) -> None:
        out = folder / "compiled.npy"
        inputs = [f"x=@{folder / 'x.npy'}", "params.w=3x1xf32=1,0.5,0.25"]
        succeeds("run", program, *inputs, "--out", out)
        np.testing.assert_allclose(np.load(out), EXPECTED, rtol=1e-6)

    @pytest.mark.parametrize(
        "inputs",
        [
            ["params['w']=@{}/w.npy", "x=@{}/x.npy"],
            ["x=@{}/x.npy", "@{}/w.npy"],
            ["3x1xf32=1,0.5,0.25", "2x3xf32=1 2 3 4 5 6"],
            ["x=[[1,2,3],[4,5,6]]", "params.w=1 0.5 0.25"],
            ["@{}/inputs.npz"],
            ["@{}/unnamed.npz"],
        ],
    )
    def test_ways_to_write_inputs(self, model: Path, folder: Path, inputs: list[str]) -> None:
        out = folder / "y.npy"
        succeeds("run", model, *(text.format(folder) for text in inputs), "--out", out)
        np.testing.assert_allclose(np.load(out), EXPECTED, rtol=1e-6)

    def test_results_are_printed(self, model: Path) -> None:
        text = succeeds("run", model, "zeros:3x1xf32", "ones:", "--eager")
        assert text == "result: 2x1xf32 =\n[[0.],\n [0.]]\n"

    def test_negative_numbers_are_no_options(self, model: Path) -> None:
        text = succeeds("run", model, "-1,0,-.5", "-1", "--eager")
        assert text.count("0.905148") == 2  # tanh(1.5)
        assert "No such option '--bogus'" in fails("run", model, "1", "1", "--bogus", code=2)

    def test_functions_by_name(self, model: Path, folder: Path) -> None:
        out = folder / "linear.mlir"
        succeeds("opt", model, "-p", "linearize{argnums=1}", "-o", out)
        archive = folder / "results.npz"
        succeeds("run", out, f"@{folder / 'inputs.npz'}", "--out", archive)
        with np.load(archive) as content:
            results = dict(content)
        assert list(results)[:2] == ["result", "residual0"]
        residuals = [str(out.with_name(f"{name}.npy")) for name in list(results)[1:]]
        for name, path in zip(list(results)[1:], residuals, strict=True):
            np.save(path, results[name])
        text = succeeds(
            "run",
            out,
            "ones:2x3xf32",
            *("@" + p for p in residuals),
            "--function",
            "linear",
            "--eager",
        )
        slope = (1 - EXPECTED**2) * (np.ones_like(X) @ W)
        assert [f"{v:.4f}" for v in slope.ravel()] == [
            f"{float(v):.4f}"
            for v in text.split("=")[1]
            .replace("[", " ")
            .replace("]", " ")
            .replace(",", " ")
            .split()
        ]
        assert "There is no function 'other'" in fails("run", out, "--function", "other")

    def test_stablehlo_runs(self, model: Path, folder: Path) -> None:
        path = folder / "model.stablehlo.mlir"
        path.write_text(succeeds("opt", model, "--to", "stablehlo"))
        inputs = [f"@{folder / 'w.npy'}", f"arg1=@{folder / 'x.npy'}"]
        succeeds("run", path, *inputs, "--out", folder / "y.npy")
        np.testing.assert_allclose(np.load(folder / "y.npy"), EXPECTED, rtol=1e-6)

    def test_compile_prints_the_command_only_when_asked(self, model: Path, folder: Path) -> None:
        out = folder / "verbose.vmfb"
        flag = "--iree-llvmcpu-number-of-threads=2"
        result = axir_command("compile", model, "-o", out, "-v", "-O1", "--", "--iree-opt-level=O1")
        assert result.exit_code == 0, result.output
        assert "--iree-llvmcpu-target-cpu=generic" in result.stderr
        assert "--iree-opt-level=O1 MODULE.mlir -o" in result.stderr
        assert result.stdout == ""
        assert "option not found" in fails("compile", model, "-o", out, "--", flag + "-bogus")

    def test_wrong_compilations(self, model: Path, program: Path) -> None:
        assert "needs -o FILE" in fails("compile", "-", code=2)
        assert "is a .vmfb file" in fails("compile", model, "-o", "model.so", code=2)
        assert "is a compiled program" in fails("compile", program, "-o", "again.vmfb")
        text = "func.func @main(%x: f32) -> f32 { %0 = math.absf %x : f32  return %0 : f32 }"
        assert "is a module of math" in fails("compile", "-", "-o", "m.vmfb", stdin=text)
        assert "only jaxpr and StableHLO are compiled" in fails("run", "-", "1", stdin=text)
        text = "module { " + '"vhlo.constant_v1"() <{value = 1 : i32}> : () -> (i32) }'
        assert "the module is not valid MLIR" in fails("compile", "-", "-o", "m.vmfb", stdin=text)
        text = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
        assert "axir compile --size" in fails("compile", "-", "-o", "m.vmfb", stdin=text)

    def test_functions_of_another_program(self, folder: Path) -> None:
        text = (
            "func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {\n"
            '  %0 = "stablehlo.custom_call"(%x) {call_target_name = "lapack_spotrf"} : '
            "(tensor<3x3xf32>) -> tensor<3x3xf32>\n"
            "  return %0 : tensor<3x3xf32>\n}\n"
        )
        message = fails("compile", "-", "-o", folder / "foreign.vmfb", stdin=text)
        assert "calls 'lapack_spotrf', a function of the program that wrote" in message
        assert "Calls of 'lapack_spotrf_ffi' can be raised" in message
        assert "at line 2" in message

    def test_wrong_folders(self, model: Path, folder: Path) -> None:
        missing = folder / "no"
        out = missing / "model.vmfb"
        assert f"There is no folder {missing}." in fails("compile", model, "-o", out)
        out = missing / "model.mlir"
        assert f"There is no file or folder {missing}." in fails("opt", model, "-o", out)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--target-cpu", "znver99"], "does not know the machine 'znver99'.\n  Did you mean"),
            (["--target", "cuda", "--target-gpu", "sm_1"], "does not know the machine 'sm_1'"),
            (["--target-triple", "aarch64-linux-gnu", "--target-cpu", "m9"], "apple-m1"),
            (["--target-triple", "sparc-sun-solaris"], "not made for machines such as 'sparc"),
            (["--target-triple", "aarch64-linux-gnu", "--target-cpu", "host"], "another kind"),
        ],
    )
    def test_machines_that_nobody_knows(
        self, model: Path, folder: Path, options: list[str], message: str
    ) -> None:
        assert message in fails("compile", model, "-o", folder / "m.vmfb", *options)

    def test_other_machines(self, model: Path, folder: Path) -> None:
        inputs = [f"@{folder / 'w.npy'}", f"x=@{folder / 'x.npy'}"]
        out, result = folder / "other.vmfb", folder / "other.npy"
        succeeds("compile", model, "--target", "vmvx", "-o", out)
        succeeds("run", out, *inputs, "--out", result)
        np.testing.assert_allclose(np.load(result), EXPECTED, rtol=1e-5)
        succeeds("compile", model, "--target", "rocm", "-o", out)
        assert "is for rocm" in fails("run", out, *inputs)
        succeeds("compile", model, "--target-triple", "riscv64-linux-gnu", "-o", out)
        assert "is for CPUs of another kind: riscv64" in fails("run", out, *inputs)
        several = ("--target-cpu", "x86-64,x86-64-v3")
        assert "A .vmfb is for one CPU" in fails("compile", model, *several, "-o", out, code=2)

    def test_wrong_programs(self, program: Path, folder: Path) -> None:
        damaged = folder / "damaged.vmfb"
        damaged.write_bytes(program.read_bytes()[:1000])
        assert "compile it again" in fails("run", damaged)
        assert "There is no file or folder" in fails("run", folder / "missing.vmfb")

    @pytest.mark.parametrize(
        ("inputs", "message"),
        [
            ([], "@main needs a value for params['w'], x"),
            (["y=1"], "@main has no argument 'y'"),
            (["param.w=1"], "Did you mean params.w"),
            (["x=1", "x=1"], "x is given twice"),
            (["1", "1", "1"], "takes 2 arguments; '1' is one more"),
            (["x=2x3xf64=1"], "x must be float32[2,3], but the value given is float64[2, 3]"),
            (["x=3x2xf32=1"], "x must be float32[2,3], but the value given is float32[3, 2]"),
            (["x=1,2"], "x has 2 elements, but its type float32[2,3] has 6"),
            (["x=a"], "these are not elements of dtype float32"),
            (["x=zeros:2yf32"], "'2yf32' is not the type of an array"),
            (["x=@missing.npy"], "There is no file or folder missing.npy"),
            (["x=@{}/double.npy"], "Convert it: numpy.save(path, x.astype('float32'))"),
            (["x=@{}/objects.npy"], "is not a readable NumPy file"),
            (["x=@{}/empty.npy"], "is not a readable NumPy file"),
            (["x=@{}/inputs.npz"], "an archive holds several arrays"),
        ],
    )
    def test_wrong_inputs(self, model: Path, folder: Path, inputs: list[str], message: str) -> None:
        texts = [text.format(folder) for text in inputs]
        assert message in fails("run", model, *texts, "--eager")

    @pytest.mark.parametrize("outputs", [["y.txt"], ["a.npy", "b.npy"], ["a.npz", "b.npy"]])
    def test_wrong_outputs(self, model: Path, outputs: list[str]) -> None:
        options = [word for path in outputs for word in ("--out", path)]
        assert "--out" in fails("run", model, *options, "--eager", code=2)


class TestElements:
    @staticmethod
    def read(text: str, kind: str) -> np.ndarray:
        signature = Signature((Argument("x", parse_type(kind)),), ())
        return read_inputs([f"x={text}"], signature)[0].host()

    @pytest.mark.parametrize(
        ("text", "kind", "expected"),
        [
            ("1,2,3", "3xi8", np.array([1, 2, 3], np.int8)),
            ("7", "2x2xui16", np.full((2, 2), 7, np.uint16)),
            ("0xff", "ui8", np.array(255, np.uint8)),
            ("9223372036854775807", "i64", np.array(2**63 - 1, np.int64)),
            ("true,0,1,false", "4xi1", np.array([True, False, True, False])),
            ("nan,-inf,1e-3", "3xf32", np.array([np.nan, -np.inf, 1e-3], np.float32)),
            ("1.5", "bf16", np.array(1.5, dtypes.bfloat16)),
            ("-Infinity,NaN", "2xf64", np.array([-np.inf, np.nan])),
            ("1+2j,3", "2xcomplex<f32>", np.array([1 + 2j, 3], np.complex64)),
            ("", "0x3xf32", np.zeros((0, 3), np.float32)),
            ("zeros:", "3xf16", np.zeros(3, np.float16)),
        ],
    )
    def test_elements(self, text: str, kind: str, expected: np.ndarray) -> None:
        found = self.read(text, kind)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize(
        ("text", "kind", "error"),
        [
            ("300", "i8", ParameterError),
            ("-1", "ui8", ParameterError),
            ("1.5", "i32", ParameterError),
            ("2", "i1", ParameterError),
            ("1j", "f32", ParameterError),
            ("1e400", "f64", ParameterError),
            ("1e39", "f32", ParameterError),
            ("1e400+1j", "complex<f64>", ParameterError),
            ("1,2", "3xf32", ShapeError),
            ("", "3xf32", ShapeError),
            ("f32=1", "f64", DTypeError),
        ],
    )
    def test_what_does_not_fit(self, text: str, kind: str, error: type[AxirError]) -> None:
        with pytest.raises(error):
            self.read(text, kind)

    def test_names_that_shells_and_people_confuse(self, tmp_path: Path) -> None:
        kind = parse_type("f32")
        names = ["d['x=y']", "x", "x", "a.b", "a['b']"]
        signature = Signature(tuple(Argument(name, kind) for name in names), ())
        texts = ["d['x=y']=1", "x=2", "x_1=3", "a.b=4", "5"]
        assert [float(v.host()) for v in read_inputs(texts, signature)] == [1, 2, 3, 4, 5]
        with pytest.raises(ParameterError, match=r"x_1: f32, a\.b: f32, a\.b_1: f32"):
            read_inputs([], signature)

    def test_archives_may_hold_more_than_is_taken(self, tmp_path: Path) -> None:
        signature = Signature(tuple(Argument(n, parse_type("f32")) for n in ("x", "y")), ())
        path = tmp_path / "results.npz"
        np.savez(path, x=np.float32(1), yy=np.float32(2))
        assert [float(v.host()) for v in read_inputs([f"@{path}", "y=3"], signature)] == [1, 3]
        for fills_missing in (False, True):
            with pytest.raises(ParameterError, match="value for y.(.|\n)*also holds 'yy'"):
                read_inputs([f"@{path}"], signature, fills_missing=fills_missing)

    def test_bfloat16_files(self, tmp_path: Path) -> None:
        values = np.array([1, 2.5], dtypes.bfloat16)
        np.save(tmp_path / "b.npy", values)
        np.testing.assert_array_equal(self.read(f"@{tmp_path / 'b.npy'}", "2xbf16"), values)

    def test_random_numbers_are_the_same_every_time(self) -> None:
        first = self.read("random:", "4xf32")
        np.testing.assert_array_equal(first, self.read("random:4xf32", "4xf32"))
        assert len(set(first.tolist())) == 4


class TestTheRest:
    def test_bench(self, program: Path) -> None:
        found = json.loads(succeeds("bench", program, "--repeat", 5, "--warm-up", 1, "--json"))
        assert found["calls"] == 5
        assert 0 < found["seconds"]["fastest"] <= found["seconds"]["median"]
        assert "median" in succeeds("bench", program, "--repeat", 3)

    def test_bench_with_dispatches(self, folder: Path, program: Path) -> None:
        arguments = ("bench", folder / "model.mlir", "--repeat", 2, "--profile")
        found = json.loads(succeeds(*arguments, "--json"))["dispatches"]
        assert found
        assert all(d["times"] == 1 and d["seconds"] > 0 for d in found)
        assert found == sorted(found, key=lambda d: -d["seconds"])
        assert found[0]["name"] in succeeds(*arguments)
        assert "compiled already" in fails("bench", program, "--profile")
        assert "stdin is not for" in fails("bench", "-", "--profile")

    def test_info(self) -> None:
        facts = json.loads(succeeds("info", "--json"))
        assert facts["versions"]["axir"] == axir.__version__
        assert facts["devices"]["cpu"] == "cpu:0 (cpu)"
        assert facts["options"]["axir_opt_level"] == 2
        assert facts["cache"]["folder"] in succeeds("info")

    def test_cache(self, tmp_path: Path) -> None:
        with axir.config(axir_cache_dir=str(tmp_path / "cache")):
            assert succeeds("cache") == f"{tmp_path / 'cache'}: 0 programs, 0 bytes\n"
            (tmp_path / "cache").mkdir()
            (tmp_path / "cache" / "0123.program").write_bytes(b"12345")
            (tmp_path / "cache" / "mine.txt").write_text("kept")
            assert "1 programs, 5 bytes" in succeeds("cache", "show")
            assert succeeds("cache", "clear") == ""
            assert [p.name for p in (tmp_path / "cache").iterdir()] == ["mine.txt"]

    def test_passes(self) -> None:
        text = succeeds("passes")
        assert all(f"{name} " in text for name in pass_names())
        assert "options: axis_size=…, in_axes=0, out_axes=0" in text
        assert "Algorithm:" in succeeds("passes", "vmap")
        assert "there is no pass named 'bogus'" in fails("passes", "bogus")

    def test_faults_of_our_own_show_no_traceback_unless_asked(self, monkeypatch: Any) -> None:
        def broken() -> None:
            raise KeyError("inner")

        command = click.Command("broken", callback=broken)
        monkeypatch.setitem(cli.commands, "broken", command)
        result = axir_command("broken")
        assert result.exit_code == 1
        assert "error: KeyError: 'inner'" in result.stderr
        assert "Traceback" not in result.stderr
        assert "Traceback" in axir_command("-vv", "broken").stderr

    def test_a_verb_starts_without_the_files_of_others(self, model: Path) -> None:
        code = f"""if True:
            import sys
            from axir.cli import cli
            cli(["opt", {str(model)!r}, "-p", "jvp"], standalone_mode=False)
            print(*(name for name in sys.modules if name.startswith("axir.cli.")), file=sys.stderr)
            """
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stderr
        assert "axir.cli.opt" in found
        assert not any(f"axir.cli.{name}" in found for name in ("compile", "bench", "inspect"))

    def test_colour_only_where_it_is_wanted(self, monkeypatch: Any) -> None:
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        runner = CliRunner()
        coloured = runner.invoke(cli, ["opt", "missing.mlir"], color=True).stderr
        assert "\x1b[31m" in coloured
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in runner.invoke(cli, ["opt", "missing.mlir"], color=True).stderr


class TestProcess:
    """Behaviour that needs a separate process."""

    @staticmethod
    def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "AXIR": f"{sys.executable} -m axir"}
        return subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def test_module_is_the_command(self, folder: Path, model: Path) -> None:
        command = "$AXIR opt model.mlir -p jvp | $AXIR run - random: random: ones: ones: --eager"
        finished = self.run(command, folder)
        assert finished.returncode == 0, finished.stderr
        assert finished.stderr == ""
        assert "dresult: 2x1xf32 =" in finished.stdout

    def test_errors_of_mlir_are_not_dumped(self, folder: Path) -> None:
        finished = self.run("echo 'func.func @main(' | $AXIR opt -; echo code $?", folder)
        assert finished.stdout == "code 1\n"
        assert finished.stderr.startswith("error: <stdin> is not valid MLIR")
        assert finished.stderr.splitlines()[1:4] == [
            "func.func @main(",
            "                ^",
            "  at <stdin>:1:17",
        ]
        assert len(finished.stderr.splitlines()) == 5

    def test_broken_pipes_are_quiet(self, folder: Path, model: Path) -> None:
        finished = self.run("$AXIR passes | head -c 10 > /dev/null", folder)
        assert finished.stderr == ""

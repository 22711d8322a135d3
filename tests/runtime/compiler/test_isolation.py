"""The compiler in a helper process: the error of a crash, and the life of a helper."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from axir.dialect.core.config import config
from axir.dialect.core.errors import ParameterError, ParseError
from axir.dialect.text import parsing
from axir.runtime import CompileError, CompilerCrashError, Target, compile_module
from axir.runtime.compiler import compilation
from axir.runtime.compiler.diagnostics import CompilerEndedError
from axir.runtime.compiler.helpers import HelperPool, HelperStartError, helpers
from axir.runtime.compiler.target import process_flags

ADD = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
# The compiler divides by zero.
EMPTY_PRODUCT = """
func.func @main(%x: tensor<4x0xf32>, %y: tensor<0x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot %x, %y : (tensor<4x0xf32>, tensor<0x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
"""
CHOLESKY = """
func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = "stablehlo.cholesky"(%x) {lower = true} : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}
"""
# A loop with results that the compiler loses track of: it crashes, in varying ways.
LOOP = """
func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<i32>) {
  %inf = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%a = %x, %b = %inf, %n = %zero) : tensor<f32>, tensor<f32>, tensor<i32>
  cond {
    %abs = stablehlo.abs %b : tensor<f32>
    %least = stablehlo.constant dense<1.0e-6> : tensor<f32>
    %1 = stablehlo.compare GT, %abs, %least, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %most = stablehlo.constant dense<50> : tensor<i32>
    %2 = stablehlo.compare LT, %n, %most, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.and %1, %2 : tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %two = stablehlo.constant dense<2.0> : tensor<f32>
    %1 = stablehlo.multiply %a, %a : tensor<f32>
    %2 = stablehlo.subtract %1, %two : tensor<f32>
    %3 = stablehlo.multiply %two, %a : tensor<f32>
    %4 = stablehlo.divide %2, %3 : tensor<f32>
    %5 = stablehlo.subtract %a, %4 : tensor<f32>
    %6 = stablehlo.add %n, %one : tensor<i32>
    stablehlo.return %5, %4, %6 : tensor<f32>, tensor<f32>, tensor<i32>
  }
  %1 = util.optimization_barrier %0#2 : tensor<i32>
  %2 = util.optimization_barrier %0#1 : tensor<f32>
  %3 = util.optimization_barrier %0#0 : tensor<f32>
  return %3, %2, %1 : tensor<f32>, tensor<f32>, tensor<i32>
}
"""


@pytest.fixture
def pool():
    pool = HelperPool(limit=1)
    yield pool
    pool.close()


@pytest.fixture
def no_cache(tmp_path):
    config.update("axir_cache_dir", str(tmp_path))
    return tmp_path


def compile_in(pool: HelperPool, text: str, report=lambda text: None) -> bytes | None:
    target = Target(opt_level=0)
    return pool.compile(text.encode(), target.flags() + compilation.linker_flags(), report)


def test_both_modes_give_the_same_binary_and_the_same_diagnostics(no_cache):
    found = []
    for mode in ("never", "always"):
        config.update("axir_isolate_compiler", mode)
        config.update("axir_cache_dir", str(no_cache / mode))
        with pytest.raises(CompileError, match="cholesky") as caught:
            compile_module(CHOLESKY, Target())
        found.append((compile_module(ADD, Target()), caught.value.diagnostics, caught.value.where))
    assert found[0] == found[1]


def test_a_crash_is_an_error_that_names_the_signal_the_line_and_the_reproducer(no_cache):
    with pytest.raises(CompilerCrashError, match=r"crashed \(SIGFPE\): it gave no") as caught:
        compile_module(EMPTY_PRODUCT, Target(), "product")
    assert "test_isolation.py" in caught.value.where
    assert "axir_on_compile_failure='evaluate'" in caught.value.way_out
    (module,) = (no_cache / "failures").glob("failed-product-*.mlir")
    assert str(module) in str(caught.value)
    assert module.read_text() == EMPTY_PRODUCT
    assert len(compile_module(ADD, Target())) > 1000


def test_a_compiler_that_runs_wild_ends_no_more_than_itself(no_cache):
    with pytest.raises(CompileError, match="The module is saved as"):
        compile_module(LOOP, Target(), "loop")
    assert len(compile_module(ADD, Target())) > 1000


def test_the_last_lines_of_the_compiler_are_in_the_error(no_cache, monkeypatch):
    def crash(*_):
        raise CompilerEndedError("SIGABRT", "a\n\nLLVM ERROR: out of memory\nAllocation failed\nb")

    monkeypatch.setattr(helpers, "compile", crash)
    with pytest.raises(CompilerCrashError) as caught:
        compile_module(ADD, Target())
    assert "(SIGABRT): LLVM ERROR: out of memory\n  then: Allocation failed\n  then: b\n" in str(
        caught.value
    )


def test_after_a_crash_the_flags_without_optimizations_are_tried(no_cache, monkeypatch):
    run = helpers.compile

    def crash_optimized(source, flags, *rest):
        if "--iree-opt-level=O2" in flags:
            raise CompilerEndedError("SIGSEGV", "")
        return run(source, flags, *rest)

    monkeypatch.setattr(helpers, "compile", crash_optimized)
    assert len(compile_module(ADD, Target())) > 1000


def test_flags_that_the_compiler_does_not_know_are_refused_in_both_modes(pool):
    def run(flags, report):
        return compilation._invoke("compile", ADD.encode(), flags, report, True)

    for mode in ("never", "always"):
        config.update("axir_isolate_compiler", mode)
        with pytest.raises(ParameterError, match="does not accept the flags: .*no-such-flag"):
            compilation._run_compiler(run, ("--no-such-flag",), Target())


def test_without_a_python_to_start_the_compiler_runs_in_this_process(no_cache, monkeypatch, caplog):
    def fail():
        raise HelperStartError("no Python")

    monkeypatch.setattr("axir.runtime.compiler.helpers._command", fail)
    monkeypatch.setattr(compilation, "helpers", HelperPool())
    assert len(compile_module(ADD, Target())) > 1000
    assert "compiling in this process, for no helper process starts: no Python" in caplog.text
    config.update("axir_isolate_compiler", "always")
    with pytest.raises(CompileError, match="helper process does not start: no Python") as caught:
        compile_module(CHOLESKY, Target())
    assert "'never' to compile in this process" in caught.value.way_out


def test_a_helper_serves_until_something_goes_wrong(pool):
    assert compile_in(pool, ADD) == compile_in(pool, ADD)
    (first,) = pool._helpers
    with pytest.raises(KeyboardInterrupt):
        compile_in(pool, CHOLESKY, interrupt)
    assert not pool._helpers  # its answer was still to come
    assert compile_in(pool, ADD)
    (second,) = pool._helpers
    assert second is not first
    second.kill()  # as the system does when memory runs out
    assert compile_in(pool, ADD)
    assert compile_in(pool, CHOLESKY) is None
    assert not pool._helpers  # the failure may have damaged it
    for helper in (first, second):
        with pytest.raises(ChildProcessError):
            os.waitpid(helper._process.pid, 0)  # no zombie


def interrupt(_: str) -> None:
    raise KeyboardInterrupt


def test_a_helper_follows_the_working_directory(pool, tmp_path, monkeypatch):
    compile_in(pool, ADD)
    (helper,) = pool._helpers
    monkeypatch.chdir(tmp_path)
    compile_in(pool, ADD)
    assert os.readlink(f"/proc/{helper._process.pid}/cwd") == str(tmp_path)


def test_threads_share_the_helpers_that_there_may_be(pool):
    threads = [threading.Thread(target=compile_in, args=(pool, ADD)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (helper,) = pool._helpers
    assert helper.count == 3


def test_damaged_bytecode_is_an_error(monkeypatch):
    assert compilation._try_to_read(b"ML\xefR damaged") is None  # an error, no crash
    monkeypatch.setattr(parsing, "_trial", lambda bytecode: "SIGSEGV")
    with pytest.raises(ParseError, match=r"x is damaged bytecode: reading it crashes \(SIGSEGV\)"):
        parsing.parse_module(b"ML\xefR damaged", "x")


PROGRAM = """
print("main runs")
import os, pathlib, tempfile, time
from axir.dialect.text import parsing
from axir.dialect.core.config import config
config.update("axir_cache_dir", tempfile.mkdtemp())
from axir.runtime import Target, compile_module
from axir.runtime.compiler.helpers import helpers
text = "func.func @main(%x: tensor<NxT>) -> tensor<NxT> {
text += "  %0 = stablehlo.add %x, %x : tensor<NxT> return %0 : tensor<NxT> }"
def build(size):
    compile_module(text.replace("N", str(size)).replace("T", "f32"), Target())
    (helper,) = helpers._helpers
    return helper._process.pid
pid = build(2)
""".replace("tensor<NxT> {\n", 'tensor<NxT> {"\n')


def start_python(body: str, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", *options, "-c", PROGRAM + textwrap.dedent(body)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_a_helper_is_bare_in_its_own_session_and_ends_with_its_program():
    program = start_python(
        """
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        print("IREECompiler" in maps, "numpy" in maps, "optree" in maps)
        print(os.getsid(pid) == pid, os.getsid(pid) == os.getsid(0))
        child = os.fork()
        if child == 0:
            print(build(3) != pid, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(build(4) == pid, pid)
        """,
        "-W",
        "ignore:This process:DeprecationWarning",
    )
    output, errors = program.communicate(timeout=120)
    assert errors == ""
    *lines, last = output.splitlines()
    assert lines == ["main runs", "True False False", "True False", "True"]
    same, pid = last.split()
    assert same == "True"
    assert not Path(f"/proc/{pid}").exists()


def test_a_helper_ends_when_its_program_is_killed():
    program = start_python("print(pid, flush=True); time.sleep(600)")
    program.stdout.readline()
    helper = Path(f"/proc/{int(program.stdout.readline())}")
    assert helper.exists()
    program.kill()
    program.communicate()
    deadline = time.monotonic() + 30
    while helper.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not helper.exists()


def test_programs_for_vulkan_are_compiled_in_helpers_always(no_cache, monkeypatch):
    pool = HelperPool(limit=1)
    monkeypatch.setattr(compilation, "helpers", pool)
    config.update("axir_isolate_compiler", "never")
    assert compile_module(ADD, Target("vulkan"))
    (helper,) = pool._helpers
    assert "--iree-hal-memoization=false" in helper.process_flags
    pool.close()


def test_a_helper_is_prepared_once_and_dismissed_where_it_is_not_needed(pool):
    pool._limit = 2
    pool.prepare()
    (first,) = pool._helpers
    pool.prepare()
    assert pool._helpers == {first}
    pool.dismiss()
    assert not pool._helpers
    pool.prepare()
    assert not pool._helpers


def test_a_prepared_helper_serves_and_stays(pool):
    pool._limit = 2
    pool.prepare()
    (helper,) = pool._helpers
    assert pool.compile(ADD.encode(), Target("vmvx").flags(), print)
    pool.dismiss()
    assert pool._helpers == {helper}
    assert pool._idle == [helper]


def test_helpers_compile_with_flags_of_their_processes(pool):
    virtual, cpu = Target("vmvx").flags(), Target().flags()
    pool._limit = 2
    assert pool._take_idle(None) is None
    helper = pool._add()
    helper.process_flags = process_flags(virtual)
    pool._idle.append(helper)
    assert pool._take_idle(process_flags(cpu)) is None
    assert pool._take_idle(process_flags(virtual)) is helper
    pool._limit = 1
    pool._idle.append(helper)
    assert pool._take_idle(process_flags(cpu)) is None  # the limit allows another one
    assert not pool._helpers

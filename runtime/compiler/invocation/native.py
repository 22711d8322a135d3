"""Kernels as object files, without IREE's compiler: MLIR in, machine code out.

A kernel is a function over memory (`stream.binding`). MLIR's passes, which IREE's library contains,
lower it to LLVM IR, and llvmlite compiles that to machine code: 10 ms where IREE takes 100, because
no dispatches have to be formed. llvmlite is loaded only in the process that calls this, usually a
helper process. Elsewhere: making kernels (`passes/fuse/fuse_programs.py`), and loading object
files (`runtime/native/`).
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import TYPE_CHECKING

from iree.compiler import ir
from iree.compiler.passmanager import PassManager

from .compiler_library import ctypes_dl
from .kept_code import kept_code
from .kernel_code import divide_vectors, freeze_conversions, keep_functions, load_addresses_late
from .llvm_text import for_older_llvm
from .native_entry import entry_text
from .product_function import called_products, product_function
from .roundings import round_products

if TYPE_CHECKING:
    import llvmlite.binding

# The pipeline for a kernel's function and each formula that it calls: loops become blocks and
# branches, vectors become LLVM's vectors, and mathematical functions become IREE's approximations
# of them.
_PASSES = (
    "builtin.module(func.func(iree-codegen-math-transform,expand-strided-metadata,"
    "canonicalize,cse,convert-scf-to-cf,canonicalize),"
    "iree-convert-to-llvm,reconcile-unrealized-casts,canonicalize,cse,"
    "llvm.func(iree-codegen-add-fast-math-flags),strip-debuginfo)"
)
_COMPILATIONS_PER_CONTEXT = 200
_SUBSPAN = re.compile(r"stream\.binding\.subspan (%\w+)\[(%\w+)\] : !stream\.binding -> ")
_NEXT_FUNCTION = re.compile(r"\n(?=func\.func )")
# The head of a function over bindings.
_HEAD = re.compile(r"func\.func @(\w+)\(([^)]*!stream\.binding[^)]*)\)")
_BINDING = re.compile(r"(%\w+): !stream\.binding")
_WORKGROUP = "stream.dispatch.workgroup.id"
_ENTRY = "entry"
# The passes that are left out for code that is soon replaced: loop strength reduction, and
# scheduling of instructions, which processors do themselves. They take 40 % of LLVM's time, and few
# kernels gain; sorts take half as long again without the former.
_IN_HASTE = ("-disable-lsr=true", "-disable-post-ra=true", "-enable-misched=false")
_AT_LEISURE = ("-disable-lsr=false", "-disable-post-ra=false", "-enable-misched=true")


@cache
def _how() -> bytes:
    """Returns this module's text, as a part of the key: it decides the machine code of LLVM IR."""
    with contextlib.suppress(OSError), open(__file__, "rb") as file:
        return file.read()
    return b""


# A kernel that tests whether llvmlite compiles at all, when another kernel does not compile. It has
# an inexact number, a nan, and an LLVM intrinsic with its attributes.
_TRIAL = """
func.func @program_0(%arg0: !stream.binding, %arg1: !stream.binding) {
  %zero = arith.constant 0 : index
  %tenth = arith.constant 0.1 : f32
  %infinity = arith.constant 0x7F800000 : f32
  %0 = stream.binding.subspan %arg0[%zero] : !stream.binding -> memref<f32>
  %1 = stream.binding.subspan %arg1[%zero] : !stream.binding -> memref<f32>
  %2 = memref.load %0[] : memref<f32>
  %3 = math.fma %2, %tenth, %infinity : f32
  memref.store %3, %1[] : memref<f32>
  return
}
"""
# The exceptions of llvmlite and the compiler; the last two if a function is missing or has another
# signature.
_FAILURES = (ir.MLIRError, ValueError, RuntimeError, AttributeError, TypeError)


class NativeUnavailableError(Exception):
    """No machine code can be made here: llvmlite is missing, or does not fit."""


class NativeCompiler:
    """Compiles kernels to machine code for this machine.

    Args:
        has_process: Whether LLVM has no other user in this process; LLVM's options are
            process-wide.

    Attributes:
        is_prepared: Whether `prepare` has nothing left to do.

    Raises:
        NativeUnavailableError: llvmlite is missing.
    """

    def __init__(self, *, has_process: bool = False) -> None:
        try:
            import llvmlite.binding as llvm  # late: few processes need it, and it takes 40 ms
        except (ImportError, OSError) as error:
            raise NativeUnavailableError(f"llvmlite cannot be loaded: {error}") from error
        self._llvm = llvm
        self._has_process = has_process
        self.is_prepared = False
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._count = 0
        self._libraries: dict[str, bytes] = {}
        self._context: ir.Context | None = None
        self._pipeline: PassManager | None = None

    def compile(
        self, kernels: bytes, is_quick: bool, report: Callable[[str], None]
    ) -> tuple[bytes, ...] | None:
        """Makes an object file of kernels.

        Args:
            kernels: The text of functions over bindings, and of those that they call.
            is_quick: Whether code is soon replaced by better one: it may then be slower.
            report: Called with each error.

        Returns:
            The object file, which exports the kernels, empty if all are declarations; the object
            file of the function that Python calls; and the object files of the functions that the
            kernels call. None after an error.

        Raises:
            NativeUnavailableError: llvmlite does not even read the LLVM IR of a kernel that is
                known to be right.
        """
        try:
            return self._compile(kernels.decode(), is_quick)
        except _FAILURES as error:
            self._try()
            report(str(error))
            return None

    def compile_library(self, text: bytes, report: Callable[[str], None]) -> bytes | None:
        """Makes an object file of LLVM IR; raises as `compile` does."""
        try:
            return self._object(text)
        except _FAILURES as error:
            self._try()
            report(str(error))
            return None

    def prepare(self, is_idle: Callable[[], bool]) -> None:
        """Compiles code that many programs need ahead of time, until a request arrives."""
        with contextlib.suppress(*_FAILURES):  # said where it is needed
            for name in (_ENTRY, "f32", "f64"):
                if not is_idle():
                    return
                self._library(name)
        self.is_prepared = True

    def _compile(self, kernels: str, is_quick: bool = False) -> tuple[bytes, ...]:
        made = b"" if _are_declared(kernels) else self._code_of(kernels, is_quick)
        return made, *map(self._library, (_ENTRY, *called_products(kernels)))

    def _code_of(self, kernels: str, is_quick: bool) -> bytes:
        text = self._llvm_ir(kernels)
        if not (is_quick and self._has_process):
            return self._object(text)
        self._set(_IN_HASTE)
        try:
            return self._object(text)
        finally:
            self._set(_AT_LEISURE)

    def _set(self, options: Iterable[str]) -> None:
        for option in options:
            self._llvm.set_option("", option)

    def _library(self, name: str) -> bytes:
        """Returns the object file of a function that all programs may share, made once."""
        if name not in self._libraries:
            is_entry = name == _ENTRY
            text = entry_text(self._architecture) if is_entry else self._product_function(name)
            source = text + self._target.encode() + self._llvm_version.encode() + _how()
            self._libraries[name] = kept_code(name, source, lambda: self._object(text))
        return self._libraries[name]

    def _product_function(self, element: str) -> bytes:
        return product_function(element, self._vector_bytes)

    def _try(self) -> None:
        """Raises NativeUnavailableError if no kernel is compiled at all."""
        try:
            self._compile(_TRIAL)
        except _FAILURES as error:
            version = getattr(sys.modules["llvmlite"], "__version__", "of some version")
            raise NativeUnavailableError(
                f"llvmlite {version} does not fit IREE's MLIR: {error}"
            ) from error

    def _llvm_ir(self, kernel: str) -> bytes:
        if self._context is None or self._count >= _COMPILATIONS_PER_CONTEXT:
            self._begin()
        assert self._context is not None
        assert self._pipeline is not None
        self._count += 1
        layouts, functions = _over_memory(kernel)
        attributes = f"attributes {{hal.executable.target = {self._target}}}"
        with self._context:
            module = ir.Module.parse(f"{layouts}\nmodule {attributes} {{\n{functions}\n}}")
        self._pipeline.run(module.operation)
        divide_vectors(module.operation)
        round_products(module.operation)
        freeze_conversions(module.operation)
        keep_functions(module.operation)
        load_addresses_late(module.operation)
        return for_older_llvm(_translated(module.operation))

    def _begin(self) -> None:
        # A context keeps types and attributes until it ends.
        self._context, self._count = ir.Context(), 0
        self._context.enable_multithreading(False)
        self._pipeline = PassManager.parse(_PASSES, context=self._context)
        self._pipeline.enable_verifier(False)

    def _object(self, text: bytes) -> bytes:
        llvm = self._llvm
        module = llvm.parse_assembly(text.decode())
        # Kernels are already optimized by axir: more of LLVM's passes take longer and gain nothing.
        builder = llvm.create_pass_builder(self._machine, llvm.create_pipeline_tuning_options())
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.run(module, builder)
        return self._machine.emit_object(module)

    @cached_property
    def _machine(self) -> llvmlite.binding.TargetMachine:
        llvm = self._llvm
        return llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=2,
            reloc="pic",
            codemodel="small",
        )

    @cached_property
    def _llvm_version(self) -> str:
        numbers = ".".join(map(str, self._llvm.llvm_version_info))
        return f"LLVM {numbers}, llvmlite {sys.modules['llvmlite'].__version__}"

    @cached_property
    def _architecture(self) -> str:
        return self._llvm.get_default_triple().partition("-")[0]

    @cached_property
    def _vector_bytes(self) -> int:
        features = self._llvm.get_host_cpu_features()
        return 64 if features.get("avx512f") else 32 if features.get("avx2") else 16

    @cached_property
    def _target(self) -> str:
        """The machine, as IREE's passes want to know it."""
        llvm = self._llvm
        features = llvm.get_host_cpu_features()
        triple = llvm.get_default_triple()
        layout = str(self._machine.target_data)
        return (
            f'#hal.executable.target<"llvm-cpu", "system-elf-{self._architecture}", '
            f'{{cpu = "{llvm.get_host_cpu_name()}", cpu_features = "{features.flatten()}", '
            f'data_layout = "{layout}", native_vector_size = {self._vector_bytes} : i64, '
            f'target_triple = "{triple}"}}>'
        )


def _are_declared(kernels: str) -> bool:
    """Tells whether libraries define all kernels."""
    functions = filter(None, _NEXT_FUNCTION.split(kernels))
    return all(x.startswith("func.func private") for x in functions)


def _over_memory(kernels: str) -> tuple[str, str]:
    """Returns kernels that find their memory in the arguments of IREE's runtime.

    The text of the struct types that they name comes before them, one for each number of bindings.
    """
    counts: set[int] = set()

    def with_interface(function: str) -> str:
        head = _HEAD.match(function)
        if head is None:
            return function
        body = function[head.end() :]
        names = _BINDING.findall(head.group(2))
        numbers = {name: number for number, name in enumerate(names)}
        counts.add(len(names))

        def subspan(match: re.Match[str]) -> str:
            return (
                f"hal.interface.binding.subspan layout(#layout_{len(names)}) "
                f"binding({numbers[match.group(1)]}) offset({match.group(2)}) : "
            )

        body = _SUBSPAN.sub(subspan, body).replace(_WORKGROUP, "hal.interface.workgroup.id")
        return f"func.func @{head.group(1)}(){body}"

    functions = "\n".join(map(with_interface, _NEXT_FUNCTION.split(kernels)))
    return "\n".join(map(_layout, sorted(counts))), functions


def _layout(count: int) -> str:
    bindings = ", ".join(["#hal.pipeline.binding<storage_buffer, Indirect>"] * count)
    return f"#layout_{count} = #hal.pipeline.layout<bindings = [{bindings}], flags = Indirect>"


class _Operation(ctypes.Structure):
    _fields_ = [("pointer", ctypes.c_void_p)]


@cache
def _translate() -> ctypes._NamedFuncPointer:
    function = ctypes_dl._dylib.mlirTranslateModuleToLLVMIRToString
    function.restype, function.argtypes = ctypes.c_void_p, [_Operation]
    return function


def _translated(module: ir.Operation) -> bytes:
    """Returns the LLVM IR of a module of the LLVM dialect."""
    python = ctypes.pythonapi
    name_of, pointer_of = python.PyCapsule_GetName, python.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = module._CAPIPtr
    text = _translate()(_Operation(pointer_of(capsule, name_of(capsule))))
    if not text:
        raise ValueError("MLIR makes no LLVM IR of this kernel")
    try:
        return ctypes.string_at(text)
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))

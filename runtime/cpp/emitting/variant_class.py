"""The class of a program for one kind of CPU: its kernels, and the steps of its functions.

Elsewhere: the part that all kinds share (`program_class.py`), the text of single steps
(`function_body.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from axir.runtime.cpp.program.host_program import MEMORY
from axir.runtime.cpp.program.interface import MACROS, Compiled, Interface, Kept, Method, Variant

from .function_body import FunctionBody, global_name
from .names import declaration, identifier, quoted
from .program_class import aligned_pointers, overridden, pointers
from .row_loop import null_checks, staging, state_changes
from .statements import number_type
from .types import byte_size


class VariantClass:
    """Writes the class.

    Args:
        interface: The model's interface.
        variant: The program and its kernels.
    """

    def __init__(self, interface: Interface, variant: Variant):
        self.interface = interface
        self.variant = variant
        self.program = variant.program
        self.name = f"Model::Program::For_{variant.label}"
        self.workspace = 0

    def externals(self) -> Iterator[str]:
        """Yields the declarations of external symbols: kernels and constants."""
        if self.variant.query is not None:
            yield f"#if !({MACROS[self.variant.architecture]})"
            kind = self.variant.architecture
            yield f'#error "these kernels are for CPUs of another kind: {kind}"'
            yield "#endif"
            yield "// The kernels, in the object file."
            yield f'extern "C" const axir::abi::Header* const* {self.variant.query}('
            yield "    std::uint32_t max_version, const axir::abi::Environment* environment);"
        for number in range(len(self.program.constants)):
            yield f"extern const std::uint64_t {self.interface.name}_constants_{number}[];"
        yield ""

    def lines(self) -> Iterator[str]:
        """Yields the class and its functions."""
        functions = [line for m in self.interface.methods for line in self.function(m)]
        initializers = list(self.initializers())
        yield "namespace {"
        yield ""
        yield from self.kernel_table()
        yield "}  // namespace"
        yield ""
        yield from self.declaration()
        yield from self.opening()
        yield from self.making()
        yield from initializers
        yield from functions

    def kernel_table(self) -> Iterator[str]:
        """Yields names and sizes of the kernels."""
        kernels = self.program.kernels
        if not kernels:
            return
        yield "namespace kernel {"
        yield ""
        yield "enum Number : unsigned {"
        for found in kernels:
            yield f"  {identifier(found.label)},"
        yield "  count"
        yield "};"
        yield ""
        yield "constexpr const char* names[count] = {"
        for found in kernels:
            yield f'    "{found.name}",'
        yield "};"
        yield ""
        yield "constexpr const char* lines[count] = {"
        for found in kernels:
            yield f"    {quoted(os.path.basename(found.where or ''))},"
        yield "};"
        yield ""
        yield "constexpr std::uint32_t workgroups[count][3] = {"
        for found in kernels:
            yield f"    {{{', '.join(map(str, found.workgroups))}}},"
        yield "};"
        yield ""
        yield "}  // namespace kernel"
        yield ""

    def declaration(self) -> Iterator[str]:
        """Yields the class."""
        yield f"class {self.name} final : public Model::Program {{"
        yield " public:"
        yield "  using Program::Program;"
        yield f'  const char* target_cpu() const override {{ return "{self.variant.cpu}"; }}'
        for method in self.interface.methods:
            for start, parameters in overridden(method):
                yield from declaration(f"axir::Code {start}(", parameters, ") override;", 2)
        yield ""
        yield " protected:"
        yield "  axir::Status open() override;"
        yield ""
        yield " private:"
        if self.program.initializers:
            yield "  axir::Code initialize();"
            yield ""
        if self.program.kernels:
            yield "  axir::Kernel kernels_[kernel::count];"
        for name, kind in self.program.globals.items():
            type_ = "axir::Memory" if kind == MEMORY else number_type(kind)
            yield f"  {type_} {global_name(name)}{{}};"
        if self.workspace:
            yield "  axir::Buffer workspace_;"
        yield "};"
        yield ""

    def opening(self) -> Iterator[str]:
        """Yields the code that finds the kernels."""
        yield f"axir::Status {self.name}::open() {{"
        yield "  axir::Status status;"
        if self.variant.query is not None:
            yield "  const axir::abi::Library* library = nullptr;"
            yield f"  status = axir::open_library(&{self.variant.query}, library);"
            yield "  if (!status.ok()) return status;"
            yield "  status = prepare_kernels(*library, kernels_, kernel::names,"
            yield "                           kernel::lines, kernel::workgroups, kernel::count);"
            yield "  if (!status.ok()) return status;"
        if self.workspace:
            yield f"  if (!(status = take(workspace_, {self.workspace})).ok()) return status;"
        if self.program.initializers:
            yield "  if (const axir::Code code = initialize(); code != axir::Code::ok) {"
            yield '    return failure(code, "the constructor");'
            yield "  }"
        yield "  return status;"
        yield "}"
        yield ""

    def making(self) -> Iterator[str]:
        """Yields the code that makes an instance."""
        has_callbacks = bool(self.interface.callbacks)
        parameters = ["Callbacks callbacks"] if has_callbacks else []
        arguments = "std::move(callbacks), options" if has_callbacks else "options"
        start = f"std::unique_ptr<Model::Program> Model::Program::make_for_{self.variant.label}("
        yield from declaration(start, [*parameters, "const axir::Options& options"], ") {")
        yield f"  return std::make_unique<For_{self.variant.label}>({arguments});"
        yield "}"
        yield ""

    def initializers(self) -> Iterator[str]:
        """Yields the code that computes constants once."""
        if not self.program.initializers:
            return
        yield f"axir::Code {self.name}::initialize() {{"
        for function in self.program.initializers:
            body = FunctionBody(
                function, (), (), self.interface.callbacks, self.interface.name, True
            )
            lines = body.write()
            if function is not self.program.initializers[-1]:
                raise AssertionError("IREE joins initializers into one")
            yield from (f"  {line}" for line in lines)
        yield "}"
        yield ""

    def function(self, method: Method) -> Iterator[str]:
        """Yields the code that computes a method."""
        if method.rows:
            for program in method.programs:
                yield from self.rows_function(method, program)
            return
        (program,) = method.programs
        targets, prelude = [], []
        arrays = []
        for x in method.arguments:
            arrays.append(f"{x.name}_data")
            call = f"input({staging(method, x)}, {x.name}, {byte_size(x.type)})"
            prelude.append((f"{x.name}_data", call))
        arrays += map(self.kept_place, program.kept)
        donated = {x.donated_to: x for x in method.arguments if x.donated_to is not None}
        for index, y in enumerate(method.outputs):
            if isinstance(y, Kept):
                targets.append(self.state_target(y))
                arrays += [] if y.is_in_place else [targets[-1][0]]
            elif index in donated:
                name = donated[index].name
                targets.append((name, f"{name}_data", byte_size(y.type)))
            else:
                arrays.append(f"{y.name}_data")
                call = f"output({staging(method, y)}, {y.name}, {byte_size(y.type)})"
                prelude.append((f"{y.name}_data", call))
                targets.append((y.name, f"{y.name}_data", byte_size(y.type)))
        lines = self.body(program, arrays, targets)
        start = f"axir::Code {self.name}::call_{method.name}("
        yield from declaration(start, pointers(method), ") {")
        for name, call in prelude:
            is_used = any(name in line for line in lines)
            yield f"  {'' if is_used else '[[maybe_unused]] '}std::byte* const {name} = {call};"
        yield from null_checks([name for name, _ in prelude])
        yield ""
        for line in lines:
            if line.strip() == "return axir::Code::ok;":
                indent = line[: len(line) - len(line.lstrip())]
                yield from (f"  {indent}{x}" for x in state_changes(method, self.interface))
            yield f"  {line}"
        yield "}"
        yield ""

    def rows_function(self, method: Method, program: Compiled) -> Iterator[str]:
        """Yields the function of a fixed number of rows, with arrays that are all aligned."""
        arrays = [x.name for x in method.arguments]
        arrays += map(self.kept_place, program.kept)
        targets = []
        for x in method.outputs:
            if isinstance(x, Kept):
                targets.append(self.state_target(x))
            else:
                size = byte_size(x.type) * (program.rows if x.rows else 1)
                targets.append((x.name, x.name, size))
            arrays.append(targets[-1][0])
        lines = self.body(program, arrays, targets)
        unused = [x for x in method.arguments if not any(x.name in line for line in lines)]
        start = f"axir::Code {self.name}::call_{program.symbol}("
        yield from declaration(start, aligned_pointers(method, unused), ") {")
        yield from (f"  {line}" for line in lines)
        yield "}"
        yield ""

    def kept_place(self, x: Kept) -> str:
        """Returns the place of a parameter or a part of the state."""
        if x.is_state:
            return f"{self.interface.states[x.number].name}_.data()"
        return f"{self.interface.parameters[x.number].name}_"

    def state_target(self, x: Kept) -> tuple[str, str, int]:
        """Returns the place for the new value of a part of the state."""
        state = self.interface.states[x.number]
        place = f"{'' if x.is_in_place else 'next_'}{state.name}_.data()"
        return place, place, byte_size(state.type)

    def body(
        self, program: Compiled, arrays: Sequence[str], targets: Sequence[tuple[str, str, int]]
    ) -> list[str]:
        """Returns the steps of a program."""
        function = self.program.functions[program.symbol]
        callbacks, name = self.interface.callbacks, self.interface.name
        body = FunctionBody(function, arrays, targets, callbacks, name)
        lines = body.write()
        self.workspace = max(self.workspace, body.workspace)
        return lines

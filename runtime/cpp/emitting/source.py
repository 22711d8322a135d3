"""`NAME.cpp`: the code of a model.

What does not live here: the steps of its functions (`function_body.py`), the functions that users
call (`public_methods.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from axir.runtime.cpp.program.host_program import MEMORY, HostProgram
from axir.runtime.cpp.program.interface import (
    Compiled,
    Given,
    Interface,
    Kept,
    Method,
    Parameter,
)

from .arithmetic import number_type
from .function_body import FunctionBody, global_name
from .header import own_results
from .names import declaration, identifier
from .public_methods import write_public
from .row_loop import null_checks, result_buffer, staging, state_changes, write_row_loop
from .types import byte_size, stored_dtype, stored_shape


def write_source(
    interface: Interface, program: HostProgram, query: str | None, embedded_size: int | None
) -> str:
    """Returns the text of the source.

    Args:
        interface: What users see.
        program: What the methods do.
        query: The symbol by which the object file is asked for its kernels, if it has some.
        embedded_size: How many bytes of parameters are part of the program; None if they lie in a
            file of their own.
    """
    return "\n".join(_Source(interface, program, query, embedded_size).lines())


class _Source:
    def __init__(
        self,
        interface: Interface,
        program: HostProgram,
        query: str | None,
        embedded_size: int | None,
    ):
        self.interface = interface
        self.program = program
        self.query = query
        self.embedded_size = embedded_size
        self.workspace = 0
        self.kept = [*interface.parameters, *interface.states]
        # Parts of the state whose new values are written beside the old ones.
        beside = {
            x.number
            for method in interface.methods
            for x in method.outputs
            if isinstance(x, Kept) and not x.is_in_place
        }
        self.replaced = [x for number, x in enumerate(interface.states) if number in beside]

    def lines(self) -> Iterator[str]:
        name = self.interface.name
        functions = [line for m in self.interface.methods for line in self.function(m)]
        initializers = list(self.initializers())
        yield f"// {name}: a model written by axir. Changes to this file are lost."
        yield f'#include "{name}.hpp"'
        yield ""
        yield "#include <axir/instance.hpp>"
        yield "#include <cstring>"
        yield "#include <limits>"
        yield "#include <utility>"
        yield ""
        yield f"static_assert(AXIR_RUNTIME_VERSION == {RUNTIME_VERSION},"
        yield '              "the headers of axir are of another version than this model");'
        yield ""
        yield from self.externals()
        yield f"namespace {name} {{"
        yield "namespace {"
        yield ""
        yield from self.kernel_table()
        yield from self.parameter_table()
        yield "}  // namespace"
        yield ""
        yield from self.program_class()
        yield from initializers
        yield from functions
        yield from write_public(self.interface)
        yield f"}}  // namespace {name}"
        yield ""

    # Tables --------------------------------------------------------------------------------------

    def externals(self) -> Iterator[str]:
        name = self.interface.name
        if self.query is not None:
            yield "// The kernels, in the object file."
            yield f'extern "C" const axir::abi::Header* const* {self.query}('
            yield "    std::uint32_t max_version, const axir::abi::Environment* environment);"
        if self.embedded_size is not None and self.kept:
            yield f"extern const std::uint64_t {name}_parameters[];"
        for number in range(len(self.program.constants)):
            yield f"extern const std::uint64_t {name}_constants_{number}[];"
        yield ""

    def kernel_table(self) -> Iterator[str]:
        kernels = self.program.kernels
        if not kernels:
            return
        yield "namespace kernel {"
        yield ""
        yield "enum Number : unsigned {"
        for found in kernels:
            yield f"  {identifier(found.name)},"
        yield "  count"
        yield "};"
        yield ""
        yield "constexpr const char* names[count] = {"
        for found in kernels:
            yield f'    "{found.name}",'
        yield "};"
        yield ""
        yield "constexpr std::uint32_t workgroups[count][3] = {"
        for found in kernels:
            yield f"    {{{', '.join(map(str, found.workgroups))}}},"
        yield "};"
        yield ""
        yield "}  // namespace kernel"
        yield ""

    def parameter_table(self) -> Iterator[str]:
        for title, kept in (
            ("parameter_types", self.interface.parameters),
            ("state_types", self.interface.states),
        ):
            if kept:
                yield f"constexpr axir::ParameterType {title}[] = {{"
                yield from (f"    {_type_row(x)}," for x in kept)
                yield "};"
                yield ""

    # The class -----------------------------------------------------------------------------------

    def program_class(self) -> Iterator[str]:
        callbacks = bool(self.interface.callbacks)
        first = "Callbacks callbacks, " if callbacks else ""
        yield "class Model::Program final : public axir::Instance {"
        yield " public:"
        yield f"  explicit Program({first}const axir::Options& options)"
        rest = ", callbacks_(std::move(callbacks))" if callbacks else ""
        yield f"      : axir::Instance(options){rest}, options_(options) {{"
        yield "    options_.pool = pool();"
        yield "  }"
        yield ""
        yield "  /// Finds kernels and parameters; those of another instance, if there is one."
        yield "  axir::Status prepare(const Program* other);"
        yield "  const axir::Options& options() const { return options_; }"
        if callbacks:
            yield "  const Callbacks& callbacks() const { return callbacks_; }"
        yield ""
        for method in self.interface.methods:
            yield from declaration(f"axir::Code call_{method.name}(", _pointers(method), ");", 2)
        for method in filter(lambda m: m.rows, self.interface.methods):
            for program in method.programs:
                start = f"axir::Code call_{program.symbol}("
                yield from declaration(start, _aligned_pointers(method), ");", 2)
        yield from self.state_declarations()
        yield ""
        for method in self.interface.methods:
            for x in own_results(method):
                yield f"  axir::Buffer {result_buffer(method, x)};"
        yield ""
        yield " private:"
        yield from self.members()
        yield "};"
        yield ""
        yield from self.prepare()

    def state_declarations(self) -> Iterator[str]:
        if self.interface.states:
            yield "  axir::Status save_state(const std::string& path) const;"
            yield "  axir::Status load_state(const std::string& path);"
            for x in self.interface.states:
                yield f"  const std::byte* state_{x.name}() const {{ return {x.name}_.data(); }}"

    def members(self) -> Iterator[str]:
        if self.program.initializers:
            yield "  axir::Code initialize();"
            yield ""
        if self.interface.callbacks:
            yield "  Callbacks callbacks_;"
        yield "  axir::Options options_;"
        if self.program.kernels:
            yield "  axir::Kernel kernels_[kernel::count];"
        if self.kept:
            yield "  std::shared_ptr<axir::Parameters> parameters_;"
        for x in self.interface.parameters:
            yield f"  std::byte* {x.name}_ = nullptr;"
        names = [f"{x.name}_" for x in self.interface.states]
        names += [f"next_{x.name}_" for x in self.replaced]
        yield from (f"  axir::Buffer {name};" for name in names)
        for name, kind in self.program.globals.items():
            type_ = "axir::Memory" if kind == MEMORY else number_type(kind)
            yield f"  {type_} {global_name(name)}{{}};"
        if self.workspace:
            yield "  axir::Buffer workspace_;"
        yield from (
            f"  {'axir::Buffer' if x.rows else 'Staging'} {staging(method, x)};"
            for method in self.interface.methods
            for x in (*method.arguments, *own_results(method))
        )

    def prepare(self) -> Iterator[str]:
        yield "axir::Status Model::Program::prepare([[maybe_unused]] const Program* other) {"
        yield "  axir::Status status;"
        if self.query is not None:
            yield "  const axir::abi::Library* library = nullptr;"
            yield f"  status = axir::open_library(&{self.query}, library);"
            yield "  if (!status.ok()) return status;"
            yield "  status = prepare_kernels(*library, kernels_, kernel::names,"
            yield "                           kernel::workgroups, kernel::count);"
            yield "  if (!status.ok()) return status;"
        yield from self.prepare_parameters()
        sizes = [
            (result_buffer(m, x), byte_size(x.type) * (m.largest if x.rows else 1))
            for m in self.interface.methods
            for x in own_results(m)
        ]
        sizes += [
            (staging(m, x), byte_size(x.type) * m.largest)
            for m in self.interface.methods
            for x in (*m.arguments, *own_results(m))
            if x.rows
        ]
        if self.workspace:
            sizes.append(("workspace_", self.workspace))
        for buffer, size in sizes:
            yield f"  if (!(status = take({buffer}, {size})).ok()) return status;"
        if self.program.initializers:
            yield "  if (const axir::Code code = initialize(); code != axir::Code::ok) {"
            yield '    return failure(code, "the constructor");'
            yield "  }"
        yield "  return status;"
        yield "}"
        yield ""

    def prepare_parameters(self) -> Iterator[str]:
        if not self.kept:
            return
        name = self.interface.name
        yield "  if (other != nullptr) {"
        yield "    parameters_ = other->parameters_;"
        for x in self.interface.parameters:
            yield f"    {x.name}_ = other->{x.name}_;"
        yield "  } else {"
        yield "    parameters_ = std::make_shared<axir::Parameters>();"
        yield from self.open_parameters(name)
        yield "    if (!status.ok()) return status;"
        if self.interface.parameters:
            pointers = ", ".join(f"&{x.name}_" for x in self.interface.parameters)
            count = len(self.interface.parameters)
            yield f"    std::byte** const places[] = {{{pointers}}};"
            yield f"    for (std::size_t index = 0; index < {count}; ++index) {{"
            yield "      const axir::ParameterType& type = parameter_types[index];"
            yield "      status = parameters_->find(type, allocator(), *places[index]);"
            yield "      if (!status.ok()) return status;"
            yield "    }"
        yield "  }"
        for index, x in enumerate(self.interface.states):
            size = byte_size(x.type)
            yield f"  if (!(status = take({x.name}_, {size})).ok()) return status;"
            if x in self.replaced:
                yield f"  if (!(status = take(next_{x.name}_, {size})).ok()) return status;"
            yield "  if (other != nullptr) {"
            yield f"    std::memcpy({x.name}_.data(), other->{x.name}_.data(), {size});"
            yield "  } else {"
            yield "    std::byte* first = nullptr;"
            yield f"    status = parameters_->find(state_types[{index}], allocator(), first);"
            yield "    if (!status.ok()) return status;"
            yield f"    std::memcpy({x.name}_.data(), first, {size});"
            yield "  }"

    def open_parameters(self, name: str) -> Iterator[str]:
        if self.embedded_size is None:
            yield "    const std::string& path = options_.parameters;"
            yield f'    status = parameters_->open(path.empty() ? "{name}.safetensors" : path,'
            yield "                               options_.parameter_data,"
            yield "                               options_.parameter_size);"
            return
        yield "    if (options_.parameter_data != nullptr || !options_.parameters.empty()) {"
        yield "      status = parameters_->open(options_.parameters, options_.parameter_data,"
        yield "                                 options_.parameter_size);"
        yield "    } else {"
        yield f'      status = parameters_->open("", {name}_parameters, {self.embedded_size});'
        yield "    }"

    # Functions -----------------------------------------------------------------------------------

    def initializers(self) -> Iterator[str]:
        if not self.program.initializers:
            return
        yield "axir::Code Model::Program::initialize() {"
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
        """Yields what computes a method."""
        if method.rows:
            for program in method.programs:
                yield from self.rows_function(method, program)
            yield from write_row_loop(method, self.interface)
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
        for index, x in enumerate(method.outputs):
            if isinstance(x, Kept):
                targets.append(self.state_target(x))
                arrays += [] if x.is_in_place else [targets[-1][0]]
            elif index in donated:
                name = donated[index].name
                targets.append((name, f"{name}_data", byte_size(x.type)))
            else:
                arrays.append(f"{x.name}_data")
                call = f"output({staging(method, x)}, {x.name}, {byte_size(x.type)})"
                prelude.append((f"{x.name}_data", call))
                targets.append((x.name, f"{x.name}_data", byte_size(x.type)))
        lines = self.body(program, arrays, targets)
        start = f"axir::Code Model::Program::call_{method.name}("
        yield from declaration(start, _pointers(method), ") {")
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
        """Yields the function of a fixed number of rows, whose arrays are all aligned."""
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
        start = f"axir::Code Model::Program::call_{program.symbol}("
        yield from declaration(start, _aligned_pointers(method, unused), ") {")
        yield from (f"  {line}" for line in lines)
        yield "}"
        yield ""

    def kept_place(self, x: Kept) -> str:
        """Returns where a parameter or a part of the state lies."""
        if x.is_state:
            return f"{self.interface.states[x.number].name}_.data()"
        return f"{self.interface.parameters[x.number].name}_"

    def state_target(self, x: Kept) -> tuple[str, str, int]:
        """Returns where a new value of a part of the state goes."""
        state = self.interface.states[x.number]
        place = f"{'' if x.is_in_place else 'next_'}{state.name}_.data()"
        return place, place, byte_size(state.type)

    def body(
        self, program: Compiled, arrays: Sequence[str], targets: Sequence[tuple[str, str, int]]
    ) -> list[str]:
        function = self.program.functions[program.symbol]
        callbacks, name = self.interface.callbacks, self.interface.name
        body = FunctionBody(function, arrays, targets, callbacks, name)
        lines = body.write()
        self.workspace = max(self.workspace, body.workspace)
        return lines


RUNTIME_VERSION = 1


def _pointers(method: Method) -> list[str]:
    rows = ["std::size_t rows"] if method.rows else []
    pointers = [
        f"{'const ' if x.donated_to is None else ''}void* {x.name}" for x in method.arguments
    ]
    return [*rows, *pointers, *(f"void* {x.name}" for x in own_results(method))]


def _aligned_pointers(method: Method, unused: Sequence[Given] = ()) -> list[str]:
    return [
        f"{'[[maybe_unused]] ' if x in unused else ''}std::byte* {x.name}"
        for x in (*method.arguments, *own_results(method))
    ]


def _type_row(x: Parameter) -> str:
    label = x.label.replace("\\", "\\\\").replace('"', '\\"')
    shape = ",".join(map(str, stored_shape(x.type)))
    return f'{{"{label}", "{stored_dtype(x.type)}", "{shape}", {byte_size(x.type)}}}'

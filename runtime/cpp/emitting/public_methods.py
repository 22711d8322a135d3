"""The functions that users call: checks of arguments, and failures as they want them."""

from __future__ import annotations

from collections.abc import Iterator

from axir.runtime.cpp.program.interface import Given, Interface, Method, Parameter

from .header import (
    output_parameter,
    output_type,
    own_results,
    parameter_list,
    result_type,
    result_view,
)
from .names import declaration
from .types import byte_size, element, view


def write_public(interface: Interface) -> Iterator[str]:
    """Yields the definitions."""
    yield from _construction(interface)
    for method in interface.methods:
        yield from (_throwing if interface.throws else _returning)(method)
    if interface.states:
        yield from _state(interface)


def _construction(interface: Interface) -> Iterator[str]:
    has_callbacks = bool(interface.callbacks)
    parameters = "Callbacks callbacks, " if has_callbacks else ""
    arguments = "std::move(callbacks), options" if has_callbacks else "options"
    others = "other.program_->callbacks(), " if has_callbacks else ""
    if interface.throws:
        yield f"Model::Model({parameters}const axir::Options& options) {{"
        yield "  axir::Status status;"
        yield f"  program_ = Program::make({arguments}, status);"
        yield "  if (status.ok()) status = program_->prepare(nullptr);"
        yield "  if (!status.ok()) throw axir::Error(status);"
        yield "}"
        yield ""
        yield "Model::Model(const Model& other) {"
        yield "  axir::Status status;"
        yield f"  program_ = Program::make({others}other.program_->options(), status);"
        yield "  if (status.ok()) status = program_->prepare(other.program_.get());"
        yield "  if (!status.ok()) throw axir::Error(status);"
        yield "}"
    else:
        own = "program_->callbacks(), " if has_callbacks else ""
        yield "Model::Model(std::unique_ptr<Program> program) : program_(std::move(program)) {}"
        yield ""
        yield f"axir::Status Model::create(std::unique_ptr<Model>& model, {parameters}"
        yield "                           const axir::Options& options) {"
        yield "  axir::Status status;"
        yield f"  auto program = Program::make({arguments}, status);"
        yield "  if (status.ok()) status = program->prepare(nullptr);"
        yield "  model.reset(status.ok() ? new Model(std::move(program)) : nullptr);"
        yield "  return status;"
        yield "}"
        yield ""
        yield "axir::Status Model::share(std::unique_ptr<Model>& model) const {"
        yield "  axir::Status status;"
        yield f"  auto program = Program::make({own}program_->options(), status);"
        yield "  if (status.ok()) status = program->prepare(program_.get());"
        yield "  model.reset(status.ok() ? new Model(std::move(program)) : nullptr);"
        yield "  return status;"
        yield "}"
    yield ""
    yield "Model::Model(Model&&) noexcept = default;"
    yield "Model& Model::operator=(Model&&) noexcept = default;"
    yield "Model::~Model() = default;"
    yield "const char* Model::target_cpu() const { return program_->target_cpu(); }"
    yield "void Model::set_profiler(axir::Profiler profiler) {"
    yield "  program_->set_profiler(std::move(profiler));"
    yield "}"
    yield ""


def _pointers(method: Method, output: str) -> list[str]:
    """Returns the arguments in a call of the program's function."""
    outputs = [f"{output}{x.name}.data()" for x in own_results(method)]
    rows = ["rows"] if method.rows else []
    return [*rows, *(f"{x.name}.data()" for x in method.arguments), *outputs]


def _own_memory(method: Method) -> Iterator[str]:
    """Yields the initializers of views of the model's memory."""
    for x in own_results(method):
        pointer = f"program_->{method.name}_{x.name}_.data()"
        rows = ", rows" if x.rows else ""
        yield f"{result_view(x, False)}(reinterpret_cast<{element(x.type)}*>({pointer}){rows})"


def _result(method: Method, prefix: str) -> str:
    """Returns the list of the views of a method's result."""
    donated = {x.donated_to: x.name for x in method.arguments if x.donated_to is not None}
    items = [
        donated.get(index) or f"{prefix}{x.name}"
        for index, x in enumerate(method.outputs)
        if isinstance(x, Given)
    ]
    return f"{{{', '.join(items)}}}"


def _checks(method: Method, failed: str) -> Iterator[str]:
    for x in method.arguments:
        yield f"  if (!axir::fits({x.name})) {{"
        yield f'    {failed}(axir::misfit("{method.name}", "{x.name}", {x.name}));'
        yield "  }"
    if method.rows:
        yield from _row_checks(method, failed)


def _row_checks(method: Method, failed: str) -> Iterator[str]:
    """Yields the definition of `rows`, and the check that all arguments have so many rows."""
    first, *others = [x.name for x in method.arguments if x.rows]
    yield f"  const std::size_t rows = {first}.rows();"
    for other in others:
        yield from _row_check(method, first, other, f"{other}.rows()", failed)


def _row_check(method: Method, first: str, name: str, found: str, failed: str) -> Iterator[str]:
    yield f"  if ({found} != rows) {{"
    start = f'    {failed}(axir::different_rows("{method.name}", "{method.rows}", '
    yield f'{start}"{first}", rows, "{name}",'
    yield f"{' ' * start.index('(axir')}                      {found}));"
    yield "  }"


def _output_checks(method: Method, failed: str) -> Iterator[str]:
    for y in own_results(method):
        place = f"output.{y.name}"
        yield f"  if (!axir::fits({place})) {{"
        yield f'    {failed}(axir::misfit("{method.name}", "{y.name}", {place}));'
        yield "  }"
        if y.rows:
            first = next(x.name for x in method.arguments if x.rows)
            yield from _row_check(method, first, y.name, f"{place}.rows()", failed)
        for x in method.arguments:
            yield f"  if (axir::overlaps({place}, {x.name})) {{"
            yield f'    {failed}(axir::overlap("{method.name}", "{y.name}", "{x.name}"));'
            yield "  }"


def _call(method: Method, prefix: str, failed: str) -> Iterator[str]:
    # No argument has such a name: names from Python do not end in an underscore here.
    yield "  const axir::Moment moment_of_part_("
    yield f'      program_->profiler(), axir::Part::call, "{method.name}");'
    start = f"const axir::Code code = program_->call_{method.name}("
    yield from declaration(start, _pointers(method, prefix), ");", 2)
    yield "  if (code != axir::Code::ok) {"
    yield f'    {failed}(program_->failure(code, "{method.name}"));'
    yield "  }"


def _throwing(method: Method) -> Iterator[str]:
    returned = result_type(method) if method.results else "void"
    failed = "throw axir::Error"
    parameters = parameter_list(method)
    yield from declaration(f"{returned} Model::{method.name}(", parameters, ") {")
    yield from _own_call(method, failed)
    if method.results:
        yield f"  return {_result(method, 'output.')};"
    yield "}"
    yield ""
    if own_results(method):
        parameters.append(output_parameter(method))
        yield from declaration(f"void Model::{method.name}(", parameters, ") {")
        yield from _checks(method, failed)
        yield from _output_checks(method, failed)
        yield from _call(method, "output.", failed)
        yield "}"
        yield ""


def _returning(method: Method) -> Iterator[str]:
    failed = "return axir::Status"
    parameters = parameter_list(method)
    results = [f"{result_type(method)}& result"] if method.results else []
    yield from declaration(f"axir::Status Model::{method.name}(", [*parameters, *results], ") {")
    yield from _own_call(method, failed)
    if method.results:
        yield f"  result = {_result(method, 'output.')};"
    yield "  return axir::Status();"
    yield "}"
    yield ""
    if own_results(method):
        parameters.append(output_parameter(method))
        yield from declaration(f"axir::Status Model::{method.name}(", parameters, ") {")
        yield from _checks(method, failed)
        yield from _output_checks(method, failed)
        yield from _call(method, "output.", failed)
        yield "  return axir::Status();"
        yield "}"
        yield ""


def _own_call(method: Method, failed: str) -> Iterator[str]:
    """Yields the call that writes results to the model's memory."""
    yield from _checks(method, failed)
    for x in own_results(method):
        if x.rows:
            buffer, size = f"program_->{method.name}_{x.name}_", byte_size(x.type)
            yield f"  if (axir::Status status = program_->reserve({buffer}, rows * {size});"
            yield "      !status.ok()) {"
            yield f"    {failed}(std::move(status));"
            yield "  }"
    memory = list(_own_memory(method))
    if memory:
        yield f"  const {output_type(method)} output{{"
        yield from (f"      {text}," for text in memory[:-1])
        yield f"      {memory[-1]}}};"
    yield from _call(method, "output.", failed)


def _state(interface: Interface) -> Iterator[str]:
    states = interface.states
    for state in states:
        yield from _state_view(state)
    data = ", ".join(f"{x.name}_.data()" for x in states)
    count = len(states)
    yield "axir::Status Model::Program::save_state(const std::string& path) const {"
    yield f"  const std::byte* const data[] = {{{data}}};"
    yield f"  return axir::write_parameters(path, state_types, data, {count});"
    yield "}"
    yield ""
    yield "axir::Status Model::Program::load_state(const std::string& path) {"
    yield "  axir::Parameters file;"
    yield "  axir::Status status = file.open(path, nullptr, 0);"
    yield f"  std::byte* data[{count}] = {{}};"
    yield f"  for (std::size_t index = 0; status.ok() && index < {count}; ++index) {{"
    yield "    status = file.find(state_types[index], allocator(), data[index]);"
    yield "  }"
    yield "  if (!status.ok()) return status;"
    for index, x in enumerate(states):
        yield f"  std::memcpy({x.name}_.data(), data[{index}], state_types[{index}].size);"
    yield "  return status;"
    yield "}"
    yield ""
    for name, const in (("save", " const"), ("load", "")):
        if interface.throws:
            yield f"void Model::{name}(const std::string& path){const} {{"
            yield f"  const axir::Status status = program_->{name}_state(path);"
            yield "  if (!status.ok()) throw axir::Error(status);"
            yield "}"
        else:
            yield f"axir::Status Model::{name}(const std::string& path){const} {{"
            yield f"  return program_->{name}_state(path);"
            yield "}"
        yield ""


def _state_view(state: Parameter) -> Iterator[str]:
    type_ = view(state.type, True)
    pointer = f"reinterpret_cast<const {element(state.type)}*>(program_->state_{state.name}())"
    yield f"{type_} Model::{state.name}() const {{"
    yield f"  return {type_}({pointer});"
    yield "}"
    yield ""

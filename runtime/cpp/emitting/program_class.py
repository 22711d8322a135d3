"""`Model::Program`: the part of a model's code that is the same for all CPUs.

It holds parameters, state, and memory for arguments and results. Elsewhere: kernels and the steps
of functions, which differ between CPUs (`variant_class.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from axir.runtime.cpp.program.interface import Given, Interface, Kept, Method, Parameter, Variant

from .header import own_results
from .names import declaration, quoted
from .row_loop import result_buffer, staging, write_row_loop
from .types import byte_size, stored_dtype, stored_shape


def write_class(interface: Interface, variants: Sequence[Variant]) -> Iterator[str]:
    """Yields the declaration of the class."""
    yield "class Model::Program : public axir::Instance {"
    yield " public:"
    yield from _construction(interface, variants)
    yield "  /// Finds parameters and kernels; parameters of another instance, if there is one."
    yield "  axir::Status prepare(const Program* other);"
    yield "  const axir::Options& options() const { return options_; }"
    if interface.callbacks:
        yield "  const Callbacks& callbacks() const { return callbacks_; }"
    yield "  void set_profiler(axir::Profiler profiler) {"
    yield "    options_.profiler = profiler;"
    yield "    replace_profiler(std::move(profiler));"
    yield "  }"
    yield "  virtual const char* target_cpu() const = 0;"
    yield ""
    for method in interface.methods:
        if method.rows:
            yield from declaration(f"axir::Code call_{method.name}(", pointers(method), ");", 2)
        for start, parameters in overridden(method):
            yield from declaration(f"virtual axir::Code {start}(", parameters, ") = 0;", 2)
    if interface.states:
        yield "  axir::Status save_state(const std::string& path) const;"
        yield "  axir::Status load_state(const std::string& path);"
        for state in interface.states:
            place = f"return {state.name}_.data();"
            yield f"  const std::byte* state_{state.name}() const {{ {place} }}"
    yield ""
    for method in interface.methods:
        for x in own_results(method):
            yield f"  axir::Buffer {result_buffer(method, x)};"
    yield ""
    yield " protected:"
    yield from _members(interface)
    yield "};"


def _construction(interface: Interface, variants: Sequence[Variant]) -> Iterator[str]:
    callbacks = ["Callbacks callbacks"] if interface.callbacks else []
    options = [*callbacks, "const axir::Options& options"]
    yield "  /// Makes one for this CPU, or says why not."
    start = "static std::unique_ptr<Program> make("
    yield from declaration(start, [*options, "axir::Status& status"], ");", 2)
    for variant in variants:
        yield f"  class For_{variant.label};"
        start = f"static std::unique_ptr<Program> make_for_{variant.label}("
        yield from declaration(start, options, ");", 2)
    yield ""
    first = "explicit " if not callbacks else ""
    yield f"  {first}Program({', '.join(options)})"
    rest = ", callbacks_(std::move(callbacks))" if interface.callbacks else ""
    yield f"      : axir::Instance(options){rest}, options_(options) {{"
    yield "    options_.pool = pool();"
    yield "  }"
    yield "  virtual ~Program() = default;"
    yield ""


def _members(interface: Interface) -> Iterator[str]:
    yield "  /// Finds the kernels, takes memory for them, and computes what they need."
    yield "  virtual axir::Status open() = 0;"
    yield ""
    if interface.callbacks:
        yield "  Callbacks callbacks_;"
    yield "  axir::Options options_;"
    if interface.parameters or interface.states:
        yield "  std::shared_ptr<axir::Parameters> parameters_;"
    for x in interface.parameters:
        yield f"  std::byte* {x.name}_ = nullptr;"
    names = [f"{x.name}_" for x in interface.states]
    names += [f"next_{x.name}_" for x in _replaced(interface)]
    yield from (f"  axir::Buffer {name};" for name in names)
    yield from (
        f"  {'axir::Buffer' if x.rows else 'Staging'} {staging(method, x)};"
        for method in interface.methods
        for x in (*method.arguments, *own_results(method))
    )


def write_definitions(interface: Interface, embedded_size: int | None) -> Iterator[str]:
    """Yields the definitions of its functions, save for those that choose a CPU.

    Args:
        interface: The model's interface.
        embedded_size: The number of bytes of parameters that are part of the program; None if they
            lie in a separate file.
    """
    kept = [*interface.parameters, *interface.states]
    yield "axir::Status Model::Program::prepare([[maybe_unused]] const Program* other) {"
    yield "  axir::Status status;"
    if kept:
        yield from _prepare_parameters(interface, embedded_size)
    sizes = [
        (result_buffer(m, x), byte_size(x.type) * (m.largest if x.rows else 1))
        for m in interface.methods
        for x in own_results(m)
    ]
    sizes += [
        (staging(m, x), byte_size(x.type) * m.largest)
        for m in interface.methods
        for x in (*m.arguments, *own_results(m))
        if x.rows
    ]
    for buffer, size in sizes:
        yield f"  if (!(status = take({buffer}, {size})).ok()) return status;"
    yield "  return open();"
    yield "}"
    yield ""
    for method in interface.methods:
        if method.rows:
            yield from write_row_loop(method, interface)


def write_types(interface: Interface) -> Iterator[str]:
    """Yields the tables of the types of parameters."""
    for title, kept in (
        ("parameter_types", interface.parameters),
        ("state_types", interface.states),
    ):
        if kept:
            yield f"constexpr axir::ParameterType {title}[] = {{"
            yield from (f"    {_type_row(x)}," for x in kept)
            yield "};"
            yield ""


def _prepare_parameters(interface: Interface, embedded_size: int | None) -> Iterator[str]:
    yield "  if (other != nullptr) {"
    yield "    parameters_ = other->parameters_;"
    for x in interface.parameters:
        yield f"    {x.name}_ = other->{x.name}_;"
    yield "  } else {"
    yield "    parameters_ = std::make_shared<axir::Parameters>();"
    yield from _open_parameters(interface.name, embedded_size)
    yield "    if (!status.ok()) return status;"
    if interface.parameters:
        pointers = ", ".join(f"&{x.name}_" for x in interface.parameters)
        count = len(interface.parameters)
        yield f"    std::byte** const places[] = {{{pointers}}};"
        yield f"    for (std::size_t index = 0; index < {count}; ++index) {{"
        yield "      const axir::ParameterType& type = parameter_types[index];"
        yield "      status = parameters_->find(type, allocator(), *places[index]);"
        yield "      if (!status.ok()) return status;"
        yield "    }"
    yield "  }"
    replaced = _replaced(interface)
    for index, x in enumerate(interface.states):
        size = byte_size(x.type)
        yield f"  if (!(status = take({x.name}_, {size})).ok()) return status;"
        if x in replaced:
            yield f"  if (!(status = take(next_{x.name}_, {size})).ok()) return status;"
        yield "  if (other != nullptr) {"
        yield f"    std::memcpy({x.name}_.data(), other->{x.name}_.data(), {size});"
        yield "  } else {"
        yield "    std::byte* first = nullptr;"
        yield f"    status = parameters_->find(state_types[{index}], allocator(), first);"
        yield "    if (!status.ok()) return status;"
        yield f"    std::memcpy({x.name}_.data(), first, {size});"
        yield "  }"


def _open_parameters(name: str, embedded_size: int | None) -> Iterator[str]:
    if embedded_size is None:
        yield "    const std::string& path = options_.parameters;"
        yield f'    status = parameters_->open(path.empty() ? "{name}.safetensors" : path,'
        yield "                               options_.parameter_data,"
        yield "                               options_.parameter_size);"
        return
    yield "    if (options_.parameter_data != nullptr || !options_.parameters.empty()) {"
    yield "      status = parameters_->open(options_.parameters, options_.parameter_data,"
    yield "                                 options_.parameter_size);"
    yield "    } else {"
    yield f'      status = parameters_->open("", {name}_parameters, {embedded_size});'
    yield "    }"


def _replaced(interface: Interface) -> list[Parameter]:
    """Returns the states that need separate memory for their new values."""
    beside = {
        x.number
        for method in interface.methods
        for x in method.outputs
        if isinstance(x, Kept) and not x.is_in_place
    }
    return [x for number, x in enumerate(interface.states) if number in beside]


def overridden(method: Method) -> list[tuple[str, list[str]]]:
    """Returns the functions that each kind of CPU overrides: names and parameters."""
    if method.rows:
        return [(f"call_{x.symbol}", aligned_pointers(method)) for x in method.programs]
    return [(f"call_{method.name}", pointers(method))]


def pointers(method: Method) -> list[str]:
    """Returns a method's parameters: the number of rows, arguments, then places of results."""
    rows = ["std::size_t rows"] if method.rows else []
    given = [f"{'const ' if x.donated_to is None else ''}void* {x.name}" for x in method.arguments]
    return [*rows, *given, *(f"void* {x.name}" for x in own_results(method))]


def aligned_pointers(method: Method, unused: Sequence[Given] = ()) -> list[str]:
    """Returns the parameters of the function for a fixed number of rows."""
    return [
        f"{'[[maybe_unused]] ' if x in unused else ''}std::byte* {x.name}"
        for x in (*method.arguments, *own_results(method))
    ]


def _type_row(x: Parameter) -> str:
    shape = ",".join(map(str, stored_shape(x.type)))
    return f'{{{quoted(x.label)}, "{stored_dtype(x.type)}", "{shape}", {byte_size(x.type)}}}'

"""`NAME.h` and `NAME_c.cpp`: the model for C, and for languages that can call C.

Failures are error codes, the numbers of `axir::Code`, with a message that the model keeps.
"""

from __future__ import annotations

from collections.abc import Iterator

from axir.runtime.cpp.program.interface import Given, Interface, Method

from .header import argument_view, own_results, result_type, result_view, unique_callbacks
from .names import declaration, identifier, quoted, unique_names
from .types import c_element, described, element, view


def write_c_header(interface: Interface) -> str:
    """Returns the text of the header for C."""
    return "\n".join(_header(interface))


def write_c_source(interface: Interface, description: str) -> str:
    """Returns the text of the functions that it declares, in C++.

    Args:
        interface: The model.
        description: The model's description of itself, in JSON.
    """
    return "\n".join(_source(interface, description))


def _header(interface: Interface) -> Iterator[str]:
    name = interface.name
    guard = f"{name.upper()}_H_"
    yield f"/* {name}: a model written by axir, for C. Changes to this file are lost. */"
    yield f"#ifndef {guard}"
    yield f"#define {guard}"
    yield ""
    yield "#include <stdbool.h>"
    yield "#include <stddef.h>"
    yield "#include <stdint.h>"
    yield ""
    yield "#ifdef __cplusplus"
    yield 'extern "C" {'
    yield "#endif"
    yield ""
    yield "/* An instance of the model, for one thread at a time. */"
    yield f"typedef struct {name}_model {name}_model;"
    yield ""
    yield "/* What a model is made with; zeros are the defaults. */"
    yield f"typedef struct {name}_options {{"
    yield "  unsigned threads;           /* that work on large kernels; 0 is 1 */"
    yield "  const char* parameters;     /* file of parameters, if it lies elsewhere */"
    yield "  const void* parameter_data; /* or its content, which must live as long */"
    yield "  size_t parameter_size;"
    yield "  const char* target_cpu;     /* whose kernels to use, if not the fastest that run */"
    if interface.callbacks:
        yield "  void* callback_context;     /* first argument of the callbacks */"
        for callback in unique_callbacks(interface):
            types = [f"const {c_element(t)}*" for t in callback.operands]
            types += [f"{c_element(t)}*" for t in callback.results]
            yield f"  void (*{callback.name})({', '.join(['void* context', *types])});"
    yield f"}} {name}_options;"
    yield ""
    yield "/* Functions return 0, or a number that says what kind of failure there was. */"
    yield "/* Makes a model; if that fails, `*model` is null and `message`, unless it is null, says"
    yield "   why in up to `size` bytes. */"
    yield from declaration(f"int {name}_create(", _creation_parameters(interface), ");")
    yield "/* A further instance, which shares threads and parameters. */"
    yield from declaration(f"int {name}_share(", _sharing_parameters(interface), ");")
    yield f"void {name}_destroy({name}_model* model);"
    yield "/* What the last failure of a model was; the text holds until the next call. */"
    yield f"const char* {name}_message(const {name}_model* model);"
    yield "/* The CPU whose kernels a model uses. */"
    yield f"const char* {name}_target_cpu(const {name}_model* model);"
    yield "/* What the model is, as JSON: methods, arrays, versions, CPUs. */"
    yield f"const char* {name}_description(void);"
    yield "/* Is told of each part of a call: a call of a method (0), the program for one number of"
    yield "   rows (1), a kernel (2), a callback (3); of a kernel also which line of Python it"
    yield "   computes. At its end `nanoseconds` says how long it took. */"
    yield f"typedef void (*{name}_profiler)(void* context, int part, bool is_end, const char* name,"
    yield "    const char* where, int64_t nanoseconds);"
    yield "/* Has a function told from now on; null ends that. */"
    parameters = [f"{name}_model* model", f"{name}_profiler profiler", "void* context"]
    yield from declaration(f"int {name}_set_profiler(", parameters, ");")
    for method in interface.methods:
        yield ""
        yield f"/* Computes `{method.label}`."
        for x in [*method.arguments, *own_results(method)]:
            role = "result" if x in own_results(method) else "argument"
            note = ", overwritten by the result" if x.donated_to is not None else ""
            yield f"   {x.name}: {role}, {_described(x)}{note}"
        yield "*/"
        yield from _declaration(interface, method, ");")
    if interface.states:
        yield ""
        yield "/* The state, which holds until the next call. */"
        for state in interface.states:
            yield f"const {c_element(state.type)}* {name}_{state.name}(const {name}_model* model);"
        yield f"int {name}_save({name}_model* model, const char* path);"
        yield f"int {name}_load({name}_model* model, const char* path);"
    yield ""
    yield "#ifdef __cplusplus"
    yield "}"
    yield "#endif"
    yield ""
    yield f"#endif /* {guard} */"
    yield ""


def _described(x: Given) -> str:
    extra = ", pairs of real and imaginary part" if x.type.dtype.kind == "c" else ""
    return f"{described(x.type, x.rows)}{extra}"


def _declaration(interface: Interface, method: Method, end: str) -> list[str]:
    name = interface.name
    arguments = [
        f"{'const ' if x.donated_to is None else ''}{c_element(x.type)}* {x.name}"
        for x in method.arguments
    ] + [f"{c_element(x.type)}* {x.name}" for x in own_results(method)]
    rows = [f"size_t {_rows(method)}"] if method.rows else []
    start = f"int {name}_{method.name}("
    return declaration(start, [f"{name}_model* model", *rows, *arguments], end)


def _rows(method: Method) -> str:
    """Returns the parameter with the number of rows."""
    taken = [x.name for x in method.arguments + tuple(own_results(method))]
    return unique_names([identifier(method.rows or "rows")], taken)[0]


_MESSAGE = ["char* message", "size_t size"]


def _creation_parameters(interface: Interface) -> list[str]:
    name = interface.name
    return [f"const {name}_options* options", f"{name}_model** model", *_MESSAGE]


def _sharing_parameters(interface: Interface) -> list[str]:
    name = interface.name
    return [f"const {name}_model* model", f"{name}_model** other", *_MESSAGE]


def _source(interface: Interface, description: str) -> Iterator[str]:
    name = interface.name
    yield f"// {name}: a model written by axir, for C. Changes to this file are lost."
    yield f'#include "{name}.h"'
    yield ""
    yield "#include <exception>"
    yield "#include <memory>"
    yield "#include <new>"
    yield "#include <string>"
    yield "#include <utility>"
    yield ""
    yield f'#include "{name}.hpp"'
    yield ""
    yield f"struct {name}_model {{"
    yield f"  std::unique_ptr<{name}::Model> model;"
    yield "  std::string message;"
    yield "};"
    yield ""
    yield "namespace {"
    yield ""
    yield from _guard(interface)
    yield from _creation(interface)
    yield "}  // namespace"
    yield ""
    yield from _lifetime(interface)
    yield from _questions(interface, description)
    for method in interface.methods:
        yield from _method(interface, method)
    if interface.states:
        yield from _state(interface)


def _guard(interface: Interface) -> Iterator[str]:
    """Yields the function that converts failures to error codes."""
    yield "/// Runs a function; no exception leaves C++."
    yield "template <class Function>"
    yield "int guarded(std::string& message, const Function& function) {"
    if not interface.throws:
        yield "  const axir::Status status = function();"
        yield "  message = status.message();"
        yield "  return static_cast<int>(status.code());"
        yield "}"
        yield ""
        return
    yield "  try {"
    yield "    function();"
    yield "    return 0;"
    yield "  } catch (const axir::Error& error) {"
    yield "    message = error.what();"
    yield "    return static_cast<int>(error.code());"
    yield "  } catch (const std::bad_alloc&) {"
    yield '    message = "there is no memory left";'
    yield "    return static_cast<int>(axir::Code::out_of_memory);"
    yield "  } catch (const std::exception& error) {"
    yield "    message = error.what();"
    yield "    return static_cast<int>(axir::Code::callback_failed);"
    yield "  }"
    yield "}"
    yield ""


def _creation(interface: Interface) -> Iterator[str]:
    name = interface.name
    yield "/// Makes an instance, with `make(instance)`, and hands it over if that worked."
    yield "template <class Function>"
    yield f"int create({name}_model** model, char* message, std::size_t size,"
    yield "           const Function& make) {"
    yield "  if (message != nullptr && size != 0) message[0] = '\\0';"
    yield "  if (model == nullptr) return static_cast<int>(axir::Code::wrong_argument);"
    yield "  *model = nullptr;"
    yield f"  std::unique_ptr<{name}_model> made(new (std::nothrow) {name}_model);"
    yield "  if (made == nullptr) return static_cast<int>(axir::Code::out_of_memory);"
    yield f"  {name}_model& instance = *made;"
    yield "  const int code = guarded(instance.message, [&] { return make(instance); });"
    yield "  if (code == 0) {"
    yield "    *model = made.release();"
    yield "  } else if (message != nullptr && size != 0) {"
    yield "    message[instance.message.copy(message, size - 1)] = '\\0';"
    yield "  }"
    yield "  return code;"
    yield "}"
    yield ""


def _lifetime(interface: Interface) -> Iterator[str]:
    name = interface.name
    yield from declaration(f"int {name}_create(", _creation_parameters(interface), ") {")
    yield "  axir::Options chosen;"
    if interface.callbacks:
        yield f"  {name}::Callbacks callbacks;"
    yield "  if (options != nullptr) {"
    yield "    if (options->threads != 0) chosen.threads = options->threads;"
    yield "    if (options->parameters != nullptr) chosen.parameters = options->parameters;"
    yield "    chosen.parameter_data = options->parameter_data;"
    yield "    chosen.parameter_size = options->parameter_size;"
    yield "    if (options->target_cpu != nullptr) chosen.target_cpu = options->target_cpu;"
    for callback in unique_callbacks(interface):
        views = [view(t, True) for t in callback.operands]
        views += [view(t, False) for t in callback.results]
        types = [f"const {c_element(t)}*" for t in callback.operands]
        types += [f"{c_element(t)}*" for t in callback.results]
        parameters = ", ".join(f"{v} x{n}" for n, v in enumerate(views))
        pointers = ", ".join(f"reinterpret_cast<{t}>(x{n}.data())" for n, t in enumerate(types))
        rest = f", {pointers}" if pointers else ""
        yield f"    if (options->{callback.name} != nullptr) {{"
        yield f"      const auto function = options->{callback.name};"
        yield "      void* const context = options->callback_context;"
        yield f"      callbacks.{callback.name} = [function, context]({parameters}) {{"
        yield f"        function(context{rest});"
        yield "      };"
        yield "    }"
    yield "  }"
    first = "std::move(callbacks), " if interface.callbacks else ""
    yield f"  return create(model, message, size, [&]({name}_model& made) {{"
    if interface.throws:
        yield f"    made.model = std::make_unique<{name}::Model>({first}chosen);"
    else:
        yield f"    return {name}::Model::create(made.model, {first}chosen);"
    yield "  });"
    yield "}"
    yield ""
    yield from declaration(f"int {name}_share(", _sharing_parameters(interface), ") {")
    yield f"  return create(other, message, size, [&]({name}_model& made) {{"
    if interface.throws:
        yield f"    made.model = std::make_unique<{name}::Model>(*model->model);"
    else:
        yield "    return model->model->share(made.model);"
    yield "  });"
    yield "}"
    yield ""
    yield f"void {name}_destroy({name}_model* model) {{ delete model; }}"
    yield ""
    yield f"const char* {name}_message(const {name}_model* model) {{"
    yield "  return model->message.c_str();"
    yield "}"
    yield ""


def _questions(interface: Interface, description: str) -> Iterator[str]:
    """Yields the functions that return information about a model and its calls."""
    name = interface.name
    yield f"const char* {name}_target_cpu(const {name}_model* model) {{"
    yield "  return model->model->target_cpu();"
    yield "}"
    yield ""
    yield f"const char* {name}_description(void) {{"
    lines = [quoted(description[i : i + 80]) for i in range(0, len(description), 80)]
    yield f"  return {lines[0]}"
    yield from (f"         {line}" for line in lines[1:-1])
    yield f"         {lines[-1]};"
    yield "}"
    yield ""
    parameters = [f"{name}_model* model", f"{name}_profiler profiler", "void* context"]
    yield from declaration(f"int {name}_set_profiler(", parameters, ") {")
    yield "  return guarded(model->message, [&] {"
    yield "    axir::Profiler told;"
    yield "    if (profiler != nullptr) {"
    yield "      told = [profiler, context](const axir::Event& event) {"
    yield "        profiler(context, static_cast<int>(event.part), event.is_end, event.name,"
    yield "                 event.where, event.nanoseconds);"
    yield "      };"
    yield "    }"
    yield "    model->model->set_profiler(std::move(told));"
    if not interface.throws:
        yield "    return axir::Status();"
    yield "  });"
    yield "}"
    yield ""


def _method(interface: Interface, method: Method) -> Iterator[str]:
    rows = _rows(method) if method.rows else ""
    arguments = [_view_of(argument_view(x), x, rows) for x in method.arguments]
    outputs = [_view_of(result_view(x, False), x, rows) for x in own_results(method)]
    calls = [*arguments]
    if outputs:
        calls.append(f"{{{', '.join(outputs)}}}")
    yield from _declaration(interface, method, ") {")
    yield "  return guarded(model->message, [&] {"
    call = f"model->model->{method.name}("
    if not interface.throws and method.results and not outputs:
        result = f"{interface.name}::{result_type(method)}"
        yield f"    {result} result;"
        calls.append("result")
    if not interface.throws:
        call = f"return {call}"
    yield f"    {call}"
    yield from (f"        {x}," for x in calls[:-1])
    if calls:
        yield f"        {calls[-1]});"
    else:
        yield "    );"
    yield "  });"
    yield "}"
    yield ""


def _view_of(type_: str, x: Given, rows: str) -> str:
    extent = f", {rows}" if x.rows else ""
    if element(x.type) == c_element(x.type):
        return f"{type_}({x.name}{extent})"
    const = "const " if "<const " in type_ else ""
    return f"{type_}(reinterpret_cast<{const}{element(x.type)}*>({x.name}){extent})"


def _state(interface: Interface) -> Iterator[str]:
    name = interface.name
    for state in interface.states:
        kind = c_element(state.type)
        yield f"const {kind}* {name}_{state.name}(const {name}_model* model) {{"
        data = f"model->model->{state.name}().data()"
        if element(state.type) != kind:
            data = f"reinterpret_cast<const {kind}*>({data})"
        yield f"  return {data};"
        yield "}"
        yield ""
    for verb in ("save", "load"):
        word = "" if interface.throws else "return "
        yield f"int {name}_{verb}({name}_model* model, const char* path) {{"
        yield "  return guarded(model->message, [&] {"
        yield f"    {word}model->model->{verb}(path);"
        yield "  });"
        yield "}"
        yield ""

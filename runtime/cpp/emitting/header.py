"""`NAME.hpp`: the header that users of a model include."""

from __future__ import annotations

import os
from collections.abc import Iterator

from axir.runtime.cpp.program.interface import Callback, Given, Interface, Method, Parameter

from .names import NAMESPACE, RUNTIME_VERSION, camel_case, declaration
from .types import described, view

_IN_YOUR_MEMORY = "  /// The same, with results in memory of yours that overlaps no argument."


def write_header(interface: Interface) -> str:
    """Returns the text of the header."""
    lines = [
        f"// {interface.name}: a model written by axir. Changes to this file are lost.",
        "#pragma once",
        "",
        f"#include <axir/v{RUNTIME_VERSION}/axir.hpp>",
        "#include <functional>",
        "#include <memory>",
        "",
        f"namespace {interface.name} {{",
    ]
    for method in interface.methods:
        lines += _result_types(method)
    if interface.callbacks:
        lines += _callback_type(interface)
    lines += [
        "",
        "/// What the model is: methods, arrays, versions, the CPUs that it has kernels for.",
        f"const {NAMESPACE}::ModelDescription& description();",
    ]
    lines += _model(interface)
    lines += ["", f"}}  // namespace {interface.name}", ""]
    return "\n".join(lines)


def result_type(method: Method) -> str:
    """Returns the type of a method's return value."""
    return f"{camel_case(method.name)}Result"


def output_type(method: Method) -> str:
    """Returns the type of the memory that a caller may pass for a method's results."""
    return f"{camel_case(method.name)}Output"


def argument_view(argument: Given) -> str:
    """Returns the type of an argument."""
    return view(argument.type, argument.donated_to is None, argument.rows is not None)


def result_view(result: Given, is_const: bool) -> str:
    """Returns the type of a result, or of the memory that it is written to."""
    return view(result.type, is_const, result.rows is not None)


def parameter_list(method: Method) -> list[str]:
    """Returns the parameters in a method's declaration."""
    return [f"{argument_view(x)} {x.name}" for x in method.arguments]


def output_parameter(method: Method) -> str:
    """Returns the parameter for the memory of a method's results."""
    return f"const {output_type(method)}& output"


def own_results(method: Method) -> list[Given]:
    """Returns the results that do not take the memory of a donated argument."""
    donated = {x.donated_to for x in method.arguments}
    return [
        x for index, x in enumerate(method.outputs) if isinstance(x, Given) and index not in donated
    ]


def _result_types(method: Method) -> Iterator[str]:
    if not method.results:
        return
    donated = {
        argument.donated_to: argument.name
        for argument in method.arguments
        if argument.donated_to is not None
    }
    yield ""
    yield f"/// What `{method.name}` returns: arrays of the model's, which hold until the next call"
    yield f"/// of `{method.name}`."
    yield f"struct {result_type(method)} {{"
    for index, x in enumerate(method.outputs):
        if isinstance(x, Given):
            place = f", in the memory of `{donated[index]}`" if index in donated else ""
            kind = described(x.type, x.rows)
            yield f"  {result_view(x, True)} {x.name};  ///< {x.label}: {kind}{place}"
    yield "};"
    if not own_results(method):
        return
    yield ""
    yield f"/// Memory of yours, where `{method.name}` shall write its results."
    yield f"struct {output_type(method)} {{"
    for x in own_results(method):
        yield f"  {result_view(x, False)} {x.name};"
    yield "};"


def callback_signature(callback: Callback) -> str:
    """Returns the type of a callback: views of its operands, then views of its results."""
    views = [view(t, True) for t in callback.operands] + [view(t, False) for t in callback.results]
    return f"std::function<void({', '.join(views)})>"


def _callback_type(interface: Interface) -> Iterator[str]:
    yield ""
    yield "/// Functions of yours that the model calls, with views of what they take, then of what"
    yield "/// they write. They run in the thread that calls the model, and may throw."
    yield "struct Callbacks {"
    for callback in unique_callbacks(interface):
        if not callback.results:
            yield "  /// Only looks at its arguments: it need not be set."
        yield f"  {callback_signature(callback)} {callback.name};"
    yield "};"


def unique_callbacks(interface: Interface) -> list[Callback]:
    """Returns the callbacks by name: one may be called from several places."""
    return list({c.name: c for c in interface.callbacks}.values())


def _model(interface: Interface) -> Iterator[str]:
    options = f"const {NAMESPACE}::Options& options = {{}}"
    callbacks = "Callbacks callbacks, " if interface.callbacks else ""
    yield ""
    yield from _model_comment(interface)
    yield "class Model {"
    yield " public:"
    if interface.throws:
        yield f"  explicit Model({callbacks}{options});"
        yield "  /// A further instance, which shares threads and parameters with the other one."
        yield "  Model(const Model& other);"
    else:
        yield "  /// Makes a model; `model` is empty if the status is not ok."
        parameters = ["std::unique_ptr<Model>& model"]
        parameters += ["Callbacks callbacks"] if interface.callbacks else []
        yield from declaration(
            f"static {NAMESPACE}::Status create(", [*parameters, options], ");", 2
        )
        yield "  /// Makes a further instance, which shares threads and parameters with this one."
        yield f"  {NAMESPACE}::Status share(std::unique_ptr<Model>& model) const;"
    yield "  Model(Model&&) noexcept;"
    yield "  Model& operator=(Model&&) noexcept;"
    yield "  ~Model();"
    yield ""
    yield "  /// The CPU whose kernels the model uses: the name that it was compiled for."
    yield "  const char* target_cpu() const;"
    yield "  /// Has a function told of each part of a call from now on; an empty one ends that."
    yield f"  void set_profiler({NAMESPACE}::Profiler profiler);"
    for method in interface.methods:
        yield from _method(interface, method)
    if interface.states:
        yield from _state(interface)
    yield ""
    yield " private:"
    yield "  class Program;"
    if not interface.throws:
        yield "  explicit Model(std::unique_ptr<Program> program);"
    yield "  std::unique_ptr<Program> program_;"
    yield "};"


def _model_comment(interface: Interface) -> Iterator[str]:
    yield "/// The model. An instance is for one thread at a time: give each thread its own."
    if interface.throws:
        yield "/// What fails throws `axir::Error`, and leaves the model as it was."
    else:
        yield "/// What fails says so by its status, and leaves the model as it was."


def _method(interface: Interface, method: Method) -> Iterator[str]:
    arguments = parameter_list(method)
    yield ""
    where = f", exported at {os.path.basename(method.where)}" if method.where else ""
    yield f"  /// Computes `{method.label}`{where}."
    if method.rows:
        sizes = ", ".join(str(x.rows) for x in method.programs)
        yield f"  /// Takes any number {method.rows} of rows; there are programs for {sizes}."
    for x in method.arguments:
        place = "; overwritten" if x.donated_to is not None else ""
        yield f"  /// @param {x.name} `{x.label}`, {described(x.type, x.rows)}{place}"
    if interface.throws:
        returned, output = result_type(method) if method.results else "void", "void"
        results = []
    else:
        returned = output = f"{NAMESPACE}::Status"
        results = [f"{result_type(method)}& result"] if method.results else []
    yield from declaration(f"{returned} {method.name}(", [*arguments, *results], ");", 2)
    if own_results(method):
        yield _IN_YOUR_MEMORY
        parameters = [*arguments, output_parameter(method)]
        yield from declaration(f"{output} {method.name}(", parameters, ");", 2)


def _state(interface: Interface) -> Iterator[str]:
    yield ""
    yield "  // The state, which calls replace. The views hold until the next call."
    for state in interface.states:
        yield from _state_view(state)
    failure = "" if interface.throws else f"{NAMESPACE}::Status "
    returned = "void" if interface.throws else failure.strip()
    yield ""
    yield "  /// Writes the state to a file (safetensors), which appears whole or not at all."
    yield f"  {returned} save(const std::string& path) const;"
    yield "  /// Replaces the state by that of a file."
    yield f"  {returned} load(const std::string& path);"


def _state_view(state: Parameter) -> Iterator[str]:
    yield f"  {view(state.type, True)} {state.name}() const;  ///< `{state.label}`"

"""The function of any number of rows, which calls the functions of fixed numbers of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from axir.runtime.cpp.program.interface import Given, Interface, Kept, Method

from .header import own_results
from .names import declaration
from .types import byte_size


def write_row_loop(method: Method, interface: Interface) -> Iterator[str]:
    """Yields the function's definition.

    All remaining rows go to the smallest program that takes them, or as many as fit to the largest
    one.
    """
    shared = [x for x in (*method.arguments, *own_results(method)) if not x.rows]
    parameters = ["std::size_t rows"]
    parameters += [f"const void* {x.name}" for x in method.arguments]
    parameters += [f"void* {x.name}" for x in own_results(method)]
    yield from declaration(f"axir::Code Model::Program::call_{method.name}(", parameters, ") {")
    sizes = ", ".join(str(program.rows) for program in method.programs)
    yield f"  static constexpr std::size_t sizes[] = {{{sizes}}};"
    for x in shared:
        verb = "input" if x in method.arguments else "output"
        call = f"{verb}({staging(method, x)}, {x.name}, {byte_size(x.type)})"
        yield f"  std::byte* const {x.name}_data = {call};"
    yield from null_checks([f"{x.name}_data" for x in shared])
    yield "  axir::Rows next;"
    yield "  do {"
    yield "    next = next.next(rows, sizes);"
    yield from (f"    {line}" for line in _one_call(method))
    yield "  } while (next.end() < rows);"
    for x in own_results(method):
        if not x.rows:
            yield f"  deliver({x.name}, {x.name}_data, {byte_size(x.type)});"
    yield from (f"  {line}" for line in state_changes(method, interface))
    yield "  return axir::Code::ok;"
    yield "}"
    yield ""


def _one_call(method: Method) -> Iterator[str]:
    for x in (*method.arguments, *own_results(method)):
        if x.rows:
            verb = "input" if x in method.arguments else "output"
            call = f"{verb}_rows({staging(method, x)}, {x.name}, {byte_size(x.type)}, next)"
            yield f"std::byte* const {x.name}_data = {call};"
    arguments = [f"{x.name}_data" for x in (*method.arguments, *own_results(method))]
    yield "axir::Code code = axir::Code::ok;"
    yield "switch (next.size) {"
    for program in method.programs:
        yield f"  case {program.rows}: {{"
        yield "    const axir::Moment moment_of_part_("
        yield f'        profiler(), axir::Part::rows, "{program.symbol}");'
        yield from declaration(f"code = call_{program.symbol}(", arguments, ");", 4)
        yield "    break;"
        yield "  }"
    yield "}"
    yield "if (code != axir::Code::ok) return code;"
    for x in own_results(method):
        if x.rows:
            yield f"deliver_rows({x.name}, {x.name}_data, {byte_size(x.type)}, next);"


def state_changes(method: Method, interface: Interface) -> Iterator[str]:
    """Yields the statements that replace the state by its new values."""
    for x in method.outputs:
        if isinstance(x, Kept) and not x.is_in_place:
            name = interface.states[x.number].name
            yield f"{name}_.swap(next_{name}_);"


def staging(method: Method, x: Given) -> str:
    """Returns the member that holds a copy of a caller's array that cannot be used in place."""
    return f"{method.name}_{x.name}_staging_"


def result_buffer(method: Method, x: Given) -> str:
    """Returns the member that holds a result without memory from the caller."""
    return f"{method.name}_{x.name}_"


def null_checks(names: Sequence[str]) -> Iterator[str]:
    """Yields the check that memory for unaligned arrays was there."""
    if not names:
        return
    tests = [f"{name} == nullptr" for name in names]
    line = f"  if ({' || '.join(tests)}) return axir::Code::out_of_memory;"
    if len(line) <= 100:
        yield line
        return
    yield f"  if ({tests[0]} ||"
    yield from (f"      {test} ||" for test in tests[1:-1])
    yield f"      {tests[-1]}) {{"
    yield "    return axir::Code::out_of_memory;"
    yield "  }"

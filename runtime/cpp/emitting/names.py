"""C++ names made from Python names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# The version of the headers that models are written for; it is part of their namespace and folder.
RUNTIME_VERSION = 3
NAMESPACE = f"axir::v{RUNTIME_VERSION}"

_WIDTH = 100

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
    wchar_t while xor xor_eq std axir
    """.split()
)


def identifier(text: str, fallback: str = "value") -> str:
    """Returns the name that is nearest to a path of Python's.

    >>> identifier("params['layer 1'][0].w")
    'params_layer_1_0_w'
    >>> identifier("class"), identifier("[0]")
    ('class_', 'value_0')
    """
    words = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")
    if not words or words[0].isdigit():
        words = f"{fallback}_{words}".rstrip("_")
    return f"{words}_" if words in _KEYWORDS else words


# Names of local variables in the functions of models.
_OWN = frozenset(("code", "next", "output", "result", "rows", "sizes", "status"))


def argument_name(label: str) -> str:
    """Returns the name of an argument.

    >>> argument_name("params['w']"), argument_name("output")
    ('params_w', 'output_')
    """
    name = identifier(label, "argument")
    return f"{name}_" if name in _OWN else name


def unique_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Returns the names with numbers added where they repeat.

    >>> unique_names(["a", "b", "a"])
    ['a', 'b', 'a_2']
    """
    seen = set(taken)
    result = []
    for name in names:
        unique, number = name, 1
        while unique in seen:
            number += 1
            unique = f"{name}_{number}"
        seen.add(unique)
        result.append(unique)
    return result


def declaration(start: str, parameters: Sequence[str], end: str, indent: int = 0) -> list[str]:
    """Returns a declaration, with its parameters on separate lines if it is too long for one.

    >>> declaration("void f(", ["int a", "int b"], ");")
    ['void f(int a, int b);']
    """
    line = " " * indent + f"{start}{', '.join(parameters)}{end}"
    if len(line) <= _WIDTH or not parameters:
        return [line]
    column = " " * (indent + len(start))
    if max(map(len, parameters)) + len(column) + len(end) > _WIDTH:
        column = " " * (indent + 4)
        lines = [" " * indent + start, *(f"{column}{x}," for x in parameters)]
    else:
        lines = [f"{' ' * indent}{start}{parameters[0]},"]
        lines += [f"{column}{x}," for x in parameters[1:]]
    return [*lines[:-1], lines[-1].removesuffix(",") + end]


def quoted(text: str) -> str:
    """Returns a text as a literal of C++.

    >>> quoted("x[0]")
    '"x[0]"'
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def camel_case(name: str) -> str:
    """Returns the name as one of a type.

    >>> camel_case("train_step")
    'TrainStep'
    """
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))

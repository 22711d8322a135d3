"""Trees as text that reads like Python, for modules saved without their Python source.

`{'w': 0, 'b': (1, None)}` is a tree of two leaves; the numbers say which. Reading it executes only
functions that were registered for a class (`serialized.py`): other named tuples come back as new
classes of the same name and fields, containers of other classes as dictionaries from path to value.
"""

from __future__ import annotations

import ast
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable

from axir.dialect.core.annotations import PyTree, UserObject
from axir.dialect.core.errors import ParseError, SerializationError, VerificationError

from . import tree
from .serialized import SavedClass, class_named, saved_class


def write(structure: tree.TreeDef) -> str:
    """Returns the text of a structure.

    >>> write(tree.structure(({"w": 1.0, "b": 2.0}, None)))
    "({'b': 0, 'w': 1}, None)"

    Raises:
        SerializationError: if a dictionary has keys other than strings, numbers and tuples.
    """
    return _write(structure.unflatten(range(structure.num_leaves)))


def _write(node: object) -> str:
    if node is None or type(node) is int:
        return repr(node)
    saved = saved_class(type(node))
    if saved is not None:
        return _write_saved(saved, node)
    if type(node) is tuple:
        return f"({', '.join(map(_write, node))}{',' if len(node) == 1 else ''})"
    if type(node) is list:
        return f"[{', '.join(map(_write, node))}]"
    if type(node) is dict:
        return _write_dictionary(node)
    if isinstance(node, (OrderedDict, defaultdict)):
        return f"{type(node).__name__}({_write_dictionary(node)})"
    if isinstance(node, deque):
        return f"deque({_write(list(node))})"
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        fields = zip(node._fields, node, strict=True)
        return f"{type(node).__name__}({', '.join(f'{k}={_write(v)}' for k, v in fields)})"
    children = tree.leaves(node, lambda child: child is not node)
    paths = tree.paths(node, lambda child: child is not node)
    entries = ", ".join(f"{p!r}: {_write(c)}" for p, c in zip(paths, children, strict=True))
    return f"{type(node).__name__}({{{entries}}})"


def _write_saved(saved: SavedClass, node: UserObject) -> str:
    """Writes an instance of a class that is known by a name: `saved('name', [...], 'hex')`."""
    if saved.write is None:
        return f"saved({saved.name!r}, {_write(list(node))})"
    auxiliary, children = saved.parts(node)
    return f"saved({saved.name!r}, {_write(children)}, {auxiliary.hex()!r})"


def _write_dictionary(node: dict[object, object]) -> str:
    items = list(node.items())
    if not isinstance(node, OrderedDict):  # for other dicts the order of insertion has no meaning
        items.sort(key=lambda item: tree.leaves(item[1])[:1])
    return "{" + ", ".join(f"{_key(k)}: {_write(v)}" for k, v in items) + "}"


def _key(key: object) -> str:
    text = repr(key)
    try:
        is_same = ast.literal_eval(text) == key
    except (ValueError, SyntaxError):
        is_same = False
    if not is_same:
        raise SerializationError(
            f"The dictionary key {text} of type {type(key).__name__!r} cannot be saved.",
            "Use strings or numbers as keys of argument and result trees.",
        )
    return text


def read(text: str) -> Callable[[list[UserObject]], UserObject]:
    """Returns the function that puts leaves into the tree that `write` wrote.

    >>> read("({'b': 0, 'w': 1}, None)")([10, 20])
    ({'b': 10, 'w': 20}, None)

    Raises:
        ParseError: if the text is not a tree's.
    """
    try:
        node = ast.parse(text, mode="eval").body
        _read(node)
    except (SyntaxError, ValueError, TypeError, RecursionError) as error:
        raise ParseError(
            f"{text!r} is not the notation of a tree: {error}.",
            "The module was edited or damaged: export it again.",
            where="",
        ) from None
    return lambda leaves: tree.map(lambda index: leaves[index], _read(node))


def structure(text: str | None, count: int, where: str) -> tree.TreeDef | None:
    """Returns the structure of so many leaves that a text describes; None without a text.

    Raises:
        ParseError: if the text is not a tree's.
        VerificationError: if its leaves are others.
    """
    if text is None:
        return None
    rebuild = read(text)
    try:
        skeleton = rebuild(list(range(count)))
    except IndexError:
        skeleton = None
    if sorted(tree.leaves(skeleton)) != list(range(count)):
        raise VerificationError(
            f"{where}: the function has {count} values, which are not the leaves of {text}.",
            "The module was edited: remove the attributes jaxpr.in_tree and jaxpr.out_tree.",
            where="",
        )
    return tree.structure(skeleton)


def _read(node: ast.expr) -> PyTree:
    if isinstance(node, ast.Constant) and (node.value is None or type(node.value) is int):
        return node.value
    if isinstance(node, ast.Tuple):
        return tuple(map(_read, node.elts))
    if isinstance(node, ast.List):
        return list(map(_read, node.elts))
    if isinstance(node, ast.Dict):
        keys = [ast.literal_eval(key) for key in node.keys if key is not None]
        return dict(zip(keys, map(_read, node.values), strict=True))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _read_container(node.func.id, node)
    raise ValueError("it holds something else than containers and numbers")


def _read_saved(node: ast.Call) -> PyTree:
    name, children, *rest = node.args
    known = class_named(str(ast.literal_eval(name)))
    values = _read(children)
    if known is None or not isinstance(values, list):
        raise ValueError(
            f"it holds the class {ast.unparse(name)}, which is not registered here "
            "(axir.export.register_pytree_node_serialization)"
        )
    if not rest:
        return known.kind(*values)
    return known.instance(bytes.fromhex(ast.literal_eval(rest[0])), values)


def _read_container(name: str, node: ast.Call) -> PyTree:
    if name == "saved" and not node.keywords and 2 <= len(node.args) <= 3:
        return _read_saved(node)
    if node.keywords or not node.args:
        fields = [keyword.arg or "" for keyword in node.keywords]
        values = [_read(keyword.value) for keyword in node.keywords]
        return namedtuple(name, fields)(*values)
    content = _read(node.args[0])
    if name == "OrderedDict":
        return OrderedDict(content)
    if name == "defaultdict":
        return defaultdict(None, content)
    return deque(content) if name == "deque" else content

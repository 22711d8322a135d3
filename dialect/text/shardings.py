"""Text of Shardy, JAX's dialect for the distribution of arrays, in a form that MLIR can read.

MLIR does not know the operations of `sdy` here, so it reads only their generic form. JAX writes
their custom form. Meshes and cuts of arrays become attributes with texts. Elsewhere: their meaning
(`passes/raising/`), and bytecode (`bytecode_shardings.py`).
"""

from __future__ import annotations

import re

NAMED = ("axes", "in_shardings", "manual_axes", "out_shardings", "sizes", "sym_name")
"""The names of the attributes."""

_MESH = re.compile(
    rb'sdy\.mesh @(\w+|"[^"]*") = (?:#sdy\.mesh)?<\[([^\]]*)\]([^>]*)>.*?(?= loc\(|$)', re.MULTILINE
)
_AXIS = re.compile(rb'"([^"]*)"=(\d+)')
_CONSTRAINT = re.compile(
    rb"sdy\.(sharding_constraint|reshard) (%[\w#]+) <.*?> : (.*?)(?= loc\(|$)", re.MULTILINE
)
_MANUAL = re.compile(
    rb"sdy\.manual_computation\(([^)]*)\) in_shardings=\[(.*?)\] out_shardings=\[(.*?)\] "
    rb"manual_axes=\{([^}]*)\} \((.*)\) \{$",
    re.MULTILINE,
)
_CALL = re.compile(rb'\b(?:func\.)?call (@(?:[\w$.-]+|"[^"]*"))\((.*?)\)( \{)?')
_COMPOSITE = re.compile(rb'\bstablehlo\.composite ("[^"]*")( [%\w#:, ]*)? \{')
_RETURN = re.compile(rb"sdy\.return\b(?: (%.*?) : (.*?))?(?= loc\(|$)", re.MULTILINE)
_INDENTATION = re.compile(rb" *")


def in_generic_form(text: bytes) -> bytes:
    """Returns text in which operations of `sdy` have their generic form, in the lines they had.

    >>> in_generic_form(b'sdy.mesh @m = <["x"=2]>')
    b'"sdy.mesh"() {sym_name = "m", axes = ["x"], sizes = array<i64: 2>} : () -> ()'
    """
    if b"sdy." not in text:
        return text
    text = _MESH.sub(_mesh, text)
    text = _CONSTRAINT.sub(rb'"sdy.\1"(\2) : (\3) -> \3', text)
    text = _RETURN.sub(_return, text)
    found = list(_MANUAL.finditer(text))
    for match in reversed(found):  # inner operations come first
        text = _manual(text, match)
    return text


def _mesh(match: re.Match[bytes]) -> bytes:
    axes = _AXIS.findall(match[2])
    names = b", ".join(b'"%s"' % name for name, _ in axes)
    sizes = b", ".join(size for _, size in axes)
    given = b"sizes = array<i64%s>" % (b": " + sizes if axes else b"")
    if match[3].strip():  # an explicit order of devices, which only whole programs may have
        return b'"sdy.mesh"() : () -> ()'
    name = match[1].strip(b'"')
    return b'"sdy.mesh"() {sym_name = "%s", axes = [%s], %s} : () -> ()' % (name, names, given)


def _return(match: re.Match[bytes]) -> bytes:
    return b'"sdy.return"(%s) : (%s) -> ()' % (match[1] or b"", match[2] or b"")


def _without_symbols(text: bytes) -> bytes:
    """Returns text in which operations of `sdy` call functions.

    MLIR looks for a called function in the nearest operation that may be a table of symbols. It
    takes a computation of an unknown dialect for one.
    """
    text = _CALL.sub(_call, text)
    return _COMPOSITE.sub(rb'"sdy.composite"(\2) {name = \1, ', text)


def _call(match: re.Match[bytes]) -> bytes:
    attributes = b", " if match[3] else b"}"
    return b'"sdy.call"(%s) {callee = %s%s' % (match[2], match[1], attributes)


def _manual(text: bytes, match: re.Match[bytes]) -> bytes:
    """Returns text in which one computation has its generic form."""
    begin = text.rfind(b"\n", 0, match.start()) + 1
    indentation = _INDENTATION.match(text, begin)
    assert indentation is not None
    end = text.find(b"\n" + indentation[0] + b"} : ", match.end())
    if end < 0:
        return text  # MLIR reports the mistake
    closing = end + 1 + len(indentation[0])
    block = b"^bb0(%s):" % match[5] if match[5] else b""
    names = (b"in_shardings", b"out_shardings", b"manual_axes")
    entries = zip(names, (match[2], match[3], match[4]), strict=True)
    said = b", ".join(b'%s = "%s"' % (k, v.replace(b'"', b'\\"')) for k, v in entries)
    return b"".join(
        (
            text[: match.start()],
            b'"sdy.manual_computation"(%s) ({ %s' % (match[1], block),
            _without_symbols(text[match.end() : closing]),
            b"}) {%s}" % said,
            text[closing + 1 :],
        )
    )

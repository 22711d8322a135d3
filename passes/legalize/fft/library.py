"""Fourier transforms of all lengths as functions in LLVM IR, which programs without IREE share.

Lengths, strides and the radices of stages are words of a plan that the functions read at run time.
So they are compiled once for a machine, and a program with a transform compiles nothing for it.
They compute the same bits as the kernels of a length (`columns.py`, `rows.py`): a butterfly of each
radix is written by the same code, and multiplied by the same table.

The stages of a vector of columns read arrays or buffers. Pairs are taken apart on the way to a
buffer, and put together on the way from one. Elsewhere: the plan (`shared.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from .butterflies import butterfly, times
from .written_code import Code, Number

Complex: TypeAlias = tuple[Number, Number]

RADICES = tuple(range(2, 14))
"""The lengths of the butterflies."""


PLAN = (
    *("matrices", "size", "table", "real", "imag", "to_real", "to_imag", "space"),
    *("pairs", "to_pairs", "part", "first", "second", "roots_0", "roots_1", "roots_2", "root_step"),
    *("length", "width", "scale"),
    *(f"{step}_{word}" for step in ("down", "across") for word in ("factors", "radices", "stages")),
)
"""The words of a plan; behind them come the radices of the stages.

`matrices` of `size` numbers; the numbers of the bindings of arrays; whether the operand and the
result are pairs, 2 if their parts are exchanged; how many numbers a `part` of a buffer has; the
sides of matrices for the first step, and where its roots begin in the table, `root_step` 0 if they
are few; those of the second step, and where its factor stands; for each step where its factors
begin in the table, and its radices in the plan, and how many stages it has, 0 for no such step.
"""


class Element(NamedTuple):
    """A type of numbers.

    Attributes:
        name: In MLIR.
        kind: In LLVM IR.
        size: In bytes.
    """

    name: str
    kind: str
    size: int


ELEMENTS = {"f32": Element("f32", "float", 4), "f64": Element("f64", "double", 8)}


PREFIX = "axir_transform_"
"""What the names of its kernels begin with."""


def symbol_of(element: str, lanes: int) -> str:
    """Returns the kernel's name."""
    return f"{PREFIX}{element}_{lanes}"


def transform_library(symbol: str) -> str:
    """Returns LLVM IR of the kernel of that name, and of the functions that it calls."""
    element, lanes = symbol.removeprefix(PREFIX).split("_")
    writer = _Library(ELEMENTS[element], int(lanes))
    return "\n".join(writer.functions(symbol))


# The functions -----------------------------------------------------------------------------------


class _Library:
    def __init__(self, element: Element, lanes: int):
        self.element, self.lanes = element, lanes
        self.vector = f"<{lanes} x {element.kind}>"

    def functions(self, symbol: str) -> Iterator[str]:
        """Yields all functions."""
        yield "declare i64 @llvm.umin.i64(i64, i64)"
        for kind in (self.vector, self.element.kind):
            suffix = (f"v{self.lanes}" if kind == self.vector else "") + self.element.name
            yield f"declare {kind} @llvm.fmuladd.{suffix}({kind}, {kind}, {kind})"
        for radix in RADICES:
            yield self.stage(radix)
        yield self.columns()
        yield self.turn()
        yield self.give()
        yield self.downs()
        yield self.acrosses()
        yield self.kernel(symbol)

    # Memory

    def at(self, code: Code, pointer: str, offset: str | int) -> str:
        """Returns the place so many numbers behind another one."""
        return code.do(f"getelementptr {self.element.kind}, ptr {pointer}, i64 {offset}")

    def load(self, code: Code, pointer: str) -> Number:
        """Returns a vector in memory."""
        value = code.do(f"load {self.vector}, ptr {pointer}, align {self.element.size}")
        return Number(code, value, self.vector)

    def single(self, code: Code, pointer: str, offset: str | int) -> Number:
        """Returns a number in memory."""
        value = code.do(f"load {self.element.kind}, ptr {self.at(code, pointer, offset)}")
        return Number(code, value, self.element.kind)

    def spread(self, code: Code, number: Number) -> Number:
        """Returns a vector of equal numbers."""
        one = code.do(f"insertelement {self.vector} poison, {number.kind} {number.value}, i32 0")
        return Number(code, self.shuffled(code, one, "poison", [0] * self.lanes), self.vector)

    def store(self, code: Code, x: Number, pointer: str) -> None:
        """Puts a vector into memory."""
        code.say(f"  store {self.vector} {x.value}, ptr {pointer}, align {self.element.size}")

    def shuffled(self, code: Code, x: str, y: str, order: Sequence[int]) -> str:
        """Returns lanes of two vectors."""
        mask = f"<{len(order)} x i32> <{', '.join(f'i32 {lane}' for lane in order)}>"
        return code.do(f"shufflevector {self.vector} {x}, {self.vector} {y}, {mask}")

    # Stages

    def stage(self, radix: int) -> str:
        """Writes all butterflies of a stage: see `columns.py`."""
        code = Code(
            f"define internal void @stage_{radix}(ptr %real, ptr %imag, i64 %row, ptr %to_real, "
            "ptr %to_imag, i64 %to_row, ptr %factors, i64 %rest, i64 %before)"
        )
        step = code.mul(code.mul("%rest", "%before"), "%row")
        to_step = code.mul("%before", "%to_row")
        turns = code.holds("ugt", "%rest", 1)
        with code.loop("%rest") as place:
            begin = code.mul(place, "%before")
            target = code.mul(begin, radix)
            factors = self.at(code, "%factors", code.mul(place, 2 * (radix - 1)))
            with code.loop("%before") as inner:
                first = code.mul(code.add(begin, inner), "%row")
                numbers = []
                for _ in range(radix):
                    numbers.append(self._read(code, "%real", "%imag", first))
                    first = code.add(first, step)
                found = butterfly(numbers, -1)
                kept = self._turned_by(code, found, factors, turns)
                at = code.mul(code.add(target, inner), "%to_row")
                for y in kept:
                    self._write(code, y, "%to_real", "%to_imag", at)
                    at = code.add(at, to_step)
        code.say("  ret void")
        return code.text

    def _turned_by(
        self, code: Code, found: Sequence[Complex], factors: str, turns: str
    ) -> Iterator[Complex]:
        """Yields numbers times factors, but for the first, if `turns`."""
        yield found[0]
        places = [[code.variable(self.vector) for _ in y] for y in found[1:]]
        for pair, y in zip(places, found[1:], strict=True):
            self._keep(code, pair, y)
        with code.when(turns):
            for number, (pair, y) in enumerate(zip(places, found[1:], strict=True)):
                factor = [
                    self.spread(code, self.single(code, factors, 2 * number + part))
                    for part in (0, 1)
                ]
                self._keep(code, pair, times(y, (factor[0], factor[1])))
        for pair in places:
            real, imag = (self.load(code, x) for x in pair)
            yield real, imag

    def _keep(self, code: Code, places: Sequence[str], y: Complex) -> None:
        for place, part in zip(places, y, strict=True):
            self.store(code, part, place)

    def _read(self, code: Code, real: str, imag: str, offset: str) -> Complex:
        first, second = (self.load(code, self.at(code, x, offset)) for x in (real, imag))
        return first, second

    def _write(self, code: Code, y: Complex, real: str, imag: str, offset: str) -> None:
        for part, pointer in zip(y, (real, imag), strict=True):
            self.store(code, part, self.at(code, pointer, offset))

    # Columns

    def columns(self) -> str:
        """Transforms a vector of columns, and returns the buffer with the result.

        Pairs of real and imaginary part (`%pairs`, 2 if they are exchanged) go to the last of three
        buffers first.
        """
        code = Code(
            "define internal ptr @columns(ptr %real, ptr %imag, i64 %row, i64 %pairs, "
            "ptr %buffers, i64 %part, ptr %factors, ptr %radices, i64 %count, i64 %length)"
        )
        kinds = ("ptr", "ptr", "i64", "ptr", "i64", "i64")
        state = [code.variable(kind) for kind in kinds]
        begin = ("%real", "%imag", "%row", "%factors", "%length", "1")
        self._set(code, state, kinds, begin)
        with code.when(code.holds("ne", "%pairs", 0)):
            taken = self._take(code)
            self._set(code, state, kinds, (*taken, str(self.lanes), *begin[3:]))
        last = code.variable("ptr")
        with code.loop("%count") as number:
            values = [code.do(f"load {k}, ptr {x}") for k, x in zip(kinds, state, strict=True)]
            real, imag, row, factors, length, before = values
            place = code.do(f"getelementptr i64, ptr %radices, i64 {number}")
            radix = code.do(f"load i64, ptr {place}")
            rest = code.do(f"udiv i64 {length}, {radix}")
            to_real, to_imag = self._buffer(code, code.do(f"and i64 {number}, 1"))
            self._stage_of(
                code, radix,
                f"ptr {real}, ptr {imag}, i64 {row}, ptr {to_real}, ptr {to_imag}, "
                f"i64 {self.lanes}, ptr {factors}, i64 {rest}, i64 {before}",
            )  # fmt: skip
            used = code.mul(code.mul(code.add(radix, -1), 2), rest)
            following = (self.at(code, factors, used), rest, code.mul(before, radix))
            self._set(code, state, kinds, (to_real, to_imag, str(self.lanes), *following))
            code.say(f"  store ptr {to_real}, ptr {last}")
        code.say(f"  ret ptr {code.do(f'load ptr, ptr {last}')}")
        return code.text

    def _set(
        self, code: Code, places: Sequence[str], kinds: Sequence[str], values: Sequence[str]
    ) -> None:
        for place, kind, value in zip(places, kinds, values, strict=True):
            code.say(f"  store {kind} {value}, ptr {place}")

    def _buffer(self, code: Code, number: str | int) -> tuple[str, str]:
        """Returns where the parts of a buffer begin."""
        real = self.at(code, "%buffers", code.mul(code.mul(number, 2), "%part"))
        return real, self.at(code, real, "%part")

    def _take(self, code: Code) -> tuple[str, str]:
        """Takes pairs apart, and returns where the parts lie."""
        buffer = self._buffer(code, 2)
        swaps = code.holds("eq", "%pairs", 2)
        first = code.pick(swaps, "ptr", *buffer[::-1])
        second = code.pick(swaps, "ptr", *buffer)
        with code.loop("%length") as number:
            here = self.at(code, "%real", code.mul(number, "%row"))
            low = self.load(code, here)
            high = self.load(code, self.at(code, here, self.lanes))
            to = code.mul(number, self.lanes)
            for part, place in enumerate((first, second)):
                order = range(part, 2 * self.lanes, 2)
                value = self.shuffled(code, low.value, high.value, order)
                self.store(code, Number(code, value, self.vector), self.at(code, place, to))
        return buffer

    def _stage_of(self, code: Code, radix: str, arguments: str) -> None:
        """Calls the stage of a radix."""
        end = f"stages_{radix[1:]}"
        cases = "\n    ".join(f"i64 {r}, label %{end}_{r}" for r in RADICES)
        code.say(f"  switch i64 {radix}, label %{end} [\n    {cases}\n  ]")
        for r in RADICES:
            code.say(f"{end}_{r}:\n  call void @stage_{r}({arguments})\n  br label %{end}")
        code.say(f"{end}:")

    def give(self) -> str:
        """Writes a vector of columns from a buffer, times a factor, as parts or as pairs."""
        code = Code(
            "define internal void @give(ptr %from, i64 %part, ptr %real, ptr %imag, i64 %row, "
            f"i64 %pairs, i64 %length, {self.element.kind} %scale)"
        )
        scale = self.spread(code, Number(code, "%scale", self.element.kind))
        imag = self.at(code, "%from", "%part")
        are_paired, swaps = code.holds("ne", "%pairs", 0), code.holds("eq", "%pairs", 2)
        are_apart = code.do(f"xor i1 {are_paired}, true")
        first = code.pick(swaps, "ptr", imag, "%from")
        second = code.pick(swaps, "ptr", "%from", imag)
        with code.loop("%length") as number:
            x, y = self._read(code, first, second, code.mul(number, self.lanes))
            x, y = x * scale, y * scale
            to = code.mul(number, "%row")
            with code.when(are_apart):
                self._write(code, (x, y), "%real", "%imag", to)
            with code.when(are_paired):
                order = [lane + part * self.lanes for lane in range(self.lanes) for part in (0, 1)]
                for half in (0, 1):
                    lanes = order[half * self.lanes : (half + 1) * self.lanes]
                    value = self.shuffled(code, x.value, y.value, lanes)
                    place = self.at(code, "%real", code.add(to, half * self.lanes))
                    self.store(code, Number(code, value, self.vector), place)
        code.say("  ret void")
        return code.text

    # Down: columns, transposed and multiplied by roots

    def turn(self) -> str:
        """Writes a vector of columns as rows of another matrix, times roots: see `rows.py`."""
        code = Code(
            "define internal void @turn(ptr %from, i64 %part, ptr %space, ptr %real, ptr %imag, "
            "i64 %column, ptr %table, ptr %plan)"
        )
        first = self.word(code, "first")
        imag, space = self.at(code, "%from", "%part"), self.at(code, "%space", "%part")
        with self.vectors(code, first) as place:
            begin = code.mul(place, self.lanes)
            for pointer, to in (("%from", "%space"), (imag, space)):
                begins = (code.add(begin, k * self.lanes) for k in range(self.lanes))
                rows = [self.load(code, self.at(code, pointer, x)).value for x in begins]
                for k, row in enumerate(self._transposed(code, rows)):
                    at = self.at(code, to, k * self.lanes)
                    self.store(code, Number(code, row, self.vector), at)
            with code.loop(self.lanes) as column:
                row = code.add("%column", column)
                y = self._read(code, "%space", space, code.mul(column, self.lanes))
                y = times(y, self._root(code, row, place, first))
                self._write(code, y, "%real", "%imag", code.add(code.mul(row, first), place))
        code.say("  ret void")
        return code.text

    def _transposed(self, code: Code, rows: list[str]) -> list[str]:
        """Returns the columns of a square: blocks of twice the size exchange their corners."""
        size = 1
        while size < self.lanes:
            low = [x + self.lanes * (x & size > 0) - size * (x & size > 0) for x in self._all()]
            high = [x + size if not x & size else x + self.lanes for x in self._all()]
            turned = list(rows)
            for k in self._all():
                if not k & size:
                    pair = rows[k], rows[k + size]
                    turned[k] = self.shuffled(code, *pair, low)
                    turned[k + size] = self.shuffled(code, *pair, high)
            rows, size = turned, 2 * size
        return rows

    def _all(self) -> range:
        return range(self.lanes)

    def _root(self, code: Code, row: str, place: str, first: str) -> Complex:
        """Returns the roots of a vector, from a table or as products of three tables."""
        places = [code.variable(self.vector) for _ in (0, 1)]
        real, imag, fine = (self.word(code, f"roots_{part}") for part in range(3))
        step = self.word(code, "root_step")
        are_many = code.holds("ne", step, 0)
        with code.when(code.do(f"xor i1 {are_many}, true")):
            at = code.add(code.mul(row, first), place)
            self._keep(code, places, self._pair_at(code, at, real, imag))
        with code.when(are_many):
            number = code.mul(row, place)
            factors = []
            for kind, start in (("udiv", real), ("urem", imag)):
                at = code.add(code.mul(code.do(f"{kind} i64 {number}, {step}"), 2), start)
                factors.append(
                    (self.single(code, "%table", at), self.single(code, "%table", code.add(at, 1)))
                )
            whole = times(*factors)
            at = code.mul(row, 2 * self.lanes)
            fine_imag = code.add(fine, self.lanes)
            roots = self._pair_at(code, at, fine, fine_imag)
            spread = self.spread(code, whole[0]), self.spread(code, whole[1])
            self._keep(code, places, times(roots, spread))
        first_part, second_part = (self.load(code, x) for x in places)
        return first_part, second_part

    def _pair_at(self, code: Code, at: str, real: str, imag: str) -> Complex:
        first, second = (
            self.load(code, self.at(code, "%table", code.add(at, start))) for start in (real, imag)
        )
        return first, second

    # The kernel

    def word(self, code: Code, name: str) -> str:
        """Returns a word of the plan."""
        number = PLAN.index(name)
        return code.do(f"load i64, ptr {self._word_at(code, str(number))}")

    def _word_at(self, code: Code, number: str) -> str:
        return code.do(f"getelementptr i64, ptr %plan, i64 {number}")

    @contextmanager
    def vectors(self, code: Code, width: str) -> Iterator[str]:
        """Runs code for the first column of each vector of so many columns."""
        count = code.do(f"udiv i64 {code.add(width, self.lanes - 1)}, {self.lanes}")
        last = code.add(width, -self.lanes)
        with code.loop(count) as number:
            yield code.least(code.mul(number, self.lanes), last)

    def _passes(self, name: str, more: str) -> tuple[Code, str]:
        code = Code(
            f"define internal void @{name}(ptr %real, ptr %imag, i64 %pairs, ptr %to_real, "
            f"ptr %to_imag, ptr %space, ptr %table, ptr %plan{more})"
        )
        return code, self.word(code, "part")

    def _columns_at(
        self, code: Code, column: str, width: str, part: str, step: str, length: str
    ) -> str:
        """Transforms a vector of columns, and returns the buffer of the result."""
        are_paired = code.holds("ne", "%pairs", 0)
        factor = code.pick(are_paired, "i64", 2, 1)
        start, row = code.mul(column, factor), code.mul(width, factor)
        real, imag = (self.at(code, x, start) for x in ("%real", "%imag"))
        factors = self.at(code, "%table", self.word(code, f"{step}_factors"))
        radices = self._word_at(code, self.word(code, f"{step}_radices"))
        count = self.word(code, f"{step}_stages")
        return code.do(
            f"call ptr @columns(ptr {real}, ptr {imag}, i64 {row}, i64 %pairs, ptr %space, "
            f"i64 {part}, ptr {factors}, ptr {radices}, i64 {count}, i64 {length})"
        )

    def downs(self) -> str:
        """Transforms the columns of a matrix, and writes them as rows of another one."""
        code, part = self._passes("down", "")
        first, second = self.word(code, "first"), self.word(code, "second")
        scratch = self.at(code, "%space", code.mul(part, 4))
        with self.vectors(code, second) as column:
            found = self._columns_at(code, column, second, part, "down", first)
            code.say(
                f"  call void @turn(ptr {found}, i64 {part}, ptr {scratch}, ptr %to_real, "
                f"ptr %to_imag, i64 {column}, ptr %table, ptr %plan)"
            )
        code.say("  ret void")
        return code.text

    def acrosses(self) -> str:
        """Transforms the columns of a matrix, and writes them to columns."""
        code, part = self._passes("across", ", i64 %to_pairs")
        length, width = self.word(code, "length"), self.word(code, "width")
        scale = self.single(code, "%table", self.word(code, "scale"))
        are_paired = code.holds("ne", "%to_pairs", 0)
        factor = code.pick(are_paired, "i64", 2, 1)
        row = code.mul(width, factor)
        with self.vectors(code, width) as column:
            found = self._columns_at(code, column, width, part, "across", length)
            start = code.mul(column, factor)
            real, imag = (self.at(code, x, start) for x in ("%to_real", "%to_imag"))
            code.say(
                f"  call void @give(ptr {found}, i64 {part}, ptr {real}, ptr {imag}, i64 {row}, "
                f"i64 %to_pairs, i64 {length}, {scale.kind} {scale.value})"
            )
        code.say("  ret void")
        return code.text

    def kernel(self, symbol: str) -> str:
        """Transforms all matrices in the first workgroup: see `native_entry.py`."""
        code = Code(f"define i32 @{symbol}(ptr %environment, ptr %state, ptr %workgroup)")
        code.say("  %bound_at = getelementptr i8, ptr %state, i64 32")
        code.say("  %bound = load ptr, ptr %bound_at\n  %plan = load ptr, ptr %bound")
        table, real, imag, to_real, to_imag, space = (
            self._bound(code, self.word(code, name))
            for name in ("table", "real", "imag", "to_real", "to_imag", "space")
        )
        number = code.do("load i32, ptr %workgroup")
        size = self.word(code, "size")
        pairs, to_pairs = self.word(code, "pairs"), self.word(code, "to_pairs")
        has_down, has_across = (
            code.holds("ne", self.word(code, f"{step}_stages"), 0) for step in ("down", "across")
        )
        middle = self.at(code, space, code.mul(self.word(code, "part"), 6))
        middles = middle, self.at(code, middle, size)
        with code.when(code.do(f"icmp eq i32 {number}, 0")):
            with code.loop(self.word(code, "matrices")) as matrix:
                start = code.mul(matrix, size)
                source = self._moved(code, (real, imag), start, pairs)
                target = self._moved(code, (to_real, to_imag), start, to_pairs)
                rest = f"ptr {space}, ptr {table}, ptr %plan"
                between = self._chosen(code, has_across, middles, target)
                with code.when(has_down):
                    code.say(
                        f"  call void @down({self._pointers(source)}, i64 {pairs}, "
                        f"{self._pointers(between)}, {rest})"
                    )
                after = self._chosen(code, has_down, middles, source)
                apart = code.pick(has_down, "i64", 0, pairs)
                with code.when(has_across):
                    code.say(
                        f"  call void @across({self._pointers(after)}, i64 {apart}, "
                        f"{self._pointers(target)}, {rest}, i64 {to_pairs})"
                    )
        code.say("  ret i32 0")
        return code.text

    def _bound(self, code: Code, number: str) -> str:
        return code.do(f"load ptr, ptr {code.do(f'getelementptr ptr, ptr %bound, i64 {number}')}")

    def _moved(self, code: Code, arrays: Sequence[str], start: str, pairs: str) -> tuple[str, str]:
        factor = code.pick(code.holds("ne", pairs, 0), "i64", 2, 1)
        first, second = (self.at(code, x, code.mul(start, factor)) for x in arrays)
        return first, second

    def _chosen(
        self, code: Code, condition: str, x: Sequence[str], y: Sequence[str]
    ) -> tuple[str, str]:
        first, second = (code.pick(condition, "ptr", *both) for both in zip(x, y, strict=True))
        return first, second

    def _pointers(self, pair: Sequence[str]) -> str:
        return ", ".join(f"ptr {x}" for x in pair)

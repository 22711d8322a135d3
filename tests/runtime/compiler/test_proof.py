"""The proof that a program reads the meant values from memory, on right and wrong programs.

A program is written twice in IREE's stream dialect: with values, and with memory, once rightly and
in each way that is wrong.
"""

from __future__ import annotations

import pytest
from iree.compiler import ir

from axir.runtime.compiler.invocation.proof import UnprovableError, Violation, violations
from axir.runtime.compiler.invocation.stream_passes import host_text

ARRAY = "!stream.resource<transient>{%c64}"
HEAD = """
util.func public @main(%a: !hal.buffer_view) -> !hal.buffer_view {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0 : i32
  %x = stream.tensor.import %a
    : !hal.buffer_view -> tensor<16xf32> in !stream.resource<external>{%c64}
"""
TAIL = """
  %e = stream.tensor.export %d
    : tensor<16xf32> in !stream.resource<transient>{%c64} -> !hal.buffer_view
  util.return %e : !hal.buffer_view
}
"""

# An array is made, changed in place, and read: before and after the change.
MEANT = f"""{HEAD}
  %p, %t1 = stream.async.execute with(%x as %i: !stream.resource<external>{{%c64}}) -> {ARRAY} {{
    %0 = stream.async.dispatch @k::@made(%i[%c0 to %c64 for %c64])
      : (!stream.resource<external>{{%c64}}) -> {ARRAY}
    stream.yield %0 : {ARRAY}
  }} => !stream.timepoint
  %q, %t2 = stream.async.execute await(%t1) => with(%p as %i: {ARRAY}) -> {ARRAY} {{
    %0 = stream.async.clone %i : {ARRAY} -> {ARRAY}
    %1 = stream.async.dispatch @k::@changed(%0[%c0 to %c64 for %c64]) : ({ARRAY}) -> %0{{%c64}}
    stream.yield %1 : {ARRAY}
  }} => !stream.timepoint
  %r, %t3 = stream.async.execute await(%t2) => with(%p as %i: {ARRAY}, %q as %j: {ARRAY})
      -> {ARRAY} {{
    %0 = stream.async.dispatch @k::@read(%i[%c0 to %c64 for %c64], %j[%c0 to %c64 for %c64])
      : ({ARRAY}, {ARRAY}) -> {ARRAY}
    stream.yield %0 : {ARRAY}
  }} => !stream.timepoint
  %d = stream.timepoint.await %t3 => %r : {ARRAY}
{TAIL}"""


def allocated(*names: str, size: str = "%c64") -> str:
    return "".join(
        f"  %{name}, %t_{name} = stream.resource.alloca uninitialized "
        f": !stream.resource<transient>{{{size}}} => !stream.timepoint\n"
        for name in names
    )


def part(name: str, waits: str, commands: str, size: str = "%c64") -> str:
    """Returns a part of a program that uses the arrays x, p, q and r by these names."""
    with_ = ", ".join(
        f"%{array} as %{array}_: !stream.resource<{kind}>{{{size_}}}"
        for array, kind, size_ in (
            ("x", "external", "%c64"),
            ("p", "transient", size),
            ("q", "transient", size),
            ("r", "transient", size),
        )
    )
    return (
        f"  %{name} = stream.cmd.execute await({waits}) => with({with_}) {{\n{commands}"
        "  } => !stream.timepoint\n"
    )


def span(mode: str, array: str, start: str = "%c0", size: str = "%c64") -> str:
    kind = "external" if array == "x" else "transient"
    whole = "%c64" if array == "x" else size
    return f"{mode} %{array}_[{start} for %c64] : !stream.resource<{kind}>{{{whole}}}"


def dispatch(kernel: str, *spans: str) -> str:
    return f"    stream.cmd.dispatch @k::@{kernel} {{ {', '.join(spans)} }}\n"


def copied(source: str, target: str) -> str:
    return f"    stream.cmd.copy %{source}_[%c0], %{target}_[%c0], %c64 : {ARRAY} -> {ARRAY}\n"


MAKES = dispatch("made", span("ro", "x"), span("wo", "p"))
CHANGES = dispatch("changed", span("rw", "q"))
READS = dispatch("read", span("ro", "p"), span("ro", "q"), span("wo", "r"))
ALL = allocated("p", "q", "r") + (
    "  %t0 = stream.timepoint.join max(%t_p, %t_q, %t_r) => !stream.timepoint\n"
)


def waited(time_point: str, array: str = "r", size: str = "%c64") -> str:
    kind = f"!stream.resource<transient>{{{size}}}"
    return f"  %d = stream.timepoint.await %{time_point} => %{array} : {kind}\n"


def made(*lines: str) -> str:
    return HEAD + "".join(lines) + TAIL


def texts(text: str) -> list[str]:
    with ir.Context():
        return host_text(ir.Module.parse(text).operation)


def found(meant: str, text: str) -> list[Violation]:
    return violations(texts(meant), texts(text))


RIGHT = {
    "in three parts": made(
        ALL,
        part("t1", "%t0", MAKES),
        part("t2", "%t1", copied("p", "q") + CHANGES),
        part("t3", "%t2", READS),
        waited("t3"),
    ),
    "in one part": made(
        ALL, part("t1", "%t0", MAKES + copied("p", "q") + CHANGES + READS), waited("t1")
    ),
    "with memory that is given back": made(
        ALL,
        part("t1", "%t0", MAKES + copied("p", "q") + CHANGES + READS),
        f"  %t2 = stream.resource.dealloca await(%t1) => %p : {ARRAY} => !stream.timepoint\n",
        waited("t2"),
    ),
    "with two copies": made(
        ALL,
        part("t1", "%t0", MAKES + copied("p", "r")),
        part("t2", "%t1", copied("r", "q") + CHANGES + READS),
        waited("t2"),
    ),
    "where the host waits in between": made(
        ALL,
        part("t1", "%t0", MAKES + copied("p", "q") + CHANGES),
        f"  %p1 = stream.timepoint.await %t1 => %p : {ARRAY}\n",
        part("t2", "%t_r", READS),
        waited("t2"),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_accepted(name: str) -> None:
    assert found(MEANT, RIGHT[name]) == []


WRONG = {
    "read after it was changed, across parts": (
        made(
            ALL,
            part("t1", "%t0", MAKES),
            part("t2", "%t1", dispatch("changed", span("rw", "p"))),
            part("t3", "%t2", dispatch("read", span("ro", "p"), span("ro", "p"), span("wo", "r"))),
            waited("t3"),
        ),
        "value",
        "read reads the result of changed (byte 0 of 64) where the result of made is meant",
    ),
    "copied after it was changed, within a part": (
        made(
            ALL,
            part(
                "t1",
                "%t0",
                MAKES
                + dispatch("changed", span("rw", "p"))
                + copied("p", "q")
                + dispatch("read", span("ro", "q"), span("ro", "p"), span("wo", "r")),
            ),
            waited("t1"),
        ),
        "value",
        "where the result of made is meant",
    ),
    "read before it was written": (
        made(
            ALL,
            part("t1", "%t0", copied("p", "q") + MAKES + CHANGES + READS),
            waited("t1"),
        ),
        "value",
        "changed reads something else",
    ),
    "changed while it is read, for a part does not wait": (
        made(
            ALL,
            part("t1", "%t0", MAKES),
            part("t2", "%t1", copied("p", "q") + CHANGES),
            part("t3", "%t1", READS),
            waited("t3"),
        ),
        "race",
        "read reads what is written without waiting for that",
    ),
    "used before it is there": (
        made(
            ALL,
            part("t1", "%t_p", MAKES + copied("p", "q") + CHANGES + READS),
            waited("t1"),
        ),
        "race",
        "without waiting",
    ),
    "given to the caller before it is there": (
        made(
            ALL,
            part("t1", "%t0", MAKES + copied("p", "q") + CHANGES + READS),
            "  %d = stream.timepoint.await %t0 => %r : " + ARRAY + "\n",
        ),
        "race",
        "stream.tensor.export reads what is written without waiting for that",
    ),
    "given back before it is read": (
        made(
            ALL,
            part("t1", "%t0", MAKES + copied("p", "q") + CHANGES),
            f"  %t2 = stream.resource.dealloca await(%t1) => %p : {ARRAY} => !stream.timepoint\n",
            part("t3", "%t2", READS),
            waited("t3"),
        ),
        "freed",
        "read uses memory that has been given back",
    ),
    "given back while it is read": (
        made(
            ALL,
            part("t1", "%t0", MAKES + copied("p", "q") + CHANGES),
            part("t2", "%t1", READS),
            f"  %t3 = stream.resource.dealloca await(%t1) => %p : {ARRAY} => !stream.timepoint\n",
            waited("t2"),
        ),
        "race",
        "stream.resource.dealloca writes what is read without waiting for that",
    ),
    "written by two at the same time": (
        made(
            ALL,
            part(
                "t1",
                "%t0",
                MAKES
                + "    stream.cmd.concurrent {\n"
                + copied("p", "q")
                + CHANGES
                + "    }\n"
                + READS,
            ),
            waited("t1"),
        ),
        "race",
        "changed touches what is written at the same time",
    ),
    "a kernel that writes what it reads": (
        made(
            ALL,
            part(
                "t1",
                "%t0",
                MAKES
                + copied("p", "q")
                + CHANGES
                + dispatch("read", span("ro", "p"), span("ro", "q"), span("wo", "q")),
            ),
            waited("t1", "q"),
        ),
        "overlap",
        "read writes to what it reads or writes elsewhere",
    ),
    "another result than is meant": (
        made(
            ALL,
            part("t1", "%t0", MAKES + copied("p", "q") + CHANGES + READS),
            waited("t1", "q"),
        ),
        "value",
        "stream.tensor.export reads the result of changed (byte 0 of 64) where the result of read",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused(name: str) -> None:
    text, kind, message = WRONG[name]
    refused = found(MEANT, text)
    assert kind in [violation.kind for violation in refused]
    assert any(message in str(violation) for violation in refused), list(map(str, refused))


def packed(first: str, second: str, third: str) -> str:
    """Returns a program with its arrays in one buffer of 192 bytes."""
    slab = {"p": first, "q": second, "r": third}

    def at(mode: str, array: str) -> str:
        return f"{mode} %s_[{slab[array]} for %c64] : !stream.resource<transient>{{%c192}}"

    kind = "!stream.resource<transient>{%c192}"
    return made(
        "  %c192 = arith.constant 192 : index\n",
        allocated("s", size="%c192"),
        "  %t1 = stream.cmd.execute await(%t_s) => "
        f"with(%x as %x_: !stream.resource<external>{{%c64}}, %s as %s_: {kind}) {{\n",
        dispatch("made", span("ro", "x"), at("wo", "p")),
        f"    stream.cmd.copy %s_[{first}], %s_[{second}], %c64 : {kind} -> {kind}\n",
        dispatch("changed", at("rw", "q")),
        dispatch("read", at("ro", "p"), at("ro", "q"), at("wo", "r")),
        "  } => !stream.timepoint\n",
        f"  %w = stream.timepoint.await %t1 => %s : {kind}\n",
        f"  %d = stream.resource.subview %w[{third}] : {kind} -> {ARRAY}\n",
    )


def test_arrays_that_live_at_the_same_time_do_not_overlap() -> None:
    assert found(MEANT, packed("%c0", "%c64", "%c128")) == []
    kinds = {violation.kind for violation in found(MEANT, packed("%c0", "%c32", "%c128"))}
    assert kinds == {"value", "overlap"}  # the copy's ranges overlap, so half is lost
    refused = [str(x) for x in found(MEANT, packed("%c0", "%c0", "%c128"))]
    assert any("stream.cmd.copy copies memory onto itself" in x for x in refused), refused
    assert {x.kind for x in found(MEANT, packed("%c0", "%c64", "%c96"))} == {"overlap"}


# A loop that carries two arrays and exchanges them.
LOOP = f"""{HEAD}
  %n = util.optimization_barrier %zero : i32
  %one = arith.constant 1 : i32
  %c, %t1 = stream.async.execute with(%x as %i: !stream.resource<external>{{%c64}})
      -> ({ARRAY}) {{
    %0 = stream.async.dispatch @k::@made(%i[%c0 to %c64 for %c64])
      : (!stream.resource<external>{{%c64}}) -> {ARRAY}
    stream.yield %0 : {ARRAY}
  }} => !stream.timepoint
  %z, %t2 = stream.async.execute with() -> ({ARRAY}) {{
    %0 = stream.async.splat %zero : i32 -> {ARRAY}
    stream.yield %0 : {ARRAY}
  }} => !stream.timepoint
  cf.br ^loop(%zero, %c, %t1, %z, %t2
    : i32, !stream.resource<transient>, !stream.timepoint,
      !stream.resource<transient>, !stream.timepoint)
^loop(%k: i32, %u: !stream.resource<transient>, %tu: !stream.timepoint,
      %v: !stream.resource<transient>, %tv: !stream.timepoint):
  %tj = stream.timepoint.join max(%tu, %tv) => !stream.timepoint
  %w, %tw = stream.async.execute await(%tj) => with(%u as %i: {ARRAY}, %v as %j: {ARRAY})
      -> {ARRAY} {{
    %0 = stream.async.dispatch @k::@read(%i[%c0 to %c64 for %c64], %j[%c0 to %c64 for %c64])
      : ({ARRAY}, {ARRAY}) -> {ARRAY}
    stream.yield %0 : {ARRAY}
  }} => !stream.timepoint
  %next = arith.addi %k, %one : i32
  %goes_on = arith.cmpi slt, %next, %n : i32
  cf.cond_br %goes_on, ^loop(%next, %w, %tw, %u, %tw
    : i32, !stream.resource<transient>, !stream.timepoint,
      !stream.resource<transient>, !stream.timepoint),
    ^end
^end:
  %d = stream.timepoint.await %tw => %w : {ARRAY}
{TAIL}"""


def loop(target: str, first: str, second: str, waits: str = "%tj2") -> str:
    """Returns the loop with memory: `target` is written by the body, the others are passed on."""
    kind = "!stream.resource<transient>"
    return f"""{HEAD}
  %n = util.optimization_barrier %zero : i32
  %one = arith.constant 1 : i32
{ALL}
  %t1 = stream.cmd.execute await(%t0) => with(%x as %x_: !stream.resource<external>{{%c64}},
      %p as %p_: {ARRAY}, %q as %q_: {ARRAY}) {{
{MAKES}
    stream.cmd.fill %zero, %q_[%c0 for %c64] : i32 -> {ARRAY}
  }} => !stream.timepoint
  cf.br ^loop(%zero, %p, %q, %r, %t1 : i32, {kind}, {kind}, {kind}, !stream.timepoint)
^loop(%k: i32, %u: {kind}, %v: {kind}, %f: {kind}, %tj: !stream.timepoint):
  %new, %t_new = stream.resource.alloca uninitialized : {ARRAY} => !stream.timepoint
  %tj2 = stream.timepoint.join max(%tj, %t_new) => !stream.timepoint
  %tw = stream.cmd.execute await({waits}) => with(%u as %u_: {ARRAY}, %v as %v_: {ARRAY},
      {target} as %w_: {ARRAY}) {{
    stream.cmd.dispatch @k::@read {{ ro %u_[%c0 for %c64] : {ARRAY}, ro %v_[%c0 for %c64] : {ARRAY},
      wo %w_[%c0 for %c64] : {ARRAY} }}
  }} => !stream.timepoint
  %next = arith.addi %k, %one : i32
  %goes_on = arith.cmpi slt, %next, %n : i32
  cf.cond_br %goes_on, ^loop(%next, {first}, {second}, %v, %tw
    : i32, {kind}, {kind}, {kind}, !stream.timepoint), ^end
^end:
  %d = stream.timepoint.await %tw => {target} : {ARRAY}
{TAIL}"""


def test_what_a_loop_carries_is_what_its_next_pass_finds() -> None:
    assert found(LOOP, loop("%new", "%new", "%u")) == []
    assert found(LOOP, loop("%f", "%f", "%u")) == []  # three arrays that change places
    for name, wrong in {
        "an older value": loop("%new", "%new", "%v"),
        "exchanged": loop("%new", "%u", "%new"),
        "overwritten": loop("%new", "%new", "%new"),
        "not waited for": loop("%f", "%f", "%u", waits="%t_new"),
    }.items():
        assert found(LOOP, wrong), name


# A loop that changes its carried array in place, and also carries the array's size.
_HANDED = "!stream.resource<transient>{%s}"
_PASSED = "i32, !stream.resource<transient>, !stream.timepoint, index"
_NEXT = f"""
  %next = arith.addi %k, %one : i32
  %goes_on = arith.cmpi slt, %next, %n : i32
  cf.cond_br %goes_on, ^loop(%next, %w, %tw, %s : {_PASSED}), ^end
^end:
  %d = stream.timepoint.await %tw => %w : {_HANDED}
  %e = stream.tensor.export %d
    : tensor<16xf32> in !stream.resource<transient>{{%c64}} -> !hal.buffer_view
  util.return %e : !hal.buffer_view
}}
"""
_BEGIN = f"""{HEAD}
  %n = util.optimization_barrier %zero : i32
  %one = arith.constant 1 : i32
"""
_LOOP_BEGINS = "^loop(%k: i32, %u: !stream.resource<transient>, %tu: !stream.timepoint, %s: index):"
HANDED = f"""{_BEGIN}
  %c, %t1 = stream.async.execute with(%x as %i: !stream.resource<external>{{%c64}})
      -> ({ARRAY}) {{
    %0 = stream.async.dispatch @k::@made(%i[%c0 to %c64 for %c64])
      : (!stream.resource<external>{{%c64}}) -> {ARRAY}
    stream.yield %0 : {ARRAY}
  }} => !stream.timepoint
  cf.br ^loop(%zero, %c, %t1, %c64 : {_PASSED})
{_LOOP_BEGINS}
  %w, %tw = stream.async.execute await(%tu) => with(%u as %i: {_HANDED}) -> %u as {_HANDED} {{
    %0 = stream.async.dispatch @k::@changed(%i[%c0 to %s for %s]) : ({_HANDED}) -> %i{{%s}}
    stream.yield %0 : {_HANDED}
  }} => !stream.timepoint
{_NEXT}"""


def handed(changed: str, waits: str = "%tu") -> str:
    """Returns the loop with memory: the body changes the bytes `changed`, and waits for `waits`."""
    return f"""{_BEGIN}
{allocated("p")}
  %t1 = stream.cmd.execute await(%t_p) => with(%x as %x_: !stream.resource<external>{{%c64}},
      %p as %p_: {ARRAY}) {{
{MAKES}
  }} => !stream.timepoint
  cf.br ^loop(%zero, %p, %t1, %c64 : {_PASSED})
{_LOOP_BEGINS}
  %tw = stream.cmd.execute await({waits}) => with(%u as %u_: {_HANDED}) {{
    stream.cmd.dispatch @k::@changed {{ rw %u_[%c0 for {changed}] : {_HANDED} }}
  }} => !stream.timepoint
{_NEXT.replace("%w", "%u").replace("%tu", "%tw")}"""


def test_a_loop_changes_an_array_of_a_handed_size_in_place() -> None:
    assert found(HANDED, handed("%s")) == []
    assert found(HANDED, handed("%s", waits="%t1"))


def test_a_condition_may_give_nothing() -> None:
    hides = "    %n = util.optimization_barrier %zero : i32\n"
    flag = "  %flag = util.optimization_barrier %false : i1\n"
    known = "  %false = arith.constant false\n" + flag
    meant = MEANT.replace(TAIL, f"{known}  scf.if %flag {{\n{hides}  }}{TAIL}")
    branches = f"{known}  cf.cond_br %flag, ^chosen, ^end\n^chosen:\n{hides}  cf.br ^end\n^end:\n"
    assert found(meant, RIGHT["in one part"].replace(TAIL, branches + TAIL)) == []
    wrong, _, _ = WRONG["given back before it is read"]
    assert found(meant, wrong.replace(TAIL, branches + TAIL))


_BRANCHED = f"""{HEAD}
  %false = arith.constant false
  %flag = util.optimization_barrier %false : i1
"""
# One branch passes an array on, another changes it; then a second branch has the same condition.
CHOSEN = f"""{_BRANCHED}
  %p, %t1 = stream.async.execute with(%x as %i: !stream.resource<external>{{%c64}}) -> {ARRAY} {{
    %0 = stream.async.dispatch @k::@made(%i[%c0 to %c64 for %c64])
      : (!stream.resource<external>{{%c64}}) -> {ARRAY}
    stream.yield %0 : {ARRAY}
  }} => !stream.timepoint
  %s, %ts = scf.if %flag -> (!stream.resource<transient>, !stream.timepoint) {{
    scf.yield %p, %t1 : !stream.resource<transient>, !stream.timepoint
  }} else {{
    %q, %t2 = stream.async.execute await(%t1) => with(%p as %i: {ARRAY}) -> {ARRAY} {{
      %0 = stream.async.clone %i : {ARRAY} -> {ARRAY}
      %1 = stream.async.dispatch @k::@changed(%0[%c0 to %c64 for %c64]) : ({ARRAY}) -> %0{{%c64}}
      stream.yield %1 : {ARRAY}
    }} => !stream.timepoint
    scf.yield %q, %t2 : !stream.resource<transient>, !stream.timepoint
  }}
  scf.if %flag {{
    %n = util.optimization_barrier %zero : i32
  }}
  %d = stream.timepoint.await %ts => %s : {ARRAY}
{TAIL}"""


def chosen(first: str, second: str) -> str:
    """Returns the program with memory: the offsets of the array that is passed on, or changed."""
    large = ARRAY.replace("%c64", "%c128")
    passed = "!stream.resource<transient>, !stream.timepoint"
    return f"""{_BRANCHED}
{allocated("p", size="%c128")}
  %t1 = stream.cmd.execute await(%t_p) => with(%x as %x_: !stream.resource<external>{{%c64}},
      %p as %p_: {large}) {{
    stream.cmd.dispatch @k::@made {{ ro %x_[%c0 for %c64] : !stream.resource<external>{{%c64}},
      wo %p_[%c64 for %c64] : {large} }}
  }} => !stream.timepoint
  %size = arith.select %flag, %c128, %c64 : index
  %at = arith.select %flag, {first}, {second} : index
  cf.cond_br %flag, ^given(%p, %t1 : {passed}), ^otherwise
^otherwise:
{allocated("q")}
  %t_pq = stream.timepoint.join max(%t1, %t_q) => !stream.timepoint
  %t2 = stream.cmd.execute await(%t_pq) => with(%p as %p_: {large}, %q as %q_: {ARRAY}) {{
    stream.cmd.copy %p_[%c64], %q_[%c0], %c64 : {large} -> {ARRAY}
    stream.cmd.dispatch @k::@changed {{ rw %q_[%c0 for %c64] : {ARRAY} }}
  }} => !stream.timepoint
  cf.br ^given(%q, %t2 : {passed})
^given(%s: !stream.resource<transient>, %ts: !stream.timepoint):
  cf.cond_br %flag, ^more, ^end
^more:
  %n = util.optimization_barrier %zero : i32
  cf.br ^end
^end:
  %w = stream.timepoint.await %ts => %s : !stream.resource<transient>{{%size}}
  %d = stream.resource.subview %w[%at] : !stream.resource<transient>{{%size}} -> {ARRAY}
{TAIL}"""


def test_branches_of_one_condition_go_the_same_way() -> None:
    assert found(CHOSEN, chosen("%c64", "%c0")) == []
    assert found(CHOSEN, chosen("%c0", "%c0"))
    assert found(CHOSEN, chosen("%c0", "%c64"))


def test_what_is_not_known_is_said() -> None:
    missing = made(ALL, part("t1", "%t0", MAKES + CHANGES), waited("t1"))
    with pytest.raises(UnprovableError, match=r"3 of stream\.async\.dispatch that became 2"):
        found(MEANT, missing)
    other = RIGHT["in one part"].replace("@k::@changed", "@k::@another")
    with pytest.raises(UnprovableError, match="another order of dispatches"):
        found(MEANT, other)

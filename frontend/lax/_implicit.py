"""Solvers with implicit differentiation: `custom_linear_solve`, `custom_root`."""

from __future__ import annotations

from collections.abc import Callable

from axir._arguments.arguments import check_callable, to_values
from axir._arguments.wrapping import boundary, wraps
from axir._transforms.autodiff import jvp, linearize
from axir._trees import tree
from axir.custom_derivatives._closures import hoist
from axir.custom_derivatives._forward import custom_jvp
from axir.custom_derivatives._zeros import zero_from_primal
from axir.dialect.core.annotations import Tree, UserFunction, UserObject
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import CustomRuleError, TreeError
from axir.dialect.core.types import NOWHERE, ShapedArray
from axir.dialect.ops.collectives.axis_reductions import pvary
from axir.dialect.ops.custom_rules.linear_solve import Functions, solve_linear
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.derived_functions import derive
from axir.dialect.program.function import Function
from axir.dialect.program.function_tracing import function_name, trace_function

Solver = UserFunction


class _System:
    """The vectors of a linear system: their structure and types."""

    def __init__(self, b: ArrayLike):
        leaves, self.structure = tree.flatten(b)
        self.b = to_values(leaves, b, "custom_linear_solve")
        self.types = [x.type.strip_weak_type() for x in self.b]

    def traced_product(self, matvec: Callable[..., object]) -> Function:
        """Traces the product, and lets b vary along the axes of a mesh along which it does."""
        while True:
            product = self.trace(matvec, "matvec")
            varying = NOWHERE.union(*(t.varying for t in product.output_types))
            if all(varying <= t.varying for t in self.types):
                return product
            self.b = [pvary(x, varying) for x in self.b]
            self.types = [x.type.strip_weak_type() for x in self.b]

    def trace(self, function: Callable[[object], object], name: str) -> Function:
        """Traces a function of vectors, and checks that it returns such."""

        def flat(*leaves: object) -> list[UserObject]:
            result = function(self.structure.unflatten(leaves))
            return self.checked(result, name)

        return trace_function(flat, self.types, name=name)

    def checked(self, result: Tree, name: str) -> list[UserObject]:
        """Returns the leaves of a vector; raises if it is no vector of the system."""
        leaves, structure = tree.flatten(result)
        if structure != self.structure:
            raise TreeError(
                f"custom_linear_solve: {name} returned a vector of structure {structure}, but b "
                f"has structure {self.structure}.",
                "matvec and solve map trees like b to trees like b.",
            )
        values = list(map(_in_dtype_of, leaves, self.types))
        for x, expected in zip(values, self.types, strict=True):
            if (x.type.shape, x.type.dtype) != (expected.shape, expected.dtype):
                raise CustomRuleError(
                    f"custom_linear_solve: {name} returned a value of type {x.type} where b has "
                    f"{expected}.",
                    "The matrix must be square: matvec and solve keep shapes and dtypes.",
                )
        return values

    def call(self, function: Function) -> Callable[[UserObject], UserObject]:
        """Returns a traced function as a function of trees."""

        def apply(vector: object) -> UserObject:
            leaves = self.checked(vector, f"an argument of {function.name}")
            return self.structure.unflatten(function.evaluate(*leaves))

        return apply


@boundary
def custom_linear_solve(
    matvec: Callable[[UserObject], UserObject],
    b: ArrayLike,
    solve: Solver,
    transpose_solve: Solver | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> UserObject:
    """Solves A x = b by a given solver, and differentiates as the solution of a linear system.

    The solver itself is never differentiated: the tangent of x solves A dx = db - dA x, and in
    reverse mode the transposed system is solved.

    Args:
        matvec: Multiplies by A: a linear function from a tree like `b` to a tree like `b`.
            Derivatives of A are taken in the values that it captures.
        b: The right-hand side, an array or a tree of arrays.
        solve: `(matvec, b) -> x`.
        transpose_solve: `(vecmat, b) -> x` for the transposed system; without it reverse mode is
            not possible.
        symmetric: Whether A is symmetric, so that `solve` serves both.
        has_aux: Whether the solvers return `(x, auxiliary)`.

    Returns:
        x, or `(x, auxiliary)`; the auxiliary result has no derivative.

    Raises:
        TreeError, CustomRuleError: if `matvec` or a solver returns something unlike `b`.
        UnsupportedRuleError: by reverse mode without `transpose_solve`.

    >>> import axir, axir.numpy as jnp
    >>> def solve(a):
    ...     return axir.lax.custom_linear_solve(
    ...         lambda x: a * x, 6.0, lambda matvec, b: b / matvec(1.0), symmetric=True)
    >>> float(solve(2.0)), float(axir.grad(solve)(2.0))
    (3.0, -1.5)
    """
    system = _System(b)
    product = system.traced_product(matvec)
    auxiliary: UserObject = None

    def solver(name: str, user: Solver, multiply: Callable[[object], object]) -> Function:
        def flat(*leaves: object) -> list[UserObject]:
            nonlocal auxiliary
            result = user(multiply, system.structure.unflatten(leaves))
            if not has_aux:
                return system.checked(result, name)
            if not isinstance(result, tuple) or len(result) != 2:
                raise TreeError(
                    f"custom_linear_solve: with has_aux=True {name} must return (x, auxiliary), "
                    f"but returned {result}."
                )
            further, auxiliary = tree.flatten(result[1])
            return [*system.checked(result[0], name), *map(as_value, further)]

        return trace_function(flat, system.types, name=name)

    solving = solver("solve", solve, matvec)
    out_structure = auxiliary
    transposed = _transposed_product(product)
    if symmetric:
        functions = Functions(product, product, solving, solving)
    elif transpose_solve is None:
        functions = Functions(product, None, solving, None)
    else:
        vecmat = system.call(transposed)
        back = solver("transpose_solve", transpose_solve, vecmat)
        functions = Functions(product, transposed, solving, back)
    results = solve_linear(functions, system.b)
    count = len(system.b)
    x = system.structure.unflatten(results[:count])
    return (x, out_structure.unflatten(results[count:])) if has_aux else x


def _transposed_product(product: Function) -> Function:
    """Returns the function that multiplies by the transpose, with the captures of the product."""
    count = len(product.inputs)
    is_linear = (*(True for _ in product.inputs), *(False for _ in product.captures))

    def multiply(*cotangents: object) -> list[UserObject]:
        derived = derive(product, "transpose", is_linear, (True,) * count, True)
        function = derived.function
        return function.interpret([*product.captured, *cotangents, *function.captured])

    return trace_function(multiply, product.output_types, name="vecmat")


@boundary
def custom_root(
    f: Callable[[UserObject], UserObject],
    initial_guess: object,
    solve: Callable[[Callable[[UserObject], UserObject], UserObject], UserObject],
    tangent_solve: Callable[[Callable[[UserObject], UserObject], UserObject], UserObject],
    has_aux: bool = False,
) -> UserObject:
    """Finds x with f(x) = 0 by a given solver, and differentiates by the implicit function theorem.

    The solver itself is never differentiated: where f also depends on a, dx solves
    (df/dx) dx = -(df/da) da.

    Args:
        f: From a tree to a tree of the same structure, shapes and dtypes. Derivatives are taken in
            the values that it captures.
        initial_guess: Where `solve` starts; it does not influence derivatives.
        solve: `(f, initial_guess) -> x`, or `(x, auxiliary)` with `has_aux`.
        tangent_solve: `(g, y) -> the solution of g(x) = y` for a linear function `g`.
        has_aux: Whether `solve` returns an auxiliary result.

    Raises:
        TreeError: if `f` or `solve` returns another structure than `initial_guess` has.

    >>> import axir, axir.numpy as jnp
    >>> def square_root(a):
    ...     newton = lambda f, x: axir.lax.fori_loop(0, 10, lambda i, x: x - f(x) / (2 * x), x)
    ...     return axir.lax.custom_root(
    ...         lambda x: x ** 2 - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> float(square_root(4.0)), float(axir.grad(square_root)(4.0))
    (2.0, 0.25)
    """
    check_callable(f, "custom_root")
    converted, consts, guess = _converted(f, tree.map(as_value, initial_guess))
    converted.__name__ = function_name(f)
    count = len(consts)

    def solved(guess: object, *consts: object) -> object:
        result = solve(lambda x: converted(x, *consts), guess)
        x, auxiliary = result if has_aux else (result, None)
        _check_structure(x, guess, "solve")
        return x, auxiliary

    def solve_tangent(x: ArrayLike, right: ArrayLike, *parameters: object) -> object:
        _, product = linearize(lambda y: converted(y, *parameters), x)

        def multiply(vector: object) -> UserObject:
            same = tree.structure(vector) == tree.structure(x)
            return product(tree.map(_in_dtype_of, vector, x) if same else vector)

        return custom_linear_solve(multiply, right, tangent_solve, tangent_solve)

    # Captures of the solvers do not influence the root.
    solver, further = hoist(solved, guess, *consts, is_const=lambda x: True)
    tangent_solver, last = hoist(solve_tangent, guess, guess, *consts, is_const=lambda x: True)
    end = 1 + count + len(further)
    root = custom_jvp(wraps(solver)(lambda *arguments: solver(*arguments[:end])))

    def root_jvp(
        primals: tuple[object, ...], tangents: tuple[object, ...]
    ) -> tuple[object, object]:
        parameters, moving = primals[1 : count + 1], tangents[1 : count + 1]
        x, auxiliary = root(*primals)
        _, moved = jvp(lambda *values: converted(x, *values), parameters, moving)
        right = tree.map(lambda t: -t, moved)
        dx = tangent_solver(x, right, *parameters, *primals[end:])
        return (x, auxiliary), (dx, tree.map(_zero_tangent, auxiliary))

    root.defjvp(root_jvp)
    x, auxiliary = root(guess, *consts, *further, *last)
    return (x, auxiliary) if has_aux else x


def _converted(
    f: Callable[[object], object], guess: object
) -> tuple[UserFunction, list, UserObject]:
    """Turns the traced captures of a function into arguments, and fits the guess to the function.

    Returns:
        The function, which takes a guess and these values; the values; and the guess. Weakly typed
        numbers of the guess get the dtypes of the function's results, as in loops.
    """
    while True:
        types: list[ShapedArray] = []
        # All traced values become arguments: the rule may run after their traces have ended.
        converted, consts = hoist(_keeping(f, guess, types), guess, is_const=lambda x: True)
        leaves, structure = tree.flatten(guess)
        is_fitting = [
            not x.weak_type or x.dtype == t.dtype or x.shape != t.shape
            for x, t in zip(leaves, types, strict=True)
        ]
        if all(is_fitting):
            return converted, consts, guess
        guess = structure.unflatten(
            x if fits else convert_element_type(x, t.dtype)
            for x, t, fits in zip(leaves, types, is_fitting, strict=True)
        )


def _keeping(
    f: Callable[[object], object], guess: object, types: list[ShapedArray]
) -> Callable[[object], object]:
    """Checks that a function returns trees like the guess, and notes the types in them."""

    @wraps(f)
    def checked(x: ArrayLike) -> UserObject:
        result = f(x)
        _check_structure(result, guess, "f")
        types[:] = [as_value(leaf).type for leaf in tree.leaves(result)]
        return result

    return checked


def _check_structure(result: Tree, guess: object, name: str) -> None:
    found, wanted = tree.structure(result), tree.structure(guess)
    if found != wanted:
        raise TreeError(
            f"custom_root: {name} returned a value of structure {found}, but initial_guess has "
            f"structure {wanted}.",
            "f and solve return trees like initial_guess.",
        )


def _in_dtype_of(value: ArrayLike, x: UserObject) -> UserObject:
    """Gives a weak number, such as the 1.0 that solvers of scalars take, another one's dtype."""
    value = as_value(value)
    return convert_element_type(value, x.dtype) if value.weak_type else value


def _zero_tangent(x: ArrayLike) -> object:
    return zero_from_primal(x)

"""What `help` says of the functions that transformations return."""

from __future__ import annotations

import axir


def scaled(x: axir.Array) -> axir.Array:
    """Scales what it is given."""
    return 2 * x


def test_the_transformation_is_told_and_the_original_where_it_still_holds() -> None:
    mapped = axir.vmap(scaled)
    assert mapped.__name__ == "scaled"
    assert mapped.__doc__.startswith("Vectorized version of scaled")
    assert mapped.__doc__.endswith("\n\nOriginal documentation:\n\nScales what it is given.")
    assert "Gradient of scaled by the arguments 0" in axir.grad(scaled).__doc__
    assert "Value and gradient of scaled by the arguments (0,)" in (
        axir.value_and_grad(scaled, (0,)).__doc__
    )
    assert "Jacobian of scaled by the arguments 0" in axir.jacfwd(scaled).__doc__
    assert "Original" not in axir.vmap(lambda x: x).__doc__

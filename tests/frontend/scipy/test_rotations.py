"""`axir.scipy.spatial.transform` against SciPy's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.spatial import transform as scipy_transform

import axir
from axir.dialect.core.config import config
from axir.scipy.spatial.transform import EulerAxesError, Rotation, RotationShapeError, Slerp

THEIRS = scipy_transform.Rotation
_GENERATOR = np.random.default_rng(0)
QUATERNIONS = _GENERATOR.normal(size=(20, 4))


@pytest.fixture(autouse=True)
def wide_dtypes() -> Iterator[None]:
    with config(jax_enable_x64=True):
        yield


def both() -> tuple[Rotation, Any]:
    return Rotation.from_quat(QUATERNIONS), THEIRS.from_quat(QUATERNIONS)


def assert_near(got: Any, want: Any) -> None:
    got = got.as_matrix() if isinstance(got, Rotation) else got
    want = want.as_matrix() if isinstance(want, THEIRS) else want
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, atol=1e-13)


@pytest.mark.parametrize("kind", ["quat", "matrix", "rotvec", "mrp"])
def test_descriptions(kind: str) -> None:
    for mine, theirs in (both(), tuple(r[0] for r in both())):
        want = getattr(theirs, f"as_{kind}")()
        assert_near(getattr(mine, f"as_{kind}")(), want)
        assert_near(getattr(Rotation, f"from_{kind}")(want), theirs)
    mine, theirs = both()
    assert_near(mine.as_quat(True, True), theirs.as_quat(canonical=True, scalar_first=True))
    assert_near(mine.as_rotvec(degrees=True), theirs.as_rotvec(degrees=True))
    assert_near(mine.magnitude(), theirs.magnitude())


@pytest.mark.parametrize("seq", ["xyz", "ZYX", "zxz", "XYX", "yxz"])
def test_euler_angles(seq: str) -> None:
    mine, theirs = both()
    angles = theirs.as_euler(seq)
    assert_near(mine.as_euler(seq), angles)
    assert_near(mine.as_euler(seq, degrees=True), np.rad2deg(angles))
    assert_near(Rotation.from_euler(seq, angles), THEIRS.from_euler(seq, angles))
    # Two axes become parallel; which angles are taken is SciPy's choice, the rotation is not.
    for middle in (0.0, np.pi / 2, -np.pi / 2):
        lost = Rotation.from_euler(seq, np.array([0.3, middle, 0.5]))
        assert_near(Rotation.from_euler(seq, lost.as_euler(seq)), lost.as_matrix())


def test_turns_around_one_or_two_axes() -> None:
    for seq, angles in (("x", 30.0), ("Z", [[10.0], [20], [30]]), ("xy", [[10.0, 20], [30, 40]])):
        got = Rotation.from_euler(seq, angles, degrees=True)
        want = THEIRS.from_euler(seq, angles, degrees=True)
        assert_near(got, want)
    assert len(Rotation.from_euler("Z", [10.0, 20, 30])) == 3


def test_computing() -> None:
    (mine, theirs), vectors = both(), _GENERATOR.normal(size=(20, 3))
    assert_near(mine[:10] * mine[10:], theirs[:10] * theirs[10:])
    assert_near(mine[0] * mine, theirs[0] * theirs)
    assert_near(mine.inv(), theirs.inv())
    for inverse in (False, True):
        assert_near(mine.apply(vectors, inverse), theirs.apply(vectors, inverse))
        assert_near(mine[0].apply(vectors, inverse), theirs[0].apply(vectors, inverse))
    weights = np.arange(1.0, 21)
    assert_near(mine.mean(), theirs.mean())
    assert_near(mine.mean(weights), theirs.mean(weights))
    assert len(Rotation.concatenate([mine[0], mine[1:3]])) == 3
    assert_near(Rotation.identity(2), THEIRS.identity(2))
    drawn = Rotation.random(axir.random.key(0), 2000)
    assert abs(np.asarray(drawn.as_matrix()).mean(0)).max() < 0.06
    assert Rotation.random(axir.random.key(0)).single


def test_interpolation() -> None:
    (mine, theirs), times = both(), np.cumsum(_GENERATOR.uniform(0.1, 1, 20))
    moments = np.linspace(times[0], times[-1], 31)
    slerp, reference = Slerp.init(times, mine), scipy_transform.Slerp(times, theirs)
    assert_near(slerp(moments), reference(moments))
    assert_near(slerp(moments[3]), reference(moments[3]))
    compiled = axir.jit(lambda s, t: s(t).as_rotvec())(slerp, moments)
    assert_near(Rotation.from_rotvec(compiled), reference(moments))


def test_derivatives_at_no_rotation() -> None:
    def there_and_back(v: Any) -> Any:
        return Rotation.from_rotvec(v).as_rotvec()

    for scale in (0.0, 1e-9, 0.05, 0.3, 2.0):
        v = scale * np.array([0.6, 0.0, 0.8])
        np.testing.assert_allclose(there_and_back(v), v, rtol=1e-13)
        np.testing.assert_allclose(axir.jacobian(there_and_back)(v), np.eye(3), atol=1e-10)


def test_what_is_no_rotation_is_refused() -> None:
    mine, _ = both()
    for seq in ("xx", "xY", "abc", ""):
        with pytest.raises(EulerAxesError, match="does not name one to three axes"):
            Rotation.from_euler(seq, 1.0)
    with pytest.raises(EulerAxesError, match="does not name three axes"):
        mine.as_euler("xy")
    with pytest.raises(RotationShapeError, match="3 axes need as many angles"):
        Rotation.from_euler("xyz", [1.0, 2.0])
    with pytest.raises(RotationShapeError, match=r"shape \(..., 4\), not \(3,\)"):
        Rotation.from_quat(np.ones(3))
    with pytest.raises(RotationShapeError, match=r"shape \(..., 3, 3\)"):
        Rotation.from_matrix(np.ones((2, 2)))
    with pytest.raises(RotationShapeError, match="need as many weights"):
        mine.mean(np.ones(3))
    with pytest.raises(TypeError, match="cannot be indexed"):
        mine[0][0]
    with pytest.raises(TypeError, match="has no len"):
        len(mine[0])
    with pytest.raises(TypeError, match="must be a Rotation"):
        Slerp.init([0, 1], np.ones((2, 4)))
    with pytest.raises(RotationShapeError, match="vector of as many times"):
        Slerp.init([0.0, 1, 2], mine)
    with pytest.raises(RotationShapeError, match="a number or a vector of times"):
        Slerp.init(np.arange(20.0), mine)(np.ones((2, 2)))

"""Host arrays to device memory and back: every dtype, every layout, and the lifetimes of memory."""

from __future__ import annotations

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

from axir.dialect.core.errors import DeletedArrayError, DTypeError
from axir.runtime import CpuDevice, aligned_empty, devices
from axir.runtime.device.buffers import ALIGNMENT, ELEMENT_TYPES

DTYPES = sorted(ELEMENT_TYPES, key=str)
LARGE = 1 << 15  # elements; enough bytes to be used without a copy


class Traceable(np.ndarray):
    """An array that weak references can follow."""


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def samples(dtype: np.dtype) -> np.ndarray:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**8, (3, 5, dtype.itemsize), np.uint8)
    if dtype == np.bool_:
        return (bits[..., 0] & 1).astype(np.bool_)
    return np.ascontiguousarray(bits).view(dtype)[..., 0]


@pytest.fixture(scope="module")
def device():
    return devices("cpu")[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_come_back_bit_for_bit(device, dtype):
    array = samples(dtype)
    result = device.put(array).to_numpy()
    assert result.dtype == dtype
    assert result.shape == array.shape
    assert result.tobytes() == array.tobytes()
    assert not result.flags.writeable


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 10, (2,) * 10])
def test_shapes_come_back(device, shape):
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)
    buffer = device.put(array)
    assert buffer.shape == shape
    assert buffer.nbytes == array.nbytes
    np.testing.assert_array_equal(buffer.to_numpy(), array)
    assert buffer.to_numpy().shape == shape


def test_layouts_other_than_c_order_are_copied(device):
    array = np.arange(24.0).reshape(2, 3, 4)
    for view in (array.T, array[:, ::2], array[::-1], np.broadcast_to(np.float64(7), (3, 2))):
        np.testing.assert_array_equal(device.put(view).to_numpy(), view)


def test_a_writable_array_is_copied(device):
    array = aligned_empty((LARGE,), np.float32)
    array[:] = 1
    buffer = device.put(array)
    array[:] = 2
    assert buffer.to_numpy().max() == 1


def test_a_read_only_aligned_array_is_used_where_it_lies(device):
    array = aligned_empty((LARGE,), np.float32)
    array[:] = np.arange(LARGE)
    array.flags.writeable = False
    result = device.put(array).to_numpy()
    assert address(result) == address(array)
    np.testing.assert_array_equal(result, array)


def test_a_misaligned_read_only_array_is_copied(device):
    array = aligned_empty((LARGE + 1,), np.float32)[1:]
    array[:] = 3
    array.flags.writeable = False
    result = device.put(array).to_numpy()
    assert address(result) != address(array)
    assert address(result) % ALIGNMENT == 0
    np.testing.assert_array_equal(result, array)


def test_borrowed_memory_lives_exactly_as_long_as_it_is_needed(device):
    owner = aligned_empty((LARGE,), np.float32).view(Traceable)
    owner[:] = 5
    owner.flags.writeable = False
    alive = weakref.ref(owner)
    buffer = device.put(owner)
    del owner
    result = buffer.to_numpy()
    del buffer
    gc.collect()
    assert alive() is not None
    assert result.min() == 5
    del result
    gc.collect()
    assert alive() is None


def test_owned_copies_borrowed_memory_only(device):
    array = aligned_empty((LARGE,), np.float32)
    array[:] = np.arange(LARGE)
    copied = device.put(array)
    assert copied.owned() is copied
    array.flags.writeable = False
    borrowed = device.put(array)
    owned = borrowed.owned().to_numpy()
    assert address(owned) != address(array)
    np.testing.assert_array_equal(owned, array)


def test_an_array_outlives_its_deleted_buffer(device):
    buffer = device.put(np.arange(4))
    array = buffer.to_numpy()
    buffer.delete()
    assert buffer.is_deleted
    np.testing.assert_array_equal(array, np.arange(4))


@pytest.mark.parametrize("use", ["to_numpy", "block_until_ready"])
def test_a_deleted_buffer_says_so(device, use):
    buffer = device.put(np.zeros((2, 3), np.float32))
    buffer.delete()
    with pytest.raises(DeletedArrayError, match=r"shape \(2, 3\) and dtype float32 has been del"):
        getattr(buffer, use)()


def test_block_until_ready_returns_the_buffer(device):
    buffer = device.put(np.zeros(3))
    assert buffer.block_until_ready() is buffer


def test_dtypes_without_elements_are_named(device):
    with pytest.raises(DTypeError, match="no elements of dtype float8_e4m3fn"):
        device.put(np.zeros(3, ml_dtypes.float8_e4m3fn))
    with pytest.raises(DTypeError, match="no elements of dtype <U1"):
        device.put(np.array(["a"]))


def test_cpu_devices_share_memory(device):
    buffer = device.put(np.arange(3.0))
    other = CpuDevice(1, "cpu")
    shared = buffer.shared_with(other)
    assert shared.device is other
    assert address(shared.to_numpy()) == address(buffer.to_numpy())
    for one in (buffer, shared):
        assert address(one.owned().to_numpy()) != address(one.to_numpy())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_aligned_empty_is_aligned(dtype):
    for shape in ((), (0,), (7,), (3, 5)):
        array = aligned_empty(shape, dtype)
        assert (array.shape, array.dtype) == (shape, dtype)
        assert address(array) % ALIGNMENT == 0
        assert array.flags.writeable

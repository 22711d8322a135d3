"""`axir.distributed.initialize` refuses what cannot be; jobs are tested in `tests/distributed`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

import axir
from axir import distributed
from axir.errors import DistributedSetupError, ParameterError
from axir.experimental import multihost_utils
from axir.runtime.device import devices as device_list
from axir.runtime.processes import job
from axir.runtime.processes.wire import address
from axir.sharding import NamedSharding
from axir.sharding import PartitionSpec as P


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS"):
        monkeypatch.delenv(name, raising=False)
    yield
    distributed.shutdown()


def test_one_process_is_alone() -> None:
    for arguments in ((), (None, 1, 0), ("localhost:1234", 1, 0)):
        distributed.initialize(*arguments)
        assert distributed.is_initialized()
        with pytest.raises(RuntimeError, match="only be called once"):
            distributed.initialize()
        distributed.shutdown()
        assert not distributed.is_initialized()
    assert (axir.process_count(), axir.process_index()) == (1, 0)


@pytest.mark.parametrize(
    "arguments",
    [(None, 2, 0), (None, None, 1), ("h:1", 2, 2), ("h:1", 2, -1), ("h:1", 2), ("h:1",)],
)
def test_arguments_that_do_not_tell_who_this_is(arguments: tuple) -> None:
    with pytest.raises(ParameterError, match=r"(?s)do not tell which of how many.*Pass all three"):
        distributed.initialize(*arguments)
    assert not distributed.is_initialized()


def test_the_environment_tells_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_NUM_PROCESSES", "2")
    monkeypatch.setenv("JAX_PROCESS_ID", "5")
    monkeypatch.setenv("JAX_COORDINATOR_ADDRESS", "h:1")
    with pytest.raises(ParameterError, match="'h:1', num_processes=2, process_id=5"):
        distributed.initialize()
    distributed.initialize(cluster_detection_method="deactivate")
    distributed.shutdown()
    with pytest.raises(ParameterError, match=r"cluster_detection_method='slurms'"):
        distributed.initialize(cluster_detection_method="slurms")


def test_devices_must_not_be_asked_for_before() -> None:
    axir.devices()
    with pytest.raises(DistributedSetupError, match=r"(?s)devices were asked for before.*first"):
        distributed.initialize("localhost:1", 2, 0)


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_list, "_devices", {})
    with pytest.raises(DistributedSetupError, match="'nowhere' is not of the form host:port"):
        distributed.initialize("nowhere", 2, 1)
    with pytest.raises(DistributedSetupError, match=r"(?s)cannot listen at .*another port"):
        distributed.initialize("192.0.2.1:1", 2, 0, coordinator_bind_address="192.0.2.1:1")
    with pytest.raises(ValueError, match="x='a:99999'"):
        address("a:99999", "x")


def test_mpi_is_asked_for_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_list, "_devices", {})
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(DistributedSetupError, match=r"(?s)MPI is not to be had.*axir\[distributed"):
        distributed.initialize(cluster_detection_method="mpi4py")
    assert job.Times().setup == 300


def test_local_devices_of_other_processes() -> None:
    assert axir.local_devices(0) == axir.local_devices() == axir.local_devices(host_id=0)
    with pytest.raises(ParameterError, match="there is no process 1"):
        axir.local_devices(1)


def test_hosts_agree_with_themselves() -> None:
    mesh = axir.make_mesh((1,), ("x",))
    x = multihost_utils.host_local_array_to_global_array(np.arange(3.0), mesh, P("x"))
    assert x.sharding == NamedSharding(mesh, P("x"))
    back = multihost_utils.global_array_to_host_local_array(x, mesh, P("x"))
    assert back.tolist() == [0, 1, 2]
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal({"a": x})
    assert multihost_utils.process_allgather({"a": x}, tiled=True)["a"].tolist() == [0, 1, 2]


def test_data_of_other_shapes_than_devices_hold() -> None:
    place = NamedSharding(axir.make_mesh((1,), ("x",)), P("x"))
    data = np.arange(6.0).reshape(2, 3)
    assert axir.make_array_from_process_local_data(place, {"a": data})["a"].shape == (2, 3)
    for shape in ((4, 3), (2, 3, 1), (2,)):
        with pytest.raises(axir.errors.ShapeError, match=r"(?s)shape \(2, 3\), but .* hold"):
            axir.make_array_from_process_local_data(place, data, shape)

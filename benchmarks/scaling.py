"""Predicts how training scales to thousands of devices: a simulation, not a measurement.

    python benchmarks/scaling.py --png scaling.png

In each step every device computes for a while, and then all sum their gradients. The cost of a sum
follows from the time alpha of a message, the time beta of a byte, and the time gamma to add one.
For n bytes on p devices alike (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
communication operations in MPICH", 2005; P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce
algorithms for clusters of workstations", 2009):

    ring      2 (p - 1) alpha + 2 n (p - 1) / p beta + n (p - 1) / p gamma
    tree      ceil(log2 p) (alpha + n beta + n gamma), by recursive doubling
    halving   2 ceil(log2 p) alpha + 2 n (p - 1) / p beta + n (p - 1) / p gamma

Here k devices share a host and its network link. A ring runs at the speed of its slowest link. The
first log2 k rounds of a tree stay inside a host; in later rounds k devices share the network link.
A hierarchical sum is one by halving inside, after which each device sums its n / k bytes in a ring
of hosts (M. Cho et al., "BlueConnect", 2019).

The times inside a host are measured here, between two processes by MPI if installed, otherwise by a
socket. The times between hosts are assumptions, set by options, because only one machine is
available. Efficiency is the time of computing divided by the time of a step: if communication waits
for computing, and if it overlaps with the backward pass, two thirds of it.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

SIZES = tuple(1 << n for n in range(3, 13))
SMALL, LARGE = 8, 1 << 22
BACKWARD = 2 / 3


@dataclass(frozen=True)
class Link:
    """A link for messages: seconds per message, per byte sent, and per byte added."""

    alpha: float
    beta: float
    gamma: float


def ring(n: float, p: int, link: Link) -> float:
    """Seconds of a sum in a ring."""
    return 2 * (p - 1) * link.alpha + n * (p - 1) / p * (2 * link.beta + link.gamma)


def halving(n: float, p: int, link: Link) -> float:
    """Seconds of a sum by recursive halving and doubling."""
    rounds = 2 * math.ceil(math.log2(p))
    return rounds * link.alpha + n * (p - 1) / p * (2 * link.beta + link.gamma)


def doubling(n: float, rounds: int, link: Link) -> float:
    """Seconds of some rounds of recursive doubling."""
    return rounds * (link.alpha + n * (link.beta + link.gamma))


def flat_ring(n: float, p: int, inside: Link, between: Link, k: int) -> float:
    """Seconds of a sum in a ring of all devices, host by host."""
    slowest = Link(max(inside.alpha, between.alpha), max(inside.beta, between.beta), inside.gamma)
    return ring(n, p, slowest if p > k else inside)


def tree(n: float, p: int, inside: Link, between: Link, k: int) -> float:
    """Seconds of a sum by recursive doubling, nearest devices first."""
    near = math.ceil(math.log2(min(k, p)))
    far = math.ceil(math.log2(p)) - near
    shared = Link(between.alpha, between.beta * k, between.gamma)
    return doubling(n, near, inside) + doubling(n, far, shared)


def hierarchical(n: float, p: int, inside: Link, between: Link, k: int) -> float:
    """Seconds of a sum within hosts of k devices, and rings of hosts for a part each."""
    k = min(k, p)
    hosts = p // k
    within = halving(n, k, inside) if k > 1 else 0.0
    # The k rings of a host share its network link.
    shared = Link(between.alpha, between.beta * k, between.gamma)
    return within + (ring(n / k, hosts, shared) if hosts > 1 else 0.0)


def measured() -> tuple[Link, str]:
    """Returns alpha, beta and gamma of this machine, and the method of measurement."""
    launcher = Path(sys.executable).parent / "mpirun"
    found = launcher if launcher.exists() else shutil.which("mpirun")
    times, by = None, "a socket"
    if found:
        command = [found, "-n", "2", sys.executable, __file__, "--ping"]
        told = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if told.returncode == 0:
            times, by = [float(x) for x in told.stdout.split()[-2:]], "MPI"
    small, large = times or _ping_by_socket()
    beta = max(large - small, 1e-12) / LARGE
    x, y = np.ones(LARGE // 4, np.float32), np.ones(LARGE // 4, np.float32)
    gamma = _median(lambda: np.add(x, y, out=y)) / LARGE
    return Link(small, beta, gamma), by


def _median(act: Callable[[], object], repetitions: int = 21) -> float:
    times = []
    for _ in range(repetitions):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def _ping_by_mpi() -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    for size in (SMALL, LARGE):
        buffer = np.zeros(size, np.uint8)

        def round_trip(buffer: np.ndarray = buffer) -> None:
            world.Send(buffer, 1 - world.rank) if world.rank == 0 else world.Recv(buffer, 0)
            world.Recv(buffer, 1) if world.rank == 0 else world.Send(buffer, 0)

        seconds = _median(round_trip, 51) / 2
        if world.rank == 0:
            print(seconds)


def _ping_by_socket() -> tuple[float, float]:
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        here.close()
        while count := there.recv(1 << 20):
            there.sendall(bytes(count))
        os._exit(0)
    there.close()

    def round_trip(size: int) -> None:
        left = size
        view = memoryview(bytes(size))
        sent = 0
        while left:
            sent += here.send(view[sent : sent + (1 << 16)]) if sent < size else 0
            left -= len(here.recv(1 << 20))

    found = tuple(_median(lambda size=size: round_trip(size)) / 2 for size in (SMALL, LARGE))
    here.close()
    os.waitpid(child, 0)
    return found[0], found[1]


def efficiencies(
    compute: float, n: float, inside: Link, between: Link, k: int
) -> dict[str, list[tuple[float, float]]]:
    """Returns both efficiencies (waiting, overlapped) by way of summing and device count."""
    ways = {"ring": flat_ring, "tree": tree, "hierarchical": hierarchical}
    return {
        name: [
            (compute / (compute + t), compute / (compute + max(0.0, t - BACKWARD * compute)))
            for t in (way(n, p, inside, between, k) for p in SIZES)
        ]
        for name, way in ways.items()
    }


def draw(found: dict[str, list[tuple[float, float]]], title: str, path: Path) -> None:
    """Writes a plot: solid without overlap, dashed with."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for name, values in found.items():
        (line,) = axes.plot(SIZES, [v[0] for v in values], marker="o", label=name)
        axes.plot(SIZES, [v[1] for v in values], linestyle="--", color=line.get_color())
    axes.set_xscale("log", base=2)
    axes.set_xticks(SIZES, [f"{p:,}" for p in SIZES])
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("devices")
    axes.set_ylabel("predicted efficiency (dashed: overlapped)")
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compute-ms", type=float, default=100, help="of a device in a step")
    parser.add_argument("--megabytes", type=float, default=100, help="of gradients")
    parser.add_argument("--devices-per-host", type=int, default=8)
    parser.add_argument("--host-us", type=float, help="a message in a host, if not as measured")
    parser.add_argument("--host-gigabytes", type=float, help="a second in a host, likewise")
    parser.add_argument("--network-us", type=float, default=10, help="a message between hosts")
    parser.add_argument("--network-gigabits", type=float, default=100, help="between hosts")
    parser.add_argument("--png", type=Path)
    parser.add_argument("--ping", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ping:
        _ping_by_mpi()
        return
    inside, by = measured()
    if options.host_us is not None:
        inside = replace(inside, alpha=options.host_us * 1e-6)
    if options.host_gigabytes is not None:
        inside = replace(inside, beta=1e-9 / options.host_gigabytes)
    between = Link(options.network_us * 1e-6, 8 / (options.network_gigabits * 1e9), inside.gamma)
    print(
        f"in a host, measured by {by} unless given: {inside.alpha * 1e6:.1f} us a message, "
        f"{1e-9 / inside.beta:.1f} GB/s; {1e-9 / inside.gamma:.1f} GB/s added\n"
        f"between hosts, assumed: {options.network_us:g} us, {options.network_gigabits:g} Gbit/s"
    )
    found = efficiencies(
        options.compute_ms * 1e-3,
        options.megabytes * 1e6,
        inside,
        between,
        options.devices_per_host,
    )
    print(f"{'devices':>8}" + "".join(f"{name:>22}" for name in found))
    for number, p in enumerate(SIZES):
        row = (
            f"{values[number][0]:>14.1%} ({values[number][1]:>4.0%})" for values in found.values()
        )
        print(f"{p:>8}" + " ".join(row))
    if options.png:
        title = (
            f"{options.megabytes:g} MB of gradients, {options.compute_ms:g} ms of computing, hosts "
            f"of {options.devices_per_host}: a simulation"
        )
        draw(found, title, options.png)


if __name__ == "__main__":
    main()

"""The program in C++ that times a model which axir has written: its source, and how it is built."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_TYPES = {"float32": "float", "int64": "std::int64_t"}

_SOURCE = """
// Calls a model as often as standard input says, and prints how long each call took.
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "model.hpp"

template <class Element, std::size_t size>
struct alignas(64) Given {
  Element elements[size];
  explicit Given(const char* path) {
    std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(elements), sizeof elements);
  }
};

template <class View>
void write(const char* path, const View& array) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(array.data()), array.size() * sizeof array[0]);
}

using Clock = std::chrono::steady_clock;

long long since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

long long processor() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

@given@
int main(int, char** words) {
  axir::Options options;
  options.threads = std::atoi(words[1]);
  const auto begun = Clock::now();
  model::Model model(options);
  auto result = model.@method@(@arguments@);
  const auto first = since(begun);
@results@
  std::cout << first << std::endl;
  std::vector<long long> times;
  for (int count; std::cin >> count;) {
    times.clear();
    const auto used = processor();
    for (int call = 0; call < count; ++call) {
      const auto start = Clock::now();
      result = model.@method@(@arguments@);
      times.push_back(since(start));
    }
    std::cout << processor() - used;
    for (const auto each : times) std::cout << ' ' << each;
    std::cout << std::endl;
  }
}
"""


@dataclass(frozen=True)
class Built:
    """A program that was built.

    Attributes:
        seconds: What building it took, without what axir took to write the model.
        size: Bytes of the program, stripped.
        data: Bytes of the weights beside it.
    """

    seconds: float
    size: int
    data: int


def build(folder: Path, method: str, arguments: Mapping[str, np.ndarray], results: int) -> Built:
    """Builds the program in the folder of a model, as `timed`, and writes its arguments there."""
    given = []
    for index, array in enumerate(arguments.values()):
        array.tofile(folder / f"argument_{index}.bin")
        kind = f"Given<{_TYPES[array.dtype.name]}, {array.size}>"
        given.append(f'static {kind} argument_{index}("argument_{index}.bin");')
    names = ["value"] if results == 1 else [f"value_{index}" for index in range(results)]
    written = [f'  write("result_{i}.bin", result.{name});' for i, name in enumerate(names)]
    source = _SOURCE
    for mark, text in {
        "given": "\n".join(given),
        "method": method,
        "arguments": ", ".join(f"argument_{i}.elements" for i in range(len(given))),
        "results": "\n".join(written),
    }.items():
        source = source.replace(f"@{mark}@", text)
    (folder / "timed.cc").write_text(source)
    sources = ["timed.cc", *sorted(f.name for f in folder.glob("model*.cpp"))]
    objects = sorted(f.name for f in folder.glob("*.o"))
    start = time.perf_counter()
    _run(folder, "g++", "-std=c++17", "-O2", "-Iinclude", "-I.", *sources, *objects,
         "-pthread", "-o", "timed")  # fmt: skip
    seconds = time.perf_counter() - start
    _run(folder, "strip", "timed")
    data = folder / "model.safetensors"
    size = data.stat().st_size if data.exists() else 0
    return Built(seconds, (folder / "timed").stat().st_size, size)


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]} says: {done.stderr[-2000:]}")


class TimedProgram:
    """The program that `build` built, as it runs."""

    def __init__(self, folder: Path, threads: int) -> None:
        command = [str(folder / "timed"), str(threads)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, text=True)
        self.first = int(self._line()) * 1e-9

    @property
    def process_id(self) -> int:
        """The number of the process."""
        return self._process.pid

    def time(self, calls: int) -> tuple[list[float], float]:
        """Returns the wall-clock seconds of each call, and the processor seconds of all threads."""
        assert self._process.stdin
        self._process.stdin.write(f"{calls}\n")
        self._process.stdin.flush()
        processor, *each = map(int, self._line().split())
        return [nanoseconds * 1e-9 for nanoseconds in each], processor * 1e-9

    def close(self) -> None:
        """Ends the program."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def _line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the program in C++ ended with code {self._process.wait()}")
        return line


def results_of(folder: Path, like: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns the results of the program's first call."""
    return [
        np.fromfile(folder / f"result_{index}.bin", array.dtype).reshape(array.shape)
        for index, array in enumerate(like)
    ]

"""The examples in C++, built with an installed axir, and compared with Python bit for bit."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import axir
import axir.numpy as jnp
from axir.export import Exported, export, load, symbolic_args_specs

ROOT = Path(__file__).parents[3]
BESIDE_PYTHON = Path(sys.executable).parent
PATH = f"{BESIDE_PYTHON}{os.pathsep}{os.environ['PATH']}"
REQUESTS = 1000
RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(size=(64, 64)).astype(np.float32)


def run(tool: str, *words: str | Path) -> str:
    program = shutil.which(tool, path=PATH)
    assert program, f"{tool} is missing: pip install cmake"
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"[-4000:]
    return done.stdout


def classify(params, x):
    """Returns log-probabilities of ten digits for images in rows, as the demo's classifier."""
    hidden = axir.nn.relu(x @ params["w"] + params["b"])
    return axir.nn.log_softmax(hidden @ params["v"])


@pytest.fixture(scope="module")
def classifier() -> Exported:
    params = {"w": RNG.standard_normal((64, 48)) / 8, "v": RNG.standard_normal((48, 10)) / 7}
    params = {name: jnp.array(x, jnp.float32) for name, x in params.items()}
    params["b"] = jnp.zeros(48)
    rows = symbolic_args_specs((IMAGES,), "b, ...")
    bundle = export({"predict": functools.partial(classify, params)})(predict=rows)
    return bundle["predict"].with_rows(1, 8, 64)


@pytest.fixture(scope="module")
def examples(classifier: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, built by clang where it is installed: all else is built by GCC."""
    folder = tmp_path_factory.mktemp("examples")
    classifier.save(folder / "digits.axir")
    axir_options = (
        f"-DAXIR_EXECUTABLE={BESIDE_PYTHON / 'axir'}",
        f"-DAXIR_PYTHON={sys.executable}",
    )
    without = ("-DAXIR_BUILD_TESTS=OFF", "-DAXIR_BUILD_EXAMPLES=OFF")
    run("cmake", "-S", ROOT, "-B", folder / "axir", *without, *axir_options)
    run("cmake", "--install", folder / "axir", "--prefix", folder / "installed")
    options = [f"-DCMAKE_PREFIX_PATH={folder / 'installed'}", *axir_options]
    options += [f"-DDIGITS_MODEL={folder / 'digits.axir'}", "-DCMAKE_CXX_FLAGS=-Werror"]
    if shutil.which("clang++"):
        options += ["-DCMAKE_CXX_COMPILER=clang++", "-DCMAKE_C_COMPILER=clang"]
    run("cmake", "-S", ROOT / "examples" / "cpp", "-B", folder / "build", *options)
    run("cmake", "--build", folder / "build")
    return folder / "build"


def test_an_installed_axir_is_found_and_builds_the_example(
    examples: Path, classifier: Exported
) -> None:
    headers = {path.name for path in (ROOT / "runtime" / "cpp" / "include" / "axir").iterdir()}
    installed = examples.parent / "installed" / "include" / "axir"
    assert {path.name for path in installed.iterdir()} == headers
    IMAGES.tofile(examples / "images.f32")
    found = run(str(examples / "recognize_digits"), examples / "images.f32").split()
    np.testing.assert_array_equal(np.array(found, int), np.asarray(classifier(IMAGES)).argmax(1))


# The server --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def port(examples: Path) -> Iterator[int]:
    program = examples / "classifier_server" / "classifier_server"
    if not program.exists():
        pytest.skip("the server needs apt install libcpp-httplib-dev nlohmann-json3-dev pkg-config")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * REQUESTS, hard), hard))
    server = subprocess.Popen([str(program), "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        yield int(server.stdout.readline().rsplit(":", 1)[1])
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.wait()
        assert server.stdout
        server.stdout.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as response:
        return response.read().decode()


async def post(port: int, body: str) -> tuple[int, dict[str, object]]:
    """Sends a request over a new connection; returns the status and the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n{body}".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, content = answer.decode().partition("\r\n\r\n")
    return int(head.split()[1]), json.loads(content)


def test_a_thousand_concurrent_requests_get_the_results_of_python(
    port: int, classifier: Exported
) -> None:
    async def all_at_once():
        bodies = [json.dumps({"image": image.tolist()}) for image in IMAGES]
        return await asyncio.gather(*(post(port, bodies[n % 64]) for n in range(REQUESTS)))

    answers = asyncio.run(all_at_once())
    # An image's scores depend only on the program that its batch was computed by.
    wanted = {
        size: np.concatenate([classifier(IMAGES[n : n + size]) for n in range(0, 64, size)])
        for size in (1, 8, 64)
    }
    for number, (status, answer) in enumerate(answers):
        assert status == 200, answer
        size = next(size for size in wanted if size >= answer["batch"])
        scores = wanted[size][number % 64]
        assert np.array(answer["scores"], np.float32).tobytes() == scores.tobytes()
        assert answer["digit"] == scores.argmax()
    assert max(answer["batch"] for _, answer in answers) > 1
    metrics = dict(line.rsplit(" ", 1) for line in get(port, "/metrics").splitlines())
    assert metrics['digits_requests_total{code="200"}'] == str(REQUESTS)
    assert metrics["digits_request_seconds_count"] == str(REQUESTS)
    assert metrics['digits_request_seconds_bucket{le="+Inf"}'] == str(REQUESTS)
    assert metrics["digits_batch_images_sum"] == str(REQUESTS)
    assert int(metrics["digits_batch_images_count"]) < REQUESTS


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "the request is no JSON"),
        ("[]", 'the request must be an object with an array "image"'),
        ('{"image": 1}', 'the request must be an object with an array "image"'),
        ('{"image": [1, 2]}', '"image" has 2 numbers, must have 64'),
        (json.dumps({"image": ["a"] * 64}), '"image" has something that is no number'),
    ],
)
def test_wrong_requests_are_refused(port: int, body: str, message: str) -> None:
    assert asyncio.run(post(port, body)) == (400, {"error": message})
    assert json.loads(get(port, "/healthz")) == {"status": "ok"}


# The learner -------------------------------------------------------------------------------------


def learn(program: Path, state: Path, examples: np.ndarray) -> list[float]:
    """Runs the learner; returns the losses."""
    words = [str(program), str(state)]
    done = subprocess.run(words, input=examples.tobytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


def test_the_learner_takes_the_steps_of_python(examples: Path, tmp_path: Path) -> None:
    program, state = examples / "online_learner" / "online_learner", tmp_path / "state"
    x = RNG.standard_normal((40 * 32, 8)).astype(np.float32)
    y = np.sin(x[:, :1]) + x[:, 1:2] / 2
    data = np.concatenate([x, y.astype(np.float32)], axis=1)
    assert learn(program, state, data[:0]) == []
    params = np.fromfile(state, np.float32)
    # One half of the examples, then the other half in another process that continues from the file.
    found = learn(program, state, data[:640]) + learn(program, state, data[640:])
    gradient = load(examples / "online_learner" / "learner.axir").loss_grad
    w1, b1, w2, b2 = params[:128].reshape(8, 16), params[128:144], params[144:160], params[160]
    own = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}
    wanted = []
    for batch in data.reshape(40, 32, 9):
        loss, *changes = axir.tree.leaves(gradient(own, batch[:, :8], batch[:, 8]))
        wanted.append(float(loss))
        for name, change in zip(("b1", "b2", "w1", "w2"), changes, strict=True):
            own[name] = own[name] - np.float32(0.05) * np.asarray(change)
    np.testing.assert_array_equal(np.float32(found), np.float32(wanted))
    kept = np.concatenate([np.ravel(own[name]) for name in ("w1", "b1", "w2", "b2")])
    assert np.fromfile(state, np.float32).tobytes() == kept.tobytes()
    assert found[-1] < found[0] / 4


def test_a_state_of_another_model_is_refused(examples: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"1234")
    program = examples / "online_learner" / "online_learner"
    words = [str(program), str(tmp_path / "state")]
    done = subprocess.run(words, input=b"", capture_output=True, check=False)
    assert done.returncode == 1
    assert b"holds no parameters of this model" in done.stderr
    assert (tmp_path / "state").read_bytes() == b"1234"

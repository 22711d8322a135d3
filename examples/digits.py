"""Handwritten digits: a model differentiated, compiled and trained, then run without its source.

The data is the UCI set of 1,797 digits of 8 x 8 pixels that ships inside scikit-learn. Run it with
`make demo`, or `python examples/digits.py --help` for its options.
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import axir as jax
import axir.numpy as jnp
from axir import random

SIZES = (64, 128, 64, 10)
CPP_PROGRAM = Path(__file__).parent / "cpp" / "digits.cpp"


def load_digits() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Returns (images, labels) for training and for testing; a fifth is for testing."""
    from sklearn.datasets import load_digits as load

    images, labels = load(return_X_y=True)
    images = images.astype(np.float32) / 16
    order = np.random.default_rng(0).permutation(len(labels))
    split = len(labels) // 5
    test, train = order[:split], order[split:]
    return (images[train], labels[train]), (images[test], labels[test])


def init(key, sizes=SIZES):
    """Draws the parameters of a multilayer perceptron, scaled for relu (He et al., 2015)."""
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (n, m)) * jnp.sqrt(2 / n), "b": jnp.zeros(m)}
        for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def predict(params, x):
    """Returns log-probabilities of the ten digits for one image of 64 pixels."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return jax.nn.log_softmax(x @ last["w"] + last["b"])


def classify(params, x):
    """Returns log-probabilities for images, one in each row."""
    return jax.vmap(predict, in_axes=(None, 0))(params, x)


def example_loss(params, x, y):
    """Returns the cross-entropy of one example."""
    return -jnp.sum(predict(params, x) * jax.nn.one_hot(y, 10))


def loss(params, x, y):
    """Returns the mean cross-entropy of a batch."""
    return jnp.mean(jax.vmap(example_loss, in_axes=(None, 0, 0))(params, x, y))


@jax.jit
def step(params, momentum, x, y, rate):
    """One step of gradient descent with momentum on gradients clipped per example."""
    per_example = jax.vmap(jax.grad(example_loss), in_axes=(None, 0, 0))(params, x, y)
    squares = [jnp.sum(g**2, axis=tuple(range(1, g.ndim))) for g in jax.tree.leaves(per_example)]
    scale = jnp.minimum(1.0, 10.0 / jnp.sqrt(sum(squares) + 1e-12))
    mean = jax.tree.map(lambda g: jnp.tensordot(scale, g, 1) / x.shape[0], per_example)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, mean)
    params = jax.tree.map(lambda p, m: p - rate * m, params, momentum)
    return params, momentum


@jax.jit
def evaluate(params, x, y):
    """Returns loss and accuracy of a batch."""
    scores = classify(params, x)
    return loss(params, x, y), jnp.mean(jnp.argmax(scores, axis=1) == y)


def train(train_set, test_set, epochs: int, batch: int = 64, device=None):
    """Trains on a device, with a progress bar; returns the parameters and the curves."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    images, labels = (jnp.asarray(a) for a in train_set)
    test_images, test_labels = (jnp.asarray(a) for a in test_set)
    params = init(random.PRNGKey(0))
    momentum = jax.tree.map(jnp.zeros_like, params)
    if device is not None:  # computations with them run there
        params, momentum = jax.device_put((params, momentum), device)
    steps = len(labels) // batch
    curves = []
    description = TextColumn("{task.description}")
    columns = (TextColumn("training"), BarColumn(), description, TimeElapsedColumn())
    with Progress(*columns) as progress:
        task = progress.add_task("compiling", total=epochs * steps)
        for epoch in range(epochs):
            order = np.asarray(random.permutation(random.PRNGKey(epoch), len(labels)))
            rate = 0.1 * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
            for index in range(steps):
                chosen = order[index * batch : (index + 1) * batch]
                params, momentum = step(
                    params, momentum, np.asarray(images)[chosen], np.asarray(labels)[chosen], rate
                )
                progress.advance(task)
            train_loss, _ = evaluate(params, images, labels)
            test_loss, accuracy = evaluate(params, test_images, test_labels)
            curves.append((float(train_loss), float(test_loss), float(accuracy)))
            progress.update(task, description=f"test accuracy {curves[-1][2]:.2%}")
    return params, np.array(curves)


def draw(path: Path, params, curves: np.ndarray, test_set) -> None:
    """Writes a picture of the loss curves and of some predictions."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    images, labels = test_set
    figure = plt.figure(figsize=(10, 4.5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    axes.semilogy(curves[:, 0], label="training")
    axes.semilogy(curves[:, 1], label="test")
    axes.set(xlabel="epoch", ylabel="cross-entropy", title=f"test accuracy {curves[-1, 2]:.2%}")
    axes.legend()
    scores = np.asarray(classify(params, images[:15]))
    for axis, image, label, score in zip(
        right.subplots(3, 5).flat, images, labels, scores, strict=False
    ):
        guess = int(score.argmax())
        axis.imshow(image.reshape(8, 8), cmap="gray_r")
        axis.set_title(f"{guess}", color="C2" if guess == label else "C3")
        axis.axis("off")
    right.suptitle("predictions (red: wrong)")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def command(*words: str | Path) -> str:
    """Runs the command line, as a user without the Python source would; returns its output."""
    line = [sys.executable, "-m", "axir", *map(str, words)]
    print("$ axir", *line[3:])
    finished = subprocess.run(line, check=True, text=True, stdout=subprocess.PIPE, env=os.environ)
    return finished.stdout


def ship(folder: Path, params, test_set) -> np.ndarray:
    """Saves, compiles and runs the trained model by the command line; returns its predictions."""
    images, _ = test_set
    scores = jax.jit(functools.partial(classify, params))
    module, binary = folder / "digits.mlir", folder / "digits.vmfb"
    jax.export.export(scores)(images).save(module)
    np.save(folder / "images.npy", images)
    print(command("inspect", module))
    command("compile", module, "--target", "cpu", "-o", binary)
    command("run", binary, f"x=@{folder / 'images.npy'}", "--out", folder / "scores.npy")
    return np.load(folder / "scores.npy").argmax(1)


def ship_cpp(folder: Path, params, test_set) -> np.ndarray | None:
    """Saves the model as a bundle, and runs it in a C++ program without Python.

    Returns its predictions, or None without a C++ compiler.
    """
    images, _ = test_set
    bundle, sources, program = folder / "digits.axir", folder / "digits_cpp", folder / "digits"
    rows = jax.export.symbolic_args_specs((images,), "b, ...")
    exporter = jax.export.export({"predict": functools.partial(classify, params)})
    exporter(predict=rows).with_rows(1, 8, 64).save(bundle)
    command("compile", bundle, "--emit", "cpp", "--target-cpu", "host", "-o", sources)
    named = os.environ.get("CXX")
    found = filter(None, map(shutil.which, [named] if named else ["c++", "g++", "clang++"]))
    compiler = next(found, None)
    if compiler is None:
        print(f"No C++ compiler ({named or 'c++, g++ or clang++'}): {sources} is written, not run.")
        print("On Debian and Ubuntu: sudo apt install g++")
        return None
    includes = (f"-I{sources}", f"-I{sources / 'include'}")
    parts = [*sources.glob("digits*.cpp"), *sources.glob("*.o")]
    build = [compiler, "-std=c++17", "-O2", *includes, CPP_PROGRAM, *parts, "-pthread", "-lm"]
    run(*build, "-o", program)
    np.asarray(images, np.float32).tofile(folder / "images.f32")
    return np.array(run(program.resolve(), folder / "images.f32").split(), int)


def run(*words: str | Path) -> str:
    """Runs a program, and shows its line; returns its output."""
    print("$", Path(words[0]).name, *words[1:])
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout


def main() -> None:
    """Trains, draws, and ships the model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument(
        "--device", default="cpu", help="platform that trains: cpu, vulkan or cuda (default: cpu)"
    )
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="where files go")
    parser.add_argument("--show-jaxpr", action="store_true", help="print the jaxpr of the loss")
    parser.add_argument("--show-stablehlo", action="store_true", help="print its StableHLO")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    train_set, test_set = load_digits()
    example = (init(random.PRNGKey(0)), train_set[0][:64], train_set[1][:64])
    if options.show_jaxpr:
        print(jax.make_jaxpr(loss)(*example))
    if options.show_stablehlo:
        print(jax.jit(loss).lower(*example).as_text())
    device = jax.devices(options.device)[0]
    params, curves = train(train_set, test_set, options.epochs, device=device)
    if device.platform != "cpu":
        print(f"trained on {device} ({device.device_kind})")
        params = jax.device_put(params, jax.devices("cpu")[0])
    draw(options.out / "digits.png", params, curves, test_set)
    guesses = ship(options.out, params, test_set)
    shipped = float(np.mean(guesses == test_set[1]))
    from_cpp = ship_cpp(options.out, params, test_set)
    print(f"test accuracy {curves[-1, 2]:.2%}, by the compiled file {shipped:.2%}")
    if from_cpp is not None:
        print(f"by the C++ program {np.mean(from_cpp == test_set[1]):.2%}")
    print(f"picture: {options.out / 'digits.png'}")
    if curves[-1, 2] < 0.97 or abs(shipped - curves[-1, 2]) > 1e-6:
        sys.exit("the accuracy is not what it should be (97 %)")
    if from_cpp is not None and not np.array_equal(from_cpp, guesses):
        sys.exit("the C++ program sees other digits than Python")


if __name__ == "__main__":
    main()

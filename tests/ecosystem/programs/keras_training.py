"""Keras 3: a convolutional network with batch normalization, and an LSTM, fitted and evaluated."""

import os

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
from keras import layers
from reporting import report

random = np.random.default_rng(0)
keras.utils.set_random_seed(0)


def fitted(inputs, classes, *body):
    network = keras.Sequential([keras.Input(inputs.shape[1:]), *body, layers.Dense(4)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile("adam", loss, metrics=["accuracy"])
    options = {"batch_size": 32, "verbose": 0, "shuffle": False}
    losses = network.fit(inputs, classes, epochs=2, **options).history["loss"]
    return network, losses, lambda: network.fit(inputs, classes, epochs=1, **options).history


images = random.normal(size=(128, 12, 12, 1)).astype("float32")
words = random.normal(size=(128, 8, 3)).astype("float32")
classes = random.integers(0, 4, 128)
network, losses, _ = fitted(
    images,
    classes,
    layers.Conv2D(4, 3, activation="relu"),
    layers.MaxPooling2D(),
    layers.BatchNormalization(),
    layers.Flatten(),
)
recurrent, recurrent_losses, _ = fitted(words, classes, layers.LSTM(6))
report(
    losses=losses,
    recurrent_losses=recurrent_losses,
    predicted=network.predict(images[:4], verbose=0),
    evaluated=recurrent.evaluate(words, classes, verbose=0)[0],
    timed=lambda: network.train_on_batch(images[:32], classes[:32]),
)

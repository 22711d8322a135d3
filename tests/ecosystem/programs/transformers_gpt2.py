"""Transformers' Flax models: GPT-2 of random weights, trained on a line, and a BERT's outputs."""

import os

os.environ["USE_TORCH"], os.environ["USE_TF"] = "0", "0"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from reporting import report  # noqa: E402
from transformers import BertConfig, GPT2Config  # noqa: E402
from transformers.models.bert.modeling_flax_bert import FlaxBertModel  # noqa: E402
from transformers.models.gpt2.modeling_flax_gpt2 import FlaxGPT2LMHeadModel  # noqa: E402

config = GPT2Config(
    vocab_size=64, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
)
model = FlaxGPT2LMHeadModel(config, seed=0, input_shape=(1, 8))
tokens = jnp.array(np.frombuffer(b"the quick brown fox jumps", np.uint8) % 64)[None].astype(int)
optimizer = optax.adam(1e-2)
params, state = model.params, optimizer.init(model.params)


@jax.jit
def step(params, state):
    def loss_of(params):
        logits = model(tokens[:, :-1], params=params).logits
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))

    loss, slopes = jax.value_and_grad(loss_of)(params)
    updates, state = optimizer.update(slopes, state)
    return optax.apply_updates(params, updates), state, loss


losses = []
for _ in range(10):
    params, state, loss = step(params, state)
    losses.append(loss)
words = model.generate(tokens[:, :6], params=params, max_new_tokens=4, do_sample=False).sequences
bert = FlaxBertModel(
    BertConfig(
        vocab_size=64,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    ),
    seed=0,
)
report(
    losses=jnp.stack(losses),
    words=words,
    bert=bert(tokens).pooler_output,
    timed=lambda: step(params, state)[2],
)

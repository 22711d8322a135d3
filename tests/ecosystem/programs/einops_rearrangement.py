"""einops: rearranged, reduced and repeated arrays, under jit, grad and vmap."""

import jax
import jax.numpy as jnp
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from reporting import report

images = jax.random.normal(jax.random.key(0), (4, 8, 8, 3))


@jax.jit
def patches(images):
    return rearrange(images, "b (h p) (w q) c -> b (h w) (p q c)", p=4, q=4)


def pooled(images):
    return reduce(images, "b (h 2) (w 2) c -> b c h w", "max")


gradient = jax.grad(lambda x: jnp.sum(pooled(x) ** 2))(images)
attention = einsum(patches(images), patches(images), "b i d, b j d -> b i j")
packed, shapes = pack([images, images[..., 0]], "b h w *")
report(
    patches=patches(images)[0, 0],
    pooled=pooled(images)[0, 0],
    gradient=jnp.sum(gradient),
    attention=attention[0],
    repeated=repeat(images[0, 0], "w c -> (w 2) c"),
    mapped=jax.vmap(lambda x: reduce(x, "h w c -> c", "mean"))(images),
    unpacked=unpack(packed, shapes, "b h w *")[1][0, 0],
    timed=lambda: patches(images),
)

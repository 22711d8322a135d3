"""dm-pix: images are changed in colour and contrast, blurred, turned, and compared."""

import dm_pix as pix
import jax
from reporting import report

images = jax.random.uniform(jax.random.key(0), (4, 24, 24, 3))
keys = jax.random.split(jax.random.key(1), 4)


@jax.jit
def augmented(keys, images):
    def one(key, image):
        hue, contrast, flip, crop = jax.random.split(key, 4)
        image = pix.random_hue(hue, image, 0.1)
        image = pix.random_contrast(contrast, image, 0.7, 1.3)
        image = pix.random_flip_left_right(flip, image)
        image = pix.random_crop(crop, image, (16, 16, 3))
        return pix.gaussian_blur(image, 1.0, 5)

    return jax.vmap(one)(keys, images)


report(
    augmented=augmented(keys, images)[:, ::5, ::5],
    saturation=pix.hsv_to_rgb(pix.rgb_to_hsv(images[0]))[::6, ::6],
    grey=pix.rgb_to_grayscale(images[0])[::6, ::6],
    rotated=pix.rotate(images[0], 0.4)[::6, ::6],
    elastic=pix.elastic_deformation(keys[0], images[0], 2.0, 3.0)[::6, ::6],
    similarity=pix.ssim(images[0], pix.adjust_gamma(images[0], 1.2)),
    ratio=pix.psnr(images[0], pix.adjust_brightness(images[0], 0.1)),
    patches=pix.extract_patches(images, (1, 8, 8, 1), (1, 8, 8, 1), (1, 1, 1, 1))[0, 0, 0, :8],
    timed=lambda: augmented(keys, images),
)

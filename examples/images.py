# %% [markdown]
# # Images, with your own network
#
# A bright spot moves over small images. A network of your own learns its position from pairs of
# images in which it has moved a little.

# %%
import matplotlib.pyplot as plt
import numpy as np
from torch import nn

from identica import ContrastiveICA, plots
from identica.metrics import mcc

# %% [markdown]
# Images are N×C×H×W, as `uint8` or floats. The two hidden factors are the coordinates of the spot.

# %%
SIZE = 24
rng = np.random.default_rng(0)
place = rng.uniform(size=(3000, 2))
moved = np.clip(place + rng.laplace(scale=0.06, size=place.shape), 0, 1)


def draw(z):
    pixel = np.linspace(-0.2, 1.2, SIZE)
    x, y = (np.exp(-((pixel - z[:, k, None]) ** 2) / 0.02) for k in (0, 1))
    spot = y[:, :, None] * x[:, None, :]
    return np.round(255 * spot).astype(np.uint8)


images, images_pos = draw(place)[:, None], draw(moved)[:, None]

figure, axes = plt.subplots(2, 6, figsize=(6, 2.2), layout="constrained")
for row, some, name in zip(axes, (images, images_pos), ("x", "x̃"), strict=True):
    for ax, image in zip(row, some, strict=False):
        ax.imshow(image[0], cmap="cividis")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    row[0].set_ylabel(name, rotation=0, labelpad=10)

# %% [markdown]
# Any module from images to N×n numbers will do. Neither softmax nor normalisation at the end: the
# estimator adds the output layer that its space needs.

# %%
network = nn.Sequential(
    nn.Conv2d(1, 8, 4, stride=2, padding=1),
    nn.GELU(),
    nn.Conv2d(8, 16, 4, stride=2, padding=1),
    nn.GELU(),
    nn.Flatten(),
    nn.Linear(16 * 36, 32),
    nn.GELU(),
    nn.Linear(32, 2),
)
ica = ContrastiveICA(network=network, conditional="laplace", steps=300, batch=256)
ica.fit(images, images_pos)
codes = ica.transform(images)
print(f"MCC of codes and coordinates: {mcc(place, codes):.2f}")

# %% [markdown]
# The codes should fill a square, like the spot fills the image, with straight lines of equal
# colour.

# %%
plots.codes(codes[:1500], place[:1500, 0], name="horizontal place")

# %%
plots.recovered(place, codes, names=["horizontal place", "vertical place"])
plt.show()

# %% [markdown]
# # Your own pairs
#
# Twelve noisy sensors, two moments a little apart: that is all it takes. How many factors are
# there, and can the codes be trusted?

# %%
import matplotlib.pyplot as plt
import numpy as np

from identica import ContrastiveICA, plots

# %% [markdown]
# Replace this cell by your own arrays: `x` has a row for each observation and `x_pos` the row
# that belongs to it. These sensors respond to two hidden quantities, each in its own way, and all
# of them are noisy.

# %%
rng = np.random.default_rng(0)
hidden = rng.uniform(-1, 1, size=(4000, 2))
later = np.clip(hidden + rng.laplace(scale=0.1, size=hidden.shape), -1, 1)
weights, shift = rng.normal(size=(2, 12)), rng.normal(size=12)


def sensors(z):
    return np.tanh(1.5 * z @ weights + shift) + 0.05 * rng.normal(size=(len(z), 12))


x, x_pos = sensors(hidden), sensors(later)

# %% [markdown]
# Without a number of codes, held-out evidence chooses one: the smallest that is nearly as good as
# the best. Look for the bend in the curve.

# %%
ica = ContrastiveICA(conditional="laplace", steps=300).fit(x, x_pos)
print("codes:", ica.model_.space.dim)
plots.evidence(ica)

# %% [markdown]
# The model assumes that factors are uniform, so flat histograms would be ideal. These are close to
# it, with a little too much at the walls of the box.

# %%
codes = ica.transform(x)
plots.density(codes)

# %% [markdown]
# The diagnosis needs no true factors. Click on the findings to see what was checked.

# %%
diagnosis = ica.diagnose(x, x_pos)
diagnosis

# %% [markdown]
# Fits from different starts should agree. Agreement code by code is the stronger
# statement, agreement up to a linear map the weaker one.

# %%
figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for ax, up_to in zip(axes, ("permutation", "linear"), strict=True):
    plots.restarts(diagnosis, up_to, ax=ax)
plt.show()

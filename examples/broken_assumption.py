# %% [markdown]
# # Break an assumption and look
#
# Two factors, two kinds of pairs: one that keeps both factors, and one in which the second factor
# is redrawn. The picture shows what is lost, and the diagnosis says so without knowing the
# factors.

# %%
import matplotlib.pyplot as plt

from identica import Box, ContrastiveICA, CouplingFlow, GenerativeProcess, Laplace, Uniform, plots
from identica.metrics import linear_r2_per_factor

process = GenerativeProcess(Box(2), Uniform(), Laplace(0.05), CouplingFlow(2, seed=5, layers=3))
good = process.sample(4000, generator=0)

# %% [markdown]
# What the members of a pair do not share cannot be learnt from pairs. Here the second factor of
# the positive has nothing to do with that of its anchor.

# %%
z_pos = good.z_pos.clone()
z_pos[:, 1] = process.latents(len(z_pos), generator=1)[:, 1]
x, x_pos, x_bad = (each.numpy() for each in (good.x, good.x_pos, process.mixing(z_pos)))

# %%
settings = {"n_components": 2, "conditional": "laplace", "steps": 400}
kept = ContrastiveICA(**settings).fit(x, x_pos)
lost = ContrastiveICA(**settings).fit(x, x_bad)
for name, ica in {"kept": kept, "lost": lost}.items():
    first, second = linear_r2_per_factor(good.z, ica.transform(x))
    print(f"second factor {name}: R² of the factors {first:.2f} and {second:.2f}")

# %% [markdown]
# The colour is the second factor. On the left it changes smoothly along one code. On the right both
# codes follow the first factor along a curve, on which all colours are mixed.

# %%
figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
for ax, ica, title in zip(axes, (kept, lost), ("both factors kept", "one is lost"), strict=True):
    plots.codes(ica.transform(x[:2000]), good.z[:2000, 1], name="second factor", ax=ax)
    ax.set_title(title)

# %% [markdown]
# With real data nobody knows the factors. The diagnosis refits the model from another start,
# compares the fits, and looks at what pairs share.

# %%
lost.diagnose(x, x_bad)

# %%
plt.show()

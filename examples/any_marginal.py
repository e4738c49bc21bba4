# %% [markdown]
# # Any marginal
#
# The theorems of the paper require uniform factors. Normal factors bend the codes; a potential,
# one more learnt term of the loss, straightens them.

# %%
import matplotlib.pyplot as plt

from identica import (
    MLP,
    Contrastive,
    ContrastiveModel,
    Euclidean,
    GenerativeProcess,
    InfoNCE,
    InvertibleMLP,
    Normal,
    Potential,
    Training,
    guarantee,
    plots,
    train,
)
from identica.metrics import linear_r2

process = GenerativeProcess(Euclidean(2), Normal(1.0), Normal(1.0), InvertibleMLP(2, seed=3))
test = process.sample(3000, generator=1)


def model(potential=None):
    return ContrastiveModel(Euclidean(2), Normal(1.0), MLP(2, 2, seed=0), potential=potential)


# %% [markdown]
# Without a potential nothing is guaranteed, and the last line says what would change that.

# %%
guarantee(process, model())

# %%
guarantee(process, model(Potential(2)))

# %% [markdown]
# Train both on the same pairs. The negatives of the second are the other positives of the batch,
# in both directions, as the potential needs them.

# %%
fits = {
    "without": (model(), InfoNCE(Normal(1.0))),
    "with": (model(Potential(2)), InfoNCE(Normal(1.0), negatives_from="positives", symmetric=True)),
}
for name, (each, loss) in fits.items():
    train(Contrastive(each, loss), process.sample, Training(steps=800, batch=512))
    print(f"{name} a potential: R² {linear_r2(test.z, each(test.x)):.3f}")

# %% [markdown]
# After the best linear map, recovered factors should lie on the line. Without a potential they
# bend away from it at both ends, where factors are rare.

# %%
figure, axes = plt.subplots(2, 2, figsize=(5.6, 5), layout="constrained")
for row, (name, (each, _)) in zip(axes, fits.items(), strict=True):
    names = [f"factor {k}, {name} a potential" for k in (1, 2)]
    plots.recovered(test.z, each(test.x), up_to="linear", names=names, ax=row)

# %% [markdown]
# The potential is an estimate of the log-density of the factors: here of a normal distribution,
# twice as wide in variance as the marginal, because positives are spread once more.

# %%
fitted, _ = fits["with"]
estimate = fitted.potential.log_density(fitted(test.x_pos))
truth = -test.z_pos.square().sum(1) / 4
plots.recovered(
    truth - truth.mean(), estimate, up_to=None, names=["log-density"], label="by the potential"
)
plt.show()

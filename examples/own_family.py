# %% [markdown]
# # Add your own family
#
# A family is an assumption stated once. Give a class an exponent and a width, and sampling,
# density, similarity, loss and guarantee follow.

# %%
from dataclasses import dataclass

import matplotlib.pyplot as plt
import torch

from identica import (
    MLP,
    Box,
    BoxHead,
    Contrastive,
    ContrastiveModel,
    GenerativeProcess,
    InfoNCE,
    InvertibleMLP,
    Training,
    Uniform,
    guarantee,
    plots,
    train,
)
from identica.families import Coordinatewise
from identica.metrics import mcc

# %% [markdown]
# Positives that move freely up to a limit, and hardly beyond it: the density is ∝ e^{−(x/λ)⁴} in
# each coordinate.


# %%
@dataclass(frozen=True)
class Quartic(Coordinatewise):
    """Nearly uniform within ±limit, and next to nothing beyond."""

    limit: float

    @property
    def p(self):
        return 4.0

    @property
    def width(self):
        return self.limit


# %% [markdown]
# It can be sampled, and the samples follow its density.

# %%
space, far = Box(1, -3.0, 3.0), Quartic(1.0)
centre = torch.zeros(20_000, 1)
ax = plots.density(far.sample(space, centre, generator=0), names=["Quartic(1)"])
line = torch.linspace(-1.6, 1.6, 200)[:, None]
ax.plot(line, far.log_prob(space, line, torch.zeros(200, 1)).exp(), color="#d55e00", lw=2)

# %% [markdown]
# The theory applies to it as well: in a box, an exponent other than 2 fixes the axes.

# %%
process = GenerativeProcess(Box(3), Uniform(), Quartic(0.2), InvertibleMLP(3, seed=0))
head = BoxHead(Box(3), learnable=True)
model = ContrastiveModel(Box(3), Quartic(1.0), MLP(3, 3, seed=0), head=head)
guarantee(process, model)

# %% [markdown]
# And the loss compares codes by it. Nothing else was defined.

# %%
loss = InfoNCE(model.conditional, self_negative=True)
train(Contrastive(model, loss), process.sample, Training(steps=1000, batch=512))
test = process.sample(3000, generator=1)
codes = model(test.x).detach()
print(f"MCC {mcc(test.z, codes):.2f}")

# %%
plots.recovered(test.z[:1500], codes[:1500])
plt.show()

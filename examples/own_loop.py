# %% [markdown]
# # The loss in your own PyTorch loop
#
# `InfoNCE` is an ordinary module: codes in, a scalar out. Here it is trained with AdamW, a
# learning-rate schedule and bfloat16 autocast, without any loop of ours.

# %%
import matplotlib.pyplot as plt
import torch
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

from identica import MLP, Box, GenerativeProcess, InfoNCE, InvertibleMLP, Laplace, Uniform, plots
from identica.metrics import linear_r2, mcc

process = GenerativeProcess(Box(4), Uniform(), Laplace(0.1), InvertibleMLP(4, seed=1))
test = process.sample(4000, generator=1)

# %% [markdown]
# The family is the assumption about pairs, and its log-density is the similarity that the loss
# compares codes by. `self_negative` counts each anchor among its own negatives, which fixes the
# scale of unbounded codes, and `effective_negatives` weighs those of a small batch as if there
# were many.

# %%
encoder = MLP(4, 4, hidden=(64, 64, 64), seed=0)
loss = InfoNCE(Laplace(1.0), self_negative=True, effective_negatives=100_000)
steps, batch = 1500, 512
optimizer = AdamW(encoder.parameters(), lr=3e-3, weight_decay=1e-4)
schedule = OneCycleLR(optimizer, max_lr=5e-3, total_steps=steps)
generator = torch.Generator().manual_seed(0)

# %%
records = []
for step in range(1, steps + 1):
    pairs = process.sample(batch, generator=generator)
    with torch.autocast("cpu", dtype=torch.bfloat16):  # the network in bfloat16,
        h, h_pos = encoder(pairs.x), encoder(pairs.x_pos)
    value = loss(h.float(), h_pos.float())  # distances in float32
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 0:
        with torch.no_grad():
            codes = encoder(test.x)
        scores = {"r2": linear_r2(test.z, codes), "mcc": mcc(test.z, codes)}
        records.append({"step": step, "loss": value.item(), **scores})
print(f"R² {records[-1]['r2']:.2f}, MCC {records[-1]['mcc']:.2f}")

# %% [markdown]
# A plot takes any list of records with a `step`. The axis expands near 1, so that 0.9, 0.99 and
# 0.999 are equally far apart.

# %%
plots.history(records, "mcc")

# %%
plots.recovered(test.z[:1500], codes[:1500])
plt.show()

# %% [markdown]
# # A recording of neurons
#
# A rat runs to and fro on a track while its neurons are recorded. The model sees spike counts in
# order of time, and nothing about the rat. Its codes contain the position all the same.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsRegressor

from identica import ContrastiveICA, InputError, plots
from identica.datasets import neurons, recordings

# %% [markdown]
# The recording of Achilles (Grosmark & Buzsáki, 2016) is used if it is under `IDENTICA_DATA`.
# Otherwise simulated place cells take its place.

# %%
try:
    data, unit = recordings.load("achilles"), 100  # metres to centimetres
except InputError:
    data, unit = neurons.place_cells(8000), 160  # in a box: the first of three coordinates
position = unit * data.label.reshape(len(data), -1)[:, 0]
train = len(data) * 4 // 5  # the last fifth is for testing
past, future = data.counts[:train], data.counts[train:]
seconds = data.bin * len(past), data.bin * len(future)
print(f"{past.shape[1]} neurons, {seconds[0]:.0f} s to fit, {seconds[1]:.0f} s to test")

# %% [markdown]
# In a sequence, neighbouring rows are the pairs. Each row is averaged with its neighbours in time.
# Of the windows with nearly the best held-out evidence, the widest is selected, as it leaves the
# least noise. `transform` averages codes whose windows overlap.

# %%
ica = ContrastiveICA(3, steps=400, optimizer="adamw").fit(past)
plots.evidence(ica, "window")

# %% [markdown]
# Codes of the unseen part, coloured by where the rat was. Positions that are near each other on
# the track should be near each other here.

# %%
plots.codes(ica.transform(future), position[train:], name="position in cm", dims=3)

# %% [markdown]
# The median error of a nearest-neighbour decoder, for these codes and for as many principal
# components of equally averaged counts:

# %%
rows, codes = np.ones(ica.window_), np.ones(2 * ica.window_ - 1)
window = np.convolve(rows / rows.sum(), codes / codes.sum())
smooth = np.stack([np.convolve(c, window, "same") for c in np.sqrt(data.counts).T], axis=1)
principal = PCA(3).fit(smooth[:train]).transform(smooth)
found = np.r_[ica.transform(past), ica.transform(future)]
for name, codes in {"contrastive": found, "PCA": principal}.items():
    decoder = KNeighborsRegressor(15).fit(codes[:train], position[:train])
    error = np.abs(decoder.predict(codes[train:]) - position[train:])
    print(f"{name}: median error {np.median(error):.1f} cm")

# %%
plt.show()

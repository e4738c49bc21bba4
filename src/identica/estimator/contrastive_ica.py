"""Contrastive learning on your own data, scikit-learn's way."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from identica import checkpoints
from identica._io import make_folder
from identica._random import as_generator
from identica._validate import count, is_auto, one_of
from identica.errors import InputError
from identica.estimator import fit as fitting
from identica.estimator import inputs, trust
from identica.estimator import saved as _saved
from identica.estimator.card import Card
from identica.estimator.loaders import opened
from identica.estimator.networks import Network
from identica.estimator.pairs import ArrayPairs, PairSampler
from identica.estimator.selection import candidates, count_components, select
from identica.estimator.starts import Starts
from identica.estimator.transform import transform
from identica.estimator.windows import View, choose_view, shortest
from identica.families import Family
from identica.process import GenerativeProcess
from identica.spaces import Space
from identica.theory import Guarantee, guarantee

if TYPE_CHECKING:
    from identica.diagnosis import Diagnosis

Array = NDArray[Any]

SCORED = 4096  # pairs by which a model is scored
MOST = 1000  # codes, unless there are more columns
MARGINALS = ("any", "uniform")


class ContrastiveICA(Card, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Recover hidden factors from pairs of observations, by contrastive learning.

    An encoder h is trained with InfoNCE to tell the positive x̃ of each observation x from others:

        min −E log[ e^{s(h(x), h(x̃))} / (e^{s(h(x), h(x̃))} + Σ_j e^{s(h(x), h(x_j))}) ]

    where s is the log-density of `conditional`, the assumed distribution of a positive's factors. If the
    assumptions hold, the codes are the factors up to a simple map (Zimmermann et al., "Contrastive
    learning inverts the data generating process", ICML 2021).

    Args:
        n_components: number of codes; "auto", the default, takes the fewest with which held-out
            evidence is nearly the best, or what `network` returns.
        space: where the codes live: "box", "sphere", "unbounded" or a `Space`; "auto" chooses.
        conditional: how positives vary: "normal", "laplace", "gennorm3", "vmf" (sphere only) or a
            `Family`, whose scale is learnt in any case; "auto" chooses. By default "vmf" on a
            sphere and "normal" elsewhere.
        network: a module from observations to N×n codes, or a function of (shape of an observation,
            n) that makes one; by default an `MLP` for rows and a `ConvEncoder` for images, which
            are brought to 64×64. Rows are whitened before a network that is given.
        window: an observation is seen as the mean of so many rows around it in time, within its
            sequence, which leaves less noise. The windows of a pair never overlap. "auto" chooses; it
            takes 1 for pairs that are given and for fewer than 2,000 rows.
        missing: "raise" an error if X holds NaN, or "drop" such rows: no pair or window spans one, and
            their codes are NaN.
        learn_precision: learn how much each factor varies within pairs, instead of one scale for
            all. On a sphere "normal" then takes the place of "vmf".
        steps: the most steps of training, which ends before when held-out evidence no longer grows.
        batch, lr, optimizer: of the training, see `Training`; by default held-out evidence decides.
        device: where to train.
        random_state: a seed, or a NumPy generator to draw one from; None for a different one each time.
        progress: show a progress bar on stderr.
        marginal: "uniform" takes factors to fill their space evenly; "any" learns their density along
            with the codes (a `Potential` in the loss), see `log_density`.
        folder: where to keep checkpoints, so that a killed `fit` resumes; none by default. Each fit has
            its own folder in there, named by a hash of its parameters, its seed and all of its
            data, so that no fit ever finds the weights of another (cross-validation works too).
        tensorboard: write the history for TensorBoard as well, next to the checkpoints.

    Attributes:
        model_: the fitted `ContrastiveModel`, from raw observations to codes.
        temperature_: what similarities are divided by to be log-likelihoods.
        precision_: with `learn_precision`, λ_k of the similarity −Σ_k λ_k |a_k − b_k|^p.
        selection_: with "auto", the choice and the evidence for it.
        training_: the settings of the training that was chosen.
        history_: its records: `step`, `loss` on pairs trained on, `bits` on held-out ones.
        bits_: evidence on held-out pairs, see `score`.
        starts_: a record of each start: its settings, steps and held-out bits.
        choices_: with "auto", held-out bits by window, lag and number of codes.
        independent_pairs_: how many independent pairs those of a sequence are worth.
        lag_: the lag of the pairs, None for pairs that were given.
        window_, counts_: the window, and whether square roots of counts are taken.
        n_features_in_, feature_names_in_: as in scikit-learn.

    >>> x = np.random.default_rng(0).normal(size=(50, 3)).cumsum(axis=0)
    >>> ica = ContrastiveICA(2, steps=5, batch=16).fit(x)
    >>> ica.transform(x).shape
    (50, 2)
    """

    _sessions: inputs.Sessions | None = None

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        space: str | Space = "box",
        conditional: str | Family | None = None,
        network: Network = None,
        window: int | str = "auto",
        missing: str = "raise",
        learn_precision: bool = False,
        marginal: str = "uniform",
        steps: int | None = None,
        batch: int | None = None,
        lr: float | None = None,
        optimizer: str | None = None,
        device: str = "cpu",
        random_state: Any = 0,
        progress: bool = False,
        folder: str | Path | None = None,
        tensorboard: bool = False,
    ) -> None:
        self.n_components = n_components
        self.space = space
        self.conditional = conditional
        self.network = network
        self.window = window
        self.missing = missing
        self.learn_precision = learn_precision
        self.marginal = marginal
        self.steps = steps
        self.batch = batch
        self.lr = lr
        self.optimizer = optimizer
        self.device = device
        self.random_state = random_state
        self.progress = progress
        self.folder = folder
        self.tensorboard = tensorboard

    def fit(
        self,
        X: Any,
        X_pos: Any = None,
        *,
        lag: Any = None,
        groups: Any = None,
        labels: Any = None,
    ) -> Self:
        """Train on pairs, an eighth of which is held out and decides: between settings, and when to stop.

        Args:
            X: observations, N×d or images, as an array (memory-mapped ones are read batch by
                batch), tensor or data frame; a list of such arrays, each of them a sequence (with
                columns of its own, if there are labels for all of them), or an array of trials ×
                time × channels (of bytes or booleans: images N×H×W); a folder of images; or a function
                `(size, generator=…)` that draws pairs (x, x_pos), a torch `Dataset` or `DataLoader` of
                pairs, or an iterable of batches of them, which is kept in memory. Gaps in an index of
                dates end a sequence.
            X_pos: the positive of each observation. Without it, X is taken to be a sequence. (A
                vector in its place is scikit-learn's y and is ignored, with a warning.)
            lag: steps between the members of a pair in a sequence: a number (1 by default), or
                (low, high) for a random one each time, or "auto". With a window, between their
                nearest rows.
            groups: for each row, which sequence it is of; pairs never cross the end of one.
            labels: for each row, what is known of it: positives are rows of the same class (whole
                numbers, text) or near each other in continuous labels (numbers with a fraction), one
                column or several. Together with `lag`, half of the positives are drawn by time.
        """
        seed = inputs.seed_of(self.random_state)
        as_generator(seed, self.device)  # which must be there
        one_of("marginal", self.marginal, MARGINALS)
        for name in ("selection_", "precision_", "_verdict"):
            self.__dict__.pop(name, None)  # of an earlier fit
        sample, self.lag_ = inputs.pairs_of(self, X, X_pos, lag, groups, labels, reset=True)
        sample, view, self.choices_ = choose_view(
            sample, self._shape, self.lag_, self.window, seed=seed
        )
        self.lag_, self.window_, self.counts_ = view.lag, view.window, view.counts
        starts = self._starts(sample, seed)
        n = self._components() or starts.codes() or self._counted(starts)
        choices = self._candidates(n)
        starts.recipes(*choices[0])  # settings that cannot be leave no folder behind
        folder = None
        if self.folder is not None:
            folder = make_folder("folder", Path(self.folder))
            folder = _saved.place(self, folder, sample, seed)
        if len(choices) > 1:

            def briefly(space: Space, family: Family, part: PairSampler, *at: Any) -> fitting.Fit:
                return self._starts(part, seed).fit(space, family, *at, short=True)

            self.selection_ = select(choices, sample, briefly, seed=seed, folder=folder)
            choices = [(self.selection_.space, self.selection_.conditional)]
        [(space, conditional)] = choices
        self.independent_pairs_ = starts.worth(n)
        self._keep(starts.fit(space, conditional, "fit", folder, tensorboard=self.tensorboard))
        trust.warn_of(self.independent_pairs_, self.bits_, n)
        return self

    def _keep(self, fit: fitting.Fit) -> None:
        self._fit = fit
        self.model_, self.history_, self.temperature_ = fit.model, fit.history, fit.temperature
        self.bits_, self.starts_, self.training_ = fit.bits, list(fit.starts), fit.training
        if self.learn_precision:
            self.precision_ = fit.precision.cpu().numpy()

    def transform(self, X: Any, *, groups: Any = None) -> Any:
        """Codes N×n of observations; in double precision where X is.

        With a window, rows are those of a sequence in order of time, or of several, by `groups`.
        """
        check_is_fitted(self, "model_")
        return transform(self, X, groups)

    def log_density(self, X: Any, *, groups: Any = None) -> Any:
        """The log-density of the factors behind observations, N, with mean 0 over held-out pairs.

        That is −b(h) of the learnt potential b and codes h: with `marginal="any"` only. It is a density
        in the coordinates of the codes, known up to a constant. It is that of the factors if steps do not
        depend on it, as in pairs drawn around factors or in a walk between walls. If they do, as where
        factors are drawn back to a centre, part of it is in the steps, and −b is flatter: by a half, if
        steps are small. Arguments are as in `transform`.
        """
        codes = self.transform(X, groups=groups)
        potential = self.model_.potential
        if potential is None:
            raise InputError('log_density needs a fit with marginal="any", which learns a density')
        if isinstance(codes, list):
            return [fitting.minus_b(potential, part) for part in codes]
        return fitting.minus_b(potential, codes)

    def fit_transform(
        self,
        X: Any,
        X_pos: Any = None,
        *,
        y: Any = None,
        lag: Any = None,
        groups: Any = None,
        labels: Any = None,
    ) -> Array:
        """Fit, and return the codes of X; y is ignored."""
        X = opened(X)  # an iterable may be read only once
        codes: Array = self.fit(X, X_pos, lag=lag, groups=groups, labels=labels).transform(
            X, groups=groups
        )
        return codes

    def score(
        self,
        X: Any,
        X_pos: Any = None,
        *,
        y: Any = None,
        lag: Any = None,
        groups: Any = None,
        labels: Any = None,
    ) -> float:
        """How much likelier the true positive is than by chance, in bits; higher is better.

        The mean over (at most 4,096) pairs of log₂ of the probability that the model gives the
        positive among all of theirs, above chance: 0 for a model that knows nothing, at most log₂ of
        their number. Arguments are as in `fit`; the lag is that of `fit` by default; y is ignored.
        """
        check_is_fitted(self, "model_")
        sample, _ = inputs.pairs_of(self, X, X_pos, lag, groups, labels, reset=False)
        sample = View(self.lag_, self.window_, self.counts_).of(sample)
        pairs = sample(SCORED, generator=as_generator(0, self.device))
        bits = float(self._fit.log_likelihood(pairs).mean()) / math.log(2)
        if not math.isfinite(bits):
            raise InputError("X must be in the range of the data that were fitted: codes overflow")
        return bits

    def diagnose(
        self,
        X: Any,
        X_pos: Any = None,
        *,
        lag: Any = None,
        groups: Any = None,
        labels: Any = None,
        restarts: int = 2,
        Z: Any = None,
    ) -> Diagnosis:
        """Say how far the codes can be trusted, and why.

        The model is refitted to four fifths of the pairs, from other seeds, and all fits are judged on the
        held-out fifth. Print the result, or write it as a page with
        `identica.diagnosis.page.write_diagnosis_page`.

        Args:
            X, X_pos, lag, groups, labels: the pairs of `fit`, or as many others.
            restarts: number of models in all, with this one.
            Z: the true factors of X, N×d, where they are known.
        """
        check_is_fitted(self, "model_")
        sample, _ = inputs.pairs_of(self, X, X_pos, lag, groups, labels, reset=False)
        sample = View(self.lag_, self.window_, self.counts_).of(sample)
        known = None
        if Z is not None:
            if not isinstance(sample, ArrayPairs):
                raise InputError("Z must not be given where X draws pairs by itself")
            known = trust.some_labelled(sample, Z)
        seed = int(self.random_state) if isinstance(self.random_state, (int, np.integer)) else 0
        found = fitting.diagnose(
            self._fit, sample, self._restart, restarts=restarts, labelled=known, random_state=seed
        )
        self._verdict = found.verdict
        return found

    def guarantee(self, process: GenerativeProcess) -> Guarantee:
        """What the theory promises for this model, as it was fitted, if `process` made the data.

        See `identica.guarantee`. The scale of the conditional is learnt in `fit`, whatever it was
        given as.
        """
        check_is_fitted(self, "model_")
        return guarantee(process, self.model_, tau=None, learn_precision=bool(self.learn_precision))

    def _restart(self, sample: PairSampler, seed: int) -> fitting.Fit:
        """Fit the same model again, from other random weights."""
        space, conditional = self.model_.space, self.model_.conditional
        return self._starts(sample, seed).fit(space, conditional, "restart")

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one safetensors file, without pickle.

        A network of your own is not written, its weights are; an earlier `random_state` that is no
        number is forgotten.
        """
        check_is_fitted(self, "model_")
        checkpoints.save(Path(path), _saved.state_of(self))

    @classmethod
    def load(cls, path: str | Path, *, network: Network = None) -> Self:
        """Read what `save` wrote; `network` as it was given, where it was. `folder` is not read."""
        return _saved.restore(cls, checkpoints.load(Path(path)), Path(path), network)

    # --- what fit is made of ------------------------------------------------------------------------

    def _starts(self, sample: PairSampler, seed: int) -> Starts:
        names = ("steps", "batch", "lr", "optimizer")
        return Starts(
            sample,
            self._shape,
            self.network,
            {name: getattr(self, name) for name in names if getattr(self, name) is not None},
            learn_precision=self.learn_precision,
            potential=self.marginal == "any",
            device=self.device,
            progress=self.progress,
            seed=seed,
        )

    def _counted(self, starts: Starts) -> int:
        """The number of codes by held-out evidence."""

        def bits(n: int) -> float:
            space, family = self._candidates(n)[-1]
            return starts.fit(space, family, f"{n} codes", short=True).bits

        least = 2 if self.space == "sphere" else 1
        evidence = count_components(bits, starts.most_codes(), least=least)
        self.choices_["n_components"] = evidence
        return shortest(evidence)

    def _candidates(self, n: int) -> list[tuple[Space, Family]]:
        precise = bool(self.learn_precision)
        return candidates(self.space, self.conditional, n, learn_precision=precise)

    def _components(self) -> int | None:
        """The number of codes, as far as the parameters say."""
        given = None if is_auto(self.n_components) else self.n_components
        n = None if given is None else count("n_components", cast(int, given))
        if n is not None and n > (most := max(MOST, math.prod(self._shape))):
            raise InputError(f"n_components must be at most {most} for these data, got {n}")
        if isinstance(self.space, Space):
            if n not in (None, self.space.dim):
                raise InputError(f"n_components must be {self.space.dim} for {self.space}, got {n}")
            return self.space.dim
        return n

    @property
    def _n_features_out(self) -> int:
        return self.model_.space.dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

"""`ContrastiveICA`, contrastive learning as a scikit-learn estimator."""

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
from identica._validate import as_path, count, is_auto, one_of
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
from identica.estimator.transform import ring, transform
from identica.estimator.windows import View, choose_view, shortest
from identica.families import Family
from identica.process import GenerativeProcess
from identica.spaces import Space
from identica.theory import Guarantee, guarantee

if TYPE_CHECKING:
    from identica.diagnosis import Diagnosis

Array = NDArray[Any]

SCORED = 4096  # pairs on which `score` evaluates a model
MOST = 1000  # largest number of codes, unless there are more columns
MARGINALS = ("any", "uniform")


class ContrastiveICA(Card, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Recover hidden factors from pairs of observations, by contrastive learning.

    An encoder h is trained with InfoNCE to distinguish the positive x̃ of each observation x from others:

        min −E log[ e^{s(h(x), h(x̃))} / (e^{s(h(x), h(x̃))} + Σ_j e^{s(h(x), h(x_j))}) ]

    where s is the log-density of `conditional`, the assumed distribution of a positive's factors. If the
    assumptions hold, the codes are the factors up to a simple map (Zimmermann et al., "Contrastive
    learning inverts the data generating process", ICML 2021).

    Args:
        n_components: number of codes. The default, "auto", selects the smallest number whose held-out
            evidence is close to the best, or uses the number of outputs of `network`.
        space: space of the codes: "box", "sphere", "unbounded", a `Space`, or "auto" to select one.
        conditional: distribution of positives: "normal", "laplace", "gennorm3", "vmf" (sphere only), a
            `Family`, or "auto" to select one. Its scale is always learnt. By default "vmf" on a sphere
            and "normal" otherwise.
        network: a module from observations to N×n codes, or a function of (shape of an observation,
            n) that returns one. By default a linear map plus an `MLP` for rows, and a `ConvEncoder`
            for images, which are resized to 64×64. Rows are whitened before a custom network.
        window: replace each observation by the mean of this many consecutive rows of its sequence, to
            reduce noise. The windows of a pair never overlap, and `transform` averages codes whose
            windows do. "auto" selects a window; 1 for pairs given row by row and below 2,000 rows.
        missing: "raise" an error if X holds NaN, or "drop" such rows: no pair or window includes them,
            and their codes are NaN.
        learn_precision: learn a precision for each factor instead of one common scale. On a sphere,
            "normal" then replaces "vmf".
        steps: maximum number of training steps. Training stops early when held-out evidence no longer
            improves.
        batch, lr, optimizer: training settings, see `Training`; selected by held-out evidence by default.
        device: device to train on.
        random_state: a seed, a NumPy generator to draw one from, or None for a different seed each time.
        progress: show a progress bar on stderr.
        marginal: "uniform" assumes that factors are uniformly distributed over the space; "any" learns
            their density along with the codes (a `Potential` in the loss), see `log_density`.
        folder: folder for checkpoints, from which an interrupted `fit` resumes; none by default. Each fit
            has a subfolder named by a hash of its parameters, seed and data, so fits never share
            weights, not even in cross-validation.
        tensorboard: also write the history for TensorBoard, next to the checkpoints.

    Attributes:
        model_: the fitted `ContrastiveModel`, from raw observations to codes.
        temperature_: divisor that turns similarities into log-likelihoods.
        precision_: with `learn_precision`, λ_k of the similarity −Σ_k λ_k |a_k − b_k|^p.
        evidence_: with `window`, `lag` or `n_components` "auto", held-out bits by value for each. Bits of
            different parameters cannot be compared.
        selection_: with `space` or `conditional` "auto", the selected pair and the evidence for it.
        training_: training settings of the selected start.
        history_: its training records: `step`, `loss` on training pairs, `bits` on held-out pairs.
        bits_: evidence on held-out pairs, see `score`.
        starts_: a record of each start: its settings, steps and held-out bits.
        independent_pairs_: effective number of independent pairs; less than the number of pairs in a
            slow sequence.
        lag_: the lag of the pairs; None for pairs given row by row or drawn by labels alone.
        window_, counts_: the window, and whether square roots of counts are taken.
        ring_: coefficients by which `transform` straightens codes on a circle; one if it does not.
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
        """Fit the model to pairs of observations.

        An eighth of the pairs is held out, for the selection of settings and for early stopping.

        Args:
            X: observations, N×d or images, as an array (a memory-mapped one is read batch by batch),
                tensor or data frame. Also a list of sequences, which may have different columns if all
                have labels; an array of trials × time × channels (of bytes or booleans: images
                N×H×W); a folder of images; a function `(size, generator=…)` that draws pairs
                (x, x_pos); a torch `Dataset` or `DataLoader` of pairs; or an iterable of batches of
                pairs, which is kept in memory. Gaps in an index of dates end a sequence.
            X_pos: the positive of each observation. Without it, X is treated as a sequence. (A vector
                passed here is scikit-learn's y and is ignored, with a warning.)
            lag: steps between the members of a pair in a sequence: a number (1 by default), a range
                (low, high) to draw from, or "auto". With a window, the lag is between the nearest rows.
            groups: sequence of each row; pairs never span two sequences.
            labels: labels of each row, one column or several. Positives are rows of the same class
                (integers or text) or with similar continuous labels (floats). Together with `lag`, half
                of the positives are drawn by time.
        """
        seed = inputs.seed_of(self.random_state)
        as_generator(seed, self.device)  # raises if there is no such device
        one_of("marginal", self.marginal, MARGINALS)
        for name in ("selection_", "precision_", "_verdict"):
            self.__dict__.pop(name, None)  # of an earlier fit
        sample, self.lag_ = inputs.pairs_of(self, X, X_pos, lag, groups, labels, reset=True)
        sample, view, self.evidence_ = choose_view(
            sample, self._shape, self.lag_, self.window, seed=seed
        )
        self.lag_, self.window_, self.counts_ = view.lag, view.window, view.counts
        starts = self._starts(sample, seed)
        n = self._components() or starts.codes() or self._select_n(starts)
        choices = self._candidates(n)
        starts.recipes(*choices[0])  # raises for invalid settings before a folder is made
        folder = None
        if self.folder is not None:
            folder = make_folder("folder", as_path("folder", self.folder))
            folder = _saved.place(self, folder, sample, seed)
        if len(choices) > 1:

            def briefly(space: Space, family: Family, part: PairSampler, *at: Any) -> fitting.Fit:
                return self._starts(part, seed).fit(space, family, *at, short=True)

            self.selection_ = select(choices, sample, briefly, seed=seed, folder=folder)
            choices = [(self.selection_.space, self.selection_.conditional)]
        [(space, conditional)] = choices
        self.independent_pairs_ = starts.effective_pairs(n)
        self._keep(starts.fit(space, conditional, "fit", folder, tensorboard=self.tensorboard))
        self.ring_ = ring(self, sample)
        trust.warn_of(self.independent_pairs_, self.bits_, n)
        return self

    def _keep(self, fit: fitting.Fit) -> None:
        self._fit = fit
        self.model_, self.history_, self.temperature_ = fit.model, fit.history, fit.temperature
        self.bits_, self.starts_, self.training_ = fit.bits, list(fit.starts), fit.training
        if self.learn_precision:
            self.precision_ = fit.precision.cpu().numpy()

    def transform(self, X: Any, *, groups: Any = None) -> Any:
        """Compute codes N×n of observations, in double precision if X is.

        With a window, the rows of X must be those of a sequence in order of time, or of several given by
        `groups`, and each code is averaged with the window − 1 before and after it.
        """
        check_is_fitted(self, "model_")
        return transform(self, X, groups)

    def log_density(self, X: Any, *, groups: Any = None) -> Any:
        """Log-density of the factors behind observations, shape N, with mean 0 over held-out pairs.

        This is −b(h) for the learnt potential b and codes h, and requires `marginal="any"`. It is a density
        in the coordinates of the codes, up to a constant. It equals that of the factors if the step from a
        factor to its positive does not depend on their density, as in a random walk between walls. In a
        mean-reverting process the steps account for part of the density, and −b is flatter: by a half, if
        steps are small. Arguments are as in `transform`.
        """
        codes = self.transform(X, groups=groups)
        potential = self.model_.potential
        if potential is None:
            raise InputError('log_density needs a fit with marginal="any", which learns a density')
        if isinstance(codes, list):
            return [fitting.log_density(potential, part) for part in codes]
        return fitting.log_density(potential, codes)

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
        self.fit(X, X_pos, lag=lag, groups=groups, labels=labels)
        return self.transform(X, groups=groups)

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
        """Evidence of the model for pairs, in bits; higher is better.

        Each of at most 4,096 anchors is matched against all their positives. The score is the mean log₂ of
        the probability of the true positive relative to chance: 0 for an uninformative model, at most log₂
        of the number of pairs. Arguments are as in `fit`; the lag defaults to that of `fit`; y is ignored.
        """
        check_is_fitted(self, "model_")
        sample, _ = inputs.pairs_of(self, X, X_pos, lag, groups, labels, reset=False)
        sample = View(self.lag_, self.window_, self.counts_).of(sample)
        pairs = sample(SCORED, generator=as_generator(0, self.device))
        bits = float(self._fit.log_likelihood(pairs).mean()) / math.log(2)
        if not math.isfinite(bits):
            raise InputError("X must be in the range of the data in fit: codes overflow")
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
        """Diagnose how far the codes can be trusted, and why.

        The model is refitted to four fifths of the pairs from other seeds, and all fits are compared on the
        held-out fifth. Print the result, or write it as a page with
        `identica.diagnosis.page.write_diagnosis_page`.

        Args:
            X, X_pos, lag, groups, labels: the pairs of `fit`, or as many others.
            restarts: total number of fits, including this one.
            Z: the true factors of X, N×d, if they are known.
        """
        check_is_fitted(self, "model_")
        sample, _ = inputs.pairs_of(self, X, X_pos, lag, groups, labels, reset=False)
        sample = View(self.lag_, self.window_, self.counts_).of(sample)
        known = None
        if Z is not None:
            if not isinstance(sample, ArrayPairs):
                raise InputError("Z must not be given if X draws pairs")
            known = trust.sample_labelled(sample, Z)
        seed = int(self.random_state) if isinstance(self.random_state, (int, np.integer)) else 0
        diagnosis = fitting.diagnose(
            self._fit, sample, self._restart, restarts=restarts, labelled=known, random_state=seed
        )
        self._verdict = diagnosis.verdict
        return diagnosis

    def guarantee(self, process: GenerativeProcess) -> Guarantee:
        """Theoretical guarantee for the fitted model if `process` generated the data.

        See `identica.guarantee`. The scale of the conditional is the learnt one, not the given one.
        """
        check_is_fitted(self, "model_")
        return guarantee(process, self.model_, tau=None, learn_precision=bool(self.learn_precision))

    def _restart(self, sample: PairSampler, seed: int) -> fitting.Fit:
        """Fit the same model again from other random weights."""
        space, conditional = self.model_.space, self.model_.conditional
        return self._starts(sample, seed).fit(space, conditional, "restart")

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one safetensors file, without pickle.

        Of a custom network, the weights are written but not the architecture. A `random_state` other than
        an integer is not written.
        """
        check_is_fitted(self, "model_")
        checkpoints.save(as_path("path", path), _saved.state_of(self))

    @classmethod
    def load(cls, path: str | Path, *, network: Network = None) -> Self:
        """Load an estimator written by `save`; a custom network must be passed again as `network`."""
        return _saved.restore(cls, checkpoints.load(as_path("path", path)), Path(path), network)

    # --- steps of fit -------------------------------------------------------------------------------

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

    def _select_n(self, starts: Starts) -> int:
        """Select the number of codes by held-out evidence."""

        def bits(n: int) -> float:
            space, family = self._candidates(n)[-1]
            return starts.fit(space, family, f"{n} codes", short=True).bits

        least = 2 if self.space == "sphere" else 1
        evidence = count_components(bits, starts.most_codes(), least=least)
        self.evidence_["n_components"] = evidence
        return shortest(evidence)

    def _candidates(self, n: int) -> list[tuple[Space, Family]]:
        precise = bool(self.learn_precision)
        return candidates(self.space, self.conditional, n, learn_precision=precise)

    def _components(self) -> int | None:
        """The number of codes according to the parameters; None if it is to be selected."""
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

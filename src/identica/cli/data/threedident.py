"""3DIdent: images of a teapot whose position, rotation and colours are the ten factors."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from identica.cli.arguments import add_actions, add_picture

if TYPE_CHECKING:
    from identica.datasets.threedident.storage import Draw

AGAIN = 16  # images that `check` renders again
ALIKE = 25.0  # dB; images of other latents score about 15
MOST = 10_000_000  # images


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their options."""
    builder, checker, shower = add_actions(parser, build, check, show)
    add = builder.add_argument
    add("--n", type=int, required=True, metavar="N", help="number of images")
    add("--size", type=int, default=64, metavar="S", help="side in pixels (default: %(default)s)")
    add("--out", type=Path, required=True, metavar="DIR", help="folder for the images")
    engines = (
        "fast (ray caster) or blender (Cycles, needs identica[blender]) (default: %(default)s)"
    )
    add("--engine", default="fast", help=engines)
    add("--samples", type=int, metavar="K", help="rays per pixel (default: fast 8, blender 128)")
    seed = "random seed; the same --seed and --n give the same set (default: %(default)s)"
    add("--seed", type=int, default=0, metavar="N", help=seed)
    add(
        "--factors",
        metavar="x,y,…",
        help="those that vary, all others stay at 0 (default: all ten)",
    )
    packed = "arrays that train without decoding, instead of PNGs as published"
    add("--packed", action="store_true", help=packed)
    what = "a build or the original download"
    checker.add_argument("folder", type=Path, metavar="DIR", help=what)
    shower.add_argument("folder", type=Path, nargs="?", metavar="DIR", help=what)
    add_picture(shower)


def build(args: argparse.Namespace) -> int:
    """render a data set

    Render images of random factors. An interrupted build resumes. Sets with a different --seed or a
    different --n share no image: one to train on, one to test on.
    """
    import numpy as np

    from identica._progress import progress_bar
    from identica._validate import count
    from identica._validate import seed as check_seed
    from identica.datasets.threedident import storage
    from identica.datasets.threedident.scene import FACTORS, check_factors, check_size

    seed, n = check_seed("seed", args.seed), count("n", args.n, at_most=MOST)
    size = check_size(args.size)
    draw, rays, step = engine(args.engine, args.samples)
    # with n, or a small set would be the beginning of a large one
    z = np.random.default_rng([seed, n]).uniform(-1, 1, (n, 10))
    settings: dict[str, Any] = {"engine": args.engine, "samples": rays, "seed": seed}
    if args.factors is not None:
        factors = check_factors([name.strip() for name in args.factors.split(",")])
        z[:, [name not in factors for name in FACTORS]] = 0
        settings["factors"] = sorted(factors)
    options: dict[str, Any] = {"size": size, "packed": args.packed, "settings": settings}
    with ExitStack() as stack:
        bar: Any = None

        def tick(done: int, _: int) -> None:
            nonlocal bar
            if bar is None:  # images of an earlier call say nothing of the pace
                shown: dict[str, Any] = {"desc": str(args.out), "disable": args.quiet}
                bar = progress_bar(total=n, initial=done, unit="image", **shown)
                stack.enter_context(bar)
            bar.update(done - bar.n)

        storage.build(args.out, z, draw, step=step, tick=tick, **options)
    print(f"{n} images of {size}×{size} in {args.out}")
    return 0


def engine(name: str, samples: int | None) -> tuple[Draw, int, int]:
    """How an engine renders n×10 raw latents at a size, with how many samples, and how many at once."""
    from identica._validate import count, one_of
    from identica.datasets.threedident.storage import STEP

    # Blender is slow, so it reports progress more often
    known = {"fast": ("raycaster", 8, STEP), "blender": ("blender", 128, 4)}
    module, usual, step = known[one_of("engine", name, known)]
    chosen = import_module(f"identica.datasets.threedident.{module}")
    if name == "blender":
        chosen.require()
    rays = usual if samples is None else count("samples", samples, at_most=chosen.SAMPLES)
    return lambda z, size: chosen.render(z, size, rays), rays, step


def check(args: argparse.Namespace) -> int:
    """see whether a data set is whole

    Read every image, and render some again to see that they show their latents.
    """
    import numpy as np

    from identica._progress import progress_bar
    from identica.datasets.threedident import render
    from identica.datasets.threedident.pictures import psnr
    from identica.datasets.threedident.storage import ImageSet
    from identica.errors import InputError

    data = ImageSet(args.folder)
    shown: dict[str, Any] = {"desc": str(args.folder), "disable": args.quiet}
    for start in progress_bar(range(0, len(data), 64), unit="block", **shown):
        data.images(range(start, min(start + 64, len(data))))
    some = np.unique(np.linspace(0, len(data) - 1, AGAIN).astype(int))
    likeness = psnr(data.images(some), render(data.raw_latents[some], data.size))
    if np.median(likeness) < ALIKE:
        raise InputError(
            f"{args.folder} must hold images of its latents, but of {len(some)} that were rendered "
            f"again half differ from the stored ones: median PSNR {np.median(likeness):.1f} dB"
        )
    print(
        f"{args.folder}: {len(data)} images of {data.size}×{data.size}, all whole; {len(some)} "
        f"rendered again: PSNR {likeness.mean():.1f} dB, at least {likeness.min():.1f}"
    )
    return 0


def show(args: argparse.Namespace) -> int:
    """a picture of many images

    A sheet of the first images of a data set; without one, each factor in turn, freshly rendered.
    """
    from identica.datasets import pictures
    from identica.datasets.threedident.pictures import first_images, traversals
    from identica.datasets.threedident.storage import ImageSet

    picture = traversals() if args.folder is None else first_images(ImageSet(args.folder))
    pictures.save(picture, args.out)
    print(args.out)
    return 0

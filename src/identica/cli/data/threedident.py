"""identica data 3dident build | check | show"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from identica.datasets.threedident.storage import Draw

AGAIN = 16  # images that `check` draws again
ALIKE = 25.0  # dB; images of other latents score about 15
MOST, LARGEST, DENSEST = 10_000_000, 4096, 65_536  # images, side in pixels, rays for a pixel


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands for 3DIdent."""
    parser.description = (
        "3DIdent: images of a teapot whose position, rotation and colours are the ten factors."
    )
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    build = commands.add_parser(
        "build",
        help="draw a data set",
        description="Draw images of random factors. An interrupted build resumes. Sets with a "
        "different --seed or a different --n share no image: one to train on, one to test on.",
    )
    build.add_argument("--n", type=int, required=True, metavar="N", help="number of images")
    build.add_argument(
        "--size", type=int, default=64, metavar="S", help="side in pixels (default: %(default)s)"
    )
    build.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to")
    build.add_argument(
        "--engine",
        default="fast",
        help="fast (ray caster) or blender (Cycles, needs identica[blender]) (default: %(default)s)",
    )
    build.add_argument(
        "--samples", type=int, metavar="K", help="rays for a pixel (default: fast 8, blender 128)"
    )
    build.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="makes the factors, together with --n (default: 0)",
    )
    build.add_argument(
        "--factors",
        metavar="x,y,…",
        help="those that vary, all others stay at 0 (default: all ten)",
    )
    build.add_argument(
        "--packed",
        action="store_true",
        help="arrays that train without decoding, instead of PNGs as published",
    )
    build.set_defaults(run=_build)

    check = commands.add_parser(
        "check",
        help="see whether a data set is whole",
        description="Read every image, and draw some again to see that they show their latents.",
    )
    check.add_argument("folder", type=Path, metavar="DIR", help="a build or the original download")
    check.set_defaults(run=_check)

    show = commands.add_parser(
        "show",
        help="a picture of many images",
        description="A sheet of the first images of a data set; without one, each factor in turn, "
        "freshly drawn.",
    )
    show.add_argument("folder", type=Path, nargs="?", metavar="DIR", help="a data set")
    show.add_argument("--out", type=Path, required=True, metavar="PNG", help="the picture")
    show.set_defaults(run=_show)


def engine(name: str, samples: int | None) -> tuple[Draw, int, int]:
    """How an engine draws n×10 raw latents at a size, with how many samples, and how many at once."""
    from identica._validate import count, one_of

    render: Callable[..., Any]
    if one_of("engine", name, ["fast", "blender"]) == "blender":
        from identica.datasets.threedident.blender import render, require

        require()
        usual, step = 128, 4  # slow, so a word of progress more often
    else:
        from identica.datasets.threedident import render
        from identica.datasets.threedident.storage import STEP

        usual, step = 8, STEP
    rays = usual if samples is None else count("samples", samples, at_most=DENSEST)
    return lambda z, size: render(z, size, rays), rays, step


def _build(args: argparse.Namespace) -> int:
    import numpy as np
    from tqdm import tqdm

    from identica._validate import count
    from identica._validate import seed as check_seed
    from identica.datasets.threedident.scene import FACTORS, check_factors
    from identica.datasets.threedident.storage import build

    seed, n = check_seed("seed", args.seed), count("n", args.n, at_most=MOST)
    size = count("size", args.size, at_most=LARGEST)
    draw, rays, step = engine(args.engine, args.samples)
    # with n, or a small set would be the beginning of a large one
    z = np.random.default_rng([seed, n]).uniform(-1, 1, (n, 10))
    settings: dict[str, Any] = {"engine": args.engine, "samples": rays, "seed": seed}
    if args.factors is not None:
        factors = check_factors([name.strip() for name in args.factors.split(",")])
        z[:, [name not in factors for name in FACTORS]] = 0
        settings["factors"] = sorted(factors)
    with ExitStack() as stack:
        bar: tqdm[Any] | None = None

        def tick(done: int, _: int) -> None:
            nonlocal bar
            if bar is None:  # images of an earlier call say nothing of the pace
                bar = tqdm(total=n, initial=done, unit="image", desc=str(args.out), file=sys.stderr)
                stack.enter_context(bar)
            bar.update(done - bar.n)

        build(
            args.out,
            z,
            draw,
            size=size,
            packed=args.packed,
            settings=settings,
            step=step,
            tick=tick,
        )
    print(f"{n} images of {args.size}×{args.size} in {args.out}")
    return 0


def _check(args: argparse.Namespace) -> int:
    import numpy as np
    from tqdm import tqdm

    from identica.datasets.threedident import render
    from identica.datasets.threedident.pictures import psnr
    from identica.datasets.threedident.storage import ImageSet
    from identica.errors import InputError

    data = ImageSet(args.folder)
    for start in tqdm(range(0, len(data), 64), unit="block", desc=str(args.folder)):
        data.images(range(start, min(start + 64, len(data))))
    some = np.unique(np.linspace(0, len(data) - 1, AGAIN).astype(int))
    again = render(data.raw_latents[some], data.size)
    likeness = psnr(data.images(some), again)
    if np.median(likeness) < ALIKE:
        raise InputError(
            f"{args.folder} must hold images of its latents, but of {len(some)} that were drawn "
            f"again half differ from the stored ones: median PSNR {np.median(likeness):.1f} dB"
        )
    print(
        f"{args.folder}: {len(data)} images of {data.size}×{data.size}, all whole; {len(some)} drawn "
        f"again: PSNR {likeness.mean():.1f} dB, at least {likeness.min():.1f}"
    )
    return 0


def _show(args: argparse.Namespace) -> int:
    from PIL import Image

    from identica._io import make_folder, replacing
    from identica.datasets.threedident.pictures import first_images, traversals
    from identica.datasets.threedident.storage import ImageSet

    picture = traversals() if args.folder is None else first_images(ImageSet(args.folder))
    make_folder("out", args.out.parent)
    with replacing(args.out) as temporary:
        Image.fromarray(picture).save(temporary, format="png")
    print(args.out)
    return 0

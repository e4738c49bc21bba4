import sys

import numpy as np
import pytest

from identica.datasets.threedident import blender, render
from identica.datasets.threedident.pictures import psnr
from identica.errors import InputError


@pytest.fixture
def bpy():
    return pytest.importorskip("bpy", reason="needs Blender's Python module, identica[blender]")


def test_without_blender_one_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "bpy", None)
    with pytest.raises(InputError, match=r"pip install identica\[blender\]"):
        blender.render(np.zeros((1, 10)), size=8)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            'raise ImportError("libXrender.so.1: cannot open shared\\nobject file")',
            "libXrender.so.1",
        ),
        ("import a_module_that_bpy_needs", "a_module_that_bpy_needs"),
    ],
)
def test_a_blender_that_does_not_load_says_why(monkeypatch, tmp_path, code, told):
    (tmp_path / "bpy.py").write_text(code)
    monkeypatch.delitem(sys.modules, "bpy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=f"does not load: .*{told}") as error:
        blender.render(np.zeros((1, 10)), size=8)
    assert "pip install" not in str(error.value)
    assert "\n" not in str(error.value)


def test_latents_are_checked_first(monkeypatch):
    monkeypatch.setitem(sys.modules, "bpy", None)
    with pytest.raises(InputError, match=r"\[-1, 1\]"):
        blender.render(np.full((1, 10), 2.0))


def test_both_engines_draw_the_same_pictures(bpy, capfd):
    z = np.random.default_rng(0).uniform(-1, 1, (3, 10))
    slow = blender.render(z, size=64, samples=256)
    likeness = psnr(slow, render(z, size=64, samples=256))
    assert likeness.min() > 36
    assert likeness.mean() > 40
    # the same image in any company, and none of Blender's reports
    np.testing.assert_array_equal(blender.render(z[2:], size=64, samples=256)[0], slow[2])
    assert capfd.readouterr().out == ""


def test_images_are_those_of_cycles(bpy, real):
    with np.load(real("3dident_cycles", "renders.npz")) as cycles:
        z, images = cycles["raw_latents"][:2], cycles["images"][:2]
    assert psnr(blender.render(z, 128), images).min() > 42


def test_absurd_sizes_are_refused_before_blender_is_asked():
    with pytest.raises(InputError, match=r"size must be .* at most 4096"):
        blender.render(np.zeros((1, 10)), size=10**9)
    with pytest.raises(InputError, match=r"samples must be .* at most"):
        blender.render(np.zeros((1, 10)), samples=10**9)

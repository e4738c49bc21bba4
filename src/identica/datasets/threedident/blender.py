"""The same scene in Blender, rendered by Cycles: slow, but the engine of the original data set."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import count
from identica.datasets.threedident.material import (
    GLOSS_ALPHA,
    GLOSS_GREY,
    GLOSS_IOR,
    SHEEN_IOR,
    SHEEN_WIDTH,
)
from identica.datasets.threedident.scene import SCENE, Frames, Scene, check_size, place
from identica.datasets.threedident.teapot import teapot
from identica.datasets.threedident.view import HORIZON
from identica.errors import InputError

SAMPLES = 2**24  # paths for a pixel at most, as in Blender


def require() -> Any:
    """Blender as a Python module, or an error that says how to get it, or why it does not load."""
    try:
        return import_module("bpy")
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "bpy":
            how = ": pip install identica[blender] (on a Python that bpy is made for, such as 3.11)"
        else:
            how = f", which does not load: {' '.join(str(error).split())}"
        raise InputError(f"engine blender needs Blender's Python module{how}") from None


def render(raw_latents: Any, size: int = 64, samples: int = 128) -> NDArray[np.uint8]:
    """Images of the 3DIdent scene by Cycles, with direct light only. Needs `identica[blender]`.

    The same latents always give the same image. The scene that is open in Blender is closed.

    Args:
        raw_latents: N×10 numbers in [−1, 1], in the order of `FACTORS`.
        size: side of the images in pixels.
        samples: paths for a pixel.

    Returns:
        N×size×size×3 bytes, sRGB.
    """
    frames = place(raw_latents)
    size, samples = check_size(size), count("samples", samples, at_most=SAMPLES)
    bpy = require()
    from PIL import Image

    images = np.empty((len(frames.position), size, size, 3), np.uint8)
    with TemporaryDirectory() as folder, _silence():
        path = Path(folder) / "image.png"
        props = _build(bpy, SCENE)
        _set_up_cycles(bpy.context.scene, size, samples, path)
        for i in range(len(images)):
            _pose(props, frames, i)
            bpy.ops.render.render(write_still=True)
            with Image.open(path) as image:
                images[i] = np.asarray(image.convert("RGB"))
    return images


def _build(bpy: Any, scene: Scene) -> dict[str, Any]:
    """Build the scene, and return what the latents change: objects, lights and colours."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    world = bpy.data.worlds.new("World")
    world.color = (0, 0, 0)
    bpy.context.scene.world = world

    def add(name: str, data: Any) -> Any:
        thing = bpy.data.objects.new(name, data)
        bpy.context.collection.objects.link(thing)
        return thing

    def light(kind: str, energy: float) -> Any:
        data = bpy.data.lights.new(kind, kind)
        data.energy = energy
        return data

    camera = bpy.data.cameras.new("Camera")
    camera.angle = scene.camera.field_of_view
    camera.clip_start, camera.clip_end = 0.1, 100.0
    eye = add("Camera", camera)
    eye.location = scene.camera[:3]
    eye.rotation_euler = (-eye.location).to_track_quat("-Z", "Y").to_euler()
    bpy.context.scene.camera = eye

    sun = light("SUN", scene.sun.strength)
    sun.angle = 2 * math.asin(scene.sun.sine)
    add("Sun", sun)  # lights face down unless they are turned

    side = scene.area.side
    area = light("AREA", math.pi * scene.area.radiance * side**2)
    area.size = side
    add("Area", area).location = (0, 0, scene.area.height)

    spot = light("SPOT", 4 * math.pi * scene.spot.intensity)
    spot.spot_size, spot.spot_blend = 2 * math.acos(scene.spot.cosine), scene.spot.blend
    spot.shadow_soft_size = scene.spot.radius

    mesh = teapot()
    pot = bpy.data.meshes.new("Teapot")
    pot.from_pydata(mesh.points.tolist(), [], mesh.triangles.tolist())
    pot.polygons.foreach_set("use_smooth", [True] * len(pot.polygons))
    ground = bpy.data.meshes.new("Ground")
    corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    reach = [(HORIZON * x, HORIZON * y, scene.ground) for x, y in corners]
    ground.from_pydata(reach, [], [(0, 1, 2, 3)])
    add("Ground", ground)
    return {
        "teapot": add("Teapot", pot),
        "spot": add("Spot", spot),
        "light": spot,
        "object_rgb": _material(bpy, pot),
        "ground_rgb": _material(bpy, ground),
    }


def _material(bpy: Any, mesh: Any) -> list[Any]:
    """Give a mesh its material; the sockets that take its colour."""
    material = bpy.data.materials.new(mesh.name)
    mesh.materials.append(material)
    material.use_nodes = True
    tree = material.node_tree
    tree.nodes.clear()

    def node(kind: str, **inputs: Any) -> Any:
        made = tree.nodes.new(f"ShaderNode{kind}")
        for name, value in inputs.items():
            made.inputs[name].default_value = value
        return made

    def mix(ior: float, first: Any, second: Any) -> Any:
        made = node("MixShader")
        for socket, source in enumerate((node("Fresnel", IOR=ior), first, second)):
            tree.links.new(source.outputs[0], made.inputs[socket])
        return made

    diffuse, velvet = node("BsdfDiffuse"), node("BsdfSheen", Roughness=SHEEN_WIDTH)
    velvet.distribution = "ASHIKHMIN"
    grey = (GLOSS_GREY, GLOSS_GREY, GLOSS_GREY, 1)
    gloss = node("BsdfAnisotropic", Color=grey, Roughness=math.sqrt(GLOSS_ALPHA))
    gloss.distribution = "BECKMANN"
    surface = mix(GLOSS_IOR, mix(SHEEN_IOR, diffuse, velvet), gloss)
    tree.links.new(surface.outputs[0], node("OutputMaterial").inputs["Surface"])
    return [diffuse.inputs["Color"], velvet.inputs["Color"]]


def _set_up_cycles(settings: Any, size: int, samples: int, path: Path) -> None:
    settings.render.engine = "CYCLES"
    cycles = settings.cycles
    cycles.samples, cycles.max_bounces, cycles.seed = samples, 0, 0
    cycles.use_adaptive_sampling = False
    cycles.use_denoising = True
    cycles.pixel_filter_type, cycles.filter_width = "BLACKMAN_HARRIS", 1.5  # to each side
    render = settings.render
    render.resolution_x = render.resolution_y = size
    render.resolution_percentage = 100
    render.filepath, render.use_file_extension = str(path), False
    render.image_settings.file_format = "PNG"
    render.image_settings.color_mode = "RGB"
    render.dither_intensity = 0
    render.use_persistent_data = True
    settings.view_settings.view_transform = "Standard"


def _pose(props: dict[str, Any], frames: Frames, i: int) -> None:
    """Place everything according to the latents of image i."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = frames.rotation[i], frames.position[i]
    props["teapot"].matrix_world = pose.T.tolist()  # given by columns
    spot = props["spot"]
    spot.location = frames.spot[i]
    aim = spot.location.copy()
    aim[:] = frames.aim[i]
    spot.rotation_euler = aim.to_track_quat("-Z", "Y").to_euler()
    props["light"].color = frames.spot_rgb[i]
    for name in ("object_rgb", "ground_rgb"):
        for socket in props[name]:
            socket.default_value = (*getattr(frames, name)[i], 1)


@contextmanager
def _silence() -> Iterator[None]:
    """Blender reports every file on standard output, below Python: send it nowhere."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)

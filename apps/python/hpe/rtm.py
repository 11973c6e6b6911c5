"""Seismic images by reverse time migration, by the command `hpe rtm`."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

import numpy
from numpy.typing import ArrayLike

from . import library
from .arrays import Array, array

Progress = Union[bool, Callable[[float], Any]]
_STATE = re.compile(r"\d+ of \d+ shots.*?(\d+) %")


def _command():
    own = library.TREE / "bin" / "hpe"
    found = str(own) if own.exists() else shutil.which("hpe")
    if found is None:
        raise FileNotFoundError("hpe.rtm needs the command hpe: install hpe's wheel, or name the command's folder in PATH")
    return found


def _shown(progress):
    """Returns functions that show the fraction of the work that is done, and that end the display."""
    if progress is not True:
        return (progress or (lambda fraction: None)), lambda: None
    from tqdm.auto import tqdm  # an optional package

    bar = tqdm(total=100, unit="%", desc="migrating")
    return (lambda fraction: bar.update(round(100 * fraction) - bar.n)), bar.close


def migrate(velocities: ArrayLike, spacing: float, *, shots: int = 16, progress: Progress = False, **options: Any) -> Array:
    """Returns the seismic image of a model: simulates records for the velocities, and migrates them with smoothed velocities.

    velocities: metres per second, of shape (x, depth) or (x, y, depth). spacing: the side of a cell in metres. shots: the number of
    shots. options: further options of `hpe rtm --help`, with underscores for hyphens and True for options without a value, for
    example smooth=50, frequency=15.0, keep="checkpoints", free_surface=True.
    progress: True shows a bar (needs the package tqdm); or a function that gets the fraction of the work that is done.
    Returns float32 of the shape of the velocities, in hpe memory. Runs on all devices, in a process of its own, which gets the
    environment variables of this one, such as HPE_DEVICES. Raises RuntimeError with the command's message if it fails."""
    model = numpy.ascontiguousarray(velocities, "float32")
    if model.ndim not in (2, 3):
        raise ValueError(f"velocities must have the shape (x, depth) or (x, y, depth), not {model.shape}")
    cells = model.shape if model.ndim == 3 else (model.shape[0], 1, model.shape[1])
    options = {"model": "raw", "size": "x".join(map(str, cells)), "spacing": spacing, "shots": shots, **options}
    words = [word for name, value in options.items() if value is not False and value is not None
             for word in (f"--{name.replace('_', '-')}", value) if word is not True]
    show, end = _shown(progress)
    with tempfile.TemporaryDirectory(prefix="hpe-rtm.") as folder:
        source, image = Path(folder, "velocities.f32"), Path(folder, "image.npy")
        source.write_bytes(model.tobytes())
        command = [_command(), "rtm", *map(str, words), "--output", str(image), str(source)]
        told = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            for line in process.stdout:  # type: ignore[union-attr]
                told.append(line)
                if state := _STATE.search(line):
                    show(int(state[1]) / 100)
        if process.returncode != 0:
            end()
            raise RuntimeError(f"hpe rtm ended with status {process.returncode}: {''.join(told).strip()}")
        show(1.0)
        end()
        return array(numpy.load(image).reshape(model.shape))

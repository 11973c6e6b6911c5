"""Computes a shot of reverse time migration in Devito: both passes, of order 8 in space and 2 in time. Stores every k-th field.

Runs in the Python environment of scripts/compare-devito. Prints the seconds of both passes together, a line for each repeat.
There are no absorbing layers, so that a step accesses as little memory as possible: it reads two fields and the velocities,
and writes one field.
"""

import argparse
import sys
import time

import numpy as np
from devito import (ConditionalDimension, Eq, Function, Grid, Inc, Operator, SparseTimeFunction, TimeFunction, configuration,
                    solve)

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--size", type=int, required=True)
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--every", type=int, required=True)
parser.add_argument("--repeats", type=int, required=True)
request = parser.parse_args()

configuration["log-level"] = "WARNING"
configuration["language"] = "openmp"
n, spacing, velocity = request.size, 10.0, 2000.0
step = np.float32(0.9 * 2 * spacing / (velocity * np.sqrt(3 * 2048 / 315)))
grid = Grid(shape=(n, n, n), extent=((n - 1) * spacing,) * 3, dtype=np.float32)
slowness = Function(name="m", grid=grid)
slowness.data[:] = 1 / velocity**2
fields = (request.steps + request.every - 1) // request.every
sometimes = ConditionalDimension("sometimes", parent=grid.time_dim, factor=request.every)

forward = TimeFunction(name="u", grid=grid, time_order=2, space_order=8)
kept = TimeFunction(name="kept", grid=grid, time_order=0, space_order=0, save=fields + 1, time_dim=sometimes)
image, illumination = Function(name="image", grid=grid), Function(name="illumination", grid=grid)
points = -(-n // 8)
source = SparseTimeFunction(name="src", grid=grid, npoint=1, nt=request.steps + 2)
receivers = SparseTimeFunction(name="rec", grid=grid, npoint=points, nt=request.steps + 2)
middle = (n // 2) * spacing
source.coordinates.data[:] = (middle, middle, 2 * spacing)
receivers.coordinates.data[:] = [(8 * i * spacing, middle, 2 * spacing) for i in range(points)]
time_axis = np.arange(request.steps + 2) * step - 1.4 / 20
source.data[:, 0] = (1 - 2 * (np.pi * 20 * time_axis) ** 2) * np.exp(-((np.pi * 20 * time_axis) ** 2))

first = Operator([Eq(forward.forward, solve(slowness * forward.dt2 - forward.laplace, forward.forward)), Eq(kept, forward),
                  source.inject(field=forward.forward, expr=source * step**2 / slowness),
                  receivers.interpolate(expr=forward)], name="First")
back = TimeFunction(name="v", grid=grid, time_order=2, space_order=8)
second = Operator([Eq(back.backward, solve(slowness * back.dt2 - back.laplace, back.backward)),
                   Inc(image, kept * back, implicit_dims=[sometimes]), Inc(illumination, kept * kept, implicit_dims=[sometimes]),
                   receivers.inject(field=back.backward, expr=receivers * step**2 / slowness)], name="Second")


def shot():
    forward.data[:] = 0
    back.data[:] = 0
    begin = time.perf_counter()
    first.apply(time_m=1, time_M=request.steps, dt=step)
    second.apply(time_m=1, time_M=request.steps, dt=step)
    return time.perf_counter() - begin


# Devito measures and selects the block sizes of its loops.
forward.data[:] = 0
first.apply(time_m=1, time_M=request.steps, dt=step, autotune=("aggressive", "runtime"))
second.apply(time_m=1, time_M=request.steps, dt=step, autotune=("aggressive", "runtime"))
shot()
for _ in range(request.repeats):
    print(shot())
    sys.stdout.flush()
if not np.isfinite(image.data).all() or not np.abs(image.data).max() > 0:
    sys.exit("devito_shot: the image is empty or not finite")

"""The list of parts. A part is a function that runs its steps, and records its figures, through a Check."""

from collections.abc import Callable
from typing import NamedTuple

from . import benches, interpose, larger, messages, spread, tests

# Without hpe's libcuda.so, a step would compare a program with itself.
UNDER_HPE = ("bin/hpe", "lib/hpe/cuda/libcuda.so.1")


class Part(NamedTuple):
    group: str
    name: str
    about: str
    run: Callable
    needs: tuple = ("bin/hpe",)  # files without which the part cannot run


PARTS = [
    Part("tests", "contract", "tests of devices, memory and launches on 1, 2 and 4 GPUs, with and without peer access", tests.contract),
    Part("tests", "stress", "random programs compared with an oracle, also with little pinned memory and with small blocks", tests.stress),
    Part("tests", "memcheck", "compute-sanitizer on kernels; needs the CUDA toolkit's compute-sanitizer", tests.memcheck),
    Part("tests", "mpi", "tests of MPI, and messages between MPI ranks", tests.mpi),
    Part("bench", "bench-transfers", "transfers: links, page faults, peer copies, and throughput by size", benches.transfers),
    Part("bench", "rtm", "wave steps and migration: the same bits on all GPUs, and speed", benches.rtm),
    Part("bench", "workloads", "scan, sort, Fourier transforms, and all of them on 1, 2 and 4 GPUs", benches.workloads),
    Part("bench", "remote", "kernels that access the memory of another GPU or of the host", benches.remote),
    Part("interpose", "interpose-cost", "the time that hpe adds to a CUDA program that it cannot speed up: 30 pairs of runs", interpose.cost,
         UNDER_HPE),
    Part("interpose", "interpose-copies", "copies of pageable memory, CPU code on device memory, copies without peer access",
         interpose.copies, UNDER_HPE),
    Part("interpose", "interpose-output", "13 CUDA programs, PyTorch and CuPy: the same output under hpe", interpose.output, UNDER_HPE),
    Part("interpose", "interpose-random", "random CUDA calls: the same output under hpe", interpose.random_calls, UNDER_HPE),
    Part("larger", "larger-arrays", "CUDA programs that allocate more memory than hpe may use on a GPU", larger.arrays, UNDER_HPE),
    Part("larger", "larger-kernels", "launches over four times the memory, and a graph whose weights are one buffer", larger.kernels,
         UNDER_HPE),
    Part("spread", "spread-samples", "programs of CUDA courses with small grids, on all GPUs", spread.samples, UNDER_HPE),
    Part("spread", "spread-large", "programs of CUDA courses with large grids, on all GPUs", spread.large, UNDER_HPE),
    Part("spread", "spread-one-gpu", "the thesis's programs for one GPU, on all GPUs", spread.one_gpu, UNDER_HPE),
    Part("messages", "messages-conformance", "tests of MPI on memory of the CUDA driver", messages.conformance, UNDER_HPE),
    Part("messages", "messages-sizes", "times, rates and parts of messages, compared with UCX", messages.sizes, UNDER_HPE),
    Part("messages", "messages-jacobi", "a stencil over ranks, with overlap, and with two ranks on each GPU", messages.jacobi, UNDER_HPE),
    Part("messages", "messages-collectives", "collective operations of 2 and 4 ranks", messages.collectives, UNDER_HPE),
]

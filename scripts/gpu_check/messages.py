"""Tests and measures messages of MPI ranks on memory of the CUDA driver, under `hpe run`. Needs mpirun of Open MPI 4. The targets are
for two GPUs."""

import re
import sys
from pathlib import Path

from .check import SCRIPTS
from .numbers import at_least, at_most, first, number, ratio

COLLECTIVES = ("alltoall", "allgather", "bcast", "gather", "scatter", "allreduce", "reduce")
JACOBI = "Jacobi of 8192 x 8192"


def ranks(check, name, count, *command, environment=None, needs_gpu=False):
    """Runs ranks under hpe, and records the outcome."""
    ran = check.run(name, 60, environment or {}, *check.mpirun(count, "--bind-to", "none"), *check.hpe_run(), *command, needs_gpu=needs_gpu)
    check.record(name, ran)
    return ran


def figure(check, what, seen, bar="", reached=None):
    """Records a figure. If ranks share a GPU, there is no target."""
    check.figure(what, seen, bar if check.gpus > 1 else "", reached)


def column(text, kind, where, length, index):
    """Returns a column, counted from 1, of the line that begins with `kind` and `where` and whose third or fourth word is the length."""
    for words in map(str.split, text.splitlines()):
        if words[:2] == [kind, where] and str(length) in words[2:4] and len(words) >= index:
            return words[index - 1]
    return ""


def conformance(check):
    one = check.choose("cuda:1", "soft:1")
    for memory, count in (("driver", 2), ("driver", 3), ("driver", 4), ("pool", 2)):
        name = f"{count} ranks on {memory} memory"
        ran = ranks(check, name, count, check.bin("test-mpi"), "--gtest_filter=-one_sided*",
                    environment={"HPE_DEVICES": one, "HPE_TEST_MPI_MEMORY": memory}, needs_gpu=True)
        told = re.findall(r"(?:PASSED|FAILED) *\] *[0-9]+ test", re.sub(r"\x1b\[[0-9;]*m", "", ran.output))
        check.figure(f"conformance, {memory} memory, {count} ranks", " ".join(told), "all", ran.status == 0)


def sizes(check):
    bench = check.cuda_program("mpi_bench")
    copies, without_hpe = driver_copies(check)
    measured = check.choose(["host", "latency", "exchange", "pool", "managed", "strided", "bandwidth"], ["host"])
    messages = ranks(check, "messages", 2, bench, *measured).output
    for length, bar in ((8, 9), (65536, 9), (1048576, 12), (16777216, 55)):
        seen = column(messages, "latency", "device", length, 5)
        figure(check, f"message of {length} bytes, us",
               f"{seen}, peer copy {column(copies, 'peer', 'copy', length, 5)}, by hand {column(copies, 'by', 'hand', length, 5)}",
               f"<= {bar}", at_most(number(seen), bar))
    for length in (8, 32768, 1048576):
        words = next((words for words in map(str.split, messages.splitlines()) if words[:2] == ["exchange", str(length)]), [""] * 10)
        figure(check, f"MPI_Sendrecv of {length} bytes, us", f"{words[3]} both ways at once, {words[9]} in a chain of two")
    parts(check, bench)
    figure(check, "message of 2032 bytes of ordinary memory, as long as an envelope, us", column(messages, "latency", "host", 2032, 5))
    for memory, function, lengths in (("managed", "cudaMallocManaged", (8, 65536, 1048576)),
                                      ("pool", "cudaMallocAsync", (8, 1048576, 16777216))):
        for length in lengths:
            figure(check, f"message of {length} bytes from {function}, us", column(messages, "latency", memory, length, 5))
    for length in (65536, 1048576, 4194304, 16777216):
        rate, peer = column(messages, "bandwidth", "one", length, 6), column(copies, "peer", "copy", length, 7)
        figure(check, f"64 messages of {length} bytes, GB/s",
               f"{rate}, peer copies {peer}; both ways {column(messages, 'bandwidth', 'two', length, 6)}",
               ">= 0.9 x" if length >= 1048576 else "", at_least(ratio(number(rate), number(peer)), 0.9))
        if length in (1048576, 16777216):
            peer = column(without_hpe, "peer", "copy", length, 7)
            figure(check, f"64 messages of {length} bytes, GB/s, beside peer copies without hpe", f"{rate}, peer copies {peer}", ">= 0.9 x",
                   at_least(ratio(number(rate), number(peer)), 0.9))
    for width in (1, 16, 256):
        for kind in ("strided", "scattered"):
            words = next((words for words in map(str.split, messages.splitlines()) if words[:2] == [kind, str(width)]), [""] * 12)
            figure(check, f"{kind} column of 8192 rows of {width} floats, us", f"{words[6]}, contiguous {words[11]}", ">= 0.5 x",
                   at_least(ratio(number(words[11]), number(words[6])), 0.5))
    text = ranks(check, "both ranks on one GPU", 2, bench, "latency", environment={"CUDA_VISIBLE_DEVICES": "0"},
                 needs_gpu=True).output
    figure(check, "message of 8 bytes, both ranks on one GPU, us", column(text, "latency", "device", 8, 5))
    if check.options.ucx or check.packing:
        ucx(check, messages)


def driver_copies(check):
    """Returns the outputs, under hpe and without hpe, of a program that copies from GPU to GPU by the driver."""
    program = check.cuda_program("mpi_copies")
    under_hpe = ranks(check, "the driver's copies", 2, program, needs_gpu=True)
    alone = check.run("the driver's copies without hpe", 60, {}, *check.mpirun(2, "--bind-to", "none"), program, needs_gpu=True)
    check.record("the driver's copies without hpe", alone)
    return under_hpe.output, alone.output


def parts(check, bench):
    """Measures the parts of a message by traces, which go to a separate folder, because the folder of --out contains JSON tables."""
    folder = check.out / "traces"
    folder.mkdir(exist_ok=True)
    ranks(check, "messages with a trace", 2, bench, "latency", environment={"HPE_TRACE": str(folder / "trace.json")}, needs_gpu=True)
    traces = sorted(folder.glob("trace.?.json"))
    ran = check.run("parts of messages", 60, {}, sys.executable, SCRIPTS / "message-parts", *map(str, traces), needs_gpu=True)
    check.record("parts of messages", ran)
    for line in ran.output.splitlines():
        words = line.split()
        if len(words) > 8 and words[4] in ("8", "65536", "1048576"):
            figure(check, f"part of a message of {words[4]} bytes, us", " ".join([words[6], *words[8:]]))


def ucx(check, messages):
    ran = check.run("UCX", max(check.seconds_left(), 5), {}, SCRIPTS / "bench-ucx", check.options.ucx, needs_gpu=True)
    check.record("UCX", ran)
    for line in ran.output.splitlines():
        if line.startswith("ucx ") and " us " in line:
            _, length, _, us, _, rate, *_ = line.split()
            mine = column(messages, "latency", "device", length, 5)
            figure(check, f"UCX, message of {length} bytes, us", f"{us}, hpe {mine}; {rate} GB/s", "hpe ahead",
                   number(mine) is not None and number(mine) < number(us))


def jacobi(check):
    bench = check.cuda_program("mpi_bench")
    texts = {}
    for waits in ("on", "off"):
        text = texts[waits] = ranks(check, f"Jacobi, HPE_MPI_WAITS={waits}", 2, bench, "jacobi", environment={"HPE_MPI_WAITS": waits},
                                    needs_gpu=True).output
        mine = first("^jacobi 2 ranks  .* ([0-9.]*) x.*", text)
        threads = first("^jacobi threads, 2 GPUs  *[0-9.]* s, ([0-9.]*) x.*", text)
        figure(check, f"{JACOBI}, two GPUs, of one, HPE_MPI_WAITS={waits}", f"{mine} x, threads {threads} x")
        mine = first("^jacobi 2 ranks, overlap.* ([0-9.]*) x.*", text)
        threads = first("^jacobi threads, 2 GPUs, overlap.* ([0-9.]*) x.*", text)
        figure(check, f"{JACOBI} with overlap, two GPUs, of one, HPE_MPI_WAITS={waits}", f"{mine} x, threads {threads} x", ">= 1.8 x",
               at_least(number(mine), 1.8))
    # Messages from separate memory, while kernels run that access other memory.
    text = ranks(check, "Jacobi, --scope args", 2, bench, "jacobi", environment={"HPE_SCOPE": "args"}, needs_gpu=True).output
    mine, all_memory = (first("^jacobi 2 ranks, halos.* ([0-9.]*) x.*", each) for each in (text, texts["on"]))
    figure(check, "Jacobi, halos in memory of their own, --scope args", f"{mine} x, scope all {all_memory} x", ">= 1.8 x",
           at_least(number(mine), 1.8))
    two_on_each_gpu(check, bench)


def two_on_each_gpu(check, bench):
    """Runs two ranks on each GPU. Without MPS, the ranks of a GPU take turns."""
    def four_ranks(what, environment):
        text = ranks(check, f"Jacobi of four ranks, {what}", 4, bench, "jacobi", environment={"HPE_MPI_WAITS": "off", **environment},
                     needs_gpu=True).output
        seen = "; ".join(" ".join(each.split()) for each in re.findall("^jacobi 4 ranks(.*)", text, re.MULTILINE))
        figure(check, f"Jacobi, four ranks on two GPUs, {what}", seen)
        return sum("use one GPU" in line for line in text.splitlines())

    alone = four_ranks("no MPS", {})
    if check.mode != "gpus" or not check.tool("nvidia-cuda-mps-control") or check.seconds_left() <= 30:
        return
    mps = {"CUDA_MPS_PIPE_DIRECTORY": str(check.out / "mps"), "CUDA_MPS_LOG_DIRECTORY": str(check.out / "mps-log")}
    for folder in mps.values():
        Path(folder).mkdir(exist_ok=True)
    if check.run("start of MPS", 20, mps, "nvidia-cuda-mps-control", "-d").status:
        return
    try:
        shared = four_ranks("MPS", mps)
        figure(check, "told of MPS", f"without it {alone} times, with it {shared}", "with it never", shared == 0)
    finally:
        check.run("end of MPS", 20, mps, "sh", "-c", "echo quit | nvidia-cuda-mps-control")


def collectives(check):
    for count in (2, 4):
        text = ranks(check, f"collectives of {count} ranks", count, check.cuda_program("mpi_collectives"), needs_gpu=True).output
        rows = [words for words in map(str.split, text.splitlines()) if len(words) >= 4 and words[1].isdigit() and int(words[1]) >= 65536]
        for what in COLLECTIVES:
            figure(check, f"{what} of 64 KiB, 1 MiB, 16 MiB, {count} ranks, us", ", ".join(words[3] for words in rows if words[0] == what))

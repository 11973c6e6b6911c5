"""CUDA programs whose data is larger than the memory that hpe may use on a GPU.

For each kernel of larger_kernels, the least time of a launch is the time of copies of its bytes, at the rate of pinned copies without
hpe, or the time of the launch with enough memory, whichever is longer.
"""

from .numbers import after, at_least, first, number, ratio, shown

KERNELS = ("triad", "stencil", "product", "reduction", "transpose")


def arrays(check):
    program, size = check.cuda_program("larger_bench"), check.choose("8192", "256")  # MiB of all arrays
    limits = {"HPE_DEVICE_MEMORY": check.choose("4G", "128M"), "HPE_PINNED_MEMORY": "24G"}
    check.step("one array of twice the memory", 60, limits, *check.hpe_run("--oversubscribe"), program, size, "one-array")
    check.step("double buffering by hand, without hpe", 40, {}, program, size, "by-hand", needs_gpu=True)
    check.step("arrays that fit, without hpe", 40, {}, program, size, needs_gpu=True)
    check.step("arrays of twice the memory", 60, limits, *check.hpe_run("--oversubscribe", "--scope", "args"), program, size,
               needs_gpu=True)
    for name in ("vector_add", "streams", "textures", "graphs", "threads", "transpose", "driver_calls", "cooperative",
                 "mappings", "loading"):
        check.same(f"the same output: {name}", 40, check.cuda_program(name), options=["--oversubscribe"],
                   needs_gpu=name != "vector_add")


def times(check, name, *words, limit=None, options=()):
    """Runs larger_kernels, alone or with a limit of memory; returns its milliseconds for a launch, the MiB read and written, the digest."""
    environment = {"HPE_DEVICE_MEMORY": limit, "HPE_PINNED_MEMORY": "64G"} if limit else {}
    run = check.hpe_run("--oversubscribe", *options) if limit else check.alone()
    ran = check.run(name, 60, environment, *run, check.cuda_program("larger_kernels"), *words, needs_gpu=True)
    return ran, [number(first(pattern, ran.output)) for pattern in (r" ([0-9.]+) ms", "reads ([0-9]+) MiB", "writes ([0-9]+) MiB")], \
        first("digest ([0-9a-f]+)", ran.output)


def least(rates, launch, read, written):
    """Returns the least time in ms of a launch that reads and writes these MiB over the link, and takes `launch` ms with enough memory."""
    if len(rates) < 2 or None in (launch, read, written):
        return None
    one, both = rates
    together = min(read, written)
    return max(launch, 1.048576 * (together / both + (read - together) / one + (written - together) / one))


def compared(check, rates, name, words, limit, bar, excess=None):
    """excess: the MiB that exceed the limit, if a launch need only read these over the link; otherwise it moves all its data."""
    alone, (launch, read, written), expected = times(check, f"{name} alone", *words)
    inside, (ms, _, _), seen = times(check, f"{name} under hpe", *words, limit=limit)
    good = check.record(name, alone, inside)
    if good and expected != seen:
        check.note(f"{name}, result", "FAILED: the digests differ", 0, 1)
    floor = least(rates, launch, read if excess is None else excess, written)
    rate = ratio(floor, ms)
    check.figure(name, f"{shown(ms)} ms, least {shown(floor, '.1f')}, enough memory {shown(launch)}: {shown(rate, '.2f')}", f">= {bar}",
                 at_least(rate, bar))
    return ms


def kernels(check):
    link = check.step("the link, without hpe", 30, {}, *check.alone(), check.cuda_program("larger_kernels"), "link", needs_gpu=True)
    rates = after("link [a-z ]+:", link.output)
    for kernel in KERNELS:
        one = compared(check, rates, f"{kernel} over 8 GiB in 2", (kernel, "8192"), "2G", 0.9)
        if check.gpus > 1:
            ran, (two, _, _), _ = times(check, f"{kernel}, all GPUs", kernel, "8192", limit="2G", options=["--spread"])
            check.record(f"{kernel}, all GPUs", ran)
            check.figure(f"{kernel}, all GPUs, of one", f"{shown(ratio(one, two), '.2f')} x", ">= 1.8 x", at_least(ratio(one, two), 1.8))
    compared(check, rates, "triad over 96 MiB in 57", ("triad", "96"), "57M", 0.83)
    compared(check, rates, "a graph with 12 GiB of weights in one buffer, in 8", ("tokens", "12288"), "8G", 0.8, excess=4096)

"""Runs unchanged CUDA programs for one GPU on one GPU, and on all GPUs by `hpe run --spread`.

The programs use device 0. A program passes if both runs print the same output. Its figure is its speed on all GPUs relative to one
GPU; the targets are for two GPUs.
"""

from .numbers import at_least, ratio, shown

# Targets: the speed on two GPUs relative to one, by the first word of a program's name.
BARS = {"vecadd": 1.9, "saxpy": 1.9, "reduction": 1.8, "convolution2D": 1.9, "stencil2D": 1.9, "stencil3D": 1.9, "sgemv": 1.9,
        "sgemm": 1.9, "SpMV": 1.9, "transpose": 0.95, "BFS": 0.95}
SECONDS = 120  # time limit of one run


def samples(check):
    """Runs programs with small grids, first divided by predicted times, then divided into equal parts wherever this is possible."""
    for name in ("samples", "samples-shared", "course"):
        compare(check, name, name, needs_gpu=name != "samples-shared")
        compare(check, f"{name} in equal parts", name, environment={"HPE_SPREAD_CUT": "even"}, needs_gpu=name != "samples-shared")


def large(check):
    for name, scale in {"vector": 16, "matrix": 16, "bodies": 64, "darts": 16, "heat": 8}.items():
        compare(check, f"samples {name} {scale}", "samples", name, scale, needs_gpu=True)


def one_gpu(check):
    for factor in check.options.factor:
        compare(check, f"one-gpu {factor}", "one-gpu", factor, *check.options.only, times=True,
                explained=factor == check.options.factor[0], needs_gpu=True)


def lines(text):
    """Returns times by name, from lines such as `1.234 saxpy, scale 16`."""
    return {words[1]: float(words[0]) for line in text.splitlines() if len(words := line.split(maxsplit=1)) == 2}


def compare(check, name, program, *words, environment=None, times=False, explained=True, needs_gpu=False):
    """Runs a program alone, spread, and spread with --explain, which takes a little longer. The program writes its times to a file
    or, if it has a scale, to standard error."""
    ways = {"alone": check.alone(), "spread": check.hpe_run("--spread", devices=2),
            "explained": check.hpe_run("--spread", "--explain", devices=2)}
    if not explained:
        ways.pop("explained")
    ran, measured = {}, {}
    for way, before in ways.items():
        file = check.log(f"{name} {way}", "times")
        file.unlink(missing_ok=True)
        ran[way] = check.run(f"{name} {way}", SECONDS, {} if way == "alone" else environment or {}, *before, check.bin(f"spread/{program}"),
                             *(["--times", file] if times else []), *words, apart=True, needs_gpu=needs_gpu)
        if times:
            measured[way] = lines(file.read_text()) if file.exists() else {}
        else:
            measured[way] = lines("\n".join(line for line in ran[way].errors.splitlines() if ", scale " in line))
        if way != "alone":
            check.compare(f"{name}, {way}", ran["alone"], ran[way])
    if "explained" in ran and ran["explained"].errors:
        print(f"-- {name}\n{ran['explained'].errors}", flush=True)
    for each, ms in measured["alone"].items():
        if each in measured["spread"] and not environment:
            spread, bar = measured["spread"][each], BARS.get(each.split()[0])
            factor = ratio(ms, spread)
            check.figure(each, f"{ms:.3f} ms, on all GPUs {spread:.3f} ms: {shown(factor, '.3f')} x", f">= {bar} x" if bar else "",
                         bar is not None and at_least(factor, bar))

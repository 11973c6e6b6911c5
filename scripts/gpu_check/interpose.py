"""Runs unmodified CUDA programs with and without `hpe run`: compares outputs, and measures by how much hpe slows down or speeds up."""

import sys
import time

from .check import SCRIPTS
from .numbers import after, at_least, at_most, median, median_after, quarters, ratio, shown

SOURCES = SCRIPTS.parent / "tests/interpose/programs"
PROGRAMS = ("vector_add", "transpose", "streams", "graphs", "cooperative", "managed", "textures", "threads", "peers", "loading", "touch",
            "mappings", "driver_calls")


def in_turn(check, name, times, program):
    """Runs a program alone and under hpe in turn. Returns the outputs of the runs "alone" and of the runs "hpe". Needs GPUs, because
    copies of 256 MiB take too long in a rehearsal."""
    runs = {"alone": [], "hpe": []}
    for _ in range(times):
        for way, before in (("alone", check.alone()), ("hpe", check.hpe_run())):
            runs[way].append(check.run(f"{name} {way}", 40, {}, *before, program, needs_gpu=True))
    check.record(name, *runs["alone"], *runs["hpe"])
    return {way: "".join(ran.output for ran in each) for way, each in runs.items()}


def cost(check):
    """Measures the time that hpe adds to a program that hpe cannot speed up. The speed of runs drifts slowly, by more than the difference
    to measure. Therefore, consecutive runs are compared, and runs with and without hpe are first equally often."""
    program = check.cuda_program("gains_nothing")
    check.record("first start of the driver", check.run("first start", 60, {}, *check.alone(), program))
    began, pairs = time.monotonic(), []
    ways = {"alone": check.alone(), "hpe": check.hpe_run()}
    while len(pairs) < check.choose(30, 1) and time.monotonic() - began < 120 and check.seconds_left() > 5:
        order = list(ways) if len(pairs) % 2 else list(ways)[::-1]
        ran = {way: check.run(f"gains nothing {way}", 60, {}, *ways[way], program) for way in order}
        pairs.append((ran["alone"], ran["hpe"]))
        if check.packing or any(r.status for r in ran.values()):
            break
    if not pairs:
        return check.note("gains nothing", "not run: the time is over", 0, 1)
    check.record("gains nothing", *(ran for pair in pairs for ran in pair))

    def differences(words, of):
        """Returns of(number alone, number under hpe) for each pair, and the median of the numbers alone."""
        found = [(after(words, alone.output), after(words, hpe.output)) for alone, hpe in pairs]
        found = [(p, h) for each in found for p, h in zip(*each)]
        return [of(p, h) for p, h in found], median([p for p, _ in found])

    more = [(hpe.seconds / alone.seconds - 1) * 100 for alone, hpe in pairs if alone.seconds]
    loops, alone_loops = differences("loops", lambda p, h: (h / p - 1) * 100)
    for what, seconds, percents, bar in (("whole program", median([alone.seconds for alone, _ in pairs]), more, "<= 1 %"),
                                         ("its loops", alone_loops, loops, "")):
        spread = " ".join(f"{quarter:.1f}" for quarter in quarters(percents))
        check.figure(f"gains nothing, {what}, {len(pairs)} pairs",
                     f"{shown(seconds)} s, {shown(median(percents), '+.2f')} % (quarters {spread})", bar, at_most(median(percents), 1))
    launches, launch = differences("launch", lambda p, h: h - p)
    return check.figure(f"a launch, {len(pairs)} pairs", f"{shown(launch)} ns, {shown(median(launches), '+.1f')} ns", "<= + 100 ns",
                        at_most(median(launches), 100))


def copies(check):
    program = check.cuda_program("pageable_bench")
    turns = 3
    texts = in_turn(check, "pageable copies", turns, program)
    for way, bar in (("up", 4), ("down", 2.3)):
        alone, inside = (median_after(f"pageable {way}", texts[each]) for each in ("alone", "hpe"))
        faster = ratio(inside, alone)
        check.figure(f"pageable 256 MiB {way}, GB/s", f"{shown(alone)}, {shown(inside)}: {shown(faster, '.3f')} x", f">= {bar} x",
                     at_least(faster, bar))
    right = sum(line.startswith("identical") and "yes" in line for text in texts.values() for line in text.splitlines())
    if check.mode == "gpus":
        good = right == 2 * turns
        verdict = f"{'passed' if good else 'FAILED'}: {right} of {2 * turns} runs"
        check.note("the same bytes after pageable copies", verdict, 0, int(not good))
    ran = check.run("CPU code streams device memory", 60, {}, *check.hpe_run(), program, "touch", needs_gpu=True)
    check.record("CPU code streams device memory", ran)
    check.figure("CPU code streams device memory, GB/s", " ".join(shown(each) for each in after("host reads", ran.output)))
    texts = in_turn(check, "copies between devices without peer access", 2, check.cuda_program("peer_bench"))
    for way in ("one", "two"):
        alone, inside = (median_after(f"peer {way} ways?", texts[each]) for each in ("alone", "hpe"))
        if alone is not None:
            check.figure(f"peer copy without access, {way} way(s), GB/s", f"{shown(alone)}, {shown(inside)}")


def output(check):
    """Compares outputs. With the argument `touch`, programs under hpe also access device memory on the CPU."""
    same = []
    for runtime in ("static", "shared"):
        for name in PROGRAMS:
            more = ["touch"] if name in ("touch", "mappings") else []
            on_gpus = check.rehearse and (runtime == "static" or name != "vector_add")
            same.append(check.same(f"{name}, {runtime} runtime", 60, check.bin(f"interpose/{name}-{runtime}"), more=more,
                                   needs_gpu=on_gpus))
    check.figure("programs with the same output", f"{sum(same)} of {len(same)}", "all", all(same))
    for module in ("torch", "cupy"):
        script = SOURCES / f"{module}.py"
        installed = check.packing or check.run(f"{module} is installed", 120, {}, sys.executable, "-c", f"import {module}").status == 0
        if installed:
            good = check.same(module, 120, sys.executable, script, needs_gpu=True)
            check.figure(module, "same" if good else check.steps[-1]["verdict"], "same output", good)
        else:
            check.figure(module, "not installed here")


def random_calls(check):
    program, calls = check.cuda_program("fuzz"), check.choose(check.options.calls, 400)
    for count, seed, limit, more, what in ((calls, 1, 200, [], "random calls"),
                                           (calls // 4, 2, 120, ["touch"], "random calls with touches by the CPU")):
        good = check.same(what, limit, program, count, seed, more=more)
        check.figure(f"{count} {what}", "no difference" if good else check.steps[-1]["verdict"], "no difference", good)

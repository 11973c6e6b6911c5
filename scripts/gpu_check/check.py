"""Runs the steps of a part: limits their time, stores their output, and records their outcomes and the figures that they measured."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple

SCRIPTS = Path(__file__).resolve().parent.parent
SECONDS_OF_A_PART = 520
STOPPED = 124  # the status of a step that exceeded its time limit, as in timeout(1)


class Ran(NamedTuple):
    """The status and output of a command. `errors` is empty if standard error is part of `output`."""
    status: int
    verdict: str
    output: str = ""
    errors: str = ""
    seconds: float = 0


class Check:
    """The steps of all parts that a call runs, and the figures and the seconds of each part, by the part's name.

    `mode` is "gpus" to run the steps on GPUs; "rehearse" to run them on soft devices, except steps that need a GPU, whose files must
    only exist; or "pack" to run nothing and collect the files that the steps need in `used`.
    """

    def __init__(self, programs, out, mode, options):
        self.programs, self.out, self.mode, self.options = programs, out, mode, options
        self.rehearse, self.packing = mode == "rehearse", mode == "pack"
        self.family = "soft" if self.rehearse else "cuda"
        self.gpus = {"gpus": count_gpus, "rehearse": lambda: 2, "pack": lambda: 4}[mode]()
        self.counts = [n for n in (1, 2, 4) if n <= self.gpus]
        self.steps, self.figures, self.seconds, self.used = [], {}, {}, set()
        self.part, self.part_began, self.end = None, 0.0, time.monotonic() + options.seconds
        self.written = set()  # the logs that this call has written

    # ---- what a step needs

    def bin(self, name):
        return self.programs / "bin" / name

    def cuda_program(self, name):
        """Returns a program of bin/interpose with the static CUDA runtime; for soft devices, the program with the shared runtime."""
        return self.bin(f"interpose/{name}-static")

    def choose(self, on_gpus, in_a_rehearsal):
        return in_a_rehearsal if self.rehearse else on_gpus

    def hpe_run(self, *options, devices=1):
        """Returns the command words that run a CUDA program under hpe. devices: the number of soft devices in a rehearsal."""
        soft = self.choose([], ["--cuda", "soft", "--devices", f"soft:{devices}"])
        return [self.bin("hpe"), "run", *soft, *options, "--"]

    def alone(self):
        """Returns the command words that run a CUDA program without hpe. In a rehearsal, only hpe can run the program."""
        return self.choose([], self.hpe_run())

    def mpirun(self, count, *options):
        return ["mpirun", "--allow-run-as-root", "--oversubscribe", *options, "-n", count]

    def on(self, count):
        return {"HPE_DEVICES": f"{self.family}:{count}"}

    def without_peers(self, count):
        """Returns the environment of devices that cannot access each other."""
        if self.rehearse:
            return {"HPE_DEVICES": f"soft:{count}x1"}
        return {"HPE_DEVICES": f"cuda:{count}", "HPE_CUDA_PEERS": "off"}

    def tool(self, name):
        """Returns the path of a program that is installed on this machine; None if it is not installed."""
        return name if self.packing else shutil.which(name, path=f"{os.environ['PATH']}:/usr/local/cuda/bin")

    def log(self, name, ending="log"):
        return self.out / f"{self.part.name}-{re.sub('[^a-zA-Z0-9]+', '-', name)}.{ending}"

    def seconds_left(self):
        now = time.monotonic()
        return min(SECONDS_OF_A_PART - (now - self.part_began), self.end - now)

    # ---- running

    def run(self, name, limit, environment, *command, apart=False, needs_gpu=False):
        """Runs a command for at most `limit` seconds. Appends its output to PART-NAME.log and, with `apart`, its standard error to
        PART-NAME.err."""
        files = [word for word in command if isinstance(word, Path) and
                 (word.is_relative_to(self.programs / "bin") or not word.is_relative_to(self.out))]
        if self.packing:
            self.used.update(files)
            return Ran(0, "packed")
        for file in files:
            if not file.exists():
                return Ran(127, f"FAILED: there is no {file}")
        words = [str(word) for word in command]
        if self.rehearse:
            soft = {str(file): re.sub("-static$", "-shared", str(file)) for file in files if file.parent == self.bin("interpose")}
            runtime = [self.programs / "lib/hpe/cudart"] if "--cuda" in words else []
            if needs_gpu or not all(Path(file).exists() for file in [*runtime, *soft.values()]):
                return Ran(0, "found, needs a GPU")
            words = [soft.get(word, word) for word in words]
        left = self.seconds_left()
        if left < 5:
            return Ran(STOPPED, "not run: the time is over")
        began = time.monotonic()
        with self.open_log(name, "log") as log, self.open_log(name, "err" if apart else "log") as err:
            start, start_of_errors = log.tell(), err.tell()
            status = run_for(min(limit, left), {**os.environ, **environment}, words, log, err if apart else log)
        seconds = time.monotonic() - began
        output = read_from(self.log(name), start)
        errors = read_from(self.log(name, "err"), start_of_errors) if apart else ""
        verdict = "passed"
        if status == STOPPED:
            verdict = f"stopped after {seconds:.0f} s (status {status})"
        elif status != 0:
            verdict = f"FAILED (status {status})"
        elif "[==========] 0 tests" in output:  # a filter that matches no test is a mistake in this script
            verdict, status = "FAILED: no test has such a name", 1
        return Ran(status, verdict, output, errors, seconds)

    def open_log(self, name, ending):
        path = self.log(name, ending)
        mode = "ab" if path in self.written else "wb"
        self.written.add(path)
        return open(path, mode)

    def note(self, name, verdict, seconds=0.0, status=0):
        if self.packing:
            return
        self.steps.append({"part": self.part.name, "step": name, "verdict": verdict, "seconds": round(seconds), "status": status})
        print(f"{self.part.name}: {name}: {verdict}", flush=True)

    def record(self, name, *runs):
        """Records the outcome of several runs as one step: that of the first failed run, if any. Prints the end of a failed run's output."""
        worst = next((ran for ran in runs if ran.status), runs[-1])
        if worst.status:
            print("\n".join((worst.output + worst.errors).splitlines()[-20:]), flush=True)
        self.note(name, worst.verdict, sum(ran.seconds for ran in runs), worst.status)
        return worst.status == 0

    def step(self, name, limit, environment, *command, needs_gpu=False):
        """Runs a command, shows its output, and records the outcome."""
        if not self.packing:
            print(f"\n== {self.part.name}: {name}", flush=True)
        ran = self.run(name, limit, environment, *command, needs_gpu=needs_gpu)
        # Leaves out tests that passed.
        shown = [line for line in ran.output.splitlines() if line and not re.match(r"\[ +(RUN|OK) +\]|\[-+\]", line)]
        if shown:
            print("\n".join(shown[-60:]), flush=True)
        self.note(name, ran.verdict, ran.seconds, ran.status)
        return ran

    def tests(self, name, limit, environment, program, names="*", needs_gpu=False):
        return self.step(name, limit, environment, self.bin(program), f"--gtest_filter={names}", needs_gpu=needs_gpu)

    def bench(self, name, program, limit, *words, environment=None, needs_gpu=False):
        return self.step(name, limit, environment or {"HPE_DEVICES": self.family}, self.bin(f"hpe-bench-{program}"), "--json",
                         self.log(name, "json"), *words, needs_gpu=needs_gpu)

    def compare(self, name, alone, inside):
        """Records two runs of a program, alone and under hpe, as one step. Returns whether both succeeded with the same standard output;
        otherwise the step counts as failed."""
        if alone.status or inside.status or alone.output == inside.output:
            return self.record(name, alone, inside)
        print(f"DIFFERENT:\n{alone.output[-2000:]}\n-- under hpe:\n{inside.output[-2000:]}{inside.errors[-2000:]}", flush=True)
        self.note(name, "FAILED: the output differs", alone.seconds + inside.seconds, 1)
        return False

    def same(self, name, limit, *command, options=(), more=(), environment=None, needs_gpu=False):
        """Runs a program alone, then under `hpe run` with `options`, `environment` and the arguments `more`, and compares the outputs."""
        alone = self.run(f"{name} alone", limit, {}, *self.alone(), *command, apart=True, needs_gpu=needs_gpu)
        inside = self.run(f"{name} under hpe", limit, environment or {}, *self.hpe_run(*options), *command, *more, apart=True,
                          needs_gpu=needs_gpu)
        return self.compare(name, alone, inside)

    def figure(self, what, seen, bar="", reached=None):
        """Records a figure as text, its target, and whether the figure reaches the target. In a rehearsal there are no targets, and steps
        that need a GPU yield no numbers."""
        if self.packing or (self.rehearse and not re.search("[0-9]", seen)):
            return
        bar = "" if self.rehearse else bar
        verdict = ("pass" if reached else "MISS") if bar else ""
        self.figures.setdefault(self.part.name, []).append((what, seen, bar, verdict))
        print(f"{what:<52} {seen:<44} {bar:<12} {verdict}", flush=True)


def run_for(seconds, environment, command, log, errors):
    """Runs a command with its children for at most `seconds`, and returns its status."""
    try:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=errors, start_new_session=True)
    except OSError as error:
        errors.write(f"{command[0]}: {error.strerror}\n".encode())
        return 127
    stopped = []

    def stop(number):
        stopped.append(number)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)

    # Popen.wait with a timeout polls every 50 ms, which is too coarse for programs whose times are compared.
    timers = [threading.Timer(seconds, stop, [signal.SIGTERM]), threading.Timer(seconds + 5, stop, [signal.SIGKILL])]
    for timer in timers:
        timer.start()
    status = process.wait()
    for timer in timers:
        timer.cancel()
    if stopped:
        return STOPPED
    return status if status >= 0 else 128 - status


def read_from(path, start):
    with open(path, "rb") as file:
        file.seek(start)
        return file.read().decode(errors="replace")


def count_gpus():
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        listed = ""
    count = sum(line.startswith("GPU") for line in listed.splitlines())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return min(count, len(visible.split(","))) if visible else count

"""hpe rtm model and migrate under mpirun: command_test.py HPE MPIRUN..."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HPE, MPIRUN = sys.argv[1], sys.argv[2:]
SURVEY = """
[model]
builtin = "flat"
size = [70, 1, 40]
spacing = 20
[wavelet]
frequency = 9
[shots]
x = [200, 1200, 250]
[receivers]
x = [0, 1380, 20]
[migration]
smooth = 40
[time]
length = {length}
interval = 0.008
[records]
file = "r.sgy"
[image]
name = "image"
formats = ["npy"]
"""


def rtm(folder, *words, ranks=1, parts=1):
    start = [*MPIRUN, "-x", "HPE_DEVICES=soft:1", "-n", str(ranks)] if ranks > 1 else []
    cut = ["--parts", str(parts)] if parts > 1 else []
    return subprocess.Popen([*start, HPE, "rtm", *words, *cut, "survey.toml"], cwd=folder, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"HPE_DEVICES": "soft:1"},
                            start_new_session=True)


def done(process):
    out, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return out, errors


def survey(length=0.9):
    folder = Path(tempfile.mkdtemp(prefix="hpe-rtm-mpi-"))
    (folder / "survey.toml").write_text(SURVEY.format(length=length))
    return folder


def same_files():
    one, many = survey(), survey()
    for verb in ("model", "migrate"):
        done(rtm(one, verb))
        done(rtm(many, verb, ranks=4, parts=2))
    for name in ("r.sgy", "image.npy"):
        assert (one / name).read_bytes() == (many / name).read_bytes(), name
    assert not (many / "image.sums").exists()
    refused = rtm(many, "migrate", ranks=2, parts=3)
    _, errors = refused.communicate(timeout=200)
    assert refused.returncode == 2 and "the number of ranks, 2, must be a multiple" in errors, errors
    return one


def a_rank_dies(wanted):
    """Kills a rank when a round of shots is on disk; the same command then resumes the run."""
    folder = survey()
    (folder / "r.sgy").write_bytes((wanted / "r.sgy").read_bytes())
    run = rtm(folder, "migrate", ranks=2)
    end = time.monotonic() + 100
    while not (folder / "image.sums").exists() and run.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                words = (process / "environ").read_bytes().split(b"\0")
                name = (process / "comm").read_text().strip()
                place = os.readlink(process / "cwd")
            except OSError:
                continue
            if name == "hpe-rtm-mpi" and b"OMPI_COMM_WORLD_RANK=1" in words and place == str(folder):
                os.kill(int(process.name), signal.SIGKILL)
    run.communicate(timeout=200)
    assert run.returncode != 0
    assert (folder / "image.sums").exists()
    _, errors = done(rtm(folder, "migrate", ranks=2))
    assert "shots are in" in errors, errors
    assert (folder / "image.npy").read_bytes() == (wanted / "image.npy").read_bytes()


a_rank_dies(same_files())

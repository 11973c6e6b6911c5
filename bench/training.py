#!/usr/bin/env python3
"""Measures the steps per second of a PyTorch training loop whose batches are in ordinary memory, with and without `hpe run`.

    bench/training.py [--hpe build/release/bin/hpe] [--pairs N] [--steps N] [--batch N] [--json FILE]

The loop is an ordinary PyTorch program that does not use hpe. Each step takes a batch of random images of
3 x 224 x 224 floats, moves the batch to the GPU by .to("cuda") and trains a small convolutional network on it. Each run of the
loop is a separate process; runs without and with `hpe run` alternate. The table shows medians over the pairs of runs, and
compares the losses, which must agree to the last bit.
Needs a GPU and PyTorch.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent


def train(steps, batch):
    import torch

    torch.manual_seed(7)
    torch.backends.cudnn.deterministic = True
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 8, stride=4), torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 4, stride=4), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(64 * 13 * 13, 100)).cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    batches = [torch.randn(batch, 3, 224, 224) for _ in range(4)]
    labels = [torch.randint(0, 100, (batch,)) for _ in range(4)]

    def run(count):
        for step in range(count):
            optimizer.zero_grad()
            inputs, wanted = batches[step % 4].to("cuda"), labels[step % 4].to("cuda")
            loss = torch.nn.functional.cross_entropy(network(inputs), wanted)
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()
        return loss.item()

    run(10)
    began = time.perf_counter()
    loss = run(steps)
    seconds = time.perf_counter() - began
    print(json.dumps({"rate": steps / seconds, "loss": loss.hex(), "gpu": torch.cuda.get_device_name()}))


def measure(options):
    loop = [sys.executable, __file__, "--loop", "--steps", str(options.steps), "--batch", str(options.batch)]
    ways = {"without hpe": loop, "under hpe run": [options.hpe, "run", "--", *loop]}
    seen = {way: [] for way in ways}
    for _ in range(options.pairs):
        for way, command in ways.items():
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"training: {way}, the loop ended with status {done.returncode}:\n{done.stderr}")
            seen[way].append(json.loads(done.stdout.splitlines()[-1]))
    rates = {way: [run["rate"] for run in runs] for way, runs in seen.items()}
    faster = [after / before for before, after in zip(*rates.values())]
    losses = {run["loss"] for runs in seen.values() for run in runs}
    rows = [(way, f"{median(r):.1f} steps/s ({min(r):.1f}..{max(r):.1f})", "", "") for way, r in rates.items()]
    rows.append(("under hpe run: of the rate without", f"{median(faster):.2f} x ({min(faster):.2f}..{max(faster):.2f})", ">= 2 x",
                 "pass" if median(faster) >= 2 else "MISS"))
    rows.append(("different losses", str(len(losses) - 1), "0", "pass" if len(losses) == 1 else "MISS"))
    text = "".join("\t".join(row) + "\n" for row in rows)
    print(text, end="")
    if options.json:
        title = f"a PyTorch training loop with batches in ordinary memory, {next(iter(seen.values()))[0]['gpu']}"
        subprocess.run([ROOT / "scripts" / "measurements", "table", "bench/training.py", title, options.json],
                       input=text, text=True, check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hpe", default=str(ROOT / "build/release/bin/hpe"), help="the hpe command")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--json", help="also write the table to this file")
    parser.add_argument("--loop", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    train(given.steps, given.batch) if given.loop else measure(given)

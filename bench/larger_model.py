#!/usr/bin/env python3
"""Trains, or runs, a transformer in PyTorch whose data may be larger than a GPU's memory. Does not use hpe itself.

    bench/larger_model.py train|infer [--layers N] [--width N] [--steps N] [--device cuda|cpu]

`train` trains 8 layers with AdamW in steps of 8 sequences of 1024 tokens (11.5 GiB); `infer` applies 128 layers with weights
of type bfloat16 (12 GiB) to 8 sequences of 512 tokens. Prints the time of each step, the median of the last half of the steps,
and a digest of the result, which is the same with any amount of memory. For example:

    HPE_DEVICE_MEMORY=8G hpe run --oversubscribe -- python3 bench/larger_model.py train
"""

import argparse
import os
import time
from hashlib import sha256
from statistics import median

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # PyTorch's deterministic algorithms need this

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402


class Layer(nn.Module):
    def __init__(self, width, **kind):
        super().__init__()
        self.before, self.behind = nn.LayerNorm(width, **kind), nn.LayerNorm(width, **kind)
        self.attention, self.out = nn.Linear(width, 3 * width, **kind), nn.Linear(width, width, **kind)
        self.up, self.down = nn.Linear(width, 4 * width, **kind), nn.Linear(4 * width, width, **kind)

    def forward(self, x):
        sequences, tokens, width = x.shape
        heads = self.attention(self.before(x)).view(sequences, tokens, 3, width // 128, 128).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(sequences, tokens, width))
        return x + self.down(functional.gelu(self.up(self.behind(x))))


def digest(tensor):
    return sha256(tensor.detach().contiguous().flatten().view(torch.uint8).cpu().numpy().tobytes()).hexdigest()[:12]


def trainer(options):
    """Returns a function that runs a step, and returns the tensor of the result."""
    net = nn.Sequential(*[Layer(options.width) for _ in range(options.layers)], nn.Linear(options.width, 1000)).to(options.device)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4, foreach=True)
    random = torch.Generator().manual_seed(3)
    batches = [(torch.randn(8, 1024, options.width, generator=random), torch.randint(0, 1000, (8, 1024), generator=random))
               for _ in range(2)]

    def step(number):
        inputs, wanted = (each.to(options.device) for each in batches[number % 2])
        # The gradients of other kinds of attention may differ between runs.
        with torch.autocast(options.device, torch.bfloat16), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            loss = functional.cross_entropy(net(inputs).view(-1, 1000).float(), wanted.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return net[options.layers // 2].up.weight

    return step


def predictor(options):
    """Returns a function that applies the model, and returns the tensor of the result."""
    net = nn.Sequential(*[Layer(options.width, device=options.device, dtype=torch.bfloat16) for _ in range(options.layers)])
    random = torch.Generator(device=options.device).manual_seed(9)
    with torch.no_grad():
        for weights in net.parameters():
            if weights.dim() > 1:
                weights.normal_(0, 0.02, generator=random)
        inputs = torch.randn(8, 512, options.width, generator=random, device=options.device, dtype=torch.bfloat16)

    def step(_):
        with torch.no_grad():
            return net(inputs)

    return step


def main(options):
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    step = trainer(options) if options.work == "train" else predictor(options)
    times = []
    for number in range(options.steps):
        began = time.perf_counter()
        result = step(number)
        if options.device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
        print(f"step {number}: {times[-1]:.3f} s", flush=True)
    last = times[len(times) // 2:]
    print(f"median of the last {len(last)} steps: {median(last):.4f} s, digest {digest(result)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=["train", "infer"])
    parser.add_argument("--layers", type=int, help="default: 8 for train, 128 for infer")
    parser.add_argument("--width", type=int, default=2048, help="numbers per token, a multiple of 128")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    given = parser.parse_args()
    given.layers = given.layers or (8 if given.work == "train" else 128)
    main(given)

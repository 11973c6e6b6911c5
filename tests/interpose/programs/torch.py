# Trains a small network with batches from pageable memory; prints results that must be the same with and without hpe.
import sys

sys.path.pop(0)  # this folder contains a file with the module's name

import torch

torch.manual_seed(1)
torch.use_deterministic_algorithms(True, warn_only=True)
model = torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
inputs = torch.randn(4096, 1024)
labels = torch.randint(0, 10, (4096,))
for step in range(20):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f}")
large = torch.arange(1 << 26, dtype=torch.float32)
back = (large.cuda() * 2).cpu()
print("large", torch.equal(back, large * 2))
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    part = large.to("cuda", non_blocking=True).sum(dtype=torch.float64)
stream.synchronize()
print("sum", part.item())

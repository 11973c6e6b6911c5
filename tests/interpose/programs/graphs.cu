// Launches two graphs repeatedly: one that was captured from a stream, with pageable and pinned copies, and one that
// was built node by node.
#include <vector>

#include "check.h"

__global__ void scale(int* p, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = p[i] * k + 1;
}

int main() {
  constexpr int n = 3 << 20;
  constexpr std::size_t bytes = n * sizeof(int);
  std::vector<int> in(n), out(n, -1);
  int *pinned, *device;
  CHECK(cudaMallocHost(&pinned, bytes));
  CHECK(cudaMalloc(&device, bytes));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream));
  for (int k = 2; k < 6; ++k) scale<<<(n + 255) / 256, 256, 0, stream>>>(device, n, k);
  CHECK(cudaMemcpyAsync(out.data(), device, bytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaMemsetAsync(device, 0, bytes, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < n; ++i) pinned[i] = i + round;
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    std::printf("captured, round %d: %016llx\n", round, (unsigned long long)digest(out.data(), bytes));
  }
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));

  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t up, run, down;
  for (int i = 0; i < n; ++i) in[i] = 7 * i;
  CHECK(cudaGraphAddMemcpyNode1D(&up, graph, nullptr, 0, device, in.data(), bytes, cudaMemcpyHostToDevice));
  int count = n, factor = 3;
  void* arguments[] = {&device, &count, &factor};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(scale);
  kernel.gridDim = dim3((n + 255) / 256);
  kernel.blockDim = dim3(256);
  kernel.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&run, graph, &up, 1, &kernel));
  CHECK(cudaGraphAddMemcpyNode1D(&down, graph, &run, 1, out.data(), device, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  std::printf("by hand: %016llx\n", (unsigned long long)digest(out.data(), bytes));
}

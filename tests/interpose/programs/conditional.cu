// Graphs with conditional nodes: if, if with else, switch and while, nested nodes, and captured bodies.
#include <vector>

#include "check.h"

__global__ void choose(cudaGraphConditionalHandle handle, const int* value) { cudaGraphSetConditional(handle, *value); }
__global__ void add(int* to, int amount) { *to += amount; }

// Increments the counter, and lets the loop continue while the counter is below its limit.
__global__ void step(cudaGraphConditionalHandle handle, int* counter, int limit) {
  cudaGraphSetConditional(handle, ++*counter < limit ? 1 : 0);
}

namespace {

constexpr int cells = 8;
int* values = nullptr;  // on the device: cell 0 is the condition, the other cells count

cudaGraphNode_t kernel(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, const void* function, void** arguments) {
  cudaKernelNodeParams parameters{};
  parameters.func = const_cast<void*>(function);
  parameters.gridDim = parameters.blockDim = dim3(1);
  parameters.kernelParams = arguments;
  cudaGraphNode_t made;
  CHECK(cudaGraphAddKernelNode(&made, graph, after.data(), after.size(), &parameters));
  return made;
}

cudaGraphNode_t add_node(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, int cell, int amount) {
  int* to = values + cell;
  void* arguments[] = {&to, &amount};
  return kernel(graph, std::move(after), reinterpret_cast<const void*>(add), arguments);
}

cudaGraphConditionalHandle handle_of(cudaGraph_t graph, unsigned initial = 0, unsigned flags = 0) {
  cudaGraphConditionalHandle made;
  CHECK(cudaGraphConditionalHandleCreate(&made, graph, initial, flags));
  return made;
}

std::vector<cudaGraph_t> conditional(cudaGraph_t graph, std::vector<cudaGraphNode_t> after,
                                     cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                                     unsigned bodies, cudaGraphNode_t* node = nullptr) {
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = handle;
  parameters.conditional.type = type;
  parameters.conditional.size = bodies;
  cudaGraphNode_t made;
  CHECK(cudaGraphAddNode(&made, graph, after.data(), nullptr, after.size(), &parameters));
  if (node != nullptr) *node = made;
  return {parameters.conditional.phGraph_out, parameters.conditional.phGraph_out + bodies};
}

void run(const char* name, cudaGraph_t graph, std::vector<int> conditions) {
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (const int condition : conditions) {
    int out[cells] = {condition};
    CHECK(cudaMemcpy(values, out, sizeof out, cudaMemcpyHostToDevice));
    CHECK(cudaGraphLaunch(executable, nullptr));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(out, values, sizeof out, cudaMemcpyDeviceToHost));
    std::printf("%s %d:", name, condition);
    for (const int each : out) std::printf(" %d", each);
    std::printf("\n");
  }
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
}

cudaGraph_t empty() {
  cudaGraph_t made;
  CHECK(cudaGraphCreate(&made, 0));
  return made;
}

cudaGraphNode_t choice(cudaGraph_t graph, cudaGraphConditionalHandle handle) {
  void* arguments[] = {&handle, &values};
  return kernel(graph, {}, reinterpret_cast<const void*>(choose), arguments);
}

void loop(const char* name, int limit, bool begins) {
  cudaGraph_t graph = empty();
  const auto handle = handle_of(graph, begins ? 1 : 0, cudaGraphCondAssignDefault);
  cudaGraphNode_t node;
  const auto body = conditional(graph, {}, handle, cudaGraphCondTypeWhile, 1, &node);
  const auto first = add_node(body[0], {}, 1, 10);
  int* counter = values + 2;
  auto in_kernel = handle;
  void* arguments[] = {&in_kernel, &counter, &limit};
  kernel(body[0], {first}, reinterpret_cast<const void*>(step), arguments);
  add_node(graph, {node}, 3, 7);
  run(name, graph, {0, 0});
}

}  // namespace

int main() {
  CHECK(cudaMalloc(&values, cells * sizeof(int)));
  {
    cudaGraph_t graph = empty();
    const auto handle = handle_of(graph);
    cudaGraphNode_t node;
    const auto body = conditional(graph, {choice(graph, handle)}, handle, cudaGraphCondTypeIf, 1, &node);
    add_node(body[0], {}, 1, 1);
    add_node(graph, {node}, 7, 5);
    run("if", graph, {0, 1, 42});
  }
  {
    cudaGraph_t graph = empty();
    const auto handle = handle_of(graph);
    const auto body = conditional(graph, {choice(graph, handle)}, handle, cudaGraphCondTypeIf, 2);
    add_node(body[0], {}, 1, 1);
    add_node(body[1], {}, 2, 1);
    run("if else", graph, {0, 1});
  }
  {
    cudaGraph_t graph = empty();
    const auto handle = handle_of(graph);
    const auto body = conditional(graph, {choice(graph, handle)}, handle, cudaGraphCondTypeSwitch, 3);
    for (int n = 0; n < 3; ++n) add_node(body[n], {add_node(body[n], {}, 1 + n, 1)}, 4, 100 + n);
    run("switch", graph, {0, 1, 2, 3});
  }
  loop("while", 5, true);
  loop("while, once", 1, true);
  loop("while, never", 5, false);
  {
    // A body that was captured from a stream, with another conditional node inside.
    cudaGraph_t graph = empty();
    const auto outer = handle_of(graph, 1, cudaGraphCondAssignDefault), inner = handle_of(graph);
    const auto body = conditional(graph, {}, outer, cudaGraphCondTypeWhile, 1);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCaptureToGraph(stream, body[0], nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
    add<<<1, 1, 0, stream>>>(values + 1, 1);
    step<<<1, 1, 0, stream>>>(outer, values + 2, 6);
    choose<<<1, 1, 0, stream>>>(inner, values + 2);
    const cudaGraphNode_t* last;
    std::size_t count;
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, nullptr, &count));
    const std::vector<cudaGraphNode_t> after(last, last + count);
    cudaGraph_t captured;
    CHECK(cudaStreamEndCapture(stream, &captured));
    std::printf("captured into the body: %s\n", captured == body[0] ? "yes" : "no");
    const auto cases = conditional(body[0], after, inner, cudaGraphCondTypeSwitch, 4);
    for (int n = 0; n < 4; ++n) add_node(cases[n], {}, 3 + n, 1);
    cudaGraphNodeType type;
    std::size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    std::vector<cudaGraphNode_t> all(nodes);
    CHECK(cudaGraphGetNodes(graph, all.data(), &nodes));
    CHECK(cudaGraphNodeGetType(all[0], &type));
    std::printf("%zu nodes, type %d\n", nodes, int(type));
    run("nested", graph, {0, 0});
    CHECK(cudaStreamDestroy(stream));
  }
  CHECK(cudaFree(values));
}

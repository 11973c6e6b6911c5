// Graphs whose edges order too little, and graphs that run beside other work.
#include "tests/check/programs/cuda_cases.h"

// The kernel node's parameters. CUDA copies the arguments when the node is added.
struct node_of {
  void* arguments[3];
  cudaKernelNodeParams parameters;
  template <class... Arguments>
  explicit node_of(const void* kernel, Arguments&... a)
      : arguments{&a...}, parameters{const_cast<void*>(kernel), dim3(4), dim3(256), 0, arguments, nullptr} {}
};

static void run_and_destroy(cudaGraph_t graph) {
  stream s;
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, s));
  CHECK(cudaStreamSynchronize(s));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

CASE(edge_is_missing) {  // graph-race fill
  ints p, q;
  int n = count, one = 1;
  cudaGraph_t graph;
  cudaGraphNode_t first, second;
  CHECK(cudaGraphCreate(&graph, 0));
  node_of writer((const void*)fill, p.p, n, one), reader((const void*)twice, q.p, p.p, n);
  CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &writer.parameters));              // FIRST
  CHECK(cudaGraphAddKernelNode(&second, graph, &first, wrong ? 0 : 1, &reader.parameters));  // SECOND
  run_and_destroy(graph);
}

CASE(edge_to_the_wrong_node) {  // graph-race add
  ints p, q;
  int n = count, one = 1;
  cudaGraph_t graph;
  cudaGraphNode_t first, second, third;
  CHECK(cudaGraphCreate(&graph, 0));
  node_of writer((const void*)fill, p.p, n, one), adder((const void*)add, p.p, n, one),
      reader((const void*)twice, q.p, p.p, n);
  CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &writer.parameters));
  CHECK(cudaGraphAddKernelNode(&second, graph, &first, 1, &adder.parameters));                    // FIRST
  CHECK(cudaGraphAddKernelNode(&third, graph, wrong ? &first : &second, 1, &reader.parameters));  // SECOND
  run_and_destroy(graph);
}

CASE(copy_node_without_edge) {  // graph-race fill
  ints p;
  pinned_ints to;
  int n = count, one = 1;
  cudaGraph_t graph;
  cudaGraphNode_t first, second;
  CHECK(cudaGraphCreate(&graph, 0));
  node_of writer((const void*)fill, p.p, n, one);
  CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &writer.parameters));                             // FIRST
  CHECK(cudaGraphAddMemcpyNode1D(&second, graph, &first, wrong ? 0 : 1, to, p, bytes, cudaMemcpyDefault));  // SECOND
  run_and_destroy(graph);
}

CASE(memset_node_without_edge) {  // graph-race add
  ints p;
  int n = count, one = 1;
  cudaGraph_t graph;
  cudaGraphNode_t first, second;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams zeros{};
  zeros.dst = p.p;
  zeros.elementSize = sizeof(int);
  zeros.width = count;
  zeros.height = 1;
  node_of adder((const void*)add, p.p, n, one);
  CHECK(cudaGraphAddMemsetNode(&first, graph, nullptr, 0, &zeros));                         // FIRST
  CHECK(cudaGraphAddKernelNode(&second, graph, &first, wrong ? 0 : 1, &adder.parameters));  // SECOND
  run_and_destroy(graph);
}

CASE(host_node_without_edge) {  // host-touch fill (not on GPUs)
  pinned_ints p;
  int n = count, one = 1;
  cudaGraph_t graph;
  cudaGraphNode_t first, second;
  CHECK(cudaGraphCreate(&graph, 0));
  node_of writer((const void*)fill, p.p, n, one);
  cudaHostNodeParams print{};
  print.userData = p.p;
  print.fn = [](void* p) {
    volatile int seen = static_cast<int*>(p)[7];  // SECOND
    (void)seen;
  };
  CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &writer.parameters));  // FIRST
  CHECK(cudaGraphAddHostNode(&second, graph, &first, wrong ? 0 : 1, &print));
  run_and_destroy(graph);
}

CASE_WITH(two_streams, captured_fork_too_early) {  // graph-race fill
  event fork, join;
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
  if (wrong) CHECK(cudaEventRecord(fork, a));
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaEventRecord(fork, a));
  CHECK(cudaStreamWaitEvent(b, fork, 0));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
  CHECK(cudaEventRecord(join, b));
  CHECK(cudaStreamWaitEvent(a, join, 0));
  CHECK(cudaStreamEndCapture(a, &graph));
  run_and_destroy(graph);
}

CASE_WITH(two_streams, captured_join_too_early) {  // graph-race twice
  event fork, join;
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaEventRecord(fork, a));
  CHECK(cudaStreamWaitEvent(b, fork, 0));
  twice<<<4, 256, 0, b>>>(q, p, count);  // FIRST
  CHECK(cudaEventRecord(join, b));
  if (!wrong) CHECK(cudaStreamWaitEvent(a, join, 0));
  add<<<4, 256, 0, a>>>(q, count, 1);  // SECOND
  if (wrong) CHECK(cudaStreamWaitEvent(a, join, 0));
  CHECK(cudaStreamEndCapture(a, &graph));
  run_and_destroy(graph);
}

CASE(child_graph_without_edge) {  // graph-race fill
  ints p, q;
  int n = count, one = 1;
  cudaGraph_t graph, child;
  cudaGraphNode_t first, second, inner;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&child, 0));
  node_of writer((const void*)fill, p.p, n, one), reader((const void*)twice, q.p, p.p, n);
  CHECK(cudaGraphAddKernelNode(&inner, child, nullptr, 0, &reader.parameters));  // SECOND
  CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &writer.parameters));  // FIRST
  CHECK(cudaGraphAddChildGraphNode(&second, graph, &first, wrong ? 0 : 1, child));
  CHECK(cudaGraphDestroy(child));
  run_and_destroy(graph);
}

// The finding names the line that launches the graph or the line that adds the node.
CASE(graph_beside_a_kernel) {  // stream-race fill
  ints p, q;
  int n = count, one = 1;
  stream a, b;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  CHECK(cudaGraphCreate(&graph, 0));
  node_of writer((const void*)fill, p.p, n, one);
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &writer.parameters));  // FIRST
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
  wait_for_all();
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

CASE(two_graphs) {  // stream-race fill
  ints p, q;
  int n = count, one = 1;
  stream a, b;
  cudaGraph_t graphs[2];
  cudaGraphExec_t execs[2];
  cudaGraphNode_t node;
  node_of writer((const void*)fill, p.p, n, one), reader((const void*)twice, q.p, p.p, n);
  for (cudaGraph_t& graph : graphs) CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddKernelNode(&node, graphs[0], nullptr, 0, &writer.parameters));  // FIRST
  CHECK(cudaGraphAddKernelNode(&node, graphs[1], nullptr, 0, &reader.parameters));  // SECOND
  for (int i = 0; i < 2; ++i) CHECK(cudaGraphInstantiate(&execs[i], graphs[i], 0));
  CHECK(cudaGraphLaunch(execs[0], a));              // FIRST
  CHECK(cudaGraphLaunch(execs[1], wrong ? b : a));  // SECOND
  wait_for_all();
  for (cudaGraphExec_t exec : execs) CHECK(cudaGraphExecDestroy(exec));
  for (cudaGraph_t graph : graphs) CHECK(cudaGraphDestroy(graph));
}

int main(int argc, char** argv) { return run_cases(argc, argv, wait_for_all); }

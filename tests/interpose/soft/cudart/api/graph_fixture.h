#pragma once

// Common code of the tests of graphs.

#include <optional>
#include <vector>

#include "check.h"

inline constexpr int count = 64;  // the number of ints

/// A graph, a stream, and memory for nodes.
class GraphQueries : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_CUDA(cudaDeviceReset());  // also removes objects that other tests in this process have left
    ints_.emplace(count);
    ASSERT_CUDA(cudaGraphCreate(&graph_, 0));
    ASSERT_CUDA(cudaStreamCreate(&stream_));
  }

  void TearDown() override {
    cudaGraphDestroy(graph_);
    cudaStreamDestroy(stream_);
    cudaGetLastError();
  }

  cudaGraphNode_t empty(std::vector<cudaGraphNode_t> before = {}) {
    cudaGraphNode_t made = nullptr;
    EXPECT_CUDA(cudaGraphAddEmptyNode(&made, graph_, before.data(), before.size()));
    return made;
  }

  cudaGraphExec_t instantiate(unsigned long long flags = 0) {
    cudaGraphExec_t made = nullptr;
    EXPECT_CUDA(cudaGraphInstantiate(&made, graph_, flags));
    return made;
  }

  void run(cudaGraphExec_t exec) {
    EXPECT_CUDA(cudaGraphLaunch(exec, stream_));
    EXPECT_CUDA(cudaStreamSynchronize(stream_));
  }

  void run() {
    cudaGraphExec_t const exec = instantiate();
    run(exec);
    EXPECT_CUDA(cudaGraphExecDestroy(exec));
  }

  std::vector<int> contents() {
    std::vector<int> out(count);
    EXPECT_CUDA(cudaMemcpy(out.data(), ints_->data(), count * sizeof(int), cudaMemcpyDeviceToHost));
    return out;
  }

  cudaGraph_t graph_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::optional<on_device<int>> ints_;
};

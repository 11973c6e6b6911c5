// Tests of thread-block clusters, whose size a launch, a kernel, a function attribute or a graph node can request.

#include "check.h"
#include "kernels.h"

namespace {

cudaLaunchAttribute cluster_of(unsigned x, unsigned y = 1, unsigned z = 1,
                               cudaLaunchAttributeID which = cudaLaunchAttributeClusterDimension) {
  cudaLaunchAttribute attribute{};
  attribute.id = which;
  attribute.val.clusterDim = {x, y, z};
  return attribute;
}

class configuration {
 public:
  configuration(unsigned blocks, unsigned threads, std::vector<cudaLaunchAttribute> attributes = {})
      : attributes_(std::move(attributes)) {
    config_.gridDim = blocks;
    config_.blockDim = threads;
    config_.attrs = attributes_.data();
    config_.numAttrs = static_cast<unsigned>(attributes_.size());
  }
  [[nodiscard]] const cudaLaunchConfig_t* get() const { return &config_; }

 private:
  std::vector<cudaLaunchAttribute> attributes_;
  cudaLaunchConfig_t config_{};
};

// The memory for the results of a launch in clusters, which is poisoned before the launch, and the expected results.
class results {
 public:
  explicit results(unsigned blocks) : blocks_(blocks), out_(blocks) { poison(); }
  void poison() { EXPECT_CUDA(cudaMemset(out_.data(), 0xff, blocks_ * sizeof(int))); }
  [[nodiscard]] void** arguments() { return list_; }
  void expect(unsigned cluster) {
    std::vector<int> got(blocks_);
    EXPECT_CUDA(cudaMemcpy(got.data(), out_.data(), blocks_ * sizeof(int), cudaMemcpyDeviceToHost));
    for (unsigned b = 0; b < blocks_; ++b) {
      const unsigned next = b / cluster * cluster + (b + 1) % cluster;
      ASSERT_EQ(got[b], static_cast<int>(next * 100 + cluster)) << "block " << b;
    }
    poison();
  }

 private:
  unsigned blocks_;
  on_device<int> out_;
  int* pointer_ = out_.data();
  void* list_[1] = {&pointer_};
};

void runs(const void* kernel, unsigned blocks, const std::vector<cudaLaunchAttribute>& attributes, unsigned cluster) {
  results out(blocks);
  EXPECT_CUDA(cudaLaunchKernelExC(configuration(blocks, 1, attributes).get(), kernel, out.arguments()));
  out.expect(cluster);
}

void fails(const void* kernel, unsigned blocks, const std::vector<cudaLaunchAttribute>& attributes) {
  results out(blocks);
  EXPECT_FAILS(cudaLaunchKernelExC(configuration(blocks, 1, attributes).get(), kernel, out.arguments()),
               cudaErrorInvalidClusterSize);
}

// Sets an attribute of a kernel. Tests must reset the attributes that they set, because all tests run in one process.
void set(const void* kernel, cudaFuncAttribute attribute, int value) {
  EXPECT_CUDA(cudaFuncSetAttribute(kernel, attribute, value));
}

TEST(Clusters, ThatALaunchAsksFor) {
  runs(kernel_any_cluster(), 7, {}, 1);
  for (const unsigned size : {1U, 2U, 3U, 8U}) runs(kernel_any_cluster(), 24, {cluster_of(size)}, size);
  runs(kernel_any_cluster(), 4, {cluster_of(2), cluster_of(4)}, 4);
  cudaLaunchAttribute policy{};
  policy.id = cudaLaunchAttributeClusterSchedulingPolicyPreference;
  policy.val.clusterSchedulingPolicyPreference = cudaClusterSchedulingPolicySpread;
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  runs(kernel_any_cluster(), 6, {policy, cluster_of(2), cooperative}, 2);
  runs(kernel_any_cluster(), 8, {cluster_of(2), cluster_of(4, 1, 1, cudaLaunchAttributePreferredClusterDimension)}, 2);
  fails(kernel_any_cluster(), 8, {cluster_of(2), cluster_of(3, 1, 1, cudaLaunchAttributePreferredClusterDimension)});
}

TEST(Clusters, ThatAKernelDeclares) {
  runs(kernel_cluster_of_two(), 6, {}, 2);
  runs(kernel_cluster_of_two(), 6, {cluster_of(2)}, 2);
  fails(kernel_cluster_of_two(), 6, {cluster_of(3)});
  fails(kernel_cluster_of_two(), 5, {});
  runs(kernel_some_cluster(), 6, {cluster_of(3)}, 3);
  fails(kernel_some_cluster(), 6, {});
  runs(kernel_small_clusters(), 8, {cluster_of(4)}, 4);
  fails(kernel_small_clusters(), 10, {cluster_of(5)});
}

TEST(Clusters, ThatCannotBe) {
  fails(kernel_any_cluster(), 7, {cluster_of(2)});
  fails(kernel_any_cluster(), 8, {cluster_of(2, 2)});
  fails(kernel_any_cluster(), 8, {cluster_of(2, 0)});
  fails(kernel_any_cluster(), 9, {cluster_of(9)});
  results out(4);
  EXPECT_CUDA(cudaLaunchKernelExC(configuration(4, 1, {cluster_of(4)}).get(), kernel_any_cluster(), out.arguments()));
  out.expect(4);  // the earlier errors are not sticky
}

TEST(Clusters, LargeOnesAreAllowedFirst) {
  fails(kernel_any_cluster(), 16, {cluster_of(16)});
  set(kernel_any_cluster(), cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  runs(kernel_any_cluster(), 32, {cluster_of(16)}, 16);
  fails(kernel_any_cluster(), 34, {cluster_of(17)});
  set(kernel_small_clusters(), cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  fails(kernel_small_clusters(), 10, {cluster_of(5)});
  set(kernel_small_clusters(), cudaFuncAttributeNonPortableClusterSizeAllowed, 0);
  set(kernel_any_cluster(), cudaFuncAttributeNonPortableClusterSizeAllowed, 0);
  fails(kernel_any_cluster(), 16, {cluster_of(16)});
  EXPECT_FAILS(cudaFuncSetAttribute(kernel_any_cluster(), cudaFuncAttributeNonPortableClusterSizeAllowed, 2),
               cudaErrorInvalidValue);
}

TEST(Clusters, ThatAFunctionAttributeDemands) {
  const void* const kernel = kernel_any_cluster();
  set(kernel, cudaFuncAttributeRequiredClusterWidth, 3);
  fails(kernel, 6, {});  // the cluster's height and depth are not set yet
  set(kernel, cudaFuncAttributeRequiredClusterHeight, 1);
  set(kernel, cudaFuncAttributeRequiredClusterDepth, 1);
  runs(kernel, 6, {}, 3);
  fails(kernel, 6, {cluster_of(2)});
  cudaFuncAttributes told{};
  EXPECT_CUDA(cudaFuncGetAttributes(&told, kernel));
  EXPECT_EQ(told.requiredClusterWidth, 3);
  EXPECT_EQ(told.requiredClusterHeight, 1);
  EXPECT_EQ(told.requiredClusterDepth, 1);
  cudaKernel_t handle = nullptr;
  EXPECT_CUDA(cudaGetKernel(&handle, kernel));
  for (const auto dimension : {cudaFuncAttributeRequiredClusterWidth, cudaFuncAttributeRequiredClusterHeight,
                               cudaFuncAttributeRequiredClusterDepth})
    EXPECT_CUDA(cudaKernelSetAttributeForDevice(handle, dimension, 0, 1));
  EXPECT_FAILS(cudaKernelSetAttributeForDevice(handle, cudaFuncAttributeRequiredClusterWidth, 0, 99),
               cudaErrorInvalidDevice);
  runs(kernel, 7, {}, 1);
  EXPECT_FAILS(cudaFuncSetAttribute(kernel, cudaFuncAttributeRequiredClusterWidth, -1), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaFuncSetAttribute(kernel_cluster_of_two(), cudaFuncAttributeRequiredClusterWidth, 4),
               cudaErrorNotPermitted);
  EXPECT_FAILS(cudaFuncSetAttribute(kernel, cudaFuncAttributeClusterDimMustBeSet, 1), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaFuncSetAttribute(kernel, cudaFuncAttributeClusterSchedulingPolicyPreference, 3),
               cudaErrorInvalidValue);
}

TEST(Clusters, OfAKernelAreItsProperties) {
  cudaFuncAttributes told{};
  EXPECT_CUDA(cudaFuncGetAttributes(&told, kernel_cluster_of_two()));
  EXPECT_EQ(told.clusterDimMustBeSet, 1);
  EXPECT_EQ(told.requiredClusterWidth, 2);
  EXPECT_EQ(told.requiredClusterHeight, 1);
  EXPECT_EQ(told.nonPortableClusterSizeAllowed, 0);
  set(kernel_some_cluster(), cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  set(kernel_some_cluster(), cudaFuncAttributeClusterSchedulingPolicyPreference,
      cudaClusterSchedulingPolicyLoadBalancing);
  EXPECT_CUDA(cudaFuncGetAttributes(&told, kernel_some_cluster()));
  EXPECT_EQ(told.clusterDimMustBeSet, 1);
  EXPECT_EQ(told.requiredClusterWidth, 0);
  EXPECT_EQ(told.nonPortableClusterSizeAllowed, 1);
  EXPECT_EQ(told.clusterSchedulingPolicyPreference, cudaClusterSchedulingPolicyLoadBalancing);
  EXPECT_CUDA(cudaFuncGetAttributes(&told, kernel_bounded()));
  EXPECT_EQ(told.clusterDimMustBeSet, 0);
  set(kernel_some_cluster(), cudaFuncAttributeNonPortableClusterSizeAllowed, 0);
}

TEST(Clusters, TheirOccupancy) {
  int size = -1;
  const auto potential = [&](const void* kernel, unsigned threads) {
    EXPECT_CUDA(cudaOccupancyMaxPotentialClusterSize(&size, kernel, configuration(1, threads).get()));
    return size;
  };
  EXPECT_EQ(potential(kernel_any_cluster(), 128), 8);
  EXPECT_EQ(potential(kernel_cluster_of_two(), 128), 2);
  EXPECT_EQ(potential(kernel_small_clusters(), 64), 4);
  EXPECT_EQ(potential(kernel_small_clusters(), 65), 0);  // the kernel does not allow blocks of 65 threads
  set(kernel_any_cluster(), cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  EXPECT_EQ(potential(kernel_any_cluster(), 128), 16);
  set(kernel_any_cluster(), cudaFuncAttributeNonPortableClusterSizeAllowed, 0);
  EXPECT_FAILS(cudaOccupancyMaxPotentialClusterSize(&size, kernel_any_cluster(), nullptr), cudaErrorInvalidValue);

  int processors = 0, blocks = 0, clusters = -1;
  EXPECT_CUDA(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  EXPECT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_any_cluster(), 128, 0));
  EXPECT_CUDA(
      cudaOccupancyMaxActiveClusters(&clusters, kernel_any_cluster(), configuration(4, 128, {cluster_of(4)}).get()));
  EXPECT_EQ(clusters, blocks * processors / 4);
  EXPECT_CUDA(cudaOccupancyMaxActiveClusters(&clusters, kernel_cluster_of_two(), configuration(4, 1024).get()));
  EXPECT_GE(clusters, 1);
  EXPECT_CUDA(
      cudaOccupancyMaxActiveClusters(&clusters, kernel_small_clusters(), configuration(4, 65, {cluster_of(4)}).get()));
  EXPECT_EQ(clusters, 0);
  EXPECT_FAILS(cudaOccupancyMaxActiveClusters(&clusters, kernel_any_cluster(), configuration(4, 128).get()),
               cudaErrorInvalidClusterSize);
  EXPECT_FAILS(
      cudaOccupancyMaxActiveClusters(&clusters, kernel_any_cluster(), configuration(9, 1, {cluster_of(9)}).get()),
      cudaErrorInvalidClusterSize);
  EXPECT_FAILS(cudaOccupancyMaxActiveClusters(&clusters, kernel_any_cluster(), nullptr), cudaErrorInvalidValue);
  // A size of shared memory that wraps around to 0, and a number of threads that wraps around to 128.
  EXPECT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_any_cluster(), 128, ~std::size_t{0}));
  EXPECT_EQ(blocks, 0);
  const configuration of_four(4, 128, {cluster_of(4)});
  cudaLaunchConfig_t wraps = *of_four.get();
  wraps.blockDim = {128, 898'107'057, 160'465'489};
  EXPECT_FAILS(cudaOccupancyMaxActiveClusters(&clusters, kernel_any_cluster(), &wraps), cudaErrorInvalidValue);
}

// Launches an executable graph once and checks the results.
void run(cudaGraphExec_t exec, results& out, unsigned cluster) {
  EXPECT_CUDA(cudaGraphLaunch(exec, nullptr));
  out.expect(cluster);
}

TEST(Clusters, OfGraphsThatAreBuilt) {
  results out(12);
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&graph, 0));
  cudaKernelNodeParams parameters{};
  parameters.func = const_cast<void*>(kernel_some_cluster());
  parameters.gridDim = 12;
  parameters.blockDim = 1;
  parameters.kernelParams = out.arguments();
  cudaGraphNode_t node = nullptr;
  ASSERT_CUDA(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
  cudaGraphExec_t exec = nullptr;
  EXPECT_FAILS(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidClusterSize);  // the kernel requires clusters
  cudaLaunchAttributeValue value = cluster_of(3).val;
  EXPECT_CUDA(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
  value = {};
  EXPECT_CUDA(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
  EXPECT_EQ(value.clusterDim.x, 3U);
  ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  run(exec, out, 3);
  // New parameters do not change the attributes, neither in the graph nor in the executable graph.
  parameters.func = const_cast<void*>(kernel_any_cluster());
  EXPECT_CUDA(cudaGraphExecKernelNodeSetParams(exec, node, &parameters));
  run(exec, out, 3);
  EXPECT_CUDA(cudaGraphKernelNodeSetParams(node, &parameters));
  EXPECT_CUDA(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
  EXPECT_EQ(value.clusterDim.x, 3U);

  cudaGraphNode_t second = nullptr;
  EXPECT_CUDA(cudaGraphAddKernelNode(&second, graph, &node, 1, &parameters));
  value = cluster_of(6).val;
  EXPECT_CUDA(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
  EXPECT_CUDA(cudaGraphKernelNodeCopyAttributes(second, node));
  cudaGraphExec_t both = nullptr;
  ASSERT_CUDA(cudaGraphInstantiate(&both, graph, 0));
  run(both, out, 6);
  value = cluster_of(5).val;  // does not divide the grid
  EXPECT_CUDA(cudaGraphKernelNodeSetAttribute(second, cudaLaunchAttributeClusterDimension, &value));
  cudaGraphExec_t none = nullptr;
  EXPECT_FAILS(cudaGraphInstantiate(&none, graph, 0), cudaErrorInvalidClusterSize);
  EXPECT_CUDA(cudaGraphExecDestroy(both));
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST(Clusters, OfGraphsThatAreCaptured) {
  results out(8);
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(cudaStreamCreate(&stream));
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cudaLaunchConfig_t config = *configuration(8, 1).get();
  cudaLaunchAttribute attribute = cluster_of(4);
  config.attrs = &attribute;
  config.numAttrs = 1;
  config.stream = stream;
  EXPECT_CUDA(cudaLaunchKernelExC(&config, kernel_any_cluster(), out.arguments()));
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphNode_t node = nullptr;
  std::size_t count = 1;
  ASSERT_CUDA(cudaGraphGetNodes(graph, &node, &count));
  ASSERT_EQ(count, 1U);
  cudaLaunchAttributeValue value{};
  EXPECT_CUDA(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
  EXPECT_EQ(value.clusterDim.x, 4U);
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  run(exec, out, 4);
  EXPECT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_CUDA(cudaStreamDestroy(stream));
}

}  // namespace

#include "runtime/device/cuda/work_recorder.h"

#include "runtime/base/error.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_stream.h"

namespace hpe::device::cuda {

namespace {

// Holds a stream of the work_recorder, and the graph that the stream will run.
class recorded_graph final : public recorded_work {
 public:
  recorded_graph(work_recorder& owner, const driver& cu) : owner_(owner), cu_(cu), stream_(owner.take()) {}
  // The driver keeps an instance that still runs until the instance has ended.
  ~recorded_graph() override {
    if (instance_ != nullptr) cu_.cuGraphExecDestroy(instance_);
    owner_.give_back(stream_);
  }

  [[nodiscard]] stream& on() noexcept override { return stream_; }
  timepoint queue() override { return stream_.launch(instance_); }

  void instantiate(CUgraph graph) {
    const CUresult made = cu_.cuGraphInstantiate(&instance_, graph, 0);
    cu_.cuGraphDestroy(graph);
    cu_.check(made, "instantiating a graph");
  }

 private:
  work_recorder& owner_;
  const driver& cu_;
  cuda_stream& stream_;
  CUgraphExec instance_ = nullptr;
};

}  // namespace

std::unique_ptr<recorded_work> work_recorder::record(const std::function<int(void*)>& function) {
  HPE_REQUIRE(
      cu_.cuStreamBeginCapture != nullptr && cu_.cuStreamEndCapture != nullptr && cu_.cuGraphInstantiate != nullptr &&
          cu_.cuGraphLaunch != nullptr && cu_.cuGraphDestroy != nullptr && cu_.cuGraphExecDestroy != nullptr,
      HPE_ERROR_NOT_SUPPORTED,
      "hpeEnqueue needs CUDA graphs, which the CUDA driver of this machine lacks; hpeEnqueueLocked works without");
  device_.require_alive();
  const entered here(cu_, device_.context());  // makes the context, in which a new stream is made
  auto recorded = std::make_unique<recorded_graph>(*this, cu_);
  recorded->instantiate(capture(static_cast<cuda_stream&>(recorded->on()).handle(), function));
  return recorded;
}

CUgraph work_recorder::capture(CUstream stream, const std::function<int(void*)>& function) {
  // Calls that CUDA forbids during captures of other modes are allowed, such as allocations and the loading of modules.
  cu_.check(cu_.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "beginning a capture");
  CUgraph graph = nullptr;
  int result = 0;
  try {
    // `function` may make another context current.
    const entered for_function(cu_, device_.context(), entered::what_follows_may_replace_it);
    result = function(stream);
  } catch (...) {
    if (cu_.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && graph != nullptr) cu_.cuGraphDestroy(graph);
    throw;
  }
  const CUresult ended = cu_.cuStreamEndCapture(stream, &graph);
  if (result != 0 && graph != nullptr) cu_.cuGraphDestroy(graph);
  HPE_REQUIRE(result == 0, HPE_ERROR_LAUNCH_FAILED,
              "the function that was to queue work on device {} returned {} instead of 0", device_.index(), result);
  HPE_REQUIRE(
      ended == CUDA_SUCCESS, HPE_ERROR_LAUNCH_FAILED,
      "the function that was to queue work on device {} made a call that CUDA cannot capture ({}), for example it "
      "waited for its stream; hpeEnqueueLocked and hpeAcquire allow such calls",
      device_.index(), cu_.words_for(ended));
  return graph;
}

cuda_stream& work_recorder::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!unused_.empty()) {
      cuda_stream& taken = *unused_.back();
      unused_.pop_back();
      return taken;
    }
    unused_.reserve(++made_);  // space for all streams, so that give_back() needs no memory
  }
  return static_cast<cuda_stream&>(device_.create_stream(priority::launch));
}

void work_recorder::give_back(cuda_stream& unused) noexcept {
  const std::lock_guard lock(mutex_);
  unused_.push_back(&unused);
}

}  // namespace hpe::device::cuda

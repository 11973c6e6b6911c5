#include <utility>

#include "apps/sort/repeated_sort.h"
#include "hpe/cuda.hpp"

namespace hpe::sort {

namespace {

bool same(std::span<std::byte> a, std::span<std::byte> b) { return a.data() == b.data() && a.size() == b.size(); }

bool same(const local_range& a, const local_range& b) {
  return a.device == b.device && same(a.input, b.input) && same(a.output, b.output) && same(a.workspace, b.workspace) &&
         same(a.scratch, b.scratch);
}

}  // namespace

class repeated_sort::recording {
 public:
  explicit recording(const local_sort& how) : how_(how) {}
  recording(const recording&) = delete;
  recording& operator=(const recording&) = delete;
  ~recording() { forget(); }

  cudaError_t queue(const local_range& range, cudaStream_t stream) {
    const bool again = same(range, last_);
    if (!again) forget();
    last_ = range;
    if (again && graph_ == nullptr && possible_) record(range);
    if (graph_ != nullptr) return cudaGraphLaunch(graph_, stream);
    return static_cast<cudaError_t>(how_.queue(range, stream));
  }

 private:
  /// Records the sort as a graph. A sort that cannot be recorded, for example a program's own sort, is queued without a
  /// graph.
  void record(const local_range& range) {
    cudaStream_t aside = nullptr;
    cudaGraph_t graph = nullptr;
    possible_ = cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking) == cudaSuccess &&
                cudaStreamBeginCapture(aside, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    if (possible_) {
      const bool queued = how_.queue(range, aside) == cudaSuccess;
      const bool ended = cudaStreamEndCapture(aside, &graph) == cudaSuccess;
      possible_ = queued && ended && cudaGraphInstantiate(&graph_, graph, 0) == cudaSuccess;
    }
    if (!possible_) {
      graph_ = nullptr;
      static_cast<void>(cudaGetLastError());  // clears the error, so that the program does not see it
    }
    if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
    if (aside != nullptr) static_cast<void>(cudaStreamDestroy(aside));
  }

  void forget() {
    if (graph_ != nullptr) static_cast<void>(cudaGraphExecDestroy(std::exchange(graph_, nullptr)));
  }

  const local_sort& how_;
  local_range last_{};
  cudaGraphExec_t graph_ = nullptr;
  bool possible_ = true;
};

repeated_sort::repeated_sort(const local_sort& how) : recording_(std::make_unique<recording>(how)) {}
repeated_sort::~repeated_sort() = default;
repeated_sort::repeated_sort(repeated_sort&&) noexcept = default;

void repeated_sort::run(const local_range& r) {
  const auto body = [&](cudaStream_t stream) { return recording_->queue(r, stream); };
  if (r.in_place())
    enqueue(r.device, body, inout(r.input), inout(r.workspace), inout(r.scratch));
  else
    enqueue(r.device, body, in(r.input), out(r.output), inout(r.scratch));
}

}  // namespace hpe::sort

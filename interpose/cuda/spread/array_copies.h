#pragma once

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "interpose/cuda/spread/dealt_memory.h"
#include "interpose/cuda/spread/program_lanes.h"

namespace hpe::cuda_hooks {

/// Copies of arrays in the memory of GPUs that read them whole, for launches in parts: a copy has the bytes that its
/// range had at a value of `contents`. For one thread at a time.
class array_copies {
 public:
  array_copies(const device::cuda::driver& cu, const joined_gpus& gpus) : cu_(cu), gpus_(gpus) {}

  /// Whether each GPU has the present bytes of the range, in a copy or in the range itself.
  [[nodiscard]] bool are_valid(const dealt_memory::range& r) const;

  /// The present bytes of the range in a GPU's memory, for work on the lane that is queued next, behind fork(). 0 if
  /// the memory is too short. Throws hpe::error if the driver refuses.
  [[nodiscard]] CUdeviceptr bring(const dealt_memory::range& r, unsigned gpu,
                                  const std::shared_ptr<program_lane>& lane);

  /// The program has queued a write of a range on this stream, a default stream being that of the current context: a
  /// copy that is filled later waits for it. A null stream stands for any.
  void written_on(CUstream stream);
  /// The stream is about to be destroyed.
  void forget_stream(CUstream stream);
  /// Gives up lanes that have ended, except those whose work goes on.
  void forget_ended_lanes();
  /// Streams may be about to end with their context: `ended`, or a primary one if that is null.
  void forget_streams(CUcontext ended);

  /// Frees the copies of a range. No work may use them.
  void forget(const dealt_memory::range& r);
  /// Frees all; false if there are none. No work may use them.
  bool forget_all();

 private:
  struct copy {
    CUdeviceptr memory = 0;
    std::uint64_t bytes = 0;
    std::uint64_t contents = ~std::uint64_t{0};  // none yet
    // Since it was filled; the first use of another lane waits for one of them. None: the work of all is done.
    std::set<std::shared_ptr<program_lane>> users;
  };
  [[nodiscard]] static bool is_all_on(const dealt_memory::range& r, unsigned gpu);
  [[nodiscard]] bool allocate(copy& made, std::uint64_t bytes, unsigned gpu) const;
  void wait_for_writers(CUstream waiting, unsigned gpu, CUstream own);
  void fill(copy& to, const dealt_memory::range& r, unsigned gpu, const std::shared_ptr<program_lane>& lane);
  void free(const copy& c, unsigned gpu) const;

  const device::cuda::driver& cu_;
  const joined_gpus& gpus_;
  std::map<std::pair<CUdeviceptr, unsigned>, copy> all_;  // by range and GPU
  std::set<std::pair<CUcontext, CUstream>> writers_;
  std::set<CUcontext> contexts_of_others_;  // of writers that are not among them
};

}  // namespace hpe::cuda_hooks

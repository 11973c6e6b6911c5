#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "interpose/cuda/interposer.h"
#include "interpose/cuda/spread/noted_write.h"
#include "interpose/cuda/work/launch_scope.h"
#include "interpose/cuda/work/queued_uses.h"
#include "interpose/cuda/work/queuing_threads.h"

namespace hpe::cuda_hooks {

/// Which default stream a program uses, by how it was compiled.
enum class flavour : std::uint8_t { legacy, per_thread };
using enum flavour;

inline CUstream default_stream(flavour f) { return f == legacy ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD; }
inline CUstream named(CUstream stream, flavour f) { return stream == nullptr ? default_stream(f) : stream; }
/// The stream of an entry with or without an argument for it.
template <flavour Flavour, class... Stream>
CUstream stream_of(Stream... stream) {
  CUstream in = default_stream(Flavour);
  ((in = named(stream, Flavour)), ...);
  return in;
}

/// Held by a hook while it queues device work of the program, or work of hpe in the program's memory, for which hpe
/// waits itself. Tells all who have to know the work: adopted memory, waits of calls, and spreading. Costs a few stores
/// and loads if there are none.
class device_work {
 public:
  /// Work that may use any memory.
  device_work() : device_work(std::initializer_list<used_range>{}) {}
  explicit device_work(CUstream stream) : device_work(stream, std::initializer_list<used_range>{}) {}
  /// Work that uses these ranges of device memory (host memory is ignored). An empty list means any memory.
  device_work(std::initializer_list<used_range> ranges) : device_work(unknown_stream(), ranges) {}
  device_work(CUstream stream, std::initializer_list<used_range> ranges)
      : here_(queuing_threads::mine()), stream_(stream) {
    queuing_threads::enter(here_);
    if (is_told()) [[unlikely]]
      begin(ranges);
    written_.begin(stream, ranges);
  }
  /// A kernel launch: uses any memory or, by HPE_SCOPE, the memory that its parameters point to. In a program that is
  /// spread over GPUs, spreading::launch notes what it writes.
  device_work(CUstream stream, const kernel_launch& launch) : here_(queuing_threads::mine()), stream_(stream) {
    queuing_threads::enter(here_);
    if (is_told()) [[unlikely]]
      begin(launch);
  }
  ~device_work() {
    if (begun_) [[unlikely]]
      end();
    if (needs_wait_) {
      queuing_threads::count(here_, stream_);
      if (queued_uses::kept()) [[unlikely]]
        note();
    }
    queuing_threads::leave(here_);
  }

  /// Whether the uses of work must be known when it is queued: CPU code has touched device memory, or calls wait for
  /// the users of their memory only.
  [[nodiscard]] static bool is_told() noexcept { return adopted_memory::any() || queued_uses::kept(); }

  /// The caller waits for this work itself, so later waits of hpe need not.
  void needs_no_wait() noexcept {
    needs_wait_ = false;
    written_.on_unknown_stream();
  }

  device_work(const device_work&) = delete;
  device_work& operator=(const device_work&) = delete;

  /// Whether the work must not be queued; result() is then the program's result.
  [[nodiscard]] bool failed() const noexcept { return result_ != CUDA_SUCCESS; }
  [[nodiscard]] CUresult result() const noexcept { return result_; }

 private:
  void begin(std::initializer_list<used_range> ranges);
  void begin(const kernel_launch& launch);
  void end() noexcept;
  void note() noexcept;

  queuing_threads::place& here_;
  CUstream stream_;
  noted_write written_;
  adopted_memory::work_in_flight in_flight_;
  std::unique_ptr<std::vector<queued_uses::range>> used_;  // for queued_uses; nullptr: any memory
  bool begun_ = false;
  bool needs_wait_ = true;
  CUresult result_ = CUDA_SUCCESS;
};

}  // namespace hpe::cuda_hooks

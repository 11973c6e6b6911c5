#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "interpose/cuda/spread/array_copies.h"
#include "interpose/cuda/spread/dealt_memory.h"
#include "interpose/cuda/spread/launch_clock.h"
#include "interpose/cuda/spread/part_kernels.h"
#include "interpose/cuda/spread/program_lanes.h"
#include "interpose/cuda/spread/used_memory.h"
#include "runtime/base/thread_safety.h"
#include "runtime/spread/planner.h"

namespace hpe::cuda_hooks {

class program_contexts;

/// A launch of a kernel by the program.
struct spread_launch {
  CUfunction function = nullptr;  // or a CUkernel
  spread::dimension grid{1, 1, 1}, block{1, 1, 1};
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;  // never null: default streams by their names
  void** parameters = nullptr;
  void** extra = nullptr;
  const char* obstacle = nullptr;  // why such a launch stays on one GPU; null: it may be spread
};

/// A program for one GPU on all (hpe run --spread). To the program device 0 has the memory of all; its large
/// allocations lie in parts on them, and launches run in parts where that is faster. Thread-safe; one launch is queued
/// at a time.
class spreading {
 public:
  /// Null in a process that does not spread its kernels, and before the program has a context.
  [[nodiscard]] static spreading* active() noexcept { return the_one.load(std::memory_order_acquire); }
  /// Whether HPE_SPREAD is 1.
  [[nodiscard]] static bool wanted() noexcept;
  /// Whether device 0 stands for several GPUs: HPE_SPREAD is 1, and they reach each other.
  [[nodiscard]] static bool joins_gpus(const device::cuda::driver& cu) noexcept;
  /// The program has a context of device 0. Makes the one object, unless the driver refuses, which is logged.
  static void begin(const device::cuda::driver& cu, program_contexts& program) noexcept;

  /// Queues a launch in parts, or calls alone(), which queues it as the program launches it.
  CUresult launch(const spread_launch& what, const std::function<CUresult()>& alone);
  /// While the lock exists, no array gets another place. To be held while device work other than launches is queued.
  [[nodiscard]] std::shared_lock<std::shared_mutex> keep_places() { return std::shared_lock(places_); }
  /// Such work has been queued, and writes the allocation at an address, or perhaps any. The stream is null if it is
  /// not known.
  void writes(CUdeviceptr address, CUstream stream);
  void writes_anything(CUstream stream);

  /// Allocates memory that lies on several GPUs. Nothing for allocations that the driver is to make.
  std::optional<CUresult> allocate(CUdeviceptr* made, std::size_t bytes);
  /// Rows of memory, each at a multiple of the pitch.
  std::optional<CUresult> allocate_rows(CUdeviceptr* made, std::size_t* pitch, std::size_t width, std::size_t rows);
  /// The extent of the memory that lies on several GPUs and starts at an address; 0 if there is none.
  [[nodiscard]] std::size_t starts_at(CUdeviceptr address);
  /// Frees such memory, after all work. While a stream is captured, which a wait would end, the memory stays until a
  /// later call allocates or frees some.
  CUresult free(CUdeviceptr address);

  struct range {
    CUdeviceptr base = 0;
    std::size_t bytes = 0;  // that the program asked for
  };
  /// The allocation on several GPUs that contains an address.
  [[nodiscard]] std::optional<range> range_at(CUdeviceptr address);
  [[nodiscard]] joined_gpus::memory all_memory() const { return gpus_.all_memory(); }
  [[nodiscard]] CUcontext context() const { return gpus_.context(0); }
  /// Whether the calling thread uses that context.
  [[nodiscard]] bool is_current() const;
  /// The program has freed memory of the driver's.
  void frees_other();

  /// The program has unloaded a module or library.
  void forget_handles();
  /// A stream of the program is about to end, or the calling thread and with it the stream that it has for itself.
  void ends_stream(CUstream stream);
  /// A context that the program has made is about to end; null: a primary one may be, or a pool.
  void ends_context(CUcontext ended);
  /// The program ends all that the first GPU's context has.
  void resets();
  /// The error of a part on another GPU, or `result` if that is an error or there is none.
  [[nodiscard]] CUresult or_failure(CUresult result);

 private:
  spreading(const device::cuda::driver& cu, program_contexts& program, const std::string& cut);

  struct decided {
    std::vector<spread::block_range> parts;  // of each GPU; empty: the program's own launch
    std::vector<std::uint32_t> copied;       // pointers (kernel_model::pointers) that get addresses of copies
    std::string reason;
    struct other_place {
      CUdeviceptr base = 0;
      std::vector<spread::home_run> homes;
      std::string words;
    };
    std::vector<other_place> moves;  // of arrays, before the launch
  };
  [[nodiscard]] decided decide(part_kernel& kernel, const spread_launch& what, std::vector<std::byte>& parameters)
      HPE_REQUIRES(mutex_);
  void move(const decided::other_place& to) HPE_REQUIRES(mutex_);
  /// Frees what captures have held up. Returns an error of earlier work.
  CUresult free_left();
  /// Says why the launch cannot run in parts, or nothing and makes it ready.
  [[nodiscard]] std::string prepare(part_kernel& kernel, const spread_launch& what, std::shared_ptr<program_lane>& lane)
      HPE_REQUIRES(mutex_);
  CUresult launch_parts(const part_kernel& kernel, const spread_launch& what, const std::vector<std::byte>& parameters,
                        const decided& how, const std::shared_ptr<program_lane>& lane) HPE_REQUIRES(mutex_);
  void bring_copies(const part_kernel& kernel, const decided& how, unsigned gpu,
                    const std::shared_ptr<program_lane>& lane, std::vector<std::byte>& parameters) HPE_REQUIRES(mutex_);
  void note_writes(const part_kernel& kernel, const std::vector<std::byte>& parameters, CUstream stream)
      HPE_REQUIRES(mutex_);
  void note_write(dealt_memory::range& r, CUstream stream) HPE_REQUIRES(mutex_);
  void note_any_write(CUstream stream) HPE_REQUIRES(mutex_);

  inline static constinit std::atomic<spreading*> the_one{nullptr};

  const device::cuda::driver& cu_;
  program_contexts& program_;
  const bool cuts_evenly_;
  std::shared_mutex places_;  // locked for a move; taken before mutex_
  mutex mutex_;
  joined_gpus gpus_;
  dealt_memory memory_ HPE_GUARDED_BY(mutex_);
  part_kernels kernels_ HPE_GUARDED_BY(mutex_);
  program_lanes lanes_ HPE_GUARDED_BY(mutex_);
  array_copies copies_ HPE_GUARDED_BY(mutex_);
  used_memory used_ HPE_GUARDED_BY(mutex_);
  spread::planner planner_ HPE_GUARDED_BY(mutex_);
  launch_clock clock_ HPE_GUARDED_BY(mutex_);
  // Ranges that the program has freed during a capture.
  std::vector<CUdeviceptr> left_ HPE_GUARDED_BY(mutex_);
  std::uint64_t writes_ HPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t writes_elsewhere_ HPE_GUARDED_BY(mutex_) = 1;  // of memory that is not dealt, constants too
  bool was_reset_ HPE_GUARDED_BY(mutex_) = false;
};

}  // namespace hpe::cuda_hooks

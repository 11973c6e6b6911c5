#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "hpe/hpe.h"
#include "interpose/cuda/oversubscribed/memory_box.h"
#include "interpose/cuda/oversubscribed/movable_objects.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::core {
class runtime;
}
namespace hpe::device {
class stream;
}

namespace hpe::cuda_hooks {

/// The memory of hpe that a piece of device work uses.
struct movable_use {
  bool everything = false;  ///< any memory of hpe that the device reaches; accesses is ignored
  std::vector<hpeAccess> accesses;
  [[nodiscard]] bool none() const noexcept { return !everything && accesses.empty(); }
};

/// Memory of an unmodified CUDA program that may be larger than its GPUs (hpe run --oversubscribe). Large allocations
/// are memory of hpe's own runtime, which this object starts. Each piece of device work that uses them is put into
/// hpe's order: hpe brings the data into device memory, the program's stream waits for hpe, the program's call queues
/// the work there, and hpe waits for the stream before it takes the memory for other data. Thread-safe.
class oversubscribed {
 public:
  /// Smaller allocations are the driver's, and always in device memory.
  static constexpr std::size_t smallest = std::size_t{1} << 20;

  /// Whether HPE_OVERSUBSCRIBE is set to "on", as `hpe run --oversubscribe` does.
  [[nodiscard]] static bool wanted() noexcept;
  /// The object, once the program has allocated memory of hpe; before that, and where it is not wanted, null.
  [[nodiscard]] static oversubscribed* active() noexcept { return the_one.load(std::memory_order_acquire); }

  /// Allocates on the device of the calling thread's context. Nothing for allocations that the driver is to make: small
  /// ones, and all if it is not wanted or hpe's runtime cannot be started.
  [[nodiscard]] static std::optional<CUresult> allocate(const device::cuda::driver& cu, CUdeviceptr* made,
                                                        std::size_t bytes);
  /// Waits for work that uses the allocation, and frees it. Nothing if no allocation of hpe starts there.
  [[nodiscard]] std::optional<CUresult> free(CUdeviceptr address);
  /// Waits for the work in a device's primary context and frees the allocations there, in place of a reset.
  CUresult free_all(CUdevice device);

  [[nodiscard]] movable_objects& objects() noexcept { return objects_; }
  /// The memory of the device of the calling thread's context as the program sees it: what hpe may use of it, and what
  /// the program's allocations leave of that.
  struct amounts {
    std::size_t free = 0;
    std::size_t total = 0;
  };
  [[nodiscard]] std::optional<amounts> memory() const;
  /// The primary context of an object's device.
  [[nodiscard]] CUcontext context_of(const movable_object& object) const;

  /// What a kernel uses: the objects that contain one of the addresses among its parameters; without them, everything.
  [[nodiscard]] movable_use use_of(const std::optional<std::vector<CUdeviceptr>>& parameters) const;
  /// What work uses that names ranges of memory.
  struct range {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    hpeAccessMode mode = HPE_INOUT;
  };
  [[nodiscard]] movable_use use_of(std::span<const range> ranges) const;

  /// Calls queue(), which queues work of the program on a stream, in hpe's order. A null stream means that the stream
  /// is not known; then the work is done when the call returns. Returns queue's result, or CUDA_ERROR_OUT_OF_MEMORY,
  /// with a line in the log, if the memory cannot be in device memory at once.
  CUresult run(CUstream stream, const movable_use& use, const std::function<CUresult()>& queue);

  /// Calls the driver's call(), which queues no work, but looks at the memory. Results as of run().
  CUresult look(const movable_use& use, const std::function<CUresult()>& call);

  /// A copy of bytes; piece(offset, bytes) queues a part of it. Nothing if no memory of hpe takes part. waits: the call
  /// returns when the bytes are there.
  std::optional<CUresult> copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream, bool waits,
                               const std::function<CUresult(std::size_t, std::size_t)>& piece);
  /// Work that overwrites a range, whatever its size; piece(offset, bytes) queues a part of it. Nothing if the range is
  /// no memory of hpe. unit: the sizes of parts are multiples of it.
  std::optional<CUresult> overwrite(CUdeviceptr to, std::size_t bytes, std::size_t unit, CUstream stream,
                                    const std::function<CUresult(std::size_t, std::size_t)>& piece);
  /// A copy or fill of rows and planes, whatever their size; piece(part) queues a part of it. A side without a place is
  /// no memory with addresses. Nothing if no memory of hpe takes part.
  std::optional<CUresult> use_box(const std::optional<box_place>& to, const std::optional<box_place>& from,
                                  const box_part& whole, CUstream stream,
                                  const std::function<CUresult(const box_part&)>& piece);

 private:
  oversubscribed(const device::cuda::driver& cu, core::runtime& hpe);
  static oversubscribed* instance(const device::cuda::driver& cu);

  /// Where a piece of work goes.
  struct place {
    CUcontext context = nullptr;
    unsigned device = 0;
    bool captured = false;
  };
  [[nodiscard]] std::optional<place> place_of(CUstream stream) const;
  CUresult run(const place& where, CUstream stream, const movable_use& use, const std::function<CUresult()>& queue);
  [[nodiscard]] std::optional<unsigned> number_of(CUdevice device) const;
  [[nodiscard]] std::optional<unsigned> device_of(CUcontext context) const;
  /// hpe's stream that stands for one of the program's.
  device::stream& beside(unsigned device, CUstream stream);
  CUresult between_streams(CUstream hpe_stream, bool waits, CUstream stream, CUcontext context,
                           const std::function<CUresult()>& queue) const;
  CUresult follow(CUstream later, CUcontext of_later, CUstream earlier, CUcontext of_earlier) const;
  /// How many bytes are little beside a device's memory; a multiple of 512.
  [[nodiscard]] std::size_t bytes_of_part(unsigned device) const;
  /// Calls part(offset, bytes) for such parts, until one fails.
  CUresult in_parts(unsigned device, std::size_t bytes, std::size_t unit,
                    const std::function<CUresult(std::size_t, std::size_t)>& part) const;
  [[nodiscard]] bool is_in_host_memory(CUdeviceptr address) const;

  static constinit std::atomic<oversubscribed*> the_one;
  static constexpr std::size_t most_streams = 32;  // of hpe, for each device

  const device::cuda::driver& cu_;
  core::runtime& hpe_;
  movable_objects objects_;
  std::atomic<bool> told_{false};  // that work could not be queued
  mutex mutex_;
  std::map<std::pair<unsigned, CUstream>, device::stream*> beside_ HPE_GUARDED_BY(mutex_);
  std::map<unsigned, std::vector<device::stream*>> streams_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::cuda_hooks

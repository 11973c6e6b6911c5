#pragma once

/// What a program is written against that has no hpe: devices with memory of their own, launches, and copies between
/// devices by one of the schemes of J. Cabezas, "On the Programmability of Multi-GPU Computing Systems" (2015), section
/// 5.3: naive (synchronous copies of pageable memory), pinned (synchronous, through pinned memory), double-buffered
/// (in pieces, through two pinned buffers), and peer (from device to device).

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hpe/hpe.hpp"
#include "runtime/device/device.h"
#include "runtime/memory/uvas.h"

namespace hpe::bench {

enum class copy_scheme { naive, pinned, double_buffered, peer };
inline constexpr copy_scheme all_schemes[] = {copy_scheme::naive, copy_scheme::pinned, copy_scheme::double_buffered,
                                              copy_scheme::peer};
[[nodiscard]] const char* name_of(copy_scheme s);

/// Bytes that go from one device to another. What `ready` stands for runs before; so do the target's reads of the
/// place.
struct transfer {
  int from, to;
  const void* source;
  void* target;
  std::size_t bytes;
  timepoint source_ready, target_ready;
};

class team {
 public:
  /// The first `devices` of as many as hpe has, so that each soft one has as many threads.
  team(int devices, std::size_t bytes_each);

  /// How exchange copies from now on. left_out: it copies nothing, which tells how long everything else takes.
  void use(copy_scheme scheme, bool left_out);
  [[nodiscard]] bool left_out() const { return left_out_; }

  [[nodiscard]] int devices() const { return static_cast<int>(parts_.size()); }
  [[nodiscard]] bool on_gpus() const { return on_gpus_; }
  [[nodiscard]] unsigned units() const { return devices_->at(0).info().compute_units; }

  /// Memory of a device, zero, on a boundary of the granule; it lives as long as the team.
  template <class T>
  [[nodiscard]] T* take(int device, std::size_t count) {
    return reinterpret_cast<T*>(take_bytes(device, count * sizeof(T)));
  }
  /// Within the memory of a device. Waits.
  void copy(int device, void* to, const void* from, std::size_t bytes);
  /// Host memory to a device, and back. Both wait.
  void put(int device, void* to, const void* from, std::size_t bytes);
  void get(int device, void* to, const void* from, std::size_t bytes);

  [[nodiscard]] device::kernel_id find(const std::string& module, const std::string& kernel);

  /// Queues a launch behind what the device was given before.
  template <class Parameters>
  timepoint launch(int device, device::kernel_id kernel, const hpeShape& shape, const Parameters& parameters) {
    return launch_bytes(device, kernel, shape, std::as_bytes(std::span(&parameters, 1)));
  }
  /// Likewise what a function queues on a stream of CUDA; GPUs only. It returns 0 or an error.
  timepoint enqueue(int device, const std::function<int(void* stream)>& function);
  /// The last of these.
  [[nodiscard]] timepoint last(int device) const;

  /// All transfers; later launches on both sides of each run after it. Under peer it returns at once, else it waits.
  void exchange(const std::vector<transfer>& all);

  void finish();

 private:
  struct part {
    device::stream *work, *copies;
    std::byte* free;                  ///< the next memory of take
    std::vector<std::byte> pageable;  ///< naive
  };
  std::byte* take_bytes(int device, std::size_t bytes);
  timepoint launch_bytes(int device, device::kernel_id kernel, const hpeShape& shape,
                         std::span<const std::byte> parameters);
  [[nodiscard]] part& at(int device) { return parts_[static_cast<std::size_t>(device)]; }
  [[nodiscard]] std::byte* pinned(const void* device_memory) const { return space_.alias(device_memory); }
  void wait(timepoint point);
  void peer(const transfer& t);
  void double_buffered(const transfer& t);
  void through_host(const std::vector<transfer>& all);

  copy_scheme scheme_ = copy_scheme::peer;
  bool left_out_ = false;
  memory::uvas space_;
  std::unique_ptr<device::device_set> devices_;
  std::vector<part> parts_;
  bool on_gpus_ = false;
};

}  // namespace hpe::bench

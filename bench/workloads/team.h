#pragma once

/// The functions that the hand-written versions call: devices with separate memories, launches, and copies between
/// devices by one of the schemes of J. Cabezas, "On the Programmability of Multi-GPU Computing Systems" (2015), section
/// 5.3: naive (synchronous copies of pageable memory), pinned (synchronous copies of pinned memory), double-buffered
/// (copies in chunks, through two pinned buffers), and peer (copies from device to device).

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

/// A copy from one device to another. The copy begins after the timepoints source_ready and target_ready.
struct transfer {
  int from, to;
  const void* source;
  void* target;
  std::size_t bytes;
  timepoint source_ready, target_ready;
};

class team {
 public:
  /// Opens as many devices as hpe opens, so that soft devices have the same number of threads, and uses the first
  /// `devices` of them. bytes_each: the memory of each device in bytes.
  team(int devices, std::size_t bytes_each);

  /// Sets the scheme of exchange(). left_out: exchange() copies nothing, so that the rest of the program can be timed.
  void use(copy_scheme scheme, bool left_out);
  [[nodiscard]] bool left_out() const { return left_out_; }

  [[nodiscard]] int devices() const { return static_cast<int>(parts_.size()); }
  [[nodiscard]] bool on_gpus() const { return on_gpus_; }
  [[nodiscard]] unsigned units() const { return devices_->at(0).info().compute_units; }

  /// Returns zeroed memory of a device, aligned to a granule, which is valid as long as the team exists.
  template <class T>
  [[nodiscard]] T* take(int device, std::size_t count) {
    return reinterpret_cast<T*>(take_bytes(device, count * sizeof(T)));
  }
  /// Copies within the memory of a device, and waits for the copy.
  void copy(int device, void* to, const void* from, std::size_t bytes);
  /// Copy from host memory to a device (put) and back (get). Both wait for the copy.
  void put(int device, void* to, const void* from, std::size_t bytes);
  void get(int device, void* to, const void* from, std::size_t bytes);

  [[nodiscard]] device::kernel_id find(const std::string& module, const std::string& kernel);

  /// Queues a launch after the device's earlier launches, and returns the timepoint that is reached when the launch has
  /// finished.
  template <class Parameters>
  timepoint launch(int device, device::kernel_id kernel, const hpeShape& shape, const Parameters& parameters) {
    return launch_bytes(device, kernel, shape, std::as_bytes(std::span(&parameters, 1)));
  }
  /// Queues work as launch() does; `function` queues the work on a CUDA stream. Can be called only on GPUs. `function`
  /// returns 0 or an error code.
  timepoint enqueue(int device, const std::function<int(void* stream)>& function);
  /// Returns the timepoint of the last work queued on the device.
  [[nodiscard]] timepoint last(int device) const;

  /// Copies all transfers. Later launches on the source and target device of a transfer begin after the transfer. With
  /// the scheme peer, returns at once; with the other schemes, waits for the copies.
  void exchange(const std::vector<transfer>& all);

  void finish();

 private:
  struct part {
    device::stream *work, *copies;
    std::byte* free;                  ///< where the next memory that take() returns begins
    std::vector<std::byte> pageable;  ///< pageable memory for the scheme naive
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

#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/core/allocator.h"
#include "runtime/core/device_work.h"

/// What the handles of the C interface point to. They live as long as the runtime.
struct hpeKernel_st {
  hpe::device::kernel_id id;
  std::string name;
};
struct hpeModule_st {
  std::uint32_t id = 0;
  std::string path;
  std::map<std::string, std::unique_ptr<hpeKernel_st>> kernels;
};

namespace hpe::core {

/// Modules, kernels and their launches. Any thread.
class launcher {
 public:
  launcher(const environment& env, allocator& memory);

  [[nodiscard]] hpeModule load(const std::string& path);
  [[nodiscard]] hpeKernel find(hpeModule module, const std::string& name);

  /// See hpeLaunch. accesses empty and everything true: any allocation may be used.
  void launch(unsigned device, hpeKernel kernel, const device::shape& shape, std::span<const std::byte> parameters,
              std::span<const hpeAccess> accesses, bool everything);

  /// See hpeEnqueue. function is called under the locks of the regions.
  void enqueue(unsigned device, const std::function<int(void*)>& function, std::span<const hpeAccess> accesses,
               bool everything);

  /// Adds the last point of each compute stream of a device.
  void add_last_points(unsigned device, coherence::point_set& points) const;

 private:
  static constexpr std::size_t streams_per_device = 4;
  struct compute {
    std::array<device::stream*, streams_per_device> streams{};
    std::atomic<unsigned> next{0};
  };

  /// Releases the accesses and calls command with the stream to queue the work on; it gives the end of the work.
  template <class Command>
  void queue(unsigned device, std::span<const hpeAccess> accesses, bool everything, const Command& command);
  [[nodiscard]] std::vector<device_access> resolve(std::span<const hpeAccess> accesses) const;
  [[nodiscard]] std::vector<device_access> all_regions() const;
  /// Under the region's mutex.
  [[nodiscard]] bool reaches(unsigned device, const device_access& access) const;
  device::stream& choose_stream(unsigned device, const coherence::point_set& after);

  environment env_;
  allocator& memory_;
  std::vector<std::unique_ptr<compute>> compute_;

  std::mutex modules_mutex_;
  std::map<std::string, std::unique_ptr<hpeModule_st>> modules_;
};

}  // namespace hpe::core

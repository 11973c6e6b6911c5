#include "interpose/soft/cudart/device/announced_uses.h"

#include "hpe/announce.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "runtime/base/log.h"

namespace hpe::cudart {

namespace {

class told final : public announced_work {
 public:
  explicit told(hpeAnnouncement handle) : handle_(handle) {}
  ~told() override { ::hpeAnnouncedEnd(handle_); }
  told(const told&) = delete;
  told& operator=(const told&) = delete;
  void begin() override { ::hpeAnnouncedBegin(handle_); }

 private:
  hpeAnnouncement handle_;
};

/// Returns the devices whose memory kernels on the devices `run_on` may use. Both sets contain a bit for each device.
std::uint64_t homes_of_kernels(const device_table& devices, const memory_table& memory, std::uint64_t run_on) {
  const int count = devices.count();
  if (run_on != 0 && memory.any_for_other_devices()) return (std::uint64_t{1} << count) - 1;
  std::uint64_t homes = run_on;
  for (int device = 0; device < count; ++device) {
    for (int peer = 0; peer < count && (run_on >> device & 1U) != 0; ++peer) {
      if (peer != device && devices.peer_enabled(device, peer)) homes |= std::uint64_t{1} << peer;
    }
  }
  return homes;
}

}  // namespace

std::shared_ptr<announced_work> announce_to_hpe(const device_table& devices, const memory_table& memory,
                                                const task_memory_uses& uses) {
  hpeAnnouncement handle = nullptr;
  const std::uint64_t homes = homes_of_kernels(devices, memory, uses.kernels_on);
  if (::hpeAnnounce(&handle, homes, uses.ranges.data(), uses.ranges.size()) != HPE_SUCCESS) {
    log(log_level::debug, "work in a stream is not announced: {}", ::hpeGetLastErrorMessage());
    return nullptr;
  }
  return std::make_shared<told>(handle);
}

}  // namespace hpe::cudart

#pragma once

/// The memory that the owner and its soft devices share: configuration, command rings, timelines, gates, link clocks.
/// It is an anonymous memory file, so it has no name that could be left behind.
///
/// The file has a section for each writer, and each process maps the sections that it needs, at addresses of its own.
/// The owner maps everything. A device reads the configuration, its own rings and the others' status; it writes its own
/// status and the common section, in which all processes sleep, wake and keep the time of links. The owner uses what a
/// device writes as sizes, positions or pointers only after comparing it with its own data.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/device/device.h"
#include "runtime/device/soft/shared/link.h"
#include "runtime/device/soft/shared/timeline.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

inline constexpr unsigned max_streams = 16;  // of one device
inline constexpr std::uint64_t ring_slots = 256;

struct command {
  enum class kind : std::uint32_t { copy, fill, launch, wait };

  kind what = kind::copy;
  std::uint32_t function = 0;          // launch
  std::uint32_t parameter_size = 0;    // launch
  std::uint32_t grid[3] = {1, 1, 1};   // launch
  std::uint32_t block[3] = {1, 1, 1};  // launch
  std::uint32_t shared_bytes = 0;      // launch
  std::uint32_t cluster[3] = {};       // launch
  bool cooperative = false;            // launch
  std::uint32_t team = 0;              // launch: the devices whose kernels wait for each other, bit d; 0: none
  std::uint64_t number = 0;            // launch: its number among the launches of all devices
  std::uint32_t timeline = 0;          // wait
  std::uint32_t value = 0;             // fill
  std::uint64_t point = 0;             // wait
  std::uint64_t destination = 0;       // copy, fill
  std::uint64_t source = 0;            // copy
  std::uint64_t bytes = 0;             // copy, fill
};

struct alignas(64) parameter_slot {
  std::byte bytes[most_parameters];
};

/// Written by the owner. Command n of a stream is in slot n % ring_slots, which is free again once n is completed.
struct command_ring {
  priority level = priority::waiting_host;
  std::array<command, ring_slots> commands{};
  std::array<parameter_slot, ring_slots> parameters{};

  [[nodiscard]] command& slot(std::uint64_t number) noexcept { return commands[number % ring_slots]; }
  [[nodiscard]] std::byte* parameters_of(std::uint64_t number) noexcept {
    return parameters[number % ring_slots].bytes;
  }
};

/// Written by the device, and by the owner after the device has died.
struct device_status {
  std::atomic<std::uint64_t> output{0};  // bytes in the file of kernel output
  std::array<char, 256> last_words{};    // why the device ended its own process
  std::array<timeline, max_streams> timelines{};
};

/// How devices run kernels of PTX.
struct ptx_execution {
  bool interprets = false;   // instead of compiling them
  bool in_lockstep = false;  // the threads of a warp
};

/// Written by the owner.
struct fabric_configuration {
  uvas_layout layout;
  topology shape;
  unsigned threads = 1;      // of each device
  unsigned core_shares = 0;  // parts into which the cores are divided, one for each device's kernels; 0: not divided
  ptx_execution ptx;
  link_limit host_limit;
  link_limit peer_limit;
  std::array<std::atomic<std::uint32_t>, max_devices> streams{};  // number of streams, by device
  std::atomic<std::uint32_t> lost{0};                             // lost devices, bit d
};

/// Written by all processes.
struct fabric_common {
  std::atomic<std::uint64_t> failure_order{0};
  gate_bells gates{};
  std::array<std::array<doorbell, max_streams>, max_devices> done{};  // rung when a stream has completed a command
  doorbell trouble;                                                   // rung when a device is lost or a kernel crashed

  // Both directions of each link: [0] towards the host or the switch, [1] away from it.
  std::array<std::array<link_clock, 2>, max_devices> host_links{};  // by switch
  std::array<std::array<link_clock, 2>, max_devices> ports{};       // by device, to its switch
};

class fabric {
 public:
  /// Differs between programs whose layouts of the fabric differ, as far as sizes tell.
  static constexpr std::uint32_t stamp = static_cast<std::uint32_t>(
      1'000'003 * (sizeof(fabric_configuration) + sizeof(fabric_common)) + sizeof(device_status) + sizeof(command));

  /// For the owner: makes the file, with an empty state of which only the topology is set.
  explicit fabric(const topology& shape);
  /// For a device: maps the owner's file.
  fabric(os::file_descriptor file, unsigned device);
  ~fabric();
  fabric(const fabric&) = delete;
  fabric& operator=(const fabric&) = delete;

  [[nodiscard]] int file() const noexcept { return file_.get(); }
  [[nodiscard]] fabric_configuration& configuration() const noexcept { return *configuration_; }
  [[nodiscard]] fabric_common& common() const noexcept { return *common_; }
  [[nodiscard]] device_status& status(unsigned device) const noexcept { return *status_[device]; }
  /// For the owner, and for the device of the ring.
  [[nodiscard]] command_ring& ring(unsigned device, unsigned stream) const noexcept { return rings_[device][stream]; }

  /// For the owner: adds a stream. Not thread-safe. Throws HPE_ERROR_NOT_SUPPORTED if the device has
  /// max_streams.
  unsigned create_stream(unsigned device, priority level);

  // Numbers of timelines name a device and a stream, and are never 0.
  [[nodiscard]] static std::uint32_t timeline_number(unsigned device, unsigned stream) noexcept {
    return 1 + device * max_streams + stream;
  }
  [[nodiscard]] static unsigned device_of(std::uint32_t timeline) noexcept { return (timeline - 1) / max_streams; }
  [[nodiscard]] static unsigned stream_of(std::uint32_t timeline) noexcept { return (timeline - 1) % max_streams; }
  /// nullptr if no stream has this number.
  [[nodiscard]] timeline* find_timeline(std::uint32_t number) const noexcept;

  /// Waits until the point of an existing timeline is reached. False at the deadline.
  bool wait(std::uint32_t timeline, std::uint64_t value, doorbell::deadline until) const noexcept;
  /// Publishes how far a timeline is, and wakes its waiters.
  void complete(std::uint32_t timeline, std::uint64_t value) const noexcept;

 private:
  struct mappings;

  os::file_descriptor file_;
  std::unique_ptr<mappings> mappings_;
  fabric_configuration* configuration_ = nullptr;
  fabric_common* common_ = nullptr;
  std::array<device_status*, max_devices> status_{};
  std::array<command_ring*, max_devices> rings_{};
};

}  // namespace hpe::device::soft

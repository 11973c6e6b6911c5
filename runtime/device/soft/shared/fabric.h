#pragma once

/// The fabric: the memory that the owner (the process that runs the program) and its soft devices share. It contains
/// the configuration, command rings, timelines, gates and link clocks. The memory is an anonymous memory file, so no
/// name remains in a file system.
///
/// The file has a section for the configuration, the common section, and for each device a section for the device's
/// status and one for the device's rings. Each process maps the sections that it needs; the addresses may differ
/// between processes. The owner maps all sections. A device reads the configuration, its own rings and the status of
/// other devices, and writes its own status and the common section. The common section contains the wait queues with
/// which processes sleep and wake each other, and the clocks of links. Before the owner uses a value that a device has
/// written as a size, position or pointer, it compares this value with data that no device can write.

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

inline constexpr unsigned max_streams = 16;  // the largest number of streams of one device
inline constexpr std::uint64_t ring_slots = 256;

/// A command of a stream. The comment beside each member names the kinds of commands that use the member.
struct command {
  enum class kind : std::uint32_t { copy, fill, launch, wait, fingerprint };

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
  std::uint64_t destination = 0;       // copy, fill, fingerprint
  std::uint64_t source = 0;            // copy, fingerprint
  std::uint64_t bytes = 0;             // copy (of a row), fill, fingerprint
  std::uint64_t rows = 1, stride = 0;  // copy: the rows, and the distance in bytes from one row to the next
  fingerprint_key key{};               // fingerprint
};

struct alignas(64) parameter_slot {
  std::byte bytes[most_parameters];
};

/// Written by the owner. Command n of a stream is in slot n % ring_slots. The slot is free again when the command has
/// completed.
struct command_ring {
  priority level = priority::waiting_host;
  std::array<command, ring_slots> commands{};
  std::array<parameter_slot, ring_slots> parameters{};

  [[nodiscard]] command& slot(std::uint64_t number) noexcept { return commands[number % ring_slots]; }
  [[nodiscard]] std::byte* parameters_of(std::uint64_t number) noexcept {
    return parameters[number % ring_slots].bytes;
  }
};

/// Written by the device. The owner also writes members of the timelines (timeline.h).
struct device_status {
  // The number of bytes that the device has written to the file with the output of kernels.
  std::atomic<std::uint64_t> output{0};
  // The number of blocks of a running kernel that do not end and leave no room for further blocks.
  std::atomic<std::uint64_t> crowd{0};
  std::array<char, 256> last_words{};  // why the device ended its own process
  std::array<timeline, max_streams> timelines{};
};

/// How devices run PTX kernels.
struct ptx_execution {
  bool interprets = false;  // devices interpret kernels instead of compiling them
  // A kernel begins in the interpreter, until its compilation would have taken as long (ptx/compiler/kernel_trial.h).
  bool begins_interpreted = false;
  bool in_lockstep = false;       // the threads of a warp run in lockstep
  bool finds_races = false;       // devices look for races in shared memory; requires `interprets`
  bool records_accesses = false;  // devices record which memory kernels access (recorded_accesses.h)
};

/// Written by the owner.
struct fabric_configuration {
  uvas_layout layout;
  topology shape;
  unsigned threads = 1;      // the number of threads of each device
  unsigned core_shares = 0;  // the number of parts into which the cores are divided among the devices; 0: not divided
  ptx_execution ptx;
  std::uint64_t prepared_memory = 0;  // how many bytes of pages a device may allocate before kernels or copies use them
  link_limit host_limit;
  link_limit peer_limit;
  std::array<std::atomic<std::uint32_t>, max_devices> streams{};  // number of streams, by device
  std::atomic<std::uint32_t> lost{0};                             // lost devices, bit d
};

/// Written by all processes.
struct fabric_common {
  std::atomic<std::uint64_t> failure_order{0};
  gate_queues gates{};
  std::array<std::array<wait_queue, max_streams>, max_devices>
      done{};          // its threads wake when a stream has completed a command
  wait_queue trouble;  // its threads wake when a device is lost or a kernel crashed

  // For each link, [0] is the direction towards the host or the switch, and [1] is the opposite direction.
  std::array<std::array<link_clock, 2>, max_devices> host_links{};  // by switch
  std::array<std::array<link_clock, 2>, max_devices> ports{};       // by device: the link to its switch
};

class fabric {
 public:
  /// A number that identifies the sizes of the fabric's structures. If the owner and hpe-softd are of different builds,
  /// their stamps usually differ.
  static constexpr std::uint32_t stamp = static_cast<std::uint32_t>(
      1'000'003 * (sizeof(fabric_configuration) + sizeof(fabric_common)) + sizeof(device_status) + sizeof(command));

  /// For the owner: creates the file and sets the topology. The owner must set the other members of the configuration.
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
  /// For the owner, and for the device to which the ring belongs.
  [[nodiscard]] command_ring& ring(unsigned device, unsigned stream) const noexcept { return rings_[device][stream]; }

  /// For the owner: adds a stream. Not thread-safe. Throws HPE_ERROR_NOT_SUPPORTED if the device already has
  /// max_streams streams.
  unsigned create_stream(unsigned device, priority level);

  // The number of a timeline names a device and a stream, and is never 0.
  [[nodiscard]] static std::uint32_t timeline_number(unsigned device, unsigned stream) noexcept {
    return 1 + device * max_streams + stream;
  }
  [[nodiscard]] static unsigned device_of(std::uint32_t timeline) noexcept { return (timeline - 1) / max_streams; }
  [[nodiscard]] static unsigned stream_of(std::uint32_t timeline) noexcept { return (timeline - 1) % max_streams; }
  /// Returns the timeline with this number; nullptr if no stream has this number.
  [[nodiscard]] timeline* find_timeline(std::uint32_t number) const noexcept;

  /// Waits until the point of an existing timeline is reached. Returns false at the deadline.
  bool wait(std::uint32_t timeline, std::uint64_t value, wait_queue::deadline until) const noexcept;
  /// Sets the completed value of a timeline to `value`, and wakes the threads that wait for the timeline.
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

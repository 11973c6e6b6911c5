#pragma once

/// The memory that the owner and its soft devices share: configuration, timelines, command rings, gates, link clocks.
/// It is an anonymous memory file, so it has no name that could be left behind.
///
/// The owner alone allocates in it; devices read what they are told about. Positions are offsets from the start,
/// because each process maps it at an address of its own.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/device/device.h"
#include "runtime/device/soft/link.h"
#include "runtime/device/soft/timeline.h"
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
  std::uint64_t number = 0;            // launch: among those of all devices
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

/// One stream. Command n is in slot n % ring_slots; its slot is free again once n is completed.
struct stream_block {
  timeline line;
  priority level = priority::waiting_host;
  std::array<command, ring_slots> commands{};
  std::uint64_t parameters = 0;  // offset of ring_slots parameter_slots
};

struct device_block {
  std::atomic<std::uint32_t> lost{0};
  std::atomic<std::uint64_t> output{0};                           // bytes of the file of what kernels printed
  std::array<std::atomic<std::uint64_t>, max_streams> streams{};  // offsets of stream_blocks; 0 is none
};

/// What stands at the head of the fabric.
struct fabric_state {
  uvas_layout layout;
  topology shape;
  unsigned threads = 1;        // of each device
  unsigned core_shares = 0;    // into which the cores are divided, one for the kernels of each device; 0: not at all
  bool interpret_ptx = false;  // instead of compiling it
  link_limit host_limit;
  link_limit peer_limit;
  std::atomic<std::uint64_t> failure_order{0};
  gate_bells gates{};
  std::array<device_block, max_devices> devices{};

  // Both directions of each link: [0] towards the host or the switch, [1] away from it.
  std::array<std::array<link_clock, 2>, max_devices> host_links{};  // by switch
  std::array<std::array<link_clock, 2>, max_devices> ports{};       // by device, to its switch
};

class fabric {
 public:
  /// Differs between programs that lay the fabric out differently, as far as sizes tell.
  static constexpr std::uint32_t stamp =
      static_cast<std::uint32_t>(1'000'003 * sizeof(fabric_state) + sizeof(stream_block) + sizeof(command));

  /// For the owner: makes the file, and an empty state with nothing but the number of devices known.
  explicit fabric(const topology& shape);
  /// For a device: maps the owner's file.
  explicit fabric(os::file_descriptor file);
  ~fabric();
  fabric(const fabric&) = delete;
  fabric& operator=(const fabric&) = delete;

  [[nodiscard]] int file() const noexcept { return file_.get(); }
  [[nodiscard]] fabric_state& state() const noexcept { return *state_; }

  /// For the owner: adds a stream. Not for two threads at once. Throws HPE_ERROR_NOT_SUPPORTED when the device has
  /// max_streams.
  unsigned create_stream(unsigned device, priority level);

  /// nullptr if there is none.
  [[nodiscard]] stream_block* find_stream(unsigned device, unsigned stream) const noexcept;
  [[nodiscard]] parameter_slot& parameters(const stream_block& stream, std::uint64_t command) const noexcept;
  [[nodiscard]] command& slot(stream_block& stream, std::uint64_t command) const noexcept {
    return stream.commands[command % ring_slots];
  }

  // timeline numbers name a device and a stream, and are never 0.
  [[nodiscard]] static std::uint32_t timeline_number(unsigned device, unsigned stream) noexcept {
    return 1 + device * max_streams + stream;
  }
  [[nodiscard]] static unsigned device_of(std::uint32_t timeline) noexcept { return (timeline - 1) / max_streams; }
  /// nullptr if no stream has this number.
  [[nodiscard]] timeline* find_timeline(std::uint32_t number) const noexcept;

 private:
  struct mapping;

  os::file_descriptor file_;
  std::unique_ptr<mapping> mapping_;
  fabric_state* state_ = nullptr;
};

}  // namespace hpe::device::soft

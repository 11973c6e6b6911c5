#pragma once

/// What the runtime needs from a device. Two families implement it: soft/ (processes) and cuda/ (GPUs), and one
/// contract test suite (tests/device/) is run on each.
///
/// Addresses. A pointer inside the UVAS (base <= p < base + size of the uvas_layout the set was opened with) names
/// device memory at that address, on the device that backs it. Any other pointer names host memory, which copies
/// may use only where it was registered.
///
/// Order. Commands of one stream run in the order they were queued. Between streams, of any devices of one set, order
/// comes from stream::wait alone.
///
/// Failure. Functions throw hpe::error. A function of a stream that throws has queued nothing and changed no byte. A
/// queued command that fails, or that could be queued in part only, does not stop its stream: its timepoint is
/// reached, device_set::status_of tells the error, and the set keeps it in take_failure. Functions that take something
/// away do not throw; their callers could do nothing about it. The log tells their failures. After a device is
/// lost every timepoint of its streams counts as reached within a second, with HPE_ERROR_DEVICE_LOST, and queuing on it
/// throws HPE_ERROR_DEVICE_LOST; other devices go on, and waits for the lost device's work are let through. (Not where
/// the CUDA driver takes all GPUs of a process with the one whose kernel failed: then all are lost, each in this way.)
///
/// Threads. Everything may be called from any thread; streams lock inside. Nothing here is called from a signal
/// handler, except gate::ring.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hpe/error.hpp"
#include "runtime/base/timepoint.h"
#include "runtime/base/uvas_layout.h"

namespace hpe::device {

class command_observer;
class ptx_capability;

/// The NUMA node of a device where nothing is to be gained from it, or nothing is known.
inline constexpr int unknown_node = -1;

struct properties {
  hpeDeviceKind kind = HPE_DEVICE_SOFT;
  std::string name;
  std::size_t memory_bytes = 0;
  unsigned compute_units = 0;
  int numa_node = unknown_node;  ///< the one that its link to the host ends at, on machines with several
  /// How many bytes at most are worth fetching ahead of a host that reads.
  std::size_t most_ahead = std::size_t{32} << 20;
};

struct memory_usage {
  std::size_t total = 0;
  std::size_t free = 0;
};

/// Who is served first where transfers share a link.
enum class priority : std::uint8_t { waiting_host, launch, prefetch, rolling };

struct shape {
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t team = 0;  // the devices that run parts of one launch, whose tiles may wait for each other; bit d
  // Of kernels of PTX:
  std::uint32_t shared_bytes = 0;  // dynamic shared memory of a block
  bool cooperative = false;        // all blocks run at once
  // Blocks of a cluster, which run at once; zeros: as the kernel declares, or none. Throws HPE_ERROR_NOT_SUPPORTED
  // where a CUDA driver is too old for them.
  std::uint32_t cluster[3] = {0, 0, 0};

  [[nodiscard]] bool asks_for_cluster() const noexcept { return cluster[0] != 0 || cluster[1] != 0 || cluster[2] != 0; }
};

/// A kernel as this device family knows it. Valid on every device of the set.
struct kernel_id {
  std::uint32_t module = 0;
  std::uint32_t function = 0;  ///< unique in the set
};

/// The most bytes of parameters. Kernels of PTX may have all of them, others HPE_MAX_PARAMETERS.
inline constexpr std::size_t most_parameters = 4096;

/// An in-order queue of work on one device. Owned by the set; lives as long as it.
class stream {
 public:
  virtual ~stream() = default;

  /// Queues a copy between device memory of this device, device memory of a peer that this device can access, and
  /// registered host memory. Both host: not supported.
  virtual timepoint copy(void* destination, const void* source, std::size_t bytes) = 0;

  /// Queues setting bytes of device memory to value.
  virtual timepoint fill(void* destination, std::uint8_t value, std::size_t bytes) = 0;

  /// Queues a kernel. parameters are copied before the call returns (at most most_parameters bytes).
  virtual timepoint launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) = 0;

  /// Work that the program queues itself. Calls function in the calling thread with the family's own handle of this
  /// stream (cuda: a CUstream, whose context is current); it may queue what it likes there, and nothing else of this
  /// interface. The timepoint is the end of all that. If function gives another number than 0, this throws
  /// HPE_ERROR_LAUNCH_FAILED after everything that the function queued has run: only here may bytes have changed when a
  /// function of a stream throws. Soft devices: HPE_ERROR_NOT_SUPPORTED.
  virtual timepoint enqueue(const std::function<int(void*)>& function) = 0;

  /// What is queued after this runs after `point`, of any stream of the set.
  virtual void wait(timepoint point) = 0;

  /// The last command queued; none() if there was none.
  [[nodiscard]] virtual timepoint last() const = 0;
};

/// What a thread sleeps on until work finishes or somebody has something for it. One sleeper per gate.
class gate {
 public:
  virtual ~gate() = default;

  /// Makes the sleeper return, now or at its next sleep. Safe in a signal handler.
  virtual void ring() noexcept = 0;

  /// Returns when the gate was rung since the last return, when any of the points is reached, or at the deadline.
  /// May return early for no reason.
  virtual void sleep(std::span<const timepoint> points, std::chrono::steady_clock::time_point deadline) = 0;
};

class device {
 public:
  virtual ~device() = default;

  [[nodiscard]] virtual const properties& info() const noexcept = 0;
  [[nodiscard]] virtual memory_usage memory() const = 0;
  [[nodiscard]] virtual bool lost() const noexcept = 0;

  /// Backs [address, address + bytes) of the UVAS with this device's memory, for this device and every device that can
  /// access it. Granule multiples. The memory reads as zero. Throws HPE_ERROR_OUT_OF_MEMORY, with nothing mapped.
  virtual void map(void* address, std::size_t bytes) = 0;

  /// Takes the backing away from one or several neighbouring ranges, each as it was mapped; any other range stays as it
  /// is, and the log tells it. The caller has made sure that no queued work uses the memory.
  virtual void unmap(void* address, std::size_t bytes) noexcept = 0;

  /// Whether kernels and copies of this device can use memory that `peer` backs. True for itself.
  [[nodiscard]] virtual bool can_access(unsigned peer) const noexcept = 0;

  /// Streams are few and long-lived; a priority matters for copies.
  virtual stream& create_stream(priority level) = 0;

  /// Waits while a stream has far more commands than the device will get to soon: queuing itself never waits, and keeps
  /// each command in memory. Whoever queues without end calls it before, without a lock that others need.
  virtual void await_room() {}
};

/// Device memory as processes of the same machine hand it to each other: a part of an open file. A family understands
/// its own files only.
struct shared_part {
  int file = -1;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// All devices of one family that this process uses.
class device_set {
 public:
  virtual ~device_set() = default;

  [[nodiscard]] virtual unsigned size() const noexcept = 0;
  [[nodiscard]] virtual device& at(unsigned index) = 0;

  /// Makes [address, address + bytes) of host memory, backed by fd at offset, usable in copies by every device (soft
  /// devices map the file; GPUs pin the pages). Inside the UVAS, address means host memory that kernels reach as well.
  virtual void register_host(void* address, std::size_t bytes, int fd, std::int64_t offset) = 0;
  /// Ends one registration. No queued work uses the memory.
  virtual void unregister_host(void* address, std::size_t bytes) noexcept = 0;

  /// A hint: copies are about to use these bytes of registered memory, from the first to the last. Returns at once.
  /// Devices that hold on to pages do so ahead of the copies.
  virtual void expect_copies(const void* address, std::size_t bytes) = 0;

  /// The pages behind a part of registered memory were given back to the system, and others take their place when it is
  /// used again: devices that hold on to pages let go of these. Waits for copies that use neighbouring bytes.
  virtual void release_host(void* address, std::size_t bytes) noexcept = 0;

  /// What backs [address, address + bytes), ranges that were mapped as they are, part by part. The files are the set's
  /// and stay open until the range is unmapped. Throws HPE_ERROR_NOT_SUPPORTED where the devices have no such files.
  virtual std::vector<shared_part> share(void* address, std::size_t bytes) = 0;

  /// Puts the parts that another process shared at address, one behind the other, for copies by devices of this set.
  /// Inside the UVAS, in granules; the files are used during the call only. The bytes are the other process's, and stay
  /// readable when it ends. Returns which devices reach them: bit d. Throws HPE_ERROR_NOT_SUPPORTED if none does.
  virtual std::uint32_t import_memory(void* address, std::span<const shared_part> parts) = 0;
  /// Takes all of one import away. No queued work uses it.
  virtual void drop_import(void* address, std::size_t bytes) noexcept = 0;

  /// Loads kernels. Throws HPE_ERROR_NOT_FOUND with the loader's words.
  virtual std::uint32_t load_module(const std::string& path) = 0;
  /// Throws HPE_ERROR_NOT_FOUND.
  virtual kernel_id find_kernel(std::uint32_t module, const std::string& name) = 0;
  /// Modules of PTX (runtime/device/ptx_module.h); nullptr where the devices run none.
  [[nodiscard]] virtual ptx_capability* ptx() noexcept { return nullptr; }

  /// Whether the point is reached, whatever came of it. Cheap: one load or so.
  [[nodiscard]] virtual bool reached(timepoint point) const noexcept = 0;

  /// Waits until it is reached. False at the deadline.
  virtual bool wait(timepoint point, std::chrono::steady_clock::time_point deadline) = 0;

  /// What has to end first before the point is reached, as `kernel "f" on device 0`, for messages. The devices go on
  /// meanwhile.
  [[nodiscard]] virtual std::string work_before(timepoint point) const = 0;

  /// For a reached point: empty, or what went wrong with that very command or its device. Failures of kernels are kept
  /// for the last hundred of a stream.
  [[nodiscard]] virtual std::optional<error> status_of(timepoint point) const = 0;

  /// As status_of; take_failure does not give this failure any more.
  virtual std::optional<error> take_failure_of(timepoint point) = 0;

  /// The oldest failure of any command or device that nobody has taken yet. device < 0 means of any device.
  virtual std::optional<error> take_failure(int device) = 0;

  virtual std::unique_ptr<gate> create_gate() = 0;

  /// Has all streams tell `who` of their commands (runtime/device/observer.h). Before the first stream is created;
  /// nullptr, when nothing is queued any more.
  void observe(command_observer* who) noexcept { observer_ = who; }
  [[nodiscard]] command_observer* observer() const noexcept { return observer_; }

 private:
  command_observer* observer_ = nullptr;
};

/// What has to happen before the address space for open_devices is reserved: the CUDA driver gives devices no addresses
/// that were in use when it started. Throws nothing for devices that are not there.
void prepare_devices(const std::string& specification);

/// Opens the devices that the specification names ("cuda", "cuda:2", "soft:4", "soft:2x4"; the option HPE_DEVICES);
/// empty: all GPUs, or two soft devices where there are none. Throws
/// HPE_ERROR_INITIALIZATION with what is possible.
std::unique_ptr<device_set> open_devices(const std::string& specification, const uvas_layout& layout);

}  // namespace hpe::device

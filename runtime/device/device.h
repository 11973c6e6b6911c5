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
/// queued command that fails, or that could be queued in part only, does not stop its stream: its timepoint is reached,
/// device_set::status_of gives its error, and take_failure reports it. Functions that release something do not throw,
/// because their callers could not handle it; their failures are logged. After a device is lost, every timepoint of its
/// streams counts as reached within a second, with HPE_ERROR_DEVICE_LOST, and queuing on it throws
/// HPE_ERROR_DEVICE_LOST; other devices go on, and waits for the lost device's work end. (Except where the CUDA driver
/// makes all GPUs of a process unusable after a kernel failure on one: all are lost then, each in this way.)
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

namespace hpe::node {
class device_share;
}

namespace hpe::device {

class command_observer;
class ptx_capability;

/// The NUMA node of a device if it is not known, or if the machine has only one.
inline constexpr int unknown_node = -1;

struct properties {
  hpeDeviceKind kind = HPE_DEVICE_SOFT;
  std::string name;
  std::size_t memory_bytes = 0;
  std::size_t spare_bytes = 0;  ///< of these, bytes that data should leave to the driver and to other libraries
  unsigned compute_units = 0;
  bool has_host_atomics = true;  ///< atomic operations on host memory are atomic for all devices
  /// Bytes a second of a kernel's accesses to the memory of another device, and of the host; 0: not known.
  double peer_rate = 0, host_rate = 0;
  int numa_node = unknown_node;  ///< on machines with several nodes: the one next to the device
  /// The most bytes that are worth fetching ahead of a host that reads.
  std::size_t most_ahead = std::size_t{32} << 20;
};

struct memory_usage {
  std::size_t total = 0;
  std::size_t free = 0;
};

/// What newly mapped device memory holds.
enum class contents : std::uint8_t {
  zeros,
  any  ///< any bytes of this process: the caller overwrites them before anything reads them
};

/// The order in which transfers that share a link are served, the most urgent first.
enum class priority : std::uint8_t { waiting_host, launch, prefetch, rolling };

struct shape {
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t team = 0;  // the devices that run parts of one launch, bit d; their tiles may wait for each other
  // For kernels of PTX:
  std::uint32_t shared_bytes = 0;  // dynamic shared memory of a block
  bool cooperative = false;        // all blocks run at once
  // Blocks of a cluster, which run at once; zeros: as the kernel declares, or none. A launch throws
  // HPE_ERROR_NOT_SUPPORTED if the CUDA driver is too old for clusters.
  std::uint32_t cluster[3] = {0, 0, 0};

  [[nodiscard]] bool asks_for_cluster() const noexcept { return cluster[0] != 0 || cluster[1] != 0 || cluster[2] != 0; }
};

/// A kernel as this device family knows it. Valid on every device of the set.
struct kernel_id {
  std::uint32_t module = 0;
  std::uint32_t function = 0;  ///< unique in the set
};

/// The most bytes of parameters of a kernel of PTX; other kernels may have HPE_MAX_PARAMETERS.
inline constexpr std::size_t most_parameters = 4096;

/// An in-order queue of work on one device. Owned by the set, and lives as long as it.
class stream {
 public:
  virtual ~stream() = default;

  /// Queues a copy. Each side is device memory of this device, device memory of a peer that this device can access, or
  /// registered host memory; not both may be host memory.
  virtual timepoint copy(void* destination, const void* source, std::size_t bytes) = 0;

  /// Queues setting bytes of device memory to value.
  virtual timepoint fill(void* destination, std::uint8_t value, std::size_t bytes) = 0;

  /// Queues a kernel. parameters are copied before the call returns (at most most_parameters bytes).
  virtual timepoint launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) = 0;

  /// Queues work through the program's own code. Calls function in the calling thread with the family's own handle of
  /// this stream (cuda: a CUstream, whose context is current). function may queue any work there, but must use nothing
  /// else of this interface. The timepoint is the end of that work. If function returns another number than 0, this
  /// throws HPE_ERROR_LAUNCH_FAILED after all that function queued has run: the only function of a stream that may have
  /// changed bytes when it throws. Soft devices: HPE_ERROR_NOT_SUPPORTED.
  virtual timepoint enqueue(const std::function<int(void*)>& function) = 0;

  /// Makes later commands of this stream run after `point`, of any stream of the set.
  virtual void wait(timepoint point) = 0;

  /// The last command queued; none() if no command was queued.
  [[nodiscard]] virtual timepoint last() const = 0;
};

/// A thread sleeps on a gate until work finishes or another thread rings the gate. One sleeper per gate.
class gate {
 public:
  virtual ~gate() = default;

  /// Makes the sleeper return, now or at its next sleep. Safe in a signal handler.
  virtual void ring() noexcept = 0;

  /// Returns when the gate was rung since the last return, when one of the points is reached, or at the deadline.
  /// May return early for no reason.
  virtual void sleep(std::span<const timepoint> points, std::chrono::steady_clock::time_point deadline) = 0;
};

class device {
 public:
  virtual ~device() = default;

  [[nodiscard]] virtual const properties& info() const noexcept = 0;
  [[nodiscard]] virtual memory_usage memory() const = 0;
  /// How this process divides the device's memory with others (HPE_SHARE); nullptr: it does not.
  [[nodiscard]] virtual node::device_share* share() const noexcept { return nullptr; }
  [[nodiscard]] virtual bool lost() const noexcept = 0;

  /// Backs [address, address + bytes), granules of the UVAS, with this device's memory, for this device and every
  /// device that can access it. Throws HPE_ERROR_OUT_OF_MEMORY, with nothing mapped.
  virtual void map(void* address, std::size_t bytes, contents first) = 0;
  void map(void* address, std::size_t bytes) { map(address, bytes, contents::zeros); }

  /// Unmaps one or several neighbouring ranges, each exactly as it was mapped; any other range stays mapped, and the
  /// failure is logged. No queued work may use the memory.
  virtual void unmap(void* address, std::size_t bytes) noexcept = 0;

  /// Whether kernels and copies of this device can use memory that `peer` backs. True for the device itself.
  [[nodiscard]] virtual bool can_access(unsigned peer) const noexcept = 0;

  /// Whether this device's atomic operations of system scope on memory that `peer` backs are atomic for all devices.
  [[nodiscard]] virtual bool has_atomics(unsigned peer) const noexcept { return can_access(peer); }

  /// Streams are few and long-lived; a priority matters for copies.
  virtual stream& create_stream(priority level) = 0;

  /// Waits while a stream has far more commands than the device will run soon: queuing more of them takes memory, or
  /// waits in the driver. Code that queues without a limit must call this first, and hold no lock that others need.
  virtual void await_room() {}
};

/// Device memory as processes of the same machine share it: a part of an open file. A family understands only its own
/// files.
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
  /// devices map the file; GPUs pin the pages). Kernels can use the memory, too, if address is inside the UVAS.
  virtual void register_host(void* address, std::size_t bytes, int fd, std::int64_t offset) = 0;
  /// Ends one registration. No queued work may use the memory.
  virtual void unregister_host(void* address, std::size_t bytes) noexcept = 0;

  /// A hint: copies will soon use these bytes of registered memory in ascending order. Returns at once. Devices that
  /// pin pages pin them ahead of the copies.
  virtual void expect_copies(const void* address, std::size_t bytes) = 0;

  /// A hint: copies may use these bytes of registered memory at some time. Returns at once. Devices that pin pages make
  /// and pin them when they have no expected copies to prepare, in ascending order, within the budget
  /// HPE_PREPARED_MEMORY.
  virtual void prepare_host(const void* address, std::size_t bytes) = 0;
  /// The number of these bytes, from address on, whose pages prepare_host or a copy has made and pinned.
  [[nodiscard]] virtual std::size_t prepared_host(const void* address, std::size_t bytes) const noexcept = 0;

  /// Makes devices unpin the pages of a part of registered memory, because the pages were given back to the system;
  /// other pages take their place at the next use. Waits for copies that use neighbouring bytes.
  virtual void release_host(void* address, std::size_t bytes) noexcept = 0;

  /// The parts of files that back [address, address + bytes), one or several ranges as they were mapped. The set keeps
  /// the files open until the range is unmapped. Throws HPE_ERROR_NOT_SUPPORTED if the devices have no such files.
  virtual std::vector<shared_part> share(void* address, std::size_t bytes) = 0;

  /// Maps parts that another process shared at address, one after the other, for copies by devices of this set. Inside
  /// the UVAS, in granules; the files are used during the call only. The memory is the other process's, and stays
  /// readable when that ends. Returns the devices that reach it: bit d. Throws HPE_ERROR_NOT_SUPPORTED if none does.
  virtual std::uint32_t import_memory(void* address, std::span<const shared_part> parts) = 0;
  /// Unmaps a whole import, which no queued work may use.
  virtual void drop_import(void* address, std::size_t bytes) noexcept = 0;

  /// Loads kernels. Throws HPE_ERROR_NOT_FOUND with the loader's message.
  virtual std::uint32_t load_module(const std::string& path) = 0;
  /// Throws HPE_ERROR_NOT_FOUND.
  virtual kernel_id find_kernel(std::uint32_t module, const std::string& name) = 0;
  /// The interface for modules of PTX (runtime/device/ptx_module.h); nullptr if the devices cannot run them.
  [[nodiscard]] virtual ptx_capability* ptx() noexcept { return nullptr; }

  /// Whether the point is reached, whether or not its command failed. Cheap: about one load.
  [[nodiscard]] virtual bool reached(timepoint point) const noexcept = 0;

  /// Waits until the point is reached. Returns false at the deadline.
  virtual bool wait(timepoint point, std::chrono::steady_clock::time_point deadline) = 0;

  /// The work that must end before the point is reached, as `kernel "f" on device 0`, for messages. It may be outdated
  /// on return, because the devices go on meanwhile.
  [[nodiscard]] virtual std::string work_before(timepoint point) const = 0;

  /// For a reached point: the error of that command or its device; empty if there was none. Each stream keeps the last
  /// hundred failures of kernels.
  [[nodiscard]] virtual std::optional<error> status_of(timepoint point) const = 0;

  /// Like status_of; take_failure does not report this failure any more.
  virtual std::optional<error> take_failure_of(timepoint point) = 0;

  /// The oldest failure of a command or device that was not taken yet. device < 0: of any device.
  virtual std::optional<error> take_failure(int device) = 0;

  virtual std::unique_ptr<gate> create_gate() = 0;

  /// Makes all streams report their commands to `who` (runtime/device/observer.h). To be called before the first stream
  /// is created; with nullptr, when nothing is queued any more.
  void observe(command_observer* who) noexcept { observer_ = who; }
  [[nodiscard]] command_observer* observer() const noexcept { return observer_; }

 private:
  command_observer* observer_ = nullptr;
};

/// To be called before the address space for open_devices is reserved: starts the CUDA driver, which gives devices no
/// addresses that were in use when it started. Does not throw if there is no driver or GPU.
void prepare_devices(const std::string& specification);

/// Opens the devices that the specification names ("cuda", "cuda:2", "soft:4", "soft:2x4"; the option
/// HPE_DEVICES); empty: all GPUs, or else two soft devices. Throws HPE_ERROR_INITIALIZATION with the possible
/// specifications.
std::unique_ptr<device_set> open_devices(const std::string& specification, const uvas_layout& layout);

}  // namespace hpe::device

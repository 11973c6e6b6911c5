#pragma once

/// The interface between the runtime and its devices. Two families of devices implement it: soft/ (each device is a
/// process) and cuda/ (each device is a GPU). The tests in tests/device/ check both families against this interface.
///
/// Addresses. A pointer inside the UVAS (base <= p < base + size of the uvas_layout with which the set was opened)
/// points to device memory at that address, on the device that backs the address. Any other pointer points to host
/// memory, which copies may use only if it is registered.
///
/// Order. Commands of one stream run in the order in which they were queued. Commands of different streams, on any
/// devices of one set, are ordered only by stream::wait.
///
/// Failure. Functions throw hpe::error. If a function of a stream throws, it has queued nothing and changed no byte. A
/// queued command that fails, or that could be queued only in part, does not stop its stream: its timepoint is reached,
/// device_set::status_of returns its error, and take_failure reports it. Functions that release a resource do not
/// throw, because their callers could not handle an error; these functions log their failures. Within a second after a
/// device is lost, every timepoint of its streams counts as reached, unfinished commands have the error
/// HPE_ERROR_DEVICE_LOST, and queuing on the device throws this error. Other devices continue, and their waits for the
/// lost device's work end. One failure affects all GPUs: when a kernel fails on one GPU, the CUDA driver makes all GPUs
/// of the process unusable, and all of them are lost.
///
/// Threads. Every function may be called from any thread; streams lock internally. Only gate::ring may be called from a
/// signal handler.

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
#include "runtime/base/box.h"
#include "runtime/base/timepoint.h"
#include "runtime/base/uvas_layout.h"
#include "runtime/device/fingerprint.h"

namespace hpe::node {
class device_share;
}

namespace hpe::device {

class command_observer;
class ptx_capability;

/// The NUMA node of a device whose node is not known, and of every device if the machine has only one node.
inline constexpr int unknown_node = -1;

struct properties {
  hpeDeviceKind kind = HPE_DEVICE_SOFT;
  std::string name;
  std::size_t memory_bytes = 0;
  std::size_t spare_bytes = 0;  ///< how many of memory_bytes hpe should leave unused for the driver and other libraries
  unsigned compute_units = 0;
  /// Whether atomic operations of the device on host memory are atomic for all devices and the host.
  bool has_host_atomics = true;
  /// Bytes per second at which a kernel accesses the memory of another device, and of the host; 0 if the rate is not
  /// known.
  double peer_rate = 0, host_rate = 0;
  int numa_node = unknown_node;  ///< the nearest NUMA node, if the machine has several
  /// The largest number of bytes that hpe fetches ahead when host code reads device data in ascending order.
  std::size_t most_ahead = std::size_t{32} << 20;
};

struct memory_usage {
  std::size_t total = 0;
  std::size_t free = 0;
};

/// The initial content of newly mapped device memory.
enum class contents : std::uint8_t {
  zeros,
  any  ///< old bytes of this process; the caller must overwrite all of them before anything reads them
};

/// Where the memory of a mapping is.
enum class backing_kind : std::uint8_t {
  device,     ///< in the device's memory
  zero_copy,  ///< in host memory, which kernels access over the link (CUDA calls such memory zero-copy memory)
  /// One granule of the device's memory, the same for all mappings of this kind. Its bytes have no meaning. For reads
  /// past the end of an allocation.
  common
};

/// The priority of a stream's copies on a link that several streams use. The most urgent priority comes first.
enum class priority : std::uint8_t { waiting_host, launch, prefetch, rolling };

struct shape {
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  // The devices that run parts of one launch (bit d for device d), whose tiles may wait for each other; 0: one device
  // only.
  std::uint32_t team = 0;
  // For kernels of PTX:
  std::uint32_t shared_bytes = 0;  // dynamic shared memory of a block
  bool cooperative = false;        // all blocks run at once; GPUs throw HPE_ERROR_NOT_SUPPORTED
  // The size of a cluster in blocks; the blocks of a cluster run at the same time. If all three numbers are 0, the
  // launch uses the cluster size with which the kernel was compiled, or no clusters. A launch that asks for clusters
  // throws HPE_ERROR_NOT_SUPPORTED if the CUDA driver is too old for clusters.
  std::uint32_t cluster[3] = {0, 0, 0};

  [[nodiscard]] bool asks_for_cluster() const noexcept { return cluster[0] != 0 || cluster[1] != 0 || cluster[2] != 0; }
};

/// Identifies a kernel that a device_set has loaded. Valid for every device of the set.
struct kernel_id {
  std::uint32_t module = 0;
  std::uint32_t function = 0;  ///< unique in the set
};

/// The largest number of bytes of parameters of a PTX kernel, the same as in CUDA since 12.1. Kernels in shared objects
/// may have HPE_MAX_PARAMETERS bytes of parameters.
inline constexpr std::size_t most_parameters = 32764;

/// An in-order queue of work on one device. The set owns the stream, which exists as long as the set.
class stream {
 public:
  virtual ~stream() = default;

  /// Queues a copy. Source and destination are each device memory of this device, device memory of a peer that this
  /// device can access, or registered host memory; they may not both be host memory.
  virtual timepoint copy(void* destination, const void* source, std::size_t bytes) = 0;
  /// Like copy, for rows of one plane, which have the same distances in the source and in the destination.
  virtual timepoint copy_rows(void* destination, const void* source, const box& rows) = 0;

  /// Queues a command that sets bytes of device memory to `value`.
  virtual timepoint fill(void* destination, std::uint8_t value, std::size_t bytes) = 0;

  /// Queues a command that computes the fingerprint (runtime/device/fingerprint.h) of bytes of memory of this device,
  /// with the process's key, and writes it to `result` in registered host memory. `bytes` must be a multiple of
  /// fingerprint_unit. Only one stream of each device may be used for these commands.
  virtual timepoint take_fingerprint(fingerprint* result, const void* source, std::size_t bytes) = 0;

  /// Queues a kernel. The call copies `parameters`, at most most_parameters bytes, before it returns.
  virtual timepoint launch(kernel_id kernel, const shape& shape, std::span<const std::byte> parameters) = 0;

  /// Calls `function`, which is code of the program, to queue work. The call is in the calling thread; the argument is
  /// the stream's CUstream, whose context is current. `function` may queue any work on this CUstream, but must not call
  /// functions of this interface. The timepoint is reached when the queued work has ended. If `function` returns a
  /// number other than 0, enqueue throws HPE_ERROR_LAUNCH_FAILED after all work that `function` queued has run. enqueue
  /// is the only function of a stream that may have changed bytes when it throws. Soft devices throw
  /// HPE_ERROR_NOT_SUPPORTED.
  virtual timepoint enqueue(const std::function<int(void*)>& function) = 0;

  /// Makes commands that are queued later on this stream run after `point`, which may belong to any stream of the set.
  virtual void wait(timepoint point) = 0;

  /// Returns the timepoint of the last queued command; none() if no command was queued.
  [[nodiscard]] virtual timepoint last() const = 0;
};

/// Work that a function of the program has queued, and that the device has not begun (device::record).
class recorded_work {
 public:
  virtual ~recorded_work() = default;

  /// The stream on which the work will run. Until this object is destroyed, no other recorded work uses the stream.
  [[nodiscard]] virtual stream& on() noexcept = 0;
  /// Queues the work on the stream. To be called at most once; without a call, the work never runs.
  virtual timepoint queue() = 0;
};

/// A thread sleeps on a gate until work finishes or another thread rings the gate. Each gate has one sleeper.
class gate {
 public:
  virtual ~gate() = default;

  /// Makes the sleeping thread return from sleep(). If no thread sleeps, the next sleep() returns at once. Safe in a
  /// signal handler.
  virtual void ring() noexcept = 0;

  /// Returns when another thread has rung the gate since the last return, when one of the points is reached, or at the
  /// deadline. May also return earlier without a reason.
  virtual void sleep(std::span<const timepoint> points, std::chrono::steady_clock::time_point deadline) = 0;
};

/// A group of moves of bytes to memory of another kind, at the same addresses (device::begin_moves). The moves in the
/// same direction copy one after the other. A GPU's driver maps memory slowly while a copy runs, and takes nearly as
/// long for a short range as for a long one, so a group changes its mappings after all of its copies, and changes
/// neighbouring ranges together. No queued work may use the ranges, and no work may change their bytes, from add() to
/// finish(). If a group is destroyed without finish(), its ranges are unchanged.
class group_of_moves {
 public:
  virtual ~group_of_moves() = default;

  /// Begins to move the bytes of a range, exactly as it was mapped, from device memory to zero-copy memory or back.
  /// on_standby: the zero-copy memory of device::has_standby() already has the bytes, so that they need not be copied.
  /// Throws the same errors as device::map(); the range is then not in the group.
  virtual void add(void* address, std::size_t bytes, backing_kind to, bool on_standby) = 0;
  /// Waits for the copies.
  virtual void wait() = 0;
  /// Waits for the copies, and backs the ranges with the other memory. Returns, for each range in the order of add(),
  /// why it is unchanged; nullopt if it has moved. To be called at most once. Throws if the device is lost.
  virtual std::vector<std::optional<error>> finish() = 0;
};

class device {
 public:
  virtual ~device() = default;

  [[nodiscard]] virtual const properties& info() const noexcept = 0;
  [[nodiscard]] virtual memory_usage memory() const = 0;
  /// Returns the object that counts how much of the device's memory this process and other processes have taken
  /// (HPE_SHARE); nullptr if this process does not share the device.
  [[nodiscard]] virtual node::device_share* share() const noexcept { return nullptr; }
  [[nodiscard]] virtual bool lost() const noexcept = 0;

  /// Backs [address, address + bytes), whole granules of the UVAS, with this device's memory, or with memory that takes
  /// none of memory() (zero_copy, common). This device and all devices that can access its memory can then use the
  /// range as device memory. Throws HPE_ERROR_OUT_OF_MEMORY and maps nothing if too little memory is free, and
  /// HPE_ERROR_NOT_SUPPORTED if the device cannot access host memory in this way.
  virtual void map(void* address, std::size_t bytes, contents first, backing_kind where) = 0;
  void map(void* address, std::size_t bytes, contents first = contents::zeros) {
    map(address, bytes, first, backing_kind::device);
  }

  /// Unmaps one range, or several neighbouring ranges, each exactly as it was mapped. For any other range, unmaps
  /// nothing and logs an error. No queued work may use the memory.
  virtual void unmap(void* address, std::size_t bytes) noexcept = 0;

  /// Returns a group without moves. A device may have several groups, of different ranges.
  [[nodiscard]] virtual std::unique_ptr<group_of_moves> begin_moves() = 0;

  /// Whether the device keeps zero-copy memory for the next move of the range at an address, because the bytes of the
  /// range have moved from there to device memory.
  [[nodiscard]] virtual bool has_standby(const void* /*address*/) const { return false; }
  /// Returns the zero-copy memory that the devices of the set keep for later moves to the host.
  virtual void drop_standby() noexcept {}

  /// Counts this many bytes of memory() as used, although hpe does not map them: the driver allocates them for the
  /// program. Returns false, without effect, if fewer bytes are free.
  [[nodiscard]] virtual bool withhold(std::size_t bytes) noexcept = 0;
  /// Counts bytes of an earlier withhold() as free again.
  virtual void restore(std::size_t bytes) noexcept = 0;

  /// Whether kernels and copies of this device can use memory that `peer` backs. True for the device itself.
  [[nodiscard]] virtual bool can_access(unsigned peer) const noexcept = 0;

  /// Whether atomic operations of system scope that this device makes on memory of device `peer` are atomic for all
  /// devices.
  [[nodiscard]] virtual bool has_atomics(unsigned peer) const noexcept { return can_access(peer); }

  /// Creates a stream. Callers should create few streams and keep them. The priority affects only copies.
  virtual stream& create_stream(priority level) = 0;

  /// Calls `function`, which is code of the program, and records the work that it queues on the given CUstream, whose
  /// context is current. The work does not run before recorded_work::queue(). `function` may call anything that does
  /// not wait for its work. Throws HPE_ERROR_LAUNCH_FAILED if `function` returns a number other than 0, or if the work
  /// cannot be recorded. Soft devices throw HPE_ERROR_NOT_SUPPORTED.
  virtual std::unique_ptr<recorded_work> record(const std::function<int(void*)>& function) = 0;

  /// Prepares the device for its first work. A device that has not been prepared prepares itself at its first use: when
  /// memory is mapped, a command is queued, or the free memory is asked for. Throws if the device cannot be used.
  virtual void start() {}

  /// Waits while a stream of this device contains very many unfinished commands, because further commands would use
  /// host memory, or block in the driver. Code that may queue any number of commands must call this before each
  /// command, without holding a lock that other threads need. `next`: the stream of the next command, if it stands for
  /// a stream of the program; then other streams of this kind do not count, because the program's streams are
  /// independent.
  virtual void await_room(const stream* /*next*/) {}
};

/// Device memory that processes of one machine share, as a range of an open file. A soft device can map only files of
/// soft devices, and a GPU only files of GPUs.
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

  /// Allows copies of every device to use [address, address + bytes) of host memory, which the file `fd` backs from
  /// `offset` on. Soft devices map the file; GPUs pin the pages. If the address is inside the UVAS, kernels can use the
  /// memory, too.
  virtual void register_host(void* address, std::size_t bytes, int fd, std::int64_t offset) = 0;
  /// Ends the registration of a range exactly as it was registered. No queued work may use the memory.
  virtual void unregister_host(void* address, std::size_t bytes) noexcept = 0;

  /// Announces that copies will soon use these bytes of registered memory in ascending order. Returns at once. Threads
  /// of the GPU's device_set then pin the pages before the copies need them; soft devices ignore this hint.
  virtual void expect_copies(const void* address, std::size_t bytes) = 0;

  /// Announces that copies may use these bytes of registered memory later. Returns at once. While no copies are
  /// expected, threads of the GPU's device_set allocate and pin these pages in ascending order, at most
  /// HPE_PREPARED_MEMORY bytes in all; soft devices ignore this hint.
  virtual void prepare_host(const void* address, std::size_t bytes) = 0;
  /// Returns how many bytes from `address` on, without a gap and at most `bytes`, are in pages that prepare_host or a
  /// copy has allocated and pinned.
  [[nodiscard]] virtual std::size_t prepared_host(const void* address, std::size_t bytes) const noexcept = 0;

  /// Makes devices unpin the pages of a range inside registered memory. Call this when these pages were returned to the
  /// operating system: the next copy then allocates and pins new pages. Waits for copies that use neighbouring bytes in
  /// the same pinned range.
  virtual void release_host(void* address, std::size_t bytes) noexcept = 0;

  /// Returns the ranges of files that back [address, address + bytes), which must consist of ranges exactly as they
  /// were mapped. The set keeps the files open until the range is unmapped. Throws HPE_ERROR_NOT_SUPPORTED if the
  /// devices' memory cannot be exported as files.
  virtual std::vector<shared_part> share(void* address, std::size_t bytes) = 0;

  /// Maps memory that another process has shared, so that devices of this set can copy to and from this memory. Maps
  /// `parts` one after the other from `address` on. The mapped range must consist of whole granules inside the UVAS.
  /// The caller may close the files after the call. The memory belongs to the other process, but stays readable after
  /// that process has ended. Returns the devices that can access the memory: bit d for device d. Throws
  /// HPE_ERROR_NOT_SUPPORTED if no device can access the memory.
  virtual std::uint32_t import_memory(void* address, std::span<const shared_part> parts) = 0;
  /// Unmaps the whole range of one call of import_memory. No queued work may use this range.
  virtual void drop_import(void* address, std::size_t bytes) noexcept = 0;

  /// Loads the kernels in the file `path` on all devices, and returns the module's number. Throws HPE_ERROR_NOT_FOUND
  /// with the loader's message if the file cannot be loaded.
  virtual std::uint32_t load_module(const std::string& path) = 0;
  /// Returns the kernel `name` of a module. Throws HPE_ERROR_NOT_FOUND if the module or the kernel does not exist.
  virtual kernel_id find_kernel(std::uint32_t module, const std::string& name) = 0;
  /// The interface for modules of PTX (runtime/device/device_ptx_module.h); nullptr if the devices cannot run them.
  [[nodiscard]] virtual ptx_capability* ptx() noexcept { return nullptr; }

  /// Whether the point is reached. The point of a command is also reached if the command has failed. Costs about one
  /// load if the set already knows that the point is reached.
  [[nodiscard]] virtual bool reached(timepoint point) const noexcept = 0;

  /// Waits until the point is reached. Returns false at the deadline.
  virtual bool wait(timepoint point, std::chrono::steady_clock::time_point deadline) = 0;

  /// Describes the work that must end before the point is reached, for messages: for example `kernel "f" on device 0`.
  /// The description may be outdated when the function returns, because the devices continue to run.
  [[nodiscard]] virtual std::string work_before(timepoint point) const = 0;

  /// Returns the error of the command that belongs to a reached point, or of that command's device; nullopt if neither
  /// has failed. Each stream keeps at least its last hundred failures.
  [[nodiscard]] virtual std::optional<error> status_of(timepoint point) const = 0;

  /// Like status_of. After this call, take_failure does not return this failure.
  virtual std::optional<error> take_failure_of(timepoint point) = 0;

  /// Returns the oldest failure of a command or device that neither take_failure nor take_failure_of has returned
  /// before; nullopt if there is no such failure. A negative `device` means any device.
  virtual std::optional<error> take_failure(int device) = 0;

  virtual std::unique_ptr<gate> create_gate() = 0;

  /// Makes all streams report their commands to `who` (runtime/device/observer.h). Call this before the first stream is
  /// created. nullptr ends the reports; pass it only when no thread queues commands.
  void observe(command_observer* who) noexcept { observer_ = who; }
  [[nodiscard]] command_observer* observer() const noexcept { return observer_; }

 private:
  command_observer* observer_ = nullptr;
};

/// Starts the CUDA driver if `specification` allows GPUs. Call this before reserving the UVAS that is passed to
/// open_devices, because the driver cannot map device memory at addresses that were in use when the driver started.
/// Does not throw if the machine has no driver or GPU.
void prepare_devices(const std::string& specification);

/// Opens the devices that the specification names ("cuda", "cuda:2", "soft:4", "soft:2x4"; the option HPE_DEVICES). An
/// empty specification means all GPUs, or two soft devices if the machine has no GPU. Throws HPE_ERROR_INITIALIZATION
/// if a device cannot be opened, or if the specification is invalid; the message then lists the possible forms.
std::unique_ptr<device_set> open_devices(const std::string& specification, const uvas_layout& layout);

/// Whether open_devices() opens GPUs, and not soft devices, for this specification.
[[nodiscard]] bool opens_gpus(const std::string& specification);

}  // namespace hpe::device

#pragma once

/// The interface for modules of PTX (device_set::ptx).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hpe/ptx.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/timepoint.h"

namespace hpe::ptx {
struct program;
enum class recorded_use : std::uint8_t;
}  // namespace hpe::ptx

namespace hpe::device {

/// A kernel. hpeKernelInfo (<hpe/ptx.h>) describes the members.
struct ptx_kernel {
  std::string name;
  std::vector<std::uint32_t> parameter_offsets;
  std::vector<std::uint32_t> parameter_sizes;
  std::size_t parameter_bytes = 0;
  std::uint32_t shared_bytes = 0;
  std::uint32_t local_bytes = 0;
  std::uint32_t max_threads = 0;
  std::array<std::uint32_t, 3> required_block{};
  std::array<std::uint32_t, 3> required_cluster{};
  std::uint32_t max_cluster = 0;
  bool needs_cluster = false;
};

/// On soft devices, hpe allocates the variables of a module in three memory ranges, called parts: `global` for
/// variables that kernels write, `constant` for variables that kernels only read, `managed` for managed variables. Each
/// device has its own global and constant parts; the host and all devices share the managed part. On GPUs, the driver
/// allocates the variables, so modules have no parts.
enum class ptx_part : std::uint8_t { global, constant, managed };
inline constexpr std::size_t ptx_part_count = 3;

/// The addresses of the parts on a device, by ptx_part.
using ptx_addresses = std::array<std::uintptr_t, ptx_part_count>;

struct ptx_variable {
  std::string name;
  ptx_part part = ptx_part::global;
  std::size_t offset = 0;  ///< the variable's offset in its part
  std::size_t size = 0;
};

/// Initial values that the caller of place() must write into a part before the first launch.
struct ptx_contents {
  ptx_part part = ptx_part::global;
  std::size_t offset = 0;
  std::vector<std::byte> bytes;
};

/// A module of PTX, loaded on all devices of a set.
class device_ptx_module {
 public:
  device_ptx_module() = default;
  device_ptx_module(const device_ptx_module&) = delete;
  device_ptx_module& operator=(const device_ptx_module&) = delete;
  /// Unloads the module from the devices. None of its kernels may be queued or running. The destructor uses the
  /// device_set, so the set must outlive the module.
  virtual ~device_ptx_module() = default;

  /// The number that identifies the module in device_set::find_kernel.
  [[nodiscard]] virtual std::uint32_t id() const noexcept = 0;
  [[nodiscard]] virtual const std::vector<ptx_kernel>& kernels() const noexcept = 0;
  [[nodiscard]] virtual const std::vector<ptx_variable>& variables() const noexcept = 0;
  /// The highest architecture in the texts' .target directives: 75 for sm_75.
  [[nodiscard]] virtual std::uint32_t architecture() const noexcept = 0;
  /// The size of a part in bytes; 0 if the part has no variables.
  [[nodiscard]] virtual std::size_t bytes_of(ptx_part part) const noexcept = 0;
  /// The program that was parsed from the texts.
  [[nodiscard]] virtual std::shared_ptr<const ptx::program> program() const noexcept = 0;

  /// Passes the addresses of the module's parts on a device to this device. The addresses must be aligned to 256 bytes;
  /// the address of an empty part may have any value. Call this once for each device, before the first launch of a
  /// kernel of the module on this device. The caller must then write the returned contents into the parts, but into the
  /// managed part only once for all devices. All other bytes of the parts must be zero.
  virtual std::vector<ptx_contents> place(unsigned device, const ptx_addresses& parts) = 0;
};

/// Text that PTX kernels have printed.
struct printed {
  std::string text;
  bool is_error = false;  // true: print the text to standard error; false: to standard output
};

/// Bytes [begin, end) that kernels have accessed, with the number of the accessing instruction
/// (runtime/ptx/build/access_recording.h).
struct recorded_stretch {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  ptx::recorded_use how{};
  std::uint8_t number = 0;
};

/// Two accesses of threads of one launch that nothing orders.
struct recorded_race {
  struct access {
    ptx::recorded_use how{};
    std::uint8_t number = 0;  // of the accessing instruction; 0: unknown
    std::string place{};      // in the source, if the number is 0
  };
  bool is_shared = false;            // whether the threads belong to one block and access its shared memory
  std::uint64_t begin = 0, end = 0;  // the accessed bytes; in shared memory, offsets
  access earlier, later;
  std::string variable{};  // of shared memory; empty if unknown
};

/// Which reads a module's kernels record, if devices record accesses (take_accesses).
enum class ptx_recording : std::uint8_t {
  all_reads,
  first_reads,  // reads of bytes that the same launch has not written before
};

/// The interface of device sets that run modules of PTX.
class ptx_capability {
 public:
  virtual ~ptx_capability() = default;

  /// Loads texts of PTX as one module, and links the texts with each other. Throws HPE_ERROR_INVALID_ARGUMENT or
  /// HPE_ERROR_NOT_SUPPORTED if a text is wrong or uses a feature that hpe lacks, and on GPUs HPE_ERROR_NOT_FOUND if
  /// the driver cannot load the texts; the message describes the error.
  virtual std::unique_ptr<device_ptx_module> load(std::vector<std::string> texts, ptx_recording reads) = 0;
  std::unique_ptr<device_ptx_module> load(std::vector<std::string> texts) {
    return load(std::move(texts), ptx_recording::all_reads);
  }

  /// Returns the output of the kernels that have ended since the last call, in the order in which the kernels were
  /// queued. On GPUs, the driver prints the output itself, and the result is empty.
  virtual std::vector<printed> take_output() = 0;

  /// Calls visit for the bytes that kernels on a device have accessed since the last call, for each use in ascending
  /// order. Returns false, and visits nothing, if the devices do not record accesses (only soft devices do, with
  /// HPE_CHECK).
  virtual bool take_accesses(unsigned /*device*/, function_ref<void(const recorded_stretch&)> /*visit*/) {
    return false;
  }
  /// Returns the races in the launches whose accesses take_accesses() has visited since the last call.
  virtual std::vector<recorded_race> take_races(unsigned /*device*/) { return {}; }

  /// Returns how the kernel whose timepoint is `point` failed, after this point is reached. Returns HPE_FAULT_NONE if
  /// the kernel did not fail, or if its device did not record the kind of the failure. The result is available as long
  /// as the error that device_set::status_of returns.
  [[nodiscard]] virtual hpeFault fault_of(timepoint point) const = 0;
};

}  // namespace hpe::device

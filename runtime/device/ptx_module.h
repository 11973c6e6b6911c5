#pragma once

/// Modules of PTX, which soft devices run (device_set::ptx).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hpe/ptx.h"
#include "runtime/base/timepoint.h"

namespace hpe::device {

/// As hpeKernelInfo (<hpe/ptx.h>) has it.
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

/// The variables of a module lie in three parts of memory: those that kernels write and those that they only read, of
/// which every device has its own, and the managed ones, which the host and all devices share.
enum class ptx_part : std::uint8_t { global, constant, managed };
inline constexpr std::size_t ptx_part_count = 3;

/// Where a device has the parts, by ptx_part.
using ptx_addresses = std::array<std::uintptr_t, ptx_part_count>;

struct ptx_variable {
  std::string name;
  ptx_part part = ptx_part::global;
  std::size_t offset = 0;  ///< in its part
  std::size_t size = 0;
};

/// Bytes that belong into a part before the first launch.
struct ptx_contents {
  ptx_part part = ptx_part::global;
  std::size_t offset = 0;
  std::vector<std::byte> bytes;
};

/// A module of PTX, loaded on all devices of a set.
class ptx_module {
 public:
  ptx_module() = default;
  ptx_module(const ptx_module&) = delete;
  ptx_module& operator=(const ptx_module&) = delete;
  /// Unloads it from the devices. None of its kernels may be queued or running. Before the end of the set.
  virtual ~ptx_module() = default;

  /// For device_set::find_kernel.
  [[nodiscard]] virtual std::uint32_t id() const noexcept = 0;
  [[nodiscard]] virtual const std::vector<ptx_kernel>& kernels() const noexcept = 0;
  [[nodiscard]] virtual const std::vector<ptx_variable>& variables() const noexcept = 0;
  /// Of the text's .target: 75 for sm_75.
  [[nodiscard]] virtual std::uint32_t architecture() const noexcept = 0;
  /// Of a part; 0 if it has no variables.
  [[nodiscard]] virtual std::size_t bytes_of(ptx_part part) const noexcept = 0;

  /// Tells a device where it has the parts (256-aligned; any value where a part is empty). Once for each device, before
  /// kernels of the module are launched there. The caller writes what is returned there, in the managed part once for
  /// all devices; the rest is zero.
  virtual std::vector<ptx_contents> place(unsigned device, const ptx_addresses& parts) = 0;
};

/// What kernels of PTX printed.
struct printed {
  std::string text;
  bool is_error = false;  // for standard error
};

/// A set of devices that runs modules of PTX.
class ptx_capability {
 public:
  virtual ~ptx_capability() = default;

  /// Loads texts of PTX, linked with each other. Throws HPE_ERROR_INVALID_ARGUMENT and HPE_ERROR_NOT_SUPPORTED with
  /// what is wrong with them.
  virtual std::unique_ptr<ptx_module> load(std::vector<std::string> texts) = 0;

  /// What kernels that have ended printed since the last call, in the order in which they were queued.
  virtual std::vector<printed> take_output() = 0;

  /// How the kernel of a reached point failed; HPE_FAULT_NONE where the kernel or its device did not say. Failures are
  /// kept as those of device_set::status_of.
  [[nodiscard]] virtual hpeFault fault_of(timepoint point) const = 0;
};

}  // namespace hpe::device

#pragma once

/// The C++20 interface of hpe: owning arrays, typed launches and exceptions on top of the C interface <hpe/hpe.h>,
/// which defines meaning, thread safety and errors. Every function that fails throws hpe::error. Header only.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hpe/error.hpp"
#include "hpe/hpe.h"

namespace hpe {

/// Throws hpe::error with the calling thread's last message if status is not HPE_SUCCESS.
inline void check(hpeStatus status) {
  if (status != HPE_SUCCESS) throw error(status, hpeGetLastErrorMessage());
}

/// The value of `where` that makes prefetch move the bytes to the host.
inline constexpr int host = HPE_HOST;
/// Stands for the calling thread's current device (set_device).
inline constexpr int current_device = HPE_CURRENT_DEVICE;

/// The number of devices, at least 1; see hpeGetDeviceCount.
[[nodiscard]] inline int device_count() {
  int count = 0;
  check(hpeGetDeviceCount(&count));
  return count;
}

/// Describes a device; see hpeGetDeviceInfo.
[[nodiscard]] inline hpeDeviceInfo device_info(int device) {
  hpeDeviceInfo info{};
  check(hpeGetDeviceInfo(device, &info));
  return info;
}

/// Sets the calling thread's current device, which its launches and allocations use if they name no device; see
/// hpeSetDevice.
inline void set_device(int device) { check(hpeSetDevice(device)); }

/// The calling thread's current device (set_device), 0 in a new thread.
[[nodiscard]] inline int get_device() {
  int device = 0;
  check(hpeGetDevice(&device));
  return device;
}

/// The unit of placement in bytes; see hpeGetGranularity.
[[nodiscard]] inline std::size_t granularity() {
  std::size_t bytes = 0;
  check(hpeGetGranularity(&bytes));
  return bytes;
}

/// The memory in which an array is allocated: that of one device, of several devices, or of the host. Copyable; a
/// default-constructed placement means the current device.
class placement {
 public:
  placement() = default;

  /// The whole array is in the memory of one device.
  static placement on_device(int device) {
    placement p;
    p.kind_ = kind::device;
    p.devices_ = {device};
    return p;
  }

  /// The array is in host memory, which devices access over their links.
  static placement on_host() {
    placement p;
    p.kind_ = kind::host;
    return p;
  }

  /// The array is distributed over devices (an empty list means all devices). Only HPE_DISTRIBUTE_BLOCK_CYCLIC uses
  /// `chunk`, which is in bytes.
  static placement striped(hpeDistributionKind how, std::vector<int> devices = {}, std::size_t chunk = 0) {
    placement p;
    p.kind_ = kind::striped;
    p.how_ = how;
    p.devices_ = std::move(devices);
    p.chunk_ = chunk;
    return p;
  }

  /// Allocates `bytes` bytes with this placement; the caller frees them with hpeFree.
  [[nodiscard]] void* allocate(std::size_t bytes) const {
    void* pointer = nullptr;
    switch (kind_) {
      case kind::current: check(hpeMalloc(&pointer, bytes)); break;
      case kind::device: check(hpeMallocOn(&pointer, bytes, devices_.front())); break;
      case kind::host: check(hpeMallocHost(&pointer, bytes)); break;
      case kind::striped: {
        const hpeDistribution d{how_, chunk_, devices_.empty() ? nullptr : devices_.data(), devices_.size()};
        check(hpeMallocStriped(&pointer, bytes, &d));
      }
    }
    return pointer;
  }

 private:
  enum class kind { current, device, host, striped };
  kind kind_ = kind::current;
  hpeDistributionKind how_ = HPE_DISTRIBUTE_BLOCK;
  std::vector<int> devices_;
  std::size_t chunk_ = 0;
};

/// Places the whole array in the memory of one device.
inline placement on_device(int device) { return placement::on_device(device); }
/// Places an array in host memory, which the kernels of a device access over the link of this device; see
/// hpeMallocHost.
inline placement on_host() { return placement::on_host(); }
/// Places one contiguous part of an array on each of the devices (an empty list means all devices); see
/// hpeMallocStriped.
inline placement block_distribution(std::vector<int> devices = {}) {
  return placement::striped(HPE_DISTRIBUTE_BLOCK, std::move(devices));
}
/// Distributes the granules of an array to the devices in turn, one by one (an empty list means all devices).
inline placement cyclic_distribution(std::vector<int> devices = {}) {
  return placement::striped(HPE_DISTRIBUTE_CYCLIC, std::move(devices));
}
/// Distributes chunks of an array to the devices in turn, one by one (an empty list means all devices); chunk_bytes is
/// rounded up to whole granules.
inline placement block_cyclic_distribution(std::size_t chunk_bytes, std::vector<int> devices = {}) {
  return placement::striped(HPE_DISTRIBUTE_BLOCK_CYCLIC, std::move(devices), chunk_bytes);
}

/// An owning array of trivially copyable elements. The host uses the array like any contiguous range; kernels are
/// passed a pointer to its elements. Movable, not copyable. On the host, elements read as zero until they are written.
/// An array without elements allocates no memory and has a null pointer.
template <class T>
requires std::is_trivially_copyable_v<T>
class array {
 public:
  using value_type = T;

  array() = default;
  explicit array(std::size_t count, const placement& where = {})
      : data_(count != 0 ? static_cast<T*>(where.allocate(bytes_of(count))) : nullptr), size_(count) {}
  array(array&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  array& operator=(array&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  array(const array&) = delete;
  array& operator=(const array&) = delete;
  ~array() { hpeFree(data_); }

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T* begin() const noexcept { return data_; }
  [[nodiscard]] T* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] std::span<T> span() const noexcept { return {data_, size_}; }
  [[nodiscard]] std::span<T> subspan(std::size_t offset, std::size_t count) const {
    return span().subspan(offset, count);
  }

 private:
  static std::size_t bytes_of(std::size_t count) {
    if (count > SIZE_MAX / sizeof(T))
      throw error(HPE_ERROR_OUT_OF_MEMORY, "an array of " + std::to_string(count) + " elements of " +
                                               std::to_string(sizeof(T)) + " bytes is larger than the address space");
    return count * sizeof(T);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// An access for a launch: the kernel reads the range. An empty range is ignored.
template <class T>
[[nodiscard]] hpeAccess in(std::span<T> range) {
  return {range.data(), range.size_bytes(), HPE_IN};
}
/// An access for a launch: the kernel writes every byte of the range and reads none of the old bytes.
template <class T>
[[nodiscard]] hpeAccess out(std::span<T> range) {
  return {range.data(), range.size_bytes(), HPE_OUT};
}
/// An access for a launch: the kernel reads and writes the range, or writes only parts of it.
template <class T>
[[nodiscard]] hpeAccess inout(std::span<T> range) {
  return {range.data(), range.size_bytes(), HPE_INOUT};
}
/// An access for a launch: the kernel reads the whole array.
template <class T>
[[nodiscard]] hpeAccess in(const array<T>& whole) {
  return in(whole.span());
}
/// An access for a launch: the kernel writes every element of the array and reads none of the old values.
template <class T>
[[nodiscard]] hpeAccess out(const array<T>& whole) {
  return out(whole.span());
}
/// An access for a launch: the kernel reads and writes the array, or writes only parts of it.
template <class T>
[[nodiscard]] hpeAccess inout(const array<T>& whole) {
  return inout(whole.span());
}

/// A shared object of kernels, loaded on every device. Copies are cheap; the shared object stays loaded until the
/// program ends.
class module {
 public:
  /// Loads the kernels that are part of hpe.
  module() { check(hpeModuleLoad(&handle_, nullptr)); }
  explicit module(const std::string& path) { check(hpeModuleLoad(&handle_, path.c_str())); }
  [[nodiscard]] hpeModule get() const noexcept { return handle_; }

 private:
  hpeModule handle_ = nullptr;
};

/// A kernel, together with the type of its parameter struct.
template <class Parameters>
requires std::is_trivially_copyable_v<Parameters> &&(sizeof(Parameters) <= HPE_MAX_PARAMETERS) class kernel {
 public:
  kernel(const module& from, const char* name) { check(hpeModuleGetKernel(&handle_, from.get(), name)); }
  [[nodiscard]] hpeKernel get() const noexcept { return handle_; }

 private:
  hpeKernel handle_ = nullptr;
};

/// A grid of tiles in one, two or three dimensions, with 256 threads for each tile on devices that have threads.
[[nodiscard]] inline hpeShape grid(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) {
  return {{x, y, z}, {256, 1, 1}};
}

/// Queues a kernel on a device and returns without waiting for the kernel; see hpeLaunch. The accesses must name all
/// hpe memory that the kernel uses.
template <class Parameters, std::same_as<hpeAccess>... Accesses>
void launch_on(int device, const kernel<Parameters>& what, const hpeShape& shape, const Parameters& parameters,
               const Accesses&... accesses) {
  hpeAccess list[sizeof...(Accesses) + 1]{};  // initialised, because compilers warn if a launch has no accesses
  std::size_t count = 0;
  ((accesses.size != 0 ? void(list[count++] = accesses) : void()), ...);
  check(hpeLaunch(device, what.get(), &shape, &parameters, sizeof(Parameters), list, count));
}

/// Queues a kernel on the calling thread's current device and returns without waiting for the kernel.
template <class Parameters, std::same_as<hpeAccess>... Accesses>
void launch(const kernel<Parameters>& what, const hpeShape& shape, const Parameters& parameters,
            const Accesses&... accesses) {
  launch_on(current_device, what, shape, parameters, accesses...);
}

/// The part of a launch on several devices that one device runs.
template <class Parameters>
struct team_member {
  int device;
  hpeShape shape;
  Parameters parameters;
};

/// Queues a kernel on several devices as one launch and returns without waiting for the kernel; see hpeLaunchTeam.
template <class Parameters>
void launch_team(const kernel<Parameters>& what, const std::vector<team_member<Parameters>>& members,
                 std::vector<hpeAccess> accesses) {
  std::vector<hpeTeamMember> list;
  for (const team_member<Parameters>& m : members) list.push_back({m.device, m.shape, &m.parameters});
  std::erase_if(accesses, [](const hpeAccess& a) { return a.size == 0; });
  check(hpeLaunchTeam(list.data(), list.size(), what.get(), sizeof(Parameters), accesses.data(), accesses.size()));
}

/// Waits until all work queued so far has finished, and throws the first failure; see hpeSynchronize.
inline void synchronize() { check(hpeSynchronize()); }
/// Waits until all work queued so far on one device has finished, and throws the first failure; see
/// hpeSynchronizeDevice.
inline void synchronize(int device) { check(hpeSynchronizeDevice(device)); }

/// Copies bytes; each side may be hpe memory or any other memory of the program; see hpeMemcpy.
inline void copy(void* destination, const void* source, std::size_t bytes) {
  check(hpeMemcpy(destination, source, bytes));
}
/// Sets each of the bytes to a value; see hpeMemset.
inline void fill(void* destination, int value, std::size_t bytes) { check(hpeMemset(destination, value, bytes)); }
/// A hint that `where` (a device, or hpe::host) will soon use the bytes; see hpePrefetch.
inline void prefetch(const void* pointer, std::size_t bytes, int where) { check(hpePrefetch(pointer, bytes, where)); }
/// Tells hpe how the program uses an allocation; see hpeAdvise.
inline void advise(const void* pointer, hpeAdvice advice) { check(hpeAdvise(pointer, advice)); }
/// Makes a device the home of an allocation; the address does not change; see hpeMigrate.
inline void migrate(void* pointer, int device) { check(hpeMigrate(pointer, device)); }

/// Describes the memory at a pointer; see hpeGetPointerInfo.
[[nodiscard]] inline hpePointerInfo pointer_info(const void* pointer) {
  hpePointerInfo info{};
  check(hpeGetPointerInfo(pointer, &info));
  return info;
}

/// The counts of faults, bytes, launches and other events since the start or the last reset; see hpeGetStatistics.
[[nodiscard]] inline hpeStatistics statistics() {
  hpeStatistics s{};
  check(hpeGetStatistics(&s));
  return s;
}

}  // namespace hpe

#pragma once

/// For programs that were written for one device and are to run on several devices. This header provides
/// multi-dimensional arrays whose parts are on different devices, and launches of PTX kernels that run a part of the
/// grid on each device. Header only, on top of <hpe/spread.h>, which defines meaning and errors. Kernels that nvcc
/// compiled with the program are launched with <hpe/cuda.hpp>.
///
///   const hpe::ptx_module kernels(text);                              // the output of nvcc -ptx for a .cu file
///   hpe::ndarray<float, 2> now({ny, nx}), next({ny, nx});
///   now.fill(0);
///   now(1, 2) = 3;                                                    // plain CPU code
///   hpe::launch_over(kernels["stencil"], {nx / 32, ny / 8}, {32, 8}, next, now, nx, ny);

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hpe/hpe.hpp"
#include "hpe/spread.h"

namespace hpe {

/// Which index differs between elements that are neighbours in memory: the last index (row_major, as in C) or the first
/// index (column_major, as in Fortran).
enum class storage { row_major, column_major };

/// An owning array with D dimensions. The host uses the array like any contiguous range; kernels are passed a pointer
/// to its elements. On the host, elements read as zero until they are written. Movable, not copyable.
///
/// By default, each device has one contiguous part of a large array. The parts are cut at multiples of granularity()
/// bytes; with row_major order, a part is approximately a range of the first index. An array that has fewer than
/// granularity() bytes for each device is on the first device.
template <class T, std::size_t D, storage Order = storage::row_major>
requires(D >= 1) class ndarray {
 public:
  using value_type = T;
  using shape_type = std::array<std::size_t, D>;

  ndarray() = default;
  explicit ndarray(const shape_type& shape) : ndarray(shape, first_place(elements_of(shape))) {}
  ndarray(const shape_type& shape, const placement& where) : shape_(shape), elements_(elements_of(shape), where) {
    std::size_t step = 1;
    for (std::size_t n = 0; n < D; ++n) {
      const std::size_t dimension = Order == storage::row_major ? D - 1 - n : n;
      strides_[dimension] = step;
      step *= shape[dimension];
    }
  }

  [[nodiscard]] T* data() const noexcept { return elements_.data(); }
  /// The number of elements.
  [[nodiscard]] std::size_t size() const noexcept { return elements_.size(); }
  [[nodiscard]] const shape_type& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t extent(std::size_t dimension) const noexcept { return shape_[dimension]; }
  /// The distance, in elements, between elements whose indices differ by one in this dimension.
  [[nodiscard]] std::size_t stride(std::size_t dimension) const noexcept { return strides_[dimension]; }
  [[nodiscard]] T* begin() const noexcept { return elements_.begin(); }
  [[nodiscard]] T* end() const noexcept { return elements_.end(); }
  [[nodiscard]] std::span<T> span() const noexcept { return elements_.span(); }

  /// The element at the given indices, one for each dimension.
  template <std::convertible_to<std::size_t>... Index>
  requires(sizeof...(Index) == D) T& operator()(Index... index) const noexcept {
    const shape_type at{static_cast<std::size_t>(index)...};
    std::size_t offset = 0;
    for (std::size_t n = 0; n < D; ++n) offset += at[n] * strides_[n];
    return data()[offset];
  }

  /// Sets all elements to a value. If all bytes of the value are equal, the devices set the elements; otherwise the
  /// calling thread does.
  void fill(const T& value) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof value);
    if (std::all_of(bytes, bytes + sizeof bytes, [&](unsigned char b) { return b == bytes[0]; })) {
      if (size() != 0) hpe::fill(data(), bytes[0], size() * sizeof(T));
    } else {
      std::fill(begin(), end(), value);
    }
  }

 private:
  static std::size_t elements_of(const shape_type& shape) {
    std::size_t all = 1;
    for (const std::size_t extent : shape)
      if (__builtin_mul_overflow(all, extent, &all))
        throw error(HPE_ERROR_OUT_OF_MEMORY, "the number of elements of an array exceeds the largest std::size_t");
    return all;
  }

  static placement first_place(std::size_t elements) {
    const bool is_large = elements >= granularity() / sizeof(T) * static_cast<std::size_t>(device_count());
    return is_large ? block_distribution() : on_device(0);
  }

  shape_type shape_{}, strides_{};
  array<T> elements_;
};

/// A module of PTX. The destructor unloads it; see hpeModuleLoadPtx. Movable, not copyable.
class ptx_module {
 public:
  explicit ptx_module(const std::string& text) {
    const char* const texts[] = {text.c_str()};
    check(hpeModuleLoadPtx(&handle_, texts, 1));
  }
  ptx_module(ptx_module&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ptx_module& operator=(ptx_module&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ptx_module(const ptx_module&) = delete;
  ptx_module& operator=(const ptx_module&) = delete;
  ~ptx_module() {
    if (handle_ != nullptr) hpeModuleUnload(handle_);
  }

  [[nodiscard]] hpeModule get() const noexcept { return handle_; }
  /// The kernel with this name. The handle is valid as long as the module.
  [[nodiscard]] hpeKernel operator[](const char* name) const {
    hpeKernel kernel = nullptr;
    check(hpeModuleGetKernel(&kernel, handle_, name));
    return kernel;
  }

 private:
  hpeModule handle_ = nullptr;
};

/// The size of a grid or a block in up to three dimensions.
struct extents {
  template <std::integral X, std::integral Y = int, std::integral Z = int>
  extents(X x_, Y y_ = 1, Z z_ = 1)  // NOLINT(google-explicit-constructor): calls may pass {x, y}, or x alone
      : x(static_cast<std::uint32_t>(x_)), y(static_cast<std::uint32_t>(y_)), z(static_cast<std::uint32_t>(z_)) {}

  std::uint32_t x, y, z;
  std::uint32_t shared_bytes = 0;  ///< bytes of dynamic shared memory per block, if this is a block's size
};

namespace detail {

template <class T>
const T& parameter_of(const T& value) {
  return value;
}
template <class T, std::size_t D, storage Order>
T* parameter_of(const ndarray<T, D, Order>& whole) {
  return whole.data();
}
template <class T>
T* parameter_of(const array<T>& whole) {
  return whole.data();
}

/// Returns the bytes of the kernel's parameters, with the values of a launch's arguments. Throws
/// HPE_ERROR_INVALID_ARGUMENT if the number of arguments, or the size of an argument, differs from that of the kernel's
/// parameters.
template <class... Arguments>
std::vector<std::byte> parameters_of(hpeKernel kernel, const Arguments&... arguments) {
  hpeKernelInfo info{};
  check(hpeKernelGetInfo(kernel, &info));
  if (info.parameter_count != sizeof...(Arguments))
    throw error(HPE_ERROR_INVALID_ARGUMENT, "a kernel with " + std::to_string(info.parameter_count) +
                                                " parameters is launched with " + std::to_string(sizeof...(Arguments)));
  std::vector<std::byte> bytes(info.parameter_bytes);
  [[maybe_unused]] std::size_t n = 0;
  [[maybe_unused]] const auto put = [&](const auto& value) {
    static_assert(std::is_trivially_copyable_v<std::remove_cvref_t<decltype(value)>>);
    if (sizeof value != info.parameter_sizes[n])
      throw error(HPE_ERROR_INVALID_ARGUMENT, "parameter " + std::to_string(n) + " of a kernel has " +
                                                  std::to_string(info.parameter_sizes[n]) +
                                                  " bytes and is launched with " + std::to_string(sizeof value));
    std::memcpy(bytes.data() + info.parameter_offsets[n++], &value, sizeof value);
  };
  (put(parameter_of(arguments)), ...);
  return bytes;
}

}  // namespace detail

/// Queues a PTX kernel on several devices (an empty list means all devices) and returns without waiting for the kernel;
/// see hpeLaunchOver. `arguments` must have exactly the types of the kernel's parameters; for an ndarray or array, the
/// pointer to its elements is passed.
template <class... Arguments>
hpeSpread launch_over(const std::vector<int>& devices, hpeKernel kernel, const extents& grid, const extents& block,
                      const Arguments&... arguments) {
  const std::vector<std::byte> parameters = detail::parameters_of(kernel, arguments...);
  const hpeGrid shape{{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, block.shared_bytes, 0, {}};
  hpeSpread how{};
  check(hpeLaunchOver(devices.empty() ? nullptr : devices.data(), devices.size(), kernel, &shape, parameters.data(),
                      parameters.size(), &how));
  return how;
}

/// Like launch_over above, on all devices.
template <class... Arguments>
hpeSpread launch_over(hpeKernel kernel, const extents& grid, const extents& block, const Arguments&... arguments) {
  return launch_over(std::vector<int>{}, kernel, grid, block, arguments...);
}

}  // namespace hpe

#pragma once

/// Support for the tests of devices.

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/os/file_descriptor.h"
#include "tests/device/layout.h"

namespace device_test {

using namespace std::chrono_literals;

inline constexpr std::size_t MiB = std::size_t{1} << 20;

/// Returns the specifications of CUDA devices to test; empty on machines without CUDA devices.
[[nodiscard]] std::vector<const char*> gpus();

/// Returns the file with the kernels of these tests: the value of DEVICE_TEST_KERNELS if it is set, as on another
/// machine, otherwise the path at which the file was built.
[[nodiscard]] const char* file_of_kernels();

/// Host memory that devices can map: it is registered with a set as long as the object exists.
class host_buffer {
 public:
  host_buffer(hpe::device::device_set& set, std::size_t bytes);
  host_buffer(const host_buffer&) = delete;
  host_buffer& operator=(const host_buffer&) = delete;
  ~host_buffer();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  hpe::device::device_set& set_;
  std::size_t bytes_;
  hpe::os::file_descriptor file_;
  std::byte* data_ = nullptr;
};

/// Sets environment variables as long as the object exists.
class environment {
 public:
  environment(std::initializer_list<std::pair<const char*, const char*>> variables);
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  ~environment();

 private:
  std::vector<std::string> names_;
};

/// A set of devices, the kernels of these tests, and one stream for each device.
class machine {
 public:
  explicit machine(const std::string& specification);

  [[nodiscard]] hpe::device::device_set& set() const { return *set_; }
  [[nodiscard]] hpe::device::device& device(unsigned index) const { return set_->at(index); }
  [[nodiscard]] hpe::device::stream& stream(unsigned device) const { return *streams_[device]; }
  [[nodiscard]] unsigned size() const { return set_->size(); }
  [[nodiscard]] const hpe::uvas_layout& layout() const { return layout_; }
  /// Returns the address of a byte in the segment of a device, or in the segment after the devices' segments.
  [[nodiscard]] std::byte* address(unsigned segment, std::size_t offset = 0) const;
  template <class T>
  [[nodiscard]] T* at(unsigned segment, std::size_t offset = 0) const {
    return reinterpret_cast<T*>(address(segment, offset));
  }

  hpe::device::kernel_id kernel(const std::string& name);
  template <class Parameters>
  hpe::timepoint launch(hpe::device::stream& on, const std::string& name, const Parameters& parameters,
                        const hpe::device::shape& shape = {}) {
    return on.launch(kernel(name), shape, std::as_bytes(std::span(&parameters, 1)));
  }

  /// Waits for the point, at most 20 s, and expects no failure.
  void finish(hpe::timepoint point) const;
  /// Waits for the point, and returns its status. If the wait takes more than 20 s, the test fails.
  [[nodiscard]] hpeStatus outcome(hpe::timepoint point) const;

 private:
  hpe::uvas_layout layout_;
  std::unique_ptr<hpe::device::device_set> set_;
  std::uint32_t module_ = 0;
  std::map<std::string, hpe::device::kernel_id> kernels_;
  std::vector<hpe::device::stream*> streams_;
};

[[nodiscard]] std::chrono::steady_clock::time_point in(std::chrono::milliseconds time);

/// Returns the status of the error that a call throws; HPE_SUCCESS if it throws nothing.
template <class Call>
hpeStatus thrown_by(Call call) {
  try {
    call();
  } catch (const hpe::error& e) {
    return e.status();
  }
  return HPE_SUCCESS;
}

/// Returns the message of the error that a call throws; empty if it throws nothing.
template <class Call>
std::string words_of(Call call) {
  try {
    call();
  } catch (const hpe::error& e) {
    return e.what();
  }
  return {};
}

}  // namespace device_test

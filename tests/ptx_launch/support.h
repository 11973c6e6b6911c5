#pragma once

/// Support for the tests of PTX modules.

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "hpe/hpe.hpp"
#include "hpe/ptx.h"

namespace ptx_launch {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("no file " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Returns the PTX of the kernels of kernels.cu.
inline const std::string& kernels_text() {
  static const std::string text = read_file(PTX_LAUNCH_KERNELS);
  return text;
}

/// Returns whether the call failed with this status and a message that contains these words.
inline testing::AssertionResult fails(hpeStatus got, hpeStatus wanted, std::initializer_list<std::string> words = {}) {
  const std::string text = hpeGetLastErrorMessage();
  if (got != wanted)
    return testing::AssertionFailure() << hpeStatusName(got) << " instead of " << hpeStatusName(wanted) << ": " << text;
  for (const std::string& word : words)
    if (text.find(word) == std::string::npos) return testing::AssertionFailure() << '"' << text << "\" lacks " << word;
  return testing::AssertionSuccess();
}

inline testing::AssertionResult works(hpeStatus got) {
  if (got == HPE_SUCCESS) return testing::AssertionSuccess();
  return testing::AssertionFailure() << hpeStatusName(got) << ": " << hpeGetLastErrorMessage();
}

/// Returns the shape of a one-dimensional launch.
inline hpeGrid blocks_of(std::uint32_t blocks, std::uint32_t threads, std::uint32_t shared = 0) {
  return {{blocks, 1, 1}, {threads, 1, 1}, shared, 0, {}};
}

/// A loaded module. The destructor unloads it.
class module {
 public:
  module() :module({kernels_text()}) {}
  explicit module(const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    pointers.reserve(texts.size());
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    EXPECT_TRUE(works(hpeModuleLoadPtx(&handle_, pointers.data(), pointers.size())));
  }
  module(const module&) = delete;
  module& operator=(const module&) = delete;
  ~module() { unload(); }

  void unload() {
    if (handle_ == nullptr) return;
    EXPECT_TRUE(works(hpeModuleUnload(handle_)));
    handle_ = nullptr;
  }

  [[nodiscard]] hpeModule handle() const { return handle_; }
  [[nodiscard]] hpeKernel kernel(const std::string& name) const {
    hpeKernel found = nullptr;
    EXPECT_TRUE(works(hpeModuleGetKernel(&found, handle_, name.c_str())));
    return found;
  }
  template <class T>
  [[nodiscard]] T* variable(const std::string& name, int device) const {
    void* address = nullptr;
    std::size_t size = 0;
    EXPECT_TRUE(works(hpeModuleGetVariable(&address, &size, handle_, name.c_str(), device)));
    EXPECT_EQ(size % sizeof(T), 0U);
    return static_cast<T*>(address);
  }

  /// Launches a kernel that may access any allocation. The arguments are those that the kernel declares.
  template <class... Arguments>
  hpeStatus try_launch(hpeWork* work, int device, const std::string& name, const hpeGrid& shape,
                       const Arguments&... arguments) const {
    const auto bytes = pack(name, arguments...);
    return hpeLaunchGrid(device, kernel(name), &shape, bytes.data(), bytes.size(), nullptr, HPE_ALL, work);
  }
  template <class... Arguments>
  hpeWork launch(int device, const std::string& name, const hpeGrid& shape, const Arguments&... arguments) const {
    hpeWork work{};
    EXPECT_TRUE(works(try_launch(&work, device, name, shape, arguments...))) << name;
    return work;
  }
  /// Launches a kernel after the work in `after`. Such launches may run at the same time.
  template <class... Arguments>
  hpeWork launch_after(const std::vector<hpeWork>& after, int device, const std::string& name, const hpeGrid& shape,
                       const Arguments&... arguments) const {
    hpeWork work{};
    const auto bytes = pack(name, arguments...);
    EXPECT_TRUE(works(hpeLaunchGridAfter(device, kernel(name), &shape, bytes.data(), bytes.size(), after.data(),
                                         after.size(), &work)))
        << name;
    return work;
  }
  /// Launches a kernel and names its accesses.
  template <class... Arguments>
  hpeWork launch_on(const std::vector<hpeAccess>& accesses, int device, const std::string& name, const hpeGrid& shape,
                    const Arguments&... arguments) const {
    hpeWork work{};
    const auto bytes = pack(name, arguments...);
    EXPECT_TRUE(works(hpeLaunchGrid(device, kernel(name), &shape, bytes.data(), bytes.size(), accesses.data(),
                                    accesses.size(), &work)))
        << name;
    return work;
  }

 private:
  template <class... Arguments>
  [[nodiscard]] std::vector<std::byte> pack(const std::string& name, const Arguments&... arguments) const {
    hpeKernelInfo info{};
    EXPECT_TRUE(works(hpeKernelGetInfo(kernel(name), &info)));
    EXPECT_EQ(info.parameter_count, sizeof...(arguments)) << name;
    std::vector<std::byte> bytes(info.parameter_bytes);
    std::size_t n = 0;
    const auto put = [&](std::span<const std::byte> argument) {
      EXPECT_EQ(info.parameter_sizes[n], argument.size()) << name << ", parameter " << n;
      std::memcpy(bytes.data() + info.parameter_offsets[n++], argument.data(), argument.size());
    };
    static_cast<void>(put);
    (put(std::as_bytes(std::span(&arguments, 1))), ...);
    return bytes;
  }

  hpeModule handle_ = nullptr;
};

inline int device_count() {
  int count = 0;
  EXPECT_TRUE(works(hpeGetDeviceCount(&count)));
  return count;
}

/// Each test has new random numbers. A test that fails prints the seed.
class random_numbers : public testing::Test {
 protected:
  std::uint32_t seed = std::random_device{}();
  std::mt19937 random{seed};
  testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
};

}  // namespace ptx_launch

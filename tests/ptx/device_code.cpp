// Tests the reader of the PTX in objects that nvcc makes.

#include "runtime/ptx/files/device_code.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "hpe/error.hpp"
#include "runtime/ptx/text/parser.h"
#include "tests/ptx/kernel_runner.h"

namespace hpe::ptx::test {
namespace {

class written_file {
 public:
  explicit written_file(const std::string& content)
      : path_(std::filesystem::temp_directory_path() / ("hpe-device-code-" + std::to_string(::getpid()))) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  written_file(const written_file&) = delete;
  written_file& operator=(const written_file&) = delete;
  ~written_file() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string refusal(const std::string& path) {
  try {
    static_cast<void>(read_device_code(path));
  } catch (const hpe::error& e) {
    return e.what();
  }
  return "";
}

TEST(DeviceCode, OfAnObject) {
  const device_code found = read_device_code(HPE_PTX_OBJECT);
  ASSERT_EQ(found.modules.size(), 1U);
  const auto p = parse(found.modules[0]);
  EXPECT_NE(p->find_kernel("saxpy"), nullptr);
  EXPECT_NE(p->find_kernel("own_barrier"), nullptr);
}

TEST(DeviceCode, OfAText) {
  const device_code found = read_device_code(HPE_PTX_LAUNCH_KERNELS);
  ASSERT_EQ(found.modules.size(), 1U);
  EXPECT_EQ(found.modules[0], std::vector<std::string>{read_file(HPE_PTX_LAUNCH_KERNELS)});
}

TEST(DeviceCode, OfOtherFilesIsRefused) {
  EXPECT_NE(refusal("/nowhere/at/all").find("there is no file"), std::string::npos);
  for (const char* const path : {"/dev/zero", "/dev"})
    EXPECT_NE(refusal(path).find("is a folder or a device"), std::string::npos) << refusal(path);
  EXPECT_NE(refusal("/proc/self/exe").find("nvcc did not make it"), std::string::npos);
  EXPECT_NE(refusal(written_file("").path()).find("empty"), std::string::npos);
  EXPECT_NE(refusal(written_file("some words\n").path()).find("is neither PTX"), std::string::npos);
  EXPECT_NE(refusal(written_file(std::string(".version\0", 9)).path()).find("is neither PTX"), std::string::npos);
}

TEST(DeviceCode, OfDamagedObjectsIsReadOrRefused) {
  const std::string whole = read_file(HPE_PTX_OBJECT);
  const std::size_t container = whole.find(std::string("\x50\xed\x55\xba", 4));
  ASSERT_NE(container, std::string::npos);
  std::mt19937 random(std::random_device{}());
  for (unsigned n = 0; n < 300; ++n) {
    std::string damaged = whole;
    if (n % 3 == 0) {
      damaged.resize(random() % damaged.size());
    } else {
      const std::size_t from = n % 2 == 0 ? container : 0, room = n % 2 == 0 ? 300 : damaged.size();
      for (unsigned k = 0; k < 4; ++k)
        damaged[std::min(damaged.size() - 1, from + random() % room)] = static_cast<char>(random());
    }
    const written_file file(damaged);
    try {
      static_cast<void>(read_device_code(file.path()));
    } catch (const hpe::error& e) {
      EXPECT_NE(std::string(e.what()), "");
    }
  }
}

}  // namespace
}  // namespace hpe::ptx::test

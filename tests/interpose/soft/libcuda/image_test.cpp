// Images that a program loads at run time: damaged images, and machine code.
#include <cuda.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/bytes_at_end.h"
#include "tests/interpose/soft/libcuda/driver_fixture.h"

namespace {

using namespace hpe::libcuda::test;
using hpe::test::bytes_at_end;

constexpr const char* one_kernel = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry one() { ret; }\n";

std::string told_by(const std::function<void()>& call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

class Image : public Driver {
 protected:
  void SetUp() override {
    Driver::SetUp();
    ASSERT_EQ(cuCtxSetCurrent(retained(0)), CUDA_SUCCESS);
  }

  static CUresult unloaded(CUresult result, const CUmodule& module) {
    EXPECT_EQ(cuModuleUnload(module), result == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
    return result;
  }

  static CUresult load_memory(const std::string& image) {
    CUmodule module = nullptr;
    const bytes_at_end bytes(image);
    return unloaded(cuModuleLoadData(&module, bytes.data()), module);
  }

  CUresult load_file(const std::string& image) const {
    std::ofstream(path_, std::ios::binary) << image;
    CUmodule module = nullptr;
    return unloaded(cuModuleLoad(&module, path_.c_str()), module);
  }

  // Adds bytes of this type to a link, and returns the result.
  static CUresult link(const std::string& image, CUjitInputType type) {
    const bytes_at_end bytes(image);
    CUlinkState state = nullptr;
    EXPECT_EQ(cuLinkCreate(0, nullptr, nullptr, &state), CUDA_SUCCESS);
    const CUresult result =
        cuLinkAddData(state, type, const_cast<char*>(bytes.data()), bytes.size(), "image", 0, nullptr, nullptr);
    EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
    return result;
  }

  // Returns an image that cuLinkComplete has made.
  static std::string linked_image() {
    CUlinkState state = nullptr;
    EXPECT_EQ(cuLinkCreate(0, nullptr, nullptr, &state), CUDA_SUCCESS);
    std::string text = one_kernel;
    EXPECT_EQ(cuLinkAddData(state, CU_JIT_INPUT_PTX, text.data(), text.size(), "one", 0, nullptr, nullptr),
              CUDA_SUCCESS);
    void* image = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(cuLinkComplete(state, &image, &size), CUDA_SUCCESS);
    std::string bytes(static_cast<const char*>(image), size);
    EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
    return bytes;
  }

  static std::vector<std::string> good_images() {
    std::vector<std::string> images{linked_image()};
    for (const auto& each : std::filesystem::directory_iterator(HPE_FAT_BINARY_CORPUS)) {
      if (each.path().filename() == "object" || each.path().filename() == "stated_size") continue;  // not images
      std::ifstream file(each.path(), std::ios::binary);
      images.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return images;
  }

  const std::string path_ = testing::TempDir() + "damaged_image_" + std::to_string(::getpid());
};

TEST_F(Image, EachGoodImageLoadsInEveryWay) {
  for (const std::string& good : good_images()) {
    EXPECT_EQ(load_memory(good), CUDA_SUCCESS);
    EXPECT_EQ(load_file(good), CUDA_SUCCESS);
    EXPECT_EQ(link(good, CU_JIT_INPUT_FATBINARY), CUDA_SUCCESS);
    EXPECT_EQ(link(good, CU_JIT_INPUT_CUBIN), CUDA_SUCCESS);
  }
}

TEST_F(Image, EveryTruncationIsRefused) {
  told_by([&] {
    for (const std::string& good : good_images()) {
      for (std::size_t n = 8; n < good.size(); n += n < 200 ? 1 : 16) {
        const std::string cut = good.substr(0, n);
        EXPECT_EQ(load_memory(cut), CUDA_ERROR_INVALID_IMAGE) << n;
        EXPECT_EQ(load_file(cut), CUDA_ERROR_INVALID_IMAGE) << n;
        EXPECT_EQ(link(cut, CU_JIT_INPUT_FATBINARY), CUDA_ERROR_INVALID_IMAGE) << n;
      }
    }
  });
}

TEST_F(Image, SizesBeyondTheImageAreRefused) {
  told_by([&] {
    for (const std::string& good : good_images()) {
      for (std::size_t at = 8; at + 8 <= std::min<std::size_t>(good.size(), 200); at += 4) {
        for (const std::uint64_t size : {0x7fffffffULL, 0x20000050ULL, 0x00bd0050ULL, 0xffffffffffffULL, ~0ULL}) {
          std::string changed = good;
          std::memcpy(changed.data() + at, &size, size > 0xffffffff ? 8 : 4);
          for (const CUresult result : {load_memory(changed), load_file(changed), link(changed, CU_JIT_INPUT_CUBIN)})
            EXPECT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_IMAGE ||
                        result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_NO_BINARY_FOR_GPU)
                << at << ": " << result;
        }
      }
    }
  });
}

TEST_F(Image, OfMachineCodeTheReasonIsTold) {
  const std::string machine_code = "\177ELF" + std::string(60, '\1');
  std::array<char, 400> log{};
  std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  CUmodule module = nullptr;
  const auto load = [&] {
    EXPECT_EQ(cuModuleLoadDataEx(&module, machine_code.data(), 2, options.data(), values.data()),
              CUDA_ERROR_NO_BINARY_FOR_GPU);
  };
  const std::string told = told_by(load);
  for (const std::string_view text : {std::string_view(told), std::string_view(log.data())}) {
    EXPECT_NE(text.find("machine code of GPUs"), std::string::npos) << text;
    EXPECT_NE(text.find("nvrtcGetPTX"), std::string::npos) << text;
  }
  EXPECT_NE(told.find("cuModuleLoadDataEx"), std::string::npos) << told;
  EXPECT_EQ(told_by(load), "");  // the message is printed only the first time
}

}  // namespace

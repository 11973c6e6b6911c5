// hpe's messages if the CUDA driver is missing, too old, or has no usable device. The driver is a stand-in that the
// loader finds first, so that these tests run on machines without GPUs.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/granule.h"
#include "runtime/device/cuda/open.h"
#include "tests/device/support.h"

namespace device_test {
namespace {

/// The message and the status of the error that is thrown when GPUs are opened.
struct refusal {
  std::string words;
  hpeStatus status = HPE_SUCCESS;

  explicit refusal(const std::string& devices) {
    try {
      hpe::device::open_devices(devices, layout_for(4));
    } catch (const hpe::error& e) {
      words = e.what();
      status = e.status();
    }
  }
  [[nodiscard]] bool says(const std::string& what) const { return words.find(what) != std::string::npos; }
};

class playing {
 public:
  explicit playing(const char* part) : variable_{{"STAND_IN_DRIVER", part}} {}

 private:
  environment variable_;
};

// The driver must be loaded before the address space is reserved, and must not be loaded in programs that use no GPUs.
// This test must run first, because the driver stays loaded.
TEST(stand_in, is_loaded_at_once_where_gpus_may_be_used) {
  const auto is_loaded = [] { return ::dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY) != nullptr; };
  if (is_loaded()) GTEST_SKIP() << "the CUDA driver is loaded already";
  const playing part("one");
  hpe::device::prepare_devices("soft:2");
  EXPECT_FALSE(is_loaded());
  hpe::device::prepare_devices("cuda:1");
  EXPECT_TRUE(is_loaded());
}

TEST(stand_in, an_old_driver_is_named_with_its_version_and_the_one_that_is_needed) {
  const playing part("old");
  const refusal r("cuda");
  EXPECT_EQ(r.status, HPE_ERROR_INITIALIZATION);
  EXPECT_TRUE(r.says("CUDA 11.8") && r.says("too old") && r.says("12.0")) << r.words;
}

TEST(stand_in, a_driver_without_devices_is_told_apart_from_none) {
  {
    const playing part("no device");
    const environment variable{{"CUDA_VISIBLE_DEVICES", "7"}};
    const refusal r("cuda");
    EXPECT_EQ(r.status, HPE_ERROR_INITIALIZATION);
    EXPECT_TRUE(r.says("CUDA_ERROR_NO_DEVICE") && r.says("CUDA_VISIBLE_DEVICES is 7")) << r.words;
  }
  const playing part("none");
  const refusal r("cuda");
  EXPECT_EQ(r.status, HPE_ERROR_INITIALIZATION);
  EXPECT_TRUE(r.says("finds no GPU")) << r.words;
}

TEST(stand_in, a_driver_that_does_not_start_says_why) {
  const playing part("mismatch");
  const refusal r("cuda");
  EXPECT_EQ(r.status, HPE_ERROR_INITIALIZATION);
  EXPECT_TRUE(r.says("does not start") && r.says("the stand-in says so")) << r.words;
}

TEST(stand_in, a_device_that_lacks_something_is_named_with_what_it_lacks) {
  const playing part("unsupported");
  const refusal r("cuda");
  EXPECT_EQ(r.status, HPE_ERROR_INITIALIZATION);
  EXPECT_TRUE(r.says("Stand-in GPU") && r.says("virtual memory management") && r.says("CUDA_VISIBLE_DEVICES"))
      << r.words;
}

TEST(stand_in, a_device_that_is_taken_is_named) {
  const playing part("exclusive");
  const refusal r("cuda:1");
  EXPECT_EQ(r.status, HPE_ERROR_INITIALIZATION);
  EXPECT_TRUE(r.says("Stand-in GPU") && r.says("cannot be used")) << r.words;
}

TEST(stand_in, more_devices_than_there_are_cannot_be_had) {
  const playing part("one");
  const refusal r("cuda:2");
  EXPECT_EQ(r.status, HPE_ERROR_INITIALIZATION);
  EXPECT_TRUE(r.says("there are 1 GPUs")) << r.words;
}

TEST(stand_in, memory_that_is_not_there_is_refused_with_sizes) {
  const playing part("one");
  const auto set = hpe::device::open_devices("cuda", layout_for(4));
  std::string words;
  try {
    set->at(0).map(reinterpret_cast<void*>(layout_for(4).base), 4 * hpe::granule_size);
  } catch (const hpe::error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_OUT_OF_MEMORY);
    words = e.what();
  }
  for (const char* part_of_it : {"device 0", "3145728", "8589934592", "8388608"})
    EXPECT_NE(words.find(part_of_it), std::string::npos) << part_of_it << " in: " << words;
}

TEST(stand_in, kernels_get_the_dynamic_shared_memory_of_their_launches) {
  const playing part("working");
  const auto set = hpe::device::open_devices("cuda", layout_for(4));
  const std::uint32_t module = set->load_module(file_of_kernels());
  hpe::device::stream& stream = set->at(0).create_stream(hpe::device::priority::launch);
  constexpr std::uint32_t kib = 1024;
  for (const char* const name : {"with_tile", "with_array", "empty"}) {
    const hpe::device::kernel_id kernel = set->find_kernel(module, name);
    const auto launch = [&](std::uint32_t shared) {
      hpe::device::shape shape;
      shape.shared_bytes = shared;
      stream.launch(kernel, shape, {});
    };
    for (const std::uint32_t bytes : {0U, 4 * kib, 40 * kib, 8 * kib, 200 * kib, 0U, 60 * kib})
      EXPECT_NO_THROW(launch(bytes)) << name << ", " << bytes << " bytes";
    EXPECT_THROW(launch(230 * kib), hpe::error) << name;
    EXPECT_NO_THROW(launch(200 * kib)) << name;
  }
}

TEST(stand_in, zero_copy_memory_is_host_memory_of_the_driver) {
  const playing part("working");
  const auto set = hpe::device::open_devices("cuda", layout_for(4));
  auto* const address = reinterpret_cast<std::byte*>(layout_for(4).base);  // NOLINT(performance-no-int-to-ptr)
  using hpe::device::backing_kind;
  set->at(0).map(address, hpe::granule_size, hpe::device::contents::zeros, backing_kind::zero_copy);
  set->at(0).map(address + hpe::granule_size, hpe::granule_size, hpe::device::contents::zeros, backing_kind::device);
  EXPECT_EQ(address[hpe::granule_size - 1], std::byte{0});
  EXPECT_EQ(address[hpe::granule_size], std::byte{0});
}

TEST(stand_in, the_default_is_the_gpus_where_the_driver_can_be_used_and_soft_devices_elsewhere) {
  const auto kind_of_default = [] { return hpe::device::open_devices("", layout_for(4))->at(0).info().kind; };
  {
    const playing part("one");
    EXPECT_TRUE(hpe::device::cuda::present());
    EXPECT_EQ(kind_of_default(), HPE_DEVICE_CUDA);
  }
  const playing part("old");
  EXPECT_FALSE(hpe::device::cuda::present());
  EXPECT_EQ(kind_of_default(), HPE_DEVICE_SOFT);
}

TEST(ancient, a_driver_that_lacks_an_entry_is_too_old) {
  const refusal r("cuda");
  EXPECT_EQ(r.status, HPE_ERROR_INITIALIZATION);
  EXPECT_TRUE(r.says("has no cu") && r.says("too old") && r.says("12.0")) << r.words;
}

TEST(damaged, a_driver_that_cannot_be_loaded_counts_as_none) {
  const refusal r("cuda");
  EXPECT_EQ(r.status, HPE_ERROR_INITIALIZATION);
  EXPECT_TRUE(r.says("no CUDA driver") && r.says("libcuda.so.1") && r.says("HPE_DEVICES=soft:2")) << r.words;
  EXPECT_FALSE(hpe::device::cuda::present());
}

}  // namespace
}  // namespace device_test

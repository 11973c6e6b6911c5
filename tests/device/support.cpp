#include "tests/device/support.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/base/error.h"
#include "runtime/device/cuda/open.h"
#include "runtime/os/virtual_memory.h"

namespace device_test {

const char* file_of_kernels() {
  const char* const elsewhere = std::getenv("DEVICE_TEST_KERNELS");
  return elsewhere != nullptr ? elsewhere : DEVICE_TEST_KERNELS;
}

std::vector<const char*> gpus() {
  return hpe::device::cuda::present() ? std::vector<const char*>{"cuda:1", "cuda"} : std::vector<const char*>{};
}

host_buffer::host_buffer(hpe::device::device_set& set, std::size_t bytes)
    : set_(set), bytes_(bytes), file_(hpe::os::create_memory_file("device-test", bytes)) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (p == MAP_FAILED) hpe::throw_system_error("mmap");
  data_ = static_cast<std::byte*>(p);
  set_.register_host(data_, bytes_, file_.get(), 0);
}

host_buffer::~host_buffer() {
  set_.unregister_host(data_, bytes_);
  ::munmap(data_, bytes_);
}

environment::environment(std::initializer_list<std::pair<const char*, const char*>> variables) {
  for (const auto& [name, value] : variables) {
    names_.emplace_back(name);
    ::setenv(name, value, 1);
  }
}

environment::~environment() {
  for (const std::string& name : names_) ::unsetenv(name.c_str());
}

machine::machine(const std::string& specification) : layout_(layout_for(18)) {
  set_ = hpe::device::open_devices(specification, layout_);
  module_ = set_->load_module(file_of_kernels());
  for (unsigned d = 0; d < set_->size(); ++d)
    streams_.push_back(&set_->at(d).create_stream(hpe::device::priority::launch));
}

std::byte* machine::address(unsigned segment, std::size_t offset) const {
  return reinterpret_cast<std::byte*>(layout_.base + segment * layout_.segment_size + offset);
}

hpe::device::kernel_id machine::kernel(const std::string& name) {
  const auto [found, is_new] = kernels_.try_emplace(name);
  if (is_new) found->second = set_->find_kernel(module_, name);
  return found->second;
}

void machine::finish(hpe::timepoint point) const {
  ASSERT_TRUE(set_->wait(point, in(20s)));
  const auto failure = set_->status_of(point);
  EXPECT_FALSE(failure) << failure->what();
}

hpeStatus machine::outcome(hpe::timepoint point) const {
  EXPECT_TRUE(set_->wait(point, in(20s)));
  const auto failure = set_->status_of(point);
  return failure ? failure->status() : HPE_SUCCESS;
}

std::chrono::steady_clock::time_point in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

}  // namespace device_test

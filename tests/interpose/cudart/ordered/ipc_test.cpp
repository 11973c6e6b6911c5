// Two processes that share memory of devices: this one and a child, which is the same program started anew.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "common.h"

namespace {

constexpr int count = 100'000;
constexpr const char* child_variable = "HPE_TEST_IPC_HANDLE";

std::string to_text(const cudaIpcMemHandle_t& handle) {
  std::string text;
  for (const char each : handle.reserved) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(each));
    text += digits;
  }
  return text;
}

cudaIpcMemHandle_t from_text(const std::string& text) {
  cudaIpcMemHandle_t handle{};
  for (std::size_t i = 0; i < sizeof handle.reserved; ++i) {
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return handle;
}

/// Starts this program again for one test, with the handle in its environment. Returns its exit status.
int run_child(const char* test, const cudaIpcMemHandle_t& handle) {
  const std::string text = to_text(handle);
  const std::string filter = std::string("--gtest_filter=") + test;
  const pid_t child = fork();
  if (child == 0) {
    setenv(child_variable, text.c_str(), 1);
    execl("/proc/self/exe", "cudart-ordered-tests", filter.c_str(), "--gtest_also_run_disabled_tests", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Ipc, MemoryOfOneProcessIsUsedByAnother) {
  const on_device<int> values(count);
  ASSERT_CUDA(cudaMemset(values.data(), 0, count * sizeof(int)));
  ASSERT_CUDA(add_to(values.data(), count, 7, nullptr));
  EXPECT_EQ(from_device(values.data(), count), std::vector<int>(count, 7));  // the host has a copy now
  cudaIpcMemHandle_t handle{};
  cudaIpcMemHandle_t again{};
  ASSERT_CUDA(cudaIpcGetMemHandle(&handle, values.data()));
  ASSERT_CUDA(cudaIpcGetMemHandle(&again, values.data()));
  EXPECT_EQ(std::memcmp(&handle, &again, sizeof handle), 0);
  EXPECT_EQ(run_child("Ipc.DISABLED_Child", handle), 0);
  EXPECT_EQ(from_device(values.data(), count), std::vector<int>(count, 15));
  ASSERT_CUDA(add_to(values.data(), count, 1, nullptr));
  EXPECT_EQ(from_device(values.data(), count), std::vector<int>(count, 16));
}

// Not a test of its own: what the other process does.
TEST(Ipc, DISABLED_Child) {
  const char* const text = std::getenv(child_variable);
  ASSERT_NE(text, nullptr);
  const cudaIpcMemHandle_t handle = from_text(text);
  void* opened = nullptr;
  void* again = nullptr;
  ASSERT_CUDA(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess));
  ASSERT_CUDA(cudaIpcOpenMemHandle(&again, handle, cudaIpcMemLazyEnablePeerAccess));
  EXPECT_EQ(opened, again);
  auto* const values = static_cast<int*>(opened);
  EXPECT_EQ(from_device(values, count), std::vector<int>(count, 7));
  ASSERT_CUDA(add_to(values, count, 8, nullptr));
  ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(from_device(values, count), std::vector<int>(count, 15));
  EXPECT_CUDA(cudaIpcCloseMemHandle(opened));
  EXPECT_CUDA(cudaIpcCloseMemHandle(opened));
  EXPECT_FAILS(cudaIpcCloseMemHandle(opened), cudaErrorInvalidValue);
}

TEST(Ipc, RefusesWrongMemoryAndHandles) {
  cudaIpcMemHandle_t handle{};
  int ordinary = 0;
  void* opened = nullptr;
  EXPECT_FAILS(cudaIpcGetMemHandle(&handle, &ordinary), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaIpcGetMemHandle(nullptr, &ordinary), cudaErrorInvalidValue);
  EXPECT_NE(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess), cudaSuccess);
  cudaGetLastError();
  const on_device<int> values(1);
  ASSERT_CUDA(cudaIpcGetMemHandle(&handle, values.data()));
  EXPECT_FAILS(cudaIpcOpenMemHandle(&opened, handle, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess), cudaErrorInvalidResourceHandle);
  EXPECT_FAILS(cudaIpcCloseMemHandle(values.data()), cudaErrorInvalidValue);
}

}  // namespace

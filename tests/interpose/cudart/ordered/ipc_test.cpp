// Two processes that share memory of devices: this one, and a program that it starts.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "common.h"

namespace {

constexpr int count = 100'000;  // of values; ipc_program.cpp has the same

std::string to_text(const cudaIpcMemHandle_t& handle) {
  std::string text;
  for (const char each : handle.reserved) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(each));
    text += digits;
  }
  return text;
}

/// Runs the program that doubles what a handle names. Returns its exit status.
int run_other(const cudaIpcMemHandle_t& handle, int expected) {
  const std::string text = to_text(handle);
  const std::string value = std::to_string(expected);
  const pid_t child = fork();
  if (child == 0) {
    execl(HPE_TEST_IPC_PROGRAM, HPE_TEST_IPC_PROGRAM, text.c_str(), value.c_str(), nullptr);
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
  EXPECT_EQ(run_other(handle, 7), 0);
  EXPECT_EQ(from_device(values.data(), count), std::vector<int>(count, 14));
  ASSERT_CUDA(add_to(values.data(), count, 1, nullptr));
  EXPECT_EQ(from_device(values.data(), count), std::vector<int>(count, 15));
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

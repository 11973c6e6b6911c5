// Two processes that share device memory and events: this process, and a program that it starts.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common.h"
#include "handle_text.h"

namespace {

constexpr int count = 100'000;  // the number of ints; the same as in ipc_program.cpp

/// Runs the program that doubles the ints in the memory of a handle; returns its exit status.
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
  EXPECT_EQ(from_device(values.data(), count), std::vector<int>(count, 7));
  EXPECT_EQ(values.data()[count - 1], 7);  // CPU code reads the memory, so the host has a copy now
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

TEST(Ipc, APointerOfAPoolIsImportedIntoThatPoolOnly) {
  std::vector<std::string> arguments{HPE_TEST_IPC_POOL_PROGRAM};
  std::vector<std::string> pointers;
  std::vector<std::pair<cudaMemPool_t, void*>> made;
  for (int p = 0; p < 2; ++p) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    properties.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool = nullptr;
    ASSERT_CUDA(cudaMemPoolCreate(&pool, &properties));
    void* block = nullptr;
    const int value = 10 + p;
    ASSERT_CUDA(cudaMallocFromPoolAsync(&block, sizeof value, pool, nullptr));
    ASSERT_CUDA(cudaMemcpy(block, &value, sizeof value, cudaMemcpyHostToDevice));
    int descriptor = -1;
    ASSERT_CUDA(cudaMemPoolExportToShareableHandle(&descriptor, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    ASSERT_EQ(fcntl(descriptor, F_SETFD, 0), 0);  // so that the other program inherits the descriptor
    arguments.push_back(std::to_string(descriptor));
    cudaMemPoolPtrExportData data{};
    ASSERT_CUDA(cudaMemPoolExportPointer(&data, block));
    pointers.push_back(to_text(data));
    made.emplace_back(pool, block);
    // A process cannot import pointers of its own pools.
    void* same = nullptr;
    EXPECT_FAILS(cudaMemPoolImportPointer(&same, pool, &data), cudaErrorInvalidValue);
  }
  arguments.insert(arguments.end(), pointers.begin(), pointers.end());
  std::vector<char*> list;
  for (std::string& each : arguments) list.push_back(each.data());
  list.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    execv(list[0], list.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1 | 8);
  for (int p = 0; p < 2; ++p) {
    close(std::stoi(arguments[1 + p]));
    EXPECT_CUDA(cudaFree(made[p].second));
    EXPECT_CUDA(cudaMemPoolDestroy(made[p].first));
  }
  void* ordinary = nullptr;
  ASSERT_CUDA(cudaMallocAsync(&ordinary, 4, nullptr));
  cudaMemPoolPtrExportData data{};
  EXPECT_FAILS(cudaMemPoolExportPointer(&data, ordinary), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFree(ordinary));
}

/// An event that processes share.
class shared {
 public:
  shared() { EXPECT_CUDA(cudaEventCreateWithFlags(&event_, cudaEventInterprocess | cudaEventDisableTiming)); }
  ~shared() { cudaEventDestroy(event_); }
  shared(const shared&) = delete;
  shared& operator=(const shared&) = delete;
  operator cudaEvent_t() const { return event_; }  // NOLINT(google-explicit-constructor): stands for its handle

  [[nodiscard]] cudaIpcEventHandle_t handle() const {
    cudaIpcEventHandle_t result{};
    EXPECT_CUDA(cudaIpcGetEventHandle(&result, event_));
    return result;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Starts the other program. After construction, that program has made all calls that return at once.
class other_process {
 public:
  other_process(const on_device<int>& values, const shared& mine, const shared& its, const char* what) {
    cudaIpcMemHandle_t memory{};
    EXPECT_CUDA(cudaIpcGetMemHandle(&memory, values.data()));
    const std::string arguments[] = {to_text(memory), to_text(mine.handle()), to_text(its.handle())};
    int channel[2];
    EXPECT_EQ(pipe(channel), 0);
    id_ = fork();
    if (id_ == 0) {
      dup2(channel[1], STDOUT_FILENO);
      close(channel[0]);
      close(channel[1]);
      execl(HPE_TEST_IPC_EVENT_PROGRAM, HPE_TEST_IPC_EVENT_PROGRAM, arguments[0].c_str(), arguments[1].c_str(),
            arguments[2].c_str(), what, nullptr);
      _exit(127);
    }
    close(channel[1]);
    char byte = 0;
    EXPECT_EQ(read(channel[0], &byte, 1), 1) << "the other program has ended";
    close(channel[0]);
  }
  ~other_process() {
    if (id_ > 0) end();
  }
  other_process(const other_process&) = delete;
  other_process& operator=(const other_process&) = delete;

  void kill() const { ::kill(id_, SIGKILL); }
  int end() {
    int status = 0;
    waitpid(std::exchange(id_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t id_ = 0;
};

TEST(IpcEvents, OrderTheWorkOfTwoProcesses) {
  const on_device<int> values(count);
  const shared mine;
  const shared its;
  const own_stream stream(cudaStreamNonBlocking);
  const own_stream behind(cudaStreamNonBlocking);
  ASSERT_CUDA(cudaMemset(values.data(), 0, count * sizeof(int)));
  ASSERT_CUDA(cudaDeviceSynchronize());
  host_gate gate;
  ASSERT_CUDA(gate.put(stream));
  ASSERT_CUDA(add_to(values.data(), count, 7, stream));
  ASSERT_CUDA(cudaEventRecord(mine, stream));
  EXPECT_CUDA(cudaEventQuery(its));  // never recorded
  other_process other(values, mine, its, "double");
  EXPECT_EQ(cudaEventQuery(its), cudaErrorNotReady);
  EXPECT_EQ(cudaEventQuery(mine), cudaErrorNotReady);
  ASSERT_CUDA(cudaStreamWaitEvent(behind, its, 0));
  ASSERT_CUDA(add_to(values.data(), count, 1, behind));
  EXPECT_EQ(cudaStreamQuery(behind), cudaErrorNotReady);
  gate.open();
  ASSERT_CUDA(cudaEventSynchronize(its));
  EXPECT_CUDA(cudaEventQuery(mine));
  ASSERT_CUDA(cudaStreamSynchronize(behind));
  EXPECT_EQ(from_device(values.data(), count), std::vector<int>(count, 15));
  EXPECT_EQ(other.end(), 0);
  ASSERT_CUDA(cudaEventRecord(its, stream));  // the event's last recording is now by this process
  ASSERT_CUDA(cudaEventSynchronize(its));
}

TEST(IpcEvents, NobodyWaitsForTheDead) {
  const on_device<int> values(count);
  const shared mine;
  const shared its;
  const own_stream stream(cudaStreamNonBlocking);
  ASSERT_CUDA(cudaMemset(values.data(), 0, count * sizeof(int)));
  ASSERT_CUDA(cudaDeviceSynchronize());
  other_process other(values, mine, its, "hang");
  EXPECT_EQ(cudaEventQuery(its), cudaErrorNotReady);
  ASSERT_CUDA(cudaStreamWaitEvent(stream, its, 0));
  ASSERT_CUDA(add_to(values.data(), count, 3, stream));
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  other.kill();
  ASSERT_CUDA(cudaEventSynchronize(its));  // returns although the parent has not reaped the process yet
  EXPECT_CUDA(cudaEventQuery(its));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(other.end(), 128 + SIGKILL);
  EXPECT_EQ(from_device(values.data(), count), std::vector<int>(count, 3));
}

TEST(IpcEvents, GraphsRecordThemForOthers) {
  const shared made;
  cudaEvent_t opened = nullptr;
  ASSERT_CUDA(cudaIpcOpenEventHandle(&opened, made.handle()));
  const own_stream stream;
  host_gate gate;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  ASSERT_CUDA(gate.put(stream));
  ASSERT_CUDA(cudaEventRecordWithFlags(made, stream, cudaEventRecordExternal));
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_CUDA(cudaEventQuery(opened));
  ASSERT_CUDA(cudaGraphLaunch(exec, stream));
  EXPECT_EQ(cudaEventQuery(opened), cudaErrorNotReady);
  gate.open();
  ASSERT_CUDA(cudaEventSynchronize(opened));
  EXPECT_CUDA(cudaEventQuery(made));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  ASSERT_CUDA(cudaGraphExecDestroy(exec));
  ASSERT_CUDA(cudaGraphDestroy(graph));
  ASSERT_CUDA(cudaEventDestroy(opened));
}

TEST(IpcEvents, RefuseWrongEventsAndHandles) {
  cudaIpcEventHandle_t handle{};
  cudaEvent_t plain = nullptr;
  cudaEvent_t opened = nullptr;
  ASSERT_CUDA(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
  EXPECT_FAILS(cudaIpcGetEventHandle(&handle, plain), cudaErrorInvalidResourceHandle);
  ASSERT_CUDA(cudaEventDestroy(plain));
  EXPECT_FAILS(cudaIpcOpenEventHandle(&opened, handle), cudaErrorInvalidResourceHandle);
  {
    const shared event;
    EXPECT_FAILS(cudaIpcGetEventHandle(nullptr, event), cudaErrorInvalidValue);
    handle = event.handle();
    EXPECT_FAILS(cudaIpcOpenEventHandle(nullptr, handle), cudaErrorInvalidValue);
    ASSERT_CUDA(cudaIpcOpenEventHandle(&opened, handle));
    float milliseconds = 0;
    EXPECT_FAILS(cudaEventElapsedTime(&milliseconds, opened, opened), cudaErrorInvalidResourceHandle);
    ASSERT_CUDA(cudaEventDestroy(opened));
  }
  EXPECT_FAILS(cudaIpcOpenEventHandle(&opened, handle), cudaErrorInvalidResourceHandle);
}

}  // namespace

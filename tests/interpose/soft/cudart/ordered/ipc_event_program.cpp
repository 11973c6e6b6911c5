// The second process of the tests in which two processes share events. It opens memory with 100,000 ints and two events
// of the process that started it, and writes one byte to standard output when it has made all calls that return at
// once.
//
//     cudart-ipc-event-program <memory> <their event> <my event> double|hang
//
// double: waits for their event, doubles the ints, and records my event. hang: records my event after work that never
// ends.

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "handle_text.h"
#include "ordered_kernels.h"

namespace {

constexpr int count = 100'000;

/// Ends the program if a call does not return the wanted result.
void check(cudaError_t result, const char* what, cudaError_t wanted = cudaSuccess) {
  if (result == wanted) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(result));
  std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  void* values = nullptr;
  cudaEvent_t theirs = nullptr;
  cudaEvent_t mine = nullptr;
  cudaStream_t stream = nullptr;
  check(cudaIpcOpenMemHandle(&values, from_text<cudaIpcMemHandle_t>(argv[1]), cudaIpcMemLazyEnablePeerAccess),
        "memory");
  check(cudaIpcOpenEventHandle(&theirs, from_text<cudaIpcEventHandle_t>(argv[2])), "their event");
  check(cudaIpcOpenEventHandle(&mine, from_text<cudaIpcEventHandle_t>(argv[3])), "my event");
  check(cudaStreamCreate(&stream), "stream");
  const bool hangs = std::string(argv[4]) == "hang";
  if (hangs) {
    const auto for_ever = [](void*) {
      while (true) pause();
    };
    check(cudaLaunchHostFunc(stream, for_ever, nullptr), "host function");
  } else {
    check(cudaEventQuery(theirs), "their event, before its work may begin", cudaErrorNotReady);
    check(cudaStreamWaitEvent(stream, theirs, 0), "wait");
    check(double_all(static_cast<int*>(values), count, stream), "kernel");
  }
  check(cudaEventRecord(mine, stream), "record");
  check(cudaEventQuery(mine), "my event, before its work may begin", cudaErrorNotReady);
  if (write(STDOUT_FILENO, "r", 1) != 1) return 3;
  check(cudaEventSynchronize(mine), "my event");  // does not return in "hang"
  check(cudaEventQuery(theirs), "their event, which precedes my event");
  check(cudaEventDestroy(theirs), "destroy");
  check(cudaEventDestroy(mine), "destroy");
  return 0;
}

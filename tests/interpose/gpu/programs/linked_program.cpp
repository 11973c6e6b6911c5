// A program that is linked with the CUDA driver. It copies 80 MiB to a device and back, and launches two kernels. With
// an argument, it instead waits for kernels of the stand-in that take seconds: in a synchronization, for an event, and
// in a touch.
#include <cuda.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "tests/interpose/gpu/stand_in/stand_in.h"

namespace {

const stand_in::kernel quick{[](const std::uint64_t*) {}, 0};
const stand_in::kernel slow{[](const std::uint64_t*) { ::sleep(3); }, 0};

void launch(const stand_in::kernel& kernel) {
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&kernel));
  if (cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) != CUDA_SUCCESS) ::_exit(9);
}

[[gnu::noinline]] unsigned touched(const volatile unsigned* at) { return *at; }

void wait_for_slow_kernels(CUdeviceptr memory) {
  launch(slow);
  cuStreamSynchronize(nullptr);
  CUevent event = nullptr;
  cuEventCreate(&event, 0);
  launch(slow);
  cuEventRecord(event, nullptr);
  cuEventSynchronize(event);
  launch(slow);
  static_cast<void>(touched(reinterpret_cast<const unsigned*>(memory)));
}

}  // namespace

int main(int argc, char** /*argv*/) {
  CUcontext context = nullptr;
  const CUresult started = cuInit(0);
  std::printf("cuInit %d\n", started);
  if (started != CUDA_SUCCESS) return 3;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  constexpr std::size_t bytes = std::size_t{80} << 20;
  std::vector<unsigned> in(bytes / 4);
  std::vector<unsigned> out(bytes / 4);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned>(i * i);
  CUdeviceptr device = 0;
  cuMemAlloc(&device, bytes);
  if (argc > 1) {
    wait_for_slow_kernels(device);
    return 0;
  }
  launch(quick);
  launch(quick);
  const CUresult up = cuMemcpyHtoD(device, in.data(), bytes);
  const CUresult down = cuMemcpyDtoH(out.data(), device, bytes);
  std::printf("copies %d %d %s\n", up, down, in == out ? "the same" : "WRONG");
  const auto* const direct = reinterpret_cast<const unsigned*>(device);
  std::printf("direct %u\n", direct[12345]);
  return 5;
}

// A program that is linked with the CUDA driver: prints the devices, and copies 80 MiB to a device and back.
#include <cuda.h>

#include <cstdio>
#include <vector>

int main() {
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
  const CUresult up = cuMemcpyHtoD(device, in.data(), bytes);
  const CUresult down = cuMemcpyDtoH(out.data(), device, bytes);
  std::printf("copies %d %d %s\n", up, down, in == out ? "the same" : "WRONG");
  const auto* const direct = reinterpret_cast<const unsigned*>(device);
  std::printf("direct %u\n", direct[12345]);
  return 5;
}

// A program that compiles a kernel at run time and requests machine code from NVRTC, as programs written for real GPUs
// do.
#include <cuda_runtime_api.h>
#include <nvrtc.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

const char* const source = "extern \"C\" __global__ void seven(int* out) { *out = 7; }";

// Returns the machine code; empty if NVRTC returns none.
std::string compiled(const std::vector<const char*>& options) {
  nvrtcProgram program = nullptr;
  nvrtcCreateProgram(&program, source, "seven.cu", 0, nullptr, nullptr);
  const nvrtcResult result = nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  size_t size = 0;
  std::string code;
  if (result == NVRTC_SUCCESS && nvrtcGetCUBINSize(program, &size) == NVRTC_SUCCESS) {
    code.resize(size);
    if (size > 0) nvrtcGetCUBIN(program, &code[0]);
  } else {
    std::printf("%s\n", nvrtcGetErrorString(result));
  }
  nvrtcDestroyProgram(&program);
  std::printf("destroyed: %d\n", program == nullptr);
  return code;
}

int run(const std::string& code) {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  int *out = nullptr, value = 0;
  cudaMalloc(reinterpret_cast<void**>(&out), sizeof *out);
  if (cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) != cudaSuccess) return -1;
  if (cudaLibraryGetKernel(&kernel, library, "seven") != cudaSuccess) return -2;
  void* arguments[] = {&out};
  if (cudaLaunchKernel(reinterpret_cast<const void*>(kernel), 1, 1, arguments, 0, nullptr) != cudaSuccess) return -3;
  cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost);
  cudaFree(out);
  return value;
}

}  // namespace

int main() {
  std::printf("one option: %d\n", run(compiled({"--gpu-architecture=sm_90", "-default-device"})));
  std::printf("two options: %d\n", run(compiled({"-std=c++17", "-arch", "sm_80"})));
  std::printf("of PTX: %zu bytes of machine code\n", compiled({"-arch=compute_80"}).size());
  compiled({"-arch=sm_1"});
}

// Measures the cost of a launch for the calling thread; prints medians over batches, in nanoseconds. The stand-in does
// no work for a null kernel and little work for all other kernels, so the difference between runs with and without `hpe
// run` is the cost of hpe.
//
//   interpose-launch-cost [ARRAYS]   the program makes ARRAYS allocations of 1 MiB (default: 0)
#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>
#include <vector>

namespace {

// With --spread, all kernels stay on one device: `adds` because it is short, `asks` because it reads the number of the
// multiprocessor on which it runs, and `follows` because it may use any memory.
const char* const code = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry adds(.param .u64 adds_0, .param .u64 adds_1, .param .u32 adds_2) {
  .reg .b32 %r<6>; .reg .b64 %d<5>;
  ld.param.u64 %d0, [adds_0]; ld.param.u64 %d1, [adds_1]; ld.param.u32 %r0, [adds_2];
  mov.u32 %r1, %ctaid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2;
  ld.global.u32 %r2, [%d3]; add.u32 %r3, %r2, %r0; st.global.u32 [%d4], %r3;
  ret;
}
.visible .entry asks(.param .u64 asks_0, .param .u64 asks_1, .param .u32 asks_2) {
  .reg .b32 %r<6>; .reg .b64 %d<5>;
  ld.param.u64 %d0, [asks_0];
  mov.u32 %r1, %smid; mov.u32 %r2, %ctaid.x; mul.wide.u32 %d2, %r2, 4; add.u64 %d3, %d0, %d2;
  st.global.u32 [%d3], %r1;
  ret;
}
.visible .entry follows(.param .u64 follows_0, .param .u64 follows_1, .param .u32 follows_2) {
  .reg .pred %p; .reg .b64 %d<3>;
  ld.param.u64 %d0, [follows_0]; ld.global.u64 %d1, [%d0];
  setp.eq.u64 %p, %d1, 0; @%p bra END;
  st.global.u64 [%d1], %d0;
END: ret;
}
)";

// Returns the processor time of the calling thread, which other threads and programs do not affect.
double nanoseconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

void require(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", what, static_cast<int>(result));
  std::exit(3);
}

// after: called after each launch; how: says what it does.
template <class After>
void measure(const char* name, int launches, CUfunction function, void** parameters, After after, const char* how) {
  std::array<double, 21> batches{};
  for (double& batch : batches) {
    const double begin = nanoseconds();
    for (int i = 0; i < launches; ++i) {
      require(cuLaunchKernel(function, 2, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), "a launch");
      after();
    }
    batch = (nanoseconds() - begin) / launches;
    require(cuCtxSynchronize(), "a wait");
  }
  std::sort(batches.begin(), batches.end());
  std::printf("ns per launch: median %8.2f, fastest %8.2f, quarter %8.2f  %s%s%s\n", batches[batches.size() / 2],
              batches.front(), batches[batches.size() / 4], name, *how != '\0' ? ", " : "", how);
}

void measure(const char* name, int launches, CUfunction function, void** parameters) {
  measure(
      name, launches, function, parameters, [] {}, "");
}

}  // namespace

int main(int argc, char** argv) {
  CUcontext context = nullptr;
  require(cuInit(0), "cuInit");
  require(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module = nullptr;
  CUfunction adds = nullptr, asks = nullptr, follows = nullptr;
  require(cuModuleLoadData(&module, code), "cuModuleLoadData");
  require(cuModuleGetFunction(&adds, module, "adds"), "cuModuleGetFunction");
  require(cuModuleGetFunction(&asks, module, "asks"), "cuModuleGetFunction");
  require(cuModuleGetFunction(&follows, module, "follows"), "cuModuleGetFunction");
  constexpr std::size_t bytes = std::size_t{1} << 20;
  std::vector<CUdeviceptr> arrays(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0);
  for (CUdeviceptr& each : arrays) require(cuMemAlloc(&each, bytes), "cuMemAlloc");
  CUdeviceptr small[2]{};  // the driver makes these allocations
  for (CUdeviceptr& each : small) require(cuMemAlloc(&each, 4096), "cuMemAlloc");

  unsigned number = 1;
  void* of_driver[] = {&small[0], &small[1], &number};
  // NVIDIA's driver refuses this launch.
  if (cuLaunchKernel(nullptr, 2, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS)
    measure("a kernel without code", 200, nullptr, nullptr);
  measure("a short kernel over memory of the driver", 100, adds, of_driver);
  if (arrays.size() < 2) return 0;
  void* of_hpe[] = {&arrays[0], &arrays[1], &number};
  measure("a short kernel over two arrays", 100, adds, of_hpe);
  measure("a kernel with an obstacle over two arrays", 100, asks, of_hpe);
  for (const CUdeviceptr each : arrays) require(cuMemsetD8(each, 0, bytes), "cuMemsetD8");
  const auto other_number = [&number] { ++number; };
  CUevent event = nullptr;
  require(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  const auto record = [event] { require(cuEventRecord(event, nullptr), "cuEventRecord"); };
  const auto wait = [] { require(cuStreamSynchronize(nullptr), "cuStreamSynchronize"); };
  const std::array<std::pair<const char*, CUfunction>, 3> kernels{
      {{"a short kernel", adds}, {"a kernel with an obstacle", asks}, {"a kernel that may use any memory", follows}}};
  void* of_zeros[] = {&arrays[arrays.size() - 1], &arrays[0], &number};  // `follows` finds no pointer there
  for (const auto& [name, kernel] : kernels) {
    void** const parameters = kernel == follows && arrays.size() > 2 ? of_zeros : of_hpe;
    measure(name, 100, kernel, parameters, other_number, "each time with another number");
    measure(name, 100, kernel, parameters, record, "each launch before an event");
    measure(name, 100, kernel, parameters, wait, "each launch before a wait");
  }
}

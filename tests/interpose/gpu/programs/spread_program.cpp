// A program for one GPU that calls the CUDA driver: vector addition, a stencil, a matrix product, a histogram and more.
// Prints only numbers that depend on all results. The words of the command line select its parts.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

#define MUST(call) must(call, #call)
void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::printf("%s: %d\n", call, static_cast<int>(result));
  std::exit(9);
}

constexpr int often = 24;  // launches after which hpe has measured a kernel with data in host memory
CUmodule kernels = nullptr;

CUfunction kernel(const char* name) {
  CUfunction found = nullptr;
  MUST(cuModuleGetFunction(&found, kernels, name));
  return found;
}

struct shape {
  unsigned grid[3];
  unsigned block[3];
};

template <class... Parameters>
void launch(const char* name, const shape& s, CUstream stream, Parameters... parameters) {
  void* each[] = {&parameters...};
  MUST(cuLaunchKernel(kernel(name), s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2], 0, stream,
                      each, nullptr));
}

CUdeviceptr array(std::size_t words) {
  CUdeviceptr made = 0;
  MUST(cuMemAlloc(&made, words * sizeof(float)));
  return made;
}

CUdeviceptr filled(std::size_t words, float from) {
  std::vector<float> values(words);
  for (std::size_t n = 0; n < words; ++n) values[n] = from + static_cast<float>(n % 97);
  const CUdeviceptr made = array(words);
  MUST(cuMemcpyHtoD(made, values.data(), words * sizeof(float)));
  return made;
}

unsigned long long digest(CUdeviceptr from, std::size_t words) {
  std::vector<unsigned> values(words);
  MUST(cuMemcpyDtoH(values.data(), from, words * sizeof(float)));
  unsigned long long sum = 14695981039346656037ULL;
  for (const unsigned v : values) sum = (sum ^ v) * 1099511628211ULL;
  return sum;
}

void print(const char* name, CUdeviceptr from, std::size_t words) {
  std::printf("%s %llx\n", name, digest(from, words));
}

constexpr unsigned n = 1U << 22U;  // the number of elements: 16 MiB, of which each of two devices gets a half
constexpr shape in_a_row{{n / 256 / 64, 1, 1}, {64, 1, 1}};

void add() {
  const CUdeviceptr a = filled(n, 1), b = filled(n, 2), c = array(n);
  launch("add", in_a_row, nullptr, a, b, c, n);
  print("add", c, n);
  MUST(cuMemFree(b));
  print("left", c, n);
}

// Two arrays are alternately read and written, on a stream of the program and on the default stream.
void diffuse(int steps = 4) {
  constexpr unsigned side = 2048;
  constexpr shape plane{{side / 16 / 32, side / 16 / 4, 1}, {32, 4, 1}};
  CUdeviceptr now = filled(n, 0), next = array(n);
  CUstream stream = nullptr;
  CUevent filled_event = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&filled_event, CU_EVENT_DISABLE_TIMING));
  MUST(cuEventRecord(filled_event, nullptr));
  MUST(cuStreamWaitEvent(stream, filled_event, 0));
  for (int step = 0; step < steps; ++step) {
    launch("diffuse", plane, stream, now, next, side, side);
    std::swap(now, next);
  }
  MUST(cuStreamSynchronize(stream));
  print("diffuse", now, n);
  MUST(cuStreamDestroy(stream));
}

// All blocks read each element of b; between launches, a copy overwrites b.
void gather() {
  const CUdeviceptr a = array(n), b = filled(n, 3);
  for (int round = 0; round < 3; ++round) {
    launch("reverse", in_a_row, nullptr, b, a, n);
    MUST(cuMemcpyDtoD(b, a, n * sizeof(float) / 2));
  }
  print("gather", a, n);
}

void count(int times = 1) {
  const CUdeviceptr values = filled(n, 0), bins = array(128);
  MUST(cuMemsetD32(bins, 0, 128));
  for (int each = 0; each < times; ++each) launch("count", in_a_row, nullptr, values, bins, n);
  print("count", bins, 128);
}

// CPU code writes and reads the bins; they are so small that the driver allocates them.
void touch() {
  const CUdeviceptr values = filled(n, 0), bins = array(128);
  MUST(cuMemsetD32(bins, 0, 128));
  auto* const seen = reinterpret_cast<volatile unsigned*>(bins);  // NOLINT(performance-no-int-to-ptr)
  for (unsigned round = 1; round < 4; ++round) {
    seen[100 + round] = round;
    launch("count", in_a_row, nullptr, values, bins, n);
    unsigned long long sum = 0;
    for (unsigned b = 0; b < 128; ++b) sum = sum * 31 + seen[b];
    std::printf("touch %llx\n", sum);
  }
}

// Uses a constant that changes between launches, and a variable.
void weigh() {
  const CUdeviceptr a = filled(n, 1);
  CUdeviceptr weights = 0, total = 0;
  std::size_t bytes = 0;
  MUST(cuModuleGetGlobal(&weights, &bytes, kernels, "weights"));
  for (float first = 1; first < 4; ++first) {
    const float values[] = {first, 2, 3, 4};
    MUST(cuMemcpyHtoD(weights, values, sizeof values));
    launch("weigh", in_a_row, nullptr, a, n);
    launch("weigh", in_a_row, nullptr, a, n);
  }
  print("weigh", a, n);
  launch("add_up", in_a_row, nullptr, a, n);
  unsigned long long sum = 0;
  MUST(cuModuleGetGlobal(&total, &bytes, kernels, "total"));
  MUST(cuMemcpyDtoH(&sum, total, sizeof sum));
  std::printf("total %llu\n", sum);
}

// Uses more memory than one device has.
void large() {
  constexpr std::size_t words = (std::size_t{256} << 20) / sizeof(float);
  const CUdeviceptr a = array(words);
  launch("mark", {{128, 1, 1}, {32, 1, 1}}, nullptr, a, static_cast<unsigned>(words / 4096));
  std::vector<float> last(1);
  MUST(cuMemcpyDtoH(last.data(), a + (words - words / 4096) * sizeof(float), sizeof(float)));
  std::printf("large %g\n", static_cast<double>(last[0]));
}

// Launches kernels on a stream while another stream is captured.
void capture() {
  const CUdeviceptr a = filled(n, 1), b = filled(n, 2), c = array(n), unused = array(n);
  CUstream captured = nullptr, other = nullptr;
  CUgraph graph = nullptr;
  MUST(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int round = 0; round < 2; ++round) launch("add", in_a_row, other, a, b, c, n);
  MUST(cuMemFree(unused));
  MUST(cuStreamEndCapture(captured, &graph));
  MUST(cuStreamSynchronize(other));
  print("capture", c, n);
  std::printf("freed twice %d\n", static_cast<int>(cuMemFree(unused)));
}

void ask() {
  int devices = 0;
  CUdevice device = 0;
  std::size_t free = 0, total = 0, of_device = 0, bytes = 0;
  CUdeviceptr base = 0, start = 0;
  MUST(cuDeviceGetCount(&devices));
  MUST(cuDeviceTotalMem(&of_device, 0));
  const CUdeviceptr a = array(2 * std::size_t{n});
  MUST(cuMemGetInfo(&free, &total));
  const CUdeviceptr last = a + 8 * std::size_t{n} - 4;
  MUST(cuMemGetAddressRange(&base, &bytes, last));
  int ordinal = -1;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
  void* values[] = {&ordinal, &start};
  MUST(cuPointerGetAttributes(2, which, values, last));
  CUcontext context = nullptr, current = nullptr;
  MUST(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, last));
  MUST(cuCtxGetCurrent(&current));
  CUipcMemHandle handle;
  std::printf("devices %d, second %d, memory %zu MiB = %zu MiB, base %d %d, bytes %zu, device %d, context %d, ipc %d\n",
              devices, static_cast<int>(cuDeviceGet(&device, 1)), of_device >> 20U, total >> 20U, base == a, start == a,
              bytes, ordinal, context == current, static_cast<int>(cuIpcGetMemHandle(&handle, a)));
  MUST(cuMemFree(a));
  std::printf("freed twice %d\n", static_cast<int>(cuMemFree(a)));
}

// Returns a function of the stand-in. The program's own dlopen and dlsym would return the shim's functions.
template <class Function>
Function* of_stand_in(const char* name) {
  const auto entry = reinterpret_cast<void* (*)(const char*)>(::dlsym(RTLD_DEFAULT, "hpe_cuda_driver_entry"));
  return reinterpret_cast<Function*>(entry(name));
}

unsigned calls_of(const char* entry) { return of_stand_in<unsigned(const char*)>("stand_in_count")(entry); }

// Prints how often the context of the second GPU has been made.
void contexts() { std::printf("contexts %u\n", calls_of("contexts of 1")); }

// Launches a kernel until a condition is true. Each launch seems to take so long that two GPUs would be faster.
template <class Condition>
void launch_until(const Condition& is_true) {
  of_stand_in<void(float)>("stand_in_take")(20);
  const CUdeviceptr a = filled(n, 1), b = filled(n, 2), c = array(n);
  for (int round = 0; round < 100 && !is_true(); ++round) {
    launch("add", in_a_row, nullptr, a, b, c, n);
    MUST(cuCtxSynchronize());
  }
}

// The stand-in compiles code other than the program's own.
bool is_compiling() { return calls_of("cuModuleLoadData") > 1; }

void launch_until_compiling() {
  launch_until(is_compiling);
  std::printf(is_compiling() ? "compiling\n" : "nothing was compiled\n");
  std::fflush(stdout);
}

// Ends while the driver makes the context of the second GPU, and then tells whether it has compiled code.
void launch_until_context() {
  launch_until([] { return calls_of("contexts of 1") > 0; });
  contexts();
  std::atexit([] { std::printf(is_compiling() ? "compiled\n" : "nothing was compiled\n"); });
}

void in_thread(void (*run)()) {
  CUcontext context = nullptr;
  MUST(cuCtxGetCurrent(&context));
  std::thread([=] {
    MUST(cuCtxSetCurrent(context));
    run();
  }).join();
}

// Launches a kernel whose analysis takes at least 30 seconds.
void launch_tangled() {
  std::string text =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry tangled(.param .u64 p) {\n"
      ".reg .b64 %rd<4>;\n.reg .b32 %r<4>;\n.reg .pred %q;\n"
      "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmov.u32 %r3, 0;\n";
  for (int i = 0; i < 60000; ++i) {
    const std::string end = "end" + std::to_string(i);
    text += "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.u32 %r2, [%rd3];\n";
    text +=
        "add.u32 %r3, %r3, %r2;\nsetp.lt.u32 %q, %r3, 7;\n@%q bra " + end + ";\nadd.u32 %r1, %r1, %r2;\n" + end + ":\n";
  }
  text += "st.global.u32 [%rd1], %r3;\nret;\n}\n";
  MUST(cuModuleLoadData(&kernels, text.c_str()));
  launch("tangled", {{1, 1, 1}, {1, 1, 1}}, nullptr, filled(n, 0));
  MUST(cuCtxSynchronize());
  std::printf("launched\n");
}

// Ends the process while hpe loads or analyses code.
void end(const std::string& how) {
  if (how == "return-beside") in_thread(launch_until_compiling);
  if (how == "return-beside-context") launch_until_context();
  if (how == "exit-beside") {
    launch_until_compiling();
    in_thread([] { std::exit(0); });
  }
  if (how == "exit-in-child") {
    launch_until_compiling();
    const pid_t child = ::fork();
    if (child == 0) std::exit(7);
    int status = 0;
    ::waitpid(child, &status, 0);
    std::printf("child %d\n", WEXITSTATUS(status));
  }
  if (how == "return-tangled") launch_tangled();
  if (how == "quick-exit") {
    launch_until_compiling();
    std::quick_exit(0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream file(HPE_TEST_SPREAD_KERNELS);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuModuleLoadData(&kernels, text.c_str()));
  for (int n = 1; n < argc; ++n) {
    const std::string part = argv[n];
    if (part == "add") add();
    if (part == "diffuse") diffuse();
    if (part == "gather") gather();
    if (part == "count") count();
    if (part == "diffuse-often") diffuse(often);
    if (part == "count-often") count(often);
    if (part == "touch") touch();
    if (part == "weigh") weigh();
    if (part == "large") large();
    if (part == "capture") capture();
    if (part == "ask") ask();
    if (part == "contexts") contexts();
    end(part);
  }
}

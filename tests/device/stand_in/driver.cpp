// A CUDA driver for tests of hpe's messages. STAND_IN_DRIVER selects the behaviour: a driver without devices, a driver
// that is too old, and others. The driver has at most one GPU, and allocations on it fail. With "working", allocations
// succeed: host memory is the GPU's memory, copies and fills run at once, and kernels do not run. A launch with more
// dynamic shared memory than its kernel may use fails. The kernel "with_tile" has a tile of 20 KiB (the variable
// with_tile_shared_bytes), and the kernel "with_array" an array of 20 KiB in shared memory.
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

bool plays(const char* part) {
  const char* const chosen = std::getenv("STAND_IN_DRIVER");  // NOLINT(concurrency-mt-unsafe): one thread
  return chosen != nullptr && std::strcmp(chosen, part) == 0;
}

CUcontext current = nullptr;
int context_object = 0;
int stream_object = 0;

constexpr std::size_t total_memory = std::size_t{8} << 30;
constexpr std::size_t free_memory = std::size_t{3} << 20;

constexpr unsigned shared_of_block = 227U << 10, shared_by_default = 48U << 10, shared_of_kernel = 20U << 10;
unsigned tile = shared_of_kernel;

struct kernel {
  unsigned array = 0;  // bytes of arrays in shared memory
  unsigned most_dynamic = shared_by_default - array;
};
kernel any, with_tile, with_array{shared_of_kernel};

kernel& kernel_of(CUfunction function) { return *reinterpret_cast<kernel*>(function); }

}  // namespace

CUresult cuInit(unsigned /*flags*/) {
  if (plays("no device")) return CUDA_ERROR_NO_DEVICE;
  return plays("mismatch") ? CUDA_ERROR_SYSTEM_DRIVER_MISMATCH : CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = plays("old") ? 11080 : 13000;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult /*error*/, const char** sentence) {
  *sentence = "the stand-in says so";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = plays("none") ? 0 : 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice /*device*/) {
  std::strncpy(name, "Stand-in GPU", static_cast<std::size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice /*device*/) {
  *value = plays("unsupported") && which == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ? 0 : 1;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice /*device*/) {
  if (plays("exclusive")) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  *context = reinterpret_cast<CUcontext>(&context_object);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice /*device*/) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  *context = current;
  current = nullptr;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* /*mode*/) { return CUDA_SUCCESS; }
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned /*flags*/, int /*priority*/) {
  *stream = reinterpret_cast<CUstream>(&stream_object);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream /*stream*/) { return CUDA_SUCCESS; }
CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = free_memory;
  *total = total_memory;
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice /*device*/) {
  *bytes = total_memory;
  return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t size, std::size_t /*alignment*/, CUdeviceptr hint,
                             unsigned long long /*flags*/) {
  void* const wished = reinterpret_cast<void*>(hint);  // NOLINT(performance-no-int-to-ptr): an integer address
  const int fixed = hint == 0 ? 0 : MAP_FIXED_NOREPLACE;
  void* const got = ::mmap(wished, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  *address = reinterpret_cast<CUdeviceptr>(got);
  return got == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr address, std::size_t size) {
  ::munmap(reinterpret_cast<void*>(address), size);  // NOLINT(performance-no-int-to-ptr): an integer address
  return CUDA_SUCCESS;
}

// The handle of an allocation is the descriptor of its memory file plus 1.
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp* properties,
                     unsigned long long /*flags*/) {
  if (!plays("working")) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUmemLocationType where = properties->location.type;
  if (where != CU_MEM_LOCATION_TYPE_DEVICE && where != CU_MEM_LOCATION_TYPE_HOST_NUMA) return CUDA_ERROR_INVALID_VALUE;
  const int file = ::memfd_create("stand-in-memory", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = static_cast<CUmemGenericAllocationHandle>(file) + 1;
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  ::close(static_cast<int>(handle) - 1);
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr address, std::size_t size, std::size_t /*offset*/, CUmemGenericAllocationHandle handle,
                  unsigned long long /*flags*/) {
  void* const wished = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): an integer address
  void* const got =
      ::mmap(wished, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, static_cast<int>(handle) - 1, 0);
  return got == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, std::size_t size) {
  void* const wished = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): an integer address
  ::mmap(wished, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr /*address*/, std::size_t /*size*/, const CUmemAccessDesc* /*access*/,
                        std::size_t /*count*/) {
  return CUDA_SUCCESS;
}
CUresult cuMemHostRegister(void* /*address*/, std::size_t /*size*/, unsigned /*flags*/) { return CUDA_SUCCESS; }
CUresult cuMemHostUnregister(void* /*address*/) { return CUDA_SUCCESS; }
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream /*stream*/) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are integers
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream /*stream*/) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);  // NOLINT(performance-no-int-to-ptr): an integer address
  return CUDA_SUCCESS;
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = 0;
  return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream /*stream*/) { return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream /*stream*/) { return CUDA_SUCCESS; }
CUresult cuStreamWaitEvent(CUstream /*stream*/, CUevent /*event*/, unsigned /*flags*/) { return CUDA_SUCCESS; }
CUresult cuEventCreate(CUevent* event, unsigned /*flags*/) {
  *event = reinterpret_cast<CUevent>(new int);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  delete reinterpret_cast<int*>(event);
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent /*event*/, CUstream /*stream*/) { return CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent /*event*/) { return CUDA_SUCCESS; }
CUresult cuModuleLoadData(CUmodule* module, const void* /*image*/) {
  *module = reinterpret_cast<CUmodule>(&context_object);
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule /*module*/) { return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule /*module*/, const char* name) {
  kernel& found = std::strcmp(name, "with_tile") == 0    ? with_tile
                  : std::strcmp(name, "with_array") == 0 ? with_array
                                                         : any;
  *function = reinterpret_cast<CUfunction>(&found);
  return CUDA_SUCCESS;
}
CUresult cuModuleGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUmodule /*module*/, const char* name) {
  if (std::strcmp(name, "with_tile_shared_bytes") != 0) return CUDA_ERROR_NOT_FOUND;
  *address = reinterpret_cast<CUdeviceptr>(&tile);
  *bytes = sizeof tile;
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);  // NOLINT(performance-no-int-to-ptr): an integer address
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  kernel& it = kernel_of(function);
  if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      static_cast<unsigned>(value) > shared_of_block - it.array)
    return CUDA_ERROR_INVALID_VALUE;
  it.most_dynamic = static_cast<unsigned>(value);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned /*grid*/, unsigned /*grid*/, unsigned /*grid*/,
                        unsigned /*block*/, unsigned /*block*/, unsigned /*block*/, unsigned shared,
                        CUstream /*stream*/, void** /*parameters*/, void** /*extra*/) {
  return shared > kernel_of(function).most_dynamic ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

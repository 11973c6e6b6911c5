#include "tests/interpose/cuda/stand_in.h"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// What cuda.h spells with a version is exported under that name, as by the driver: its macros do it.
#define STAND_IN extern "C" __attribute__((visibility("default")))
#define COUNT() ::count(__func__)

namespace {

std::mutex state;  // of all that follows, but for the queue
std::map<std::string, unsigned> calls;

void count(const char* symbol) {
  const std::lock_guard lock(state);
  ++calls[symbol];
}

// ---- memory -------------------------------------------------------------------------------------------------------

// Blocks of memory like the driver's: small objects share pages, and addresses cannot be read.
struct memory_block {
  std::size_t bytes;
  std::byte* alias;
};
std::map<CUdeviceptr, memory_block> blocks;
std::map<CUdeviceptr, std::size_t> objects;
std::map<CUdeviceptr, std::size_t> pinned;
constexpr std::size_t block_bytes = std::size_t{2} << 20;
constexpr std::size_t alignment = 512;

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

template <class Value>
auto containing(std::map<CUdeviceptr, Value>& map, CUdeviceptr address, std::size_t (*bytes_of)(const Value&)) {
  auto found = map.upper_bound(address);
  if (found == map.begin()) return map.end();
  --found;
  return address - found->first < bytes_of(found->second) ? found : map.end();
}

std::size_t bytes_of(const memory_block& b) { return b.bytes; }
std::size_t bytes_of(const std::size_t& b) { return b; }

auto object_at(CUdeviceptr address) { return containing<std::size_t>(objects, address, bytes_of); }

CUdeviceptr next_place = 0;
CUdeviceptr place_end = 0;

CUdeviceptr allocate(std::size_t bytes) {
  const std::size_t room = (bytes + alignment - 1) / alignment * alignment;
  if (next_place + room > place_end) {
    const std::size_t size = (room + block_bytes - 1) / block_bytes * block_bytes;
    void* const address = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void* const alias = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    next_place = reinterpret_cast<CUdeviceptr>(address);
    place_end = next_place + size;
    blocks[next_place] = {size, static_cast<std::byte*>(alias)};
  }
  const CUdeviceptr result = next_place;
  next_place += room;
  objects[result] = bytes;
  return result;
}

// Where the bytes are that an address means.
std::byte* memory_at(CUdeviceptr address) {
  const std::lock_guard lock(state);
  const auto found = containing<memory_block>(blocks, address, bytes_of);
  return found == blocks.end() ? static_cast<std::byte*>(pointer(address))
                               : found->second.alias + (address - found->first);
}

bool is_device(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock(state);
  const auto found = object_at(address);
  return found != objects.end() && address + bytes <= found->first + found->second;
}

bool is_pinned(CUdeviceptr address) {
  const std::lock_guard lock(state);
  return containing<std::size_t>(pinned, address, bytes_of) != pinned.end();
}

// ---- the queue ----------------------------------------------------------------------------------------------------

class queue {
 public:
  std::uint64_t add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    work_.push_back(std::move(work));
    changed_.notify_all();
    return ++added_;
  }
  void wait(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= number; });
  }
  bool reached(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return done_ >= number;
  }
  std::uint64_t last() {
    const std::lock_guard lock(mutex_);
    return added_;
  }
  void pause(bool paused) {
    const std::lock_guard lock(mutex_);
    paused_ = paused;
    changed_.notify_all();
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> next;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !work_.empty() && !paused_; });
        next = std::move(work_.front());
        work_.pop_front();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      next();
      const std::lock_guard lock(mutex_);
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t added_ = 0;
  std::uint64_t done_ = 0;
  bool paused_ = false;
  std::thread thread_;
};

queue& work() {
  static auto* const the_queue = new queue;  // its thread runs to the end of the process
  return *the_queue;
}

struct event {
  std::atomic<std::uint64_t> number{0};
};

int the_context = 0;
thread_local CUcontext current = nullptr;
CUcontext context() { return reinterpret_cast<CUcontext>(&the_context); }

// What the driver refuses, then what it does at once and what it queues.
CUresult copy_now_or_later(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, bool wait) {
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const bool up = is_device(to, 1);
  const bool down = is_device(from, 1);
  if ((up && !is_device(to, bytes)) || (down && !is_device(from, bytes)) || (!up && !down))
    return CUDA_ERROR_INVALID_VALUE;
  const auto move = [=] { std::memmove(memory_at(to), memory_at(from), bytes); };
  if (up && !down && !is_pinned(from)) {
    auto bounce = std::make_shared<std::vector<char>>(static_cast<char*>(pointer(from)),
                                                      static_cast<char*>(pointer(from)) + bytes);
    const std::uint64_t number = work().add([=] { std::memcpy(memory_at(to), bounce->data(), bytes); });
    if (wait) work().wait(number);
    return CUDA_SUCCESS;
  }
  const std::uint64_t number = work().add(move);
  if (wait || (down && !up && !is_pinned(to))) work().wait(number);
  return CUDA_SUCCESS;
}

CUdeviceptr number_of(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

CUresult fill(CUdeviceptr to, unsigned value, std::size_t width, std::size_t count, bool wait) {
  if (!is_device(to, width * count)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t number = work().add([=] {
    for (std::size_t i = 0; i < count; ++i) std::memcpy(memory_at(to) + i * width, &value, width);
  });
  if (wait) work().wait(number);
  return CUDA_SUCCESS;
}

}  // namespace

STAND_IN unsigned stand_in_count(const char* symbol) {
  const std::lock_guard lock(state);
  return calls[symbol];
}
STAND_IN void* stand_in_memory(CUdeviceptr address) { return memory_at(address); }
STAND_IN void stand_in_pause(int paused) { work().pause(paused != 0); }

// ---- entries: devices and contexts --------------------------------------------------------------------------------

STAND_IN CUresult cuInit(unsigned) { return COUNT(), CUDA_SUCCESS; }
STAND_IN CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
STAND_IN CUresult cuGetErrorName(CUresult, const char** name) { return *name = "CUDA_ERROR_STAND_IN", CUDA_SUCCESS; }
STAND_IN CUresult cuGetErrorString(CUresult, const char** text) {
  return *text = "an error of the stand-in", CUDA_SUCCESS;
}
STAND_IN CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return *device = ordinal, ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
STAND_IN CUresult cuDeviceGetCount(int* count) { return *count = 1, CUDA_SUCCESS; }
STAND_IN CUresult cuDevicePrimaryCtxRetain(CUcontext* result, CUdevice) { return *result = context(), CUDA_SUCCESS; }
STAND_IN CUresult cuDevicePrimaryCtxRelease(CUdevice) { return COUNT(), CUDA_SUCCESS; }
STAND_IN CUresult cuDevicePrimaryCtxReset(CUdevice) { return COUNT(), CUDA_SUCCESS; }
STAND_IN CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  return *flags = 0, *active = 1, CUDA_SUCCESS;
}
STAND_IN CUresult cuCtxSetCurrent(CUcontext c) { return current = c, CUDA_SUCCESS; }
STAND_IN CUresult cuCtxGetCurrent(CUcontext* c) { return *c = current, CUDA_SUCCESS; }
STAND_IN CUresult cuCtxPushCurrent(CUcontext c) { return current = c, CUDA_SUCCESS; }
STAND_IN CUresult cuCtxPopCurrent(CUcontext* c) { return *c = current, current = nullptr, CUDA_SUCCESS; }
STAND_IN CUresult cuCtxDestroy(CUcontext) { return COUNT(), CUDA_SUCCESS; }
STAND_IN CUresult cuCtxSynchronize() { return COUNT(), work().wait(work().last()), CUDA_SUCCESS; }
STAND_IN CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, CUDA_SUCCESS;
}
STAND_IN CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode*) { return CUDA_SUCCESS; }

// ---- entries: memory ----------------------------------------------------------------------------------------------

STAND_IN CUresult cuMemAlloc(CUdeviceptr* result, std::size_t bytes) {
  COUNT();
  if (bytes == 0 || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(state);
  *result = allocate(bytes);
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuMemFree(CUdeviceptr address) {
  COUNT();
  if (address == 0) return CUDA_SUCCESS;
  work().wait(work().last());
  const std::lock_guard lock(state);
  return objects.erase(address) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

STAND_IN CUresult cuMemGetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  const std::lock_guard lock(state);
  const auto found = object_at(address);
  if (found == objects.end()) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = found->first;
  if (bytes != nullptr) *bytes = found->second;
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const bool device = is_device(address, 1);
  if (!device && !is_pinned(address)) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *static_cast<unsigned*>(data) = 0; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(data) = 0; break;
    case CU_POINTER_ATTRIBUTE_CONTEXT: *static_cast<CUcontext*>(data) = context(); break;
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuMemHostAlloc(void** result, std::size_t bytes, unsigned) {
  COUNT();
  *result = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::lock_guard lock(state);
  pinned[number_of(*result)] = bytes;
  return CUDA_SUCCESS;
}

STAND_IN CUresult cuMemFreeHost(void* address) {
  COUNT();
  work().wait(work().last());
  const std::lock_guard lock(state);
  const auto found = pinned.find(number_of(address));
  if (found == pinned.end()) return CUDA_ERROR_INVALID_VALUE;
  ::munmap(address, found->second);
  pinned.erase(found);
  return CUDA_SUCCESS;
}

// ---- entries: streams and events ----------------------------------------------------------------------------------

STAND_IN CUresult cuStreamCreate(CUstream* result, unsigned) {
  return *result = reinterpret_cast<CUstream>(new int), CUDA_SUCCESS;
}
STAND_IN CUresult cuStreamCreateWithPriority(CUstream* result, unsigned, int) {
  return *result = reinterpret_cast<CUstream>(new int), CUDA_SUCCESS;
}
STAND_IN CUresult cuStreamDestroy(CUstream stream) { return delete reinterpret_cast<int*>(stream), CUDA_SUCCESS; }
STAND_IN CUresult cuStreamGetCtx(CUstream, CUcontext* result) { return *result = context(), CUDA_SUCCESS; }
STAND_IN CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* result) {
  return *result = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}
STAND_IN CUresult cuStreamSynchronize(CUstream) { return COUNT(), work().wait(work().last()), CUDA_SUCCESS; }
STAND_IN CUresult cuStreamQuery(CUstream) {
  return work().reached(work().last()) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
STAND_IN CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return COUNT(), CUDA_SUCCESS; }
STAND_IN CUresult cuEventCreate(CUevent* result, unsigned) {
  return *result = reinterpret_cast<CUevent>(new event), CUDA_SUCCESS;
}
STAND_IN CUresult cuEventDestroy(CUevent e) { return delete reinterpret_cast<event*>(e), CUDA_SUCCESS; }
STAND_IN CUresult cuEventRecord(CUevent e, CUstream) {
  return COUNT(), reinterpret_cast<event*>(e)->number = work().add([] {}), CUDA_SUCCESS;
}
STAND_IN CUresult cuEventQuery(CUevent e) {
  return work().reached(reinterpret_cast<event*>(e)->number) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
STAND_IN CUresult cuEventSynchronize(CUevent e) {
  return work().wait(reinterpret_cast<event*>(e)->number), CUDA_SUCCESS;
}

// ---- entries: work ------------------------------------------------------------------------------------------------

STAND_IN CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return COUNT(), copy_now_or_later(to, from, bytes, true);
}
STAND_IN CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
  return COUNT(), copy_now_or_later(to, from, bytes, false);
}
STAND_IN CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
  return COUNT(), copy_now_or_later(to, number_of(from), bytes, true);
}
STAND_IN CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
  return COUNT(), copy_now_or_later(to, number_of(from), bytes, false);
}
STAND_IN CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
  return COUNT(), copy_now_or_later(number_of(to), from, bytes, true);
}
STAND_IN CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
  return COUNT(), copy_now_or_later(number_of(to), from, bytes, false);
}
STAND_IN CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return COUNT(), copy_now_or_later(to, from, bytes, false);
}
STAND_IN CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, std::size_t count) {
  return COUNT(), fill(to, value, 1, count, true);
}
STAND_IN CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream) {
  return COUNT(), fill(to, value, 1, count, false);
}
STAND_IN CUresult cuMemsetD32(CUdeviceptr to, unsigned value, std::size_t count) {
  return COUNT(), fill(to, value, 4, count, true);
}

STAND_IN CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, CUstream, void** parameters, void**) {
  COUNT();
  const auto* const kernel = reinterpret_cast<const stand_in::kernel*>(function);
  std::vector<std::uint64_t> values(kernel->parameters);
  for (unsigned i = 0; i < kernel->parameters; ++i) std::memcpy(&values[i], parameters[i], sizeof values[i]);
  work().add([kernel, values] { kernel->body(values.data()); });
  return CUDA_SUCCESS;
}

// ---- entries: finding entries -------------------------------------------------------------------------------------

namespace {

// As the driver: by the version that is asked for, and nothing for what there is not.
void* find_entry(const char* name, int version) {
  struct known {
    const char* name;
    int since;
    void* entry;
  };
#define ENTRY(base, since, function) \
  { base, since, reinterpret_cast<void*>(&function) }
  static const known table[] = {
      ENTRY("cuInit", 2000, cuInit),
      ENTRY("cuMemAlloc", 3020, cuMemAlloc),
      ENTRY("cuMemFree", 3020, cuMemFree),
      ENTRY("cuMemcpy", 4000, cuMemcpy),
      ENTRY("cuMemcpyAsync", 4000, cuMemcpyAsync),
      ENTRY("cuMemcpyHtoD", 3020, cuMemcpyHtoD),
      ENTRY("cuMemcpyHtoDAsync", 3020, cuMemcpyHtoDAsync),
      ENTRY("cuMemcpyDtoH", 3020, cuMemcpyDtoH),
      ENTRY("cuMemcpyDtoHAsync", 3020, cuMemcpyDtoHAsync),
      ENTRY("cuLaunchKernel", 4000, cuLaunchKernel),
  };
#undef ENTRY
  for (const known& k : table)
    if (std::strcmp(k.name, name) == 0 && version >= k.since) return k.entry;
  return nullptr;
}

}  // namespace

STAND_IN CUresult cuNewerThanHpe() { return COUNT(), static_cast<CUresult>(4242); }

#undef cuGetProcAddress
#undef cuGetProcAddress_v2
STAND_IN CUresult cuGetProcAddress(const char* name, void** result, int version, cuuint64_t flags);
STAND_IN CUresult cuGetProcAddress_v2(const char* name, void** result, int version, cuuint64_t flags,
                                      CUdriverProcAddressQueryResult* status);

STAND_IN CUresult cuGetProcAddress_v2(const char* name, void** result, int version, cuuint64_t /*flags*/,
                                      CUdriverProcAddressQueryResult* status) {
  COUNT();
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  void* found = find_entry(name, version);
  if (std::strcmp(name, "cuNewerThanHpe") == 0) found = reinterpret_cast<void*>(&cuNewerThanHpe);
  if (std::strcmp(name, "cuGetProcAddress") == 0)
    found =
        version >= 12000 ? reinterpret_cast<void*>(&cuGetProcAddress_v2) : reinterpret_cast<void*>(&cuGetProcAddress);
  if (result != nullptr) *result = found;
  if (status != nullptr)
    *status = found != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return found != nullptr || result == nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

STAND_IN CUresult cuGetProcAddress(const char* name, void** result, int version, cuuint64_t flags) {
  return COUNT(), cuGetProcAddress_v2(name, result, version, flags, nullptr);
}

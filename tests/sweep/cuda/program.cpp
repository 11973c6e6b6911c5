#include "tests/sweep/cuda/program.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "hpe/error.hpp"
#include "interpose/gpu/interposition.h"
#include "tests/interpose/gpu/add_kernel.h"
#include "tests/interpose/gpu/stand_in/stand_in.h"
#include "tests/sweep/touch.h"

namespace sweep {

namespace {

constexpr std::size_t word = sizeof(std::uint32_t);
constexpr std::size_t stride = 1024;  // the number of words from one word that a kernel uses to the next

// Converts an address of the driver, which is an integer, to a pointer.
std::uint8_t* pointer(CUdeviceptr at) {
  return reinterpret_cast<std::uint8_t*>(at);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

void* find_in_driver(const char* name) {
  return reinterpret_cast<decltype(&hpe_cuda_driver_entry)>(::dlsym(RTLD_DEFAULT, "hpe_cuda_driver_entry"))(name);
}

std::vector<std::uint8_t> program::pattern(std::size_t bytes, std::uint8_t first) {
  std::vector<std::uint8_t> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::uint8_t>(first + i % 251);
  return result;
}

// ---- calls -------------------------------------------------------------------------------------------------------

void program::check(const char* name, CUresult result) {
  if (result == CUDA_SUCCESS) return;
  given_up_ |= result == CUDA_ERROR_LAUNCH_FAILED && std::strstr(injected().what(), "Synchronize") != nullptr;
  if (given_up_) return;
  if (!injected().fired()) report_(std::string(name) + " gave " + std::to_string(result) + ", though nothing failed");
  if (result > CUDA_ERROR_UNKNOWN)
    report_(std::string(name) + " gave " + std::to_string(result) + ", no error of CUDA");
}

bool program::call(const char* name, const std::function<CUresult()>& function) {
  CUresult result = CUDA_SUCCESS;
  try {
    const runtime_call counted;
    result = function();
  } catch (const std::exception& e) {
    report_(std::string(name) + " threw through a C interface: " + e.what());
    return false;
  }
  check(name, result);
  return result == CUDA_SUCCESS;
}

bool program::call_or_throw(const char* name, const std::function<void()>& function) {
  try {
    const runtime_call counted;
    function();
    return true;
  } catch (const hpe::error& e) {
    if (!injected().fired()) report_(std::string(name) + " threw, though nothing failed: " + e.what());
  } catch (const std::bad_alloc&) {
    if (!injected().fired()) report_(std::string(name) + " had no memory, though nothing failed");
  }
  return false;
}

void program::known(array* which, std::size_t offset, const std::vector<std::uint8_t>& bytes) {
  std::copy(bytes.begin(), bytes.end(), which->model.begin() + static_cast<std::ptrdiff_t>(offset));
  std::fill_n(which->known.begin() + static_cast<std::ptrdiff_t>(offset), bytes.size(), 1);
}

void program::unknown(array* which, std::size_t offset, std::size_t bytes) {
  std::fill_n(which->known.begin() + static_cast<std::ptrdiff_t>(offset), bytes, 0);
}

bool program::write(const char* name, array* to, std::size_t offset, const std::vector<std::uint8_t>& bytes,
                    const std::function<CUresult()>& function) {
  const bool done = call(name, function);
  if (done)
    known(to, offset, bytes);
  else
    unknown(to, offset, bytes.size());
  return done;
}

// ---- start and end -----------------------------------------------------------------------------------------------

bool program::start() {
  return call("cuInit", [] { return cuInit(0); }) &&
         call("cuDevicePrimaryCtxRetain", [&] { return cuDevicePrimaryCtxRetain(&context_, 0); }) &&
         call("cuCtxSetCurrent", [&] { return cuCtxSetCurrent(context_); }) &&
         call("cuModuleLoadData", [&] { return cuModuleLoadData(&module_, stand_in::add_code); }) &&
         call("cuModuleGetFunction", [&] { return cuModuleGetFunction(&kernel_, module_, "add"); });
}

void program::end() {
  if (module_ != nullptr) call("cuModuleUnload", [&] { return cuModuleUnload(module_); });
  if (context_ != nullptr) call("cuDevicePrimaryCtxRelease", [] { return cuDevicePrimaryCtxRelease(0); });
}

// ---- memory ------------------------------------------------------------------------------------------------------

array* program::add(CUdeviceptr at, std::size_t bytes) {
  auto made = std::make_unique<array>();
  made->at = at;
  made->model.resize(bytes);
  made->known.resize(bytes);
  return arrays_.emplace_back(std::move(made)).get();
}

array* program::allocate(std::size_t bytes) {
  CUdeviceptr at = 0;
  return call("cuMemAlloc", [&] { return cuMemAlloc(&at, bytes); }) ? add(at, bytes) : nullptr;
}

array* program::allocate_rows(std::size_t width, std::size_t rows) {
  CUdeviceptr at = 0;
  std::size_t pitch = 0;
  const bool made = call("cuMemAllocPitch", [&] { return cuMemAllocPitch(&at, &pitch, width, rows, word); });
  return made ? add(at, pitch * rows) : nullptr;
}

array* program::allocate_of_pool(std::size_t bytes) {
  CUdeviceptr at = 0;
  if (!call("cuMemAllocAsync", [&] { return cuMemAllocAsync(&at, bytes, nullptr); })) return nullptr;
  array* const made = add(at, bytes);
  made->of_pool = true;
  return made;
}

array* program::map(std::size_t bytes) {
  CUdeviceptr at = 0;
  if (!call("cuMemAddressReserve", [&] { return cuMemAddressReserve(&at, bytes, 0, 0, 0); })) return nullptr;
  array* const made = add(at, bytes);
  CUmemAllocationProp what{};
  what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemAccessDesc access{what.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const std::size_t half = bytes / 2;
  bool is_complete = true;
  for (std::size_t offset = 0; is_complete && offset < bytes; offset += half) {
    CUmemGenericAllocationHandle part = 0;
    is_complete = call("cuMemCreate", [&] { return cuMemCreate(&part, half, &what, 0); });
    if (!is_complete) break;
    is_complete = call("cuMemMap", [&] { return cuMemMap(at + offset, half, 0, part, 0); });
    if (is_complete)
      made->parts.push_back(part);
    else
      repeat("cuMemRelease", [&] { return cuMemRelease(part); });
  }
  if (is_complete && call("cuMemSetAccess", [&] { return cuMemSetAccess(at, bytes, &access, 1); })) return made;
  unmap(made);
  return nullptr;
}

void program::unmap(array* which) {
  if (which == nullptr) return;
  const std::size_t half = which->model.size() / 2;
  for (std::size_t n = 0; n < which->parts.size(); ++n) {
    repeat("cuMemUnmap", [&] { return cuMemUnmap(which->at + n * half, half); });
    repeat("cuMemRelease", [&] { return cuMemRelease(which->parts[n]); });
  }
  repeat("cuMemAddressFree", [&] { return cuMemAddressFree(which->at, which->model.size()); });
  std::erase_if(arrays_, [&](const auto& each) { return each.get() == which; });
}

// A call that fails has freed nothing, so the program may repeat the call.
void program::free(array* which) {
  if (which == nullptr) return;
  if (!which->parts.empty()) return unmap(which);
  repeat("cuMemFree", [&] { return which->of_pool ? cuMemFreeAsync(which->at, nullptr) : cuMemFree(which->at); });
  std::erase_if(arrays_, [&](const auto& each) { return each.get() == which; });
}

// ---- work --------------------------------------------------------------------------------------------------------

void program::upload(array* to, std::size_t offset, std::size_t bytes, std::uint8_t first, CUstream stream) {
  const auto& from = sources_.emplace_back(pattern(bytes, first));
  write("cuMemcpyHtoD", to, offset, from, [&] {
    return stream == nullptr ? cuMemcpyHtoD(to->at + offset, from.data(), bytes)
                             : cuMemcpyHtoDAsync(to->at + offset, from.data(), bytes, stream);
  });
}

void program::copy_any(array* to, std::size_t offset, std::size_t bytes, std::uint8_t first) {
  const auto& from = sources_.emplace_back(pattern(bytes, first));
  write("cuMemcpy", to, offset, from,
        [&] { return cuMemcpy(to->at + offset, reinterpret_cast<CUdeviceptr>(from.data()), bytes); });
}

void program::download(array* from, std::size_t offset, std::size_t bytes, CUstream stream) {
  const auto begin = static_cast<std::ptrdiff_t>(offset), end = static_cast<std::ptrdiff_t>(offset + bytes);
  download_of& d = downloads_.emplace_back();
  d.bytes.resize(bytes);
  d.expected.assign(from->model.begin() + begin, from->model.begin() + end);
  d.known.assign(from->known.begin() + begin, from->known.begin() + end);
  d.is_done = call("cuMemcpyDtoH", [&] {
    return stream == nullptr ? cuMemcpyDtoH(d.bytes.data(), from->at + offset, bytes)
                             : cuMemcpyDtoHAsync(d.bytes.data(), from->at + offset, bytes, stream);
  });
}

void program::copy(array* to, array* from, std::size_t bytes, CUstream stream) {
  const bool done = call("cuMemcpyDtoD", [&] {
    return stream == nullptr ? cuMemcpyDtoD(to->at, from->at, bytes)
                             : cuMemcpyDtoDAsync(to->at, from->at, bytes, stream);
  });
  unknown(to, 0, bytes);
  if (!done) return;
  std::copy_n(from->model.begin(), bytes, to->model.begin());
  std::copy_n(from->known.begin(), bytes, to->known.begin());
}

void program::copy_peer(array* to, array* from, std::size_t bytes, CUstream stream) {
  const bool done = call("cuMemcpyPeer", [&] {
    return stream == nullptr ? cuMemcpyPeer(to->at, context_, from->at, context_, bytes)
                             : cuMemcpyPeerAsync(to->at, context_, from->at, context_, bytes, stream);
  });
  unknown(to, 0, bytes);
  if (!done) return;
  std::copy_n(from->model.begin(), bytes, to->model.begin());
  std::copy_n(from->known.begin(), bytes, to->known.begin());
}

// Copies the left half of each row in the model.
void program::take_box(array* to, array* from, const std::vector<std::uint8_t>* host, bool is_done,
                       std::size_t planes) {
  for (std::size_t row = 0; row < box_rows * planes; ++row) {
    const std::size_t at = row * box_pitch;
    unknown(to, at, box_pitch / 2);
    if (!is_done) continue;
    for (std::size_t x = at; x < at + box_pitch / 2; ++x) {
      to->model[x] = host != nullptr ? (*host)[x] : from->model[x];
      to->known[x] = host != nullptr ? 1 : from->known[x];
    }
  }
}

template <class Description>
void describe_sides(Description& c, const array* to, const array* from, const void* host) {
  c.srcMemoryType = from == nullptr ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.srcHost = host;
  c.srcDevice = from == nullptr ? 0 : from->at;
  c.dstDevice = to->at;
  c.srcPitch = c.dstPitch = box_pitch;
  c.WidthInBytes = box_pitch / 2;
  c.Height = box_rows;
}

void program::copy_rows(array* to, array* from, CUstream stream) {
  const auto* const host = from == nullptr ? &sources_.emplace_back(pattern(box_pitch * box_rows, 99)) : nullptr;
  CUDA_MEMCPY2D c{};
  describe_sides(c, to, from, host != nullptr ? host->data() : nullptr);
  const bool done =
      call("cuMemcpy2D", [&] { return stream == nullptr ? cuMemcpy2D(&c) : cuMemcpy2DAsync(&c, stream); });
  take_box(to, from, host, done, 1);
}

void program::copy_planes(array* to, array* from, CUstream stream) {
  constexpr std::size_t planes = 4;
  const auto* const host =
      from == nullptr ? &sources_.emplace_back(pattern(box_pitch * box_rows * planes, 55)) : nullptr;
  CUDA_MEMCPY3D c{};
  describe_sides(c, to, from, host != nullptr ? host->data() : nullptr);
  c.srcHeight = c.dstHeight = box_rows;
  c.Depth = planes;
  const bool done =
      call("cuMemcpy3D", [&] { return stream == nullptr ? cuMemcpy3D(&c) : cuMemcpy3DAsync(&c, stream); });
  take_box(to, from, host, done, planes);
}

void program::copy_peer_planes(array* to, array* from, CUstream stream) {
  constexpr std::size_t planes = 4;
  CUDA_MEMCPY3D_PEER c{};
  describe_sides(c, to, from, nullptr);
  c.srcContext = c.dstContext = context_;
  c.srcHeight = c.dstHeight = box_rows;
  c.Depth = planes;
  const bool done =
      call("cuMemcpy3DPeer", [&] { return stream == nullptr ? cuMemcpy3DPeer(&c) : cuMemcpy3DPeerAsync(&c, stream); });
  take_box(to, from, nullptr, done, planes);
}

void program::fill(array* to, std::size_t offset, std::size_t bytes, std::uint8_t value, CUstream stream) {
  write("cuMemsetD8", to, offset, std::vector<std::uint8_t>(bytes, value), [&] {
    return stream == nullptr ? cuMemsetD8(to->at + offset, value, bytes)
                             : cuMemsetD8Async(to->at + offset, value, bytes, stream);
  });
}

void program::fill_words(array* to, std::size_t words, std::uint32_t value, CUstream stream) {
  std::vector<std::uint8_t> bytes(words * word);
  for (std::size_t n = 0; n < words; ++n) std::memcpy(&bytes[n * word], &value, word);
  write("cuMemsetD32", to, 0, bytes, [&] {
    return stream == nullptr ? cuMemsetD32(to->at, value, words) : cuMemsetD32Async(to->at, value, words, stream);
  });
}

void program::fill_rows(array* to, std::uint32_t value, CUstream stream) {
  const bool done = call("cuMemsetD2D32Async", [&] {
    return cuMemsetD2D32Async(to->at, box_pitch, value, box_pitch / 2 / word, box_rows, stream);
  });
  std::vector<std::uint8_t> all(box_pitch * box_rows);
  for (std::size_t n = 0; n < all.size(); n += word) std::memcpy(&all[n], &value, word);
  take_box(to, nullptr, &all, done, 1);
}

void program::launch(array* to, array* from, std::uint32_t value, CUstream stream) {
  constexpr unsigned block = 64;
  const auto threads = static_cast<unsigned>(to->model.size() / word / stride / block * block);
  auto distance = static_cast<unsigned>(stride);
  void* parameters[] = {&to->at, &from->at, &value, &distance};
  const bool done = call("cuLaunchKernel", [&] {
    return cuLaunchKernel(kernel_, threads / block, 1, 1, block, 1, 1, 0, stream, parameters, nullptr);
  });
  for (std::size_t n = 0; n < threads; ++n) add_to_word(to, from, n * stride * word, value, done);
}

void program::launch_unknown(array* to, std::uint32_t value, CUstream stream) {
  static const stand_in::kernel adds{
      [](const std::uint64_t* parameters) {
        auto* const memory = find_in_stand_in<stand_in::memory_function>("stand_in_memory");
        *static_cast<std::uint32_t*>(memory(parameters[0])) += static_cast<std::uint32_t>(parameters[1]);
      },
      2};
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&adds));
  std::uint64_t wide = value;
  void* parameters[] = {&to->at, &wide};
  const bool done = call("cuLaunchKernel",
                         [&] { return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr); });
  add_to_word(to, to, 0, value, done);
}

void program::add_to_word(array* to, array* from, std::size_t at, std::uint32_t value, bool done) {
  std::uint32_t number = 0;
  std::memcpy(&number, &from->model[at], word);
  number += value;
  std::memcpy(&to->model[at], &number, word);
  for (std::size_t i = at; i < at + word; ++i) to->known[i] = done ? from->known[i] : 0;
  // An unknown byte makes the higher bytes of its word unknown, because of the carry.
  for (std::size_t i = at + 1; i < at + word; ++i) to->known[i] &= to->known[i - 1];
}

void program::write_word(array* to, std::uint32_t value, CUstream stream) {
  std::vector<std::uint8_t> bytes(word);
  std::memcpy(bytes.data(), &value, word);
  write("cuStreamWriteValue32", to, 0, bytes, [&] { return cuStreamWriteValue32(stream, to->at, value, 0); });
}

CUstream program::make_stream() {
  CUstream made = nullptr;
  if (!call("cuStreamCreate", [&] { return cuStreamCreate(&made, CU_STREAM_NON_BLOCKING); })) return nullptr;
  return streams_.emplace_back(made);
}

void program::end_stream(CUstream stream) {
  if (stream == nullptr) return;
  repeat("cuStreamDestroy", [&] { return cuStreamDestroy(stream); });
  std::erase(streams_, stream);
}

// The sweep injects at most two failures in a row, so the third call must succeed.
void program::repeat(const char* name, const std::function<CUresult()>& function) {
  if (!call(name, function) && !call(name, function) && !call(name, function) && !injected().is_lost() && !given_up_)
    report_(std::string(name) + " fails for ever");
}

void program::wait(CUstream stream) {
  repeat("cuStreamSynchronize", [&] { return cuStreamSynchronize(stream); });
}
void program::wait_for_all() {
  repeat("cuCtxSynchronize", [] { return cuCtxSynchronize(); });
}

// ---- CPU code and calls of libc ----------------------------------------------------------------------------------

void program::write_by_cpu(array* to, std::size_t offset, std::size_t bytes, std::uint8_t first) {
  const auto from = pattern(bytes, first);
  bool done = false;
  {
    const runtime_call counted;
    done = touch(pointer(to->at + offset), from.data(), bytes);
  }
  if (done) return known(to, offset, from);
  unknown(to, offset, bytes);
  if (!injected().fired()) report_("a write by the CPU failed, though nothing failed");
}

void program::read_by_cpu(array* from, std::size_t offset, std::size_t bytes) {
  std::vector<std::uint8_t> got(bytes);
  bool done = false;
  {
    const runtime_call counted;
    done = touch(got.data(), pointer(from->at + offset), bytes);
  }
  if (!done) {
    if (!injected().fired()) report_("a read by the CPU failed, though nothing failed");
    return;
  }
  for (std::size_t i = 0; i < bytes; ++i)
    if (from->known[offset + i] != 0 && got[i] != from->model[offset + i])
      return report_("the CPU read " + std::to_string(got[i]) + " instead of " +
                     std::to_string(from->model[offset + i]) + ", at " + std::to_string(offset + i));
}

void program::read_file(array* to, int file, std::size_t bytes) {
  std::vector<std::uint8_t> there(bytes);
  if (::pread(file, there.data(), bytes, 0) != static_cast<ssize_t>(bytes))
    return report_("the test's file cannot be read");
  ssize_t count = 0;
  {
    const runtime_call counted;
    count = ::pread(file, pointer(to->at), bytes, 0);
  }
  if (count == static_cast<ssize_t>(bytes)) return known(to, 0, there);
  unknown(to, 0, bytes);
  if (!injected().fired()) report_("pread gave " + std::to_string(count) + ", though nothing failed");
}

// ---- the end of a run --------------------------------------------------------------------------------------------

void program::verify() {
  injected().disarm();
  const auto differs = [&](const char* what, const std::vector<std::uint8_t>& got,
                           const std::vector<std::uint8_t>& expected, const std::vector<std::uint8_t>& is_known) {
    for (std::size_t i = 0; i < got.size(); ++i)
      if (is_known[i] != 0 && got[i] != expected[i])
        return report_(std::string(what) + " has another value than was written, at " + std::to_string(i) + " of " +
                       std::to_string(got.size()));
  };
  const auto must = [&](const char* name, CUresult result) {
    if (result != CUDA_SUCCESS) check(name, result);
    if (given_up_) return false;
    if (result != CUDA_SUCCESS)
      report_(std::string(name) + " gives " + std::to_string(result) + " after the injected failures have ended");
    return result == CUDA_SUCCESS;
  };
  if (!must("cuCtxSynchronize", cuCtxSynchronize())) return;
  for (const download_of& d : downloads_)
    if (d.is_done) differs("a copy to the host", d.bytes, d.expected, d.known);
  downloads_.clear();
  for (const auto& each : arrays_) {
    std::vector<std::uint8_t> got(each->model.size());
    if (must("cuMemcpyDtoH", cuMemcpyDtoH(got.data(), each->at, got.size())))
      differs("an array", got, each->model, each->known);
  }
}

void program::free_all() {
  if (given_up_) return;
  for (; !cleanups_.empty(); cleanups_.pop_back()) cleanups_.back()();
  while (!streams_.empty()) end_stream(streams_.back());
  while (!arrays_.empty()) free(arrays_.back().get());
}

}  // namespace sweep

// The functions that programs reach instead of entries of the driver, and the table that tells the shim of them. A hook
// that has nothing to do is a comparison and a call of the driver.
#include <atomic>
#include <string>

#include "interpose/cuda/device_work.h"
#include "interpose/cuda/interposer.h"
#include "interpose/cuda/interposition.h"
#include "interpose/cuda/real_entries.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/trace/measured.h"

namespace hpe::cuda_hooks {

constinit real_entries real;

namespace {

// The default stream of programs compiled in either way.
enum class flavour : std::uint8_t { legacy, per_thread };
using enum flavour;

CUstream default_stream(flavour f) { return f == legacy ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD; }
CUstream named(CUstream stream, flavour f) { return stream == nullptr ? default_stream(f) : stream; }

// Large copies are looked at; all others go on.
pageable_copy* copies_for(std::size_t bytes) {
  if (bytes < pageable_copy::smallest) return nullptr;
  interposer* const hpe = interposer::instance();
  return hpe != nullptr ? &hpe->copies() : nullptr;
}

using trace::measured;
using trace::way;

template <auto Entry, flavour Flavour>
CUresult CUDAAPI upload(CUdeviceptr to, const void* from, std::size_t bytes) {
  measured measure(way::up_driver, bytes);
  const device_work work{{to, bytes, true}};
  if (work.failed()) return work.result();
  if (pageable_copy* const copies = copies_for(bytes))
    if (const auto done = copies->upload(to, from, bytes, default_stream(Flavour), true))
      return measure.goes(way::up_staged), *done;
  return (real.*Entry)(to, from, bytes);
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI upload_async(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  measured measure(way::up_driver, bytes);
  const device_work work{{to, bytes, true}};
  if (work.failed()) return work.result();
  if (pageable_copy* const copies = copies_for(bytes))
    if (const auto done = copies->upload(to, from, bytes, named(stream, Flavour), false))
      return measure.goes(way::up_staged), *done;
  return (real.*Entry)(to, from, bytes, stream);
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI download(void* to, CUdeviceptr from, std::size_t bytes) {
  measured measure(way::down_driver, bytes);
  const device_work work{{from, bytes, false}};
  if (work.failed()) return work.result();
  if (pageable_copy* const copies = copies_for(bytes))
    if (const auto done = copies->download(to, from, bytes, default_stream(Flavour)))
      return measure.goes(way::down_staged), *done;
  return (real.*Entry)(to, from, bytes);
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI download_async(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  measured measure(way::down_driver, bytes);
  const device_work work{{from, bytes, false}};
  if (work.failed()) return work.result();
  if (pageable_copy* const copies = copies_for(bytes))
    if (const auto done = copies->download(to, from, bytes, named(stream, Flavour)))
      return measure.goes(way::down_staged), *done;
  return (real.*Entry)(to, from, bytes, stream);
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  measured measure(way::any_driver, bytes);
  const device_work work{{to, bytes, true}, {from, bytes, false}};
  if (work.failed()) return work.result();
  if (pageable_copy* const copies = copies_for(bytes))
    if (const auto done = copies->copy(to, from, bytes, default_stream(Flavour), true))
      return measure.goes(way::any_staged), *done;
  return (real.*Entry)(to, from, bytes);
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI copy_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  measured measure(way::any_driver, bytes);
  const device_work work{{to, bytes, true}, {from, bytes, false}};
  if (work.failed()) return work.result();
  if (pageable_copy* const copies = copies_for(bytes))
    if (const auto done = copies->copy(to, from, bytes, named(stream, Flavour), false))
      return measure.goes(way::any_staged), *done;
  return (real.*Entry)(to, from, bytes, stream);
}

template <auto Entry, class... Arguments>
CUresult CUDAAPI any_work(Arguments... arguments) {
  const device_work work;
  if (work.failed()) return work.result();
  return (real.*Entry)(arguments...);
}

// cuLaunchKernel and its cooperative form; the latter has no `extra`.
template <auto Entry, class... Extra>
CUresult CUDAAPI launch(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void** parameters, Extra... extra) {
  const trace::span here(trace::category::call, "launch of a kernel");
  const device_work work(kernel_launch{function, parameters, extra...});
  if (work.failed()) return work.result();
  return (real.*Entry)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra...);
}

template <auto Entry>
CUresult CUDAAPI launch_extended(const CUlaunchConfig* configuration, CUfunction function, void** parameters,
                                 void** extra) {
  const trace::span here(trace::category::call, "launch of a kernel");
  const device_work work(kernel_launch{function, parameters, extra});
  if (work.failed()) return work.result();
  return (real.*Entry)(configuration, function, parameters, extra);
}

template <auto Entry, class... Stream>
CUresult CUDAAPI give_back(CUdeviceptr address, Stream... stream) {
  if (adopted_memory::any()) [[unlikely]] {
    adopted_memory& adopted = interposer::started()->adopted();
    if (const std::size_t bytes = adopted.size_at(address)) adopted.drop(address, bytes);
  }
  return (real.*Entry)(address, stream...);
}

template <auto Entry>
CUresult CUDAAPI unmap(CUdeviceptr address, std::size_t bytes) {
  if (adopted_memory::any()) [[unlikely]]
    interposer::started()->adopted().drop(address, bytes);
  return (real.*Entry)(address, bytes);
}

// What another process does to the memory is seen by nobody here.
template <auto Entry>
CUresult CUDAAPI share(CUipcMemHandle* handle, CUdeviceptr address) {
  if (adopted_memory::any() && interposer::started()->adopted().touched(address)) [[unlikely]]
    log(log_level::warn,
        "the device memory at {:#x} is used by CPU code and shared with other processes now; what they write is not "
        "seen "
        "by CPU code of this one until the next device work here",
        address);
  return (real.*Entry)(handle, address);
}

// A context may end with this call, or memory with it.
template <auto Entry, class Which>
CUresult CUDAAPI context_change(Which which) {
  if (interposer* const hpe = interposer::started()) hpe->forget_contexts();
  return (real.*Entry)(which);
}

bool host_access = false;

void started() {
  if (!host_access) return;
  if (interposer* const hpe = interposer::instance()) hpe->serve_touches();
}

const hpe_cuda_hook table[] = {
#define HPE_HOOK(symbol, declaration, function)                                        \
  {#symbol, reinterpret_cast<void*>(static_cast<decltype(&::declaration)>(&function)), \
   reinterpret_cast<void**>(&real.symbol)},
#include "interpose/cuda/hooks.def"
#undef HPE_HOOK
};

}  // namespace

}  // namespace hpe::cuda_hooks

const hpe_cuda_interposition* hpe_cuda_interpose() {
  using namespace hpe;
  static const std::string driver = [] {
    try {
      const options chosen = options::from_environment();
      set_log_level(parse_log_level(chosen.log));
      HPE_REQUIRE(chosen.cuda_host_access == "on" || chosen.cuda_host_access == "off", HPE_ERROR_INITIALIZATION,
                  "HPE_CUDA_HOST_ACCESS=\"{}\" is neither on nor off", chosen.cuda_host_access);
      cuda_hooks::host_access = chosen.cuda_host_access == "on";
      return chosen.cuda_driver;
    } catch (const error& e) {
      log(log_level::error, "{}", e.what());
      return std::string();
    }
  }();
  static const hpe_cuda_interposition result{cuda_hooks::table,
                                             std::size(cuda_hooks::table),
                                             driver.c_str(),
                                             cuda_hooks::started,
                                             [](const char* sentence) { log(log_level::warn, "{}", sentence); },
                                             [](const char* sentence) { log(log_level::info, "{}", sentence); }};
  return &result;
}

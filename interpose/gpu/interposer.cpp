#include "interpose/gpu/interposer.h"

#include "interpose/gpu/calls/host_calls.h"
#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/work/call_watch.h"
#include "interpose/gpu/work/queuing_threads.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/trace/profile.h"
#include "runtime/trace/recorder.h"
#include "runtime/trace/report_part.h"

namespace hpe::cuda_hooks {

namespace {

constinit std::atomic<interposer*> the_interposer{nullptr};

}  // namespace

interposer::interposer()
    : contexts_(cu_),
      program_(cu_),
      memory_of_graphs_(cu_, option_.scope),
      copies_(cu_, contexts_),
      peers_(cu_, contexts_),
      adopted_(cu_, contexts_, program_, copies_, uses_, deferred_) {
  if (option_.profile) trace::profile::start();
  trace::recorder::start(option_.trace);
  if (trace::recorder::active() != nullptr) call_watch::begin(call_watch::recording);
  trace::start_report(option_.report);
}

interposer* interposer::started() noexcept { return the_interposer.load(std::memory_order_acquire); }

interposer* interposer::instance() {
  static interposer* const made = []() -> interposer* {
    try {
      auto* const result = new interposer;
      the_interposer.store(result, std::memory_order_release);
      return result;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& e) {
      log(log_level::warn, "hpe takes no part in this program: {}", e.what());
      return nullptr;
    }
  }();
  return made;
}

std::optional<CUresult> interposer::any_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream,
                                             bool wait) {
  if (const auto done = copies_.copy(to, from, bytes, stream, wait)) return done;
  return peers_.copy(to, from, bytes, stream);
}

std::optional<CUresult> interposer::box_copied(CUdeviceptr to, CUdeviceptr from, const box_copy& given, CUstream stream,
                                               bool wait, bool after_all) {
  const box_copy shape = given.joined();
  const auto host = [](CUdeviceptr address) {
    return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): CUDA's integer address
  };
  if (const auto done = copies_.upload(to, host(from), shape, stream, wait)) return done;
  if (const auto done = copies_.download(host(to), from, shape, stream)) return done;
  if (!shape.extent.is_one_row()) return std::nullopt;
  return after_all ? peers_.copy_after_all(to, from, shape.bytes()) : peers_.copy(to, from, shape.bytes(), stream);
}

void interposer::gives_back(CUdeviceptr address) {
  deferred_.finish_or_tell("their memory is freed");
  const host_calls* const calls = calls_.load(std::memory_order_acquire);
  if (!adopted_memory::any() && !uses_.any() && (calls == nullptr || !calls->knows_any())) return;
  if (const std::size_t bytes = program_.size_at(address)) gives_back(address, bytes);
}

void interposer::gives_back(CUdeviceptr address, std::size_t bytes) {
  deferred_.finish_or_tell("their memory is freed");
  if (adopted_memory::any()) adopted_.drop(address, bytes);
  if (uses_.any()) uses_.forget({address, saturated_sum(address, bytes)});
  if (host_calls* const calls = calls_.load(std::memory_order_acquire)) calls->forget(address, bytes);
}

bool interposer::may_know(CUdeviceptr address) const {
  const host_calls* const calls = calls_.load(std::memory_order_acquire);
  return adopted_.marks().has(address) || uses_.concern(address) || (calls != nullptr && calls->knows(address));
}

// Discards the records of all memory that any graph frees, because hpe does not know which of the graphs is launched.
// If the launched graph does not free some of the memory, CPU code fetches this memory again at its next touch. hpe
// queries the driver without holding a lock, and only about memory of which hpe has a record.
void interposer::launches_graph() {
  if (!freed_by_graphs_.any()) return;
  for (const CUdeviceptr address : freed_by_graphs_.which([this](CUdeviceptr each) { return may_know(each); }))
    gives_back(address);
}

void interposer::forget_contexts() {
  deferred_.finish_or_tell("a context ends");
  if (host_calls* const calls = calls_.load(std::memory_order_acquire)) calls->forget_contexts();
  adopted_.drop_all();
  contexts_.clear();
}

void interposer::forget_captures(CUcontext which) {
  if (const int ended = program_.forget_captures(which); ended != 0)
    memory_kinds::each([&](memory_kind& kind) { kind.change_captures(-ended); });
}

void interposer::serve_touches() {
  std::call_once(serving_, [this] {
    if (!queuing_threads::prepare())
      return log(log_level::warn,
                 "CPU code cannot use device memory here: the kernel has no membarrier (Linux 4.14 or later has it)");
    // These objects are never destroyed, because touch_service runs a thread, and any thread may use host_calls until
    // the process ends.
    if (calls_.load() == nullptr)
      calls_.store(
          new host_calls(cu_, contexts_, program_, copies_, adopted_, queued_, deferred_, scope_is_parameters()),
          std::memory_order_release);
    new touch_service(adopted_);
  });
}

}  // namespace hpe::cuda_hooks

// The object, the program's memory, and waits; launches are in spread_launch.cpp.
#include "interpose/cuda/spread/spreading.h"

#include <cstdlib>

#include "interpose/cuda/work/program_contexts.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/base/switch_option.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;

namespace {

// Smaller allocations stay the driver's, which puts many into one granule. Kernels read them without copies of their
// own.
constexpr std::size_t smallest_dealt = (std::size_t{256} << 10) + 1;
constexpr std::size_t pitch_unit = 512;  // rows of the driver's pitched memory

spread::machine rates_of(const joined_gpus& gpus) {
  spread::machine m;
  m.devices = gpus.count();
  m.alone = 0;
  m.replica_bytes = gpus.memory_of(0).total;
  return m;
}

joined_gpus entered_gpus(const device::cuda::driver& cu) {
  joined_gpus gpus(cu);
  gpus.enter();
  return gpus;
}

}  // namespace

spreading::spreading(const device::cuda::driver& cu, program_contexts& program, const std::string& cut)
    : cu_(cu),
      program_(program),
      cuts_evenly_(cut == "even"),
      gpus_(entered_gpus(cu)),
      memory_(cu, gpus_),
      kernels_(cu, gpus_),
      lanes_(cu, gpus_),
      copies_(cu, gpus_),
      used_(cu, gpus_, memory_, copies_),
      planner_(rates_of(gpus_)),
      clock_(cu) {
  HPE_REQUIRE(cut == "even" || cut == "auto", HPE_ERROR_INITIALIZATION,
              "HPE_SPREAD_CUT=\"{}\" is neither auto nor even", cut);
}

bool spreading::wanted() noexcept {
  static const bool wanted = [] {
    try {
      return is_on("HPE_SPREAD", options::from_environment().spread);
    } catch (const std::exception& e) {
      log(log_level::warn, "the program runs on one GPU: {}", e.what());
      return false;
    }
  }();
  return wanted;
}

bool spreading::joins_gpus(const device::cuda::driver& cu) noexcept {
  static const bool joins = [&] {
    if (!wanted()) return false;
    const bool several = joined_gpus(cu).count() > 1;
    if (!several)
      log(log_level::warn,
          "hpe run --spread: device 0 reaches no other GPU (or there is none), so the program runs on one GPU");
    return several;
  }();
  return joins;
}

void spreading::begin(const device::cuda::driver& cu, program_contexts& program) noexcept {
  static std::mutex making;
  if (!joins_gpus(cu)) return;
  const std::lock_guard lock(making);
  try {
    if (spreading* const made = active()) {
      const lock_guard own(made->mutex_);
      if (made->was_reset_) made->gpus_.enter();
      made->was_reset_ = false;
      return;
    }
    the_one.store(new spreading(cu, program, options::from_environment().spread_cut), std::memory_order_release);
    // Runs before the table is printed, because that function is registered earlier.
    std::atexit([] {
      const lock_guard own(active()->mutex_);
      const entered here(active()->cu_, active()->context());
      active()->clock_.finish();
    });
  } catch (const std::exception& e) {
    log(log_level::warn, "hpe run --spread: the program runs on one GPU: {}", e.what());
  }
}

bool spreading::is_current() const {
  CUcontext current = nullptr;
  return cu_.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context();
}

// ---- memory ------------------------------------------------------------------------------------------------------

std::optional<CUresult> spreading::allocate(CUdeviceptr* made, std::size_t bytes) {
  if (made == nullptr || bytes < smallest_dealt || !is_current()) return std::nullopt;
  (void)free_left();
  const lock_guard lock(mutex_);
  const spread::placement first = planner_.first_place(bytes, memory_.granule());
  CUresult result = memory_.allocate(*made, bytes, first);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && !program_.captures(context())) {
    // Copies of arrays give way to the program's memory.
    (void)gpus_.wait();
    if (copies_.forget_all()) result = memory_.allocate(*made, bytes, first);
  }
  return result;
}

std::optional<CUresult> spreading::allocate_rows(CUdeviceptr* made, std::size_t* pitch, std::size_t width,
                                                 std::size_t rows) {
  if (pitch == nullptr || width == 0 || rows == 0) return std::nullopt;
  std::size_t rounded = 0, bytes = 0;
  if (__builtin_add_overflow(width, pitch_unit - 1, &rounded)) return std::nullopt;
  rounded -= rounded % pitch_unit;
  if (__builtin_mul_overflow(rounded, rows, &bytes)) return std::nullopt;
  const auto result = allocate(made, bytes);
  if (result == CUDA_SUCCESS) *pitch = rounded;
  return result;
}

std::size_t spreading::starts_at(CUdeviceptr address) {
  const lock_guard lock(mutex_);
  const dealt_memory::range* const r = memory_.find(address);
  return r != nullptr && r->base == address ? r->extent : 0;
}

CUresult spreading::free(CUdeviceptr address) {
  {
    const lock_guard lock(mutex_);
    dealt_memory::range* const r = memory_.find(address);
    if (r == nullptr || r->base != address || r->bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    r->bytes = 0;  // no memory of the program any more
    left_.push_back(address);
  }
  return free_left();
}

// Waits without the mutex: the work may wait for launches of other threads.
CUresult spreading::free_left() {
  std::vector<CUdeviceptr> now;
  {
    const lock_guard lock(mutex_);
    if (left_.empty() || program_.captures(context())) return CUDA_SUCCESS;
    now.swap(left_);
  }
  const CUresult result = program_.wait_for_all(context());
  const lock_guard lock(mutex_);
  for (const CUdeviceptr base : now) {
    dealt_memory::range* const r = memory_.find(base);
    if (r == nullptr || r->bytes != 0) continue;  // the program has reset the device
    copies_.forget(*r);
    used_.forget(*r);
    memory_.free(*r);
  }
  return result;
}

void spreading::frees_other() {
  const lock_guard lock(mutex_);
  used_.forget_others();
}

std::optional<spreading::range> spreading::range_at(CUdeviceptr address) {
  const lock_guard lock(mutex_);
  const dealt_memory::range* const r = memory_.find(address);
  if (r == nullptr || address - r->base >= r->bytes) return std::nullopt;
  return range{r->base, r->bytes};
}

void spreading::note_write(dealt_memory::range& r, CUstream stream) {
  r.contents = ++writes_;
  r.is_empty = false;
  copies_.written_on(stream);
}

void spreading::note_any_write(CUstream stream) {
  memory_.for_each([&](dealt_memory::range& r) {
    mutex_.assert_held();
    note_write(r, stream);
  });
  ++writes_elsewhere_;
}

void spreading::writes(CUdeviceptr address, CUstream stream) {
  const lock_guard lock(mutex_);
  if (dealt_memory::range* const r = memory_.find(address)) {
    note_write(*r, stream);
  } else {
    ++writes_elsewhere_;
  }
}

void spreading::writes_anything(CUstream stream) {
  const lock_guard lock(mutex_);
  note_any_write(stream);
}

// ---- streams and contexts ----------------------------------------------------------------------------------------

void spreading::forget_handles() {
  const lock_guard lock(mutex_);
  kernels_.forget_handles([&](const spread::kernel_model& gone) HPE_REQUIRES(mutex_) { planner_.forget(gone); });
}

void spreading::ends_stream(CUstream stream) {
  const lock_guard lock(mutex_);
  copies_.forget_stream(stream);
  lanes_.forget(stream);
  copies_.forget_ended_lanes();
}

void spreading::ends_context(CUcontext ended) {
  const lock_guard lock(mutex_);
  copies_.forget_streams(ended);
}

void spreading::resets() {
  const lock_guard lock(mutex_);
  (void)gpus_.wait();
  {
    const entered here(cu_, context());
    clock_.finish();
  }
  memory_.for_each([&](const dealt_memory::range& r) {
    mutex_.assert_held();
    used_.forget(r);
  });
  used_.forget_others();
  copies_.forget_all();
  memory_.free_all();
  left_.clear();
  lanes_.forget_all();
  kernels_.forget_modules();
  was_reset_ = true;
}

CUresult spreading::or_failure(CUresult result) {
  if (result != CUDA_SUCCESS) return result;
  const lock_guard lock(mutex_);
  return lanes_.failure();
}

}  // namespace hpe::cuda_hooks

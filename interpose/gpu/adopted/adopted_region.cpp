#include "interpose/gpu/adopted/adopted_region.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/trace/profile.h"
#include "runtime/trace/status_page.h"

namespace hpe::cuda_hooks {

namespace {

constexpr std::size_t window_blocks = 16;  // 32 MiB, the size of a copy from which on the link reaches its full rate

void* pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the driver's addresses are the host's
}

// The number of pinned bytes in all regions.
constinit std::atomic<std::uint64_t> pinned_bytes{0};

std::uint64_t pinned_budget() {
  static const std::uint64_t budget =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 10;
  return budget;
}

}  // namespace

adopted_region::adopted_region(CUdeviceptr begin, CUdeviceptr end, std::shared_ptr<context_parts> parts)
    : begin_(begin),
      end_(end),
      parts_(std::move(parts)),
      shadow_(os::create_memory_file("hpe-adopted", end - begin)),
      alias_(0, end - begin, block_bytes) {
  states_.reset((end - begin + block_bytes - 1) / block_bytes, coherence::block_state::device);
  os::map_file(alias_.data(), end_ - begin_, os::page_protection::read_write, shadow_.get(), 0);
  os::map_file(pointer(begin_), end_ - begin_, os::page_protection::none, shadow_.get(), 0);
  os::exclude_from_fork(pointer(begin_), end_ - begin_);
  os::exclude_from_core(alias_.data(), end_ - begin_);
  os::exclude_from_core(pointer(begin_), end_ - begin_);
  ahead.reset(states_.count(), window_blocks);
}

adopted_region::~adopted_region() {
  if (pinned_by_ != nullptr) {
    const device::cuda::entered here(*pinned_by_, parts_->context());
    if (parts_->alive()) pinned_by_->cuMemHostUnregister(alias_.data());
    pinned_bytes.fetch_sub(end_ - begin_);
  }
  close();
}

void adopted_region::close() noexcept {
  if (std::exchange(closed_, true)) return;
  states_.reset(states_.count(), coherence::block_state::device);
  try {
    os::unmap_to_reserved(pointer(begin_), end_ - begin_);
  } catch (const error&) {
    // The old pages stay mapped; no code uses them again.
  }
}

adopted_region::bytes adopted_region::bytes_of(coherence::block_run run) const noexcept {
  return {begin_ + run.begin * block_bytes, std::min(end_, begin_ + run.end * block_bytes)};
}

void adopted_region::pin(const device::cuda::driver& cu) {
  const std::uint64_t size = end_ - begin_;
  if (pinned_bytes.fetch_add(size) + size <= pinned_budget() &&
      cu.cuMemHostRegister(alias_.data(), size, CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS)
    pinned_by_ = &cu;
  else
    pinned_bytes.fetch_sub(size);
}

void adopted_region::prepare_pages(const device::cuda::driver& cu, bytes range) {
  if (arrived_ < end_ - begin_) os::populate_with_huge_pages(alias(range.begin), range.end - range.begin);
  arrived_ += range.end - range.begin;
  // Pinning costs more time than it saves for pages into which data is copied only once, and for small regions.
  if (pin_tried_ || end_ - begin_ < block_bytes || arrived_ <= end_ - begin_) return;
  pin_tried_ = true;
  pin(cu);
}

void adopted_region::tell_moved(std::size_t bytes, bool to_device) const {
  trace::moved(pointer(begin_), end_ - begin_, bytes, to_device);
  counters& count = trace::status_page::own().count;
  counters::add(to_device ? count.bytes_to_device : count.bytes_to_host, bytes);
}

void adopted_region::protect(coherence::block_run run, os::page_protection allowed) {
  if (closed_) return;
  const bytes range = bytes_of(run);
  HPE_REQUIRE(os::protect(pointer(range.begin), range.end - range.begin, allowed), HPE_ERROR_SYSTEM,
              "the Linux kernel has no room for more mappings; raise vm.max_map_count");
  if (allowed == os::page_protection::read) os::populate_for_reading(pointer(range.begin), range.end - range.begin);
  if (allowed == os::page_protection::read_write)
    os::populate_for_writing(pointer(range.begin), range.end - range.begin);
}

}  // namespace hpe::cuda_hooks

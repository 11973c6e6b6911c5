#include "interpose/cuda/adopted_region.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace hpe::cuda_hooks {

namespace {

constexpr std::size_t window_blocks = 16;  // 32 MiB, where the link is at its full rate

void* pointer(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the driver's addresses are the host's
}

}  // namespace

adopted_region::adopted_region(CUdeviceptr begin, CUdeviceptr end, CUcontext context)
    : begin_(begin),
      end_(end),
      context_(context),
      shadow_(os::create_memory_file("hpe-adopted", end - begin)),
      alias_(0, end - begin, os::page_size()),
      states_((end - begin + block_bytes - 1) / block_bytes, coherence::block_state::device) {
  os::map_file(alias_.data(), end_ - begin_, os::access::read_write, shadow_.get(), 0);
  os::map_file(pointer(begin_), end_ - begin_, os::access::none, shadow_.get(), 0);
  os::exclude_from_fork(pointer(begin_), end_ - begin_);
  ahead.reset(states_.size(), window_blocks);
}

adopted_region::~adopted_region() {
  try {
    os::unmap_to_reserved(pointer(begin_), end_ - begin_);
  } catch (const error&) {
    // The old pages stay, which nobody asks for again.
  }
}

adopted_region::bytes adopted_region::bytes_of(coherence::block_run run) const noexcept {
  return {begin_ + run.begin * block_bytes, std::min(end_, begin_ + run.end * block_bytes)};
}

void adopted_region::set_state(coherence::block_run run, coherence::block_state next) noexcept {
  for (std::uint64_t b = run.begin; b < run.end; ++b) {
    off_device_ -= states_[b] != coherence::block_state::device ? 1 : 0;
    off_device_ += next != coherence::block_state::device ? 1 : 0;
    states_[b] = next;
  }
}

coherence::block_run adopted_region::run_from(std::uint64_t block, std::uint64_t limit) const noexcept {
  std::uint64_t end = block + 1;
  while (end < limit && states_[end] == states_[block]) ++end;
  return {block, end};
}

void adopted_region::protect(coherence::block_run run, os::access allowed) {
  const bytes range = bytes_of(run);
  HPE_REQUIRE(os::protect(pointer(range.begin), range.end - range.begin, allowed), HPE_ERROR_SYSTEM,
              "the kernel has no room for more mappings; raise vm.max_map_count");
  if (allowed == os::access::read) os::populate_for_reading(pointer(range.begin), range.end - range.begin);
  if (allowed == os::access::read_write) os::populate_for_writing(pointer(range.begin), range.end - range.begin);
}

}  // namespace hpe::cuda_hooks

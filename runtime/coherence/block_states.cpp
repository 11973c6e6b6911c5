#include "runtime/coherence/block_states.h"

#include <utility>

namespace hpe::coherence {

void block_states::reset(std::uint64_t count, block_state initial) {
  blocks_.assign(count, {.state = initial});
  off_device_ = initial == block_state::device ? 0 : count;
  shadow_used_ = initial != block_state::fresh;
}

block_run block_states::same_from(std::uint64_t block, std::uint64_t limit) const noexcept {
  std::uint64_t end = block + 1;
  while (end < limit && blocks_[end].state == blocks_[block].state) ++end;
  return {block, end};
}

void block_states::transition(block_run run, block_event event) noexcept {
  for (std::uint64_t b = run.begin; b < run.end; ++b) {
    const block_state before = blocks_[b].state;
    const block_state next = apply(before, event).next;
    off_device_ -= before != block_state::device ? 1 : 0;
    off_device_ += next != block_state::device ? 1 : 0;
    shadow_used_ = shadow_used_ || next == block_state::host || next == block_state::fetching;
    blocks_[b].state = next;
  }
}

void block_states::begin_fetch(block_run run, block_event event, std::uint32_t number) noexcept {
  transition(run, event);
  for (std::uint64_t b = run.begin; b < run.end; ++b) blocks_[b].fetch = number;
}

void block_states::split(std::uint64_t times, std::uint64_t count) {
  std::vector<block> parts(count);
  off_device_ = 0;
  for (std::uint64_t b = 0; b < count; ++b) {
    parts[b] = blocks_[b / times];
    off_device_ += parts[b].state != block_state::device ? 1 : 0;
  }
  blocks_ = std::move(parts);
}

void block_states::set_rolled(block_run run, bool rolled) noexcept {
  for (std::uint64_t b = run.begin; b < run.end; ++b) blocks_[b].rolled = rolled;
}

}  // namespace hpe::coherence

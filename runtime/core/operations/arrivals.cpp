#include "runtime/core/operations/arrivals.h"

#include <optional>
#include <utility>

namespace hpe::core {

void arrivals::empty_oldest() {
  const arriving_chunk& oldest = under_way_.front();
  engine_.finish(oldest.buffer.busy_until());
  engine_.copy_on_host(oldest.home, oldest.into, oldest.buffer.data(), oldest.bytes);
  under_way_.pop_front();
}

transfer::staged arrivals::next_buffer(unsigned home) {
  if (under_way_.size() == most) empty_oldest();
  std::optional<transfer::staged> free = engine_.try_borrow(home);
  while (!free && !under_way_.empty()) {
    empty_oldest();
    if (auto next = engine_.try_borrow(home)) free.emplace(std::move(*next));
  }
  return free ? std::move(*free) : engine_.borrow(home);
}

void arrivals::add(unsigned home, transfer::staged&& buffer, std::byte* into, std::size_t bytes) {
  under_way_.push_back({home, std::move(buffer), into, bytes});
}

void arrivals::finish() {
  while (!under_way_.empty()) empty_oldest();
}

}  // namespace hpe::core

#include "runtime/work/sharing.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>

namespace hpe::work {

using coherence::byte_range;
using coherence::region;
using coherence::shared_parts;

namespace {

// Returns the bytes of a part that lie in the range, as other processes name them; 0 bytes if the part and the range do
// not overlap.
node::exported inside(const shared_parts::exported_part& part, byte_range range) noexcept {
  const byte_range both{std::max(part.range.begin, range.begin), std::min(part.range.end, range.end)};
  return both.empty() ? node::exported{part.memory, 0, 0}
                      : node::exported{part.memory, both.begin - part.range.begin, both.size()};
}

bool meet(const shared_parts::exported_part& part, byte_range range) noexcept { return inside(part, range).bytes != 0; }

// Returns a function to be called at each of several events; the last call calls `last`.
std::function<void()> one_of(std::size_t events, const std::function<void()>& last) {
  struct countdown {
    countdown(std::size_t events, const std::function<void()>& function) : left(events), last(function) {}
    std::atomic<std::size_t> left;
    std::function<void()> last;
  };
  return [shared = std::make_shared<countdown>(events, last)] {
    if (shared->left.fetch_sub(1) == 1) shared->last();
  };
}

}  // namespace

bool sharing::is_held(const shared_parts::exported_part& part) const {
  return !part.exported.empty() || others_.is_open(part.memory);
}

bool sharing::holds(const region& r, byte_range bytes) const {
  return std::ranges::any_of(r.shared.all(),
                             [&](const shared_parts::exported_part& p) { return meet(p, bytes) && is_held(p); });
}

bool sharing::may_be_written(const region& r, byte_range bytes) const {
  return std::ranges::any_of(r.shared.all(), [&](const shared_parts::exported_part& p) {
    return meet(p, bytes) && others_.written(inside(p, bytes));
  });
}

void sharing::see_writes(const resources& with, region& r, byte_range bytes) {
  bool any = false;
  try {
    for (const shared_parts::exported_part& p : r.shared.all())
      if (meet(p, bytes) && others_.take_written(inside(p, bytes))) any = true;
    if (any && !r.single_copy()) drop_host_copy(with, r, bytes);
  } catch (...) {
    for (const shared_parts::exported_part& p : r.shared.all())
      if (meet(p, bytes)) others_.untake(p.memory);
    throw;
  }
}

void sharing::forget(const resources& with, region& r, byte_range bytes) {
  std::vector<shared_parts::exported_part> unused;
  std::ranges::copy_if(r.shared.all(), std::back_inserter(unused),
                       [&](const shared_parts::exported_part& p) { return meet(p, bytes) && !is_held(p); });
  for (const shared_parts::exported_part& p : unused)
    see_writes(with, r, {p.range.begin, std::min(p.range.end, r.layout.extent)});
  for (const shared_parts::exported_part& p : unused) {
    others_.retire(p.memory, [] {});
    r.shared.remove(p.memory);
  }
}

void sharing::when_closed(const region& r, byte_range bytes, const std::function<void()>& last) const {
  std::vector<node::exported> parts;
  {
    const lock_guard lock(r.mutex);
    for (const shared_parts::exported_part& p : r.shared.all())
      if (meet(p, bytes)) parts.push_back(inside(p, bytes));
  }
  if (parts.empty()) return last();
  const auto each = one_of(parts.size(), last);
  for (const node::exported& part : parts) others_.when_closed(part, each);
}

sharing::ending::ending(const region& r, std::function<void()> give_back) : give_back_(std::move(give_back)) {
  if (r.shared.empty()) return;
  const auto each = one_of(r.shared.all().size(), give_back_);
  for (const shared_parts::exported_part& p : r.shared.all()) parts_.emplace_back(p.memory, each);
}

void sharing::end(ending&& prepared) const noexcept {
  if (prepared.parts_.empty()) return prepared.give_back_();
  for (auto& [memory, last] : prepared.parts_) others_.retire(memory, std::move(last));
}

}  // namespace hpe::work

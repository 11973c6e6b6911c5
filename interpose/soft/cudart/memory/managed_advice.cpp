#include "interpose/soft/cudart/memory/managed_advice.h"

#include <iterator>

namespace hpe::cudart {

namespace {

constexpr std::size_t page = 4096;

struct page_range {
  std::size_t begin;
  std::size_t end;
};

page_range pages_of(const cudart_allocation& whole, const void* address, std::size_t bytes) {
  const auto offset =
      static_cast<std::size_t>(static_cast<const char*>(address) - static_cast<const char*>(whole.base));
  return {offset / page, (offset + bytes + page - 1) / page};
}

}  // namespace

void managed_advice::change(const cudart_allocation& whole, const void* address, std::size_t bytes,
                            const std::function<void(page_advice&)>& how) {
  const page_range range = pages_of(whole, address, bytes);
  const lock_guard lock(mutex_);
  auto& pages = all_[whole.base];
  pages.try_emplace(0);
  const auto split = [&](std::size_t at) {
    return pages.try_emplace(at, std::prev(pages.upper_bound(at))->second).first;
  };
  const auto end = split(range.end);
  for (auto each = split(range.begin); each != end; ++each) how(each->second);
}

std::vector<page_advice> managed_advice::of(const cudart_allocation& whole, const void* address,
                                            std::size_t bytes) const {
  const page_range range = pages_of(whole, address, bytes);
  const lock_guard lock(mutex_);
  const auto found = all_.find(whole.base);
  if (found == all_.end()) return {page_advice{}};
  std::vector<page_advice> result;
  const auto& pages = found->second;
  for (auto each = std::prev(pages.upper_bound(range.begin)); each != pages.end() && each->first < range.end; ++each)
    result.push_back(each->second);
  return result;
}

void managed_advice::forget(const void* base) {
  const lock_guard lock(mutex_);
  all_.erase(base);
}

}  // namespace hpe::cudart

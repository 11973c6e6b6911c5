#include "runtime/check/call_place.h"

#include <algorithm>
#include <span>

#include "runtime/base/fnv1a.h"
#include "runtime/trace/location.h"

namespace hpe::check {

call_place call_place::here(const char* call) {
  trace::call_stack::prepare();
  return {call != nullptr ? call : "", trace::call_stack::here()};
}

call_place call_place::outside_of(const void* function) const {
  constexpr std::uintptr_t longest = 256;
  call_place result = *this;
  const auto end = stack.frames.begin() + stack.count;
  const auto found = std::find_if(stack.frames.begin(), end, [&](const void* frame) {
    return reinterpret_cast<std::uintptr_t>(frame) - reinterpret_cast<std::uintptr_t>(function) - 1 < longest;
  });
  if (found == end || found + 1 == end) return result;
  result.stack.count = static_cast<int>(end - (found + 1));
  std::copy(found + 1, end, result.stack.frames.begin());
  return result;
}

std::string call_place::text() const {
  return trace::location_of(std::span(stack.frames).first(static_cast<std::size_t>(stack.count)));
}

std::uint64_t call_place::hash() const noexcept {
  fnv1a hash;
  for (int n = 0; n < stack.count; ++n)
    hash.add(reinterpret_cast<std::uintptr_t>(stack.frames[static_cast<std::size_t>(n)]));
  return hash.value();
}

}  // namespace hpe::check

#include "runtime/check/operation.h"

#include <algorithm>
#include <cstring>

#include "runtime/trace/location.h"

namespace hpe::check {

std::string text_of(const call_place& place) {
  return trace::location_of(std::span(place.stack.frames).first(static_cast<std::size_t>(place.stack.count)));
}

std::uint64_t hash_of(const call_place& place) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (int n = 0; n < place.stack.count; ++n)
    hash =
        (hash ^ reinterpret_cast<std::uintptr_t>(place.stack.frames[static_cast<std::size_t>(n)])) * 0x100000001b3ULL;
  return hash;
}

std::string_view name_of(use how) noexcept {
  return how == use::read ? "read" : how == use::write ? "write" : "atomic";
}

int checked_operation::argument_in(std::uint64_t base, std::uint64_t bytes) const noexcept {
  for (const auto& [number, value] : pointers)
    if (value - base < bytes) return number;
  return 0;
}

std::vector<std::pair<int, std::uint64_t>> pointers_in(std::span<const std::uint32_t> offsets,
                                                       std::span<const std::uint32_t> sizes,
                                                       std::span<const std::byte> arguments) {
  std::vector<std::pair<int, std::uint64_t>> result;
  for (std::size_t n = 0; n < offsets.size(); ++n) {
    for (std::uint32_t at = 0; at + sizeof(std::uint64_t) <= sizes[n]; at += sizeof(std::uint64_t)) {
      std::uint64_t value = 0;
      if (offsets[n] + at + sizeof value > arguments.size()) break;
      std::memcpy(&value, arguments.data() + offsets[n] + at, sizeof value);
      result.emplace_back(static_cast<int>(n) + 1, value);
    }
  }
  return result;
}

std::string site_places::find(std::uint32_t site, use how) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const entry& e) { return e.site == site && e.how == how; });
  return found == all_.end() ? "" : found->place;
}

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

}  // namespace hpe::check

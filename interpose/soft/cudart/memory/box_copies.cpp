// hpeMemcpy copies contiguous ranges, so the functions in this file join rows without gaps to one range.

#include "interpose/soft/cudart/memory/box_copies.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "hpe/hpe.h"
#include "interpose/soft/cudart/device/context.h"

namespace hpe::cudart {

namespace {

/// Copies overlapping ranges through a temporary buffer: in CUDA, the result of such a copy is undefined, but the copy
/// does not fail.
void copy_range(char* to, const char* from, std::size_t bytes) {
  if (to == from) return;
  const bool overlap = to < from + bytes && from < to + bytes;
  if (!overlap) return check(::hpeMemcpy(to, from, bytes));
  std::vector<char> between(bytes);
  check(::hpeMemcpy(between.data(), from, bytes));
  check(::hpeMemcpy(to, between.data(), bytes));
}

/// Returns the address by which hpe accesses memory. CPU code may not be allowed to access registered memory at the
/// program's address (check/watched_memory.h).
const char* for_hpe(const char* address) {
  const auto found = process().memory().find(address);
  if (!found || found->device_base == found->base) return address;
  return static_cast<const char*>(found->device_base) + (address - static_cast<const char*>(found->base));
}

}  // namespace

bool is_pageable(const void* address) { return !process().memory().find_also_of_hpe(address).has_value(); }

void check_box(const char* begin, const box& shape, bool must_be_known) {
  const auto& [extent, strides] = shape;
  const std::size_t span = shape.span();
  require(begin != nullptr, cudaErrorInvalidValue);
  require(extent.rows == 1 || strides.row >= extent.width, cudaErrorInvalidPitchValue);
  require(extent.planes == 1 || strides.plane >= saturated_product(extent.rows, strides.row), cudaErrorInvalidValue);
  require(saturated_sum(reinterpret_cast<std::uintptr_t>(begin), span) != too_many_bytes, cudaErrorInvalidValue);
  const auto found = process().memory().find_also_of_hpe(begin);
  require(found.has_value() || !must_be_known, cudaErrorInvalidValue);
  require(!found || found->holds(begin, span), cudaErrorInvalidValue);
}

void copy_box(char* to, const char* from, const box_copy& shape) {
  to = const_cast<char*>(for_hpe(to));
  from = for_hpe(from);
  const box_copy rows = shape.joined();
  rows.for_each_row(
      [&](std::size_t at_to, std::size_t at_from) { copy_range(to + at_to, from + at_from, rows.extent.width); });
}

void set_box(char* to, const box& shape, unsigned value, unsigned element_size) {
  to = const_cast<char*>(for_hpe(to));
  const box rows = shape.joined();
  const std::size_t width = rows.extent.width;
  if (element_size == 1)
    return rows.for_each_row(
        [&](std::size_t at) { check(::hpeMemset(to + at, static_cast<int>(value & 0xffU), width)); });
  constexpr std::size_t most = std::size_t{1} << 20;
  std::vector<char> pattern(std::min(width, most));
  for (std::size_t i = 0; i + element_size <= pattern.size(); i += element_size) {
    std::memcpy(pattern.data() + i, &value, element_size);
  }
  rows.for_each_row([&](std::size_t at) {
    for (std::size_t done = 0; done < width; done += most)
      check(::hpeMemcpy(to + at + done, pattern.data(), std::min(most, width - done)));
  });
}

}  // namespace hpe::cudart

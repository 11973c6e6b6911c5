// hpe copies ranges. Adjacent rows without a gap are copied as one range.

#include "interpose/cudart/memory/box.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "hpe/hpe.h"
#include "interpose/cudart/device/context.h"

namespace hpe::cudart {

namespace {

/// The allocation of an address, including memory that only hpe knows (variables of modules whose address a kernel
/// returned).
std::optional<allocation> find_memory(const void* address) {
  if (auto found = process().memory().find(address)) return found;
  hpePointerInfo info{};
  if (::hpeGetPointerInfo(address, &info) != HPE_SUCCESS || info.kind == HPE_MEMORY_ORDINARY) return std::nullopt;
  return allocation{.base = info.base, .size = info.size, .kind = memory_kind::managed, .device = info.device};
}

/// Merges rows without gaps into longer ones.
void join_rows(box_extent& extent, bool rows_touch, bool planes_touch) {
  if (extent.height == 1 || rows_touch) {
    extent.width *= extent.height;
    extent.height = 1;
    if (extent.depth == 1 || planes_touch) {
      extent.width *= extent.depth;
      extent.depth = 1;
    }
  }
}

/// Overlapping ranges are copied through a temporary buffer: in CUDA the result is undefined, but the copy does not
/// fail.
void copy_range(char* to, const char* from, std::size_t bytes) {
  if (to == from) return;
  const bool overlap = to < from + bytes && from < to + bytes;
  if (!overlap) return check(::hpeMemcpy(to, from, bytes));
  std::vector<char> between(bytes);
  check(::hpeMemcpy(between.data(), from, bytes));
  check(::hpeMemcpy(to, between.data(), bytes));
}

template <class Function>
void for_each_row(const box_extent& extent, const Function& function) {
  for (std::size_t z = 0; z < extent.depth; ++z) {
    for (std::size_t y = 0; y < extent.height; ++y) function(z, y);
  }
}

}  // namespace

bool is_pageable(const void* address) { return !find_memory(address).has_value(); }

void check_box(const box& where, const box_extent& extent, bool must_be_known) {
  require(where.begin != nullptr, cudaErrorInvalidValue);
  require(extent.height == 1 || where.row >= extent.width, cudaErrorInvalidPitchValue);
  require(extent.depth == 1 || where.plane >= extent.height * where.row, cudaErrorInvalidValue);
  const auto found = find_memory(where.begin);
  require(found.has_value() || !must_be_known, cudaErrorInvalidValue);
  require(!found || found->holds(where.begin, where.span(extent)), cudaErrorInvalidValue);
}

void copy_box(const box& to, const box& from, box_extent extent) {
  const std::size_t plane = extent.height * extent.width;
  join_rows(extent, to.row == extent.width && from.row == extent.width, to.plane == plane && from.plane == plane);
  for_each_row(extent, [&](std::size_t z, std::size_t y) {
    copy_range(to.begin + z * to.plane + y * to.row, from.begin + z * from.plane + y * from.row, extent.width);
  });
}

void set_box(const box& to, box_extent extent, unsigned value, unsigned element_size) {
  const std::size_t plane = extent.height * extent.width;
  join_rows(extent, to.row == extent.width, to.plane == plane);
  if (element_size == 1) {
    for_each_row(extent, [&](std::size_t z, std::size_t y) {
      check(::hpeMemset(to.begin + z * to.plane + y * to.row, static_cast<int>(value & 0xffU), extent.width));
    });
    return;
  }
  constexpr std::size_t most = std::size_t{1} << 20;
  std::vector<char> pattern(std::min(extent.width, most));
  for (std::size_t i = 0; i + element_size <= pattern.size(); i += element_size) {
    std::memcpy(pattern.data() + i, &value, element_size);
  }
  for_each_row(extent, [&](std::size_t z, std::size_t y) {
    for (std::size_t done = 0; done < extent.width; done += most) {
      check(::hpeMemcpy(to.begin + z * to.plane + y * to.row + done, pattern.data(),
                        std::min(most, extent.width - done)));
    }
  });
}

}  // namespace hpe::cudart

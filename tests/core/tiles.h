#pragma once

#include <cstdint>

#include "hpe/kernel.h"

/// The iterations [begin, end) of a loop.
struct part {
  std::uint64_t begin;
  std::uint64_t end;
};

/// Returns the part of a loop of `count` iterations that these tiles of a launch execute.
inline part part_of(const hpeTiles* tiles, std::uint64_t count) {
  const std::uint64_t total = std::uint64_t{tiles->grid[0]} * tiles->grid[1] * tiles->grid[2];
  return {count * tiles->begin / total, count * tiles->end / total};
}

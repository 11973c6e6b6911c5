#pragma once

#include <cstddef>
#include <random>
#include <vector>

/// Returns numbers between -1 and 1.
inline std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> any(-1, 1);
  std::vector<float> values(count);
  for (float& v : values) v = any(random);
  return values;
}

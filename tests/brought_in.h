#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

/// Returns how many MiB hpe brought into device memory in a run with --profile.
inline double brought_in(const std::string& profile) {
  double all = 0, copied = 0, brought = 0;
  const std::size_t at = profile.find("data larger than device memory: ");
  const int numbers = std::sscanf(
      at != std::string::npos ? profile.c_str() + at : "",
      "data larger than device memory: %lf MiB were evicted, of which %lf MiB were copied to the host; %lf MiB were",
      &all, &copied, &brought);
  EXPECT_EQ(numbers, 3) << profile;
  return brought;
}

#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

/// The MiB of data larger than device memory that hpe moved in a run with --profile.
struct evictions {
  double all = 0, copied = 0;  // evicted; and of these, copied to the host
  double brought_in = 0;
};
inline evictions evictions_in(const std::string& profile) {
  evictions told;
  const std::size_t at = profile.find("data larger than device memory: ");
  const int numbers = std::sscanf(
      at != std::string::npos ? profile.c_str() + at : "",
      "data larger than device memory: %lf MiB were evicted, of which %lf MiB were copied to the host; %lf MiB were",
      &told.all, &told.copied, &told.brought_in);
  EXPECT_EQ(numbers, 3) << profile;
  return told;
}

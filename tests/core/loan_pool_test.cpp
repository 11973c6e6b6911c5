#include "runtime/core/memory/loan_pool.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/core/runtime.h"

namespace hpe::core {
namespace {

constexpr std::size_t mebi = std::size_t{1} << 20;

options soft_options() {
  options chosen;
  chosen.devices = "soft:2";
  return chosen;
}

// If the devices are near different NUMA nodes, there are separate staging buffers for each node.
TEST(loan_pool, lends_nothing_of_the_staging_buffers_of_any_group) {
  ::setenv("HPE_SOFT_NODES", "0,1", 1);
  options chosen = soft_options();
  chosen.segment_size = 64 * mebi;
  chosen.staging_chunk = 4 * mebi;
  chosen.staging_buffers = 7;
  const runtime it(chosen);
  ::unsetenv("HPE_SOFT_NODES");
  loan_pool pool(it.devices(), it.space(), it.resources().engine.staging().bytes());
  const loan lent = pool.take(mebi, nullptr);
  const auto offset = it.space().view(lent.data()) - it.space().segment_begin(memory::segment_kind::runtime);
  EXPECT_GE(offset, static_cast<std::ptrdiff_t>(2 * 7 * 4 * mebi));
  EXPECT_THROW((void)pool.take(8 * mebi, nullptr), error)
      << "only 8 MiB remain beside the staging buffers, and 1 MiB is lent";
}

TEST(loan_pool, gives_pages_back_when_more_than_half_a_gibibyte_is_idle) {
  const runtime it(soft_options());
  loan_pool pool(it.devices(), it.space(), it.resources().engine.staging().bytes());
  constexpr std::size_t size = 64 * mebi;
  constexpr std::size_t kept = 8;
  constexpr std::size_t all = 10;
  const auto take_all = [&] {
    std::vector<loan> lent;
    while (lent.size() < all) lent.push_back(pool.take(size, nullptr));
    return lent;
  };
  for (const loan& l : take_all()) *l.data() = std::byte{1};
  std::size_t found = 0;
  for (const loan& l : take_all()) found += *l.data() == std::byte{1} ? 1 : 0;
  EXPECT_EQ(found, kept) << "pages that were given back read as zero";
}

TEST(address_space, kept_address_space_serves_allocations_of_another_size) {
  options chosen = soft_options();
  chosen.segment_size = 32 * mebi;
  chosen.staging_chunk = mebi;
  chosen.staging_buffers = 2;
  runtime it(chosen);
  std::byte* const touched = it.memory().allocate(20 * mebi, 0);
  *touched = std::byte{1};
  it.memory().free(touched);
  std::byte* const other = it.memory().allocate(24 * mebi, 0);
  EXPECT_NE(other, nullptr);
  it.memory().free(other);
}

}  // namespace
}  // namespace hpe::core

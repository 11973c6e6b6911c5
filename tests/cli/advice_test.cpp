#include "apps/hpe/report/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace hpe::cli {
namespace {

constexpr std::uint64_t KiB = 1 << 10;
constexpr std::uint64_t MiB = 1 << 20;
constexpr const char* touch = "touches of device memory";
constexpr std::uint64_t here = 0x200000000000;

// Returns a process of ten seconds that needs no advice: it has one allocation of 64 MiB, copied once to the device and
// once back.
recorded_process fine() {
  recorded_process p;
  p.name = "rank 0";
  p.seconds = 10;
  p.allocations.push_back({.address = here,
                           .bytes = 64 * MiB,
                           .made_at = "jacobi.cpp:7",
                           .to_host = 64 * MiB,
                           .to_device = 64 * MiB,
                           .moves_to_host = 8,
                           .moves_to_device = 8,
                           .used_begin = 0,
                           .used_end = 64 * MiB});
  p.places.push_back({"to devices, staged by hpe", "jacobi.cpp:10", 1, 64 * MiB, 0.01, 0, 0});
  p.places.push_back({touch, "jacobi.cpp:42", 8, 0, 0.01, here, here + 64 * MiB - 1});
  p.mpi.push_back({"MPI_Sendrecv", 200, 0.01});
  p.faults_read = 8;
  p.blocks_prefetched = 56;
  return p;
}

struct row {
  const char* rule;
  const char* where;
  const char* words;  // a part of the text
  std::function<void(recorded_process&)> change;
};

const row table[] = {
    {"element-wise touches", "jacobi.cpp:42",
     "768 touches of the allocation of 3 MiB made at jacobi.cpp:7, which brought 3 MiB in pieces of about 4 KiB",
     [](recorded_process& p) {
       p.allocations[0].bytes = p.allocations[0].used_end = p.allocations[0].to_host = 3 * MiB;
       p.allocations[0].to_device = 0;
       p.places[1] = {touch, "jacobi.cpp:42", 768, 0, 2.5, here, here + 3 * MiB - 4};
     }},
    {"touches block by block", "jacobi.cpp:42", "which brought 57 MiB in blocks of about 57 KiB",
     [](recorded_process& p) {
       p.allocations[0].to_host = 57 * MiB;
       p.places[1] = {touch, "jacobi.cpp:42", 1024, 0, 2.5, here, here + 57 * MiB - 4};
     }},
    {"ping-pong", "jacobi.cpp:7", "moved to the host and back 40 times",
     [](recorded_process& p) {
       p.allocations[0].to_host = 50 * 64 * MiB;
       p.allocations[0].to_device = 40 * 64 * MiB;
     }},
    {"copies to read in place", "residual.cpp:5", "copies 8 bytes from a device 100000 times",
     [](recorded_process& p) {
       p.places.push_back({"from devices, by the driver", "residual.cpp:5", 100000, 800000, 1.0, 0, 0});
     }},
    {"small copies", "halo.cpp:9", "20000 copies of 32 KiB (to devices, by the driver)",
     [](recorded_process& p) {
       p.places.push_back({"to devices, by the driver", "halo.cpp:9", 20000, 20000 * 32 * KiB, 1.0, 0, 0});
     }},
    {"many small messages", "MPI_Send", "50000 calls of MPI_Send on device memory took 1.000 s, 20.0 us each",
     [](recorded_process& p) {
       p.mpi.push_back({"MPI_Send", 50000, 1.0});
     }},
    {"allocation larger than needed", "jacobi.cpp:7", "used 8 MiB only, from offset 16 MiB",
     [](recorded_process& p) {
       p.allocations[0].used_begin = 16 * MiB;
       p.allocations[0].used_end = 24 * MiB;
     }},
    {"read-ahead not effective", "", "600 reads of CPU code waited for data, and 20 blocks were fetched ahead",
     [](recorded_process& p) {
       p.faults_read = 600;
       p.blocks_prefetched = 20;
       p.places[1].seconds = 1;
     }},
    {"high fault rate", "", "5000 times a second",
     [](recorded_process& p) {
       p.places[1].calls = 50000;
       p.places[1].seconds = 3;
       p.allocations[0].to_host = 50000 * MiB;  // in large pieces
     }},
    {"mappings ran out", "", "Raise vm.max_map_count", [](recorded_process& p) { p.degraded = 2; }},
};

TEST(advice, of_a_process_in_which_nothing_is_wrong_is_none) {
  for (const advice& a : advise(fine())) ADD_FAILURE() << a.rule << ": " << a.text;
  EXPECT_TRUE(advise(recorded_process{}).empty());
}

TEST(advice, follows_from_the_records) {
  for (const row& r : table) {
    recorded_process p = fine();
    r.change(p);
    const auto all = advise(p);
    const auto found = std::find_if(all.begin(), all.end(), [&](const advice& a) { return a.rule == r.rule; });
    ASSERT_NE(found, all.end()) << r.rule;
    EXPECT_EQ(found->where, r.where) << r.rule;
    EXPECT_NE(found->text.find(r.words), std::string::npos) << found->text;
    EXPECT_LE(all.size(), 1U + (r.rule == std::string("high fault rate")))
        << "advice only about the changed record:  " << r.rule;
  }
}

// Uses the records of the table, but with less time or fewer events, so that following the advice would save no time.
TEST(advice, is_not_given_for_records_that_take_no_time) {
  for (const row& r : table) {
    recorded_process p = fine();
    r.change(p);
    if (p.degraded != 0 || r.rule == std::string("ping-pong") || r.rule == std::string("allocation larger than needed"))
      continue;  // these rules are about memory and traffic, not about time
    p.seconds = 1000;
    for (const advice& a : advise(p)) ADD_FAILURE() << r.rule << " gave " << a.text;
  }
}

TEST(advice, names_the_longest_times_first) {
  recorded_process p = fine();
  p.places.push_back({"to devices, by the driver", "second.cpp:1", 1000, 1000 * KiB, 1.0, 0, 0});
  p.places.push_back({"to devices, by the driver", "first.cpp:1", 1000, 1000 * KiB, 4.0, 0, 0});
  const auto all = advise(p);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].where, "first.cpp:1");
  EXPECT_EQ(all[1].where, "second.cpp:1");
}

TEST(advice, divides_the_bytes_of_an_allocation_among_the_places_that_touched_it) {
  recorded_process p = fine();
  p.places[1].calls = 30;
  p.places.push_back({touch, "other.cpp:1", 10, 0, 0.01, here + MiB, here + 2 * MiB});
  p.places.push_back({touch, "elsewhere.cpp:1", 10, 0, 0.01, 0x1000, 0x2000});
  EXPECT_EQ(bytes_of_touches(p.places[1], p), 48 * MiB);
  EXPECT_EQ(bytes_of_touches(p.places[2], p), 16 * MiB);
  EXPECT_EQ(bytes_of_touches(p.places[3], p), 0U);
  EXPECT_EQ(allocation_of(p.places[3], p), nullptr);
}

}  // namespace
}  // namespace hpe::cli

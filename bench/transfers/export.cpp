// Copies from the memory of another process are compared with copies between two devices of one process; a small
// message is timed too. On soft devices, all of these copies are copies in host memory.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "bench/common/measure.h"
#include "hpe/hpe.hpp"
#include "hpe/node.h"

namespace {

using hpe::bench::result;

constexpr std::size_t large = std::size_t{64} << 20;
constexpr std::size_t small = 8;
constexpr int rounds = 200;  // repetitions of bodies that take microseconds

void check(hpeStatus status) {
  if (status == HPE_SUCCESS) return;
  std::fprintf(stderr, "%s\n", hpeGetLastErrorMessage());
  std::exit(EXIT_FAILURE);
}

void fill(void* p, std::size_t bytes) {
  std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t));
  std::mt19937_64 random(std::random_device{}());
  for (std::uint64_t& w : words) w = random();
  check(hpeMemcpy(p, words.data(), bytes));
}

// The other process: exports memory, and exits when its input is closed.
[[noreturn]] void export_one(int handles, int input) {
  void* p = nullptr;
  check(hpeMallocOn(&p, large, 1));
  fill(p, large);
  hpeExport handle;
  check(hpeExportBegin(&handle, p, large));
  if (::write(handles, &handle, sizeof handle) != sizeof handle) std::exit(EXIT_FAILURE);
  char end = 0;
  while (::read(input, &end, 1) > 0) {
  }
  std::exit(EXIT_SUCCESS);
}

double per_round(const hpe::bench::timing& t) { return t.median / rounds * 1e6; }

void measure(const hpeExport& handle, unsigned repeats, std::vector<result>& results) {
  void* to = nullptr;
  void* from = nullptr;
  check(hpeMallocOn(&to, large, 0));
  check(hpeMallocOn(&from, large, 1));
  fill(from, large);
  const auto nothing = [] {};
  const auto across = [&] { check(hpeExportCopy(to, &handle, 0, large)); };
  const auto inside = [&] {
    check(hpeMemcpy(to, from, large));
    check(hpeSynchronize());
  };
  const auto copies = hpe::bench::paired_timings(repeats, nothing, across, nothing, inside);
  results.push_back({"64 MiB from another process: rate / rate of a peer copy",
                     copies.second.median / copies.first.median, "x", ">= 0.8",
                     copies.second.median / copies.first.median >= 0.8});
  results.push_back({"  from another process", large / copies.first.median / 1e9, "GB/s", "", true});
  results.push_back({"  peer copy", large / copies.second.median / 1e9, "GB/s", "", true});

  const auto small_across = [&] {
    for (int i = 0; i < rounds; ++i) check(hpeExportCopy(to, &handle, 64, small));
  };
  const auto small_inside = [&] {
    for (int i = 0; i < rounds; ++i) {
      check(hpeMemcpy(to, from, small));
      check(hpeSynchronize());
    }
  };
  const auto bytes = hpe::bench::paired_timings(repeats, nothing, small_across, nothing, small_inside);
  results.push_back({"8 bytes from another process to a device", per_round(bytes.first), "us", "", true});
  results.push_back({"  peer copy of 8 bytes", per_round(bytes.second), "us", "", true});

  std::uint64_t here = 0;
  const auto out_across = [&] {
    for (int i = 0; i < rounds; ++i) check(hpeExportCopy(&here, &handle, 64, small));
  };
  const auto out_inside = [&] {
    for (int i = 0; i < rounds; ++i) check(hpeMemcpy(&here, from, small));
  };
  const auto outward = hpe::bench::paired_timings(repeats, nothing, out_across, nothing, out_inside);
  results.push_back({"8 bytes from another process to ordinary memory", per_round(outward.first), "us", "", true});
  results.push_back({"  from a device of this process", per_round(outward.second), "us", "", true});

  const auto exports = hpe::bench::timed(repeats, nothing, [&] {
    for (int i = 0; i < rounds; ++i) {
      hpeExport mine;
      check(hpeExportBegin(&mine, from, small));
      check(hpeExportEnd(&mine));
    }
  });
  results.push_back({"hpeExportBegin and hpeExportEnd of 8 bytes", per_round(exports), "us", "", true});
  const auto looks = hpe::bench::timed(repeats, nothing, [&] {
    int reachable = 0;
    for (int i = 0; i < rounds; ++i) check(hpeExportReachable(&handle, &reachable));
  });
  results.push_back({"hpeExportReachable", per_round(looks), "us", "", true});
}

}  // namespace

int main(int argc, char** argv) {
  const auto chosen =
      hpe::bench::parse(argc, argv, "Copies from memory of another process (hpe/node.h), on two devices.");
  int handles[2];
  int input[2];
  if (::pipe(handles) != 0 || ::pipe(input) != 0) return EXIT_FAILURE;
  // fork() must be called before hpe starts in either process.
  const pid_t other = ::fork();
  if (other == 0) {
    ::close(input[1]);
    export_one(handles[1], input[0]);
  }
  ::close(handles[1]);
  hpeExport handle;
  if (::read(handles[0], &handle, sizeof handle) != sizeof handle) return EXIT_FAILURE;
  std::vector<result> results;
  measure(handle, chosen.repeats, results);
  ::close(input[1]);
  ::waitpid(other, nullptr, 0);
  return hpe::bench::report("memory of other processes", results, chosen);
}

// Latency and bandwidth between two ranks, measured as the OSU benchmarks do. Device memory passed to MPI is compared
// with plain MPI on host memory and with hand-written staging through pageable and through pinned memory (the three
// schemes of Cabezas, 2015, section 5.3.6). If the ranks use two GPUs, large messages are also compared with the
// driver's peer copy. If mpirun did not start the program, the program starts itself under mpirun.

#define OMPI_SKIP_MPICXX
#include <fmt/core.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "bench/common/measure.h"
#include "bench/mpi/by_hand.h"
#include "bench/mpi/end_points.h"
#include "bench/mpi/figure.h"
#include "hpe/hpe.hpp"

namespace {

using hpe::bench::end_point;
using hpe::bench::rank;
using hpe::bench::timing;

constexpr std::size_t largest = std::size_t{256} << 20;
constexpr std::size_t short_message = 4096;

void together() { MPI_Barrier(MPI_COMM_WORLD); }

// A way to send messages between the two ranks.
struct scheme {
  const char* name;
  end_point* mine;
  bool one_direction = false;

  // The empty reply to a message in one direction takes as long as a small message, but is negligible beside a large
  // one.
  [[nodiscard]] unsigned messages_of_a_turn(std::size_t bytes) const {
    return one_direction && bytes > short_message ? 1 : 2;
  }
};

// Returns the number of round trips, 1 to 500, that take about 20 ms; both ranks get the same number. In 20 ms, the
// difference between the ranks' start times is negligible.
unsigned turns_of(const scheme& s, std::size_t bytes) {
  hpe::bench::exchange(*s.mine, bytes, 1);
  together();
  const double begin = hpe::bench::now();
  hpe::bench::exchange(*s.mine, bytes, 1);
  int turns = static_cast<int>(std::clamp(0.02 / (hpe::bench::now() - begin), 1.0, 500.0));
  MPI_Bcast(&turns, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return static_cast<unsigned>(turns);
}

timing divided(const timing& all, unsigned n) {
  return {all.median / n, all.fastest / n, all.slowest / n, all.processor / n};
}

// Times one message in one direction, for two schemes in turn, so that a drift of the machine's speed affects both
// equally.
hpe::bench::pair_of_timings one_way(const scheme& first, const scheme& second, std::size_t bytes, unsigned repeats) {
  const unsigned turns[] = {turns_of(first, bytes), turns_of(second, bytes)};
  const auto both = hpe::bench::paired_timings(
      repeats, together, [&] { hpe::bench::exchange(*first.mine, bytes, turns[0]); }, together,
      [&] { hpe::bench::exchange(*second.mine, bytes, turns[1]); });
  return {divided(both.first, turns[0] * first.messages_of_a_turn(bytes)),
          divided(both.second, turns[1] * second.messages_of_a_turn(bytes))};
}

// Times a message, and a copy between GPUs that rank 0 makes by the driver while rank 1 waits.
hpe::bench::pair_of_timings against_peer_copy(const scheme& s, hpe::bench::peer_copy* copy, std::size_t bytes,
                                              unsigned repeats) {
  constexpr unsigned copies = 20;
  const unsigned turns = turns_of(s, bytes);
  const auto both = hpe::bench::paired_timings(
      repeats, together, [&] { hpe::bench::exchange(*s.mine, bytes, turns); }, together,
      [&] {
        for (unsigned i = 0; i < copies && copy != nullptr; ++i) copy->run(bytes);
      });
  return {divided(both.first, turns * s.messages_of_a_turn(bytes)), divided(both.second, copies)};
}

// Replaces this process by mpirun, which starts two ranks of this program.
[[noreturn]] void start_two_ranks(char** argv) {
  std::vector<std::string> words{"mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none"};
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.emplace_back(argv[0]);
  for (char** a = argv + 1; *a != nullptr; ++a) words.emplace_back(*a);
  std::vector<char*> pointers;
  for (std::string& w : words) pointers.push_back(w.data());
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  std::perror("mpirun");
  std::exit(1);
}

// The device of each rank: different devices if the machine has two.
struct devices {
  std::array<int, 2> of_rank{};
  std::string title = "MPI between two ranks";
  bool two_gpus = false;

  devices() {
    const int mine = rank() % hpe::device_count();
    MPI_Allgather(&mine, 1, MPI_INT, of_rank.data(), 1, MPI_INT, MPI_COMM_WORLD);
    hpe::set_device(mine);
    two_gpus = of_rank[0] != of_rank[1];
    for (const int r : {0, 1}) {
      const hpeDeviceInfo info = hpe::device_info(of_rank.at(static_cast<std::size_t>(r)));
      two_gpus = two_gpus && info.kind == HPE_DEVICE_CUDA;
      title += fmt::format("{} rank {} on {}", r == 0 ? ":" : ",", r, info.name);
      if (info.kind == HPE_DEVICE_CUDA) title += fmt::format(" {}", of_rank.at(static_cast<std::size_t>(r)));
    }
  }
  [[nodiscard]] int mine() const { return of_rank.at(static_cast<std::size_t>(rank())); }
};

void measure(hpe::bench::figure& results, const devices& where, std::size_t from, std::size_t to, bool only_pinned,
             unsigned repeats) {
  hpe::bench::device_memory device(where.mine(), to);
  const auto by_hand = hpe::bench::make_by_hand(where.mine(), to);
  hpe::bench::staged_by_hand pinned(*by_hand, by_hand->pinned());
  const scheme both_device{"hpe, device to device", &device};
  const scheme by_pinned{"by hand, pinned", &pinned};

  const std::size_t rest = only_pinned ? 0 : to;
  std::vector<std::byte> pageable_memory(rest, std::byte{1});
  hpe::bench::staged_by_hand pageable(*by_hand, pageable_memory.data());
  hpe::bench::host_memory host(rest);
  // Rank 0 uses device memory and rank 1 host memory; messages are sent in both directions.
  hpe::bench::one_direction device_to_host(rank() == 0, device, host);
  hpe::bench::one_direction host_to_device(rank() == 0, host, device);
  const scheme plain{"plain MPI, host to host", &host};
  const scheme to_host{"hpe, device to host", &device_to_host, true};
  const scheme to_device{"hpe, host to device", &host_to_device, true};
  const scheme by_pageable{"by hand, pageable", &pageable};
  std::unique_ptr<hpe::bench::peer_copy> peer;
  if (where.two_gpus && rank() == 0) peer = hpe::bench::gpu_peer_copy(where.of_rank[0], where.of_rank[1], to);

  for (std::size_t bytes = from; bytes <= to; bytes *= bytes < short_message ? 8 : 4) {
    const double bar = bytes <= short_message ? 1 / 1.3 : 0.95;
    const auto speed = [](const hpe::bench::pair_of_timings& t) { return t.second.median / t.first.median; };
    const auto against_pinned = one_way(both_device, by_pinned, bytes, repeats);
    if (!only_pinned) {
      const auto against_pageable = one_way(both_device, by_pageable, bytes, repeats);
      const auto down = one_way(plain, to_host, bytes, repeats);
      const auto up = one_way(plain, to_device, bytes, repeats);
      results.add(bytes, plain.name, down.first);
      results.add(bytes, to_host.name, down.second);
      results.add(bytes, to_device.name, up.second);
      results.add(bytes, by_pageable.name, against_pageable.second);
      results.compare("speed of hpe, device to device, relative to this", speed(against_pageable), bar);
    }
    results.add(bytes, by_pinned.name, against_pinned.second);
    results.compare("speed of hpe, device to device, relative to this", speed(against_pinned), bar);
    results.add(bytes, both_device.name, against_pinned.first);
    if (where.two_gpus && bytes >= (std::size_t{1} << 20)) {
      const auto against_peer = against_peer_copy(both_device, peer.get(), bytes, repeats);
      results.add(bytes, "peer copy by the driver", against_peer.second);
      results.compare("speed of hpe, device to device, relative to this", speed(against_peer),
                      bytes >= (std::size_t{64} << 20) ? 0.8 : 0);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string charts_file;
  std::size_t smallest = 8;
  std::size_t last = largest;
  std::string against = "all";
  const auto arguments = hpe::bench::parse(
      argc, argv, "MPI between two ranks with device memory, compared with host memory and staging by hand",
      {{"--charts", "FILE",
        "write charts of latency and bandwidth to FILE ('scripts/measurements draw FILE' draws them)",
        hpe::bench::to_text(charts_file)},
       {"--from", "BYTES", "the size of the smallest message (8)", hpe::bench::to_whole(smallest, 1, largest)},
       {"--to", "BYTES", "the size of the largest message, at most 256M (256M)",
        hpe::bench::to_whole(last, 1, largest)},
       {"--against", "WHAT", "all, or pinned: only staging by hand through pinned memory",
        hpe::bench::to_word(against, {"all", "pinned"})}});
  if (smallest > last) {
    fmt::print(stderr, "--from {} --to {}: the smallest message is larger than the largest\n", smallest, last);
    return 2;
  }
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) start_two_ranks(argv);
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) {
    if (rank() == 0) fmt::print(stderr, "hpe-bench-mpi needs two ranks, but there are {}\n", ranks);
    MPI_Finalize();
    return 2;
  }
  const devices where;
  hpe::bench::figure results;
  measure(results, where, smallest, last, against == "pinned", arguments.repeats);
  const int status = rank() == 0 ? results.finish(where.title, arguments, charts_file) : EXIT_SUCCESS;
  MPI_Finalize();
  return status;
}

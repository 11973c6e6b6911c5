// Latency and bandwidth between two ranks, as the OSU benchmarks take them: memory of devices given to MPI, against
// plain MPI on host memory and against staging by hand through pageable and through pinned memory (the three schemes of
// Cabezas, 2015, section 5.3.6). Alone it starts itself under mpirun. What is received counts as there when the device
// has it.

#define OMPI_SKIP_MPICXX
#include <fmt/core.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "bench/measure.h"
#include "bench/plot.h"
#include "hpe/hpe.hpp"

namespace {

using hpe::bench::result;

constexpr std::size_t largest = std::size_t{64} << 20;

int rank() {
  int r = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}

// One side's end of an exchange: how a message leaves it and how it arrives.
class end_point {
 public:
  virtual ~end_point() = default;
  virtual void send(std::size_t bytes) = 0;
  virtual void receive(std::size_t bytes) = 0;

 protected:
  static void mpi_send(const void* p, std::size_t bytes) {
    MPI_Send(p, static_cast<int>(bytes), MPI_BYTE, 1 - rank(), 0, MPI_COMM_WORLD);
  }
  static void mpi_receive(void* p, std::size_t bytes) {
    MPI_Recv(p, static_cast<int>(bytes), MPI_BYTE, 1 - rank(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
};

class host_memory : public end_point {
 public:
  host_memory() : memory_(largest) {}
  void send(std::size_t bytes) override { mpi_send(memory_.data(), bytes); }
  void receive(std::size_t bytes) override { mpi_receive(memory_.data(), bytes); }

 private:
  std::vector<std::byte> memory_;
};

class device_memory : public end_point {
 public:
  device_memory() : memory_(largest) { hpeMemset(memory_.data(), 1, largest); }
  void send(std::size_t bytes) override { mpi_send(memory_.data(), bytes); }
  void receive(std::size_t bytes) override {
    mpi_receive(memory_.data(), bytes);
    hpeSynchronize();
  }

 private:
  hpe::array<std::byte> memory_;
};

// Messages from one kind of memory into another: rank 0 sends from the first, and an empty message comes back.
class one_direction : public end_point {
 public:
  one_direction(bool sender, end_point& from, end_point& to) : sender_(sender), from_(from), to_(to) {}
  void send(std::size_t bytes) override { sender_ ? from_.send(bytes) : mpi_send(nullptr, 0); }
  void receive(std::size_t bytes) override { sender_ ? mpi_receive(nullptr, 0) : to_.receive(bytes); }

 private:
  bool sender_;
  end_point& from_;
  end_point& to_;
};

// What a program without hpe's wrappers writes.
template <class Staging>
class staged_by_hand : public end_point {
 public:
  explicit staged_by_hand(Staging staging) : memory_(largest), staging_(std::move(staging)) {
    hpeMemset(memory_.data(), 1, largest);
    std::memset(staging_.data(), 1, largest);
  }
  void send(std::size_t bytes) override {
    hpeMemcpy(staging_.data(), memory_.data(), bytes);
    hpeSynchronize();
    mpi_send(staging_.data(), bytes);
  }
  void receive(std::size_t bytes) override {
    mpi_receive(staging_.data(), bytes);
    hpeMemcpy(memory_.data(), staging_.data(), bytes);
    hpeSynchronize();
  }

 private:
  hpe::array<std::byte> memory_;
  Staging staging_;
};

// How the data of the two ranks moves.
struct scheme {
  const char* name;
  end_point* mine;
  bool one_direction = false;
};

// Half of a ping-pong.
void exchange(end_point& mine, std::size_t bytes, unsigned turns) {
  for (unsigned i = 0; i < turns; ++i) {
    if (rank() == 0) mine.send(bytes);
    mine.receive(bytes);
    if (rank() == 1) mine.send(bytes);
  }
}

// Seconds for one message, one way, of two schemes in turn, so that a machine that drifts meets both alike.
hpe::bench::pair_of_medians one_way(const scheme& first, const scheme& second, std::size_t bytes, unsigned repeats) {
  const unsigned turns = bytes <= 4096 ? 200 : bytes <= (1U << 20) ? 20 : 2;
  const auto together = [] { MPI_Barrier(MPI_COMM_WORLD); };
  auto both = hpe::bench::paired_medians(
      repeats, together, [&] { exchange(*first.mine, bytes, turns); }, together,
      [&] { exchange(*second.mine, bytes, turns); });
  // Where an empty message comes back, it costs little beside a large one and as much as a small one.
  const auto messages = [&](const scheme& s) { return turns * (s.one_direction && bytes > 4096 ? 1 : 2); };
  both.first /= messages(first);
  both.second /= messages(second);
  return both;
}

// The program itself, under mpirun.
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

std::string name_of(std::size_t bytes) {
  return bytes < 1024         ? fmt::format("{} B", bytes)
         : bytes < (1U << 20) ? fmt::format("{} KiB", bytes >> 10)
                              : fmt::format("{} MiB", bytes >> 20);
}

// The lines of the figure, and the table.
class figure {
 public:
  void add(std::size_t bytes, const char* scheme, double seconds) {
    const auto x = static_cast<double>(bytes);
    line_of(latency_, scheme).emplace_back(x, seconds * 1e6);
    line_of(bandwidth_, scheme).emplace_back(x, x / seconds / 1e9);
    results_.push_back({fmt::format("{} {}", name_of(bytes), scheme), bytes <= 4096 ? seconds * 1e6 : x / seconds / 1e9,
                        bytes <= 4096 ? "us" : "GB/s", "", true});
  }
  void compare(const std::string& what, double ratio, double bar) {
    results_.push_back({"  " + what, ratio, "x", fmt::format(">= {:.2f}", bar), ratio >= bar});
  }
  void finish(const std::string& json, const std::string& plot) const {
    hpe::bench::print("MPI between two ranks", results_, json);
    const hpe::bench::axis sizes{"bytes of a message", hpe::bench::scale::sizes};
    if (plot.empty()) return;
    std::vector<hpe::bench::chart> charts(2);
    charts[0].title = "Latency";
    charts[0].y.label = "microseconds";
    charts[0].lines = latency_;
    charts[1].title = "Bandwidth";
    charts[1].y.label = "GB/s";
    charts[1].lines = bandwidth_;
    for (auto& c : charts) {
      c.x = sizes;
      c.y.how = hpe::bench::scale::decades;
    }
    hpe::bench::write_file(plot, hpe::bench::draw("MPI between two ranks", charts));
  }

 private:
  static std::vector<std::pair<double, double>>& line_of(std::vector<hpe::bench::line>& lines, const char* name) {
    for (auto& l : lines)
      if (l.name == name) return l.points;
    return lines.emplace_back(hpe::bench::line{name, {}}).points;
  }

  std::vector<result> results_;
  std::vector<hpe::bench::line> latency_;
  std::vector<hpe::bench::line> bandwidth_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string plot;
  std::string from = "8";
  std::string to = std::to_string(largest);
  std::string against = "all";
  const auto arguments = hpe::bench::parse(
      argc, argv, "MPI between two ranks: device memory, host memory, staging by hand",
      {{"--plot", "FILE", "draws latency and bandwidth by size", &plot},
       {"--from", "BYTES", "the smallest message", &from},
       {"--to", "BYTES", "the largest message, at most 64 MiB", &to},
       {"--against", "WHAT", "all, or pinned: only staging by hand through pinned memory", &against}});
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) start_two_ranks(argv);
  MPI_Init(&argc, &argv);

  figure results;
  host_memory host;
  device_memory device;
  staged_by_hand pageable{std::vector<std::byte>(largest)};
  staged_by_hand pinned{hpe::array<std::byte>(largest, hpe::on_host())};
  // One of the ranks has the data on its device, the other one in host memory; its messages go both ways.
  one_direction device_to_host(rank() == 0, device, host);
  one_direction host_to_device(rank() == 0, host, device);
  const scheme plain{"host-host, plain MPI", &host};
  const scheme both_device{"device-device", &device};
  const scheme to_host{"device-host", &device_to_host, true};
  const scheme to_device{"host-device", &host_to_device, true};
  const scheme by_pageable{"device-device by hand, pageable", &pageable};
  const scheme by_pinned{"device-device by hand, pinned", &pinned};
  const std::size_t last = std::min<std::size_t>(std::stoull(to), largest);
  for (std::size_t bytes = std::stoull(from); bytes <= last; bytes *= 4 * (bytes < 4096 ? 8 : 1)) {
    const auto first = one_way(both_device, by_pinned, bytes, arguments.repeats);
    if (against == "pinned") {
      results.add(bytes, both_device.name, first.first);
      results.add(bytes, by_pinned.name, first.second);
      results.compare("speed against by hand, pinned", first.second / first.first, 0.95);
      continue;
    }
    const auto second = one_way(both_device, by_pageable, bytes, arguments.repeats);
    const auto third = one_way(plain, to_host, bytes, arguments.repeats);
    const auto fourth = one_way(plain, to_device, bytes, arguments.repeats);
    results.add(bytes, plain.name, third.first);
    results.add(bytes, both_device.name, first.first);
    results.add(bytes, to_host.name, third.second);
    results.add(bytes, to_device.name, fourth.second);
    results.add(bytes, by_pageable.name, second.second);
    results.add(bytes, by_pinned.name, first.second);
    results.compare("speed against by hand, pinned", first.second / first.first, bytes <= 4096 ? 1 / 1.3 : 0.95);
    results.compare("speed against by hand, pageable", second.second / second.first, bytes <= 4096 ? 1 / 1.3 : 0.95);
  }
  if (rank() == 0) results.finish(arguments.json, plot);
  MPI_Finalize();
  return 0;
}

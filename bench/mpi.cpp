// Latency and bandwidth between two ranks, as the OSU benchmarks take them: memory of devices given to MPI, against
// plain MPI on host memory and against staging by hand through pageable and through pinned memory (the three schemes of
// Cabezas, 2015, section 5.3.6). Alone it starts itself under mpirun. What is received counts as there when the device
// has it.

#define OMPI_SKIP_MPICXX
#include <fmt/core.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "bench/measure.h"
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

// Seconds for one message, one way: half of a ping-pong.
double one_way(end_point& mine, std::size_t bytes, unsigned repeats) {
  const unsigned turns = bytes <= 4096 ? 200 : bytes <= (1U << 20) ? 20 : 3;
  const double there_and_back = hpe::bench::median_seconds(
      repeats, [] { MPI_Barrier(MPI_COMM_WORLD); },
      [&] {
        for (unsigned i = 0; i < turns; ++i) {
          if (rank() == 0) mine.send(bytes);
          mine.receive(bytes);
          if (rank() == 1) mine.send(bytes);
        }
      });
  return there_and_back / turns / 2;
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

void report(std::size_t bytes, const char* what, double seconds, std::vector<result>& results) {
  const bool latency = bytes <= 4096;
  results.push_back({fmt::format("{} {}", name_of(bytes), what),
                     latency ? seconds * 1e6 : static_cast<double>(bytes) / seconds / 1e9, latency ? "us" : "GB/s", "",
                     true});
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      hpe::bench::parse(argc, argv, "MPI between two ranks: device memory, host memory, staging by hand");
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) start_two_ranks(argv);
  MPI_Init(&argc, &argv);

  std::vector<result> results;
  host_memory host;
  device_memory device;
  staged_by_hand pageable{std::vector<std::byte>(largest)};
  staged_by_hand pinned{hpe::array<std::byte>(largest, hpe::on_host())};
  // One of the ranks has the data on its device, the other one in host memory.
  end_point* const device_to_host[2] = {&device, &host};
  end_point* const mine_of_mixed = device_to_host[rank()];
  for (const std::size_t bytes :
       {std::size_t{8}, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{16} << 20, largest}) {
    const double plain = one_way(host, bytes, arguments.repeats);
    const double staged = one_way(device, bytes, arguments.repeats);
    const double mixed = one_way(*mine_of_mixed, bytes, arguments.repeats);
    const double by_pageable = one_way(pageable, bytes, arguments.repeats);
    const double by_pinned = one_way(pinned, bytes, arguments.repeats);
    report(bytes, "host to host, plain MPI", plain, results);
    report(bytes, "device to device", staged, results);
    report(bytes, "device to host and back", mixed, results);
    report(bytes, "by hand, pageable", by_pageable, results);
    report(bytes, "by hand, pinned", by_pinned, results);
    const double ratio = by_pinned / staged;
    const double bar = bytes <= 4096 ? 1 / 1.3 : 0.95;
    results.push_back(
        {fmt::format("  speed against by hand, pinned"), ratio, "x", fmt::format(">= {:.2f}", bar), ratio >= bar});
    results.push_back({fmt::format("  speed against by hand, pageable"), by_pageable / staged, "x", "", true});
  }
  if (rank() == 0) hpe::bench::print("MPI between two ranks", results, arguments.json);
  MPI_Finalize();
  return 0;
}

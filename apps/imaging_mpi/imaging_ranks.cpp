#include "apps/imaging_mpi/imaging_ranks.h"

#include <limits>
#include <string>

#include "apps/ranks/mpi_check.h"
#include "hpe/hpe.hpp"

namespace hpe::imaging {

namespace {

constexpr int tag = 0x1a6;

using hpe::ranks::check;

int counted(std::size_t bytes) {
  if (bytes > std::numeric_limits<int>::max())
    throw error(HPE_ERROR_NOT_SUPPORTED, "a part of " + std::to_string(bytes) +
                                             " bytes: MPI counts only up to 2^31 - 1; more ranks make smaller parts");
  return static_cast<int>(bytes);
}

class rank_member final : public member {
 public:
  rank_member(int rank, int size, int device) : member(rank, size, device) {}

  void wait_for_all() override { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  const std::byte* fetch(const void* all, const division& parts) override {
    const part& mine = parts[static_cast<std::size_t>(rank())];
    if (rank() > 0) {
      received_.resize(mine.bytes);
      check(MPI_Recv(received_.data(), counted(mine.bytes), MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            "MPI_Recv");
      return received_.data();
    }
    const auto* const bytes = static_cast<const std::byte*>(all);
    std::vector<MPI_Request> requests(parts.size(), MPI_REQUEST_NULL);
    for (int r = 1; r < size(); ++r) {
      const part& p = parts[static_cast<std::size_t>(r)];
      check(MPI_Isend(bytes + p.begin, counted(p.bytes), MPI_BYTE, r, tag, MPI_COMM_WORLD,
                      &requests[static_cast<std::size_t>(r)]),
            "MPI_Isend");
    }
    check(MPI_Waitall(size(), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    return bytes + mine.begin;
  }
  std::byte* room(void* all, const division& parts) override {
    const part& mine = parts[static_cast<std::size_t>(rank())];
    if (rank() == 0) return static_cast<std::byte*>(all) + mine.begin;
    room_.resize(mine.bytes);
    return room_.data();
  }
  void deliver(void* all, const division& parts) override {
    const part& mine = parts[static_cast<std::size_t>(rank())];
    std::vector<int> counts, places;
    for (const part& p : parts) {
      counts.push_back(counted(p.bytes));
      places.push_back(counted(p.begin));
    }
    check(MPI_Gatherv(rank() == 0 ? MPI_IN_PLACE : room_.data(), counted(mine.bytes), MPI_BYTE, all, counts.data(),
                      places.data(), MPI_BYTE, 0, MPI_COMM_WORLD),
          "MPI_Gatherv");
  }
  const std::byte* broadcast_host(const void* data, std::size_t bytes) override {
    shared_.resize(rank() > 0 ? bytes : 0);
    void* const at = rank() == 0 ? const_cast<void*>(data) : shared_.data();
    check(MPI_Bcast(at, counted(bytes), MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
    return static_cast<const std::byte*>(at);
  }

  /// In each of size() - 1 steps, each rank sends the part that it received last to the next rank. MPI_Allgatherv would
  /// copy all parts from the device before the first message and to the device after the last message; the network
  /// would be idle during these copies. A message copies only the part that it carries.
  void all_gather(std::byte* array, const division& parts) override {
    const auto part_of = [&](int step) -> const part& {
      return parts[static_cast<std::size_t>((rank() - step + size()) % size())];
    };
    for (int step = 0; step + 1 < size(); ++step) {
      const part &out = part_of(step), &in = part_of(step + 1);
      check(MPI_Sendrecv(array + out.begin, counted(out.bytes), MPI_BYTE, (rank() + 1) % size(), tag, array + in.begin,
                         counted(in.bytes), MPI_BYTE, (rank() + size() - 1) % size(), tag, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE),
            "MPI_Sendrecv");
    }
  }
  void broadcast(std::byte* data, std::size_t bytes, int root, int first, int count) override {
    if (row_ == MPI_COMM_NULL) check(MPI_Comm_split(MPI_COMM_WORLD, first, rank(), &row_), "MPI_Comm_split");
    static_cast<void>(count);
    check(MPI_Bcast(data, counted(bytes), MPI_BYTE, root - first, row_), "MPI_Bcast");
  }
  void shift(const std::byte* out, int to, std::byte* in, int from, std::size_t bytes) override {
    check(MPI_Sendrecv(out, counted(bytes), MPI_BYTE, to, tag, in, counted(bytes), MPI_BYTE, from, tag, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE),
          "MPI_Sendrecv");
  }

  rank_member(const rank_member&) = delete;
  rank_member& operator=(const rank_member&) = delete;
  ~rank_member() override {
    if (row_ != MPI_COMM_NULL) MPI_Comm_free(&row_);
  }

 private:
  std::vector<std::byte> received_, room_, shared_;
  MPI_Comm row_ = MPI_COMM_NULL;  ///< the members in this member's row of the square
};

class ranks final : public team {
 public:
  ranks() {
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    MPI_Comm neighbours = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &neighbours),
          "MPI_Comm_split_type");
    int here = 0;
    MPI_Comm_rank(neighbours, &here);
    MPI_Comm_free(&neighbours);
    device_ = here % device_count();
  }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int devices_here() const override { return 1; }
  [[nodiscard]] bool leads() const override { return rank_ == 0; }

  times run(const std::function<void(member&)>& work) override {
    rank_member me(rank_, size_, device_);
    work(me);
    std::vector<times> all = me.measured();
    for (times& t : all) {
      auto slowest = t.phases;
      check(MPI_Reduce(t.phases.data(), slowest.data(), static_cast<int>(slowest.size()), MPI_DOUBLE, MPI_MAX, 0,
                       MPI_COMM_WORLD),
            "MPI_Reduce");
      t.phases = slowest;
    }
    return fastest({all});
  }

 private:
  int rank_ = 0, size_ = 0, device_ = 0;
};

}  // namespace

std::unique_ptr<team> make_ranks(std::int64_t /*devices*/) { return std::make_unique<ranks>(); }

}  // namespace hpe::imaging

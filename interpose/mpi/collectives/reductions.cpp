// Reductions on devices: each rank receives its part of the numbers from all other ranks, combines them, and sends the
// result to all ranks, or to the root.
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/collectives/calls.h"
#include "interpose/mpi/collectives/exchange.h"
#include "interpose/mpi/groups.h"
#include "interpose/mpi/libraries/library.h"
#include "interpose/mpi/messages/chunks.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

namespace {

constexpr std::size_t least_bytes = std::size_t{64} << 10;

// The kind of a predefined datatype. Several of its names stand for one kind.
std::optional<reduction::number> number_of(MPI_Datatype type) {
  using number = reduction::number;
  static constexpr std::array<std::pair<std::string_view, number>, 12> all{{{"MPI_INT", number::i32},
                                                                            {"MPI_INT32_T", number::i32},
                                                                            {"MPI_UNSIGNED", number::u32},
                                                                            {"MPI_UINT32_T", number::u32},
                                                                            {"MPI_LONG", number::i64},
                                                                            {"MPI_LONG_LONG", number::i64},
                                                                            {"MPI_INT64_T", number::i64},
                                                                            {"MPI_UNSIGNED_LONG", number::u64},
                                                                            {"MPI_UNSIGNED_LONG_LONG", number::u64},
                                                                            {"MPI_UINT64_T", number::u64},
                                                                            {"MPI_FLOAT", number::f32},
                                                                            {"MPI_DOUBLE", number::f64}}};
  if (envelope_of(type).combiner != MPI_COMBINER_NAMED) return std::nullopt;
  std::array<char, MPI_MAX_OBJECT_NAME> name{};
  int length = 0;
  HPE_REAL(Type_get_name)(type, name.data(), &length);
  for (const auto& [known, kind] : all)
    if (name.data() == known) return kind;
  return std::nullopt;
}

std::optional<reduction::operation> operation_of(MPI_Op op) {
  const handles& of = handles::get();
  if (op == of.sum) return reduction::operation::sum;
  if (op == of.product) return reduction::operation::product;
  if (op == of.min) return reduction::operation::least;
  if (op == of.max) return reduction::operation::greatest;
  return std::nullopt;
}

// A reduction as this rank sees it.
class reduction_call {
 public:
  // `out` is nullptr in ranks that get no result.
  reduction_call(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op)
      : in_(in == MPI_IN_PLACE ? out : in),
        in_place_(in == MPI_IN_PLACE),
        out_(out),
        count_(count),
        type_(type),
        bytes_of_one_(static_cast<std::size_t>(measures_of(type).size)),
        number_(number_of(type)),
        op_(operation_of(op)) {}

  /// The memory that this rank uses. Borrows device memory if it may take part.
  near_group::memory look(int rank, int size) {
    try {
      return look_at_buffers(rank, size);
    } catch (const left_to_mpi&) {
      return near_group::memory::other;
    }
  }
  near_group::memory look_at_buffers(int rank, int size) {
    const layout all = elements(count_, type_);
    auto mine = near_group::memory_of(in_, all);
    if (out_ != nullptr) {
      const auto there = near_group::memory_of(out_, all);
      if (there != mine) return near_group::memory::other;
    }
    if (mine != near_group::memory::device) return mine;
    if (!number_ || !op_) return near_group::memory::other;
    const std::size_t block = count_of(rank, size) * bytes_of_one_;
    scratch_ = driver().borrow_beside(reinterpret_cast<std::uintptr_t>(in_), block * static_cast<std::size_t>(size));
    return scratch_ != nullptr ? mine : near_group::memory::other;
  }

  int make(near_group& ranks, MPI_Comm comm, std::optional<int> root) {
    const int rank = ranks.rank();
    const int size = ranks.size();
    const auto mine = static_cast<int>(count_of(rank, size));
    const std::size_t block = static_cast<std::size_t>(mine) * bytes_of_one_;
    // The result of this rank's part; in ranks without a receive buffer, the last block of the borrowed memory.
    std::byte* const result =
        out_ != nullptr ? place(out_, rank, size) : scratch_.get() + block * (static_cast<std::size_t>(size) - 1);
    exchange parts(ranks);
    std::byte* next = scratch_.get();
    for (int r = 0; r < size; ++r) {
      if (r == rank) continue;
      parts.receive(next, mine, type_, r);
      next += block;
    }
    if (!in_place_) parts.receive(result, mine, type_, rank);
    for (int i = 1; i <= size; ++i) {
      const int r = (rank + i) % size;
      if (r != rank || !in_place_) parts.send(place(in_, r, size), static_cast<int>(count_of(r, size)), type_, r);
    }
    int failed = parts.finish(comm);
    first_failure failure;
    failure.attempt([&] {
      device_copy last;
      for (int r = 0; r < size - 1 && mine > 0; ++r)
        last = driver().reduce(reinterpret_cast<std::uintptr_t>(result),
                               scratch_.get() + block * static_cast<std::size_t>(r), static_cast<std::size_t>(mine),
                               {*op_, *number_});
      last.wait();
    });
    exchange results(ranks);
    for (int i = 1; i < size; ++i) {
      const int r = (rank + i) % size;
      if (out_ != nullptr && (!root || *root == rank))
        results.receive(place(out_, r, size), static_cast<int>(count_of(r, size)), type_, r);
    }
    for (int i = 1; i < size; ++i) {
      const int r = (rank + i) % size;
      if (!root || *root == r) results.send(result, mine, type_, r);
    }
    const int failed_later = results.finish(comm);
    if (failed == MPI_SUCCESS) failed = failed_later;
    return failed == MPI_SUCCESS && failure.any() ? raise(on_comm{comm}, *failure.what()) : failed;
  }

 private:
  [[nodiscard]] std::size_t first_of(int rank, int size) const noexcept {
    return static_cast<std::size_t>(count_) * static_cast<std::size_t>(rank) / static_cast<std::size_t>(size);
  }
  [[nodiscard]] std::size_t count_of(int rank, int size) const noexcept {
    return first_of(rank + 1, size) - first_of(rank, size);
  }
  [[nodiscard]] std::byte* place(const void* buffer, int rank, int size) const noexcept {
    return moved(buffer, static_cast<MPI_Aint>(first_of(rank, size) * bytes_of_one_));
  }
  [[nodiscard]] static adopted_pointers& driver() { return *adopted_pointers::instance(); }

  const void* const in_;
  const bool in_place_;
  void* const out_;
  const int count_;
  const MPI_Datatype type_;
  const std::size_t bytes_of_one_;
  const std::optional<reduction::number> number_;
  const std::optional<reduction::operation> op_;
  std::shared_ptr<std::byte> scratch_;
};

bool is_small(int count, MPI_Datatype type) {
  if (count <= 0 || is_null(type, handles::get().datatype_null)) return true;
  return static_cast<std::size_t>(measures_of(type).size) * static_cast<std::size_t>(count) < least_bytes;
}

taken reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type, MPI_Op op, std::optional<int> root,
             MPI_Comm comm, const char* function) {
  if (is_small(count, type)) return std::nullopt;
  return guarded(comm, [&]() -> taken {
    near_group* const ranks = near_group::of(comm);
    if (ranks == nullptr || !ranks->votes()) return std::nullopt;
    const bool gets_result = !root || *root == ranks->rank();
    reduction_call call(sendbuf, gets_result ? recvbuf : nullptr, count, type, op);
    const bool no_root = root && (*root < 0 || *root >= ranks->size());
    const auto mine = no_root ? near_group::memory::other : call.look(ranks->rank(), ranks->size());
    if (!ranks->agree(mine, near_group::needed::all)) return std::nullopt;
    const trace::recorded here(trace::category::mpi, function);
    return call.make(*ranks, comm, root);
  });
}

}  // namespace

taken direct_allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                       const char* function) {
  return reduce(sendbuf, recvbuf, count, datatype, op, std::nullopt, comm, function);
}

taken direct_reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
                    MPI_Comm comm, const char* function) {
  return reduce(sendbuf, recvbuf, count, datatype, op, root, comm, function);
}

}  // namespace hpe::interpose::mpi

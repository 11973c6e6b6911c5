// Reductions by messages between devices. The numbers are divided into one part for each rank. Each rank receives its
// part from all other ranks, combines these numbers with its own, and sends the result to all ranks, or to the root; in
// a reduce-scatter, the rank keeps the result. A long reduction consists of several rounds, so that each round needs
// little memory for the numbers of the other ranks.
#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/collectives/background_call.h"
#include "interpose/mpi/collectives/calls.h"
#include "interpose/mpi/collectives/collective_plan.h"
#include "interpose/mpi/collectives/exchange.h"
#include "interpose/mpi/groups.h"
#include "interpose/mpi/libraries/library.h"
#include "interpose/mpi/messages/job.h"
#include "interpose/mpi/messages/transfer/chunks.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

namespace {

constexpr std::size_t least_bytes = std::size_t{64} << 10;
// The number of bytes that one round reduces, in chunks of HPE_MPI_CHUNK.
constexpr std::size_t chunks_of_round = 128;

// Returns the number type of a predefined datatype; nullopt if hpe's kernels do not support it. Several datatypes have
// the same number type.
std::optional<reduction::number> number_of(MPI_Datatype type) {
  using number = reduction::number;
  static constexpr auto all =
      std::to_array<std::pair<std::string_view, number>>({{"MPI_INT", number::i32},
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
                                                          {"MPI_DOUBLE", number::f64}});
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

// The part of the numbers that each rank combines.
class division {
 public:
  static division even(int count, int size) {
    division result;
    for (int r = 0; r <= size; ++r)
      result.firsts_.push_back(static_cast<std::size_t>(count) * static_cast<std::size_t>(r) /
                               static_cast<std::size_t>(size));
    return result;
  }
  // `counts`: one number for each rank, or the same number for all ranks if `same`.
  static division listed(const int* counts, bool same, int size) {
    division result;
    result.firsts_.push_back(0);
    for (int r = 0; r < size; ++r)
      result.firsts_.push_back(result.firsts_.back() + static_cast<std::size_t>(counts[same ? 0 : r]));
    return result;
  }

  [[nodiscard]] std::size_t total() const noexcept { return firsts_.back(); }
  [[nodiscard]] std::size_t first(int rank) const noexcept { return firsts_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::size_t count(int rank) const noexcept { return first(rank + 1) - first(rank); }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(firsts_.size()) - 1; }

 private:
  std::vector<std::size_t> firsts_;
};

// What the ranks get.
struct results_for {
  bool own_part = false;      // each rank gets the part that it has combined (reduce-scatter)
  std::optional<int> root{};  // only this rank gets the results; nullopt: all ranks
};

// One reduction, with this rank's arguments. Each step below belongs to one round.
class reduction_call {
 public:
  // `out`: nullptr in ranks that receive no result.
  reduction_call(const void* in, void* out, division parts, MPI_Datatype type, MPI_Op op, results_for whom)
      : in_(in == MPI_IN_PLACE ? out : in),
        in_place_(in == MPI_IN_PLACE && !whom.own_part),
        keeps_(in == MPI_IN_PLACE && whom.own_part),
        out_(out),
        parts_(std::move(parts)),
        type_(type),
        bytes_of_one_(static_cast<std::size_t>(measures_of(type).size)),
        rounds_(rounds_of(parts_.total() * bytes_of_one_)),
        number_(number_of(type)),
        op_(operation_of(op)),
        mpi_op_(op),
        whom_(whom) {}

  [[nodiscard]] std::size_t rounds() const noexcept { return rounds_; }

  /// Whether hpe's kernels support the number type and the operation. The result is the same in all ranks.
  [[nodiscard]] bool is_known() const noexcept { return number_ && op_; }

  /// Returns the kind of memory that this rank uses. If it is device memory, also borrows device memory for the
  /// reduction.
  near_group::memory look(int rank) {
    try {
      return look_at_buffers(rank);
    } catch (const left_to_mpi&) {
      return near_group::memory::other;
    }
  }

  /// Borrows memory for the numbers that the other ranks send: on the device if this rank's buffer is in device memory,
  /// otherwise on the host.
  void borrow(int rank) {
    if (look(rank) == near_group::memory::device) return;
    on_device_ = false;
    scratch_ = {new std::byte[scratch_bytes(rank)], std::default_delete<std::byte[]>()};
    if (keeps_) kept_ = {new std::byte[kept_bytes(rank)], std::default_delete<std::byte[]>()};
  }

  /// First step: adds the messages by which each rank receives its part of the numbers from all other ranks.
  void post_parts(std::size_t round, exchange& parts) const {
    const int rank = parts.rank();
    const int size = parts.size();
    const auto mine = static_cast<int>(count_of(rank, round));
    std::byte* next = scratch_.get();
    for (int r = 0; r < size; ++r) {
      if (r == rank) continue;
      parts.receive(next, mine, type_, r);
      next += static_cast<std::size_t>(mine) * bytes_of_one_;
    }
    if (!in_place_) parts.receive(result(rank, round), mine, type_, rank);
    for (int i = 1; i <= size; ++i) {
      const int r = (rank + i) % size;
      if (r != rank || !in_place_) parts.send(place(in_, r, round), static_cast<int>(count_of(r, round)), type_, r);
    }
  }

  /// Second step: this rank combines the numbers that it has received with its own. Returns the last copy or kernel on
  /// the device, for which the caller must wait.
  [[nodiscard]] device_copy combine(std::size_t round, int rank) const {
    const std::size_t mine = count_of(rank, round);
    device_copy last;
    for (int r = 0; r < parts_.size() - 1 && mine > 0; ++r) {
      std::byte* const part = scratch_.get() + mine * bytes_of_one_ * static_cast<std::size_t>(r);
      if (on_device_)
        last = driver().reduce(reinterpret_cast<std::uintptr_t>(result(rank, round)), part, mine, {*op_, *number_});
      else if (const int failed = ::MPI_Reduce_local(part, result(rank, round), static_cast<int>(mine), type_, mpi_op_);
               failed != MPI_SUCCESS)
        throw error(HPE_ERROR_INVALID_ARGUMENT, "MPI_Reduce_local failed in a reduction");
    }
    return last;
  }

  /// Third step: adds the messages by which each rank sends its combined part to the root, or to all ranks. In a
  /// reduce-scatter, only a rank that keeps its part elsewhere sends it, to itself, after the last round.
  void post_results(std::size_t round, exchange& results) const {
    const int rank = results.rank();
    const int size = results.size();
    if (whom_.own_part) {
      if (!keeps_ || round + 1 != rounds_) return;
      results.receive(out_, static_cast<int>(parts_.count(rank)), type_, rank);
      return results.send(kept_.get(), static_cast<int>(parts_.count(rank)), type_, rank);
    }
    const std::optional<int> root = whom_.root;
    const bool receives = out_ != nullptr && (!root || *root == rank);
    for (int i = 1; i < size && receives; ++i) {
      const int r = (rank + i) % size;
      results.receive(place(out_, r, round), static_cast<int>(count_of(r, round)), type_, r);
    }
    for (int i = 1; i < size; ++i) {
      const int r = (rank + i) % size;
      if (!root || *root == r) results.send(result(rank, round), static_cast<int>(count_of(rank, round)), type_, r);
    }
  }

  int make(const exchange::ranks& who, MPI_Comm comm) const {
    int failed = MPI_SUCCESS;
    first_failure failure;
    for (std::size_t round = 0; round < rounds_; ++round) {
      exchange parts(who);
      post_parts(round, parts);
      const int first = parts.finish(comm);
      failure.attempt([&] { combine(round, who.rank).wait(); });
      exchange results(who);
      post_results(round, results);
      const int second = results.finish(comm);
      if (failed == MPI_SUCCESS) failed = first != MPI_SUCCESS ? first : second;
    }
    if (failed != MPI_SUCCESS) return failed;
    return failure.any() ? raise(on_comm{comm}, *failure.what()) : MPI_SUCCESS;
  }

 private:
  near_group::memory look_at_buffers(int rank) {
    const auto mine = near_group::memory_of(in_, elements(static_cast<MPI_Count>(parts_.total()), type_));
    if (out_ != nullptr) {
      const std::size_t written = whom_.own_part ? parts_.count(rank) : parts_.total();
      const auto there = near_group::memory_of(out_, elements(static_cast<MPI_Count>(written), type_));
      if (there != mine && written > 0) return near_group::memory::other;
    }
    if (mine != near_group::memory::device) return mine;
    if (!is_known()) return near_group::memory::other;
    scratch_ = driver().borrow_beside(reinterpret_cast<std::uintptr_t>(in_), scratch_bytes(rank));
    if (keeps_) kept_ = driver().borrow_beside(reinterpret_cast<std::uintptr_t>(in_), kept_bytes(rank));
    return scratch_ != nullptr && (kept_ != nullptr || !keeps_) ? mine : near_group::memory::other;
  }

  [[nodiscard]] static std::size_t rounds_of(std::size_t bytes) {
    const std::size_t most = chunks_of_round * std::min(job::current()->chunk, SIZE_MAX / chunks_of_round);
    return std::max<std::size_t>(1, bytes / most + (bytes % most != 0 ? 1 : 0));
  }

  [[nodiscard]] std::size_t scratch_bytes(int rank) const noexcept {
    const std::size_t most = (parts_.count(rank) + rounds_ - 1) / rounds_;
    return std::max<std::size_t>(1, most) * bytes_of_one_ * static_cast<std::size_t>(parts_.size());
  }

  [[nodiscard]] std::size_t kept_bytes(int rank) const noexcept {
    return std::max<std::size_t>(1, parts_.count(rank)) * bytes_of_one_;
  }

  // The numbers of rank `rank` in a round: number `first_of` of its part, and the count.
  [[nodiscard]] std::size_t first_of(int rank, std::size_t round) const noexcept {
    return parts_.count(rank) * round / rounds_;
  }
  [[nodiscard]] std::size_t count_of(int rank, std::size_t round) const noexcept {
    return first_of(rank, round + 1) - first_of(rank, round);
  }
  [[nodiscard]] std::byte* place(const void* buffer, int rank, std::size_t round) const noexcept {
    return moved(buffer, static_cast<MPI_Aint>((parts_.first(rank) + first_of(rank, round)) * bytes_of_one_));
  }
  // Returns the address at which this rank combines its part of a round: in the receive buffer, in kept_, or, if this
  // rank has no receive buffer, in the last block of the borrowed memory.
  [[nodiscard]] std::byte* result(int rank, std::size_t round) const noexcept {
    if (keeps_) return kept_.get() + first_of(rank, round) * bytes_of_one_;
    if (out_ == nullptr)
      return scratch_.get() + count_of(rank, round) * bytes_of_one_ * (static_cast<std::size_t>(parts_.size()) - 1);
    if (whom_.own_part) return moved(out_, static_cast<MPI_Aint>(first_of(rank, round) * bytes_of_one_));
    return place(out_, rank, round);
  }
  [[nodiscard]] static adopted_pointers& driver() { return *adopted_pointers::instance(); }

  const void* const in_;
  const bool in_place_;
  // In a reduce-scatter with MPI_IN_PLACE, the part belongs to the beginning of the buffer, which contains numbers for
  // other ranks until the last round. So this rank keeps its part in kept_ until then. The other ranks need not know
  // this: not all ranks have to pass MPI_IN_PLACE.
  const bool keeps_;
  void* const out_;
  const division parts_;
  const MPI_Datatype type_;
  const std::size_t bytes_of_one_;
  const std::size_t rounds_;
  const std::optional<reduction::number> number_;
  const std::optional<reduction::operation> op_;
  const MPI_Op mpi_op_;
  const results_for whom_;
  std::shared_ptr<std::byte> scratch_;
  std::shared_ptr<std::byte> kept_;
  bool on_device_ = true;
};

taken make_now(near_group& ranks, reduction_call& call, bool refused, MPI_Comm comm, const char* function) {
  const auto mine = refused ? near_group::memory::other : call.look(ranks.rank());
  if (!ranks.agree(mine, near_group::needed::all)) return std::nullopt;
  const trace::recorded here(trace::category::mpi, function);
  return call.make(ranks.now(), comm);
}

taken begin(near_group& ranks, const std::shared_ptr<reduction_call>& call, MPI_Comm comm, MPI_Request* request) {
  if (!call->is_known()) return std::nullopt;
  call->borrow(ranks.rank());
  std::vector<call_step> steps;
  for (std::size_t round = 0; round < call->rounds(); ++round) {
    steps.emplace_back([call, round](exchange& parts) {
      call->post_parts(round, parts);
      return true;
    });
    steps.emplace_back([call, round, last = std::optional<device_copy>()](exchange& none) mutable {
      if (!last) last = call->combine(round, none.rank());
      return last->done();
    });
    steps.emplace_back([call, round](exchange& results) {
      call->post_results(round, results);
      return true;
    });
  }
  return begin_in_background(ranks.next(), comm, request, std::move(steps));
}

// parts_of(size): how the numbers are divided among the ranks.
template <class Parts>
taken reduce(const void* sendbuf, void* recvbuf, Parts parts_of, MPI_Datatype type, MPI_Op op, results_for whom,
             MPI_Comm comm, const call_form& form) {
  return guarded(comm, [&]() -> taken {
    const bool now = form.request == nullptr;
    near_group* const ranks = now ? near_group::of(comm) : near_group::of_background(comm);
    if (ranks == nullptr || (now && !ranks->votes())) return std::nullopt;
    const bool refused = whom.root && (*whom.root < 0 || *whom.root >= ranks->size());
    const bool gets_result = !whom.root || *whom.root == ranks->rank();
    const auto call = std::make_shared<reduction_call>(sendbuf, gets_result ? recvbuf : nullptr,
                                                       parts_of(ranks->size()), type, op, whom);
    if (now) return make_now(*ranks, *call, refused, comm, form.function);
    return refused ? std::nullopt : begin(*ranks, call, comm, form.request);
  });
}

// Whether the ranks leave a reduce-scatter of `total` numbers to MPI. The result is the same in all ranks.
bool leaves_to_mpi(MPI_Count total, MPI_Datatype type) {
  return total > INT_MAX || is_smaller(least_bytes, static_cast<int>(total), type);
}

}  // namespace

taken direct_allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                       call_form form) {
  if (is_smaller(least_bytes, count, datatype)) return std::nullopt;
  return reduce(
      sendbuf, recvbuf, [=](int size) { return division::even(count, size); }, datatype, op, {}, comm, form);
}

taken direct_reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
                    MPI_Comm comm, call_form form) {
  if (is_smaller(least_bytes, count, datatype)) return std::nullopt;
  return reduce(
      sendbuf, recvbuf, [=](int size) { return division::even(count, size); }, datatype, op, {.root = root}, comm,
      form);
}

taken direct_reduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op,
                                  MPI_Comm comm, call_form form) {
  if (!is_intra(comm) || recvcount < 0 || leaves_to_mpi(MPI_Count{recvcount} * members(comm), datatype))
    return std::nullopt;
  return reduce(
      sendbuf, recvbuf, [=](int size) { return division::listed(&recvcount, true, size); }, datatype, op,
      {.own_part = true}, comm, form);
}

taken direct_reduce_scatter(const void* sendbuf, void* recvbuf, const int* recvcounts, MPI_Datatype datatype, MPI_Op op,
                            MPI_Comm comm, call_form form) {
  if (!is_intra(comm) || recvcounts == nullptr) return std::nullopt;
  MPI_Count total = 0;
  for (int r = 0; r < members(comm); ++r) {
    if (recvcounts[r] < 0) return std::nullopt;
    total += recvcounts[r];
  }
  if (leaves_to_mpi(total, datatype)) return std::nullopt;
  return reduce(
      sendbuf, recvbuf, [=](int size) { return division::listed(recvcounts, false, size); }, datatype, op,
      {.own_part = true}, comm, form);
}

}  // namespace hpe::interpose::mpi

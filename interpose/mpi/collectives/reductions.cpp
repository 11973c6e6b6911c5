// Reductions by messages between devices. The numbers are divided into one part for each rank. Each rank receives its
// part from all other ranks, combines these numbers with its own, and sends the result to all ranks, or to the root.
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/collectives/background_call.h"
#include "interpose/mpi/collectives/calls.h"
#include "interpose/mpi/collectives/collective_plan.h"
#include "interpose/mpi/collectives/exchange.h"
#include "interpose/mpi/groups.h"
#include "interpose/mpi/libraries/library.h"
#include "interpose/mpi/messages/transfer/chunks.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose::mpi {

namespace {

constexpr std::size_t least_bytes = std::size_t{64} << 10;

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

// One reduction, with this rank's arguments.
class reduction_call {
 public:
  // `out`: nullptr in ranks that receive no result.
  reduction_call(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, std::optional<int> root)
      : in_(in == MPI_IN_PLACE ? out : in),
        in_place_(in == MPI_IN_PLACE),
        out_(out),
        count_(count),
        type_(type),
        bytes_of_one_(static_cast<std::size_t>(measures_of(type).size)),
        number_(number_of(type)),
        op_(operation_of(op)),
        mpi_op_(op),
        root_(root) {}

  /// Whether hpe's kernels support the number type and the operation. The result is the same in all ranks.
  [[nodiscard]] bool is_known() const noexcept { return number_ && op_; }

  /// Returns the kind of memory that this rank uses. If it is device memory, also borrows device memory for the
  /// reduction.
  near_group::memory look(int rank, int size) {
    try {
      return look_at_buffers(rank, size);
    } catch (const left_to_mpi&) {
      return near_group::memory::other;
    }
  }

  /// Borrows memory for the numbers that the other ranks send: on the device if this rank's buffer is in device memory,
  /// otherwise on the host.
  void borrow(int rank, int size) {
    if (look(rank, size) == near_group::memory::device) return;
    on_device_ = false;
    scratch_ = {new std::byte[count_of(rank, size) * bytes_of_one_ * static_cast<std::size_t>(size)],
                std::default_delete<std::byte[]>()};
  }

  /// First step of a call: adds the messages by which each rank receives its part of the numbers from all other ranks.
  void post_parts(exchange& parts) const {
    const int rank = parts.rank();
    const int size = parts.size();
    const auto mine = static_cast<int>(count_of(rank, size));
    std::byte* next = scratch_.get();
    for (int r = 0; r < size; ++r) {
      if (r == rank) continue;
      parts.receive(next, mine, type_, r);
      next += static_cast<std::size_t>(mine) * bytes_of_one_;
    }
    if (!in_place_) parts.receive(result(rank, size), mine, type_, rank);
    for (int i = 1; i <= size; ++i) {
      const int r = (rank + i) % size;
      if (r != rank || !in_place_) parts.send(place(in_, r, size), static_cast<int>(count_of(r, size)), type_, r);
    }
  }

  /// Second step: this rank combines the numbers that it has received with its own. Returns the last copy or kernel on
  /// the device, for which the caller must wait.
  [[nodiscard]] device_copy combine(int rank, int size) const {
    const std::size_t mine = count_of(rank, size);
    device_copy last;
    for (int r = 0; r < size - 1 && mine > 0; ++r) {
      std::byte* const part = scratch_.get() + mine * bytes_of_one_ * static_cast<std::size_t>(r);
      if (on_device_)
        last = driver().reduce(reinterpret_cast<std::uintptr_t>(result(rank, size)), part, mine, {*op_, *number_});
      else if (const int failed = ::MPI_Reduce_local(part, result(rank, size), static_cast<int>(mine), type_, mpi_op_);
               failed != MPI_SUCCESS)
        throw error(HPE_ERROR_INVALID_ARGUMENT, "MPI_Reduce_local failed in a reduction");
    }
    return last;
  }

  /// Third step: adds the messages by which each rank sends its combined part to the root, or to all ranks.
  void post_results(exchange& results) const {
    const int rank = results.rank();
    const int size = results.size();
    const bool receives = out_ != nullptr && (!root_ || *root_ == rank);
    for (int i = 1; i < size && receives; ++i) {
      const int r = (rank + i) % size;
      results.receive(place(out_, r, size), static_cast<int>(count_of(r, size)), type_, r);
    }
    for (int i = 1; i < size; ++i) {
      const int r = (rank + i) % size;
      if (!root_ || *root_ == r) results.send(result(rank, size), static_cast<int>(count_of(rank, size)), type_, r);
    }
  }

  int make(const exchange::ranks& who, MPI_Comm comm) const {
    exchange parts(who);
    post_parts(parts);
    const int failed = parts.finish(comm);
    first_failure failure;
    failure.attempt([&] { combine(who.rank, who.size).wait(); });
    exchange results(who);
    post_results(results);
    const int failed_later = results.finish(comm);
    if (failed != MPI_SUCCESS || failed_later != MPI_SUCCESS) return failed != MPI_SUCCESS ? failed : failed_later;
    return failure.any() ? raise(on_comm{comm}, *failure.what()) : MPI_SUCCESS;
  }

 private:
  near_group::memory look_at_buffers(int rank, int size) {
    const layout all = elements(count_, type_);
    auto mine = near_group::memory_of(in_, all);
    if (out_ != nullptr) {
      const auto there = near_group::memory_of(out_, all);
      if (there != mine) return near_group::memory::other;
    }
    if (mine != near_group::memory::device) return mine;
    if (!is_known()) return near_group::memory::other;
    const std::size_t block = count_of(rank, size) * bytes_of_one_;
    scratch_ = driver().borrow_beside(reinterpret_cast<std::uintptr_t>(in_), block * static_cast<std::size_t>(size));
    return scratch_ != nullptr ? mine : near_group::memory::other;
  }

  /// Returns the address at which this rank combines its part: in the receive buffer or, if this rank has no receive
  /// buffer, in the last block of the borrowed memory.
  [[nodiscard]] std::byte* result(int rank, int size) const noexcept {
    if (out_ != nullptr) return place(out_, rank, size);
    return scratch_.get() + count_of(rank, size) * bytes_of_one_ * (static_cast<std::size_t>(size) - 1);
  }
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
  const MPI_Op mpi_op_;
  const std::optional<int> root_;  // nullopt: all ranks receive the result
  std::shared_ptr<std::byte> scratch_;
  bool on_device_ = true;
};

taken make_now(near_group& ranks, reduction_call& call, bool refused, MPI_Comm comm, const char* function) {
  const auto mine = refused ? near_group::memory::other : call.look(ranks.rank(), ranks.size());
  if (!ranks.agree(mine, near_group::needed::all)) return std::nullopt;
  const trace::recorded here(trace::category::mpi, function);
  return call.make(ranks.now(), comm);
}

taken begin(near_group& ranks, const std::shared_ptr<reduction_call>& call, MPI_Comm comm, MPI_Request* request) {
  if (!call->is_known()) return std::nullopt;
  call->borrow(ranks.rank(), ranks.size());
  return begin_in_background(ranks.next(), comm, request,
                             {[call](exchange& parts) {
                                call->post_parts(parts);
                                return true;
                              },
                              [call, last = std::optional<device_copy>()](exchange& none) mutable {
                                if (!last) last = call->combine(none.rank(), none.size());
                                return last->done();
                              },
                              [call](exchange& results) {
                                call->post_results(results);
                                return true;
                              }});
}

taken reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype type, MPI_Op op, std::optional<int> root,
             MPI_Comm comm, const call_form& form) {
  if (is_smaller(least_bytes, count, type)) return std::nullopt;
  return guarded(comm, [&]() -> taken {
    const bool now = form.request == nullptr;
    near_group* const ranks = now ? near_group::of(comm) : near_group::of_background(comm);
    if (ranks == nullptr || (now && !ranks->votes())) return std::nullopt;
    const bool refused = root && (*root < 0 || *root >= ranks->size());
    const bool gets_result = !root || *root == ranks->rank();
    const auto call = std::make_shared<reduction_call>(sendbuf, gets_result ? recvbuf : nullptr, count, type, op, root);
    if (now) return make_now(*ranks, *call, refused, comm, form.function);
    return refused ? std::nullopt : begin(*ranks, call, comm, form.request);
  });
}

}  // namespace

taken direct_allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                       call_form form) {
  return reduce(sendbuf, recvbuf, count, datatype, op, std::nullopt, comm, form);
}

taken direct_reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
                    MPI_Comm comm, call_form form) {
  return reduce(sendbuf, recvbuf, count, datatype, op, root, comm, form);
}

}  // namespace hpe::interpose::mpi

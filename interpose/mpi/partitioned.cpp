// Wrappers for partitioned messages of MPI 4. MPI sends from, and receives into, a copy of the whole buffer in host
// memory. MPI_Pready copies a partition from the program's buffer to this copy, before MPI may send the partition.
// MPI_Parrived, or else the wait for the whole message, copies a partition that has arrived to the program's buffer.

#include <algorithm>
#include <cstring>

#include "interpose/mpi/reduction_operation.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

namespace {

enum class transfer_direction : std::uint8_t { send, receive };

// A partitioned message from or to hpe memory or device memory. Thread safe; several threads may call fill() for
// different partitions at the same time.
class partitioned_message final : public pending {
 public:
  // Throws left_to_mpi for a datatype or for numbers that MPI refuses, hpe::error for bytes beyond the address space,
  // and std::bad_alloc.
  partitioned_message(void* buffer, int partitions, MPI_Count count, MPI_Datatype type, MPI_Comm comm,
                      transfer_direction direction)
      : pending(on_comm{comm}, true),
        buffer_(buffer),
        partitions_(partitions),
        partition_(elements(count, type)),
        whole_(each(partitions, count, type)),
        distance_(checked_product(count, measures_of(type).extent)),
        copy_(std::make_unique<std::byte[]>(whole_.extent())),
        direction_(direction),
        delivered_(static_cast<std::size_t>(partitions), false) {}

  // Returns nullptr if the request belongs to another kind of operation, or to a message of ordinary memory.
  static std::shared_ptr<partitioned_message> of(MPI_Request request) {
    return std::dynamic_pointer_cast<partitioned_message>(pending_table::all().find(request));
  }

  // Returns the address that the wrapper passes to MPI in place of the program's buffer.
  [[nodiscard]] void* memory() const { return moved(copy_.get(), -whole_.begin()); }
  [[nodiscard]] int partitions() const noexcept { return partitions_; }

  // Copies partition `number` from the program's buffer. Returns MPI_SUCCESS. After an error of hpe, calls the error
  // handler and returns the error code; MPI may then send any bytes as this partition.
  int fill(int number) {
    return copy_partition(object(), [&] {
      const staged_buffer from(place(buffer_, number), partition_, host_use::read, false);
      copy_data(place(memory(), number), from.pointer());
    });
  }

  // Copies partition `number`, which has arrived, to the program's buffer, if this was not yet done since the last
  // start. Returns the same as fill().
  int deliver(int number) {
    const lock_guard lock(mutex_);
    return active_ ? deliver_locked(number) : MPI_SUCCESS;
  }

  int begin() override {
    const lock_guard lock(mutex_);
    std::fill(delivered_.begin(), delivered_.end(), false);
    active_ = true;
    return MPI_SUCCESS;
  }
  int finish(const MPI_Status* /*status*/) override {
    const lock_guard lock(mutex_);
    if (!std::exchange(active_, false) || direction_ == transfer_direction::send) return MPI_SUCCESS;
    int result = MPI_SUCCESS;
    for (int p = 0; p < partitions(); ++p)
      if (const int its = deliver_locked(p); result == MPI_SUCCESS) result = its;
    return result;
  }
  void drop() noexcept override {
    const lock_guard lock(mutex_);
    active_ = false;
  }
  [[nodiscard]] bool active() override {
    const lock_guard lock(mutex_);
    return active_;
  }

 private:
  [[nodiscard]] std::byte* place(const void* buffer, int number) const { return moved(buffer, number * distance_); }

  // Copies the data of one partition, without the bytes in its gaps, which can belong to other partitions.
  void copy_data(void* to, const void* from) const {
    partition_.visit(partition_.size(),
                     [&](stretch s) { std::memcpy(moved(to, s.offset), moved(from, s.offset), s.bytes); });
  }

  template <class Copy>
  static int copy_partition(const mpi_object& told, const Copy& copy) {
    const auto copied = [&]() -> int {
      copy();
      return MPI_SUCCESS;
    };
    return raise_errors(told, copied, "to copy a partition");
  }

  int deliver_locked(int number) HPE_REQUIRES(mutex_) {
    const auto at = static_cast<std::size_t>(number);
    if (direction_ == transfer_direction::send || delivered_[at]) return MPI_SUCCESS;
    delivered_[at] = true;
    return copy_partition(object(), [&] {
      staged_buffer to(place(buffer_, number), partition_, host_use::write, false);
      copy_data(to.pointer(), place(memory(), number));
      to.written();
    });
  }

  void* const buffer_;
  const int partitions_;
  const layout partition_;   // of one partition, relative to its first element
  const layout whole_;       // of all partitions
  const MPI_Aint distance_;  // from one partition to the next, in bytes
  const std::unique_ptr<std::byte[]> copy_;
  const transfer_direction direction_;
  mutex mutex_;
  std::vector<bool> delivered_ HPE_GUARDED_BY(mutex_);  // by partition; of receives
  bool active_ HPE_GUARDED_BY(mutex_) = false;
};

// MPI_Psend_init or MPI_Precv_init, which `next` calls with the buffer that MPI uses.
template <class Buffer, class Next>
int initialize(Buffer* buffer, int partitions, MPI_Count count, MPI_Datatype type, int rank, MPI_Comm comm,
               MPI_Request* request, Next&& next) {
  if (rank == MPI_PROC_NULL || partitions <= 0 || count <= 0 || !concerns_operation(buffer)) return leave(next(buffer));
  return leave(carry_out(
      on_comm{comm},
      [&](operation&) {
        constexpr auto direction = std::is_const_v<Buffer> ? transfer_direction::send : transfer_direction::receive;
        auto message = std::make_shared<partitioned_message>(const_cast<void*>(static_cast<const void*>(buffer)),
                                                             partitions, count, type, comm, direction);
        const int result = next(message->memory());
        if (result == MPI_SUCCESS) pending_table::all().add(*request, std::move(message));
        return result;
      },
      [&] { return next(buffer); }));
}

// MPI_Pready or one of its variants, for the partitions number_of(0), ..., number_of(count - 1). Calls MPI even if a
// partition could not be copied, because the receiver waits for it. MPI reports invalid numbers.
template <class NumberOf, class Next>
int mark_ready(const std::shared_ptr<partitioned_message>& message, int count, const NumberOf& number_of, Next&& next) {
  int failed = MPI_SUCCESS;
  for (int i = 0; message != nullptr && i < count; ++i) {
    const int p = number_of(i);
    if (p < 0 || p >= message->partitions()) continue;
    if (const int its = message->fill(p); failed == MPI_SUCCESS) failed = its;
  }
  const int result = next();
  return leave(result == MPI_SUCCESS ? failed : result);
}

}  // namespace

}  // namespace hpe::interpose::mpi

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): the functions below are C

#pragma GCC visibility push(default)
extern "C" {

int MPI_Psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return initialize(buf, partitions, count, datatype, dest, comm, request, [&](const void* buffer) {
    return HPE_REAL(Psend_init)(buffer, partitions, count, datatype, dest, tag, comm, info, request);
  });
}

int MPI_Precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return initialize(buf, partitions, count, datatype, source, comm, request, [&](void* buffer) {
    return HPE_REAL(Precv_init)(buffer, partitions, count, datatype, source, tag, comm, info, request);
  });
}

int MPI_Pready(int partition, MPI_Request request) {
  return mark_ready(
      partitioned_message::of(request), 1, [&](int) { return partition; },
      [&] { return HPE_REAL(Pready)(partition, request); });
}

int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request) {
  const auto message = partitioned_message::of(request);
  const int begin = std::max(partition_low, 0);
  const int end =
      message != nullptr && partition_high >= 0 ? std::min(partition_high, message->partitions() - 1) + 1 : 0;
  return mark_ready(
      message, end - begin, [&](int i) { return begin + i; },
      [&] { return HPE_REAL(Pready_range)(partition_low, partition_high, request); });
}

// The mpi.h of MPICH 4.0 declares the list without const, against the standard, and that of Open MPI 4 does not declare
// the function. So this definition has a name of its own in C++.
int pready_list(int length, const int* partitions, MPI_Request request) __asm__("MPI_Pready_list");
int pready_list(int length, const int* partitions, MPI_Request request) {
  static constinit real_function<decltype(pready_list)> next("PMPI_Pready_list");
  return mark_ready(
      partitioned_message::of(request), partitions != nullptr ? length : 0, [&](int i) { return partitions[i]; },
      [&] { return next(length, partitions, request); });
}

int MPI_Parrived(MPI_Request request, int partition, int* flag) {
  const int result = HPE_REAL(Parrived)(request, partition, flag);
  const auto message = result == MPI_SUCCESS && *flag != 0 ? partitioned_message::of(request) : nullptr;
  if (message == nullptr || partition < 0 || partition >= message->partitions()) return leave(result);
  return leave(message->deliver(partition));
}
}
#pragma GCC visibility pop

#pragma once

#include <array>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>

#include "interpose/adopted_pointers.h"
#include "interpose/gpu/calls/byte_places.h"
#include "interpose/gpu/calls/call_copies.h"
#include "interpose/gpu/calls/scratch_memory.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// hpe's kernels that copy rows and scattered bytes and reduce numbers, loaded into a context of the program. Thread
/// safe.
class call_kernels {
 public:
  /// Throws hpe::error if the driver refuses to load the kernels.
  call_kernels(const device::cuda::driver& cu, std::shared_ptr<context_parts> parts, scratch_memory::goes told);
  ~call_kernels();
  call_kernels(const call_kernels&) = delete;
  call_kernels& operator=(const call_kernels&) = delete;

  /// Whether a kernel would copy these rows faster than a copy engine.
  [[nodiscard]] static bool suit(const box_copy& shape) noexcept;

  /// Queues a copy by a kernel and returns the driver's result. The context must be current, and its kernels must be
  /// able to access the source and the destination.
  [[nodiscard]] CUresult copy(CUdeviceptr to, CUdeviceptr from, const box_copy& shape, CUstream stream);

  /// The runs of an element, stored in device memory.
  struct table {
    std::weak_ptr<const std::vector<interpose::stretch>> element;  ///< expires when the program frees the datatype
    const void* key = nullptr;                                     ///< the element's address
    std::shared_ptr<std::byte> runs;
    std::size_t bytes = 0;     ///< of `runs`
    std::size_t bits = 0;      ///< `first` and `offset` of all runs, combined by "or"; shows their alignment
    std::ptrdiff_t begin = 0;  ///< distance in bytes from the element's address to its lowest byte
    std::ptrdiff_t end = 0;    ///< distance in bytes from the element's address to the end of its highest byte
  };
  using shared_table = std::shared_ptr<const table>;
  /// Builds the table of an element's runs in device memory. Throws hpe::error if the driver refuses.
  [[nodiscard]] shared_table make_table(const interpose::scattered_bytes& which);
  /// Like make_table(), but keeps the tables of the most recently used elements as long as the elements exist, and
  /// returns the same table for the same element.
  [[nodiscard]] shared_table table_of(const interpose::scattered_bytes& which);
  /// Describes a copy of the first `bytes` bytes of scattered data to contiguous memory, or, if `scatters` is true,
  /// from contiguous memory to the scattered data. how: the table of `which`; null if `which` is one run. `bytes` is at
  /// most scratch_memory::most.
  [[nodiscard]] static unit_copy describe(CUdeviceptr contiguous, CUdeviceptr scattered,
                                          const interpose::scattered_bytes& which, const table* how, std::size_t bytes,
                                          bool scatters);
  /// Queues a copy that describe() has returned, and returns its number. The queue owns the table until the copy is
  /// done. The context must be current.
  std::uint64_t copy_scattered(call_queue& queue, const unit_copy& what, const shared_table& how, std::size_t bytes);
  /// Queues copies that describe() has returned, at most unit_copies::most, and returns the driver's result. The
  /// context must be current.
  [[nodiscard]] CUresult copy_several(std::span<const unit_copy> copies, CUstream stream);

  /// Queues a kernel that combines to[i] and with[i] for each of `count` numbers and stores the result in to[i].
  /// Returns the driver's result. The context must be current.
  [[nodiscard]] CUresult reduce(CUdeviceptr to, CUdeviceptr with, std::size_t count, const interpose::reduction& how,
                                CUstream stream);

  [[nodiscard]] scratch_memory& memory() noexcept { return *memory_; }

 private:
  static constexpr std::size_t most_bytes = std::size_t{1} << 31;
  static constexpr std::size_t unit_sizes = 5;  // units of 1, 2, 4, 8 and 16 bytes
  static constexpr std::size_t operations = 4;
  static constexpr std::size_t number_types = 6;
  // A program may use several datatypes for each neighbour and each array. The tables use at most 64 MiB, or as much as
  // 64 tables need.
  static constexpr std::size_t most_in_tables = std::size_t{64} << 20;
  static constexpr std::size_t few_tables = 64;

  void find_functions();
  using tables = std::list<shared_table>;
  /// Removes a table from the list, and returns the next one.
  tables::iterator forget(tables::iterator which) HPE_REQUIRES(mutex_);
  /// Removes the tables of elements that no longer exist and, if there are too many, those used least recently.
  void forget_old_tables() HPE_REQUIRES(mutex_);
  CUresult launch(unit_copy what, CUstream stream);

  const device::cuda::driver& cu_;
  const std::shared_ptr<context_parts> parts_;
  const std::shared_ptr<scratch_memory> memory_;
  CUmodule module_ = nullptr;
  std::array<CUfunction, unit_sizes> functions_{};
  CUfunction several_ = nullptr;
  std::array<std::array<CUfunction, number_types>, operations> reducers_{};
  mutex mutex_;
  tables tables_ HPE_GUARDED_BY(mutex_);  // the most recently used table first
  // By the address of the element; an element that no longer exists may have had the same address.
  std::unordered_map<const void*, tables::iterator> table_of_ HPE_GUARDED_BY(mutex_);
  std::size_t in_tables_ HPE_GUARDED_BY(mutex_) = 0;  // the bytes that the tables use
  // With so many tables, table_of() looks for those whose elements no longer exist.
  std::size_t many_ HPE_GUARDED_BY(mutex_) = few_tables;
};

}  // namespace hpe::cuda_hooks

#pragma once

/// Pieces of work of a program that is checked, and what they access.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/check/byte_history.h"
#include "runtime/check/call_place.h"
#include "runtime/check/findings.h"
#include "runtime/check/order.h"

namespace hpe::check {

// A use in words: "write", "wrote", "writes". name_of() is for reports.
[[nodiscard]] std::string_view name_of(use how) noexcept;
[[nodiscard]] std::string_view past_of(use how) noexcept;
[[nodiscard]] std::string_view present_of(use how) noexcept;
[[nodiscard]] std::string_view infinitive_of(use how) noexcept;

/// What some work does, the same for all runs of a node of a graph: "kernel add(float*, int)" or the name of a call.
struct checked_operation {
  std::string what;
  std::shared_ptr<const call_place> place;
  bool is_kernel = false;
  /// The values of the kernel's arguments that can be pointers, by the argument's number from 1.
  std::vector<std::pair<int, std::uint64_t>> pointers{};
  /// Returns the place in the kernel's source of a site's number; null: none is known.
  std::function<std::string(std::uint32_t site, use how)> source_of{};
  /// Whether the kernel writes memory at another place than a site; null: no.
  std::function<bool(std::uint32_t site)> writes_elsewhere{};
  bool is_host = false;  // CPU code
  /// The bytes of which CPU code may have used only some (touch_log.h).
  std::optional<std::pair<std::uint64_t, std::uint64_t>> vague{};
  /// A call of MPI, which may access its buffers until CPU code has completed it.
  bool is_message = false;

  /// Whether a read at a site certainly does not follow a write of the same run.
  [[nodiscard]] bool reads_first(std::uint32_t site) const { return !writes_elsewhere || !writes_elsewhere(site); }
  /// Returns one side of a finding: an access of the allocation [base, base + bytes), at a site; 0: none.
  [[nodiscard]] finding_side side(use how, std::uint32_t site, std::uint64_t base, std::uint64_t bytes) const;
};
using operation_ptr = std::shared_ptr<const checked_operation>;

/// Bytes that a run of an operation has accessed.
struct access_range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  use how = use::read;
  std::uint32_t site = 0;  // the number of the access in its module; 0: the whole operation
};

/// Two accesses by threads of one launch that nothing orders: of two blocks, or of one block to its shared memory.
struct launch_race {
  struct access {
    use how = use::read;
    std::uint32_t site = 0;  // 0: `source` is the place in the kernel
    std::string source{};
  };
  bool is_shared = false;
  std::uint64_t begin = 0, end = 0;  // addresses; in shared memory, offsets
  access earlier, later;
  std::string variable{};  // the variable in shared memory; empty if unknown

  /// Equal for races of one kind in one array. `base`: of the allocation; 0: unknown.
  [[nodiscard]] std::string key(std::uint64_t base) const;
  /// Returns the finding, without the allocation [base, base + bytes); 0: unknown.
  [[nodiscard]] finding describe(const checked_operation& launch, std::uint64_t base, std::uint64_t bytes) const;
};

/// Returns the words of a kernel's arguments that can be pointers, with the number of the argument from 1.
[[nodiscard]] std::vector<std::pair<int, std::uint64_t>> pointers_in(std::span<const std::uint32_t> offsets,
                                                                     std::span<const std::uint32_t> sizes,
                                                                     std::span<const std::byte> arguments);

/// The places at which a kernel accesses memory, by the site and the use.
class site_places {
 public:
  void add(std::uint32_t site, use how, std::string place) { all_.push_back({site, how, std::move(place)}); }
  [[nodiscard]] std::string find(std::uint32_t site, use how) const;
  /// Whether the kernel writes memory at another site.
  [[nodiscard]] bool has_writes_besides(std::uint32_t site) const;

 private:
  struct entry {
    std::uint32_t site;
    use how;
    std::string place;
  };
  std::vector<entry> all_;
};

/// Nanoseconds of the monotonic clock, which is the same for all processes of a machine.
[[nodiscard]] std::uint64_t time_now() noexcept;

/// The order of the nodes of a graph: whether a node certainly ends before another one begins, in one launch.
struct step_order {
  std::vector<std::vector<bool>> before;  // by step: for each step, whether a path of edges leads from it to this step
};

/// A piece of work in a stream.
struct checked_work {
  past_ptr when;
  std::uint64_t stream = 0;
  std::shared_ptr<const call_place> place;
  std::uint64_t number = 0;  // later work has a larger number; 0: not queued
  std::uint64_t queued_at = time_now();
};

/// A run of an operation: queued alone, or as a step of a graph.
struct operation_run {
  operation_ptr what;
  std::shared_ptr<const checked_work> work;
  std::shared_ptr<const step_order> steps{};  // null: not in a graph
  std::size_t step = 0;
};

/// An access in a run of an operation (byte_history.h).
struct actor {
  operation_run run;
  std::uint32_t site = 0;  // the number of the access in its module; 0: the whole operation

  /// Equal for all accesses of an operation that the program has queued at the same place.
  [[nodiscard]] std::string key() const;
  [[nodiscard]] std::string stream_text() const;
  [[nodiscard]] bool is_allocation() const;  ///< "cudaMallocAsync", "cuMemAllocAsync"
  [[nodiscard]] bool is_free() const;
  /// The wait that the program lacks between the work and a touch of the work's memory.
  [[nodiscard]] std::string missing_wait() const;
  /// Returns one side of a finding: an access of the allocation [base, base + bytes).
  [[nodiscard]] finding_side side(use how, std::uint64_t base, std::size_t bytes) const;
};

}  // namespace hpe::check

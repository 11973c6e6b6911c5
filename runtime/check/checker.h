#pragma once

/// Checks the order of the device work of a process: receives the work when it is queued, the bytes that it accesses
/// when it has run, the waits of CPU code, and the allocations. Knows nothing about devices or CUDA. Thread-safe.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/check/byte_history.h"
#include "runtime/check/findings.h"
#include "runtime/check/operation.h"
#include "runtime/check/order.h"
#include "runtime/check/shared_memories.h"
#include "runtime/check/touch_log.h"

namespace hpe::check {

struct queued_kind {
  bool uses_memory = false;        // not only to fill memory: the program must wait for the work before it ends
  bool waits_for_unknown = false;  // the work waits for something that hpe cannot relate to other work
  bool waits_for_values = false;   // see end_value_wait()
};

class checker {
 public:
  /// `is_unchanged` returns whether bytes of fresh memory still have the value that they got at the allocation, so that
  /// a read by a kernel is reported only if CPU code or another library has not written them either. `is_other` returns
  /// whether an address in no allocation is memory that a kernel may use: memory that was freed at once may have become
  /// other memory, for example a variable of a module. `take_touches` returns what CPU code has touched since the last
  /// call, and must not call the checker.
  checker(ignored_findings ignored, std::function<bool(std::uint64_t begin, std::uint64_t end)> is_unchanged,
          std::function<bool(std::uint64_t address)> is_other,
          std::function<std::vector<host_touch>()> take_touches = {},
          process_name self = process_name::of_this_process());

  // Streams and their work:
  std::uint32_t add_line(int device);
  void end_line(std::uint32_t line);  ///< no more work follows
  std::shared_ptr<const checked_work> queue(std::uint32_t line, std::uint64_t stream, std::span<const past_ptr> after,
                                            std::span<const std::uint32_t> after_lines, const queued_kind& kind,
                                            std::shared_ptr<const call_place> place);
  /// Work that runs has seen the values in memory for which it waited. `writers`: the work that has written them;
  /// empty: unknown.
  void end_value_wait(const checked_work& waiting, std::span<const past_ptr> writers);
  [[nodiscard]] past_ptr last(std::uint32_t line) const;
  void wait(const past_ptr& ended);  ///< CPU code has waited for this work
  /// Returns the pasts of the last work of these lines, or of all lines of a device, for a later call of wait().
  [[nodiscard]] std::vector<past_ptr> last_of(std::span<const std::uint32_t> lines) const;
  [[nodiscard]] std::vector<past_ptr> last_of_device(int device);
  /// The calling thread begins, or ends, a host function: a run whose operation is null. Other threads can learn from
  /// the host function that earlier work has ended, so CPU code has waited for this work when the function begins. When
  /// it ends, CPU code has also waited for the graph whose node it is.
  void begin_host_function(const operation_run& run);
  void end_host_function();
  /// Whether CPU code has waited for this work.
  [[nodiscard]] bool has_waited(const past_ptr& work) const;
  /// Whether no more work follows in the line, and CPU code has waited for all of its work.
  [[nodiscard]] bool is_settled(std::uint32_t line) const;

  // Memory:
  /// `is_fresh`: the bytes count as not written. An allocation replaces an earlier one at the same address.
  void allocate(std::uint64_t base, std::size_t bytes, bool is_fresh, bool must_be_freed,
                std::shared_ptr<const call_place> place);
  /// Frees an allocation after the end of all work.
  void release(std::uint64_t base, std::shared_ptr<const call_place> place);
  /// The memory remains, but is no longer an allocation.
  void leave(std::uint64_t base) {
    const lock_guard lock(mutex_);
    allocations_.erase(base);
  }
  /// Allocates and frees in stream order, as the work `by`. To be called when the work runs. `is_fresh`: see
  /// allocate().
  void allocate_in_line(std::uint64_t base, std::size_t bytes, bool is_fresh, const operation_run& by);
  void release_in_line(std::uint64_t base, const operation_run& by);
  void set_written(std::uint64_t base);  ///< others may have written the allocation's bytes
  /// Other processes can use the allocation from now on: see shared_memories::add().
  void share(std::uint64_t base, const std::string& name, bool is_own);
  [[nodiscard]] shared_memories& shared() noexcept { return shared_; }

  /// Returns the allocations among those to which the pointers point whose bytes nothing has written, also nothing that
  /// the checker does not know, as far as the bytes of the first page tell.
  [[nodiscard]] std::vector<std::uint64_t> find_fresh(std::span<const std::pair<int, std::uint64_t>> pointers);
  /// Adds the accesses of a run. The fewer neighbours with the same use are not in ascending order, the faster.
  /// `fresh`: what find_fresh() returned for a kernel when it began.
  void add(const operation_run& run, std::span<const access_range> ranges, std::span<const std::uint64_t> fresh = {});
  /// Adds an access to bytes outside of the allocation at `base`, to which the kernel's argument for this access
  /// points.
  void add_outside(const operation_run& run, const access_range& bytes, std::uint64_t base);
  /// Adds races within a launch. Reports one for each kernel, call and array.
  void add(const operation_run& launch, std::span<const launch_race> races);
  /// Adds a call's uses of memory outside of all allocations, until forget() is called because CPU code has waited for
  /// the call.
  void add_ordinary(const operation_run& message, std::span<const access_range> ranges);
  void forget(const operation_run& message);
  /// CPU code has changed a byte that a call of MPI reads, before the call that has noticed it.
  void add_change(const operation_run& message, std::uint64_t address, const call_place& noticed);

  /// Adds the findings that only the end of the program shows, and returns all, in the order in which they were found.
  [[nodiscard]] std::vector<finding> finish();
  /// Returns the findings so far, and forgets them. The order and the history of the bytes remain. For tests.
  [[nodiscard]] std::vector<finding> take();

 private:
  /// The number of bytes of an allocation whose values tell whether it is fresh.
  static constexpr std::size_t first_bytes = 4096;

  struct allocation {
    std::size_t bytes = 0;
    std::shared_ptr<const call_place> place;
    byte_history history;
    bool must_be_freed = true;
  };
  struct freed {
    std::size_t bytes = 0;
    std::shared_ptr<const call_place> allocated;
    actor_ptr by;  // the free
  };
  using allocations = std::map<std::uint64_t, allocation>;
  /// A use of memory outside of all allocations.
  struct ordinary_use {
    access_range range;
    actor_ptr by;
  };

  [[nodiscard]] allocations::iterator find(std::uint64_t address) HPE_REQUIRES(mutex_);
  void insert(std::uint64_t base, allocation made) HPE_REQUIRES(mutex_);
  void add_touched(const operation_run& run, std::span<const touched> what, use how,
                   std::span<const std::uint64_t> fresh) HPE_REQUIRES(mutex_);
  [[nodiscard]] bool is_ordered(const actor& earlier, const actor& later) const HPE_REQUIRES(mutex_);
  void add_to_allocation(allocation& to, std::uint64_t base, std::span<const touched> what, use how, bool is_kernel,
                         bool was_fresh) HPE_REQUIRES(mutex_);
  void add_unknown(const actor_ptr& by, use how, std::uint64_t begin, std::uint64_t end) HPE_REQUIRES(mutex_);
  /// Adds what CPU code has touched since the last call. The order of work must not have changed meanwhile.
  void add_touches() HPE_REQUIRES(mutex_);
  void wait_for_seen() HPE_REQUIRES(mutex_);
  [[nodiscard]] shared_memories::report_function rank_reporter() HPE_REQUIRES(mutex_);
  /// Adds a touch by CPU code of bytes that work uses, without an order between them. `in`: null: no allocation.
  void add_touch(const allocation* in, std::uint64_t base, std::uint64_t begin, std::uint64_t end, const actor& touch,
                 use touch_how, const actor& work, use work_how) HPE_REQUIRES(mutex_);
  void add_ordinary_touch(const touched& touch, use how) HPE_REQUIRES(mutex_);
  void add_race(allocation& in, std::uint64_t base, std::uint64_t begin, std::uint64_t end, const actor_ptr& by,
                use how, const actor& earlier, use earlier_how) HPE_REQUIRES(mutex_);
  /// Adds a race of a call of MPI with device work, or with another call.
  void add_message_race(allocation& in, std::uint64_t base, std::uint64_t begin, std::uint64_t end,
                        const actor& earlier, use earlier_how, const actor& later, use later_how) HPE_REQUIRES(mutex_);
  void add_unwritten(allocation& in, std::uint64_t base, std::uint64_t begin, std::uint64_t end, const actor_ptr& by)
      HPE_REQUIRES(mutex_);
  void describe(finding& to, const allocation& in, std::uint64_t base, std::uint64_t begin, std::uint64_t end) const;

  const std::function<bool(std::uint64_t, std::uint64_t)> is_unchanged_;
  const std::function<bool(std::uint64_t)> is_other_;
  const std::function<std::vector<host_touch>()> take_touches_;
  mutable mutex mutex_;
  work_order order_ HPE_GUARDED_BY(mutex_);
  std::uint64_t queued_ HPE_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint32_t> touches_line_ HPE_GUARDED_BY(mutex_);        // of CPU code
  std::map<::pid_t, operation_run> host_functions_ HPE_GUARDED_BY(mutex_);  // by thread
  std::map<std::uint64_t, std::string> places_ HPE_GUARDED_BY(mutex_);      // of touches, by the hash of the stack
  // Work that CPU code has seen in progress, by values that the work has changed atomically.
  std::vector<past_ptr> seen_ HPE_GUARDED_BY(mutex_);
  std::map<int, std::vector<std::uint32_t>> lines_ HPE_GUARDED_BY(mutex_);  // by device
  std::vector<bool> ended_ HPE_GUARDED_BY(mutex_);                          // by line
  // By line: the last work that uses memory.
  std::map<std::uint32_t, std::shared_ptr<const checked_work>> last_use_ HPE_GUARDED_BY(mutex_);
  allocations allocations_ HPE_GUARDED_BY(mutex_);               // by base
  std::map<std::uint64_t, freed> freed_ HPE_GUARDED_BY(mutex_);  // by base
  std::vector<ordinary_use> ordinary_ HPE_GUARDED_BY(mutex_);
  shared_memories shared_;
  finding_list findings_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::check

#pragma once

/// The memories that this process shares with other processes, and the conflicts of its work with theirs.
///
/// Order. hpe does not see how processes tell each other that work has ended. But a process must have waited for its
/// work before it can tell, and the other process must know before it queues its own work. So work of one process
/// counts as ordered before work of another process if CPU code of the first one has waited for it, by the clock,
/// before CPU code of the other one has queued its work. So these classes may treat unordered work as ordered, but
/// never ordered work as unordered, as long as only CPU code orders the processes (set_unknown()).

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/check/byte_history.h"
#include "runtime/check/operation.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::check {

/// A process in reports.
struct process_name {
  std::int32_t id = 0;
  std::string words;  // "rank 1"
  static process_name of_this_process();
};

struct shared_log_page;  // the layout of the file

/// The accesses of device work of several processes to one memory that they share. The processes write them to a file
/// without a name (memfd), which exists as long as one of them has it open. Not thread-safe within a process.
class shared_log {
 public:
  /// The log of the allocation [base, base + bytes) of this process. `name`: of the memory, the same in all processes.
  /// `creates`: whether this process makes the file; otherwise another process has made it. Throws HPE_ERROR_NOT_FOUND
  /// if no process of the user has made it, and HPE_ERROR_SYSTEM.
  shared_log(const std::string& name, bool creates, std::uint64_t base, std::size_t bytes, process_name self);
  /// Ends all work of this process.
  ~shared_log();
  shared_log(const shared_log&) = delete;
  shared_log& operator=(const shared_log&) = delete;

  /// When CPU code has queued some work, and when it has waited for it; 0: not yet.
  struct times {
    std::uint64_t queued = 0, waited = 0;
  };
  /// An access by another process.
  struct other_access {
    finding_side side{};
    std::string process{};
    use how = use::read;
    std::uint64_t queued = 0;
  };
  using conflict_function =
      std::function<void(std::uint64_t begin, std::uint64_t end, const actor& by, const other_access& other)>;

  /// Adds accesses of one kind by one work, in ascending order, and calls `found` for accesses of other processes that
  /// conflict and are not ordered with them. Ignores bytes outside of the allocation.
  void add(std::span<const touched> what, use how, const times& when, const conflict_function& found);
  /// CPU code of this process may have waited for more work.
  void waited(const work_order& order);

  /// The processes can order their work in ways that hpe does not see. Affects all processes.
  void set_unknown() noexcept;
  [[nodiscard]] bool is_unknown() const noexcept;
  /// Whether accesses of work for which nobody had waited were dropped.
  [[nodiscard]] bool has_dropped() const noexcept;

  /// The number of accesses that the log keeps, and of those of one call of add() that it takes: the first ones.
  static constexpr std::size_t most_accesses = std::size_t{1} << 14, most_of_one = most_accesses / 16;

 private:
  /// Own accesses for whose work CPU code has not waited.
  struct pending {
    std::uint64_t first, end;  // numbers of accesses
    moment work;
  };

  [[nodiscard]] std::uint32_t text_of(const actor& by, use how);
  void read_text(std::uint32_t at, other_access& to) const;
  void end(const pending& ended, std::uint64_t now);

  const std::uint64_t base_;
  const std::size_t bytes_;
  const process_name self_;
  os::file_descriptor file_;
  os::reservation memory_;
  shared_log_page* page_ = nullptr;
  std::map<std::string, std::uint32_t> texts_;  // the places of this process's texts in the page
  std::vector<pending> pending_;
};

/// Thread-safe.
class shared_memories {
 public:
  explicit shared_memories(process_name self) : self_(std::move(self)) {}

  /// Other processes can use the allocation [base, base + bytes) from now on: see shared_log. If its accesses cannot be
  /// logged, says so once.
  void add(const std::string& name, bool is_own, std::uint64_t base, std::size_t bytes);
  [[nodiscard]] bool is_empty() const;
  /// Whether an address is in a shared allocation.
  [[nodiscard]] bool contains(std::uint64_t address) const;

  /// Adds accesses of device work to an allocation, and calls report() for those that conflict with accesses of others.
  /// Does nothing if the allocation is not shared. The findings have no allocation.
  using report_function =
      std::function<void(const std::string& key, const actor& by, const std::function<finding()>& make)>;
  void access(std::uint64_t base, std::span<const touched> what, use how, const work_order& order,
              const report_function& report);
  /// CPU code frees the allocation, if it is shared.
  void release(std::uint64_t base, const actor_ptr& by, const report_function& report);
  /// CPU code may have waited for more work.
  void waited(const work_order& order);
  /// Queued work has waited for CPU code, which can have learned of work of other processes by now.
  void learned();

  /// The processes can order work in ways that hpe does not see, so conflicts are not looked for. `how`: a sentence.
  void set_unknown(const char* how);
  /// All work of this process has ended. Returns whether the order may be unknown: what was found may be wrong.
  [[nodiscard]] bool end();

 private:
  struct memory {
    std::unique_ptr<shared_log> log;
    std::size_t bytes = 0;
    bool is_own = false;
  };

  void add_to(memory& to, std::uint64_t base, std::span<const touched> what, use how, const shared_log::times& when,
              const report_function& report) HPE_REQUIRES(mutex_);
  void forget(std::uint64_t base) HPE_REQUIRES(mutex_);
  void tell(const char* what) HPE_REQUIRES(mutex_);

  const process_name self_;
  mutable mutex mutex_;
  std::map<std::uint64_t, memory> all_ HPE_GUARDED_BY(mutex_);  // by base
  std::uint64_t learned_ HPE_GUARDED_BY(mutex_) = 0;
  const char* unknown_order_ HPE_GUARDED_BY(mutex_) = nullptr;  // how, in this process
  bool is_unknown_ HPE_GUARDED_BY(mutex_) = false;              // also in others, of memory that is no longer shared
  bool has_told_ HPE_GUARDED_BY(mutex_) = false;
};

}  // namespace hpe::check

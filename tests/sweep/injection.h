#pragma once

/// Chooses the call that fails. A run is armed with a kind of failure and a number k. The runtime's calls that can fail
/// in this way are counted over all threads, and call number k fails. Calls of the test's own code are not counted.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sweep {

enum class failure : std::uint8_t {
  none,
  refusal,      ///< an operation of the device interface throws, or an entry of CUDA's driver returns an error, without
                ///< having done anything
  late,         ///< a queued command is accepted, and fails when its turn comes
  loss_before,  ///< the device dies before an operation, so this operation and all later ones fail
  loss_after,   ///< the device dies after an operation
  system_call,  ///< a system call fails
  allocation,   ///< operator new throws
  allocations   ///< operator new throws twice in a row; the second call may belong to the cleanup
};
[[nodiscard]] const char* name_of(failure kind) noexcept;

/// The words in messages of the runtime that identify an injected failure of the device interface.
inline constexpr const char* mark = "by the sweep";

/// A description of the failed call, and the call stack in the runtime.
struct note {
  char text[64] = {};
  int depth = 0;
  void* frames[24] = {};
};

/// The calls of a run by their call stacks, in memory that another process can read.
class call_stacks {
 public:
  /// Adds call number `call`. Thread-safe.
  void add(void* const* frames, int depth, std::uint64_t call) noexcept;
  /// Returns the numbers of the first and the last call with each call stack, in ascending order.
  [[nodiscard]] std::vector<std::uint64_t> first_and_last() const;

 private:
  struct entry {
    std::uint64_t stack = 0;  // a hash of the frames; 0: the entry is empty
    std::uint64_t first = 0, last = 0;
  };
  std::atomic_flag busy_;
  entry entries_[1 << 15];
};

class injector {
 public:
  void arm(failure kind, std::uint64_t k) noexcept;
  void disarm() noexcept { kind_.store(failure::none); }

  /// Counts one call; returns true if this call must fail. `what` must be a constant. Can be called wherever the
  /// runtime makes calls.
  bool due(failure kind, const char* what, int device = -1) noexcept;

  [[nodiscard]] bool fired() const noexcept { return fired_.load(); }
  /// Whether a failure of the kind loss_before has killed a device, so that all later calls fail.
  [[nodiscard]] bool is_lost() const noexcept { return fired() && armed_for_ == failure::loss_before; }
  /// A description of the latest failure.
  [[nodiscard]] const char* what() const noexcept { return note_->depth != 0 ? note_->text : "nothing"; }
  /// From now on, failures are described in `place`, which is in memory that another process can read.
  void note_at(note* place) noexcept { note_ = place; }
  /// From now on, calls that could fail are recorded in `place`; nullptr: they are not.
  void record_at(call_stacks* place) noexcept { stacks_ = place; }
  [[nodiscard]] std::uint64_t calls() const noexcept { return calls_.load(); }
  [[nodiscard]] failure armed_for() const noexcept { return armed_for_; }

 private:
  std::atomic<failure> kind_{failure::none};
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<bool> fired_{false};
  failure armed_for_ = failure::none;
  std::uint64_t k_ = 0;
  note own_note_;
  note* note_ = &own_note_;
  call_stacks* stacks_ = nullptr;
};

[[nodiscard]] injector& injected() noexcept;

/// Marks the calling thread as the test's: its calls count only while a runtime_call exists.
void this_thread_is_the_test() noexcept;

/// While an object exists, the calls of the test's thread count as calls of the runtime.
class runtime_call {
 public:
  runtime_call() noexcept;
  ~runtime_call();
  runtime_call(const runtime_call&) = delete;
  runtime_call& operator=(const runtime_call&) = delete;

 private:
  bool before_;
};

/// The opposite of runtime_call, for code of the test that the runtime calls.
class test_code {
 public:
  test_code() noexcept;
  ~test_code();
  test_code(const test_code&) = delete;
  test_code& operator=(const test_code&) = delete;

 private:
  bool before_;
};

/// Returns the number of objects that were made by operator new and are not deleted yet.
[[nodiscard]] std::int64_t live_objects() noexcept;

}  // namespace sweep

#pragma once

/// Which call fails. A run is armed with a kind of failure and a number k; the k-th call of that kind which the runtime
/// makes, in any of its threads, fails. Only calls of the runtime count, not those of the test's own code.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sweep {

enum class failure : std::uint8_t {
  none,
  refusal,      ///< an operation of the device interface throws, or an entry of CUDA's driver refuses; nothing is done
  late,         ///< a queued command is accepted, and fails when its turn comes
  loss_before,  ///< the device dies before an operation, which fails because of it, as do all later ones
  loss_after,   ///< the device dies after an operation
  system_call,  ///< a system call fails
  allocation,   ///< operator new throws
  allocations   ///< operator new throws twice in a row; the second call may belong to the cleanup
};
[[nodiscard]] const char* name_of(failure kind) noexcept;

/// The words in messages of the runtime that identify an injected failure of the device interface.
inline constexpr const char* mark = "by the sweep";

/// A description of the failed call, and the place in the runtime that made it.
struct note {
  char text[64] = {};
  int depth = 0;
  void* frames[24] = {};
};

class injector {
 public:
  void arm(failure kind, std::uint64_t k) noexcept;
  void disarm() noexcept { kind_.store(failure::none); }

  /// Counts one call; true if this call must fail. `what` must live for ever. Safe wherever the runtime makes calls.
  bool due(failure kind, const char* what, int device = -1) noexcept;

  [[nodiscard]] bool fired() const noexcept { return fired_.load(); }
  /// Whether a device has died, so that all later calls fail.
  [[nodiscard]] bool is_lost() const noexcept { return fired() && armed_for_ == failure::loss_before; }
  /// A description of the latest failure.
  [[nodiscard]] const char* what() const noexcept { return note_->depth != 0 ? note_->text : "nothing"; }
  /// Keeps the note in memory that another process sees.
  void note_at(note* place) noexcept { note_ = place; }
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
};

[[nodiscard]] injector& injected() noexcept;

/// Marks the calling thread as the test's: its calls count only inside of runtime_call.
void this_thread_is_the_test() noexcept;

/// While an object lives, calls of the test's thread count as the runtime's.
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

/// The number of objects that operator new made and that are not deleted yet.
[[nodiscard]] std::int64_t live_objects() noexcept;

}  // namespace sweep

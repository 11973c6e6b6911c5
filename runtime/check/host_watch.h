#pragma once

/// Sees CPU code that touches memory of the host which queued work may use. From the call that queues the work until
/// CPU code has waited for it, the pages of the memory are protected: of memory that the work only reads, against
/// writes; otherwise against all accesses. A touch is recorded, the thread makes the access, and the page is protected
/// again. The checker finds out which touches conflict with which work.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hpe/check.h"
#include "runtime/base/thread_safety.h"
#include "runtime/check/checker.h"
#include "runtime/check/order.h"
#include "runtime/check/touch_log.h"
#include "runtime/check/watched_pages.h"

namespace hpe::check {

/// A process has at most one object, which exists until the process ends, because signal handlers use it. Thread-safe.
class host_watch {
 public:
  /// Bytes [begin, end) that work uses.
  struct use_of_memory {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool is_written = false;
    bool has_protocol = false;  ///< the coherence protocol also protects the pages
  };

  /// Makes the object of the process. `show_touches` is hpeWatchTouches; if it fails, the result has its status, and
  /// the object watches nothing.
  static hpeStatus start(hpeStatus (*show_touches)(const hpeTouchWatcher* watcher, bool* can_step));
  /// Returns the object; null before start().
  [[nodiscard]] static host_watch* of_process() noexcept;

  host_watch(const host_watch&) = delete;
  host_watch& operator=(const host_watch&) = delete;

  /// Touches by the library that contains this function do not count: it is the driver, which does the program's work
  /// itself. To be called before watch().
  void leave_out(const void* function_of_library);

  /// Watches memory that work uses. Later work of the same line replaces earlier work with the same range.
  void watch(const use_of_memory& range, const past_ptr& work);
  /// Ceases to watch memory for whose work CPU code has waited.
  void end_waited(const checker& by);
  void end_all();  ///< the program ends
  /// Ceases to watch memory that is about to be freed, and forgets its pages.
  void forget(std::uintptr_t begin, std::uintptr_t stop);
  /// Whether CPU code cannot access all bytes, because work uses their pages. Takes no lock.
  [[nodiscard]] bool is_in_use(std::uintptr_t begin, std::uintptr_t end) const noexcept;

  /// A call of MPI begins to use a buffer: ceases to watch the buffer for device work with which the call conflicts,
  /// because the checker compares the work with the call. The calling thread must be in a function of MPI.
  void begin_message(const use_of_memory& buffer);
  /// Watches pages of this buffer that contain nothing else.
  void watch_message(const use_of_memory& pages, const past_ptr& work);
  /// While a thread is in a function of MPI, which may access the buffers of all calls, the buffers are not watched.
  /// Also before start().
  static void enter_messages() noexcept;
  static void leave_messages() noexcept;

  /// Returns what CPU code has touched since the last call, without touches by MPI's library.
  [[nodiscard]] std::vector<host_touch> take_touches();

 private:
  host_watch() = default;

  /// A range of pages in use by work.
  struct watched_range {
    use_of_memory what;
    past_ptr work;
    bool is_of_message = false;
    bool is_closed = true;  // otherwise a thread is in a function of MPI
  };
  /// The pages that the thread with this number opens for one access.
  struct open_pages {
    std::atomic<::pid_t> thread{0};
    std::array<std::uintptr_t, 4> pages{};
    std::size_t count = 0;
  };

  static hpeTouchAnswer on_fault(const hpeTouch* touch);
  static void on_step();
  static bool on_protect(void* begin, std::size_t bytes, int allowed, bool* failed);
  static void on_call(const void* begin, std::size_t bytes, bool writes);
  static bool on_refusal();
  static bool on_pass(const void* begin, std::size_t bytes);

  [[nodiscard]] open_pages* step_of(::pid_t thread, bool makes) noexcept;
  void close(watched_range& range) HPE_REQUIRES(mutex_);
  void open(watched_range& range) HPE_REQUIRES(mutex_);
  void end(watched_range& range) HPE_REQUIRES(mutex_);

  watched_pages pages_;
  touch_log touches_;
  bool can_step_ = false;
  std::atomic<bool> sees_touches_{false};
  std::array<open_pages, 256> steps_{};
  mutex mutex_;
  std::vector<watched_range> in_use_ HPE_GUARDED_BY(mutex_);
  bool has_told_ HPE_GUARDED_BY(mutex_) = false;
  std::atomic<bool> has_messages_{false};
  static std::atomic<host_watch*> the_instance;
  static std::atomic<int> threads_in_mpi;  // changed with the mutex, as soon as there is an object
};

/// Returns the first and the last address of the pages that a range covers completely; twice `end` if there are none.
[[nodiscard]] std::pair<const std::byte*, const std::byte*> pages_within(const std::byte* begin, const std::byte* end);

}  // namespace hpe::check

#pragma once

/// HPE_TRACE: a file of timed events that https://ui.perfetto.dev and chrome://tracing show.
///
/// Each process has at most one recorder, because hpe's libraries for MPI and the CUDA runtime record their events in
/// the same recorder. The recorder is a table of fixed size: recording takes no lock and allocates no memory, so signal
/// handlers may record. When the table is full, further events are only counted.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/thread_safety.h"

namespace hpe::trace {

using clock = std::chrono::steady_clock;

enum class category : std::uint8_t { kernel, copy, fault, call, mpi, file };

/// A row of the timeline.
struct track {
  std::uint32_t group = 0;  ///< 0: threads of the program; 1 + d: device d
  std::uint32_t row = 0;    ///< the number of the thread, or of the stream
};

class HPE_API recorder {
 public:
  static constexpr std::size_t most_events = std::size_t{1} << 20;

  /// Creates the recorder of this process if `file` is not empty and the process has no recorder yet. The recorder is
  /// never destroyed; it writes the file when the process exits. Its name is that of name_of_output().
  static void start(const std::string& file);
  /// Returns the recorder of this process; nullptr if nothing is recorded.
  [[nodiscard]] static recorder* active() noexcept { return the_active.load(std::memory_order_acquire); }

  /// Creates a recorder without a file, unless the process already has a recorder; complete_text() returns its events.
  static void start_without_file(std::size_t capacity);

  explicit recorder(std::string file, std::size_t capacity = most_events);
  ~recorder();
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  /// Records an event. `name` must exist as long as the recorder (a literal, or a result of keep()). Safe in signal
  /// handlers.
  void add(category what, const char* name, track where, clock::time_point begin, clock::time_point end,
           std::uint64_t bytes) noexcept;
  /// Returns a copy of a name; the copy exists as long as the recorder.
  [[nodiscard]] const char* keep(const std::string& name);
  void name_group(std::uint32_t group, const std::string& name);
  void name_row(track where, const std::string& name);
  /// Registers a function that write() and complete_text() call first; the function may record more events. Must not be
  /// called in signal handlers.
  void before_writing(std::function<void()> tell);

  /// Writes the file, if the recorder has one. Throws HPE_ERROR_SYSTEM if that fails.
  void write();
  /// Returns all events as JSON. complete_text() first calls the functions of before_writing(); text() does not.
  [[nodiscard]] std::string complete_text();
  [[nodiscard]] std::string text() const;

 private:
  struct event {
    std::atomic<const char*> name{nullptr};  // written last
    category what{};
    track where;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::uint64_t bytes = 0;
  };

  /// For one name, the sums of the events that were recorded when the table was full.
  struct left_out {
    std::atomic<const char*> name{nullptr};
    std::atomic<category> what{};
    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::int64_t> nanoseconds{0};
  };
  void leave_out(category what, const char* name, std::int64_t nanoseconds) noexcept;

  static std::atomic<recorder*> the_active;

  const std::string file_;
  const std::size_t capacity_;
  event* events_;  // the system allocates the pages at the first access
  std::atomic<std::size_t> used_{0};
  std::array<left_out, 64> left_out_;  // events with further names count only in the total

  mutable mutex mutex_;
  std::set<std::string> names_ HPE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, std::string> groups_ HPE_GUARDED_BY(mutex_);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> rows_ HPE_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> tellers_ HPE_GUARDED_BY(mutex_);
};

/// Returns the row of the calling thread.
[[nodiscard]] HPE_API track this_thread() noexcept;

/// Records the lifetime of this object as an event of the calling thread.
class recorded {
 public:
  explicit recorded(category what, const char* name, std::uint64_t bytes = 0) noexcept : to_(recorder::active()) {
    if (to_ == nullptr) return;
    what_ = what;
    name_ = name;
    bytes_ = bytes;
    begin_ = clock::now();
  }
  ~recorded() {
    if (to_ != nullptr) to_->add(what_, name_, this_thread(), begin_, clock::now(), bytes_);
  }
  recorded(const recorded&) = delete;
  recorded& operator=(const recorded&) = delete;

 private:
  recorder* to_;
  category what_{};
  const char* name_ = nullptr;
  std::uint64_t bytes_ = 0;
  clock::time_point begin_;
};

}  // namespace hpe::trace

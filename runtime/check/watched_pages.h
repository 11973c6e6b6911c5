#pragma once

/// Pages of host memory that queued work uses. They are protected against CPU code: against all accesses if the work
/// writes them, against writes if it only reads them. Some pages have a second owner, the coherence protocol, which
/// closes and opens them for its own purpose; a page is open as far as both allow it.
///
/// Thread-safe. touched() and close() are async-signal-safe and take no lock.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/thread_safety.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::check {

class watched_pages {
 public:
  watched_pages() = default;
  ~watched_pages();
  watched_pages(const watched_pages&) = delete;
  watched_pages& operator=(const watched_pages&) = delete;

  static constexpr std::uintptr_t page_bytes = 4096;

  /// Watches the pages of a range for one more use. `is_written`: the work writes the range. `has_protocol`: the
  /// coherence protocol also protects the pages. Returns false, and watches nothing, if the table of pages is full or
  /// the operating system refuses to protect a page.
  bool add(std::uintptr_t begin, std::uintptr_t end, bool is_written, bool has_protocol);
  /// A further use of a range begins that add() watches already: closes pages that remained open.
  void add_again(std::uintptr_t begin, std::uintptr_t end);
  /// Ends a use that add() has begun with the same arguments.
  void remove(std::uintptr_t begin, std::uintptr_t end, bool is_written);
  /// Keeps the pages of a range readable, whatever work uses them: other processes read them. Each call belongs to one
  /// of take_back(), with the same range.
  void lend(std::uintptr_t begin, std::uintptr_t end);
  void take_back(std::uintptr_t begin, std::uintptr_t end);
  /// To be called when memory has been freed: its addresses may get other pages.
  void forget(std::uintptr_t begin, std::uintptr_t end);
  /// The protocol allows CPU code these accesses from now on. Returns false, and does nothing, if none of the pages has
  /// ever been watched. `failed` becomes true if mprotect fails.
  bool allow(std::uintptr_t begin, std::uintptr_t end, os::page_protection allowed, bool& failed);

  enum class answer : std::uint8_t {
    not_watched,  ///< the page is not watched, or the protocol forbids the access
    opened,       ///< nothing to record: the page was about to be opened
    touched       ///< the page is open now; after the access, call close(), unless the page is tired
  };
  /// To be called in the thread whose access has failed.
  [[nodiscard]] answer touched(std::uintptr_t address, bool writes) noexcept;
  /// Protects a page again.
  void close(std::uintptr_t address) noexcept;
  /// Whether work uses a page of this range.
  [[nodiscard]] bool is_in_use(std::uintptr_t begin, std::uintptr_t end) const noexcept;
  /// Whether a page remains open until its next use begins, because it has been touched often.
  [[nodiscard]] bool is_tired(std::uintptr_t address) const noexcept;
  /// Opens the watched pages of a range, or all, until their next uses begin. Returns whether there was one.
  bool open(std::uintptr_t begin, std::uintptr_t end);
  bool open_all();

  /// Whether some touches have not been seen, because CPU code has touched watched pages too often.
  [[nodiscard]] bool has_missed_touches() const noexcept { return steps_.load() > most_steps; }

  /// The number of touches of a page, and of all pages, after which pages remain open after their first touch: each
  /// touch takes some microseconds.
  static constexpr std::uint32_t most_touches = 4096;
  static constexpr std::uint32_t most_steps = 1'000'000;

 private:
  using level = std::uint8_t;  // 0: no access, 1: reads, 2: all accesses
  static constexpr level none = 0, reads = 1, all = 2;

  // Sequentially consistent stores would take longer than the calls of mprotect.
  static constexpr std::memory_order order_of_store = std::memory_order_release;
  static constexpr std::memory_order order_of_load = std::memory_order_acquire;

  struct page {
    std::atomic<bool> known{false};
    std::atomic<level> allowed{all};  // by the protocol
    std::atomic<level> wanted{all};   // as long as the uses of the page last
    std::atomic<std::uint32_t> touches{0};
    // Used with the mutex:
    std::uint32_t readers = 0, writers = 0, lent = 0;

    [[nodiscard]] level of_uses() const noexcept {
      return writers != 0 && lent == 0 ? none : readers + writers != 0 ? reads : all;
    }

    [[nodiscard]] bool is_tired() const noexcept { return touches.load(order_of_load) >= most_touches; }
    [[nodiscard]] level effective() const noexcept {
      const level its = is_tired() ? all : wanted.load(order_of_load), most = allowed.load(order_of_load);
      return its < most ? its : most;
    }
  };
  static constexpr std::uintptr_t pages_of_leaf = 512;
  struct leaf {
    std::uintptr_t number = 0;
    std::array<page, pages_of_leaf> pages{};
  };
  static constexpr std::size_t most_leaves = std::size_t{1} << 16;

  [[nodiscard]] leaf* find_leaf(std::uintptr_t number) const noexcept;
  [[nodiscard]] page* find(std::uintptr_t address) const noexcept;
  bool make_leaves(std::uintptr_t begin, std::uintptr_t end) HPE_REQUIRES(mutex_);
  bool open_pages(std::uintptr_t begin, std::uintptr_t end) HPE_REQUIRES(mutex_);
  template <class Change>
  void change_use(std::uintptr_t begin, std::uintptr_t end, const Change& change) HPE_REQUIRES(mutex_);
  void end_use(std::uintptr_t begin, std::uintptr_t end, bool is_written) HPE_REQUIRES(mutex_);
  static bool protect(std::uintptr_t begin, std::uintptr_t end, level allowed) noexcept;
  template <class Change>
  bool apply(std::uintptr_t begin, std::uintptr_t end, const Change& change) HPE_REQUIRES(mutex_);

  mutex mutex_;
  std::size_t leaves_ HPE_GUARDED_BY(mutex_) = 0;
  std::array<std::atomic<leaf*>, most_leaves> table_{};  // a hash table; leaves exist as long as the object
  std::atomic<std::uint32_t> steps_{0};
};

/// Whether the pages of registered memory contain no other data: a range of whole pages, or memory of malloc in a
/// mapping of its own. Other pages can contain data of hpe itself, so hpe must neither protect nor replace them
/// unasked.
[[nodiscard]] bool has_own_pages(const void* begin, std::size_t bytes) noexcept;
/// Whether a range meets the part of the calling thread's stack that contains the current frames and those of functions
/// that this code calls.
[[nodiscard]] bool is_on_stack(const void* begin, std::size_t bytes) noexcept;

}  // namespace hpe::check

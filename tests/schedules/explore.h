#pragma once

/// Tries the orders in which a few threads can execute the steps of an algorithm, as loom and Relacy do. The threads
/// are fibers of one thread; before each access to a model::atomic, another fiber may continue. All orders with at most
/// `preemptions` preemptions are tried; a switch from a thread that waits is not a preemption. Memory is sequentially
/// consistent.

#include <ucontext.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace schedules {

class explorer {
 public:
  using threads = std::vector<std::function<void()>>;

  /// make: returns the threads of one run, which use new data. after: checks the results of a run. Returns the number
  /// of orders. Throws if there is an order in which the threads wait for each other forever or do not end.
  static std::size_t explore(unsigned preemptions, const std::function<threads()>& make,
                             const std::function<void()>& after);

  /// Called by the model.
  static void step();                      ///< another thread may continue here
  static void yield();                     ///< another thread continues, if there is one
  static void block(const void* address);  ///< waits until another thread calls wake_all for the address
  static void wake_all(const void* address);

 private:
  struct fiber {
    ucontext_t context{};
    std::unique_ptr<char[]> stack;
    std::function<void()> run;
    const void* blocked_at = nullptr;
    bool yielded = false;
    bool done = false;
  };
  struct choice {
    unsigned taken;
    unsigned options;
  };

  void run_once(threads bodies);
  void switch_away(bool voluntarily);
  unsigned choose(unsigned options);
  static void enter();

  static explorer* current;
  std::vector<choice> choices_;
  std::size_t depth_ = 0;
  std::size_t steps_ = 0;
  unsigned preemptions_left_ = 0;
  unsigned running_ = 0;
  bool inside_ = false;  // whether one of the threads is running
  std::vector<fiber> fibers_;
  ucontext_t main_{};
  std::exception_ptr failure_;
};

/// The template argument for the parameter Memory of the tested algorithms.
struct model {
  template <class T>
  class atomic {
   public:
    atomic(T value) : value_(value) {}  // NOLINT(google-explicit-constructor): implicit, as in std::atomic
    T load(std::memory_order = {}) const { return explorer::step(), value_; }
    void store(T value, std::memory_order = {}) { explorer::step(), value_ = value; }
    T exchange(T value, std::memory_order = {}) { return explorer::step(), std::exchange(value_, value); }
    T fetch_add(T value, std::memory_order = {}) { return explorer::step(), std::exchange(value_, value_ + value); }
    bool compare_exchange_strong(T& expected, T value, std::memory_order = {}) {
      explorer::step();
      if (value_ != expected) return expected = value_, false;
      value_ = value;
      return true;
    }
    bool compare_exchange_weak(T& expected, T value, std::memory_order order = {}) {
      return compare_exchange_strong(expected, value, order);
    }
    /// Returns the value without a step; to be called outside of the threads.
    [[nodiscard]] T peek() const { return value_; }

   private:
    friend struct model;
    T value_;
  };

  static void relax() { explorer::yield(); }
  static void sleep(const atomic<std::uint64_t>& word, std::uint64_t expected) {
    explorer::step();
    if (word.value_ == expected) explorer::block(&word);
  }
  static void wake(const atomic<std::uint64_t>& word) { explorer::wake_all(&word); }
};

}  // namespace schedules

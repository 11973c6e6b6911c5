#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hpe::interpose {

/// Items that are prepared in any order by several threads and taken in their order by one: while one is taken, the next
/// are prepared. The threads belong to the object, so nothing is left behind in a process that forks or ends.
class conveyor {
 public:
  /// prepare(i) is called once for each i below `count`, unless the object goes before, and at most `ahead` items beyond
  /// the one that is waited for. `helpers` threads call it, fewer if the system gives no more, and the one that waits.
  conveyor(std::size_t count, std::size_t ahead, unsigned helpers, std::function<void(std::size_t)> prepare);
  /// Waits for what is being prepared.
  ~conveyor();
  conveyor(const conveyor&) = delete;
  conveyor& operator=(const conveyor&) = delete;

  /// Item i is ready when this returns, and all before it are done with. One thread asks for one after the other. Throws
  /// what prepare threw.
  void wait(std::size_t i);

 private:
  void help();
  /// Prepares the next item with the lock released meanwhile.
  void prepare_one(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool may_start() const { return next_ < ready_.size() && next_ < taken_ + ahead_; }

  const std::size_t ahead_;
  const std::function<void(std::size_t)> prepare_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;   // the first that nobody prepares yet
  std::size_t taken_ = 0;  // what is waited for
  bool stop_ = false;
  std::vector<std::uint8_t> ready_;
  std::vector<std::exception_ptr> failed_;
  std::vector<std::jthread> helpers_;
};

}  // namespace hpe::interpose

#pragma once

/// A second thread, with which a benchmark copies in both directions at once.

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace hpe::bench {

/// The constructor starts the thread. After a job, the thread spins for 1 ms, so that a next job begins at once. Then
/// it sleeps, so that it takes no core from measurements of one thread.
class partner {
 public:
  ~partner() { go(nullptr); }
  /// Starts a job, which must exist until wait() has returned. wait() must be called after each go() and before the
  /// next.
  void go(const std::function<void()>* job) {
    job_ = job;
    begun_.fetch_add(1);
    begun_.notify_one();
  }
  /// Returns when the job has ended.
  void wait() const { until(done_, begun_); }

 private:
  static void until(const std::atomic<unsigned>& value, unsigned wanted) {
    const auto awake = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    for (unsigned now = value; now != wanted; now = value) {
      if (std::chrono::steady_clock::now() < awake)
        std::this_thread::yield();
      else
        value.wait(now);
    }
  }

  void work() {
    for (unsigned turn = 1;; ++turn) {
      until(begun_, turn);
      if (job_ == nullptr) return;
      (*job_)();
      done_ = turn;
      done_.notify_one();
    }
  }

  const std::function<void()>* job_ = nullptr;
  std::atomic<unsigned> begun_{0}, done_{0};
  std::jthread thread_{[this] { work(); }};  // last, because the thread uses the other members from its start
};

}  // namespace hpe::bench

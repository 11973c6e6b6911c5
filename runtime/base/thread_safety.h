#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <utility>

/// Locks that Clang's thread-safety analysis understands. Members declare the mutex that guards them, and functions
/// declare the mutex that they need. scripts/check-locks fails where the code violates a declaration. For GCC the
/// attributes are empty and the locks are those of the standard library.
///
///   hpe::mutex mutex_;
///   int count_ HPE_GUARDED_BY(mutex_) = 0;
///   void add_locked(int n) HPE_REQUIRES(mutex_);           // the caller holds mutex_
///   void add(int n) HPE_EXCLUDES(mutex_);                  // takes mutex_ itself; the caller must not hold it
///
/// The analysis identifies a mutex by its expression: a mutex that the code reaches through two names counts as two
/// mutexes. Where the analysis cannot see that a lock is held (several locks in a container, a lock that a caller
/// passes on), call `mutex.assert_held()`. The analysis treats a lambda as a separate function: annotate a predicate as
/// `[&]() HPE_REQUIRES(mutex_) { return count_ > 0; }`.

#if defined(__clang__)
#define HPE_THREAD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define HPE_THREAD_ATTRIBUTE(attribute)
#endif

/// For classes: a lock, or an object that holds a lock during its lifetime.
#define HPE_CAPABILITY(name) HPE_THREAD_ATTRIBUTE(capability(name))
#define HPE_SCOPED_CAPABILITY HPE_THREAD_ATTRIBUTE(scoped_lockable)

/// For members: the lock that guards the member.
#define HPE_GUARDED_BY(...) HPE_THREAD_ATTRIBUTE(guarded_by(__VA_ARGS__))

/// For locks: their order. A thread may take this lock while it holds the given locks, but not the reverse.
#define HPE_ACQUIRED_AFTER(...) HPE_THREAD_ATTRIBUTE(acquired_after(__VA_ARGS__))

/// For functions: the locks that the caller must hold, and those that it must not hold.
#define HPE_REQUIRES(...) HPE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define HPE_EXCLUDES(...) HPE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

/// For functions: the locks that the function takes or releases. Without an argument, the lock is the object itself.
#define HPE_ACQUIRE(...) HPE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define HPE_ACQUIRE_SHARED(...) HPE_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define HPE_TRY_ACQUIRE(...) HPE_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define HPE_RELEASE(...) HPE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define HPE_RELEASE_SHARED(...) HPE_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))

/// For functions: the lock is held when the function returns, no matter which thread took it.
#define HPE_ASSERT_CAPABILITY(...) HPE_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))

/// For functions that the analysis cannot follow. A comment beside the function says why it is correct.
#define HPE_NO_THREAD_SAFETY_ANALYSIS HPE_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace hpe {

class condition_variable;
class unique_lock;

/// std::mutex with annotations.
class HPE_CAPABILITY("mutex") mutex {
 public:
  void lock() HPE_ACQUIRE() { native_.lock(); }
  void unlock() HPE_RELEASE() { native_.unlock(); }
  [[nodiscard]] bool try_lock() HPE_TRY_ACQUIRE(true) { return native_.try_lock(); }

  /// Does nothing; tells the analysis that the calling thread holds the mutex.
  void assert_held() const HPE_ASSERT_CAPABILITY() {}

 private:
  friend unique_lock;

  std::mutex native_;
};

/// std::shared_mutex: lock_guard holds it for writing, shared_lock_guard for reading.
class HPE_CAPABILITY("mutex") shared_mutex {
 public:
  void lock() HPE_ACQUIRE() { native_.lock(); }
  void unlock() HPE_RELEASE() { native_.unlock(); }
  void lock_shared() HPE_ACQUIRE_SHARED() { native_.lock_shared(); }
  void unlock_shared() HPE_RELEASE_SHARED() { native_.unlock_shared(); }

 private:
  std::shared_mutex native_;
};

/// Holds a mutex during its lifetime.
template <typename Mutex>
class HPE_SCOPED_CAPABILITY lock_guard {
 public:
  explicit lock_guard(Mutex& mutex) HPE_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~lock_guard() HPE_RELEASE() { mutex_.unlock(); }

  lock_guard(const lock_guard&) = delete;
  lock_guard& operator=(const lock_guard&) = delete;

 private:
  Mutex& mutex_;
};

/// Holds a shared_mutex for reading during its lifetime.
class HPE_SCOPED_CAPABILITY shared_lock_guard {
 public:
  explicit shared_lock_guard(shared_mutex& mutex) HPE_ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex_.lock_shared(); }
  ~shared_lock_guard() HPE_RELEASE() { mutex_.unlock_shared(); }

  shared_lock_guard(const shared_lock_guard&) = delete;
  shared_lock_guard& operator=(const shared_lock_guard&) = delete;

 private:
  shared_mutex& mutex_;
};

/// Holds a mutex during its lifetime, except between unlock() and lock(). condition_variable waits with this lock.
class HPE_SCOPED_CAPABILITY unique_lock {
 public:
  explicit unique_lock(mutex& mutex) HPE_ACQUIRE(mutex) : native_(mutex.native_) {}
  ~unique_lock() HPE_RELEASE() = default;

  unique_lock(const unique_lock&) = delete;
  unique_lock& operator=(const unique_lock&) = delete;

  void lock() HPE_ACQUIRE() { native_.lock(); }
  void unlock() HPE_RELEASE() { native_.unlock(); }

 private:
  friend condition_variable;

  std::unique_lock<std::mutex> native_;
};

/// std::condition_variable for a unique_lock. The analysis assumes that the lock is held throughout a wait.
class condition_variable {
 public:
  void notify_one() noexcept { native_.notify_one(); }
  void notify_all() noexcept { native_.notify_all(); }

  void wait(unique_lock& lock) { native_.wait(lock.native_); }

  template <typename Predicate>
  void wait(unique_lock& lock, Predicate predicate) {
    native_.wait(lock.native_, std::move(predicate));
  }

  template <typename Rep, typename Period>
  std::cv_status wait_for(unique_lock& lock, std::chrono::duration<Rep, Period> time) {
    return native_.wait_for(lock.native_, time);
  }

  template <typename Rep, typename Period, typename Predicate>
  bool wait_for(unique_lock& lock, std::chrono::duration<Rep, Period> time, Predicate predicate) {
    return native_.wait_for(lock.native_, time, std::move(predicate));
  }

  template <typename Clock, typename Duration>
  std::cv_status wait_until(unique_lock& lock, std::chrono::time_point<Clock, Duration> end) {
    return native_.wait_until(lock.native_, end);
  }

  template <typename Clock, typename Duration, typename Predicate>
  bool wait_until(unique_lock& lock, std::chrono::time_point<Clock, Duration> end, Predicate predicate) {
    return native_.wait_until(lock.native_, end, std::move(predicate));
  }

 private:
  std::condition_variable native_;
};

}  // namespace hpe

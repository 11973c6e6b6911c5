#pragma once

#include <pthread.h>

namespace hpe::cuda_hooks {

/// Like std::shared_mutex, but threads that ask for reading wait while a thread waits for writing. With
/// std::shared_mutex of glibc, a writer waits as long as any readers overlap. A thread that holds the mutex must not
/// ask for it again.
class writer_first_mutex {
 public:
  writer_first_mutex() {
    pthread_rwlockattr_t how;
    ::pthread_rwlockattr_init(&how);
    ::pthread_rwlockattr_setkind_np(&how, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    ::pthread_rwlock_init(&native_, &how);
    ::pthread_rwlockattr_destroy(&how);
  }
  ~writer_first_mutex() { ::pthread_rwlock_destroy(&native_); }
  writer_first_mutex(const writer_first_mutex&) = delete;
  writer_first_mutex& operator=(const writer_first_mutex&) = delete;

  void lock() { ::pthread_rwlock_wrlock(&native_); }
  void unlock() { ::pthread_rwlock_unlock(&native_); }
  void lock_shared() { ::pthread_rwlock_rdlock(&native_); }
  [[nodiscard]] bool try_lock_shared() { return ::pthread_rwlock_tryrdlock(&native_) == 0; }
  void unlock_shared() { ::pthread_rwlock_unlock(&native_); }

 private:
  pthread_rwlock_t native_;
};

}  // namespace hpe::cuda_hooks

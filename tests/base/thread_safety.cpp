#include "runtime/base/thread_safety.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

namespace {

// Without the rule, this test does not end.
TEST(WriterFirstMutex, ReadersWaitWhileAThreadWaitsForWriting) {
  hpe::writer_first_mutex both;
  both.lock_shared();
  std::thread writer([&] { const std::lock_guard whole(both); });
  while (both.try_lock_shared()) {
    both.unlock_shared();
    std::this_thread::yield();
  }
  both.unlock_shared();
  writer.join();
  EXPECT_TRUE(both.try_lock_shared());
  both.unlock_shared();
}

}  // namespace

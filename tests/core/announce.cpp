// CPU code waits for the end of announced work (hpe/announce.h), even while the program has the work in its own queue.

#include "hpe/announce.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"

namespace {

using hpe::in;
using hpe::out;

constexpr std::uint32_t count = 300000;

/// Fills an array on a device, in a separate thread, some time after the work was announced.
class filled_later {
 public:
  filled_later(hpe::array<std::uint32_t>& what, std::uint32_t first, std::uint64_t homes, std::vector<hpeAccess> uses)
      : first_(first) {
    EXPECT_EQ(hpeAnnounce(&announced_, homes, uses.data(), uses.size()), HPE_SUCCESS) << hpeGetLastErrorMessage();
    thread_ = std::thread([this, &what, first] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(hpeAnnouncedBegin(announced_), HPE_SUCCESS);
      hpe::launch(test_kernel().fill, hpe::grid(4), {what.data(), count, first}, out(what));
      seen_ = what[1];  // this thread waits only for its own work, which it has queued
      EXPECT_EQ(hpeAnnouncedEnd(announced_), HPE_SUCCESS);
    });
  }
  ~filled_later() {
    thread_.join();
    EXPECT_EQ(seen_, first_ + 1);
  }
  filled_later(const filled_later&) = delete;
  filled_later& operator=(const filled_later&) = delete;

 private:
  hpeAnnouncement announced_ = nullptr;
  const std::uint32_t first_;
  std::uint32_t seen_ = 0;
  std::thread thread_;
};

class Announce : public testing::Test {
 protected:
  Announce() : it_(count), other_(count) {
    hpe::launch(test_kernel().fill, hpe::grid(4), {it_.data(), count, 1}, out(it_));
    hpe::launch(test_kernel().fill, hpe::grid(4), {other_.data(), count, 1}, out(other_));
  }
  hpeAccess access(hpe::array<std::uint32_t>& of, hpeAccessMode mode) {
    return {of.data(), count * sizeof(std::uint32_t), mode};
  }

  hpe::array<std::uint32_t> it_;
  hpe::array<std::uint32_t> other_;
};

TEST_F(Announce, ATouchWaitsForAllMemoryOfADevice) {
  it_[3] = 0;  // opens the view before the work is announced
  const filled_later later(it_, 100, 1, {});
  EXPECT_EQ(it_[3], 103U);
}

TEST_F(Announce, ATouchWaitsForNamedBytes) {
  const filled_later later(it_, 200, 0, {access(it_, HPE_OUT)});
  EXPECT_EQ(it_[count - 1], 200U + count - 1);
}

TEST_F(Announce, ACallbackOfAStreamEndsTheWorkAlsoIfTheStreamHasFailed) {
  const hpeAccess writes = access(it_, HPE_OUT);
  for (const int status : {0, 700}) {
    hpeAnnouncement announced = nullptr;
    ASSERT_EQ(hpeAnnounce(&announced, 0, &writes, 1), HPE_SUCCESS) << hpeGetLastErrorMessage();
    std::atomic<bool> has_ended = false;
    std::thread stream([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      has_ended = true;
      hpeAnnouncedEndOnStream(nullptr, status, announced);
    });
    EXPECT_EQ(it_[3], 4U);
    EXPECT_TRUE(has_ended);
    stream.join();
  }
}

TEST_F(Announce, ACopyASystemCallAndALaunchWait) {
  std::vector<std::uint32_t> copied(count);
  {
    const filled_later later(it_, 300, 1, {});
    hpe::check(hpeMemcpy(copied.data(), it_.data(), count * sizeof(std::uint32_t)));
    EXPECT_EQ(copied[7], 307U);
  }
  {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const filled_later later(it_, 400, 1, {});
    EXPECT_EQ(::write(ends[1], &it_.data()[5], 4), 4);
    std::uint32_t seen = 0;
    EXPECT_EQ(::read(ends[0], &seen, 4), 4);
    EXPECT_EQ(seen, 405U);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  {
    const filled_later later(it_, 500, 1, {});
    hpe::launch(test_kernel().fill, hpe::grid(4), {it_.data(), count, 600}, out(it_));
    EXPECT_EQ(it_[0], 600U);
  }
}

TEST_F(Announce, ALaunchThatWritesWaitsForAnnouncedReaders) {
  const hpeAccess reads = access(it_, HPE_IN);
  hpeAnnouncement announced = nullptr;
  ASSERT_EQ(hpeAnnounce(&announced, 0, &reads, 1), HPE_SUCCESS) << hpeGetLastErrorMessage();
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(hpeAnnouncedBegin(announced), HPE_SUCCESS);
    hpe::launch(test_kernel().add, hpe::grid(4), {other_.data(), it_.data(), it_.data(), count}, in(it_), out(other_));
    EXPECT_EQ(hpeAnnouncedEnd(announced), HPE_SUCCESS);
  });
  hpe::launch(test_kernel().fill, hpe::grid(4), {it_.data(), count, 600}, out(it_));
  reader.join();
  EXPECT_EQ(other_[7], 16U);
  EXPECT_EQ(it_[7], 607U);
}

TEST_F(Announce, OthersAndReadersAreNotHeldUp) {
  hpeAnnouncement reads = nullptr;
  const hpeAccess all = access(it_, HPE_IN);
  ASSERT_EQ(hpeAnnounce(&reads, 0, &all, 1), HPE_SUCCESS);
  EXPECT_EQ(it_[9], 10U);
  EXPECT_EQ(other_[9], 10U);
  other_[9] = 5;
  std::atomic<bool> written{false};
  std::thread writer([&] {
    it_[9] = 7;
    written = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(written);
  EXPECT_EQ(hpeAnnouncedEnd(reads), HPE_SUCCESS);
  writer.join();
  EXPECT_EQ(it_[9], 7U);
}

TEST_F(Announce, AllAllocationsOfADeviceAreClosedToTheHost) {
  std::vector<hpe::array<std::uint32_t>> arrays;
  for (int i = 0; i < 40; ++i) arrays.emplace_back(count, hpe::on_device(i % 2));
  for (const unsigned device : {0U, 1U}) {
    for (auto& a : arrays) a[5] = 1;
    hpeAnnouncement work = nullptr;
    ASSERT_EQ(hpeAnnounce(&work, 1U << device, nullptr, 0), HPE_SUCCESS);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      hpePointerInfo info{};
      hpe::check(hpeGetPointerInfo(arrays[i].data() + 5, &info));
      EXPECT_EQ(info.on_host, i % 2 == device ? 0 : 1) << "array " << i;
    }
    EXPECT_EQ(hpeAnnouncedEnd(work), HPE_SUCCESS);
  }
}

TEST_F(Announce, HostMemoryIsNotHeldUp) {
  void* p = nullptr;
  hpe::check(hpeMallocHost(&p, 100));
  hpeAnnouncement work = nullptr;
  int ordinary = 0;
  const hpeAccess uses[] = {{p, 100, HPE_INOUT}, {&ordinary, sizeof ordinary, HPE_INOUT}};
  ASSERT_EQ(hpeAnnounce(&work, 1, uses, 2), HPE_SUCCESS);
  static_cast<char*>(p)[3] = 5;
  EXPECT_EQ(static_cast<char*>(p)[3], 5);
  EXPECT_EQ(hpeAnnouncedEnd(work), HPE_SUCCESS);
  hpe::check(hpeFree(p));
}

TEST_F(Announce, AFreeWaitsForWorkThatMayUseTheMemory) {
  const auto on_device = [](void** made, std::size_t bytes) { return hpeMallocOn(made, bytes, 0); };
  for (const bool named : {false, true}) {
    for (const auto allocate : {+on_device, &hpeMallocHost, &hpeMallocOpen}) {
      for (const std::size_t bytes : {std::size_t{100}, std::size_t{4} << 20}) {
        void* p = nullptr;
        hpe::check(allocate(&p, bytes));
        const hpeAccess use{static_cast<char*>(p) + bytes - 1, 1, HPE_IN};
        hpeAnnouncement work = nullptr;
        ASSERT_EQ(hpeAnnounce(&work, named ? 0 : 1, &use, named ? 1 : 0), HPE_SUCCESS) << hpeGetLastErrorMessage();
        std::atomic<bool> ended{false};
        std::thread ends([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          ended = true;
          EXPECT_EQ(hpeAnnouncedEnd(work), HPE_SUCCESS);
        });
        EXPECT_EQ(hpeFree(static_cast<char*>(p) + 1), HPE_ERROR_NOT_A_REGION);  // an error needs no wait
        EXPECT_FALSE(ended);
        EXPECT_EQ(hpeFree(p), HPE_SUCCESS) << hpeGetLastErrorMessage();
        EXPECT_TRUE(ended);
        ends.join();
      }
    }
  }
}

TEST_F(Announce, AFreeOfOtherMemoryOrByTheAnnouncedWorkOrOfFinishedWorkDoesNotWait) {
  void *named = nullptr, *other = nullptr, *finished = nullptr;
  for (void** each : {&named, &other, &finished}) hpe::check(hpeMallocOn(each, 1 << 20, 0));
  const hpeAccess uses[] = {{named, 1 << 20, HPE_INOUT}, {finished, 1 << 20, HPE_INOUT}};
  hpeAnnouncement work = nullptr;
  ASSERT_EQ(hpeAnnounce(&work, 0, uses, 2), HPE_SUCCESS);
  EXPECT_EQ(hpeFree(other), HPE_SUCCESS);
  EXPECT_EQ(hpeFreeFinished(finished), HPE_SUCCESS);
  EXPECT_EQ(hpeFreeFinished(nullptr), HPE_SUCCESS);
  EXPECT_EQ(hpeFreeFinished(finished), HPE_ERROR_NOT_A_REGION);
  EXPECT_EQ(hpeAnnouncedBegin(work), HPE_SUCCESS);
  EXPECT_EQ(hpeFree(named), HPE_SUCCESS);
  EXPECT_EQ(hpeAnnouncedEnd(work), HPE_SUCCESS);
}

TEST_F(Announce, AcquiredBytesAreOnTheDeviceAndEarlierWorkHasFinished) {
  const auto on_device = [&] {
    hpePointerInfo info{};
    hpe::check(hpeGetPointerInfo(it_.data(), &info));
    return info.on_device;
  };
  it_[3] = 0;
  EXPECT_FALSE(on_device());
  hpe::launch(test_kernel().increment, hpe::grid(1), {other_.data(), count, 5, 50000}, hpe::inout(other_));
  const hpeAccess uses[] = {access(it_, HPE_IN), access(other_, HPE_INOUT)};
  hpeAnnouncement announced = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(hpeAcquire(&announced, uses, 2), HPE_SUCCESS) << hpeGetLastErrorMessage();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(50));
  EXPECT_TRUE(on_device());
  EXPECT_EQ(it_[4], 5U);  // reads do not wait for readers
  std::atomic<bool> ended{false};
  std::thread toucher([&] {
    EXPECT_EQ(other_[7], 13U);
    EXPECT_TRUE(ended);
  });
  std::thread waiter([&] {
    EXPECT_EQ(hpeWait(it_.data() + 5, 0), HPE_SUCCESS) << hpeGetLastErrorMessage();
    EXPECT_TRUE(ended);
  });
  std::thread next([&] {
    hpeAnnouncement second = nullptr;
    EXPECT_EQ(hpeAcquire(&second, uses, 1), HPE_SUCCESS) << hpeGetLastErrorMessage();  // two readers
    EXPECT_FALSE(ended);
    EXPECT_EQ(hpeAnnouncedEnd(second), HPE_SUCCESS);
    EXPECT_EQ(hpeAcquire(&second, uses + 1, 1), HPE_SUCCESS) << hpeGetLastErrorMessage();
    EXPECT_TRUE(ended);
    EXPECT_EQ(hpeAnnouncedEnd(second), HPE_SUCCESS);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ended = true;
  EXPECT_EQ(hpeAnnouncedEnd(announced), HPE_SUCCESS);
  toucher.join();
  waiter.join();
  next.join();
}

TEST_F(Announce, AWaitIsForOneRange) {
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::steady_clock::now() - begin; };
  hpe::launch(test_kernel().increment, hpe::grid(1), {other_.data(), count, 5, 50000}, hpe::inout(other_));
  EXPECT_EQ(hpeWait(it_.data(), 4), HPE_SUCCESS);
  EXPECT_LT(passed(), std::chrono::milliseconds(50));
  EXPECT_EQ(hpeWait(other_.data(), 4), HPE_SUCCESS);
  EXPECT_GE(passed(), std::chrono::milliseconds(50));
  EXPECT_EQ(hpeWait(it_.data(), count * sizeof(std::uint32_t) + 1), HPE_ERROR_NOT_A_REGION);
  EXPECT_EQ(hpeWait(&begin, 4), HPE_ERROR_NOT_A_REGION);
  EXPECT_EQ(hpeWait(nullptr, 0), HPE_ERROR_NOT_A_REGION);
}

TEST_F(Announce, MistakesAreTold) {
  hpeAnnouncement work = nullptr;
  hpeAnnouncement second = nullptr;
  EXPECT_EQ(hpeAnnounce(nullptr, 1, nullptr, 0), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(hpeAnnounce(&work, 0, nullptr, 1), HPE_ERROR_INVALID_ARGUMENT);
  const hpeAccess wild{it_.data(), count * sizeof(std::uint32_t) + 1, HPE_IN};
  EXPECT_EQ(hpeAnnounce(&work, 0, &wild, 1), HPE_ERROR_NOT_A_REGION);
  const hpeAccess strange{it_.data(), 1, static_cast<hpeAccessMode>(0)};
  EXPECT_EQ(hpeAnnounce(&work, 0, &strange, 1), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(hpeAcquire(nullptr, &wild, 1), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(hpeAcquire(&work, &wild, 1), HPE_ERROR_NOT_A_REGION);
  EXPECT_EQ(hpeAcquire(&work, nullptr, HPE_ALL), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(hpeAnnouncedBegin(nullptr), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(hpeAnnouncedEnd(nullptr), HPE_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(hpeAnnounce(&work, 1, nullptr, 0), HPE_SUCCESS);
  ASSERT_EQ(hpeAnnounce(&second, 1, nullptr, 0), HPE_SUCCESS);
  EXPECT_EQ(hpeAnnouncedBegin(work), HPE_SUCCESS);
  EXPECT_EQ(hpeAnnouncedBegin(second), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(hpeAnnouncedEnd(second), HPE_SUCCESS);  // the thread has not ended the first announcement yet
  EXPECT_EQ(it_[0], 1U);
  EXPECT_EQ(hpeAnnouncedEnd(work), HPE_SUCCESS);
  EXPECT_EQ(it_[0], 1U);
}

}  // namespace

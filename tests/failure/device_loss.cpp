// A device is killed in the middle of its work. Waits for the device end with an error, the host's data survives, and
// the other devices continue.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/failure/child.h"

namespace {

using namespace failure_test;
using hpe::in;
using hpe::inout;
using hpe::out;
using numbers = hpe::array<std::uint32_t>;

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::uint32_t forever = 50'000'000;  // microseconds

void launch_forever(int device, const numbers& a) {
  hpe::launch_on(device, test_kernel().increment, hpe::grid(1), {a.data(), a.size(), 1, forever}, inout(a));
}

void check_status(hpeStatus got, hpeStatus wanted, const std::string& words = {}, call_site where = call_site::here()) {
  check(got == wanted, std::string(hpeStatusName(got)) + ": " + hpeGetLastErrorMessage(), where);
  if (!words.empty())
    check(std::string(hpeGetLastErrorMessage()).find(words) != std::string::npos, hpeGetLastErrorMessage(), where);
}

void check_device_works(int device) {
  const numbers a(mebi, hpe::on_device(device));
  std::iota(a.begin(), a.end(), 0U);
  hpe::launch_on(device, test_kernel().increment, hpe::grid(test_tiles), {a.data(), a.size(), 5, 0}, inout(a));
  for (std::size_t i = 0; i < a.size(); ++i) check(a[i] == i + 5, "a device that is not lost computes wrong values");
}

// Runs the action in another thread, kills a device a moment later, and waits for the end of the action.
void kill_during(int device, const std::function<void()>& action) {
  std::atomic<bool> begun{false};
  std::thread other([&] {
    begun = true;
    action();
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(50ms);
  kill_device(device);
  check_prompt([&] { other.join(); });
}

TEST(DeviceLoss, DuringAnEvictionKeepsDataWithAHostCopy) {
  const ended child = run_child(
      [] {
        constexpr std::size_t part = mebi / 2;  // elements: 2 MiB
        const numbers a(8 * mebi, hpe::on_device(1));
        std::iota(a.begin(), a.end(), 0U);
        const std::size_t touched = a.size() / 2;
        kill_during(1, [&] {
          hpeStatus status = HPE_SUCCESS;
          for (std::size_t at = 0; status == HPE_SUCCESS; at = (at + part) % touched) {
            const increment_parameters p{a.data() + at, part, 1, 1000};
            const hpeAccess access{p.data, part * sizeof(std::uint32_t), HPE_INOUT};
            const hpeShape shape = hpe::grid(test_tiles);
            status = hpeLaunch(1, test_kernel().increment.get(), &shape, &p, sizeof p, &access, 1);
          }
          check_status(status, HPE_ERROR_DEVICE_LOST, "device 1 is lost");
        });
        for (std::size_t i = touched; i < a.size(); ++i) check(a[i] == i, "the host lost data");
        check_device_works(0);
      },
      {{"HPE_DEVICE_MEMORY", "8M"}});
  EXPECT_TRUE(child.well()) << child;
}

TEST(DeviceLoss, SynchronizeReturnsAndLaterCallsSaySo) {
  const ended child = run_child([] {
    const numbers a(1000, hpe::on_device(1));
    launch_forever(1, a);
    kill_during(1, [] { check_status(hpeSynchronize(), HPE_ERROR_DEVICE_LOST, "device 1 is lost"); });
    check(hpeSynchronize() == HPE_SUCCESS, "a loss was reported twice");

    void* p = nullptr;
    check_status(hpeMallocOn(&p, 100, 1), HPE_ERROR_DEVICE_LOST, "device 1 is lost");
    check_status(hpeMallocOn(&p, 10 * mebi, 1), HPE_ERROR_DEVICE_LOST, "device 1 is lost");
    check_status(hpeMallocStriped(&p, 10 * mebi, nullptr), HPE_ERROR_DEVICE_LOST, "device 1 is lost");
    check(p == nullptr, "a failed allocation changed the pointer");
    const hpeShape shape = hpe::grid(1);
    const crash_parameters nothing{};
    check_status(hpeLaunch(1, test_kernel().nothing.get(), &shape, &nothing, sizeof nothing, nullptr, 0),
                 HPE_ERROR_DEVICE_LOST, "device 1 is lost");
    check_device_works(0);
    check_device_works(2);
  });
  EXPECT_TRUE(child.well()) << child;
  EXPECT_TRUE(child.said("device 1 is lost")) << child;
}

TEST(DeviceLoss, AThreadThatWaitsInAPageFaultGetsItsSignal) {
  const ended child = run_child([] {
    const numbers a(1000, hpe::on_device(1));
    launch_forever(1, a);
    kill_during(1, [&] {
      const caught_fault fault = catch_fault([&] { static_cast<void>(*const_cast<volatile std::uint32_t*>(&a[7])); });
      check(fault.happened && fault.address == &a[7], "the handler got another address");
    });
    check_device_works(0);
  });
  EXPECT_TRUE(child.well()) << child;
  EXPECT_TRUE(child.said("cannot be brought to the host")) << child;
}

TEST(DeviceLoss, WithoutAHandlerTheProgramDiesOfTheAccess) {
  const ended child = run_child([] {
    const numbers a(mebi, hpe::on_device(1));
    hpe::launch_on(1, test_kernel().fill, hpe::grid(1), {a.data(), a.size(), 0}, out(a));
    hpe::synchronize();
    kill_device(1);
    check(a[5] == 5);
  });
  EXPECT_TRUE(child.by_signal(SIGSEGV)) << child;
  EXPECT_TRUE(child.said("cannot be brought to the host: device 1 is lost")) << child;
}

TEST(DeviceLoss, CopiesReturn) {
  // A transfer of 256 MiB takes about ten seconds.
  const ended child = run_child(
      [] {
        const std::size_t bytes = 256 * mebi;
        std::vector<std::uint8_t> ordinary(bytes);
        const hpe::array<std::uint8_t> one(bytes, hpe::on_device(1));
        const hpe::array<std::uint8_t> two(bytes, hpe::on_device(2));
        hpe::fill(one.data(), 1, bytes);
        hpe::synchronize();
        kill_during(1, [&] {
          check_status(hpeMemcpy(ordinary.data(), one.data(), bytes), HPE_ERROR_DEVICE_LOST, "device 1 is lost");
        });
        check_status(hpeSynchronize(), HPE_ERROR_DEVICE_LOST);

        // A copy to a device, which is queued part by part.
        kill_during(2, [&] {
          hpeStatus status = hpeMemcpy(two.data(), ordinary.data(), bytes);
          if (status == HPE_SUCCESS) status = hpeSynchronize();
          check_status(status, HPE_ERROR_DEVICE_LOST, "device 2 is lost");
        });
      },
      {{"HPE_SOFT_HOST_LINK", "24M:0"}});
  EXPECT_TRUE(child.well()) << child;
}

TEST(DeviceLoss, FreeReturns) {
  const ended child = run_child([] {
    for (const std::size_t n : {std::size_t{100}, mebi}) {
      numbers a(n, hpe::on_device(n == mebi ? 1 : 2));
      launch_forever(n == mebi ? 1 : 2, a);
      kill_during(n == mebi ? 1 : 2, [&] { check_status(hpeFree(a.data()), HPE_SUCCESS); });
      check_status(hpeFree(a.data()), HPE_ERROR_NOT_A_REGION);
    }
    check_device_works(0);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(DeviceLoss, WorkOfOtherDevicesThatWaitsForItGoesOn) {
  const ended child = run_child([] {
    const numbers a(1000, hpe::on_device(0));
    launch_forever(1, a);
    hpe::launch_on(2, test_kernel().increment, hpe::grid(1), {a.data(), a.size(), 1, 0}, inout(a));
    kill_during(1, [] { check_status(hpeSynchronize(), HPE_ERROR_DEVICE_LOST, "device 1 is lost"); });
    check(a[3] <= 2, "the data of device 0 is wrong");
    check_device_works(2);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(DeviceLoss, SurvivorsOfATeamAreReleased) {
  const ended child = run_child([] {
    const numbers arrived(1, hpe::on_device(0));
    const numbers results(300, hpe::on_device(0));
    std::vector<hpe::team_member<meet_parameters>> members;
    for (int d = 0; d < 3; ++d)
      members.push_back({d, hpe::grid(4), {arrived.data(), 1000, results.data() + std::ptrdiff_t{100} * d}});
    hpe::launch_team(test_kernel().meet, members, {inout(arrived), inout(results)});
    std::string told;
    kill_during(1, [&] {
      hpeStatus status = HPE_SUCCESS;
      while ((status = hpeSynchronize()) != HPE_SUCCESS) told += std::string(hpeGetLastErrorMessage()) + "\n";
    });
    for (const char* words : {"device 1 is lost", "on device 0 was stopped, because device 1 is lost",
                              "on device 2 was stopped, because device 1 is lost"})
      check(told.find(words) != std::string::npos, told);
    check_device_works(0);
    check_device_works(2);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(DeviceLoss, AProgramThatClosesAllItsFilesGetsAnError) {
  const ended child = run_child([] {
    ::alarm(20);
    const numbers a(mebi, hpe::on_device(0)), b(mebi, hpe::on_device(1));
    hpe::fill(b.data(), 1, mebi * 4);
    hpe::synchronize();
    launch_forever(0, a);
    ::closefrom(3);
    check_prompt([] { check_status(hpeSynchronize(), HPE_ERROR_DEVICE_LOST); });
    std::vector<std::uint32_t> ordinary(mebi);
    for (const numbers* each : {&a, &b})
      check_prompt(
          [&] { check_status(hpeMemcpy(each->data(), ordinary.data(), mebi * 4), HPE_ERROR_DEVICE_LOST, "is lost"); });
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(DeviceLoss, DataWithAHostCopySurvives) {
  const ended child = run_child([] {
    const std::size_t n = 3 * mebi;
    const numbers written(n, hpe::on_device(1));
    const numbers both(n, hpe::on_device(1));
    const numbers small(100, hpe::on_device(1));
    std::iota(written.begin(), written.end(), 0U);
    std::iota(small.begin(), small.end(), 0U);
    hpe::launch_on(1, test_kernel().fill, hpe::grid(test_tiles), {both.data(), n, 0}, out(both));
    for (std::size_t i = 0; i < n; ++i) check(both[i] == i);
    hpe::launch_on(1, test_kernel().nothing, hpe::grid(1), {nullptr}, in(small));
    hpe::synchronize();
    kill_device(1);

    const auto check_all = [&](std::uint32_t more) {
      for (std::size_t i = 0; i < n; ++i) check(written[i] == i + more && both[i] == i + more, std::to_string(i));
      for (std::size_t i = 0; i < small.size(); ++i) check(small[i] == i);
    };
    check_all(0);
    std::vector<std::uint32_t> copy(n);
    check_status(hpeMemcpy(copy.data(), both.data(), n * 4), HPE_SUCCESS);
    for (std::size_t i = 0; i < n; ++i) check(copy[i] == i);

    // Operations that are impossible change nothing.
    check_status(hpeMemcpy(written.data(), copy.data() + 1, n * 4 - 4), HPE_ERROR_DEVICE_LOST, "device 1 is lost");
    check_status(hpeMemset(both.data(), 1, n * 4), HPE_ERROR_DEVICE_LOST, "device 1 is lost");
    check_status(hpeMemcpy(small.data(), copy.data() + 1, 40), HPE_ERROR_DEVICE_LOST, "device 1 is lost");
    check_all(0);

    // The host continues to write; hpe uploads blocks behind the writer, as for all device memory.
    for (std::size_t i = 0; i < n; ++i) written[i] = static_cast<std::uint32_t>(i) + 1;
    for (std::size_t i = 0; i < n; ++i) both[i] += 1;
    check_all(1);

    // The array can move to another device: at once by hpeMigrate, or when a launch on another device uses it.
    check_status(hpeMigrate(written.data(), 2), HPE_SUCCESS);
    for (const numbers* a : {&written, &both})
      hpe::launch_on(0, test_kernel().increment, hpe::grid(test_tiles), {a->data(), n, 1, 0}, inout(*a));
    check_all(2);
    check(hpe::pointer_info(written.data()).device == 2 && hpe::pointer_info(both.data()).device == 0);
  });
  EXPECT_TRUE(child.well()) << child;
}

// The array is striped over three devices, and the host has a copy of it. If a fill or a copy fails because one home is
// lost, the host and the other homes must agree about all bytes.
TEST(DeviceLoss, AFailedFillOrCopyOfAStripedArrayIsTheSameForHostAndDevices) {
  const ended child = run_child([] {
    const std::size_t granule = hpe::granularity() / 4;
    const std::size_t n = 3 * granule;
    const numbers to(n, hpe::cyclic_distribution());
    const numbers from(n, hpe::cyclic_distribution());
    std::vector<std::uint32_t> ordinary(n, 77);
    hpe::launch_on(0, test_kernel().fill, hpe::grid(test_tiles), {to.data(), n, 0}, out(to));
    hpe::fill(from.data(), 1, n * 4);
    for (std::size_t i = 0; i < n; ++i) check(to[i] == i);
    hpe::synchronize();
    kill_device(1);

    check_status(hpeMemset(to.data(), 9, n * 4), HPE_ERROR_DEVICE_LOST, "device 1 is lost");
    check_status(hpeMemcpy(to.data(), from.data(), n * 4), HPE_ERROR_DEVICE_LOST, "device 1 is lost");
    check_status(hpeMemcpy(to.data(), ordinary.data(), n * 4), HPE_ERROR_DEVICE_LOST, "device 1 is lost");
    // The copy may have transferred its first bytes. In any case, each byte must be the same on the host and at the
    // byte's home.
    const std::size_t parts[] = {0, 2};
    for (const std::size_t part : parts) {
      const std::size_t first = part * granule;
      const numbers seen(granule, hpe::on_device(static_cast<int>(part)));
      check_status(hpeMemcpy(seen.data(), to.data() + first, granule * 4), HPE_SUCCESS);
      for (std::size_t i = 0; i < granule; ++i)
        check(seen[i] == to[first + i], "a device sees other bytes than the host");
    }
    for (std::size_t i = granule; i < n; ++i) check(to[i] == i, "bytes after the failed part changed");
  });
  EXPECT_TRUE(child.well()) << child;
}

// The data moves directly from one device to another, without a copy in host memory, which takes half a second.
TEST(DeviceLoss, OfTheNewHomeDuringAMigrationKeepsTheData) {
  const ended child = run_child(
      [] {
        const std::size_t n = 2 * mebi;
        const numbers a(n, hpe::on_device(0));
        hpe::launch_on(0, test_kernel().fill, hpe::grid(test_tiles), {a.data(), n, 3}, out(a));
        hpe::synchronize();
        kill_during(1, [&] { check_status(hpeMigrate(a.data(), 1), HPE_ERROR_DEVICE_LOST, "device 1 is lost"); });
        for (std::size_t i = 0; i < n; ++i) check(a[i] == i + 3, std::to_string(i));
        check(hpeMigrate(a.data(), 2) == HPE_SUCCESS, hpeGetLastErrorMessage());
        hpe::launch_on(2, test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
        for (std::size_t i = 0; i < n; ++i) check(a[i] == i + 4, std::to_string(i));
      },
      {{"HPE_SOFT_PEER_LINK", "16M:0"}, {"HPE_SOFT_HOST_LINK", "32M:0"}});
  EXPECT_TRUE(child.well()) << child;
}

// The host has written a whole array. If a copy into this array fails, the host's bytes that the copy has not reached
// are not lost.
TEST(DeviceLoss, AFailedCopyKeepsTheHostsBytes) {
  const ended child = run_child(
      [] {
        const std::size_t n = 16 * mebi;
        const numbers a(n, hpe::on_device(1));
        std::vector<std::uint32_t> ordinary(n, 77);
        std::iota(a.begin(), a.end(), 0U);
        kill_during(1, [&] {
          hpeStatus status = hpeMemcpy(a.data(), ordinary.data(), n * 4);
          if (status == HPE_SUCCESS) status = hpeSynchronize();
          check_status(status, HPE_ERROR_DEVICE_LOST, "device 1 is lost");
        });
        // The host still has the bytes that the copy had not reached.
        check(a[n - 1] == n - 1, "the end of the array, which the copy had not reached, is lost");
      },
      {{"HPE_SOFT_HOST_LINK", "24M:0"}, {"HPE_ROLLING_WINDOW", "0"}});
  EXPECT_TRUE(child.well()) << child;
}

TEST(DeviceLoss, DataWithoutAHostCopyIsGoneAndReported) {
  const ended child = run_child([] {
    const numbers a(mebi, hpe::on_device(1));
    const numbers host(mebi, hpe::on_device(0));
    hpe::launch_on(1, test_kernel().fill, hpe::grid(1), {a.data(), a.size(), 0}, out(a));
    hpe::synchronize();
    std::iota(host.begin(), host.end(), 0U);
    kill_device(1);

    std::vector<std::uint32_t> copy(a.size());
    check_status(hpeMemcpy(copy.data(), a.data(), a.size() * 4), HPE_ERROR_DEVICE_LOST, "device 1 is lost");
    check_status(hpeMigrate(a.data(), 0), HPE_ERROR_DEVICE_LOST, "device 1 is lost");

    // A launch that reads the lost array fails and changes nothing.
    const hpeShape shape = hpe::grid(1);
    const add_parameters p{host.data(), host.data(), a.data(), a.size()};
    const hpeAccess uses[] = {{host.data(), 0, HPE_INOUT}, {a.data(), 0, HPE_IN}};
    check_status(hpeLaunch(0, test_kernel().add.get(), &shape, &p, sizeof p, uses, 2), HPE_ERROR_DEVICE_LOST,
                 "device 1 is lost");
    for (std::size_t i = 0; i < host.size(); ++i) check(host[i] == i, "a failed launch lost the host's writes");

    // The lost array can be freed.
    check_status(hpeFree(a.data()), HPE_SUCCESS);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(DeviceLoss, ThePartsOfAStripedArrayOnOtherDevicesAreThere) {
  const ended child = run_child([] {
    const std::size_t n = 12 * mebi;
    const numbers a(n, hpe::cyclic_distribution());
    hpe::launch_on(0, test_kernel().fill, hpe::grid(test_tiles), {a.data(), n, 0}, out(a));
    hpe::synchronize();
    kill_device(1);
    const std::size_t granule = hpe::granularity() / 4;
    std::size_t good = 0;
    for (std::size_t g = 0; g < n / granule; ++g) {
      if (g % 3 == 1) continue;
      for (std::size_t i = g * granule; i < (g + 1) * granule; ++i) check(a[i] == i);
      ++good;
    }
    check(good == 16);
  });
  EXPECT_TRUE(child.well()) << child;
}

}  // namespace

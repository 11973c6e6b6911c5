// Kernels that crash, launches that are impossible, and memory that runs out.

#include "tests/core/kernels.h"

#include <numeric>

#include "hpe/hpe.hpp"
#include "tests/failure/child.h"

namespace {

using namespace failure_test;
using hpe::inout;
using hpe::out;
using numbers = hpe::array<std::uint32_t>;

constexpr std::size_t mebi = std::size_t{1} << 20;

void check_says(hpeStatus got, hpeStatus wanted, std::initializer_list<const char*> words,
                call_site where = call_site::here()) {
  const std::string text = hpeGetLastErrorMessage();
  check(got == wanted, std::string(hpeStatusName(got)) + ": " + text, where);
  for (const char* word : words) check(text.find(word) != std::string::npos, text + " lacks " + word, where);
}

TEST(KernelFailure, IsReportedOnceAndTheDeviceGoesOn) {
  const ended child = run_child([] {
    const numbers a(1000);
    std::iota(a.begin(), a.end(), 0U);
    const auto& k = test_kernel();
    hpe::launch(k.crash, hpe::grid(1), {nullptr});
    hpe::launch(k.increment, hpe::grid(1), {a.data(), a.size(), 1, 0}, inout(a));
    check_says(hpeSynchronize(), HPE_ERROR_LAUNCH_FAILED, {"\"crash\"", "device 0", "0x0"});
    check(hpeSynchronize() == HPE_SUCCESS, "a failure was reported twice");

    auto* const stray = reinterpret_cast<std::uint32_t*>(std::uintptr_t{0x123450});
    hpe::launch_on(2, k.crash, hpe::grid(1), {stray});
    check(hpeSynchronizeDevice(1) == HPE_SUCCESS);
    check_says(hpeSynchronizeDevice(2), HPE_ERROR_LAUNCH_FAILED, {"\"crash\"", "device 2", "0x123450"});

    const hpe::array<std::int32_t> result(1);
    hpe::launch(k.divide, hpe::grid(1), {result.data(), 0}, out(result));
    check_says(hpeSynchronize(), HPE_ERROR_LAUNCH_FAILED, {"\"divide\"", "zero"});
    hpe::launch(k.divide, hpe::grid(1), {result.data(), 1}, out(result));
    check(result[0] == 1);
    check(hpeSynchronize() == HPE_SUCCESS);
    for (std::size_t i = 0; i < a.size(); ++i) check(a[i] == i + 1);
    check(hpe::device_info(0).lost == 0 && hpe::device_info(2).lost == 0);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(KernelFailure, OfAnAllocationThatWasFreedNamesTheAddress) {
  const ended child = run_child([] {
    std::uint32_t* freed = nullptr;
    {
      const numbers a(mebi);
      freed = a.data();
    }
    hpe::launch(test_kernel().crash, hpe::grid(1), {freed});
    check_says(hpeSynchronize(), HPE_ERROR_LAUNCH_FAILED, {"\"crash\"", "not mapped"});
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(BadLaunch, LeavesEverythingAsItWas) {
  const ended child = run_child([] {
    const numbers a(mebi);
    const numbers b(mebi);
    std::iota(a.begin(), a.end(), 0U);
    std::iota(b.begin(), b.end(), 0U);
    const auto& k = test_kernel();
    const hpeShape shape = hpe::grid(1);
    const increment_parameters p{a.data(), a.size(), 1, 0};
    const auto launch = [&](int device, hpeKernel kernel, std::size_t size, std::initializer_list<hpeAccess> uses) {
      return hpeLaunch(device, kernel, &shape, &p, size, uses.begin(), uses.size());
    };
    const hpeAccess good{a.data(), 0, HPE_OUT};
    hpeKernel const increment = k.increment.get();
    check_says(launch(7, increment, sizeof p, {good}), HPE_ERROR_INVALID_DEVICE, {"no device 7", "0 to 2"});
    check_says(launch(0, nullptr, sizeof p, {good}), HPE_ERROR_INVALID_ARGUMENT, {"kernel"});
    check_says(launch(0, increment, 4001, {good}), HPE_ERROR_INVALID_ARGUMENT, {"increment", "4001", "4000"});
    check_says(launch(0, increment, sizeof p, {good, {b.data(), 4 * mebi + 1, HPE_IN}}), HPE_ERROR_NOT_A_REGION,
               {"4194305 bytes", "1 bytes past the end", "4194304 bytes"});
    check_says(launch(0, increment, sizeof p, {good, {&shape, 4, HPE_IN}}), HPE_ERROR_NOT_A_REGION,
               {"not an address that hpe gave out"});
    check_says(launch(0, increment, sizeof p, {good, {b.data(), 4, static_cast<hpeAccessMode>(0)}}),
               HPE_ERROR_INVALID_ARGUMENT, {"access mode 0"});
    for (std::size_t i = 0; i < mebi; ++i) check(a[i] == i && b[i] == i);
    check(hpeSynchronize() == HPE_SUCCESS);
  });
  EXPECT_TRUE(child.well()) << child;
}

std::uint64_t free_on(int device) { return hpe::device_info(device).memory_free; }

TEST(Launches, WithMoreTilesThanCanBeCountedAreRefused) {
  const ended child = run_child([] {
    const hpeShape shape = {{0xffffffffU, 0xffffffffU, 2}, {1, 1, 1}};
    const crash_parameters p{nullptr};
    check_says(hpeLaunch(0, test_kernel().nothing.get(), &shape, &p, sizeof p, nullptr, 0), HPE_ERROR_INVALID_ARGUMENT,
               {"4294967295 x 4294967295 x 2", "9223372036854775807"});
    const hpeTeamMember member{0, shape, &p};
    check_says(hpeLaunchTeam(&member, 1, test_kernel().nothing.get(), sizeof p, nullptr, 0), HPE_ERROR_INVALID_ARGUMENT,
               {"4294967295 x 4294967295 x 2"});
    hpeModule module = nullptr;
    check_says(hpeModuleLoad(&module, ""), HPE_ERROR_INVALID_ARGUMENT, {"an empty path"});
    check(module == nullptr);
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(Launches, BehindALongKernelDisturbNobodyHoweverManyThereAre) {
  const ended child = run_child([] {
    const numbers busy(1000, hpe::on_device(1));
    const numbers other(mebi, hpe::on_device(1));
    hpe::launch_on(1, test_kernel().fill, hpe::grid(1), {other.data(), other.size(), 0}, out(other));
    hpe::synchronize();
    constexpr std::uint32_t kernels = 2000, long_time = 5'000'000;
    hpe::launch_on(1, test_kernel().increment, hpe::grid(1), {busy.data(), busy.size(), 1, long_time}, inout(busy));
    check_prompt([&] {
      for (std::uint32_t i = 1; i < kernels; ++i)
        hpe::launch_on(1, test_kernel().increment, hpe::grid(1), {busy.data(), busy.size(), 1, 0}, inout(busy));
      for (std::size_t i = 0; i < other.size(); i += 1000) check(other[i] == i);
    });
    check(busy[7] == kernels, std::to_string(busy[7]));
  });
  EXPECT_TRUE(child.well()) << child;
}

TEST(OutOfMemory, NamesTheSizesAndLeaksNothing) {
  const ended child = run_child(
      [] {
        const std::uint64_t all = free_on(0);
        check(all == 64 * mebi);
        void* p = nullptr;
        check_says(hpeMallocOn(&p, 65 * mebi, 0), HPE_ERROR_OUT_OF_MEMORY, {"device 0", "67108864", "69206016"});
        check_says(hpeMallocStriped(&p, 200 * mebi, nullptr), HPE_ERROR_OUT_OF_MEMORY, {"67108864"});
        check(p == nullptr);
        for (int d = 0; d < 3; ++d) check(free_on(d) == all, "a failed allocation keeps memory");
        check_says(hpeMallocOn(&p, std::size_t{1} << 62, 0), HPE_ERROR_OUT_OF_MEMORY, {"4611686018427387904"});
        check_says(hpeMallocStriped(&p, std::size_t{1} << 62, nullptr), HPE_ERROR_OUT_OF_MEMORY,
                   {"4611686018427387904"});
        check_says(hpeMallocStriped(&p, ~std::size_t{0}, nullptr), HPE_ERROR_OUT_OF_MEMORY, {"18446744073709551615"});
        check_says(hpeMallocHost(&p, ~std::size_t{0}), HPE_ERROR_OUT_OF_MEMORY, {"18446744073709551615"});

        std::vector<numbers> full;
        for (int i = 0; i < 32; ++i) full.emplace_back(mebi / 2, hpe::on_device(0));
        check(free_on(0) == 0);
        check_says(hpeMallocOn(&p, 1, 0), HPE_ERROR_OUT_OF_MEMORY, {"device 0 has 0 of"});
        check_says(hpeMallocOn(&p, 300000, 0), HPE_ERROR_OUT_OF_MEMORY, {"device 0"});
        full.pop_back();
        numbers small(10, hpe::on_device(0));
        check(small[9] == 0 && free_on(0) == 0);

        // An array that does not fit on a device stays at its home, with its contents.
        const numbers elsewhere(mebi, hpe::on_device(1));
        std::iota(elsewhere.begin(), elsewhere.end(), 0U);
        hpe::launch_on(1, test_kernel().increment, hpe::grid(1), {elsewhere.data(), mebi, 1, 0}, inout(elsewhere));
        check_says(hpeMigrate(elsewhere.data(), 0), HPE_ERROR_OUT_OF_MEMORY, {"device 0", "4194304"});
        check(hpe::pointer_info(elsewhere.data()).device == 1);
        for (std::size_t i = 0; i < mebi; ++i) check(elsewhere[i] == i + 1);

        small = {};
        full.clear();
        check(free_on(0) == all);
        numbers again(15 * mebi, hpe::on_device(0));
        check(again[15 * mebi - 1] == 0);
      },
      {{"HPE_SOFT_MEMORY", "64M"}, {"HPE_OVERSUBSCRIBE", "off"}});
  EXPECT_TRUE(child.well()) << child;
}

TEST(OutOfMemory, OfAStripedArrayThatIsHalfThereNeedsTheOtherHalf) {
  const ended child = run_child(
      [] {
        const std::size_t n = 24 * mebi;  // 96 MiB, half on each of two devices
        const numbers a(n, hpe::block_distribution({0, 1}));
        std::iota(a.begin(), a.end(), 0U);
        hpe::launch_on(0, test_kernel().increment, hpe::grid(test_tiles), {a.data(), n, 1, 0}, inout(a));
        hpe::migrate(a.data(), 1);
        check(free_on(0) == 100 * mebi && free_on(1) == 4 * mebi);
        for (std::size_t i = 0; i < n; ++i) check(a[i] == i + 1);
      },
      {{"HPE_SOFT_MEMORY", "100M"}});
  EXPECT_TRUE(child.well()) << child;
}

}  // namespace

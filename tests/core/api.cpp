// The contract of every function: an invalid call returns an error status, sets a message that names the error, and
// changes nothing.

#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/core/status.h"

namespace {

using hpe::in;
using hpe::inout;
using hpe::out;
using numbers = hpe::array<std::uint32_t>;

constexpr std::size_t mebi = std::size_t{1} << 20;

std::string text_of(const void* p) {
  char text[40];
  std::snprintf(text, sizeof text, "%p", p);
  return text;
}

// An array in which each element equals its index. untouched() checks that no element has changed.
struct witness {
  numbers array{mebi};
  witness() { std::iota(array.begin(), array.end(), 0U); }
  [[nodiscard]] bool untouched() const {
    for (std::size_t i = 0; i < array.size(); ++i)
      if (array[i] != i) return false;
    return true;
  }
};

std::uint64_t memory_in_use(int device) {
  const hpeDeviceInfo info = hpe::device_info(device);
  return info.memory_total - info.memory_free;
}

TEST(api, StatusesHaveTheirNames) {
  EXPECT_STREQ(hpeStatusName(HPE_SUCCESS), "HPE_SUCCESS");
  EXPECT_STREQ(hpeStatusName(HPE_ERROR_DEVICE_LOST), "HPE_ERROR_DEVICE_LOST");
  EXPECT_NE(hpeStatusName(static_cast<hpeStatus>(15)), nullptr);
}

TEST(api, TheVersionIsTheHeaders) {
  EXPECT_EQ(hpeVersion(), HPE_VERSION);
  EXPECT_EQ(HPE_VERSION, HPE_VERSION_MAJOR * 10000 + HPE_VERSION_MINOR * 100 + HPE_VERSION_PATCH);
  EXPECT_STREQ(HPE_TEST_PACKAGE_VERSION, (std::to_string(HPE_VERSION_MAJOR) + "." + std::to_string(HPE_VERSION_MINOR) +
                                          "." + std::to_string(HPE_VERSION_PATCH))
                                             .c_str());
}

TEST(api, TheLastSentenceBelongsToTheThread) {
  EXPECT_TRUE(fails(hpeSetDevice(1234), HPE_ERROR_INVALID_DEVICE, {"1234"}));
  std::thread([] {
    EXPECT_STREQ(hpeGetLastErrorMessage(), "");
    EXPECT_TRUE(fails(hpeSetDevice(-5), HPE_ERROR_INVALID_DEVICE, {"-5"}));
  }).join();
  int count = 0;
  ASSERT_EQ(hpeGetDeviceCount(&count), HPE_SUCCESS);
  EXPECT_NE(std::string(hpeGetLastErrorMessage()).find("1234"), std::string::npos);
}

std::string sentence_of_main;

void end_as_sentences_stay() {
  const bool stays = sentence_of_main == hpeGetLastErrorMessage();
  const bool has_another = hpeSetDevice(77) != HPE_SUCCESS && std::strstr(hpeGetLastErrorMessage(), "77") != nullptr;
  ::_exit(stays && has_another ? 7 : 1);
}

TEST(api, ExitHandlersHaveTheLastSentence) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        std::atexit(end_as_sentences_stay);
        static_cast<void>(hpeSetDevice(99));
        sentence_of_main = hpeGetLastErrorMessage();
        std::exit(2);
      },
      testing::ExitedWithCode(7), "");
}

TEST(api, AnswersNeedAPlace) {
  EXPECT_TRUE(fails(hpeGetDeviceCount(nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeGetDeviceCount"}));
  EXPECT_TRUE(fails(hpeGetDeviceInfo(0, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeGetDeviceInfo"}));
  EXPECT_TRUE(fails(hpeGetDevice(nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeGetDevice"}));
  EXPECT_TRUE(fails(hpeMalloc(nullptr, 10), HPE_ERROR_INVALID_ARGUMENT, {"address"}));
  EXPECT_TRUE(fails(hpeMallocOn(nullptr, 10, 0), HPE_ERROR_INVALID_ARGUMENT, {"address"}));
  EXPECT_TRUE(fails(hpeMallocHost(nullptr, 10), HPE_ERROR_INVALID_ARGUMENT, {"address"}));
  EXPECT_TRUE(fails(hpeMallocOpen(nullptr, 10), HPE_ERROR_INVALID_ARGUMENT, {"address"}));
  EXPECT_TRUE(fails(hpeMallocStriped(nullptr, 10, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"address"}));
  EXPECT_TRUE(fails(hpeGetGranularity(nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeGetGranularity"}));
  EXPECT_TRUE(fails(hpeGetPointerInfo(nullptr, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeGetPointerInfo"}));
  EXPECT_TRUE(fails(hpeModuleLoad(nullptr, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeModuleLoad"}));
  EXPECT_TRUE(fails(hpeGetOptions(nullptr, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeGetOptions"}));
  EXPECT_TRUE(fails(hpeGetStatistics(nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeGetStatistics"}));
}

TEST(api, DevicesAreNumberedFromZero) {
  const int count = hpe::device_count();
  hpe::set_device(1);
  void* p = nullptr;
  hpeDeviceInfo info{};
  for (const int bad : {-1, -7, count, INT_MAX, INT_MIN}) {
    const std::string number = std::to_string(bad);
    EXPECT_TRUE(fails(hpeGetDeviceInfo(bad, &info), HPE_ERROR_INVALID_DEVICE, {number, "0 to"}));
    EXPECT_TRUE(fails(hpeSetDevice(bad), HPE_ERROR_INVALID_DEVICE, {number}));
    EXPECT_TRUE(fails(hpeMallocOn(&p, 10, bad), HPE_ERROR_INVALID_DEVICE, {number}));
    EXPECT_TRUE(fails(hpeSynchronizeDevice(bad), HPE_ERROR_INVALID_DEVICE, {number}));
  }
  EXPECT_EQ(hpe::get_device(), 1);
  EXPECT_EQ(p, nullptr);
  hpe::set_device(0);
}

TEST(api, DeviceInfoIsPlausible) {
  for (int d = 0; d < hpe::device_count(); ++d) {
    const hpeDeviceInfo info = hpe::device_info(d);
    EXPECT_TRUE(info.kind == HPE_DEVICE_SOFT || info.kind == HPE_DEVICE_CUDA);
    EXPECT_GT(std::strlen(info.name), 0U);
    EXPECT_GT(info.memory_total, 0U);
    EXPECT_LE(info.memory_free, info.memory_total);
    EXPECT_GE(info.compute_units, 1U);
    EXPECT_EQ(info.lost, 0);
    EXPECT_NE(info.peers & (std::uint64_t{1} << d), 0U);
    EXPECT_EQ(info.peers >> hpe::device_count(), 0U);
    const numbers a(3 * mebi, hpe::on_device(d));
    EXPECT_EQ(hpe::device_info(d).memory_free, info.memory_free - 12 * mebi);
  }
}

TEST(api, AllocationsOfNothingOrTooMuchFail) {
  void* p = &p;
  const std::uint64_t before = memory_in_use(0);
  EXPECT_TRUE(fails(hpeMalloc(&p, 0), HPE_ERROR_INVALID_ARGUMENT, {"0 bytes"}));
  EXPECT_TRUE(fails(hpeMallocOn(&p, 0, 0), HPE_ERROR_INVALID_ARGUMENT, {"0 bytes"}));
  EXPECT_TRUE(fails(hpeMallocHost(&p, 0), HPE_ERROR_INVALID_ARGUMENT, {"0 bytes"}));
  EXPECT_TRUE(fails(hpeMallocStriped(&p, 0, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"0 bytes"}));
  EXPECT_TRUE(fails(hpeMalloc(&p, SIZE_MAX), HPE_ERROR_OUT_OF_MEMORY, {std::to_string(SIZE_MAX)}));
  EXPECT_TRUE(fails(hpeMallocHost(&p, SIZE_MAX), HPE_ERROR_OUT_OF_MEMORY, {std::to_string(SIZE_MAX)}));
  EXPECT_EQ(p, &p);
  EXPECT_EQ(memory_in_use(0), before);
}

TEST(api, DistributionsMustMeanSomething) {
  void* p = nullptr;
  const int devices[] = {0, 99};
  const auto spread = [&](hpeDistribution d) { return hpeMallocStriped(&p, 10 * mebi, &d); };
  EXPECT_TRUE(fails(spread({static_cast<hpeDistributionKind>(3), 0, nullptr, 0}), HPE_ERROR_INVALID_ARGUMENT, {"3"}));
  EXPECT_TRUE(fails(spread({HPE_DISTRIBUTE_BLOCK, 0, devices, 2}), HPE_ERROR_INVALID_DEVICE, {"99"}));
  EXPECT_TRUE(fails(spread({HPE_DISTRIBUTE_CYCLIC, 0, devices, 0}), HPE_ERROR_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(spread({HPE_DISTRIBUTE_BLOCK_CYCLIC, 0, nullptr, 0}), HPE_ERROR_INVALID_ARGUMENT, {"chunk"}));
  EXPECT_EQ(p, nullptr);
}

TEST(api, FreeTakesAddressesOfMalloc) {
  EXPECT_EQ(hpeFree(nullptr), HPE_SUCCESS);
  int ordinary = 0;
  EXPECT_TRUE(fails(hpeFree(&ordinary), HPE_ERROR_NOT_A_REGION, {text_of(&ordinary)}));
  for (const std::size_t size : {std::size_t{1000}, 4 * mebi}) {
    void* p = nullptr;
    ASSERT_EQ(hpeMalloc(&p, size), HPE_SUCCESS);
    auto* bytes = static_cast<std::uint8_t*>(p);
    bytes[10] = 3;
    EXPECT_TRUE(fails(hpeFree(bytes + 10), HPE_ERROR_NOT_A_REGION, {"10 bytes inside", std::to_string(size)}));
    EXPECT_EQ(bytes[10], 3);
    EXPECT_EQ(hpeFree(p), HPE_SUCCESS);
    EXPECT_TRUE(fails(hpeFree(p), HPE_ERROR_NOT_A_REGION,
                      {text_of(p), "0 bytes inside an allocation of " + std::to_string(size) + " bytes", "freed"}));
  }
}

TEST(api, CopiesStayInTheirAllocations) {
  const witness a;
  const witness b;
  std::vector<std::uint32_t> ordinary(mebi);
  auto* const p = a.array.data();
  const std::size_t size = mebi * 4;
  EXPECT_TRUE(fails(hpeMemcpy(nullptr, p, 4), HPE_ERROR_INVALID_ARGUMENT, {"null destination"}));
  EXPECT_TRUE(fails(hpeMemcpy(p, nullptr, 4), HPE_ERROR_INVALID_ARGUMENT, {"null source"}));
  EXPECT_TRUE(fails(hpeMemcpy(p, ordinary.data(), size + 1), HPE_ERROR_NOT_A_REGION, {"1 bytes past the end"}));
  EXPECT_TRUE(fails(hpeMemcpy(ordinary.data(), p + 1, size), HPE_ERROR_NOT_A_REGION, {"4 bytes past the end"}));
  EXPECT_TRUE(fails(hpeMemcpy(p, p + 10, 100), HPE_ERROR_INVALID_ARGUMENT, {"overlap", "100 bytes"}));
  EXPECT_TRUE(fails(hpeMemcpy(p + 10, p, 100), HPE_ERROR_INVALID_ARGUMENT, {"overlap"}));
  EXPECT_TRUE(fails(hpeMemcpy(ordinary.data(), ordinary.data() + 1, 100), HPE_ERROR_INVALID_ARGUMENT, {"overlap"}));
  EXPECT_TRUE(fails(hpeMemcpy(p + (mebi << 16), ordinary.data(), 4), HPE_ERROR_NOT_A_REGION, {"no allocation"}));
  EXPECT_EQ(hpeMemcpy(nullptr, nullptr, 0), HPE_SUCCESS);
  EXPECT_EQ(hpeMemcpy(p, p, 0), HPE_SUCCESS);
  EXPECT_TRUE(a.untouched() && b.untouched());
  EXPECT_EQ(hpeMemcpy(p, p + 25, 100), HPE_SUCCESS);  // the ranges are adjacent
  EXPECT_EQ(a.array[0], 25U);
}

TEST(api, FillsStayInTheirAllocation) {
  const witness a;
  EXPECT_TRUE(fails(hpeMemset(nullptr, 1, 4), HPE_ERROR_INVALID_ARGUMENT, {"null"}));
  EXPECT_TRUE(fails(hpeMemset(a.array.data() + 1, 1, mebi * 4), HPE_ERROR_NOT_A_REGION, {"4 bytes past the end"}));
  EXPECT_EQ(hpeMemset(a.array.data(), 1, 0), HPE_SUCCESS);
  EXPECT_TRUE(a.untouched());
  std::uint32_t ordinary = 0;
  EXPECT_EQ(hpeMemset(&ordinary, 0x1ff, 4), HPE_SUCCESS);  // only the lowest byte of the value counts, as for memset
  EXPECT_EQ(ordinary, 0xffffffffU);
}

TEST(api, HintsNameAnAllocation) {
  const witness a;
  int ordinary = 0;
  EXPECT_TRUE(fails(hpePrefetch(&ordinary, 4, 0), HPE_ERROR_NOT_A_REGION, {text_of(&ordinary)}));
  EXPECT_TRUE(fails(hpePrefetch(nullptr, 4, 0), HPE_ERROR_NOT_A_REGION));
  EXPECT_TRUE(fails(hpePrefetch(a.array.data(), mebi * 4 + 1, 0), HPE_ERROR_NOT_A_REGION, {"past the end"}));
  EXPECT_TRUE(fails(hpePrefetch(a.array.data(), 0, 55), HPE_ERROR_INVALID_DEVICE, {"55"}));
  EXPECT_TRUE(fails(hpeAdvise(a.array.data(), static_cast<hpeAdvice>(5)), HPE_ERROR_INVALID_ARGUMENT, {"5"}));
  EXPECT_TRUE(fails(hpeAdvise(&ordinary, HPE_ADVISE_LAZY), HPE_ERROR_NOT_A_REGION, {text_of(&ordinary)}));
  EXPECT_TRUE(fails(hpeMigrate(&ordinary, 0), HPE_ERROR_NOT_A_REGION, {text_of(&ordinary)}));
  EXPECT_TRUE(fails(hpeMigrate(a.array.data(), 44), HPE_ERROR_INVALID_DEVICE, {"44"}));
  const numbers host(10, hpe::on_host());
  EXPECT_TRUE(fails(hpeMigrate(host.data(), 0), HPE_ERROR_NOT_SUPPORTED, {"host memory"}));
  EXPECT_TRUE(a.untouched());
}

TEST(api, ModulesAndKernelsAreFoundByName) {
  hpeModule module = nullptr;
  hpeModule again = nullptr;
  hpeKernel kernel = nullptr;
  EXPECT_TRUE(fails(hpeModuleLoad(&module, "/no/such/file.so"), HPE_ERROR_NOT_FOUND, {"/no/such/file.so"}));
  EXPECT_EQ(module, nullptr);
  ASSERT_EQ(hpeModuleLoad(&module, test_kernels_path()), HPE_SUCCESS);
  ASSERT_EQ(hpeModuleLoad(&again, test_kernels_path()), HPE_SUCCESS);
  EXPECT_EQ(module, again);
  EXPECT_TRUE(fails(hpeModuleGetKernel(&kernel, module, "absent"), HPE_ERROR_NOT_FOUND, {"absent"}));
  EXPECT_TRUE(fails(hpeModuleGetKernel(&kernel, module, "absent"), HPE_ERROR_NOT_FOUND, {"absent"}));
  EXPECT_TRUE(fails(hpeModuleGetKernel(&kernel, module, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"name"}));
  EXPECT_TRUE(fails(hpeModuleGetKernel(&kernel, nullptr, "fill"), HPE_ERROR_INVALID_ARGUMENT, {"module"}));
  EXPECT_TRUE(fails(hpeModuleGetKernel(nullptr, module, "fill"), HPE_ERROR_INVALID_ARGUMENT, {"pointer"}));
  EXPECT_EQ(kernel, nullptr);
  EXPECT_EQ(hpeModuleGetKernel(&kernel, module, "fill"), HPE_SUCCESS);
}

TEST(api, LaunchesAreChecked) {
  const witness a;
  const auto& k = test_kernel();
  hpeKernel const increment = k.increment.get();
  const hpeShape shape = hpe::grid(1);
  const increment_parameters p{a.array.data(), mebi, 1, 0};
  const hpeAccess whole{a.array.data(), 0, HPE_INOUT};
  EXPECT_TRUE(fails(hpeLaunch(0, nullptr, &shape, &p, sizeof p, &whole, 1), HPE_ERROR_INVALID_ARGUMENT, {"kernel"}));
  EXPECT_TRUE(fails(hpeLaunch(9, increment, &shape, &p, sizeof p, &whole, 1), HPE_ERROR_INVALID_DEVICE, {"9"}));
  EXPECT_TRUE(fails(hpeLaunch(HPE_HOST, increment, &shape, &p, sizeof p, &whole, 1), HPE_ERROR_INVALID_DEVICE));
  EXPECT_TRUE(fails(hpeLaunch(0, increment, &shape, nullptr, 8, &whole, 1), HPE_ERROR_INVALID_ARGUMENT, {"null"}));
  EXPECT_TRUE(fails(hpeLaunch(0, increment, &shape, &p, HPE_MAX_PARAMETERS + 1, &whole, 1), HPE_ERROR_INVALID_ARGUMENT,
                    {"4001", "4000", "increment"}));
  EXPECT_TRUE(fails(hpeLaunch(0, increment, &shape, &p, sizeof p, nullptr, 2), HPE_ERROR_INVALID_ARGUMENT, {"null"}));
  const hpeAccess wrong[] = {whole, {a.array.data() + 1, mebi * 4, HPE_IN}};
  EXPECT_TRUE(fails(hpeLaunch(0, increment, &shape, &p, sizeof p, wrong, 2), HPE_ERROR_NOT_A_REGION, {"4 bytes past"}));
  for (const std::size_t many : {std::size_t{HPE_MAX_ACCESSES} + 1, SIZE_MAX - 1}) {
    EXPECT_TRUE(fails(hpeLaunch(0, increment, &shape, &p, sizeof p, &whole, many), HPE_ERROR_INVALID_ARGUMENT,
                      {std::to_string(many), std::to_string(HPE_MAX_ACCESSES), "increment"}));
    const auto nothing = [](void*, void*) { return 0; };
    EXPECT_TRUE(fails(hpeEnqueue(0, nothing, nullptr, &whole, many), HPE_ERROR_INVALID_ARGUMENT,
                      {std::to_string(HPE_MAX_ACCESSES)}));
    const hpeTeamMember member{0, shape, &p};
    EXPECT_TRUE(fails(hpeLaunchTeam(&member, 1, increment, sizeof p, &whole, many), HPE_ERROR_INVALID_ARGUMENT,
                      {std::to_string(HPE_MAX_ACCESSES)}));
  }
  const hpeAccess no_mode{a.array.data(), 0, static_cast<hpeAccessMode>(0)};
  EXPECT_TRUE(
      fails(hpeLaunch(0, increment, &shape, &p, sizeof p, &no_mode, 1), HPE_ERROR_INVALID_ARGUMENT, {"mode 0"}));
  EXPECT_TRUE(a.untouched());

  // A null shape means one tile, and zeros count as one.
  const hpeShape zeros{};
  EXPECT_EQ(hpeLaunch(0, increment, nullptr, &p, sizeof p, &whole, 1), HPE_SUCCESS);
  EXPECT_EQ(hpeLaunch(0, increment, &zeros, &p, sizeof p, &whole, 1), HPE_SUCCESS);
  EXPECT_EQ(a.array[7], 9U);
  EXPECT_EQ(hpeSynchronize(), HPE_SUCCESS);
}

TEST(api, EnqueuingIsChecked) {
  witness numbers_of_host;
  const hpeAccess whole = out(numbers_of_host.array);
  const auto nothing = [](void* /*stream*/, void* calls) { return ++*static_cast<int*>(calls) * 0; };
  int calls = 0;
  int expected = 0;
  for (const auto enqueue : {hpeEnqueue, hpeEnqueueLocked}) {
    EXPECT_TRUE(fails(enqueue(0, nullptr, &calls, &whole, 1), HPE_ERROR_INVALID_ARGUMENT, {"function"}));
    EXPECT_TRUE(fails(enqueue(9, nothing, &calls, &whole, 1), HPE_ERROR_INVALID_DEVICE, {"9"}));
    EXPECT_TRUE(fails(enqueue(0, nothing, &calls, nullptr, 1), HPE_ERROR_INVALID_ARGUMENT, {"null"}));
    const hpeAccess elsewhere{&calls, 4, HPE_IN};
    EXPECT_TRUE(fails(enqueue(0, nothing, &calls, &elsewhere, 1), HPE_ERROR_NOT_A_REGION));
    EXPECT_EQ(calls, expected);
    if (hpe::device_info(0).kind == HPE_DEVICE_SOFT) {
      EXPECT_TRUE(fails(enqueue(0, nothing, &calls, &whole, 1), HPE_ERROR_NOT_SUPPORTED, {"soft", "hpeLaunch"}));
      EXPECT_TRUE(fails(enqueue(0, nothing, &calls, nullptr, HPE_ALL), HPE_ERROR_NOT_SUPPORTED, {"device 0"}));
    } else {
      const auto refusing = [](void* /*stream*/, void* /*argument*/) { return 77; };
      EXPECT_TRUE(fails(enqueue(0, refusing, nullptr, &whole, 1), HPE_ERROR_LAUNCH_FAILED, {"77"}));
      EXPECT_EQ(enqueue(0, nothing, &calls, nullptr, HPE_ALL), HPE_SUCCESS);
      ++expected;
    }
    EXPECT_EQ(calls, expected);
  }
  EXPECT_TRUE(numbers_of_host.untouched());
  EXPECT_EQ(hpeSynchronize(), HPE_SUCCESS);
}

// A launch reads the old bytes of a part that it declares as read and written, although another of its accesses
// declares that the whole array is overwritten.
TEST(api, OverlappingAccessesOfALaunchKeepTheOldBytes) {
  for (const bool swapped : {false, true}) {
    const witness a;
    const hpeAccess part = inout(a.array.subspan(0, mebi / 2));
    const hpeAccess whole = out(a.array);
    hpe::launch(test_kernel().increment, hpe::grid(1), {a.array.data(), mebi / 2, 1, 0}, swapped ? whole : part,
                swapped ? part : whole);
    for (std::size_t i = 0; i < mebi / 2; ++i) ASSERT_EQ(a.array[i], i + 1);
  }
}

TEST(api, PointerInfoGivesTheHomeOfAByte) {
  int ordinary = 0;
  for (const void* p : {static_cast<const void*>(nullptr), static_cast<const void*>(&ordinary)}) {
    const hpePointerInfo info = hpe::pointer_info(p);
    EXPECT_EQ(info.kind, HPE_MEMORY_ORDINARY);
    EXPECT_EQ(info.base, nullptr);
    EXPECT_EQ(info.size, 0U);
  }
  {
    const hpe::array<std::uint8_t> a(5 * mebi + 7, hpe::on_device(1));
    const hpePointerInfo info = hpe::pointer_info(a.data() + 5 * mebi);
    EXPECT_EQ(info.kind, HPE_MEMORY_DEVICE);
    EXPECT_EQ(info.base, a.data());
    EXPECT_EQ(info.size, 5 * mebi + 7);
    EXPECT_EQ(info.device, 1);
    EXPECT_GE(info.block, 4096U);
    EXPECT_EQ(info.block & (info.block - 1), 0U);
    EXPECT_EQ(hpe::pointer_info(a.data() + a.size()).kind, HPE_MEMORY_ORDINARY);

    a[5 * mebi] = 1;
    EXPECT_EQ(hpe::pointer_info(a.data() + 5 * mebi).on_host, 1);
    EXPECT_EQ(hpe::pointer_info(a.data() + 5 * mebi).on_device, 0);
    hpe::launch_on(1, test_kernel().nothing, hpe::grid(1), {nullptr}, in(a));
    EXPECT_EQ(hpe::pointer_info(a.data() + 5 * mebi).on_host, 1);
    EXPECT_EQ(hpe::pointer_info(a.data() + 5 * mebi).on_device, 1);
    hpe::launch_on(1, test_kernel().nothing, hpe::grid(1), {nullptr}, inout(a));
    EXPECT_EQ(hpe::pointer_info(a.data() + 5 * mebi).on_host, 0);
    EXPECT_EQ(hpe::pointer_info(a.data() + 5 * mebi).on_device, 1);
  }
  const hpe::array<std::uint8_t> small(300);
  EXPECT_EQ(hpe::pointer_info(small.data() + 299).base, small.data());
  EXPECT_EQ(hpe::pointer_info(small.data() + 299).size, 300U);
  EXPECT_EQ(hpe::pointer_info(small.data() + 300).kind, HPE_MEMORY_ORDINARY);
  const hpe::array<std::uint8_t> host(mebi, hpe::on_host());
  EXPECT_EQ(hpe::pointer_info(host.data()).kind, HPE_MEMORY_HOST);
  EXPECT_EQ(hpe::pointer_info(host.data()).device, HPE_HOST);
  EXPECT_EQ(hpe::pointer_info(host.data()).on_host, 1);
  const std::size_t granule = hpe::granularity();
  const hpe::array<std::uint8_t> striped(5 * granule, hpe::cyclic_distribution({1, 0}));
  for (std::size_t g = 0; g < 5; ++g) {
    const hpePointerInfo info = hpe::pointer_info(striped.data() + g * granule + 5);
    EXPECT_EQ(info.kind, HPE_MEMORY_STRIPED);
    EXPECT_EQ(info.device, g % 2 == 0 ? 1 : 0);
  }
}

TEST(api, StatisticsCountLaunchesFaultsAndBytes) {
  constexpr std::size_t count = mebi + 5000;
  const numbers a(count);
  hpe::check(hpeResetStatistics());
  std::iota(a.begin(), a.end(), 0U);
  hpe::launch(test_kernel().increment, hpe::grid(1), {a.data(), count, 1, 0}, inout(a));
  hpe::launch(test_kernel().nothing, hpe::grid(1), {nullptr});
  EXPECT_EQ(a[count - 1], count);
  hpe::synchronize();
  const hpeStatistics s = hpe::statistics();
  EXPECT_EQ(s.launches, 2U);
  EXPECT_GE(s.bytes_to_device, 4 * count);
  EXPECT_GE(s.bytes_to_host, 1U);
  EXPECT_LT(s.bytes_to_host, 2 * 4 * count);  // the first writes to new memory fetch nothing
  EXPECT_GE(s.faults_read, 1U);
  EXPECT_GE(s.faults_write, 1U);
  EXPECT_GE(s.protections, 2U);
  EXPECT_EQ(s.bytes_peer, 0U);
  EXPECT_EQ(s.migrations, 0U);
  EXPECT_EQ(s.degraded, 0U);

  std::vector<std::uint32_t> ordinary(mebi);
  hpe::copy(ordinary.data(), a.data(), 4 * mebi);
  EXPECT_GE(hpe::statistics().bytes_staged, 3 * mebi);
  hpe::migrate(a.data(), 1);
  EXPECT_EQ(hpe::statistics().migrations, 1U);
  hpe::check(hpeResetStatistics());
  EXPECT_EQ(hpe::statistics().launches, 0U);
}

TEST(api, OptionsAreListed) {
  const hpeOptionInfo* options = nullptr;
  std::size_t count = 0;
  ASSERT_EQ(hpeGetOptions(&options, &count), HPE_SUCCESS);
  bool found = false;
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(std::string(options[i].variable).substr(0, 4), "HPE_");
    EXPECT_GT(std::strlen(options[i].sentence), 10U);
    found = found || std::string(options[i].variable) == "HPE_DEVICES";
  }
  EXPECT_TRUE(found);
}

// ---- hpe.hpp --------------------------------------------------------------------------------------

TEST(view, FailuresAreExceptionsWithStatusAndSentence) {
  try {
    const numbers a(mebi, hpe::on_device(77));
    FAIL() << "no exception";
  } catch (const hpe::error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_INVALID_DEVICE);
    EXPECT_NE(std::string(e.what()).find("77"), std::string::npos);
  }
  EXPECT_THROW(hpe::module("/no/such/file.so"), hpe::error);
  EXPECT_THROW(hpe::kernel<fill_parameters>(test_kernel().module, "absent"), hpe::error);
}

TEST(view, AnArrayOfNothingHoldsNothing) {
  const std::uint64_t before = memory_in_use(0);
  const numbers none(0);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(none.size(), 0U);
  EXPECT_EQ(none.begin(), none.end());
  for (const auto& where : {hpe::on_host(), hpe::on_device(1), hpe::block_distribution()})
    EXPECT_EQ(numbers(0, where).data(), nullptr);
  hpe::launch(test_kernel().fill, hpe::grid(1), {none.data(), 0, 0}, out(none));
  hpe::copy(none.data(), none.data(), 0);
  EXPECT_EQ(memory_in_use(0), before);
  EXPECT_EQ(hpeSynchronize(), HPE_SUCCESS);
}

TEST(view, ACountThatOverflowsIsNoAllocation) {
  EXPECT_THROW(hpe::array<std::uint64_t>(SIZE_MAX / 4), hpe::error);
  EXPECT_THROW(hpe::array<std::uint64_t>((SIZE_MAX / 8) + 2), hpe::error);
}

TEST(view, ArraysMove) {
  const std::uint64_t before = memory_in_use(1);
  {
    numbers a(mebi, hpe::on_device(1));
    std::iota(a.begin(), a.end(), 0U);
    std::uint32_t* const p = a.data();
    numbers b(std::move(a));
    EXPECT_EQ(b.data(), p);
    EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(a.size(), 0U);
    numbers c(10);
    c = std::move(b);
    EXPECT_EQ(c.data(), p);
    EXPECT_EQ(c.size(), mebi);
    EXPECT_EQ(c[mebi - 1], mebi - 1);
    c = numbers();
    EXPECT_EQ(memory_in_use(1), before);
  }
  EXPECT_EQ(memory_in_use(1), before);
}

}  // namespace

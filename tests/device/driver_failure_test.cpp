// Makes each call to the CUDA driver that can fail (failing_driver.h) fail once, in all operations of devices and
// streams. DEVICE_TEST_GPUS names the devices: those of this machine, or those of the stand-in driver.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <thread>

#include "runtime/base/granule.h"
#include "runtime/device/cuda/cuda_set.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/os/virtual_memory.h"
#include "tests/device/failing_driver.h"
#include "tests/device/kernels.h"
#include "tests/device/support.h"
#include "tests/interpose/gpu/failing_memory.h"

namespace device_test {
namespace {

using hpe::timepoint;
using hpe::device::backing_kind;
using hpe::device::priority;

constexpr std::size_t granule = hpe::granule_size;

/// One GPU with a failing driver, a mapped range of two granules, a stream, and host memory.
class failing_machine {
 public:
  /// `limit`: HPE_DEVICE_MEMORY; 0: none.
  explicit failing_machine(std::size_t limit = 0) : limit_(limit) {
    for (const std::size_t at : {std::size_t{0}, granule}) device().map(address(at), granule);
    other_last_ = other_->fill(address(), 0, granule);
  }

  [[nodiscard]] hpe::device::device_set& set() { return *set_; }
  [[nodiscard]] hpe::device::device& device() { return set_->at(0); }
  [[nodiscard]] hpe::device::stream& stream() { return *stream_; }
  [[nodiscard]] std::byte* address(std::size_t at = 0) const {
    return reinterpret_cast<std::byte*>(layout_.base + at);  // NOLINT(performance-no-int-to-ptr): of the layout
  }
  [[nodiscard]] std::byte* host() const { return host_->data(); }
  [[nodiscard]] timepoint elsewhere() const { return other_last_; }
  timepoint launch() {
    const load_parameters none{};
    return stream_->launch(kernel_, {}, std::as_bytes(std::span(&none, 1)));
  }
  /// Whether all bytes of the mapped range are `value`. Waits for all queued work.
  bool holds(std::uint8_t value) {
    stream_->copy(host(), address(), 2 * granule);
    EXPECT_TRUE(set_->wait(stream_->last(), in(5s)));
    return std::all_of(host(), host() + 2 * granule, [&](std::byte b) { return b == std::byte{value}; });
  }

 private:
  [[nodiscard]] hpe::options wanted() const {
    hpe::options result;
    result.device_memory = limit_;
    return result;
  }

  const std::size_t limit_;
  // The segments are reserved, as in the runtime.
  const hpe::uvas_layout layout_ = layout_for(2);
  hpe::os::reservation space_{layout_.base, layout_.size(), granule};
  std::unique_ptr<hpe::device::device_set> set_ =
      std::make_unique<hpe::device::cuda::cuda_set>(failing_driver(), 1, layout_, wanted());
  std::optional<host_buffer> host_{std::in_place, *set_, 2 * granule};
  hpe::device::kernel_id kernel_ = set_->find_kernel(set_->load_module(file_of_kernels()), "empty");
  hpe::device::stream* stream_ = &device().create_stream(priority::launch);
  hpe::device::stream* other_ = &device().create_stream(priority::prefetch);
  timepoint other_last_;
};

struct scenario {
  const char* name;
  std::function<timepoint(failing_machine&)> run;  // returns the timepoint of the work; none() if there is no work
};

// Moves granules in one group.
void move(hpe::device::device& device, std::initializer_list<std::byte*> addresses, backing_kind to,
          bool on_standby = false) {
  const auto moves = device.begin_moves();
  for (std::byte* const each : addresses) moves->add(each, granule, to, on_standby);
  for (const auto& failure : moves->finish())
    if (failure) throw hpe::error(*failure);
}

timepoint nothing(const std::function<void()>& call) {
  call();
  return {};
}

std::vector<scenario> scenarios() {
  return {{"map", [](auto& m) { return nothing([&] { m.device().map(m.address(8 * granule), granule); }); }},
          {"copy", [](auto& m) { return m.stream().copy(m.address(), m.host(), 2 * granule); }},
          {"fill", [](auto& m) { return m.stream().fill(m.address(), 0x77, 2 * granule); }},
          {"launch", [](auto& m) { return m.launch(); }},
          {"enqueue", [](auto& m) { return m.stream().enqueue([](void*) { return 0; }); }},
          {"wait", [](auto& m) { return nothing([&] { m.stream().wait(m.elsewhere()); }); }},
          {"move", [](auto& m) { return nothing([&] { move(m.device(), {m.address()}, backing_kind::zero_copy); }); }},
          {"stream", [](auto& m) { return nothing([&] { m.device().create_stream(priority::launch); }); }}};
}

/// The result of a scenario.
struct outcome {
  // The driver function whose call failed; empty if the scenario made too few calls to reach the call that was to fail.
  std::string failed_entry;
  std::optional<hpe::error> thrown;
  timepoint point;
};

outcome run(failing_machine& m, const scenario& what, std::uint64_t call, CUresult with) {
  outcome result;
  fail_call(call, with);
  try {
    result.point = what.run(m);
  } catch (const hpe::error& e) {
    result.thrown = e;
  }
  result.failed_entry = stop_failing();
  return result;
}

class driver_failures : public testing::TestWithParam<const char*> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(driver_failures);
INSTANTIATE_TEST_SUITE_P(cuda, driver_failures, testing::ValuesIn(DEVICE_TEST_GPUS), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
});

TEST_P(driver_failures, a_failed_call_is_reported_and_leaves_nothing_behind) {
  for (const scenario& what : scenarios()) {
    for (std::uint64_t call = 1;; ++call) {
      failing_machine m;
      m.stream().fill(m.address(), 0x11, 2 * granule);
      ASSERT_TRUE(m.holds(0x11));
      std::fill_n(m.host(), 2 * granule, std::byte{0x77});
      const std::uint64_t launched = successes_of("cuLaunchKernel");

      const outcome came = run(m, what, call, CUDA_ERROR_NOT_PERMITTED);
      if (came.failed_entry.empty()) {
        EXPECT_FALSE(came.thrown) << what.name;
        EXPECT_GT(call, 1U) << what.name << " calls no driver";
        break;
      }
      SCOPED_TRACE(std::string(what.name) + ": call " + std::to_string(call) + ", " + came.failed_entry);
      const bool is_launch = std::string_view(what.name) == "launch";
      const bool writes = std::string_view(what.name) == "copy" || std::string_view(what.name) == "fill";
      if (came.thrown) {
        EXPECT_NE(came.thrown->status(), HPE_ERROR_INTERNAL);
        EXPECT_NE(std::string(came.thrown->what()).find("CUDA_ERROR"), std::string::npos) << came.thrown->what();
        EXPECT_EQ(successes_of("cuLaunchKernel"), launched) << "the launch threw an error, but the kernel runs";
        if (!m.device().lost()) {
          EXPECT_TRUE(m.holds(0x11)) << "the command threw an error, but bytes changed";
        }
      } else {
        EXPECT_TRUE(m.set().wait(came.point, in(5s)));
        const auto failure = m.set().status_of(came.point);
        if (failure) {
          const auto told = m.set().take_failure(0);
          ASSERT_TRUE(told);
          EXPECT_STREQ(told->what(), failure->what());
        }
        if (is_launch && !failure) {
          EXPECT_EQ(successes_of("cuLaunchKernel"), launched + 1);
        }
        if (writes && !failure) {
          EXPECT_TRUE(m.holds(0x77)) << "the command succeeded, but wrote nothing";
        }
      }

      if (m.device().lost()) continue;
      // After the failure, all operations succeed, also at the same addresses.
      EXPECT_FALSE(m.set().take_failure(-1));
      if (std::string_view(what.name) == "map" && !came.thrown) m.device().unmap(m.address(8 * granule), granule);
      m.device().map(m.address(8 * granule), granule);
      m.launch();
      m.stream().fill(m.address(), 0x55, 2 * granule);
      EXPECT_TRUE(m.holds(0x55));
      EXPECT_FALSE(m.set().status_of(m.stream().last()));
    }
    for (const auto& [made, gone] : {std::pair{"cuMemCreate", "cuMemRelease"},
                                     {"cuMemMap", "cuMemUnmap"},
                                     {"cuMemAddressReserve", "cuMemAddressFree"},
                                     {"cuEventCreate", "cuEventDestroy"},
                                     {"cuStreamCreateWithPriority", "cuStreamDestroy"}})
      EXPECT_EQ(successes_of(made), successes_of(gone)) << what.name << " leaks what " << made << " gives";
  }
}

// The driver's own queue is short, and the driver's functions wait while it is full. So a program first calls
// await_room, while it holds no lock.
TEST_P(driver_failures, a_program_that_awaits_room_keeps_the_queue_of_the_driver_short) {
  failing_machine m;
  ASSERT_TRUE(m.holds(0));
  hold_work(true);
  constexpr int many = 3000;
  std::atomic<int> queued{0};
  std::thread program([&] {
    for (; queued < many; ++queued) {
      m.device().await_room(nullptr);
      m.launch();
    }
  });
  for (int last = -1; last != queued; std::this_thread::sleep_for(200ms)) last = queued;
  EXPECT_GE(queued, 100);
  EXPECT_LE(queued, 500);
  hold_work(false);
  program.join();
  EXPECT_TRUE(m.set().wait(m.stream().last(), in(5s)));
}

// A program's streams are independent: a long queue of one delays no work of another.
TEST_P(driver_failures, a_program_awaits_no_room_on_its_other_streams) {
  failing_machine m;
  ASSERT_TRUE(m.holds(0));
  hpe::device::stream& other = m.device().create_stream(priority::launch);
  CUstream elsewhere = nullptr;
  other.enqueue([&](void* stream) {
    elsewhere = static_cast<CUstream>(stream);
    return 0;
  });
  hold_work(true);
  for (int n = 0; n < 400; ++n)
    m.stream().enqueue([&](void*) {
      auto& own = static_cast<hpe::device::cuda::cuda_stream&>(m.stream());
      own.ends_on(elsewhere, hpe::device::cuda::cuda_stream::openness::none);
      return 0;
    });
  std::atomic<bool> has_room{false};
  std::thread of_same([&] {
    m.device().await_room(&m.stream());
    has_room = true;
  });
  m.device().await_room(&other);
  std::this_thread::sleep_for(200ms);
  EXPECT_FALSE(has_room);
  hold_work(false);
  of_same.join();
}

TEST_P(driver_failures, a_call_that_kills_the_context_loses_the_device_and_nothing_waits) {
  for (const scenario& what : scenarios()) {
    for (std::uint64_t call = 1;; ++call) {
      failing_machine m;
      const outcome came = run(m, what, call, CUDA_ERROR_LAUNCH_FAILED);
      if (came.failed_entry.empty()) break;
      SCOPED_TRACE(std::string(what.name) + ": call " + std::to_string(call) + ", " + came.failed_entry);
      EXPECT_TRUE(m.set().wait(m.stream().last(), in(5s)));
      EXPECT_TRUE(m.set().wait(came.point, in(5s)));
      if (m.device().lost()) {
        EXPECT_EQ(thrown_by([&] { m.launch(); }), HPE_ERROR_DEVICE_LOST);
      }
    }
  }
}

TEST_P(driver_failures, a_device_that_is_lost_while_host_memory_is_short_is_reported) {
  for (unsigned allocation = 1;; ++allocation) {
    failing_machine m;
    ASSERT_TRUE(m.holds(0));
    hold_work(true);
    m.launch();
    auto& device = dynamic_cast<hpe::device::cuda::cuda_device&>(m.device());
    failing_memory::arm(allocation);
    device.lose(CUDA_ERROR_LAUNCH_FAILED);
    const bool is_short = failing_memory::disarm();
    hold_work(false);
    SCOPED_TRACE("allocation " + std::to_string(allocation));
    EXPECT_TRUE(device.lost());
    EXPECT_TRUE(m.set().wait(m.stream().last(), in(5s)));
    const auto failure = m.set().status_of(m.stream().last());
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->status(), HPE_ERROR_DEVICE_LOST);
    const std::string words = failure->what();
    EXPECT_EQ(words.find("device 0"), 0U) << words;
    EXPECT_NE(words.find(" is lost"), std::string::npos) << words;
    const auto told = m.set().take_failure(0);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->what(), words);
    EXPECT_FALSE(m.set().take_failure(-1));
    EXPECT_EQ(thrown_by([&] { m.launch(); }), HPE_ERROR_DEVICE_LOST);
    if (is_short) continue;
    EXPECT_GT(allocation, 1U);
    EXPECT_NE(words.find(" is lost: CUDA_ERROR"), std::string::npos) << words;
    EXPECT_NE(words.find("; kernels that were running or queued next: empty"), std::string::npos) << words;
    break;
  }
}

// hpe reuses device memory, because copies run more slowly while the driver creates memory.
TEST_P(driver_failures, memory_of_a_range_serves_the_next_one_of_its_size) {
  failing_machine m;
  m.stream().fill(m.address(), 0x77, 2 * granule);
  EXPECT_TRUE(m.set().wait(m.stream().last(), in(5s)));
  const std::uint64_t created = successes_of("cuMemCreate");
  const std::size_t free = m.device().memory().free;
  m.device().unmap(m.address(), granule);
  m.device().unmap(m.address(granule), granule);
  EXPECT_GE(m.device().memory().free, free);
  for (const std::size_t at : {std::size_t{0}, granule}) m.device().map(m.address(at), granule);
  EXPECT_EQ(successes_of("cuMemCreate"), created);
  EXPECT_TRUE(m.holds(0));

  // Ranges of other sizes get new memory, and the memory of large ranges is released at once.
  constexpr std::size_t large = 64 * granule;
  for (int i = 0; i < 2; ++i) {
    m.device().map(m.address(8 * granule), large);
    m.device().unmap(m.address(8 * granule), large);
  }
  EXPECT_EQ(successes_of("cuMemCreate"), created + 2);
}

TEST_P(driver_failures, kept_memory_counts_against_the_limit) {
  failing_machine m(8 * granule);  // 2 granules are mapped
  const auto held = [] { return successes_of("cuMemCreate") - successes_of("cuMemRelease"); };
  const std::uint64_t before = held();
  for (std::size_t n = 1; n <= 6; ++n) {  // each range has another size
    m.device().map(m.address(8 * granule), n * granule);
    m.device().unmap(m.address(8 * granule), n * granule);
  }
  EXPECT_EQ(held(), before + 1) << "memory of 6 granules is kept, for which there is room";
  m.device().map(m.address(8 * granule), 4 * granule);
  EXPECT_EQ(held(), before + 1) << "memory of 6 granules must be released before 4 are created";
  m.device().unmap(m.address(8 * granule), 4 * granule);
  EXPECT_TRUE(m.device().withhold(granule));
  EXPECT_EQ(held(), before);
  m.device().restore(granule);
}

// Each call of the driver that changes mappings takes about as long for one range as for several neighbouring ones.
TEST_P(driver_failures, moves_of_neighbouring_ranges_share_calls) {
  failing_machine m;
  for (const std::size_t at : {2, 3, 5}) m.device().map(m.address(at * granule), granule);
  const auto move_all = [&](backing_kind to) {
    move(m.device(),
         {m.address(2 * granule), m.address(), m.address(granule), m.address(5 * granule), m.address(3 * granule)}, to);
  };
  m.stream().fill(m.address(), 0x77, 2 * granule);
  EXPECT_TRUE(m.set().wait(m.stream().last(), in(5s)));
  std::map<std::string, std::uint64_t> before;
  const auto since = [&](const std::string& entry) { return successes_of(entry) - before[entry]; };
  for (int round = 0; round < 3; ++round) {
    for (const backing_kind to : {backing_kind::zero_copy, backing_kind::device}) {
      for (const char* const entry : {"cuMemUnmap", "cuMemMap", "cuMemSetAccess", "cuMemCreate", "cuMemRelease",
                                      "cuMemAddressReserve", "cuMemcpyAsync", "cuStreamSynchronize"})
        before[entry] = successes_of(entry);
      move_all(to);
      if (round == 0) continue;            // hpe creates memory
      EXPECT_EQ(since("cuMemUnmap"), 2U);  // one range has no neighbour
      EXPECT_EQ(since("cuMemMap"), 5U);
      EXPECT_EQ(since("cuMemSetAccess"), 2U);
      EXPECT_EQ(since("cuMemCreate") + since("cuMemRelease") + since("cuMemAddressReserve"), 0U);
      EXPECT_EQ(since("cuMemcpyAsync"), 5U);
      EXPECT_EQ(since("cuStreamSynchronize"), 1U);
    }
  }
  EXPECT_TRUE(m.holds(0x77));
  for (const std::size_t at : {2, 3, 5}) m.device().unmap(m.address(at * granule), granule);
}

TEST_P(driver_failures, kept_memory_is_given_back_where_the_driver_has_no_other) {
  failing_machine m;
  constexpr std::size_t large = 64 * granule;
  m.device().unmap(m.address(granule), granule);
  std::uint64_t released = 0;
  std::string failed;
  for (std::uint64_t call = 1; failed != "cuMemCreate"; ++call) {
    bool mapped = true;
    released = successes_of("cuMemRelease");
    fail_call(call, CUDA_ERROR_OUT_OF_MEMORY);
    try {
      m.device().map(m.address(8 * granule), large);
    } catch (const hpe::error&) {
      mapped = false;
    }
    failed = stop_failing();
    ASSERT_FALSE(failed.empty());
    if (failed == "cuMemCreate") {
      EXPECT_TRUE(mapped);
      EXPECT_EQ(successes_of("cuMemRelease"), released + 1);
    }
    if (mapped) m.device().unmap(m.address(8 * granule), large);
  }
}

TEST_P(driver_failures, addresses_that_the_driver_refuses_stay_reserved) {
  const std::size_t segment = layout_for(2).segment_size;
  std::string entry;
  for (std::uint64_t call = 1; entry != "cuMemAddressReserve"; ++call) {
    failing_machine m;
    fail_call(call, CUDA_ERROR_OUT_OF_MEMORY);
    const hpeStatus status = thrown_by([&] { m.device().map(m.address(segment), granule); });
    entry = stop_failing();
    ASSERT_FALSE(entry.empty()) << "no address is reserved";
    if (entry != "cuMemAddressReserve") continue;
    EXPECT_EQ(status, HPE_ERROR_SYSTEM)
        << "not HPE_ERROR_OUT_OF_MEMORY, after which hpe would allocate host memory there";
    void* const taken = ::mmap(m.address(segment), granule, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    EXPECT_EQ(taken, MAP_FAILED) << "another mapping got an address of the reserved UVAS";
    if (taken != MAP_FAILED) ::munmap(taken, granule);
    m.device().map(m.address(segment), granule);
  }
}

}  // namespace
}  // namespace device_test

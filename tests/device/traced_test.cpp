// Tests the watcher of streams on soft devices, which records the events of devices in traces.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "runtime/base/granule.h"
#include "runtime/device/traced/watcher.h"
#include "tests/device/kernels.h"
#include "tests/device/support.h"

namespace device_test {
namespace {

using hpe::device::priority;
using hpe::device::stream;

// An event in the trace file.
struct event {
  std::string name;
  std::string category;
  unsigned long long group = 0;  // the process number that represents the device in the trace
  unsigned row = 0;
  double begin = 0;  // microseconds
  double time = 0;
  unsigned long long bytes = 0;
};

class traced : public testing::Test {
 protected:
  hpe::uvas_layout layout = layout_for(3);
  std::unique_ptr<hpe::device::device_set> set = hpe::device::open_devices("soft:2", layout);
  const std::string file = testing::TempDir() + fmt::format("traced_test.{}.json", ::getpid());
  hpe::trace::recorder recorder{file, 10000};
  std::unique_ptr<hpe::device::traced::watcher> watching =
      std::make_unique<hpe::device::traced::watcher>(*set, layout, recorder);

  ~traced() override { ::unlink(file.c_str()); }

  [[nodiscard]] std::byte* address(unsigned device) const {
    return reinterpret_cast<std::byte*>(layout.base + device * layout.segment_size);
  }

  static unsigned long long group_of(unsigned device) {
    return (1ULL << 23) + static_cast<unsigned long long>(::getpid()) * 64 + 1 + device;
  }

  static std::vector<event> events_in(const std::string& text) {
    std::vector<event> found;
    for (std::size_t at = text.find(R"({"ph":"X")"); at != std::string::npos; at = text.find(R"({"ph":"X")", at + 1)) {
      event e;
      char name[100] = {}, category[100] = {};
      const int fields = std::sscanf(
          text.c_str() + at,
          R"({"ph":"X","name":"%99[^"]","cat":"%99[^"]","pid":%llu,"tid":%u,"ts":%lf,"dur":%lf,"args":{"bytes":%llu)",
          name, category, &e.group, &e.row, &e.begin, &e.time, &e.bytes);
      EXPECT_EQ(fields, 7) << text.substr(at, 200);
      e.name = name;
      e.category = category;
      found.push_back(e);
    }
    return found;
  }

  std::string written() {
    recorder.write();
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  void finish(hpe::timepoint point) const { ASSERT_TRUE(set->wait(point, in(20s))); }

  hpe::timepoint rest(stream& on, std::chrono::microseconds time) {
    const rest_parameters p{static_cast<std::uint64_t>(time.count()), nullptr, 0};
    return on.launch(set->find_kernel(set->load_module(file_of_kernels()), "rest"), {},
                     std::as_bytes(std::span(&p, 1)));
  }
};

TEST_F(traced, devices_and_streams_have_names) {
  set->at(0).create_stream(priority::waiting_host);
  set->at(0).create_stream(priority::rolling);
  set->at(1).create_stream(priority::launch);
  set->at(1).create_stream(priority::prefetch);
  const std::string text = recorder.text();
  const auto row = [](unsigned device, unsigned number, const char* name) {
    return fmt::format(R"("pid":{},"tid":{},"args":{{"name":"stream {}: {}"}})", group_of(device), number, number,
                       name);
  };
  for (const std::string& part :
       {row(0, 0, "copies that threads wait for"), row(0, 1, "uploads behind writers"),
        row(1, 0, "launches and their copies"), row(1, 1, "prefetch"),
        fmt::format(R"("pid":{},"args":{{"name":"device 0: {}"}})", group_of(0), set->at(0).info().name),
        fmt::format(R"("pid":{},"args":{{"name":"device 1: {}"}})", group_of(1), set->at(1).info().name)})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(traced, each_command_is_recorded_once_with_its_kind_and_size) {
  stream& first = set->at(0).create_stream(priority::launch);
  stream& second = set->at(1).create_stream(priority::launch);
  for (unsigned d = 0; d < 2; ++d) set->at(d).map(address(d), hpe::granule_size);
  host_buffer host(*set, hpe::granule_size);
  const auto expect = [&](hpe::timepoint point, const char* category, const std::string& name, unsigned device,
                          std::size_t bytes) {
    finish(point);
    const std::vector<event> events = events_in(written());
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events.back().name, name);
    EXPECT_EQ(events.back().category, category);
    EXPECT_EQ(events.back().group, group_of(device));
    EXPECT_EQ(events.back().row, 0U);
    EXPECT_EQ(events.back().bytes, bytes);
  };
  expect(first.copy(address(0), host.data(), 1000), "copy", "copy to device", 0, 1000);
  expect(second.copy(address(1), address(0), 900), "copy", "copy between devices", 1, 900);
  expect(first.copy(address(1), address(0), 800), "copy", "copy between devices", 0, 800);
  expect(second.copy(host.data(), address(1), 700), "copy", "copy to host", 1, 700);
  expect(first.fill(address(0), 1, 600), "copy", "fill", 0, 600);
  expect(rest(second, 1us), "kernel", "rest", 1, 0);
  EXPECT_EQ(events_in(written()).size(), 6U);
  for (unsigned d = 0; d < 2; ++d) set->at(d).unmap(address(d), hpe::granule_size);
}

// The file contains all work that has ended before the file is written, even if the watcher's thread has not yet seen
// the end.
TEST_F(traced, the_file_has_all_finished_commands) {
  stream& s = set->at(0).create_stream(priority::launch);
  set->at(0).map(address(0), hpe::granule_size);
  for (std::size_t round = 1; round <= 100; ++round) {
    finish(s.fill(address(0), 1, 1));
    ASSERT_EQ(events_in(written()).size(), round);
  }
  set->at(0).unmap(address(0), hpe::granule_size);
}

TEST_F(traced, commands_are_recorded_once_when_several_threads_ask) {
  stream& s = set->at(0).create_stream(priority::launch);
  set->at(0).map(address(0), hpe::granule_size);
  constexpr std::size_t count = 3000;
  std::atomic<bool> over{false};
  std::vector<std::thread> asking;
  for (int t = 0; t < 2; ++t)
    asking.emplace_back([&] {
      while (!over) watching->settle();
    });
  for (std::size_t n = 0; n < count; ++n) s.fill(address(0), 1, 1);
  finish(s.last());
  over = true;
  for (std::thread& t : asking) t.join();
  EXPECT_EQ(events_in(written()).size(), count);
  set->at(0).unmap(address(0), hpe::granule_size);
}

TEST_F(traced, work_is_recorded_when_it_ends_though_nobody_asks) {
  stream& first = set->at(0).create_stream(priority::launch);
  stream& second = set->at(1).create_stream(priority::launch);
  set->at(1).map(address(1), hpe::granule_size);
  second.wait(rest(first, 1ms));
  second.fill(address(1), 1, 1);
  const auto end = in(20s);
  while (events_in(recorder.text()).size() < 2 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(events_in(recorder.text()).size(), 2U);
  set->at(1).unmap(address(1), hpe::granule_size);
}

TEST_F(traced, work_begins_after_its_stream_s_last_and_after_what_it_waits_for) {
  stream& first = set->at(0).create_stream(priority::launch);
  stream& second = set->at(1).create_stream(priority::launch);
  set->at(1).map(address(1), hpe::granule_size);
  rest(first, 20ms);
  second.wait(rest(first, 20ms));
  finish(second.fill(address(1), 1, 1));
  const std::vector<event> events = events_in(written());
  ASSERT_EQ(events.size(), 3U);
  const auto& fill = *std::find_if(events.begin(), events.end(), [](const event& e) { return e.name == "fill"; });
  std::vector<event> rests;
  std::copy_if(events.begin(), events.end(), std::back_inserter(rests),
               [](const event& e) { return e.name == "rest"; });
  ASSERT_EQ(rests.size(), 2U);
  constexpr double resolution = 0.002;
  EXPECT_GE(rests[0].time, 20000 - resolution);
  EXPECT_GE(rests[1].begin, rests[0].begin + rests[0].time - resolution);
  EXPECT_GE(fill.begin, rests[0].begin + 40000 - resolution);
  set->at(1).unmap(address(1), hpe::granule_size);
}

TEST_F(traced, a_watcher_that_ends_observes_no_more) {
  stream& s = set->at(0).create_stream(priority::launch);
  EXPECT_EQ(set->observer(), watching.get());
  watching.reset();
  EXPECT_EQ(set->observer(), nullptr);
  finish(rest(s, 1us));
  EXPECT_TRUE(events_in(recorder.text()).empty());
}

}  // namespace
}  // namespace device_test

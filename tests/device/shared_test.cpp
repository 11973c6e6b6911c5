// Tests each part of the memory that a device shares with its owner separately.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/device/soft/shared/address_table.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/shared/link.h"
#include "runtime/device/soft/shared/output.h"
#include "runtime/device/soft/shared/path.h"
#include "runtime/device/soft/shared/recorded_accesses.h"
#include "runtime/device/soft/shared/timeline.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {
namespace {

using namespace std::chrono_literals;

template <class Call>
std::string sentence_of(const Call& call) {
  try {
    call();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

TEST(address_table, keeps_ranges_apart_and_divides_them) {
  address_table table;
  table.insert(0x1000, 0x1000, {0, 0});
  table.insert(0x3000, 0x1000, {0, 0});
  table.insert(0x2000, 0x1000, {0, 0});
  EXPECT_EQ(table.find(0x1fff)->end, 0x2000U);
  EXPECT_THROW(table.insert(0x3fff, 1, {0, 0}), error);
  EXPECT_THROW(table.insert(0xfff, 2, {0, 0}), error);
  EXPECT_THROW(table.insert(0x8000, 0, {0, 0}), error);
  table.insert(0x4000, 0x1000, {1, 0});
  EXPECT_EQ(table.find(0x3fff)->end, 0x4000U);
  EXPECT_THROW(table.erase(0x3000, 0x1800, 0), error);
  table.erase(0x2000, 0x800, 0);
  EXPECT_FALSE(table.find(0x2000));
  EXPECT_EQ(table.find(0x1000)->end, 0x2000U);
  EXPECT_EQ(table.find(0x2800)->end, 0x3000U);
  EXPECT_EQ(table.find(0x4000)->where.device, 1);
}

TEST(failure_log, keeps_the_last_ones_whole) {
  const auto log = std::make_unique<failure_log>();
  constexpr std::uint64_t all = failure_log::kept + 10;
  // The first message is too long for its field; each later message is shorter.
  for (std::uint64_t n = 0; n < all; ++n)
    log->append({n + 1, 1000 + n, HPE_ERROR_LAUNCH_FAILED, std::string(2000 / (n + 1), 'x') + fmt::format("{}", n),
                 n % 2 == 0 ? HPE_FAULT_NONE : HPE_FAULT_ADDRESS});
  EXPECT_EQ(log->count(), all);
  EXPECT_EQ(log->first_kept(), all - failure_log::kept);
  EXPECT_FALSE(log->at(log->first_kept() - 1));
  EXPECT_FALSE(log->at(all));
  EXPECT_FALSE(log->find(1));
  for (std::uint64_t n = log->first_kept(); n < all; ++n) {
    const auto found = log->find(n + 1);
    ASSERT_TRUE(found && log->at(n)) << n;
    EXPECT_EQ(found->value, n + 1);
    EXPECT_EQ(found->order, 1000 + n);
    EXPECT_EQ(found->status, HPE_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(found->sentence, std::string(2000 / (n + 1), 'x') + fmt::format("{}", n));
    EXPECT_EQ(found->fault, n % 2 == 0 ? HPE_FAULT_NONE : HPE_FAULT_ADDRESS);
  }
  failure_log other;
  other.append({1, 1, HPE_ERROR_LAUNCH_FAILED, std::string(5000, 'x'), HPE_FAULT_NONE});
  EXPECT_GT(other.find(1)->sentence.size(), 500U);
  EXPECT_LT(other.find(1)->sentence.size(), 5000U);
}

class output : public testing::Test {
 protected:
  static constexpr std::uint64_t header_bytes = 24;

  fabric shared{topology{1, 1}};
  output_reader reader{shared};
  std::atomic<std::uint64_t>& written = shared.status(0).output;
  output_writer writer{os::file_descriptor(::dup(reader.file(0))), written};
};

TEST_F(output, comes_in_the_order_of_launches) {
  writer.append(2, "second", false);
  writer.append(1, "first", true);
  const auto taken = reader.take();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].text, "first");
  EXPECT_TRUE(taken[0].is_error);
  EXPECT_EQ(taken[1].text, "second");
  writer.append(3, "third", false);
  EXPECT_EQ(reader.take().at(0).text, "third");
  EXPECT_TRUE(reader.take().empty());
}

TEST_F(output, whose_count_is_wrong_ends) {
  writer.append(1, "first", false);
  for (const std::uint64_t count : {written.load() + 1, ~std::uint64_t{0}}) {
    written = count;
    EXPECT_TRUE(reader.take().empty());
  }
  written = sizeof(std::uint64_t);
  writer.append(2, "second", false);
  EXPECT_TRUE(reader.take().empty());
}

TEST_F(output, that_goes_backwards_ends) {
  writer.append(1, "first", false);
  EXPECT_EQ(reader.take().size(), 1U);
  written = header_bytes;
  EXPECT_TRUE(reader.take().empty());
}

TEST_F(output, whose_sizes_are_wrong_ends) {
  for (const std::uint64_t size : {std::uint64_t{6}, ~std::uint64_t{0}, ~std::uint64_t{0} - header_bytes + 1}) {
    fabric own{topology{1, 1}};
    output_reader from(own);
    output_writer to(os::file_descriptor(::dup(from.file(0))), own.status(0).output);
    to.append(1, "first", false);
    ASSERT_EQ(::pwrite(from.file(0), &size, sizeof size, 8), 8);
    EXPECT_TRUE(from.take().empty()) << size;
    EXPECT_TRUE(from.take().empty()) << size;
  }
}

TEST_F(output, that_ends_within_a_header_ends) {
  writer.append(1, "first", false);
  written = header_bytes - 1;
  EXPECT_TRUE(reader.take().empty());
}

TEST(link, is_reserved_for_the_time_that_a_burst_takes_and_no_longer) {
  link_clock first, second;
  const std::array<link_clock*, 2> path{&first, &second};
  const link_limit limit{1'000'000'000, 0};  // a byte per nanosecond
  const std::uint64_t ready = link_time() + 1'000'000;
  EXPECT_EQ(reserve_path(path, limit, 5000, ready, priority::launch, false), ready + 5000);
  EXPECT_EQ(first.busy_until, ready + 5000);
  EXPECT_EQ(second.busy_until, ready + 5000);
  // The next burst follows directly; a burst that is ready later begins later.
  EXPECT_EQ(reserve_path(path, limit, 1000, ready, priority::launch, false), ready + 6000);
  EXPECT_EQ(reserve_path(path, limit, 1000, ready + 50000, priority::launch, false), ready + 51000);
  for (const auto& claim : first.claimed_until) EXPECT_EQ(claim, 0U);
}

TEST(link, is_claimed_only_by_who_has_more_to_send) {
  link_clock clock;
  const std::array<link_clock*, 1> path{&clock};
  const link_limit limit{1'000'000'000, 0};
  const std::uint64_t ready = link_time();
  const std::uint64_t arrival = reserve_path(path, limit, 1000, ready, priority::launch, true);
  EXPECT_GT(clock.claimed_until[static_cast<unsigned>(priority::launch)], arrival);
  EXPECT_EQ(clock.claimed_until[static_cast<unsigned>(priority::waiting_host)], 0U);
  // A more urgent burst does not wait for the claim.
  EXPECT_EQ(reserve_path(path, limit, 1000, arrival, priority::waiting_host, false), arrival + 1000);
  // A less urgent burst waits for it.
  EXPECT_GE(reserve_path(path, limit, 1000, ready, priority::rolling, false),
            clock.claimed_until[static_cast<unsigned>(priority::launch)]);
}

TEST(failure_log, keeps_sentences_up_to_the_length_of_their_field) {
  constexpr std::size_t most = 611;  // the longest text; a zero follows it
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, most - 1, most, most + 1, most + 2}) {
    failure_log log;
    std::string sentence(length, 'x');
    if (length > 0) sentence.back() = 'e';
    log.append({5, 6, HPE_ERROR_LAUNCH_FAILED, sentence, HPE_FAULT_TRAP});
    EXPECT_EQ(log.at(0)->sentence, sentence.substr(0, most)) << length;
    EXPECT_EQ(log.find(5)->sentence, sentence.substr(0, most)) << length;
  }
}

TEST(failure_log, keeps_exactly_its_number_of_failures) {
  failure_log log;
  EXPECT_EQ(log.first_kept(), 0U);
  EXPECT_FALSE(log.at(0));
  for (std::uint64_t n = 0; n < failure_log::kept; ++n)
    log.append({n + 1, n, HPE_ERROR_LAUNCH_FAILED, "", HPE_FAULT_NONE});
  EXPECT_EQ(log.first_kept(), 0U);
  EXPECT_TRUE(log.at(0));
  EXPECT_TRUE(log.find(1));
  log.append({1000, 0, HPE_ERROR_LAUNCH_FAILED, "", HPE_FAULT_NONE});
  EXPECT_EQ(log.first_kept(), 1U);
  EXPECT_FALSE(log.at(0));
  EXPECT_FALSE(log.find(1));
  EXPECT_TRUE(log.find(2));
  EXPECT_TRUE(log.find(1000));
  EXPECT_FALSE(log.find(1001));
}

TEST(address_table, names_the_memory_that_is_not_there) {
  address_table table;
  table.insert(0x1000, 0x1000, {3, 0});
  for (const auto& [device, words] :
       {std::pair{host_location, "registered host memory"}, std::pair{foreign_location, "memory of another process"},
        std::pair{7, "memory of device 7"}}) {
    const std::string told = sentence_of([&, of = device] { table.erase(0x1000, 0x1000, of); });
    EXPECT_NE(told.find(std::string("4096 bytes at 0x1000 are ") + words), std::string::npos) << told;
  }
  EXPECT_TRUE(table.find(0x1000));
  EXPECT_NE(sentence_of([&] {
              table.insert(~std::uintptr_t{0xff}, 0x200, {0, 0});
            }).find("no range of addresses"),
            std::string::npos);
}

TEST(address_table, agrees_with_a_model_of_granules) {
  std::mt19937 random(17);
  address_table table;
  std::array<int, 64> model;  // for each granule of 0x1000 bytes: a device, or 99 for none
  model.fill(99);
  std::array<bool, 64> zero_copy{};
  for (int step = 0; step < 2000; ++step) {
    const std::size_t first = random() % 64;
    const std::size_t count = 1 + random() % std::min<std::size_t>(64 - first, 6);
    const auto part = std::span(model).subspan(first, count);
    const int device = static_cast<int>(random() % 4) - 2;
    const std::uintptr_t begin = (16 + first) * 0x1000;
    if (random() % 2 == 0) {
      const bool fits = std::ranges::all_of(part, [](int each) { return each == 99; });
      const bool is_zero_copy = random() % 3 == 0;
      EXPECT_EQ(sentence_of([&] { table.insert(begin, count * 0x1000, {device, 0, is_zero_copy}); }).empty(), fits);
      if (!fits) continue;
      std::ranges::fill(part, device);
      std::ranges::fill(std::span(zero_copy).subspan(first, count), is_zero_copy);
    } else {
      const bool fits = std::ranges::all_of(part, [&](int each) { return each == device; });
      std::size_t of_device = 0;
      EXPECT_EQ(sentence_of([&] { of_device = table.erase(begin, count * 0x1000, device); }).empty(), fits);
      if (!fits) continue;
      std::ranges::fill(part, 99);
      EXPECT_EQ(of_device, 0x1000U * std::ranges::count(std::span(zero_copy).subspan(first, count), false));
    }
    for (std::size_t n = 0; n < 64; ++n) {
      for (const std::uintptr_t at : {(16 + n) * 0x1000, (17 + n) * 0x1000 - 1}) {
        const auto found = table.find(at);
        ASSERT_EQ(found ? found->where.device : 99, model[n]) << n;
        if (found) {
          ASSERT_GT(found->end, at);
          ASSERT_LE(found->end, (16 + 64) * 0x1000U);
          for (std::uintptr_t m = n; (16 + m) * 0x1000 < found->end; ++m) ASSERT_EQ(model[m], model[n]);
        }
      }
    }
  }
}

TEST(link, of_each_pair_of_places_is_the_one_between_them) {
  fabric shared{topology{2, 2}};
  fabric_configuration& limits = shared.configuration();
  limits.host_limit = {1 << 30, 1};
  limits.peer_limit = {1 << 20, 2};
  auto& host = shared.common().host_links;
  auto& ports = shared.common().ports;
  const auto expect = [&](unsigned self, int from, int to, std::vector<const link_clock*> links,
                          const link_limit* limit) {
    const path found = find_path(shared, self, from, to);
    EXPECT_EQ(std::vector<const link_clock*>(found.links.begin(), found.links.begin() + found.length), links)
        << from << " to " << to;
    EXPECT_EQ(found.limit, limit) << from << " to " << to;
    EXPECT_EQ(found.limited(), !links.empty());
  };
  for (int d = 0; d < 4; ++d) {
    const auto n = static_cast<std::size_t>(d);
    expect(0, d, d, {}, nullptr);
    expect(0, host_location, d, {&host[n / 2][1]}, &limits.host_limit);
    expect(0, d, host_location, {&host[n / 2][0]}, &limits.host_limit);
    expect(0, foreign_location, d, {&ports[n][1]}, &limits.peer_limit);
    expect(0, d, foreign_location, {&ports[n][0]}, &limits.peer_limit);
    expect(static_cast<unsigned>(d), foreign_location, host_location, {&ports[n][1]}, &limits.peer_limit);
    expect(static_cast<unsigned>(d), host_location, foreign_location, {&ports[n][0]}, &limits.peer_limit);
    for (int other = 0; other < 4; ++other)
      if (other != d)
        expect(0, d, other, {&ports[n][0], &ports[static_cast<std::size_t>(other)][1]}, &limits.peer_limit);
  }
  limits.host_limit = {};
  EXPECT_FALSE(find_path(shared, 0, host_location, 0).limited());
}

TEST(link, bursts_are_a_quarter_of_a_millisecond_in_whole_pages) {
  for (const auto& [rate, burst] : {std::pair<std::uint64_t, std::uint64_t>{1, 4096},
                                    {4000U * 4096, 4096},
                                    {4000U * 8192 - 1, 4096},
                                    {4000U * 8192, 8192},
                                    {4000ULL << 20, 1 << 20},
                                    {std::uint64_t{1} << 40, 1 << 20}})
    EXPECT_EQ(burst_size({rate, 0}), burst) << rate;
}

TEST(link, carries_bursts_one_after_the_other_and_claims_only_what_follows) {
  std::array<link_clock, 2> links{};
  const std::array<link_clock*, 2> path{&links[0], &links[1]};
  const link_limit limit{1'000'000'000, 7};
  const std::uint64_t ready = link_time();
  EXPECT_EQ(reserve_path(path, limit, 1000, ready, priority::launch, false), ready + 1000);
  EXPECT_EQ(links[0].busy_until, ready + 1000);
  EXPECT_EQ(links[1].busy_until, ready + 1000);
  links[1].busy_until = ready + 5000;  // the link that is busy longer decides
  EXPECT_EQ(reserve_path(path, limit, 1000, ready, priority::launch, true), ready + 6000);
  EXPECT_EQ(links[0].busy_until, ready + 2000);
  EXPECT_EQ(links[1].busy_until, ready + 6000);
  for (const link_clock& each : links) {
    for (unsigned p = 0; p < priorities; ++p)
      EXPECT_EQ(each.claimed_until[p], p == static_cast<unsigned>(priority::launch) ? ready + 106'000 : 0) << p;
  }
  // A later reservation does not lower an earlier claim.
  EXPECT_EQ(reserve_path({path.data(), 1}, limit, 1000, ready, priority::launch, true), ready + 3000);
  EXPECT_EQ(links[0].claimed_until[static_cast<unsigned>(priority::launch)], ready + 106'000);
}

TEST(timelines, have_numbers_that_name_their_streams) {
  fabric shared{topology{1, 2}};
  EXPECT_EQ(shared.find_timeline(0), nullptr);
  std::set<std::uint32_t> numbers;
  for (unsigned device = 0; device < 2; ++device) {
    for (unsigned stream = 0; stream < max_streams; ++stream) {
      const std::uint32_t number = fabric::timeline_number(device, stream);
      EXPECT_EQ(fabric::device_of(number), device);
      EXPECT_EQ(fabric::stream_of(number), stream);
      EXPECT_TRUE(numbers.insert(number).second);
      EXPECT_EQ(shared.find_timeline(number), nullptr);
      EXPECT_EQ(shared.create_stream(device, priority::launch), stream);
      EXPECT_EQ(shared.find_timeline(number), &shared.status(device).timelines[stream]);
      EXPECT_EQ(shared.ring(device, stream).level, priority::launch);
    }
    EXPECT_NE(sentence_of([&] {
                shared.create_stream(device, priority::launch);
              }).find(fmt::format("device {} has {} streams", device, max_streams)),
              std::string::npos);
  }
  EXPECT_FALSE(numbers.contains(0));
  EXPECT_EQ(shared.find_timeline(fabric::timeline_number(max_devices, 0)), nullptr);
  EXPECT_EQ(shared.find_timeline(~std::uint32_t{0}), nullptr);
  const std::uint32_t number = fabric::timeline_number(1, 3);
  timeline& line = *shared.find_timeline(number);
  line.gates = 0b1001;
  const auto wakes = [&](unsigned gate) { return shared.common().gates[gate].wakes(); };
  const std::array before{wakes(0), wakes(1), wakes(3)};
  shared.complete(number, 5);
  EXPECT_EQ((std::array{wakes(0) - before[0], wakes(1) - before[1], wakes(3) - before[2]}), (std::array{1U, 0U, 1U}));
  EXPECT_TRUE(line.reached(5));
  EXPECT_FALSE(line.reached(6));
  EXPECT_TRUE(shared.wait(number, 5, std::chrono::steady_clock::now()));
  EXPECT_FALSE(shared.wait(number, 6, std::chrono::steady_clock::now() + 1ms));
}

TEST_F(output, of_no_bytes_is_no_record) {
  writer.append(1, "", true);
  EXPECT_EQ(written, 0U);
  writer.append(4, "a", true);
  EXPECT_EQ(written, header_bytes + 1);
  writer.append(4, "b", false);
  writer.append(3, std::string(10000, 'c'), false);
  const auto taken = reader.take();
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken[0].text, std::string(10000, 'c'));
  EXPECT_EQ(taken[1].text, "a");  // the texts of one launch keep their order
  EXPECT_TRUE(taken[1].is_error);
  EXPECT_EQ(taken[2].text, "b");
  EXPECT_FALSE(taken[2].is_error);
}

// Entries of all kinds in random order, with texts that are empty, one byte shorter than their field, exactly as long,
// and longer; several appends before a take, and takes of nothing.
TEST(access_log, gives_back_each_entry_once_and_in_order) {
  constexpr std::size_t longest = 119;
  const os::file_descriptor file = os::create_memory_file("test-accesses", granule_size + access_log::room);
  access_log written(file.get(), granule_size), read(file.get(), granule_size);
  std::mt19937 random(3);
  const auto text = [&] {
    static constexpr std::size_t sizes[] = {0, 1, longest - 1, longest, longest + 1, 300};
    return std::string(sizes[random() % std::size(sizes)], static_cast<char>('a' + random() % 26));
  };
  const auto how = [&] { return static_cast<ptx::recorded_use>(random() % 3); };
  const auto number = [&] { return static_cast<std::uint8_t>(random()); };
  for (int round = 0; round < 40; ++round) {
    std::vector<recorded_stretch> stretches;
    std::vector<recorded_race> races;
    for (std::size_t appends = random() % 4; appends > 0; --appends) {
      std::vector<recorded_stretch> more(random() % 4);
      std::vector<recorded_race> more_races(random() % 3);
      for (recorded_stretch& each : more) each = {random(), random(), how(), number()};
      for (recorded_race& each : more_races) {
        const bool is_shared = random() % 2 == 0;
        each = {is_shared, random(), random(), {how(), number()}, {how(), number()}};
        if (is_shared) each.earlier.place = text(), each.later.place = text(), each.variable = text();
      }
      written.append(more, more_races);
      stretches.insert(stretches.end(), more.begin(), more.end());
      races.insert(races.end(), more_races.begin(), more_races.end());
    }
    std::size_t n = 0;
    std::vector<recorded_race> taken;
    read.take(
        [&](const recorded_stretch& each) {
          ASSERT_LT(n, stretches.size());
          EXPECT_EQ(each.begin, stretches[n].begin);
          EXPECT_EQ(each.end, stretches[n].end);
          EXPECT_EQ(each.how, stretches[n].how);
          EXPECT_EQ(each.number, stretches[n].number);
          ++n;
        },
        taken);
    EXPECT_EQ(n, stretches.size());
    ASSERT_EQ(taken.size(), races.size());
    for (std::size_t r = 0; r < races.size(); ++r) {
      EXPECT_EQ(taken[r].is_shared, races[r].is_shared);
      EXPECT_EQ(taken[r].begin, races[r].begin);
      EXPECT_EQ(taken[r].end, races[r].end);
      EXPECT_EQ(taken[r].variable, races[r].variable.substr(0, longest));
      for (const auto side : {&recorded_race::earlier, &recorded_race::later}) {
        EXPECT_EQ((taken[r].*side).how, (races[r].*side).how);
        EXPECT_EQ((taken[r].*side).number, (races[r].*side).number);
        EXPECT_EQ((taken[r].*side).place, (races[r].*side).place.substr(0, longest));
      }
    }
  }
}

// The pages of a large log are returned to the system when the log has been taken.
TEST(access_log, returns_the_memory_of_many_entries) {
  const os::file_descriptor file = os::create_memory_file("test-accesses", granule_size + access_log::room);
  access_log log(file.get(), granule_size);
  const std::vector<recorded_stretch> many(std::size_t{2} << 20, recorded_stretch{1, 2, {}, 3});
  log.append(many, {});
  const auto used = [&] {
    struct stat about {};
    EXPECT_EQ(::fstat(file.get(), &about), 0);
    return static_cast<std::uint64_t>(about.st_blocks) * 512;
  };
  EXPECT_GT(used(), std::uint64_t{40} << 20);
  std::size_t n = 0;
  std::vector<recorded_race> races;
  log.take([&](const recorded_stretch& each) { n += each.number == 3 ? 1 : 0; }, races);
  EXPECT_EQ(n, many.size());
  EXPECT_LE(used(), std::uint64_t{18} << 20);
  log.append(std::span(many).first(5), {});
  n = 0;
  log.take([&](const recorded_stretch&) { ++n; }, races);
  EXPECT_EQ(n, 5U);
}

}  // namespace
}  // namespace hpe::device::soft

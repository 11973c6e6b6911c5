// Images do not depend on the method that keeps the source's wave field between the passes of a shot.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "apps/rtm/keep/revolve.h"
#include "apps/rtm/keep/sink.h"
#include "apps/rtm/keep_choice.h"
#include "tests/rtm/experiment.h"
#include "tests/rtm/small_disk.h"

namespace hpe::rtm::testing {
namespace {

/// Returns the smallest number of steps with which `count` states can be used in descending order with `checkpoints`
/// checkpoints. Tries all places for the checkpoints.
std::int64_t fewest_steps(std::int64_t count, std::int64_t checkpoints) {
  static std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> known;
  if (count <= 1) return 0;
  if (checkpoints == 1) return count * (count - 1) / 2;
  std::int64_t& steps = known[{count, checkpoints}];
  if (steps != 0) return steps;
  std::int64_t best = count * count;
  for (std::int64_t m = 1; m < count; ++m)
    best = std::min(best, m + fewest_steps(count - m, checkpoints - 1) + fewest_steps(m, checkpoints));
  return known[{count, checkpoints}] = best;
}

TEST(Revolve, GivesStatesBackInFallingOrderWithTheFewestSteps) {
  using kind = revolve_action::kind;
  for (std::int64_t count = 1; count < 60; ++count)
    for (std::int64_t checkpoints = 1; checkpoints < 12; ++checkpoints) {
      const revolve_schedule all = revolve(count, checkpoints);
      std::map<std::int64_t, std::int64_t> slots;
      for (const revolve_action& a : all.saves) {
        ASSERT_EQ(a.what, kind::save);
        ASSERT_LT(a.slot, checkpoints);
        slots[a.slot] = a.number;
      }
      std::int64_t here = -1, next = count - 1;
      for (const revolve_action& a : all.back) {
        switch (a.what) {
          case kind::load: ASSERT_EQ(slots.at(a.slot), a.number); break;
          case kind::advance: ASSERT_GT(a.number, here); break;
          case kind::save:
            ASSERT_EQ(here, a.number);
            ASSERT_LT(a.slot, checkpoints);
            slots[a.slot] = a.number;
            break;
          case kind::use: ASSERT_EQ(here, a.number); ASSERT_EQ(next--, a.number);
        }
        here = a.number;
      }
      EXPECT_EQ(next, -1);
      EXPECT_EQ(all.saves.back().number + all.repeated(), fewest_steps(count, checkpoints))
          << count << " states, " << checkpoints << " checkpoints";
    }
}

/// Returns the sums of two shots in a small ground, on `devices` devices, or on all devices if the machine has fewer.
std::vector<float> sums(const keeping& k, const volume& truth, int devices, bool free_surface = false,
                        std::int64_t cpml = 0) {
  const volume smooth = make_volume(truth.nx, truth.ny, truth.nz, spacing, 2000);
  migration_settings s;
  s.frequency = 20;
  s.time_step = 0.9 * stable_step(truth.ny == 1 ? 2 : 3, spacing, 2600);
  s.steps = 203;
  s.keep_every = 6;
  s.keep = k;
  s.devices = std::min(devices, device_count());
  s.edges.sponge = cpml > 0 ? -1 : 20;
  s.edges.cpml = cpml;
  s.edges.thin = 8;
  s.edges.free_surface = free_surface;
  simulation on(truth, 2600, s, nullptr);
  const medium<float> ground = on.medium_of(truth);
  migration work(on, smooth);
  EXPECT_EQ(work.kept().where, k.where);
  for (const std::int32_t x : {12, 30}) {
    shot one{{x, static_cast<std::int32_t>(truth.ny / 2), 2}, {}};
    for (std::int32_t r = 0; r < truth.nx; r += 2) one.receivers.push_back({r, one.source.y, 2});
    work.add(one, on.record(ground, one, "recording"));
  }
  std::vector<float> both = work.stacked.image;
  both.insert(both.end(), work.stacked.illumination.begin(), work.stacked.illumination.end());
  return both;
}

keeping kept(keep_method how, keep_place where, std::int64_t checkpoints = 0) {
  keeping k;
  k.how = how;
  k.where = where;
  k.checkpoints = checkpoints;
  k.folder = ::testing::TempDir();
  return k;
}

volume section() { return flat_model(44, 1, 40, spacing, 200, 2000, 2600); }
volume block() { return flat_model(40, 24, 30, spacing, 150, 2000, 2600); }

TEST(Keeping, FieldsAnywhereAndCheckpointsGiveTheSameBits) {
  for (const auto& [ground, devices] : {std::pair{section(), 1}, {block(), 2}}) {
    const std::vector<float> wanted = sums(kept(keep_method::fields, keep_place::device), ground, 1);
    EXPECT_GT(*std::max_element(wanted.begin(), wanted.end()), 0);
    for (const keep_place where : {keep_place::host, keep_place::disk})
      EXPECT_TRUE(sums(kept(keep_method::fields, where), ground, devices) == wanted) << static_cast<int>(where);
    EXPECT_TRUE(sums(kept(keep_method::checkpoints, keep_place::device, 4), ground, devices) == wanted);
  }
  const std::vector<float> wanted = sums(kept(keep_method::fields, keep_place::device), section(), 1);
  EXPECT_TRUE(sums(kept(keep_method::checkpoints, keep_place::device, 5), section(), 2, false, 12) ==
              sums(kept(keep_method::fields, keep_place::device), section(), 1, false, 12));
  for (const std::int64_t checkpoints : {1, 34})
    EXPECT_TRUE(sums(kept(keep_method::checkpoints, keep_place::device, checkpoints), section(), 1) == wanted);
}

TEST(Keeping, CompressedFieldsHaveTheSameBitsAnywhere) {
  keeping k = kept(keep_method::fields, keep_place::device);
  k.bits = 8;
  const std::vector<float> wanted = sums(k, section(), 2);
  for (const keep_place where : {keep_place::host, keep_place::disk}) {
    k.where = where;
    EXPECT_TRUE(sums(k, section(), 2) == wanted) << static_cast<int>(where);
  }
}

double change(const std::vector<float>& from, const std::vector<float>& to) {
  return norm(difference(from, to)) / norm(from);
}

TEST(Keeping, AFieldReconstructedFromItsBoundaryGivesNearlyTheSameImage) {
  struct experiment {
    volume ground;
    bool free_surface;
    int devices;
    keep_place where;
    std::int64_t cpml = 0;
  };
  double worst = 0;
  for (const experiment& e : {experiment{section(), false, 1, keep_place::device},
                              {section(), true, 2, keep_place::host},
                              {block(), false, 1, keep_place::disk},
                              {block(), true, 2, keep_place::device},
                              {section(), false, 2, keep_place::device, 12}}) {
    const std::vector<float> wanted =
        sums(kept(keep_method::fields, keep_place::device), e.ground, e.devices, e.free_surface, e.cpml);
    const std::vector<float> here =
        sums(kept(keep_method::boundary, e.where), e.ground, e.devices, e.free_surface, e.cpml);
    worst = std::max(worst, change(wanted, here));
  }
  RecordProperty("change", scientific(worst));
  EXPECT_LE(worst, 1e-5);
  EXPECT_GT(worst, 0) << "a reconstruction must differ in its rounding";
}

TEST(Keeping, ZfpChangesTheImageLittle) {
  const volume ground = section();
  const std::vector<float> wanted = sums(kept(keep_method::fields, keep_place::device), ground, 2);
  keeping k = kept(keep_method::fields, keep_place::host);
  k.zfp = true;
  std::vector<std::pair<std::int64_t, double>> bounds{{16, 1e-4}, {8, 1e-2}};
  for (const auto& [bits, bound] : bounds) {
    k.bits = bits;
    k.where = keep_place::host;
    const std::vector<float> host = sums(k, ground, 2);
    EXPECT_LE(change(wanted, host), bound) << bits;
    EXPECT_GT(change(wanted, host), 0) << bits;
    RecordProperty("change_" + std::to_string(bits), scientific(change(wanted, host)));
    k.where = keep_place::disk;
    EXPECT_TRUE(sums(k, ground, 2) == host) << bits;
  }
}

TEST(Keeping, AFolderThatCannotBeUsedIsNamed) {
  keeping k = kept(keep_method::fields, keep_place::disk);
  k.folder = "/proc/none";
  try {
    static_cast<void>(sums(k, section(), 1));
    FAIL();
  } catch (const bad_input& e) {
    EXPECT_NE(std::string(e.what()).find("/proc/none"), std::string::npos) << e.what();
  }
}

TEST(Keeping, AFullDiskIsNamedBeforeTheRun) {
  const small_disk full(1 << 16);
  try {
    static_cast<void>(file_in(::testing::TempDir(), 1 << 20));
    FAIL();
  } catch (const bad_input& e) {
    EXPECT_NE(std::string(e.what()).find("File too large"), std::string::npos) << e.what();
  }
  EXPECT_THROW(static_cast<void>(file_in(::testing::TempDir(), std::size_t{1} << 60)), bad_input);
}

TEST(Keeping, ADiskThatFillsUpEndsTheRunWithItsReason) {
  constexpr std::size_t slot_bytes = 16 * sector;
  constexpr std::int64_t ring = 3, items = 12;
  const array<std::uint8_t> memory(ring * slot_bytes, on_device(0));
  slots all;
  for (std::size_t s = 0; s < ring; ++s) all.push_back({memory.subspan(s * slot_bytes, slot_bytes)});
  const std::unique_ptr<field_store> store =
      make_store({keep_place::disk, items, ::testing::TempDir(), nullptr}, std::move(all));
  const small_disk full(4 * slot_bytes);
  std::string message;
  std::int64_t item = 0;
  try {
    for (; item < items; ++item) {
      const std::int64_t slot = store->to_write(item);
      fill(memory.data() + static_cast<std::size_t>(slot) * slot_bytes, static_cast<int>(item), slot_bytes);
      store->written(item);
    }
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  EXPECT_NE(message.find("cannot write wave fields to "), std::string::npos) << message;
  EXPECT_NE(message.find("File too large"), std::string::npos) << message;
  EXPECT_GE(item, 4);
}

TEST(Keeping, TheChoiceDependsOnTheRoom) {
  const volume ground = block();
  const grid g = make_grid(ground.nx, ground.ny, ground.nz, spacing, {}, 0.9);
  const decomposition parts = decompose(g.layout, 1, sizeof(float));
  const auto room = static_cast<double>(device_info(0).memory_free);
  const auto field = static_cast<double>(bytes_of_field({g, parts, 1, 1}, {}).kept);
  const history_shape few{g, parts, 60, 6}, many{g, parts, static_cast<std::int64_t>(2 * room / field) + 1, 1};
  const keep_rates rates{1e-3, 1e-4, 1e-5, 1e9, 1e8, 1e8};
  const keeping automatic;

  const auto chosen = [&](const history_shape& shape, const keeping& wanted) {
    return best_of(keep_options(shape, wanted, rates), wanted).how;
  };
  EXPECT_EQ(chosen(few, automatic).where, keep_place::device);
  EXPECT_EQ(chosen(few, automatic).how, keep_method::fields);
  const keeping elsewhere = chosen(many, automatic);
  EXPECT_TRUE(elsewhere.where != keep_place::device || elsewhere.how == keep_method::checkpoints);
  EXPECT_EQ(chosen(few, kept(keep_method::boundary, keep_place::automatic)).how, keep_method::boundary);
  EXPECT_EQ(chosen(few, kept(keep_method::checkpoints, keep_place::automatic, 5)).checkpoints, 5);
  try {
    static_cast<void>(chosen(many, kept(keep_method::fields, keep_place::device)));
    FAIL();
  } catch (const bad_input& e) {
    EXPECT_NE(std::string(e.what()).find("fields on devices: "), std::string::npos) << e.what();
  }
  const std::string table = explain_keeping(keep_options(few, automatic, rates), automatic, few);
  for (const char* row : {"fields on devices", "fields on the host", "fields on disk", "checkpoints",
                          "boundary on devices", "boundary on the host", "boundary on disk", "chosen"})
    EXPECT_NE(table.find(row), std::string::npos) << table;
}

}  // namespace
}  // namespace hpe::rtm::testing

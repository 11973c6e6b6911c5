// Compares shots and grids that ranks share with the same run in a single process. Every rank runs the same tests.

#include "apps/rtm/migration.h"
#include "apps/rtm_mpi/mpi_team.h"
#include "tests/mpi/ranks.h"
#include "tests/rtm/experiment.h"

namespace hpe::rtm::testing {
namespace {

struct result {
  std::vector<float> records, image, illumination;
  bool operator==(const result&) const = default;
};

/// Computes a shot with all processes of the team; part 0 of each group returns the result.
result shots(team& with, const volume& truth, keep_place where, const boundaries& edges) {
  const volume smooth = make_volume(truth.nx, truth.ny, truth.nz, spacing, 2000);
  migration_settings s;
  s.frequency = 20;
  s.time_step = 0.9 * stable_step(truth.ny == 1 ? 2 : 3, spacing, 2600);
  s.steps = 80;
  s.keep_every = 6;
  s.keep.where = where;
  s.keep.folder = ::testing::TempDir();
  s.devices = device_count();
  s.data = preparation::residual;
  s.edges = edges;
  s.edges.thin = 8;
  simulation on(truth, 2600, s, nullptr, with);
  const medium<float> ground = on.medium_of(truth);
  migration work(on, smooth);
  result all;
  shot one{{20, static_cast<std::int32_t>(truth.ny / 2), 2}, {}};
  for (std::int32_t r = 0; r < truth.nx; r += 3) one.receivers.push_back({r, one.source.y, 2});
  all.records = on.record(ground, one, "recording");
  // Records that are read from a file are the same on all processes.
  std::vector<float> data = all.records;
  data.resize(one.receivers.size() * static_cast<std::size_t>(s.steps));
  if (with.parts() > 1) MPI_Bcast(data.data(), static_cast<int>(data.size()), MPI_FLOAT, 0, MPI_COMM_WORLD);
  work.add(one, data);
  all.image = work.stacked.image;
  all.illumination = work.stacked.illumination;
  return all;
}

void expect_same_bits(const volume& ground, keep_place where, const boundaries& edges) {
  mpi_team cut(MPI_COMM_WORLD, ranks());
  const result here = shots(cut, ground, where, edges);
  if (rank() != 0) {
    EXPECT_TRUE(here.records.empty() && here.image.empty());
    return;
  }
  team alone;
  EXPECT_TRUE(here == shots(alone, ground, keep_place::device, edges));
  EXPECT_GT(norm(here.image), 0);
  EXPECT_GT(norm(here.records), 0);
}

TEST(RtmMpi, ASectionThatIsCutOverRanksHasTheSameBits) {
  expect_same_bits(flat_model(60, 1, 30, spacing, 150, 2000, 2600), keep_place::disk,
                   {.sponge = 15, .free_surface = true});
}

TEST(RtmMpi, AVolumeThatIsCutOverRanksHasTheSameBits) {
  expect_same_bits(flat_model(50, 16, 20, spacing, 100, 2000, 2600), keep_place::device, {.sponge = 15});
}

TEST(RtmMpi, MatchedLayersThatAreCutOverRanksHaveTheSameBits) {
  // The layers have more planes than the slab of one of three ranks, so they end in the slab of the next rank.
  expect_same_bits(flat_model(30, 1, 30, spacing, 150, 2000, 2600), keep_place::device, {.cpml = 34});
  expect_same_bits(flat_model(50, 16, 20, spacing, 100, 2000, 2600), keep_place::device,
                   {.cpml = 9, .free_surface = true});
}

TEST(RtmMpi, ValuesOfGroupsComeInTheirOrder) {
  mpi_team all(MPI_COMM_WORLD, 1);
  EXPECT_EQ(all.groups(), ranks());
  EXPECT_EQ(all.group(), rank());
  for (int g = 0; g < all.groups(); ++g) {
    const std::vector<float> values = all.from_group(g, std::vector<float>(3, static_cast<float>(rank())));
    if (rank() == 0)
      EXPECT_EQ(values, std::vector<float>(3, static_cast<float>(g)));
    else
      EXPECT_TRUE(values.empty());
  }
  EXPECT_EQ(all.of_first(rank() + 5), 5);
}

TEST(RtmMpi, PartsThatDoNotFitAreRefused) {
  EXPECT_THROW(mpi_team(MPI_COMM_WORLD, ranks() + 1), bad_input);
  mpi_team cut(MPI_COMM_WORLD, ranks());
  EXPECT_THROW(static_cast<void>(slab_of(make_grid(60, 1, 40, spacing, {}, 0.9), 0, 3)), bad_input);
}

}  // namespace
}  // namespace hpe::rtm::testing

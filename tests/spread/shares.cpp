// Random kernels with affine addresses, guards, loops and halos, with random cuts and random homes: the number of bytes
// that are predicted to be remote agrees with the interpreter's. HPE_TEST_SEED repeats one kernel.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>
#include <set>

#include "runtime/spread/cost.h"
#include "tests/ptx/analysis/fixture.h"
#include "tests/spread/fixture.h"

namespace hpe::spread::test {
namespace {

constexpr std::uint64_t array_bytes = 256 * kib, small_granule = 4 * kib;

/// k(array0, array1, array2, n): accesses elements a*x + b*y + c*k + d, where x and y are the global indices and k is a
/// loop counter.
std::string random_kernel(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  std::string body;
  const bool loops = below(2) == 0;
  const unsigned iterations = 1 + below(5);
  if (below(2) == 0) body += fmt::format("setp.ge.s32 %p, %x, {};\n@%p bra END;\n", 20 + below(200));
  if (loops) body += "mov.u32 %k, 0;\nLOOP:\n";
  for (unsigned n = 0; n < 1 + below(4); ++n) {
    const unsigned array = below(3);
    body += fmt::format("mul.lo.s32 %i, %x, {};\nmad.lo.s32 %i, %y, {}, %i;\n", 1 + below(3), below(2) * 512);
    if (loops) body += fmt::format("mad.lo.s32 %i, %k, {}, %i;\n", below(2) == 0 ? 1 : 1024);
    body += fmt::format("add.s32 %i, %i, {};\nmul.wide.s32 %w, %i, 4;\nadd.s64 %w, %base{}, %w;\n", below(600), array);
    body += below(3) == 0 ? "st.global.u32 [%w], %x;\n" : "ld.global.u32 %t, [%w];\n";
  }
  if (loops) body += fmt::format("add.s32 %k, %k, 1;\nsetp.lt.s32 %p, %k, {};\n@%p bra LOOP;\n", iterations);
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 array0, .param .u64 array1, "
      ".param .u64 array2) {\n.reg .pred %p;\n.reg .b32 %x, %y, %i, %k, %t, %n<3>;\n.reg .b64 %base<3>, %raw<3>, %w;\n";
  for (int a = 0; a < 3; ++a)
    text += fmt::format("ld.param.u64 %raw{0}, [array{0}];\ncvta.to.global.u64 %base{0}, %raw{0};\n", a);
  for (const char axis : {'x', 'y'})
    text += fmt::format(
        "mov.u32 %n0, %ctaid.{0};\nmov.u32 %n1, %ntid.{0};\nmov.u32 %n2, %tid.{0};\nmad.lo.s32 %{0}, %n0, %n1, %n2;\n",
        axis);
  return text + body + "END:\nret;\n}\n";
}

/// Counts each sector once for each block that reads it, and once for each block that writes it.
class sector_counter final : public ptx::instruction_observer {
 public:
  sector_counter(const ptx::function& kernel, const cut& c, const std::vector<kernel_array>& arrays)
      : kernel_(kernel), cut_(c), arrays_(arrays) {}

  void comes_to(const ptx::block_context& block, std::uint32_t, const ptx::function& f, std::uint32_t position,
                const std::uint64_t* registers, bool runs) override {
    const ptx::instruction& i = f.code[position];
    const bool writes = i.kind == ptx::kind::store;
    if (&f != &kernel_ || !runs || (!writes && i.kind != ptx::kind::load) || !i.sources[0].is_register()) return;
    const std::uint64_t address = registers[i.sources[0].index] + i.sources[0].value;
    for (const kernel_array& a : arrays_) {
      if (address - a.address >= a.bytes) continue;
      const dimension at{block.ctaid.x, block.ctaid.y, block.ctaid.z};
      const std::uint64_t offset = (address - a.address) / 32 * 32;
      if (!seen_.insert({at, writes, a.address + offset}).second) continue;
      (a.home_of(offset) == static_cast<device_number>(part_of(cut_, at)) ? local : remote) += 32;
    }
  }

  std::uint64_t local = 0, remote = 0;

 private:
  const ptx::function& kernel_;
  const cut& cut_;
  const std::vector<kernel_array>& arrays_;
  std::set<std::tuple<dimension, bool, std::uint64_t>> seen_;
};

std::uint64_t test_one(unsigned seed) {
  std::mt19937 random(seed);
  const std::string text = random_kernel(random);
  SCOPED_TRACE(fmt::format("HPE_TEST_SEED={}\n{}", seed, text));
  const kernel_model model(ptx::parse({text}), "k");
  ptx::test::checked_program program(text);
  const auto devices = static_cast<std::uint32_t>(2 + random() % 3);
  const dimension grid{static_cast<std::uint32_t>(1 + random() % 6), static_cast<std::uint32_t>(1 + random() % 4), 1};
  const dimension block{32, static_cast<std::uint32_t>(1 + random() % 2), 1};
  cut c = grid[0] >= devices ? cut_grid(grid, {devices, 1, 1}) : whole_grid(grid, devices, 1);
  if (grid[1] >= devices && random() % 2 == 0) c = cut_grid(grid, {1, devices, 1});

  std::vector<kernel_array> memory(3);
  std::vector<std::uint64_t> parameters;
  for (kernel_array& a : memory) {
    a.bytes = array_bytes;
    a.address = reinterpret_cast<std::uint64_t>(program.take(a.bytes));
    a.granule = small_granule;
    parameters.push_back(a.address);
    array_placement p{array_placement::kind::cyclic, 0, {}, small_granule * (1 + random() % 3)};
    if (random() % 2 == 0) {
      p.how = array_placement::kind::parts;
      for (std::uint32_t d = 0; d <= devices; ++d)
        p.bounds.push_back(array_bytes / small_granule * d / devices * small_granule);
    }
    a.homes = homes_under(p, a, devices);
  }
  std::vector<const kernel_array*> arrays;
  std::vector<array_place> places;
  for (const kernel_model::pointer& p : model.pointers()) {
    arrays.push_back(&memory[p.offset / 8]);
    places.push_back({&memory[p.offset / 8].homes, false});
  }

  const launch l{grid, block, parameters.data(), parameters.size() * 8};
  const traffic t = sample_traffic(model, l, arrays, {}, sample_size::all());
  const cost predicted = predict(t, c, places, program_on::machine_of(devices));

  const ptx::function& kernel = *program.program().find_kernel("k");
  sector_counter counted(kernel, c, memory);
  std::vector<std::uint64_t> blocks;
  for (std::uint64_t n = 0; n < std::uint64_t{grid[0]} * grid[1]; ++n) blocks.push_back(n);
  program.run(counted, kernel, {grid[0], grid[1], 1}, {block[0], block[1], 1}, parameters.data(), blocks);
  EXPECT_EQ(predicted.remote_bytes, static_cast<double>(counted.remote));
  EXPECT_EQ(predicted.local_bytes, static_cast<double>(counted.local));
  return counted.remote;
}

TEST(Shares, ArePredictedAsTheInterpreterCountsThem) {
  if (const char* const seed = std::getenv("HPE_TEST_SEED")) {
    test_one(static_cast<unsigned>(std::atoi(seed)));
    return;
  }
  std::uint64_t remote = 0;
  for (unsigned seed = 1; seed <= 150 && !HasFailure(); ++seed) remote += test_one(seed);
  EXPECT_GT(remote, 0U);
}

// The kernel reads an element of array1, and an element of array2 if that of array1 is not 0, and writes to array0.
const std::string reads_optional_array =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 array0, .param .u64 array1, "
    ".param .u64 array2) {\n.reg .b32 %x, %n<3>, %t<3>;\n.reg .pred %p;\n.reg .b64 %base<3>, %raw<3>, %w;\n"
    "ld.param.u64 %raw0, [array0];\nld.param.u64 %raw1, [array1];\nld.param.u64 %raw2, [array2];\n"
    "mov.u32 %n0, %ctaid.x;\nmov.u32 %n1, %ntid.x;\nmov.u32 %n2, %tid.x;\nmad.lo.s32 %x, %n0, %n1, %n2;\n"
    "mul.wide.s32 %w, %x, 4;\nadd.s64 %base0, %raw0, %w;\nadd.s64 %base1, %raw1, %w;\nadd.s64 %base2, %raw2, %w;\n"
    "ld.global.u32 %t0, [%base1];\nsetp.eq.s32 %p, %t0, 0;\n@%p bra STORE;\n"
    "ld.global.u32 %t1, [%base2];\nld.global.u32 %t2, [%base2];\nadd.u32 %t0, %t0, %t1;\n"
    "STORE:\nst.global.u32 [%base0], %t0;\nret;\n}\n";

TEST(Shares, OfPointersWithoutAnAllocation) {
  const kernel_model model(ptx::parse({reads_optional_array}), "k");
  constexpr std::uint64_t blocks = 8, threads = 64, bytes = blocks * threads * 4;
  kernel_array array;
  array.address = gib;
  array.bytes = bytes;
  array.homes = {{0, bytes, 0}};
  const std::vector<const kernel_array*> arrays{&array, &array, nullptr};
  const std::vector<array_place> places{{&array.homes}, {&array.homes}, {}};
  const auto cost_with = [&](std::uint64_t pointer) {
    const std::array<std::uint64_t, 3> parameters{array.address, array.address, pointer};
    const launch l{{blocks, 1, 1}, {threads, 1, 1}, parameters.data(), sizeof parameters};
    const traffic t = sample_traffic(model, l, arrays, {}, sample_size::all());
    return predict(t, whole_grid(l.grid, 2, 0), places, program_on::machine_of(2));
  };
  const cost without = cost_with(0);
  EXPECT_EQ(without.local_bytes, 2 * bytes);
  EXPECT_EQ(without.remote_bytes, 0) << "a null pointer has no traffic";
  EXPECT_EQ(without.host_bytes, 0);
  const cost with = cost_with(0x7f0000001000);
  EXPECT_EQ(with.local_bytes, 2 * bytes);
  EXPECT_EQ(with.remote_bytes, 0) << "other memory is host memory";
  EXPECT_GT(with.host_bytes, 0);
  EXPECT_LE(with.host_bytes, bytes) << "each sector counts once";
}

TEST(Shares, ArePlannedAgainIfAPointerBecomesNull) {
  const kernel_model model(ptx::parse({reads_optional_array}), "k");
  program_on on(2);
  const kernel_array& array = on.allocate(64 * mib, true);
  const auto seconds_with = [&](std::uint64_t pointer) {
    program_on::arguments arguments(*model.analysis().kernel);
    arguments << array << array << pointer;
    return on.decide(model, {1U << 16U, 1, 1}, {256, 1, 1}, arguments).seconds;
  };
  const double without = seconds_with(0), with = seconds_with(0x7f0000001000);
  EXPECT_GT(with, 2 * without) << "host memory is slower";
  EXPECT_EQ(seconds_with(0), without);
}

// One thread reads a matrix of 64 x 64 sectors in two nested loops, but only the elements before its diagonal. hpe
// looks at the iteration in the middle of the outer loop, where half of the elements of a row are read.
TEST(Shares, OfATriangleAreHalfOfTheSquare) {
  const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 array0) {\n.reg .pred %p;\n"
      ".reg .b32 %y, %x, %i, %t;\n.reg .b64 %base, %raw, %w;\nld.param.u64 %raw, [array0];\n"
      "cvta.to.global.u64 %base, %raw;\nmov.u32 %y, 0;\nROW:\nmov.u32 %x, 0;\nELEMENT:\nsetp.ge.s32 %p, %x, %y;\n"
      "@%p bra NEXT;\nshl.b32 %i, %y, 6;\nadd.s32 %i, %i, %x;\nmul.wide.s32 %w, %i, 32;\nadd.s64 %w, %base, %w;\n"
      "ld.global.u32 %t, [%w];\nNEXT:\nadd.s32 %x, %x, 1;\nsetp.lt.s32 %p, %x, 64;\n@%p bra ELEMENT;\n"
      "add.s32 %y, %y, 1;\nsetp.lt.s32 %p, %y, 64;\n@%p bra ROW;\nret;\n}\n";
  const kernel_model model(ptx::parse({text}), "k");
  kernel_array array;
  array.address = gib;
  array.bytes = std::uint64_t{64} * 64 * 32;
  array.homes = {{0, array.bytes, 0}};
  const std::vector<const kernel_array*> arrays{&array};
  const std::vector<array_place> places{{&array.homes}};
  const launch l{{1, 1, 1}, {1, 1, 1}, &array.address, sizeof array.address};
  const traffic t = sample_traffic(model, l, arrays, {}, sample_size::all());
  const cost predicted = predict(t, whole_grid(l.grid, 1, 0), places, program_on::machine_of(1));
  constexpr double read = 64 * 63 / 2 * 32;
  EXPECT_NEAR(predicted.local_bytes, read, read / 20);
}

}  // namespace
}  // namespace hpe::spread::test

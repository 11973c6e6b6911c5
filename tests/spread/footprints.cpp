// The footprint of a part of the grid contains all accesses of the part's blocks. If all addresses of a kernel are
// affine, its footprints are no larger than these accesses. HPE_TEST_SEED repeats a random kernel.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

#include "runtime/spread/repeated_footprints.h"
#include "tests/ptx/analysis/fixture.h"
#include "tests/ptx/kernel_generator.h"
#include "tests/spread/fixture.h"

namespace hpe::spread::test {
namespace {

/// Records the first and the last byte of each array that the blocks access.
class access_recorder final : public ptx::instruction_observer {
 public:
  access_recorder(const ptx::analysis::kernel_analysis& kernel, const std::vector<kernel_array>& arrays)
      : kernel_(kernel), arrays_(arrays), first(arrays.size(), ~0ULL), last(arrays.size(), 0) {}

  void comes_to(const ptx::block_context& /*block*/, std::uint32_t /*thread*/, const ptx::function& f,
                std::uint32_t position, const std::uint64_t* registers, bool runs) override {
    if (&f != kernel_.kernel || !runs) return;
    for (const ptx::analysis::access& a : kernel_.accesses) {
      if (a.position != position) continue;
      const ptx::operand& o = f.code[position].sources[a.operand];
      if (!o.is_register()) continue;
      const std::uint64_t address = registers[o.index] + o.value;
      for (std::size_t n = 0; n < arrays_.size(); ++n) {
        const std::uint64_t offset = address - arrays_[n].address;
        if (offset >= arrays_[n].bytes) continue;
        first[n] = std::min(first[n], offset);
        last[n] = std::max(last[n], offset + 1);
      }
    }
  }

 private:
  const ptx::analysis::kernel_analysis& kernel_;
  const std::vector<kernel_array>& arrays_;

 public:
  std::vector<std::uint64_t> first, last;  // by array; if nothing was accessed, first > last
};

struct tally {
  unsigned ranges = 0, narrow = 0, unknown = 0, accessed = 0;
};

void test_one(unsigned seed, tally& count) {
  const std::string text = ptx::test::kernel_generator(seed).text();
  SCOPED_TRACE(fmt::format("HPE_TEST_SEED={}\n{}", seed, text));
  std::mt19937 random(seed);
  const kernel_model model(ptx::parse({text}), "k");
  ptx::test::checked_program program(text);
  ptx::test::generated_parameters values{};
  auto* const table = static_cast<std::uint32_t*>(program.take(64));
  for (unsigned n = 0; n < 16; ++n) table[n] = static_cast<std::uint32_t>(random() % 50);
  values.array0 = 0x7f0000000000;
  values.array1 = 0x7e0000000100;
  values.table = reinterpret_cast<std::uint64_t>(table);
  values.n = static_cast<std::uint32_t>(random() % (seed % 7 == 0 ? 0xffffffffU : 100U));
  values.stride = static_cast<std::uint32_t>(random() % 40);
  std::vector<kernel_array> memory(3);
  memory[0].address = values.array0 - 64 * kib;
  memory[1].address = values.array1 - 64 * kib;
  memory[0].bytes = memory[1].bytes = 256 * kib;
  memory[2].address = values.table;
  memory[2].bytes = 64;
  std::vector<const kernel_array*> arrays;
  for (const kernel_model::pointer& p : model.pointers()) arrays.push_back(&memory[p.offset / 8]);

  const dimension grid{3, 2, 2}, block{4, 3, 2};
  footprint touched(model, {grid, block, &values, sizeof values}, arrays);
  if (!touched.obstacle().empty()) {
    ++count.unknown;
    return;
  }
  const ptx::function& kernel = *program.program().find_kernel("k");
  const ptx::analysis::kernel_analysis analysis = ptx::analysis::analyse(program.program(), kernel);
  for (unsigned n = 0; n < 2; ++n) {
    const subgrid part = random_part(random, grid);
    access_recorder seen(analysis, memory);
    program.run(seen, kernel, {3, 2, 2}, {4, 3, 2}, &values, blocks_of(part, grid), true);
    std::vector<used_bytes> of_array(memory.size());
    for (const used_bytes& used : touched.of(part)) {
      of_array[model.pointers()[used.pointer].offset / 8] = used;
      ++count.ranges;
      count.narrow += used.last - used.first < 128 * kib ? 1 : 0;
    }
    for (std::size_t a = 0; a < memory.size(); ++a) {
      if (seen.first[a] >= seen.last[a]) continue;
      ++count.accessed;
      ASSERT_LE(of_array[a].first, seen.first[a]) << "array " << a;
      ASSERT_GE(of_array[a].last, seen.last[a]) << "array " << a;
    }
  }
}

TEST(Footprints, ContainWhatBlocksOfRandomKernelsAccess) {
  tally count;
  if (const char* const seed = std::getenv("HPE_TEST_SEED")) {
    test_one(static_cast<unsigned>(std::atoi(seed)), count);
    return;
  }
  const unsigned first = std::random_device{}();
  fmt::print("seeds from {} on\n", first);
  for (unsigned n = 0; n < 400 && !HasFailure(); ++n) test_one(first + n, count);
  fmt::print("{} kernels not known; {} ranges, {} of them narrow; {} with accesses\n", count.unknown, count.ranges,
             count.narrow, count.accessed);
  EXPECT_GT(count.accessed, 100U);  // otherwise the test would check too little
  EXPECT_GT(count.narrow, count.ranges / 20);
}

/// Returns a kernel with one array and this body; x is the global index.
std::string kernel_of(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 array, .param .u32 n) {\n"
         ".reg .pred %p;\n.reg .b32 %x, %i, %k, %n, %s, %t<4>;\n.reg .b64 %base, %raw, %w;\n"
         "ld.param.u64 %raw, [array];\ncvta.to.global.u64 %base, %raw;\nld.param.u32 %n, [n];\n"
         "mov.u32 %t0, %ctaid.x;\nmov.u32 %t1, %ntid.x;\nmov.u32 %t2, %tid.x;\nmad.lo.s32 %x, %t0, %t1, %t2;\n" +
         body + "END:\nret;\n}\n";
}

struct expected {
  std::uint64_t first, last;
};

// A launch of 16 blocks of 32 threads, whose kernel has the parameters `array`, a pointer to `bytes` bytes, and `n`.
struct launch_over_one_array {
  launch_over_one_array(const std::string& body, std::uint64_t bytes, std::uint32_t n)
      : model(ptx::parse({kernel_of(body)}), "k"), array(array_of(bytes)), values{gib, n} {}
  static kernel_array array_of(std::uint64_t bytes) {
    kernel_array made;
    made.address = gib;
    made.bytes = bytes;
    return made;
  }

  kernel_model model;
  kernel_array array;
  struct {
    std::uint64_t array;
    std::uint32_t n;
  } values;
  std::vector<const kernel_array*> arrays{&array};
  launch l{{16, 1, 1}, {32, 1, 1}, &values, sizeof values};
  footprint touched{model, l, arrays};
};

void expect_bytes(const std::string& body, std::uint32_t n, const subgrid& part, const expected& bytes,
                  std::uint64_t array_bytes = mib) {
  SCOPED_TRACE(kernel_of(body));
  launch_over_one_array its(body, array_bytes, n);
  ASSERT_EQ(its.touched.obstacle(), "");
  const std::vector<used_bytes> used = its.touched.of(part);
  ASSERT_EQ(used.size(), 1U);
  EXPECT_EQ(used[0].first, bytes.first);
  EXPECT_EQ(used[0].last, bytes.last);
}

constexpr const char* load_at_i = "mul.wide.s32 %w, %i, 4;\nadd.s64 %w, %base, %w;\nld.global.u32 %t3, [%w];\n";
const subgrid two_blocks{{4, 0, 0}, {2, 1, 1}};  // threads 128 to 191

TEST(Footprints, OfAnElementForEachThread) {
  expect_bytes("setp.ge.s32 %p, %x, %n;\n@%p bra END;\nmov.u32 %i, %x;\n" + std::string(load_at_i), 500, two_blocks,
               {512, 768});
}

TEST(Footprints, OfAHalo) {
  expect_bytes(std::string("add.s32 %i, %x, -1;\n") + load_at_i + "add.s32 %i, %x, 1;\n" + load_at_i, 500, two_blocks,
               {508, 772});
}

TEST(Footprints, OfALoopThatAllThreadsRunEquallyOften) {
  for (const char* const way_out : {"setp.lt.s32 %p, %k, %n;\n", "setp.ne.s32 %p, %k, %n;\n"})
    expect_bytes(std::string("mul.lo.s32 %s, %x, %n;\nmov.u32 %k, 0;\nLOOP:\nadd.s32 %i, %s, %k;\n") + load_at_i +
                     "add.s32 %k, %k, 1;\n" + way_out + "@%p bra LOOP;\n",
                 10, two_blocks, {128 * 40, 192 * 40});
}

// A grid-stride loop. If the grid has a thread for each element, each thread runs at most one iteration.
TEST(Footprints, OfALoopOverTheGrid) {
  const std::string loop = std::string(
                               "mov.u32 %t3, %nctaid.x;\nmul.lo.s32 %s, %t1, %t3;\nmov.u32 %i, %x;\n"
                               "setp.ge.s32 %p, %i, %n;\n@%p bra END;\nLOOP:\n") +
                           load_at_i + "add.s32 %i, %i, %s;\nsetp.lt.s32 %p, %i, %n;\n@%p bra LOOP;\n";
  expect_bytes(loop, 512, two_blocks, {512, 768});
  expect_bytes(loop, 1100, two_blocks, {512, (191 + 512 + 1) * 4});
}

TEST(Footprints, AreTheWholeArrayWhereTheAnalysisTellsNoBounds) {
  expect_bytes(std::string("mov.u32 %i, %x;\n") + load_at_i + "mov.u32 %i, %t3;\n" + load_at_i, 0, two_blocks,
               {0, mib});
  // For large n, the 32-bit index wraps around.
  expect_bytes(std::string("mul.lo.s32 %i, %x, %n;\n") + load_at_i, 0x40000000, two_blocks, {0, mib});
}

// A program may pass a pointer to the end of an array, which is the beginning of the next array.
TEST(Footprints, TellThatAnAccessIsOutsideOfTheArrayOfItsPointer) {
  launch_over_one_array its(std::string("not.b32 %i, %x;\n") + load_at_i, mib, 0);
  EXPECT_TRUE(its.touched.of(two_blocks).empty());
  EXPECT_TRUE(its.touched.leaves_arrays());
  const cut_in_time none = cut_for_room(its.touched, its.model, cut_evenly(its.l.grid, 1).parts, "",
                                        [](const std::vector<used_bytes>&) { return 2.0; });
  EXPECT_EQ(none.obstacle, "it accesses memory outside of the array to which the pointer of the access points");
}

// Results of min.relu and max.relu are at least 0, even if no operand can be 0.
TEST(Footprints, OfAnIndexThatIsLimitedFromBelow) {
  expect_bytes(std::string("add.s32 %i, %x, -150;\nmin.relu.s32 %i, %i, 1000;\n") + load_at_i, 0, two_blocks, {0, mib});
}

double sum_of(const std::vector<used_bytes>& used) {
  double all = 0;
  for (const used_bytes& b : used) all += static_cast<double>(b.last - b.first);
  return all;
}

cut_in_time cut_of(const std::string& body, double room, const std::string& obstacle = "", std::uint32_t devices = 1) {
  launch_over_one_array its(body, 2048, 512);
  return cut_for_room(its.touched, its.model, cut_evenly(its.l.grid, devices).parts, obstacle,
                      [&](const std::vector<used_bytes>& used) { return sum_of(used) / room; });
}

TEST(CutInTime, PartsAreASixthOfTheRoom) {
  const std::string each = std::string("mov.u32 %i, %x;\n") + load_at_i;
  EXPECT_EQ(cut_of(each, 2048).parts.size(), 1U);
  EXPECT_EQ(cut_of(each, 1600).parts.size(), 8U);  // a block uses 128 bytes
  EXPECT_EQ(cut_of(each, 200).parts.size(), 16U);
  const cut_in_time even = cut_of(each, 1600);
  std::uint64_t blocks = 0;
  for (const part_of_devices& part : even.parts) blocks += part[0].blocks();
  EXPECT_EQ(blocks, 16U);
}

TEST(CutInTime, EachDeviceRunsPartsOfItsShare) {
  const cut_in_time of_three = cut_of(std::string("mov.u32 %i, %x;\n") + load_at_i, 1024, "", 3);
  ASSERT_EQ(of_three.parts.size(), 5U);  // the device with the fewest blocks has five
  std::vector<bool> seen(16);
  for (const part_of_devices& part : of_three.parts)
    for (std::uint32_t d = 0; d < 3; ++d)
      for (std::uint32_t b = part[d].first[0]; b < part[d].first[0] + part[d].count[0]; ++b) {
        EXPECT_FALSE(seen[b]);
        EXPECT_EQ(d, b < 5 ? 0U : b < 10 ? 1U : 2U);
        seen[b] = true;
      }
  EXPECT_EQ(std::ranges::count(seen, true), 16);
}

bool is_overwritten(const std::string& body, std::uint32_t n, std::uint64_t array_bytes = mib) {
  launch_over_one_array its(body, array_bytes, n);
  const std::vector<used_bytes> used = its.touched.with_overwritten({two_blocks});
  EXPECT_EQ(used.size(), 1U);
  return used.at(0).is_overwritten;
}

constexpr const char* store_at_i = "mul.wide.s32 %w, %i, 4;\nadd.s64 %w, %base, %w;\nst.global.u32 [%w], %x;\n";

TEST(Footprints, TellWhichBytesTheBlocksOverwrite) {
  const std::string each = "mov.u32 %i, %x;\n";
  EXPECT_TRUE(is_overwritten(each + store_at_i, 0));
  EXPECT_FALSE(is_overwritten(each + load_at_i, 0));
  EXPECT_FALSE(is_overwritten(each + load_at_i + store_at_i, 0));
  EXPECT_FALSE(
      is_overwritten(each + "mul.wide.s32 %w, %i, 4;\nadd.s64 %w, %base, %w;\nred.global.add.u32 [%w], 1;\n", 0));
  // Every second element, and elements that the kernel chooses by data.
  EXPECT_FALSE(is_overwritten("shl.b32 %i, %x, 1;\n" + std::string(store_at_i), 0));
  EXPECT_FALSE(is_overwritten(each + load_at_i + "setp.eq.u32 %p, %t3, 0;\n@%p bra END;\n" + store_at_i, 0));
}

// The blocks have threads 128 to 191. With n = 160, the array must end at element 160, or its last elements keep their
// values.
TEST(Footprints, TellWhichBytesTheLastBlocksOverwrite) {
  const std::string guarded = "setp.ge.s32 %p, %x, %n;\n@%p bra END;\nmov.u32 %i, %x;\n" + std::string(store_at_i);
  EXPECT_TRUE(is_overwritten(guarded, 192));
  EXPECT_TRUE(is_overwritten(guarded, 160, 640));
  EXPECT_FALSE(is_overwritten(guarded, 160, 644));
  EXPECT_FALSE(is_overwritten(guarded, 159, 640));
}

// Each block writes the first n elements of a row of 32, like a stencil that leaves the border of its result.
TEST(Footprints, TellWhichRowsTheBlocksOverwrite) {
  const auto rows_of = [](const std::string& before, std::uint32_t n) {
    const std::string guard = "setp.ge.s32 %p, %t2, %n;\n@%p bra END;\nmov.u32 %i, %x;\n";
    launch_over_one_array its(before + guard + store_at_i, mib, n);
    const std::vector<used_bytes> used = its.touched.with_overwritten({two_blocks});
    EXPECT_EQ(used.size(), 1U);
    EXPECT_FALSE(used.at(0).is_overwritten);
    return used.at(0).rows;
  };
  const std::optional<placed_box> most = rows_of("", 28);
  ASSERT_TRUE(most.has_value());
  EXPECT_EQ(most->offset, 128 * 4);
  EXPECT_EQ(most->shape, (box{{28 * 4, 2}, {32 * 4, 0}}));
  EXPECT_FALSE(rows_of("", 8).has_value());                                             // few of the bytes
  EXPECT_FALSE(rows_of("mov.u32 %i, %x;\n" + std::string(load_at_i), 28).has_value());  // it reads the array
}

TEST(RepeatedFootprints, AreThoseOfTheSecondLaunch) {
  launch_over_one_array its("mul.lo.s32 %i, %x, %n;\n" + std::string(load_at_i), mib, 1);
  its.array.version = 1;
  its.l.parameter_bytes = its.model.analysis().kernel->formals_size;
  repeated_footprints all;
  const auto first_byte_behind = [&] {
    const auto used = all.find(its.model, its.l, its.arrays);
    return used == nullptr ? 0 : used->at(0).last;
  };
  EXPECT_EQ(first_byte_behind(), 0U);
  for (int n = 0; n < 2; ++n) EXPECT_EQ(first_byte_behind(), 512 * 4U);
  its.values.n = 2;  // decides the addresses
  EXPECT_EQ(first_byte_behind(), 0U);
  EXPECT_EQ(first_byte_behind(), 512 * 8U - 4);
  its.array.version = 2;
  EXPECT_EQ(first_byte_behind(), 0U);
  EXPECT_NE(first_byte_behind(), 0U);
  all.forget();
  EXPECT_EQ(first_byte_behind(), 0U);
}

TEST(RepeatedFootprints, AreUnknownIfTheKernelReadsPointersOrLeavesTheArray) {
  for (const std::string& body : {std::string("ld.global.u64 %w, [%base];\nld.global.u32 %t3, [%w];\n"),
                                  std::string("not.b32 %i, %x;\n") + load_at_i}) {
    launch_over_one_array its(body, mib, 0);
    its.l.parameter_bytes = its.model.analysis().kernel->formals_size;
    repeated_footprints all;
    for (int n = 0; n < 3; ++n) EXPECT_EQ(all.find(its.model, its.l, its.arrays), nullptr);
  }
}

// The first half of the array is on one device and the second half on another. Cutting the grid into two parts does not
// reduce the memory that a part needs on one device.
TEST(CutInTime, HalvesAgainWhereHalvingDoesNotHelp) {
  launch_over_one_array its(std::string("mov.u32 %i, %x;\n") + load_at_i, 2048, 512);
  const auto load = [](const std::vector<used_bytes>& used) {
    double of_first = 0, of_second = 0;
    for (const used_bytes& b : used) {
      of_first += static_cast<double>(std::min<std::uint64_t>(b.last, 1024) - std::min<std::uint64_t>(b.first, 1024));
      of_second += static_cast<double>(std::max<std::uint64_t>(b.last, 1024) - std::max<std::uint64_t>(b.first, 1024));
    }
    return std::max(of_first, of_second) / 512;
  };
  EXPECT_EQ(cut_for_room(its.touched, its.model, {{{}, {16, 1, 1}}}, "", load).parts.size(), 16U);
}

TEST(CutInTime, TellsWhyALaunchCannotBeCut) {
  const std::string each = std::string("mov.u32 %i, %x;\n") + load_at_i;
  EXPECT_EQ(cut_of(each, 100).obstacle,
            "it uses 128 bytes of parameter 1 in every part of its grid, however the grid is cut");
  EXPECT_EQ(cut_of(each, 1024, "it is in the way").obstacle, "it is in the way");
  EXPECT_EQ(cut_of(each, 2048, "it is in the way").parts.size(), 1U);  // the grid fits, so it is not cut
  const std::string chases = "ld.global.u64 %w, [%base];\nld.global.u32 %t3, [%w];\n";
  EXPECT_EQ(cut_of(chases, 1024).obstacle, "it reads pointers from memory, or makes accesses that hpe cannot analyse");
}

// A kernel, and a function that a kernel calls, with an instruction that hpe does not know.
TEST(CutInTime, TellsThatCodeIsNotKnown) {
  const std::string unknown = "unheard.of.u32 %t3, %x;\n";
  const std::string calling = ".version 8.0\n.target sm_80\n.address_size 64\n.func f() {\n.reg .b32 %x, %t3;\n" +
                              unknown +
                              "ret;\n}\n.visible .entry k(.param .u64 array, .param .u32 n) {\ncall f;\nret;\n}\n";
  for (const std::string& text : {kernel_of(unknown), calling}) {
    SCOPED_TRACE(text);
    const kernel_model model(ptx::parse({text}, ptx::warp_order::independent, ptx::unknown_code::left_out), "k");
    EXPECT_TRUE(model.finds_pointers());
    EXPECT_TRUE(model.writes_anywhere());
    EXPECT_EQ(model.obstacle().find("hpe does not know its code: PTX line "), 0U) << model.obstacle();
    const std::array<std::uint64_t, 2> values{};
    const std::vector<const kernel_array*> arrays(model.pointers().size());
    const footprint touched(model, {{16, 1, 1}, {32, 1, 1}, values.data(), sizeof values}, arrays);
    EXPECT_EQ(touched.obstacle().find("it has code that hpe does not know: PTX line "), 0U) << touched.obstacle();
  }
}

}  // namespace
}  // namespace hpe::spread::test

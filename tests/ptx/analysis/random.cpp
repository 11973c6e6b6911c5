// Random kernels (kernel_generator.h): every claim of the analysis about an access is true in the interpreter. The
// seeds are printed; HPE_TEST_SEED repeats one of them.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/ptx/analysis/fixture.h"
#include "tests/ptx/kernel_generator.h"

namespace hpe::ptx::test {
namespace {

TEST(RandomKernels, AccessMemoryAsTheAnalysisSays) {
  const char* const given = std::getenv("HPE_TEST_SEED");
  const unsigned first =
      given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  const unsigned kernels = given != nullptr ? 1 : 600;
  fmt::print("seeds {} to {}\n", first, first + (kernels - 1));
  std::uint64_t exact = 0, alike = 0, others = 0, affine = 0, local = 0;
  for (unsigned seed = first; seed != first + kernels; ++seed) {
    const std::string text = kernel_generator(seed).text();
    checked_program program(text);
    const function& kernel = *program.program().find_kernel("k");
    const analysis::kernel_analysis found = analysis::analyse(program.program(), kernel);
    ASSERT_TRUE(found.walk->is_complete()) << "seed " << seed << "\n" << text;
    analysis::record_check check(program.image(), found);
    std::mt19937 random(seed);
    auto* const table = static_cast<std::uint32_t*>(program.take(64));
    for (unsigned n = 0; n < 16; ++n) table[n] = static_cast<std::uint32_t>(random() % 50);
    generated_parameters values{};
    values.array0 = 0x7f0000000000;
    values.array1 = 0x7e0000000100;
    values.table = reinterpret_cast<std::uint64_t>(table);
    values.n = static_cast<std::uint32_t>(random() % (seed % 7 == 0 ? 0xffffffffU : 100U));
    values.stride = static_cast<std::uint32_t>(random() % 40);
    const dimensions grid{3, 2, 2}, block{4, 3, 2};
    program.run(check, kernel, grid, block, &values, {0, 1, 2, 4, 11}, true);
    ASSERT_TRUE(check.contradictions().empty()) << "seed " << seed << ": " << check.contradictions()[0] << "\n" << text;
    exact += check.exact();
    alike += check.alike();
    others += check.outside_assumptions() + check.unchecked();
    for (const analysis::access& a : found.accesses) {
      affine += a.how == analysis::address_class::affine ? 1 : 0;
      local += a.how == analysis::address_class::local ? 1 : 0;
    }
  }
  fmt::print("{} accesses exact, {} alike in all blocks, {} not judged; {} affine and {} local records\n", exact, alike,
             others, affine, local);
  if (given != nullptr) return;
  EXPECT_GT(exact, others / 2);  // otherwise the test would check too little
  EXPECT_GT(alike, 0U);
  EXPECT_GT(affine, 100U);
  EXPECT_GT(local, 100U);
}

}  // namespace
}  // namespace hpe::ptx::test

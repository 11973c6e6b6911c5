// Programs for one GPU have the same results on the CPU, on one device, with patched kernels, and spread over 2 to 4
// devices.

#include <gtest/gtest.h>

#include "bench/spread/runner.h"
#include "bench/spread/single_gpu_kernels.h"

namespace hpe::bench {
namespace {

const ptx_module& kernels() {
  static const ptx_module all(single_gpu_kernels());
  return all;
}

const std::vector<named_program>& programs() {
  static const std::vector<named_program> all = single_gpu_programs(0.0001);
  return all;
}

class Programs : public testing::TestWithParam<std::size_t> {};

TEST_P(Programs, GiveTheResultsOfTheCpu) {
  const single_gpu_program program = programs().at(GetParam()).make();
  running_program plain(program, kernels(), way::as_it_is, 1);
  plain.fill();
  contents memory;
  for (const auto& array : plain.arrays()) memory.emplace_back(array.begin(), array.end());
  program.on_cpu(memory);
  contents expected;
  for (const int n : program.results) expected.push_back(memory[static_cast<std::size_t>(n)]);
  plain.run();
  // Elements that no kernel writes stay NaN; they are compared as integers, so that they are equal.
  EXPECT_EQ(differences(plain.results(), expected, program), 0U);

  running_program patched(program, kernels(), way::patched, 1);
  patched.fill();
  patched.run();
  EXPECT_EQ(differences(plain, patched, program, kernels()), 0U);
  for (int devices = 2; devices <= device_count(); ++devices) {
    running_program spread(program, kernels(), way::spread, devices);
    spread.fill();
    spread.run();
    EXPECT_EQ(differences(plain, spread, program, kernels()), 0U) << devices << " devices";
    EXPECT_GT(spread.spread_steps(), 0U) << spread.reason();
  }
}

INSTANTIATE_TEST_SUITE_P(SingleGpu, Programs, testing::Range(std::size_t{0}, programs().size()), [](const auto& given) {
  std::string name = programs().at(given.param).name;
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name;
});

}  // namespace
}  // namespace hpe::bench

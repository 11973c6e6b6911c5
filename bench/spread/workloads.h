#pragma once

/// The programs for one GPU of tests/ptx/programs/single_gpu.cu as data: arrays, launches and results, so that the
/// benchmark and the tests run the same programs on one device, spread, and on the CPU.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hpe::bench {

/// The parameter of a kernel: a pointer to the array with number `array`, or, if `array` is -1, the number `bits`.
struct argument {
  int array = -1;
  std::uint64_t bits = 0;
};

struct step {
  std::string kernel;
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::vector<argument> arguments;
};

/// An array of words of 4 bytes.
struct memory {
  std::uint64_t words = 0;
  enum class content : std::uint8_t { random_floats, zeros, given, result };
  content what = content::random_floats;
  std::vector<std::uint32_t> given;
};

/// The words of each array of a program.
using contents = std::vector<std::vector<std::uint32_t>>;

struct single_gpu_program {
  std::string name, size;
  std::vector<memory> arrays;
  std::vector<step> steps;
  std::vector<int> results;               // the numbers of the arrays with the results
  bool is_exact = true;                   // false: depends on the order of atomic floating-point additions
  bool are_floats = true;                 // whether the results are floats
  double bar = 0;                         // the least required speed on two devices, relative to one
  std::function<void(contents&)> on_cpu;  // computes the results of the steps
};

/// A program that is built on demand, because the arrays of large programs take seconds to compute.
struct named_program {
  std::string name;
  std::function<single_gpu_program()> make;
};

/// Returns all programs at the sizes of the thesis times a factor. A factor below 0.01 gives small programs for tests.
[[nodiscard]] std::vector<named_program> single_gpu_programs(double factor);

}  // namespace hpe::bench

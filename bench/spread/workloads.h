#pragma once

/// Describes the programs of tests/ptx/programs/single_gpu.cu as data: arrays, launches and results. The benchmark and
/// the tests run the same descriptions on one device, spread over devices, and on the CPU.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hpe::bench {

/// A kernel argument: a pointer to the array number `array`, or, if `array` is -1, the value `bits`.
struct argument {
  int array = -1;
  std::uint64_t bits = 0;
};

struct step {
  std::string kernel;
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::vector<argument> arguments;
};

/// An array of 4-byte words and its initial content.
struct memory {
  std::uint64_t words = 0;
  enum class content : std::uint8_t { random_floats, zeros, given, result };
  content what = content::random_floats;
  std::vector<std::uint32_t> given;
};

/// The contents of all arrays of a program, in words.
using contents = std::vector<std::vector<std::uint32_t>>;

struct single_gpu_program {
  std::string name, size;
  std::vector<memory> arrays;
  std::vector<step> steps;
  std::vector<int> results;               // the numbers of the arrays that contain the results
  bool is_exact = true;                   // false: the results depend on the order of atomic floating-point additions
  bool are_floats = true;                 // whether the results are floats (false: integers)
  double bar = 0;                         // least required speed on two devices, relative to one; 0: none
  std::function<void(contents&)> on_cpu;  // computes the results of all launches on the CPU
};

/// The name of a program, and a function that makes it. Programs are made on demand, because computing the arrays of
/// large programs takes seconds.
struct named_program {
  std::string name;
  std::function<single_gpu_program()> make;
};

/// Returns all programs, at the sizes of the thesis multiplied by `factor`. A factor below 0.01 yields small programs
/// for tests.
[[nodiscard]] std::vector<named_program> single_gpu_programs(double factor);

}  // namespace hpe::bench

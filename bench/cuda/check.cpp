// The cost of hpe run --check on a soft device: the processor time of programs that launch one kernel repeatedly, with
// and without the check, in turn. This benchmark is also these programs: it starts itself with the option --program.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/common/measure.h"
#include "bench/common/processor_time.h"
#include "bench/cuda/checked_kernels.h"

namespace {

using hpe::bench::result;

// Returns the processor time, in seconds, of a program from its start to its end.
double time_of(const std::string& kernel, unsigned launches, bool is_checked) {
  ::setenv("HPE_CHECK", is_checked ? "on" : "off", 1);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string line = fmt::format("'{}' --program {} --launches {} 2> /dev/null", program, kernel, launches);
  std::FILE* const output = ::popen(line.c_str(), "r");  // NOLINT(cert-env33-c): the program itself
  double seconds = 0;
  const bool is_read = output != nullptr && std::fscanf(output, "%lf", &seconds) == 1;
  if (output == nullptr || ::pclose(output) != 0 || !is_read) throw std::runtime_error(fmt::format("{} failed", line));
  return seconds;
}

result cost_of(const std::string& kernel, unsigned launches, unsigned repeats) {
  constexpr double bar = 3;
  std::vector<double> ratios;
  time_of(kernel, 1, false);  // compiles the kernel
  time_of(kernel, 1, true);
  for (unsigned n = 0; n < repeats; ++n) {
    const double plain = time_of(kernel, launches, false);
    ratios.push_back(time_of(kernel, launches, true) / plain);
  }
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  const double middle = hpe::command_line::median(ratios);
  return {fmt::format("{}: processor time with the check, without the check = 1", kernel),
          middle,
          "x",
          fmt::format("<= {}", bar),
          middle <= bar,
          fmt::format("{:.2f} to {:.2f}", *least, *most)};
}

}  // namespace

int main(int argc, char** argv) {
  std::string program, only;
  unsigned launches = 100;
  ::setenv("HPE_DEVICES", "soft:1", 0);
  const hpe::bench::arguments given = hpe::bench::parse(
      argc, argv, "the processor time of CUDA programs under hpe run --check, compared with plain runs",
      {{"--launches", "N", "launches of each kernel (100)", hpe::bench::to_whole(launches)},
       {"--only", "KERNEL", "only this kernel", hpe::bench::to_text(only)},
       {"--program", "KERNEL", "launch this kernel, and print the processor time; the benchmark starts itself so",
        hpe::bench::to_text(program)}});
  if (!program.empty()) {
    hpe::bench::launch_checked_kernel(program, launches);
    fmt::print("{}\n", hpe::bench::processor_seconds());
    return EXIT_SUCCESS;
  }
  std::vector<result> results;
  for (const std::string& kernel : hpe::bench::checked_kernels())
    if (only.empty() || kernel == only) results.push_back(cost_of(kernel, launches, given.repeats));
  return hpe::bench::report(
      fmt::format("The cost of the check on soft devices, {} launches, {}", launches, hpe::bench::load_of_machine()),
      results, given);
}

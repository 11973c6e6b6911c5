// Small CUDA launches on a soft device: the time of the call, the launches per second, and how long CPU code waits for
// a launch whose result it reads. Each is measured with few and with many allocations, because hpe must assume that a
// launch may access every allocation.

#include "bench/cuda/cuda_launches.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/common/measure.h"

namespace {

using hpe::bench::result;
using hpe::bench::timed;
using hpe::bench::timing;

constexpr int in_a_row = 500;

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(EXIT_FAILURE);
}

double microseconds(double seconds) { return seconds / in_a_row * 1e6; }

std::string spread(const timing& t) {
  return std::to_string(microseconds(t.fastest)) + " to " + std::to_string(microseconds(t.slowest));
}

void tell(std::vector<result>& results, const std::string& what, const timing& t) {
  results.push_back({what, microseconds(t.median), "us", "", true, spread(t)});
}

void measure(int allocations, unsigned repeats, std::vector<result>& results) {
  constexpr std::size_t large = std::size_t{4} << 20;  // so large that each allocation has a region of its own
  std::vector<unsigned*> memory(static_cast<std::size_t>(allocations));
  for (unsigned*& each : memory) {
    check(cudaMalloc(reinterpret_cast<void**>(&each), large));
    check(cudaMemset(each, 0, large));
  }
  unsigned* const number = memory.front();
  unsigned launched = 0;
  const auto finish = [] { check(cudaDeviceSynchronize()); };
  const auto launch = [&] {
    for (int i = 0; i < in_a_row; ++i, ++launched) hpe::bench::launch_add(number);
  };
  const std::string with = ", " + std::to_string(allocations) + " allocations";
  tell(results, "the call of a launch" + with, timed(repeats, finish, launch));
  tell(results, "a launch, of many in a row" + with, timed(repeats, finish, [&] {
         launch();
         finish();
       }));
  tell(results, "a launch and cudaDeviceSynchronize" + with, timed(repeats, finish, [&] {
         for (int i = 0; i < in_a_row; ++i, ++launched) {
           hpe::bench::launch_add(number);
           finish();
         }
       }));
  unsigned seen = 0;
  check(cudaMemcpy(&seen, number, sizeof seen, cudaMemcpyDeviceToHost));
  if (seen != launched) {
    std::fprintf(stderr, "the program launched %u kernels, but the kernels' counter is %u\n", launched, seen);
    std::exit(EXIT_FAILURE);
  }
  for (unsigned* const each : memory) check(cudaFree(each));
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("HPE_DEVICES", "soft:1", 0);
  const auto given = hpe::bench::parse(argc, argv, "small launches of CUDA programs on a soft device");
  std::vector<result> results;
  for (const int allocations : {4, 64}) measure(allocations, given.repeats, results);
  return hpe::bench::report("small launches of CUDA on a soft device, " + std::to_string(in_a_row) +
                                " in each repeat, " + hpe::bench::load_of_machine(),
                            results, given);
}

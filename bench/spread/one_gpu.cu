// The programs of workloads.h as a CUDA program for one GPU that does not use hpe: it calls cudaMalloc, launches
// kernels and copies. scripts/gpu-check --group spread runs the program without hpe and under `hpe run --spread`.
//
//   one-gpu [--times FILE] FACTOR [NAME...]
//
// For each workload, prints a line with a checksum of all results. If rounding depends on the order of additions, the
// line contains the sum of the results with few digits instead. With --times, also writes a line to FILE: the median
// time of seven runs in milliseconds, and the workload's name.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "bench/spread/workloads.h"
#include "tests/interpose/programs/check.h"
#include "tests/ptx/programs/single_gpu.cu"

// Adds a hash of each word and its index to *sum.
__global__ void add_words(unsigned long long* sum, const unsigned* words, unsigned long long n) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned mine = i < n ? scrambled(i ^ ((unsigned long long)words[i] << 32)) : 0;
  mine = __reduce_add_sync(~0u, mine);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, (unsigned long long)mine);
}

namespace {

using hpe::bench::memory;
using hpe::bench::single_gpu_program;
using hpe::bench::step;

const std::map<std::string, const void*> kernels{{"vecadd", (const void*)vecadd},
                                                 {"saxpy", (const void*)saxpy},
                                                 {"reduction", (const void*)reduction},
                                                 {"convolution2D", (const void*)convolution2D},
                                                 {"stencil2D", (const void*)stencil2D},
                                                 {"stencil3D", (const void*)stencil3D},
                                                 {"sgemv", (const void*)sgemv},
                                                 {"sgemm", (const void*)sgemm},
                                                 {"transpose", (const void*)transpose},
                                                 {"fft1D", (const void*)fft1D},
                                                 {"sort_blocks", (const void*)sort_blocks},
                                                 {"merge_runs", (const void*)merge_runs},
                                                 {"fill_word", (const void*)fill_word},
                                                 {"spmv_csr", (const void*)spmv_csr},
                                                 {"spmv_coo", (const void*)spmv_coo},
                                                 {"spmv_ell", (const void*)spmv_ell},
                                                 {"spmv_jds", (const void*)spmv_jds},
                                                 {"bfs_expand", (const void*)bfs_expand},
                                                 {"bfs_advance", (const void*)bfs_advance}};

std::uint64_t sum_of_all(const unsigned* words, std::uint64_t n) {
  unsigned long long *sum = nullptr, made = 0;
  CHECK(cudaMalloc(&sum, sizeof *sum));
  CHECK(cudaMemset(sum, 0, sizeof *sum));
  add_words<<<(unsigned)((n + 255) / 256), 256>>>(sum, words, n);
  CHECK(cudaMemcpy(&made, sum, sizeof made, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(sum));
  return made;
}

class program {
 public:
  explicit program(const single_gpu_program& what) : what_(what) {
    for (const memory& m : what.arrays) CHECK(cudaMalloc(&arrays_.emplace_back(), 4 * m.words));
  }
  ~program() {
    for (void* a : arrays_) CHECK(cudaFree(a));
  }

  void fill() {
    for (std::size_t n = 0; n < arrays_.size(); ++n) {
      const memory& m = what_.arrays[n];
      const unsigned blocks = (unsigned)((m.words + 255) / 256);
      if (m.what == memory::content::random_floats) fill_random<<<blocks, 256>>>((float*)arrays_[n], m.words, n + 1);
      if (m.what == memory::content::zeros || m.what == memory::content::result)
        CHECK(cudaMemset(arrays_[n], 0, 4 * m.words));
      if (m.what == memory::content::given)
        CHECK(cudaMemcpy(arrays_[n], m.given.data(), 4 * m.words, cudaMemcpyHostToDevice));
    }
    CHECK(cudaDeviceSynchronize());
  }

  void run() {
    for (const step& s : what_.steps) {
      std::vector<void*> parameters;
      for (const auto& a : s.arguments)
        parameters.push_back(a.array >= 0 ? (void*)&arrays_[(std::size_t)a.array] : (void*)&a.bits);
      CHECK(cudaLaunchKernel(kernels.at(s.kernel), dim3(s.grid[0], s.grid[1], s.grid[2]),
                             dim3(s.block[0], s.block[1], s.block[2]), parameters.data(), 0, nullptr));
    }
  }

  void print() const {
    std::uint64_t all = 0;
    double sum = 0;
    for (const int n : what_.results) {
      const std::uint64_t words = what_.arrays[(std::size_t)n].words;
      all = all * 0x100000001b3ULL + sum_of_all((const unsigned*)arrays_[(std::size_t)n], words);
      // The host copies all words of a small array, and three slices of a large one.
      const std::uint64_t slice = std::min<std::uint64_t>(words, 1U << 20U);
      for (const std::uint64_t at : {std::uint64_t{0}, (words - slice) / 2, words - slice}) {
        std::vector<std::uint32_t> copied(slice);
        CHECK(cudaMemcpy(copied.data(), (const unsigned*)arrays_[(std::size_t)n] + at, 4 * slice,
                         cudaMemcpyDeviceToHost));
        for (const std::uint32_t w : copied) {
          float value = 0;
          std::memcpy(&value, &w, sizeof value);
          all = (all ^ w) * 0x100000001b3ULL;
          sum += std::fabs(value);
        }
      }
    }
    if (what_.is_exact) std::printf("%s %s: %llx\n", what_.name.c_str(), what_.size.c_str(), (unsigned long long)all);
    if (!what_.is_exact) std::printf("%s %s: about %.4g\n", what_.name.c_str(), what_.size.c_str(), sum);
    std::fflush(stdout);
  }

 private:
  const single_gpu_program& what_;
  std::vector<void*> arrays_;
};

double run_ms(program& p) {
  const auto begin = std::chrono::steady_clock::now();
  p.run();
  CHECK(cudaDeviceSynchronize());
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

/// Returns the median time of seven runs, which follow 1.5 s of other runs: by then, hpe has loaded code for all GPUs
/// and moved the arrays.
double median_ms(program& p) {
  double before = 0;
  for (int n = 0; n < 5 || before < 1500; ++n) before += run_ms(p);
  std::vector<double> all;
  for (int n = 0; n < 7; ++n) all.push_back(run_ms(p));
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* times = nullptr;
  int at = 1;
  if (argc > 2 && std::strcmp(argv[1], "--times") == 0) {
    times = std::fopen(argv[2], "w");
    at = 3;
  }
  if (at >= argc) return std::fprintf(stderr, "one-gpu [--times FILE] FACTOR [NAME...]\n"), 2;
  const double factor = std::atof(argv[at++]);
  const auto is_wanted = [&](const std::string& name) {
    return at >= argc || std::any_of(argv + at, argv + argc, [&](const char* word) { return name == word; });
  };
  for (const auto& each : hpe::bench::single_gpu_programs(factor)) {
    if (!is_wanted(each.name)) continue;
    const single_gpu_program what = each.make();
    program p(what);
    // Prints the results after one run, because some workloads change their input.
    p.fill();
    p.run();
    p.print();
    if (times != nullptr) std::fprintf(times, "%.4f %s\n", median_ms(p), (what.name + " " + what.size).c_str());
  }
  if (times != nullptr) std::fclose(times);
}

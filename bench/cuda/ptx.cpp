// The speed of PTX without a GPU: native code compiled from PTX is compared with the same loops in C++, compiled with
// -O2 (bench/cuda/ptx_reference.cpp), and with the PTX interpreter. Native code, C++ loops and interpreter run on one
// thread.
//
// A ratio is the quotient of two medians of the thread's processor time, so that other programs hardly affect it; the
// two contestants run in turn. The interpreter runs a smaller grid and is compared with native code on the same smaller
// grid. Compilation from PTX to native code is timed separately.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <numeric>

#include "bench/common/measure.h"
#include "bench/cuda/ptx_reference.h"
#include "tests/ptx/kernel_runner.h"

namespace {

using hpe::ptx::test::engine_kind;
using hpe::ptx::test::kernel_runner;
namespace reference = hpe::bench::ptx_reference;

std::string program(const char* name) {
  return hpe::ptx::test::read_file(std::string(HPE_PTX_PROGRAMS) + "/" + name + ".ptx");
}

void must_run(const std::optional<hpe::ptx::trap>& stopped) {
  if (!stopped) return;
  std::fprintf(stderr, "%s\n", stopped->message().c_str());
  std::exit(1);
}

/// Returns this thread's processor time in seconds.
double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

hpe::bench::pair_of_medians paired(unsigned repeats, const std::function<void()>& first,
                                   const std::function<void()>& second) {
  std::vector<double> seconds[2];
  first();
  second();
  for (unsigned n = 0; n < repeats; ++n) {
    for (const bool is_second : {false, true}) {
      const double begin = now();
      is_second ? second() : first();
      seconds[is_second ? 1 : 0].push_back(now() - begin);
    }
  }
  for (auto& s : seconds) std::nth_element(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(repeats / 2), s.end());
  return {seconds[0][repeats / 2], seconds[1][repeats / 2]};
}

/// A kernel and the C++ loop that computes the same result. `kernel` and `loop` each return a function that computes a
/// problem of size `scale`.
struct contest {
  const char* name;
  const char* file;
  double bar;  // the lowest accepted ratio of the speed of native code to that of C++
  std::function<std::function<void()>(kernel_runner&, unsigned scale)> kernel;
  std::function<std::function<void()>(unsigned scale)> loop;
};

constexpr unsigned full = 64, small = 4;

std::vector<float> floats(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i % 1000) * 0.001F - 0.5F;
  return values;
}

std::vector<contest> contests() {
  std::vector<contest> all;
  all.push_back({"vector add", "vector_add", 0.25,
                 [](kernel_runner& r, unsigned scale) -> std::function<void()> {
                   const unsigned n = scale << 12;
                   auto* const a = r.upload(floats(n));
                   auto* const b = r.upload(floats(n));
                   auto* const c = r.upload(floats(n));
                   return [=, &r] { must_run(r.launch("vector_add", {{n / 256}, {256}}, a, b, c, n)); };
                 },
                 [](unsigned scale) -> std::function<void()> {
                   const unsigned n = scale << 12;
                   return [a = floats(n), b = floats(n), c = floats(n), n]() mutable {
                     reference::vector_add(a.data(), b.data(), c.data(), n);
                   };
                 }});
  all.push_back({"polynomial in double precision", "vector_add", 0.25,
                 [](kernel_runner& r, unsigned scale) -> std::function<void()> {
                   const unsigned n = scale << 8;
                   auto* const x = r.upload(std::vector<double>(n, 0.75));
                   auto* const y = r.upload(std::vector<double>(n));
                   return [=, &r] { must_run(r.launch("polynomial", {{n / 256}, {256}}, x, y, n)); };
                 },
                 [](unsigned scale) -> std::function<void()> {
                   const unsigned n = scale << 8;
                   return [x = std::vector<double>(n, 0.75), y = std::vector<double>(n), n]() mutable {
                     reference::polynomial(x.data(), y.data(), n);
                   };
                 }});
  all.push_back({"25-point stencil", "stencil", 0.25,
                 [](kernel_runner& r, unsigned scale) -> std::function<void()> {
                   const int nx = 72, ny = 40, nz = 8 + static_cast<int>(scale);
                   const std::size_t n = std::size_t{72} * 40 * static_cast<std::size_t>(nz);
                   const float coefficients[5] = {-2.5F, 1.6F, -0.2F, 0.025F, -0.0017F};
                   std::memcpy(r.address_of("coefficients"), coefficients, sizeof coefficients);
                   auto* const now = r.upload(floats(n));
                   auto* const next = r.upload(floats(n));
                   auto* const velocity = r.upload(std::vector<float>(n, 0.01F));
                   return [=, &r] {
                     must_run(r.launch("stencil", {{2, 4}, {32, 8}}, now, next, velocity, nx, ny, nz));
                   };
                 },
                 [](unsigned scale) -> std::function<void()> {
                   const int nz = 8 + static_cast<int>(scale);
                   const std::size_t n = std::size_t{72} * 40 * static_cast<std::size_t>(nz);
                   return [now = floats(n), next = floats(n), velocity = std::vector<float>(n, 0.01F), nz]() mutable {
                     const float coefficients[5] = {-2.5F, 1.6F, -0.2F, 0.025F, -0.0017F};
                     reference::stencil(coefficients, now.data(), next.data(), velocity.data(), 72, 40, nz);
                   };
                 }});
  all.push_back({"recursion", "calls", 0.25,
                 [](kernel_runner& r, unsigned scale) -> std::function<void()> {
                   const unsigned n = 16 * scale;
                   auto* const out = r.upload(std::vector<unsigned>(n));
                   return [=, &r] { must_run(r.launch("recursion", {{1}, {n}}, out)); };
                 },
                 [](unsigned scale) -> std::function<void()> {
                   return [out = std::vector<unsigned>(16 * scale), scale]() mutable {
                     reference::recursion(out.data(), 16 * scale);
                   };
                 }});
  all.push_back({"tiled matrix product", "matmul", 0.1,
                 [](kernel_runner& r, unsigned scale) -> std::function<void()> {
                   const int n = scale == full ? 128 : 32;
                   const auto blocks = static_cast<std::uint32_t>(n / 16);
                   auto* const a = r.upload(floats(static_cast<std::size_t>(n) * n));
                   auto* const b = r.upload(floats(static_cast<std::size_t>(n) * n));
                   auto* const c = r.upload(floats(static_cast<std::size_t>(n) * n));
                   return [=, &r] { must_run(r.launch("matmul", {{blocks, blocks}, {16, 16}}, a, b, c, n)); };
                 },
                 [](unsigned scale) -> std::function<void()> {
                   const int n = scale == full ? 128 : 32;
                   const auto size = static_cast<std::size_t>(n) * n;
                   return [a = floats(size), b = floats(size), c = floats(size), n]() mutable {
                     reference::matmul(a.data(), b.data(), c.data(), n);
                   };
                 }});
  all.push_back({"block scan with shuffles", "scan", 0.1,
                 [](kernel_runner& r, unsigned scale) -> std::function<void()> {
                   const unsigned n = scale * 512;
                   auto* const in = r.upload(std::vector<int>(n, 3));
                   auto* const out = r.upload(std::vector<int>(n));
                   return [=, &r] { must_run(r.launch("block_scan", {{n / 256}, {256}}, in, out, n)); };
                 },
                 [](unsigned scale) -> std::function<void()> {
                   const unsigned n = scale * 512;
                   return [in = std::vector<int>(n, 3), out = std::vector<int>(n), n]() mutable {
                     reference::block_scan(in.data(), out.data(), n, 256);
                   };
                 }});
  all.push_back({"histogram", "histogram", 0.1,
                 [](kernel_runner& r, unsigned scale) -> std::function<void()> {
                   const unsigned n = scale << 13;
                   std::vector<std::uint8_t> data(n);
                   for (unsigned i = 0; i < n; ++i) data[i] = static_cast<std::uint8_t>(i * 37);
                   auto* const in = r.upload(data);
                   auto* const bins = r.upload(std::vector<unsigned>(256));
                   return [=, &r] { must_run(r.launch("histogram", {{2}, {256}}, in, bins, n)); };
                 },
                 [](unsigned scale) -> std::function<void()> {
                   const unsigned n = scale << 13;
                   std::vector<std::uint8_t> data(n);
                   for (unsigned i = 0; i < n; ++i) data[i] = static_cast<std::uint8_t>(i * 37);
                   return [data, bins = std::vector<unsigned>(256), n]() mutable {
                     reference::histogram(data.data(), bins.data(), n, 2, 256);
                   };
                 }});
  all.push_back({"bitonic sort", "bitonic", 0.1,
                 [](kernel_runner& r, unsigned scale) -> std::function<void()> {
                   std::vector<int> keys(512 * scale);
                   for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int>(i * 2654435761U);
                   auto* const data = r.upload(keys);
                   return [=, &r] { must_run(r.launch("bitonic", {{scale}, {512}, 2048}, data)); };
                 },
                 [](unsigned scale) -> std::function<void()> {
                   std::vector<int> keys(512 * scale);
                   for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int>(i * 2654435761U);
                   return [keys, scale]() mutable { reference::bitonic(keys.data(), scale, 512); };
                 }});
  all.push_back({"cooperative groups sum", "groups", 0.1,
                 [](kernel_runner& r, unsigned scale) -> std::function<void()> {
                   const unsigned n = scale << 12;
                   auto* const data = r.upload(floats(n));
                   auto* const sum = r.upload(std::vector<float>(1));
                   return [=, &r] { must_run(r.launch("group_sum", {{2}, {256}}, data, sum, n)); };
                 },
                 [](unsigned scale) -> std::function<void()> {
                   const unsigned n = scale << 12;
                   return [data = floats(n), n] {
                     volatile float sum = reference::group_sum(data.data(), n, 2, 256);
                     static_cast<void>(sum);
                   };
                 }});
  all.push_back({"row sums by shuffles", "warps", 0.5,
                 [](kernel_runner& r, unsigned scale) -> std::function<void()> {
                   constexpr int n = 512;
                   const unsigned rows = 8 * scale;
                   auto* const a = r.upload(floats(std::size_t{rows} * n));
                   auto* const x = r.upload(std::vector<double>(n, 0.75));
                   auto* const y = r.upload(std::vector<double>(rows));
                   return [=, &r] { must_run(r.launch("row_sums", {{rows / 8}, {256}}, a, x, y, n)); };
                 },
                 [](unsigned scale) -> std::function<void()> {
                   constexpr int n = 512;
                   const int rows = static_cast<int>(8 * scale);
                   return [a = floats(static_cast<std::size_t>(rows) * n), x = std::vector<double>(n, 0.75),
                           y = std::vector<double>(static_cast<std::size_t>(rows)),
                           rows]() mutable { reference::row_sums(a.data(), x.data(), y.data(), rows, n); };
                 }});
  // The loop is native code that adds f32 in the same way, not C++.
  for (const char* const kernel : {"add_halves", "add_pairs"}) {
    const bool in_pairs = std::string(kernel) == "add_pairs";
    all.push_back({in_pairs ? "sums of pairs of f16, beside f32" : "sums of f16, beside f32", "halves", 0.3,
                   [=](kernel_runner& r, unsigned scale) -> std::function<void()> {
                     const unsigned n = scale << 12, elements = in_pairs ? n / 2 : n;
                     auto* const a = r.upload(std::vector<std::uint16_t>(n, 0x3c00));
                     auto* const b = r.upload(std::vector<std::uint16_t>(n, 0x3555));
                     auto* const c = r.upload(std::vector<std::uint16_t>(n));
                     return [=, &r] { must_run(r.launch(kernel, {{elements / 256}, {256}}, a, b, c, elements)); };
                   },
                   [](unsigned scale) -> std::function<void()> {
                     const unsigned n = scale << 12;
                     const auto r =
                         std::make_shared<kernel_runner>(std::vector{program("vector_add")}, engine_kind::compiler);
                     auto* const a = r->upload(floats(n));
                     auto* const b = r->upload(floats(n));
                     auto* const c = r->upload(floats(n));
                     return [=] { must_run(r->launch("vector_add", {{n / 256}, {256}}, a, b, c, n)); };
                   }});
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = hpe::bench::parse(
      argc, argv, "PTX compiled to native code, compared with the same loops in C++ and with the interpreter");
  std::vector<hpe::bench::result> results;
  for (const contest& c : contests()) {
    kernel_runner native({program(c.file)}, engine_kind::compiler);
    kernel_runner interpreted({program(c.file)}, engine_kind::interpreter);
    const std::function<void()> kernel = c.kernel(native, full), loop = c.loop(full);
    const double begin = now();
    kernel();
    const double first = now() - begin;
    const auto beside_loop = paired(arguments.repeats, loop, kernel);
    const std::function<void()> few = c.kernel(native, small), slow = c.kernel(interpreted, small);
    few();
    const auto beside_interpreter = paired(arguments.repeats, slow, few);
    const double to_loop = beside_loop.first / beside_loop.second;
    const double to_interpreter = beside_interpreter.first / beside_interpreter.second;
    results.push_back(
        {fmt::format("{}: native code to loop", c.name), to_loop, "x", fmt::format(">= {}", c.bar), to_loop >= c.bar});
    results.push_back(
        {fmt::format("{}: native code to interpreter", c.name), to_interpreter, "x", ">= 20", to_interpreter >= 20});
    results.push_back({fmt::format("{}: first launch, with compilation", c.name), first * 1e3, "ms", "", true});
  }
  return hpe::bench::report("PTX without a GPU, one thread", results, arguments);
}

#include "apps/fft/fft_main.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <vector>

#include "apps/fft/request.h"
#include "hpe/hpe.hpp"

namespace hpe::fft {

namespace {

template <class T>
using data = array<std::complex<T>>;

struct closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using file = std::unique_ptr<std::FILE, closer>;

file open(const std::string& path, const char* how) {
  file opened(std::fopen(path.c_str(), how));
  if (!opened) throw bad_input(path + ": " + std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  return opened;
}

/// A file whose size is known gives the length, unless it was said.
template <class T>
void measure_input(request& r) {
  std::error_code failure;
  const auto bytes = std::filesystem::file_size(r.input, failure);
  if (failure) throw bad_input(r.input + ": " + failure.message());
  const auto there = static_cast<std::int64_t>(bytes / sizeof(std::complex<T>));
  if (!r.sized) r.what.length = there / r.what.batch;
  if (there == 0 || bytes != static_cast<std::size_t>(r.what.elements()) * sizeof(std::complex<T>))
    throw bad_input(fmt::format("{} has {} bytes, and {} x {} elements in a batch of {} are {} bytes", r.input, bytes,
                                r.what.rows, r.what.length, r.what.batch,
                                static_cast<std::size_t>(r.what.elements()) * sizeof(std::complex<T>)));
}

/// Through ordinary memory, which every way of reading and writing files can take.
constexpr std::size_t piece = std::size_t{1} << 18;

template <class T>
void read_input(const request& r, const data<T>& x) {
  const file opened = open(r.input, "rb");
  std::vector<std::complex<T>> part(std::min(piece, x.size()));
  for (std::size_t at = 0; at < x.size(); at += part.size()) {
    const std::size_t count = std::min(part.size(), x.size() - at);
    if (std::fread(part.data(), sizeof(part[0]), count, opened.get()) != count)
      throw bad_input(r.input + " ended early");
    std::copy_n(part.begin(), count, x.begin() + at);
  }
}

template <class T>
void write_output(const request& r, const data<T>& x) {
  const file opened = open(r.output, "wb");
  std::vector<std::complex<T>> part(std::min(piece, x.size()));
  for (std::size_t at = 0; at < x.size(); at += part.size()) {
    const std::size_t count = std::min(part.size(), x.size() - at);
    std::copy_n(x.begin() + at, count, part.begin());
    if (std::fwrite(part.data(), sizeof(part[0]), count, opened.get()) != count)
      throw std::runtime_error(r.output + ": " + std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  }
  if (std::fflush(opened.get()) != 0)
    throw std::runtime_error(r.output + ": " + std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
}

template <class T>
void fill_randomly(const data<T>& x, std::int64_t seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::uniform_real_distribution<T> any(-1, 1);
  for (auto& v : x) v = {any(random), any(random)};
}

template <class T>
double squares(const data<T>& x) {
  long double sum = 0;
  for (const auto& v : x) sum += std::norm(std::complex<long double>(v));
  return static_cast<double>(sum);
}

/// How far there and back is from the input, relative to it, root mean square.
template <class T>
double distance(const data<T>& back, const data<T>& x, double scale) {
  double wrong = 0, all = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    wrong += std::norm(std::complex<double>(back[i]) / scale - std::complex<double>(x[i]));
    all += std::norm(std::complex<double>(x[i]));
  }
  return all > 0 ? std::sqrt(wrong / all) : std::sqrt(wrong);
}

template <class T>
double median_seconds(const request& r, plan<T>& how, const data<T>& x, const data<T>& y) {
  std::vector<double> times;
  for (std::int64_t i = 0; i <= r.repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    r.inverse ? how.inverse(x.data(), y.data()) : how.forward(x.data(), y.data());
    synchronize();
    if (i > 0) times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

template <class T>
int run(request r) {
  if (!r.input.empty()) measure_input<T>(r);
  if (!r.output.empty()) static_cast<void>(open(r.output, "ab"));  // now, and not after the work
  plan<T> how(r.what, r.how);
  const auto count = static_cast<std::size_t>(r.what.elements());
  const data<T> x(count, block_distribution()), y(count, block_distribution()), back(count, block_distribution());
  if (r.input.empty())
    fill_randomly(x, r.seed);
  else
    read_input(r, x);

  const double seconds = median_seconds(r, how, x, y);
  r.inverse ? how.forward(y.data(), back.data()) : how.inverse(y.data(), back.data());
  if (!r.output.empty()) write_output(r, y);

  const auto one = static_cast<double>(r.what.rows * r.what.length);
  const double operations = 5 * static_cast<double>(count) * std::log2(one);
  const double energy = squares(x) * one;
  const double parseval = energy > 0 ? std::abs(squares(y) / energy - 1) : squares(y);
  const double error = distance(back, x, one);
  constexpr double allowed_units = 8;
  const double allowed = allowed_units * std::numeric_limits<T>::epsilon() * std::max(1.0, std::log2(one));
  fmt::print("{}{}{} complex numbers of {} precision{}\n{}\n",
             r.what.batch > 1 ? fmt::format("{} times ", r.what.batch) : "",
             r.what.rows > 1 ? fmt::format("{} x ", r.what.rows) : "", r.what.length, r.twice ? "double" : "single",
             r.inverse ? ", inverse" : "", how.explain());
  fmt::print("{:.3f} ms, {:.2f} Gflop/s\n", seconds * 1e3, operations / seconds / 1e9);
  fmt::print("there and back: relative error {:.2e} (up to {:.2e} is right); Parseval: {:.2e}\n", error, allowed,
             parseval);
  // Not (error > allowed): a result that is no number is wrong too.
  if (error <= allowed && parseval <= allowed) return 0;
  fmt::print(stderr, "hpe fft: the result is not as exact as it has to be\n");
  return 1;
}

}  // namespace

}  // namespace hpe::fft

int fft_main(int argc, char** argv) {
  try {
    const hpe::fft::request r = hpe::fft::parse(argc, argv);
    if (r.help) {
      fmt::print("{}", hpe::fft::help_text());
      return 0;
    }
    return r.twice ? hpe::fft::run<double>(r) : hpe::fft::run<float>(r);
  } catch (const hpe::fft::bad_input& e) {
    fmt::print(stderr, "hpe fft: {}\n", e.what());
    return 2;
  } catch (const hpe::error& e) {
    fmt::print(stderr, "hpe fft: {}\n", e.what());
    return e.status() == HPE_ERROR_INVALID_ARGUMENT ? 2 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "hpe fft: {}\n", e.what());
    return 1;
  }
}

#include "apps/fft/fft_main.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "apps/command_line/program.h"
#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/fft/fft_request.h"
#include "apps/files/element_file.h"
#include "hpe/hpe.hpp"

namespace hpe::fft {

namespace {

template <class T>
using data = array<std::complex<T>>;

using command_line::failed;

/// Returns the name of the element type in files.
std::string type_of(const request& r) { return r.twice ? "c128" : "c64"; }

/// Takes the size from the file, unless the command line gives the size.
void measure_input(request& r, const files::description& file, std::size_t size) {
  const auto there = static_cast<std::int64_t>(file.elements(size));
  const auto& shape = file.shape;
  const auto axis = [&](std::size_t from_last) { return static_cast<std::int64_t>(shape[shape.size() - from_last]); };
  if (shape.size() > 3)
    throw bad_input(
        fmt::format("{} has {} axes; hpe fft transforms one axis, two axes, or a batch of arrays with two axes",
                    r.input, shape.size()));
  const bool first_is_batch = shape.size() == 3 || (shape.size() == 2 && r.what.batch > 1);
  if (first_is_batch && r.what.batch == 1) r.what.batch = axis(shape.size());
  if (!r.sized) r.what.rows = shape.size() - (first_is_batch ? 1 : 0) == 2 ? axis(2) : 1;
  if (!r.sized) r.what.length = shape.empty() ? there / r.what.batch : axis(1);
  if (static_cast<double>(r.what.batch) * static_cast<double>(r.what.rows) * static_cast<double>(r.what.length) !=
      static_cast<double>(there))
    throw bad_input(fmt::format("{} has {} elements, but a batch of {} arrays of {} x {} needs a different number",
                                r.input, there, r.what.batch, r.what.rows, r.what.length));
}

std::vector<std::uint64_t> shape_of(const problem& what) {
  std::vector<std::uint64_t> shape;
  if (what.batch > 1) shape.push_back(static_cast<std::uint64_t>(what.batch));
  if (what.rows > 1) shape.push_back(static_cast<std::uint64_t>(what.rows));
  shape.push_back(static_cast<std::uint64_t>(what.length));
  return shape;
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

/// Returns the relative error (root mean square) of `back` / `scale`, which should equal `x`.
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
int run(request r, const files::description& file) {
  r.how.devices = command_line::devices_of(r.devices);
  if (!r.input.empty()) measure_input(r, file, sizeof(std::complex<T>));
  constexpr double arrays = 4;  // the input, the result, the result transformed back, and the plan's scratch memory
  const double elements =
      static_cast<double>(r.what.batch) * static_cast<double>(r.what.rows) * static_cast<double>(r.what.length);
  command_line::check_room(fmt::format("{} x {} complex numbers of {} bytes in a batch of {}", r.what.rows,
                                       r.what.length, sizeof(std::complex<T>), r.what.batch),
                           {.on_devices = arrays * elements * sizeof(std::complex<T>)}, r.how.devices);
  command_line::check_outputs({r.output, r.json}, {r.input});

  plan<T> how(r.what, r.how);
  if (r.only_plan) {
    command_line::answer({"hpe fft",
                          "how the devices would share the work",
                          how.explain(),
                          1,
                          command_line::names_of_devices(r.how.devices),
                          {{"devices that take part", static_cast<double>(how.devices()), ""}}},
                         how.explain() + "\n", r.json, r.quiet);
    return 0;
  }
  const auto count = static_cast<std::size_t>(r.what.elements());
  const data<T> x(count, how.where()), y(count, how.where()), back(count, how.where());
  if (r.input.empty())
    fill_randomly(x, r.seed);
  else
    files::read(file, x.data());

  const double seconds = command_line::median_seconds(
      r.repeats, r.quiet, [&] { r.inverse ? how.inverse(x.data(), y.data()) : how.forward(x.data(), y.data()); });
  r.inverse ? how.forward(y.data(), back.data()) : how.inverse(y.data(), back.data());
  if (!r.output.empty()) files::write(r.output, type_of(r), shape_of(r.what), y.data(), sizeof(std::complex<T>));

  const auto one = static_cast<double>(r.what.rows * r.what.length);
  const double operations = 5 * static_cast<double>(count) * std::log2(one);
  const double energy = squares(x) * one;
  const double parseval = energy > 0 ? std::abs(squares(y) / energy - 1) : squares(y);
  const double error = distance(back, x, one);
  constexpr double allowed_units = 8;
  const double allowed = allowed_units * std::numeric_limits<T>::epsilon() * std::max(1.0, std::log2(one));
  const std::string title = fmt::format("{}{}{} complex numbers of {} precision{}",
                                        r.what.batch > 1 ? fmt::format("{} times ", r.what.batch) : "",
                                        r.what.rows > 1 ? fmt::format("{} x ", r.what.rows) : "", r.what.length,
                                        r.twice ? "double" : "single", r.inverse ? ", inverse" : "");
  const double rate = operations / seconds / 1e9;
  // `<=` rather than `>`, so that NaN counts as an error.
  const bool good = error <= allowed && parseval <= allowed;
  const std::string bar = fmt::format("<= {:.2e}", allowed);
  command_line::answer(
      {"hpe fft",
       "Fourier transforms over all devices",
       title,
       r.repeats,
       command_line::names_of_devices(r.how.devices),
       {{"time", seconds * 1e3, "ms"},
        {"operations", rate, "Gflop/s"},
        {"there and back: relative error", error, "", bar, error <= allowed},
        {"Parseval: relative error", parseval, "", bar, parseval <= allowed}}},
      fmt::format(
          "{}\n{}\n{:.3f} ms, {:.2f} Gflop/s\nthere and back: relative error {:.2e} (up to {:.2e} is right); Parseval: "
          "{:.2e}\n",
          title, how.explain(), seconds * 1e3, rate, error, allowed, parseval),
      r.json, r.quiet);
  if (good) return 0;
  fmt::print(stderr, "hpe fft: the error of the result is too large\n");
  return failed;
}

int run_type(request r) {
  files::description file;
  if (!r.input.empty()) file = files::describe(r.input);
  if (file.type == "c128") r.twice = true;
  file.must_hold(type_of(r));
  return r.twice ? run<double>(r, file) : run<float>(r, file);
}

}  // namespace

}  // namespace hpe::fft

int fft_main(int argc, char** argv) {
  return hpe::command_line::guarded("hpe fft", [&] {
    const hpe::fft::request r = hpe::fft::parse(argc, argv);
    if (!r.help) return hpe::fft::run_type(r);
    hpe::command_line::print_help(hpe::fft::help_text());
    return 0;
  });
}

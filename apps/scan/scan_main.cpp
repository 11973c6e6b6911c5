#include "apps/scan/scan_main.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>

#include "apps/command_line/program.h"
#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/files/element_file.h"
#include "apps/scan/scan_check.h"
#include "apps/scan/scan_plan.h"
#include "apps/scan/scan_request.h"

namespace hpe::scan {

namespace {

using command_line::check_room;

/// Returns the number and the length of the problems that the request and the file determine.
template <class T>
batch size_up(const request& r, const files::description& file) {
  constexpr std::uint64_t usual = std::uint64_t{1} << 24;
  if (r.file.empty()) return {r.length != 0 ? r.length : usual, std::max<std::uint64_t>(r.problems, 1), !r.exclusive};
  if (file.shape.size() > 2)
    throw bad_input(fmt::format("{} has {} axes; hpe scan accepts one axis, or two (problems and elements)", r.file,
                                file.shape.size()));
  const std::uint64_t elements = file.elements(sizeof(T));
  const std::uint64_t rows = file.shape.size() == 2 ? file.shape[0] : 1;
  const std::uint64_t problems = r.problems != 0 ? r.problems : rows;
  const std::uint64_t length = r.length != 0 ? r.length : elements / problems;
  if (static_cast<double>(problems) * static_cast<double>(length) != static_cast<double>(elements))
    throw bad_input(fmt::format("{} has {} elements, but {} problem{} of {} elements need {}", r.file, elements,
                                problems, problems == 1 ? "" : "s", length,
                                static_cast<double>(problems) * static_cast<double>(length)));
  return {length, problems, !r.exclusive};
}

template <class T>
void fill_with(const request& r, const files::description& file, const array<T>& data) {
  if (!r.file.empty()) return files::read(file, data.data());
  std::minstd_rand random(1);
  constexpr int half = 100;
  for (T& v : data) v = static_cast<T>(static_cast<int>(random() % (2 * half + 1)) - half);
}

template <class T>
bool check_result(const request& r, const std::vector<T>& input, const array<T>& output, const batch& work) {
  return is_right<T>(
      operator_named(r.op), [&](std::uint64_t at) { return input[at]; }, output.data(), work, 0, work.length);
}

wishes wished_by(const request& r) {
  wishes w;
  w.cache = default_cache();
  w.iterations = r.iterations;
  if (r.how != "auto") w.how = r.how == "single-pass" ? algorithm::single_pass : algorithm::three_stages;
  if (r.spread != "auto")
    w.spread = r.spread == "problems" ? split::problems : (r.spread == "mps" ? split::mps : split::mp_pc);
  w.devices.resize(static_cast<std::size_t>(command_line::devices_of(r.devices)));
  std::iota(w.devices.begin(), w.devices.end(), 0);
  return w;
}

template <class T>
int run(const request& r, const files::description& file) {
  const int devices = command_line::devices_of(r.devices);
  const batch work = size_up<T>(r, file);
  const double bytes = static_cast<double>(work.length) * static_cast<double>(work.problems) * sizeof(T);
  check_room(fmt::format("{} problem{} of {} elements of {} bytes", work.problems, work.problems == 1 ? "" : "s",
                         work.length, sizeof(T)),
             {(r.in_place ? 1 : 2) * bytes, r.no_check ? 0 : bytes}, devices);
  command_line::check_outputs({r.output, r.json}, {r.file});

  plan scan(operation_for<T>(operator_named(r.op)), work, wished_by(r));
  const std::uint64_t count = work.length * work.problems;
  const array<T> input(count, scan.where());
  const array<T> other(r.in_place ? 0 : count, scan.where());
  const array<T>& output = r.in_place ? input : other;
  fill_with(r, file, input);
  const std::vector<T> given(r.no_check ? input.end() : input.begin(), input.end());

  scan.run(input.data(), output.data());
  synchronize();
  if (!r.no_check && !check_result(r, given, output, work)) {
    fmt::print(stderr, "hpe scan: the result is wrong\n");
    return command_line::failed;
  }
  if (!r.output.empty())
    files::write(r.output, r.type, work.problems == 1 ? std::vector{count} : std::vector{work.problems, work.length},
                 output.data(), sizeof(T));

  const double time = command_line::median_seconds(r.repeats, r.quiet, [&] { scan.run(input.data(), output.data()); });
  const double rate = 2e-9 * static_cast<double>(count * sizeof(T)) / time;
  command_line::answer(
      {"hpe scan",
       "batched scans over all devices",
       fmt::format("{}: {} x {} elements of the type {}", r.op, work.problems, work.length, r.type),
       r.repeats,
       command_line::names_of_devices(devices),
       {{"time", 1e3 * time, "ms"}, {"read and written", rate, "GB/s"}}},
      fmt::format("{}{} element{} in {:.3f} ms, {:.2f} GB/s read and written{}\n", r.explain ? scan.explain() : "",
                  count, count == 1 ? "" : "s", 1e3 * time, rate, r.no_check ? "" : "; the result is right"),
      r.json, r.quiet);
  return 0;
}

int run_type(request r) {
  files::description file;
  if (!r.file.empty()) file = files::describe(r.file);
  if (r.type.empty()) r.type = file.npy ? file.type : "i32";
  file.must_hold(r.type);
  if (r.type == "i32") return run<std::int32_t>(r, file);
  if (r.type == "i64") return run<std::int64_t>(r, file);
  if (r.type == "f32") return run<float>(r, file);
  if (r.type == "f64") return run<double>(r, file);
  throw bad_input(
      fmt::format("{} holds elements of the type {}; hpe scan accepts i32, i64, f32 and f64", r.file, r.type));
}

}  // namespace

}  // namespace hpe::scan

int scan_main(int argc, char** argv) {
  return hpe::command_line::guarded("hpe scan", [&] {
    if (hpe::command_line::one_of_several_ranks()) hpe::command_line::become("hpe-scan-mpi", argv);
    const hpe::scan::request r = hpe::scan::parse(argc, argv);
    if (!r.help) return hpe::scan::run_type(r);
    hpe::command_line::print_help(hpe::scan::help_text());
    return 0;
  });
}

// `hpe scan` under mpirun: every rank has an equal part of each problem, on its own devices. An element is a function
// of its number, so each rank can check its own part.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>

#include "apps/command_line/program.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/scan/distributed_plan.h"
#include "apps/scan/scan_check.h"
#include "apps/scan/scan_request.h"
#include "apps/scan_mpi/mpi_ranks.h"

namespace hpe::scan {

namespace {

template <class T>
T element(std::uint64_t number) {
  constexpr std::uint64_t mixer = 0x9E3779B97F4A7C15U;
  constexpr int half = 100;
  return static_cast<T>(static_cast<int>((number * mixer >> 40) % (2 * half + 1)) - half);
}

void refuse_what_is_not_possible(const request& r) {
  if (!r.file.empty() || !r.output.empty())
    throw bad_input("a scan over ranks generates its elements: FILE and --output are not possible");
  if (r.how == "single-pass") throw bad_input("--algorithm single-pass: a scan over ranks has three stages");
  command_line::check_outputs({r.json});
}

template <class T>
int run(const request& r, ranks& all, std::uint64_t size) {
  constexpr std::uint64_t usual = std::uint64_t{1} << 24;
  const auto rank = static_cast<std::uint64_t>(all.rank());
  const batch whole{r.length == 0 ? usual : r.length, std::max<std::uint64_t>(r.problems, 1), !r.exclusive};
  // This check has the same result on all ranks, because the other ranks would wait for a rank that ends alone.
  constexpr double most = 0x1p46;
  if (static_cast<double>(whole.length) * static_cast<double>(whole.problems) * sizeof(T) > most)
    throw bad_input(fmt::format("{} problems of {} elements of {} bytes are more than 64 TiB", whole.problems,
                                whole.length, sizeof(T)));
  const std::uint64_t from = whole.length * rank / size, to = whole.length * (rank + 1) / size;
  std::vector<int> devices(static_cast<std::size_t>(command_line::devices_of(r.devices)));
  std::iota(devices.begin(), devices.end(), 0);
  const built_in op = operator_named(r.op);
  distributed_plan scan(operation_for<T>(op), {to - from, whole.problems, whole.inclusive}, all, devices, r.iterations);
  const std::uint64_t count = (to - from) * whole.problems;
  const array<T> input(std::max<std::uint64_t>(count, 1), scan.where());
  const array<T> other(r.in_place ? 1 : input.size(), scan.where());
  const array<T>& output = r.in_place ? input : other;
  for (std::uint64_t g = 0; g < whole.problems; ++g)
    for (std::uint64_t i = from; i < to; ++i) input[g * (to - from) + i - from] = element<T>(g * whole.length + i);

  scan.run(input.data(), output.data());
  const bool right =
      r.no_check || is_right<T>(
                        op, [](std::uint64_t number) { return element<T>(number); }, output.data(), whole, from, to);
  std::vector<double> times;
  for (std::int64_t i = 0; i < r.repeats; ++i) {
    synchronize();
    static_cast<void>(all.all_of(0));  // all ranks begin together
    const auto begin = std::chrono::steady_clock::now();
    scan.run(input.data(), output.data());
    synchronize();
    static_cast<void>(all.all_of(0));
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  const double time = command_line::median(times);
  const std::vector<std::uint64_t> good = all.all_of(right ? 1 : 0);
  if (r.explain) fmt::print("{}", scan.explain());
  if (rank == 0) {
    const std::uint64_t elements = whole.length * whole.problems;
    for (std::size_t other_rank = 0; other_rank < good.size(); ++other_rank)
      if (good[other_rank] == 0) fmt::print(stderr, "hpe scan: the result of rank {} is wrong\n", other_rank);
    const double rate = 2e-9 * static_cast<double>(elements * sizeof(T)) / time;
    command_line::answer(
        {"hpe scan",
         "batched scans over several ranks",
         fmt::format("{}: {} x {} elements on {} ranks", r.op, whole.problems, whole.length, size),
         r.repeats,
         command_line::names_of_devices(static_cast<int>(devices.size())),
         {{"time", 1e3 * time, "ms"}, {"read and written", rate, "GB/s"}}},
        fmt::format("{} element{} on {} ranks in {:.3f} ms, {:.2f} GB/s read and written{}\n", elements,
                    elements == 1 ? "" : "s", size, 1e3 * time, rate,
                    r.no_check || std::count(good.begin(), good.end(), 0) > 0 ? "" : "; the result is right"),
        r.json, r.quiet);
  }
  return std::count(good.begin(), good.end(), 0) > 0 ? 1 : 0;
}

int run(int argc, char** argv) {
  mpi_ranks all(MPI_COMM_WORLD);
  const std::uint64_t size = all.all_of(0).size();
  try {
    const request r = parse(argc, argv);
    if (r.help) {
      if (all.rank() == 0) hpe::command_line::print_help(help_text());
      return 0;
    }
    refuse_what_is_not_possible(r);
    if (r.type == "i64") return run<std::int64_t>(r, all, size);
    if (r.type == "f32") return run<float>(r, all, size);
    if (r.type == "f64") return run<double>(r, all, size);
    return run<std::int32_t>(r, all, size);
  } catch (const bad_input& e) {
    // All ranks have the same command line, so one rank prints the message.
    if (all.rank() == 0) fmt::print(stderr, "hpe scan: {}\n", e.what());
    return 2;
  }
}

}  // namespace

}  // namespace hpe::scan

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 1;
  try {
    status = hpe::scan::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "hpe scan: {}\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}

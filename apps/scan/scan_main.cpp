#include "apps/scan/scan_main.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>

#include "apps/scan/check.h"
#include "apps/scan/plan.h"
#include "apps/scan/request.h"

namespace hpe::scan {

namespace {

using file_pointer = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

file_pointer open(const std::string& path, const char* mode) {
  file_pointer file(std::fopen(path.c_str(), mode), std::fclose);
  if (!file)
    throw bad_input(
        fmt::format("{} cannot be opened: {}", path, std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
  return file;
}

std::uint64_t size_of(std::FILE* file) {
  std::fseek(file, 0, SEEK_END);
  const long size = std::ftell(file);
  std::rewind(file);
  return size < 0 ? 0 : static_cast<std::uint64_t>(size);
}

template <class T>
batch size_up(const request& r) {
  constexpr std::uint64_t usual = std::uint64_t{1} << 24;
  batch work{r.length, r.problems, !r.exclusive};
  if (r.file.empty()) {
    if (work.length == 0) work.length = usual;
    return work;
  }
  const std::uint64_t bytes = size_of(open(r.file, "rb").get()), elements = bytes / sizeof(T);
  if (work.length == 0 && work.problems != 0) work.length = elements / work.problems;
  if (bytes % sizeof(T) != 0 || work.length * work.problems > elements || elements == 0)
    throw bad_input(fmt::format("{} has {} bytes; {} problems of {} elements of {} bytes are wanted", r.file, bytes,
                                work.problems, work.length, sizeof(T)));
  return work;
}

// System calls do not wait for data of devices, so files go through ordinary memory.
constexpr std::size_t piece_length = std::size_t{1} << 20;

template <class T>
void write_to(const std::string& path, const array<T>& data) {
  const file_pointer file = open(path, "wb");
  std::vector<T> piece(piece_length);
  bool written = true;
  for (std::size_t at = 0; at < data.size() && written; at += piece.size()) {
    const std::size_t size = std::min(piece.size(), data.size() - at);
    copy(piece.data(), data.data() + at, size * sizeof(T));
    written = std::fwrite(piece.data(), sizeof(T), size, file.get()) == size;
  }
  if (!written || std::fflush(file.get()) != 0) throw bad_input(path + " cannot be written");
}

template <class T>
void fill_with(const request& r, const array<T>& data) {
  if (!r.file.empty()) {
    const file_pointer file = open(r.file, "rb");
    std::vector<T> piece(piece_length);
    for (std::size_t at = 0; at < data.size(); at += piece.size()) {
      const std::size_t wanted = std::min(piece.size(), data.size() - at);
      if (std::fread(piece.data(), sizeof(T), wanted, file.get()) != wanted)
        throw bad_input(r.file + " cannot be read to the end");
      copy(data.data() + at, piece.data(), wanted * sizeof(T));
    }
    return;
  }
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
  if (r.devices > static_cast<std::uint64_t>(device_count()))
    throw bad_input(fmt::format("--devices {}: there are {}", r.devices, device_count()));
  for (std::uint64_t d = 0; d < r.devices; ++d) w.devices.push_back(static_cast<int>(d));
  return w;
}

/// Whether mpirun, of Open MPI or one with PMI, started several of this program.
bool one_of_several_ranks() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const size = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (size != nullptr && std::strtol(size, nullptr, 10) > 1) return true;
  }
  return false;
}

/// The command needs no MPI; a program of its own does (apps/scan_mpi). It takes the place of this one.
[[noreturn]] void become_a_rank(char** argv) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "hpe-scan-mpi";
  ::execv(program.c_str(), argv);
  throw bad_input(fmt::format("under mpirun it needs {}, which cannot be run: {}. Was hpe built without MPI?",
                              program.string(), std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
}

template <class T>
int run(const request& r) {
  const batch work = size_up<T>(r);
  plan scan(operation_for<T>(operator_named(r.op)), work, wished_by(r));
  const std::uint64_t count = work.length * work.problems;
  const array<T> input(count, scan.where());
  const array<T> other(r.in_place ? 0 : count, scan.where());
  const array<T>& output = r.in_place ? input : other;
  fill_with(r, input);
  const std::vector<T> given(r.no_check ? input.end() : input.begin(), input.end());

  scan.run(input.data(), output.data());
  synchronize();
  if (!r.no_check && !check_result(r, given, output, work)) {
    fmt::print(stderr, "hpe scan: the result is wrong\n");
    return 1;
  }
  if (!r.output.empty()) write_to(r.output, output);

  std::vector<double> times;
  for (std::uint64_t i = 0; i < r.repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    scan.run(input.data(), output.data());
    synchronize();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  const double time = times[times.size() / 2];
  if (r.explain) fmt::print("{}", scan.explain());
  fmt::print("{} element{} in {:.3f} ms, {:.2f} GB/s read and written{}\n", count, count == 1 ? "" : "s", 1e3 * time,
             2e-9 * static_cast<double>(count * sizeof(T)) / time, r.no_check ? "" : "; the result is right");
  return 0;
}

}  // namespace

}  // namespace hpe::scan

int scan_main(int argc, char** argv) {
  try {
    if (hpe::scan::one_of_several_ranks()) hpe::scan::become_a_rank(argv);
    const hpe::scan::request r = hpe::scan::parse(argc, argv);
    if (r.help) {
      std::fputs(hpe::scan::help_text().c_str(), stdout);
      return 0;
    }
    if (r.type == "i64") return hpe::scan::run<std::int64_t>(r);
    if (r.type == "f32") return hpe::scan::run<float>(r);
    if (r.type == "f64") return hpe::scan::run<double>(r);
    return hpe::scan::run<std::int32_t>(r);
  } catch (const hpe::scan::bad_input& e) {
    std::fprintf(stderr, "hpe scan: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hpe scan: %s\n", e.what());
    return 1;
  }
}

#include "runtime/transfer/calibration.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/transfer/copy_crew.h"

namespace hpe::transfer {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t smallest_piece = std::size_t{1} << 20;
// A smaller piece that is nearly as fast is better: others get at the link in between.
constexpr double fast_enough = 0.97;
// Fewer threads that copy nearly as fast are better: the others are the program's.
constexpr double worth_more_threads = 1.05;
constexpr std::size_t source_size = std::size_t{32} << 20;

double seconds_of(const std::function<void()>& body) {
  const auto begin = clock::now();
  body();
  return std::chrono::duration<double>(clock::now() - begin).count();
}

// What disturbs these short trials makes them slower, never faster.
double best_of_five(const std::function<void()>& body) {
  double best = seconds_of(body);
  for (int i = 1; i < 5; ++i) best = std::min(best, seconds_of(body));
  return best;
}

double rate(std::size_t bytes, double seconds) { return static_cast<double>(bytes) / seconds; }

std::filesystem::path cache_folder() {
  const char* const wished = std::getenv("XDG_CACHE_HOME");  // NOLINT(concurrency-mt-unsafe): read once
  if (wished != nullptr && *wished == '/') return std::filesystem::path(wished) / "hpe";
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): likewise
  return home != nullptr && *home == '/' ? std::filesystem::path(home) / ".cache" / "hpe" : std::filesystem::path();
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

calibration calibrate(device::device_set& devices, unsigned home, std::byte* device_memory, std::byte* buffer,
                      std::size_t size, unsigned most_threads, const std::function<void()>& settle) {
  constexpr std::size_t pieces = 8;
  const auto begin = clock::now();
  device::stream& stream = devices.at(home).create_stream(device::priority::waiting_host);
  const auto upload = [&](std::size_t piece) {
    for (std::size_t i = 0; i < pieces; ++i) stream.copy(device_memory, buffer, piece);
    devices.wait(stream.last(), clock::time_point::max());
    if (const auto failure = devices.status_of(stream.last())) throw *failure;
  };
  upload(std::min(size, smallest_piece));  // what is pinned and started first

  // Both ways, as programs copy; larger than the caches of a core.
  std::vector<std::byte> host(std::max(source_size / size, std::size_t{1}) * size, std::byte{1});
  const auto there_and_back = [&](copy_crew& crew, std::size_t piece) {
    for (std::size_t at = 0; at + piece <= host.size(); at += piece) {
      crew.copy(buffer, host.data() + at, piece);
      crew.copy(host.data() + at, buffer, piece, copy_crew::writing::past_caches);
    }
  };
  calibration result;
  double best_copies = 0;
  for (unsigned threads = 1; threads <= most_threads; threads *= 2) {
    copy_crew crew(threads - 1, settle);
    there_and_back(crew, size);  // the threads start
    const double its = rate(2 * host.size(), seconds_of([&] { there_and_back(crew, size); }));
    if (its < worth_more_threads * best_copies) continue;
    result.threads = threads;
    best_copies = its;
  }

  // The link alone takes small pieces as fast as large ones, but each costs the threads a meeting.
  copy_crew crew(result.threads - 1, settle);
  there_and_back(crew, size);
  double link = 0;
  std::vector<std::pair<std::size_t, double>> rates;
  for (std::size_t piece = std::min(size, smallest_piece); piece <= size; piece *= 2) {
    const double uploads = rate(pieces * piece, best_of_five([&] { upload(piece); }));
    const std::size_t copied = host.size() / piece * piece;
    const double copies = rate(2 * copied, seconds_of([&] { there_and_back(crew, piece); }));
    link = std::max(link, uploads);
    rates.emplace_back(piece, std::min(uploads, copies));
  }
  const auto by_rate = [](const auto& a, const auto& b) { return a.second < b.second; };
  const double best = std::max_element(rates.begin(), rates.end(), by_rate)->second;
  result.piece =
      std::find_if(rates.begin(), rates.end(), [&](const auto& r) { return r.second >= fast_enough * best; })->first;
  log(log_level::info,
      "copies through staging buffers: pieces of {} bytes, {} threads; the link takes {:.1f} GB/s, they "
      "{:.1f}; found in {} ms",
      result.piece, result.threads, link / 1e9, best_copies / 1e9,
      std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin).count());
  return result;
}

calibration_cache::calibration_cache(std::filesystem::path folder, std::string key)
    : folder_(std::move(folder)), key_(std::move(key)) {
  std::replace(key_.begin(), key_.end(), '\n', ' ');
}

calibration_cache calibration_cache::of(const device::device_set& devices, const device::properties& first) {
  return {cache_folder(),
          fmt::format("2; {}; {} cores; {} x {}; {}", first_line("/etc/machine-id"), ::sysconf(_SC_NPROCESSORS_ONLN),
                      devices.size(), first.name, first_line("/proc/driver/nvidia/version"))};
}

std::filesystem::path calibration_cache::file() const {
  return folder_ / fmt::format("transfers-{:016x}", std::hash<std::string>()(key_));
}

std::optional<calibration> calibration_cache::load(std::size_t largest_piece, unsigned most_threads) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream stream(file());
  std::string key;
  calibration found;
  if (!std::getline(stream, key) || key != key_ || !(stream >> found.piece >> found.threads)) return std::nullopt;
  const bool possible = found.piece >= 4096 && found.piece % 4096 == 0 && found.piece <= largest_piece &&
                        found.threads >= 1 && found.threads <= most_threads;
  return possible ? std::optional(found) : std::nullopt;
}

void calibration_cache::store(const calibration& found) const {
  if (folder_.empty()) return;
  // Complete before it has its name, because other processes read it.
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  const std::filesystem::path made = fmt::format("{}.{}", file().string(), ::getpid());
  {
    std::ofstream stream(made);
    stream << key_ << '\n' << found.piece << ' ' << found.threads << '\n';
    if (!stream.flush()) failure = std::make_error_code(std::errc::io_error);
  }
  if (!failure) std::filesystem::rename(made, file(), failure);
  if (failure) log(log_level::debug, "{} is not written: {}", file().string(), failure.message());
}

}  // namespace hpe::transfer

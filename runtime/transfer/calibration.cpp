#include "runtime/transfer/calibration.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/own_process.h"
#include "runtime/transfer/copy_crew.h"
#include "runtime/transfer/staging.h"

namespace hpe::transfer {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t smallest_chunk = std::size_t{2} << 20;
// A smaller chunk is chosen if it reaches this fraction of the best rate: other copies can use the link between two
// chunks.
constexpr double fast_enough = 0.97;
// Fewer threads are chosen only if they are faster by this factor, for example because the host's memory is slow. If
// they are only equally fast in these short trials, they may be far slower in a long copy (6 instead of 8 threads: 0.62
// instead of 0.9 of the link's rate).
constexpr double worth_fewer_threads = 1.05;
constexpr std::size_t source_size = std::size_t{16} << 20;
constexpr std::size_t long_upload = 5 * source_size;

/// Copies through staging buffers in the way in which hpe copies for programs.
class trial {
 public:
  trial(device::device_set& devices, unsigned home, std::byte* device_memory, std::span<std::byte* const> buffers)
      : devices_(devices),
        up_(devices.at(home).create_stream(device::priority::launch)),
        down_(devices.at(home).create_stream(device::priority::waiting_host)),
        device_memory_(device_memory),
        buffers_(buffers),
        busy_(buffers.size()),
        host_(source_size, std::byte{1}) {}

  /// Returns the rate, in bytes per second, of a download, a medium upload and a long upload together. The download
  /// leaves the memory outside the caches, like much of the memory that programs copy.
  double rate(copy_crew& crew, std::size_t chunk) {
    const auto begin = clock::now();
    download(crew, chunk);
    upload(crew, chunk, host_.size());
    upload(crew, chunk, long_upload);
    return static_cast<double>(2 * host_.size() + long_upload) /
           std::chrono::duration<double>(clock::now() - begin).count();
  }

  /// Returns the best of several rates, because disturbances make these short trials slower, never faster.
  double best_rate(copy_crew& crew, std::size_t chunk, int times) {
    double best = 0;
    for (int i = 0; i < times; ++i) best = std::max(best, rate(crew, chunk));
    return best;
  }

 private:
  /// Uploads `bytes` bytes, reading the source repeatedly.
  void upload(copy_crew& crew, std::size_t most, std::size_t bytes) {
    const copy_crew::writing how = copy_crew::to_stage(bytes);
    struct upload_in_flight {
      std::size_t buffer;
      std::size_t bytes;
      copy_crew::pending copy;
    };
    std::optional<upload_in_flight> last;
    const auto queue_last = [&] {
      if (!last) return;
      last->copy.finish();
      busy_[last->buffer] = up_.copy(device_memory_, buffers_[last->buffer], last->bytes);
      last.reset();
    };
    for (std::size_t at = 0, i = 0; at < bytes; ++i) {
      const std::size_t from = at % host_.size();
      const std::size_t chunk = std::min(next_chunk(at, bytes - at, most), host_.size() - from);
      if (buffers_.size() == 1) queue_last();
      std::byte* const buffer = free_buffer(i);
      auto copy = crew.begin(buffer, host_.data() + from, chunk, how);
      queue_last();
      last.emplace(upload_in_flight{i % buffers_.size(), chunk, std::move(copy)});
      at += chunk;
    }
    queue_last();
    finish(up_.last());
  }

  void download(copy_crew& crew, std::size_t most) {
    struct download_in_flight {
      std::size_t begin, bytes;
    };
    std::deque<download_in_flight> under_way;
    std::size_t queued = 0;
    for (std::size_t emptied = 0; queued < host_.size() || !under_way.empty(); ++emptied) {
      while (queued < host_.size() && under_way.size() < buffers_.size()) {
        const std::size_t i = (emptied + under_way.size()) % buffers_.size();
        under_way.push_back({queued, next_chunk(queued, host_.size() - queued, most)});
        busy_[i] = down_.copy(buffers_[i], device_memory_, under_way.back().bytes);
        queued += under_way.back().bytes;
      }
      const download_in_flight next = under_way.front();
      crew.copy(host_.data() + next.begin, free_buffer(emptied), next.bytes, copy_crew::writing::past_caches);
      under_way.pop_front();
    }
  }

  /// Waits until the device has finished with buffer number i modulo the number of buffers, and returns this buffer.
  std::byte* free_buffer(std::size_t i) {
    finish(busy_[i % buffers_.size()]);
    return buffers_[i % buffers_.size()];
  }

  void finish(timepoint point) {
    devices_.wait(point, clock::time_point::max());
    if (const auto failure = devices_.status_of(point)) throw *failure;
  }

  device::device_set& devices_;
  device::stream& up_;
  device::stream& down_;
  std::byte* const device_memory_;
  const std::span<std::byte* const> buffers_;
  std::vector<timepoint> busy_;
  std::vector<std::byte> host_;
};

}  // namespace

calibration calibrate(device::device_set& devices, unsigned home, std::byte* device_memory,
                      std::span<std::byte* const> buffers, std::size_t size, unsigned most_threads,
                      const std::function<void()>& settle) {
  const auto begin = clock::now();
  trial copies(devices, home, device_memory, buffers);
  calibration result{size, most_threads};
  double best = 0;
  for (unsigned threads = most_threads; threads >= std::max(1U, most_threads / 2); threads -= std::min(threads, 2U)) {
    copy_crew crew(threads - 1, settle);
    copies.rate(crew, size);  // starts the threads, and pins the memory that is pinned at its first use
    const double its = copies.best_rate(crew, size, 2);
    if (its < worth_fewer_threads * best) break;
    result.threads = threads;
    best = its;
  }

  copy_crew crew(result.threads - 1, settle);
  for (std::size_t chunk = size / 2; chunk >= smallest_chunk; chunk /= 2) {
    const double its = copies.best_rate(crew, chunk, 2);
    if (its < fast_enough * best) break;
    result.chunk = chunk;
    best = std::max(best, its);
  }
  log(log_level::info, "copies through staging buffers: chunks of {} bytes, {} threads, {:.1f} GB/s; found in {} ms",
      result.chunk, result.threads, best / 1e9,
      std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin).count());
  return result;
}

calibration_cache::calibration_cache(std::filesystem::path folder, std::string key)
    : file_(std::move(folder), "transfers", std::move(key)) {}

calibration_cache calibration_cache::of(const device::device_set& devices, const device::properties& first) {
  return {own_cache_folder(), fmt::format("9; {}; at most {} threads; {} x {}", cache_file::machine(),
                                          copy_crew::threads_for_this_machine(), devices.size(), first.name)};
}

std::optional<calibration> calibration_cache::load(std::size_t largest_chunk, unsigned most_threads) const {
  const std::optional<std::string> text = file_.load();
  if (!text) return std::nullopt;
  std::istringstream stream(*text);
  calibration found;
  if (!(stream >> found.chunk >> found.threads)) return std::nullopt;
  const bool possible = found.chunk >= 4096 && found.chunk % 4096 == 0 && found.chunk <= largest_chunk &&
                        found.threads >= 1 && found.threads <= most_threads;
  return possible ? std::optional(found) : std::nullopt;
}

void calibration_cache::store(const calibration& found) const {
  file_.store(fmt::format("{} {}", found.chunk, found.threads));
}

}  // namespace hpe::transfer

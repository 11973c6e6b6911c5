// Streams over arrays that are larger than device memory: a pass over an array launches a kernel for each part of the
// array. The reference is double buffering as in a program without hpe: copies to buffers on the device and back are
// queued on other streams than the kernels, and overlap with them. The reference copies every byte over the link to the
// device and, in a pass that writes, every byte back. hpe leaves a part of the array on the device, because the passes
// repeat. Therefore, hpe's rate counts only the bytes that hpe copies to the device.
//
// The program also measures applications whose data is twice as large as device memory (larger_workloads.h), and two
// processes that share the device, each with data that fills 0.75 of device memory (two_processes.h). The two processes
// run phases in turn, or all phases at the same time; the reference is all phases of one process followed by all phases
// of the other.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/transfers/larger_workloads.h"
#include "bench/transfers/two_processes.h"
#include "hpe/hpe.hpp"
#include "runtime/base/granule.h"
#include "runtime/base/options.h"
#include "runtime/device/device.h"
#include "runtime/memory/uvas.h"
#include "runtime/os/spill_file.h"
#include "tests/core/kernels.h"

namespace {

using hpe::timepoint;
using hpe::device::priority;

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::uint32_t tiles_on_gpu = 1024;

hpeShape grid() { return hpe::grid(hpe::bench::on_gpus() ? tiles_on_gpu : test_tiles); }

/// Double buffering by hand, on the same devices as hpe, opened a second time.
class by_hand {
 public:
  by_hand(std::size_t part_bytes, std::size_t source_bytes)
      : part_(part_bytes),
        source_(source_bytes / part_bytes * part_bytes),
        space_(0, hpe::round_up(source_, std::size_t{1} << 30), 1),
        devices_(hpe::device::open_devices(hpe::bench::on_gpus() ? "cuda:1" : "soft:1", space_.layout())) {
    devices_->register_host(host(), space_.layout().size(), space_.shadow_file(), 0);
    space_.open_alias(space_.segment_begin(hpe::memory::segment_kind::device, 0), space_.layout().size());
    hpe::device::device& device = devices_->at(0);
    for (std::byte*& b : buffers_) {
      b = space_.segment_begin(hpe::memory::segment_kind::device, 0) + static_cast<std::size_t>(&b - buffers_) * part_;
      device.map(b, part_);
    }
    up_ = &device.create_stream(priority::launch);
    down_ = &device.create_stream(priority::launch);
    work_ = &device.create_stream(priority::launch);
    kernel_ = devices_->find_kernel(devices_->load_module(test_kernels_path()), "increment");
    std::memset(host(), 0, source_);
    pass(source_, true);  // warms up, and lets the driver pin the pages
  }

  /// Streams `bytes` bytes through the buffers; returns when all copies and kernels have finished.
  void pass(std::size_t bytes, bool write) {
    std::vector<timepoint> free(buffer_count);  // for each buffer, the timepoint from which it may be filled again
    hpe::device::shape shape;
    shape.grid[0] = grid().grid[0];
    shape.block[0] = grid().block[0];
    std::size_t n = 0;
    for (std::size_t at = 0; at < bytes; at += part_, ++n) {
      std::byte* const buffer = buffers_[n % buffer_count];
      std::byte* const place = host() + at % source_;
      up_->wait(free[n % buffer_count]);
      work_->wait(up_->copy(buffer, place, part_));
      const increment_parameters p{reinterpret_cast<std::uint32_t*>(buffer), part_ / sizeof(std::uint32_t), 1, 0};
      const timepoint computed = work_->launch(kernel_, shape, std::as_bytes(std::span(&p, 1)));
      free[n % buffer_count] = computed;
      if (!write) continue;
      down_->wait(computed);
      free[n % buffer_count] = down_->copy(place, buffer, part_);
    }
    for (const timepoint p : free) devices_->wait(p, std::chrono::steady_clock::time_point::max());
  }

 private:
  static constexpr std::size_t buffer_count = 3;  // one is filled, one is used by the kernel, one is emptied
  [[nodiscard]] std::byte* host() const {
    return space_.alias(space_.segment_begin(hpe::memory::segment_kind::device, 0));
  }

  const std::size_t part_;
  const std::size_t source_;
  hpe::memory::uvas space_;
  std::unique_ptr<hpe::device::device_set> devices_;
  std::byte* buffers_[buffer_count] = {};
  hpe::device::stream *up_ = nullptr, *down_ = nullptr, *work_ = nullptr;
  hpe::device::kernel_id kernel_;
};

/// Makes the same pass with hpe: one launch for each part of the array.
void pass(const hpe::array<std::uint32_t>& data, const hpe::array<std::uint32_t>& sum, std::size_t part, bool write) {
  for (std::size_t at = 0; at + part <= data.size(); at += part) {
    const std::span some(data.data() + at, part);
    if (write) {
      hpe::launch(test_kernel().increment, grid(), {some.data(), part, 1, 0}, hpe::inout(some));
    } else {
      hpe::launch(test_kernel().add, grid(), {sum.data(), some.data(), some.data(), part}, hpe::in(some),
                  hpe::out(sum));
    }
  }
  hpe::synchronize();
}

/// Measures two processes that share one device. Must be called before hpe starts in this process.
void compare_two_processes(std::size_t memory, std::size_t part, double seconds, unsigned repeats,
                           std::vector<hpe::bench::result>& lines) {
  const std::string group = fmt::format("bench-larger-{}", ::getpid());
  hpe::bench::sharing_process a(group.c_str(), memory, part);
  hpe::bench::sharing_process b(group.c_str(), memory, part);
  // Determines the number of passes in a phase. First, each process copies its data to the device; process b runs last,
  // so that its data is in device memory.
  a.run(1);
  b.run(2);
  constexpr unsigned some = 4;
  const double began = hpe::bench::now();
  b.run(some);
  const double pass = (hpe::bench::now() - began) / some;
  const auto passes = static_cast<unsigned>(std::max(1.0, seconds / pass));
  constexpr unsigned phases = 4;  // number of phases of each process
  const auto in_turn = [&] {
    for (unsigned i = 0; i < phases; ++i) {
      a.run(passes);
      b.run(passes);
    }
  };
  const auto one_after_the_other = [&] {
    a.run(phases * passes);
    b.run(phases * passes);
  };
  const auto at_once = [&] {
    a.start(phases * passes);
    b.start(phases * passes);
    a.finish();
    b.finish();
  };
  const auto nothing = [] {};
  const auto alternate = hpe::bench::paired_timings(repeats, nothing, in_turn, nothing, one_after_the_other);
  const auto together = hpe::bench::paired_timings(repeats, nothing, at_once, nothing, one_after_the_other);
  const auto add = [&](const char* what, const hpe::bench::pair_of_timings& both, bool has_bar) {
    const double value = both.second.median / both.first.median;
    lines.push_back(
        {fmt::format("two processes that each use 0.75 x the memory, {}: speed / speed one after the other", what),
         value, "x", has_bar ? ">= 0.8" : "", !has_bar || value >= 0.8,
         fmt::format("({:.2f} s, a phase takes {:.2f} s)", both.first.median, pass * passes)});
  };
  add("phases in turn", alternate, true);
  add("both at once", together, false);
}

/// The rates of a disk in bytes per second, measured with as many concurrent transfers, of the same size, as hpe makes.
struct disk_rates {
  double read = 0;
  double both = 0;  // the rate of each direction while equal amounts are read and written
};

disk_rates measure_disk(const std::string& folder, std::size_t bytes, std::size_t at_once) {
  constexpr std::size_t size = hpe::granule_size;
  const std::size_t count = bytes / size / 2;  // the number of extents in each half of the file
  hpe::os::spill_file file(folder, size);
  std::vector<std::uint32_t> extents(2 * count);
  for (std::uint32_t& e : extents) e = file.take();
  // Calls transfer(extent, buffer) for `count` extents from number `from` on, in `at_once` threads.
  const auto in_threads = [&](std::size_t from, const std::function<void(std::uint32_t, std::byte*)>& transfer) {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < at_once; ++t)
      threads.emplace_back([&, t] {
        const std::unique_ptr<std::byte, decltype(&std::free)> buffer(
            static_cast<std::byte*>(std::aligned_alloc(size, size)), &std::free);
        std::memset(buffer.get(), 1, size);
        for (std::size_t i = from + t; i < from + count; i += at_once) transfer(extents[i], buffer.get());
      });
  };
  const auto read = [&](std::uint32_t e, std::byte* buffer) { file.read(e, 0, buffer, size); };
  const auto write = [&](std::uint32_t e, std::byte* buffer) { file.write(e, 0, buffer, size); };
  in_threads(0, write);
  in_threads(count, write);
  const double moved = static_cast<double>(count * size);
  const double begin = hpe::bench::now();
  in_threads(0, read);
  const double between = hpe::bench::now();
  std::jthread writer([&] { in_threads(0, write); });
  in_threads(count, read);
  writer.join();
  return {moved / (between - begin), moved / (hpe::bench::now() - between)};
}

/// Measures streams over an array that is four times as large as the limit of host memory, and compares their rates
/// with those of the disk.
std::vector<hpe::bench::result> from_disk(const std::string& folder, std::size_t host_mebi, std::size_t part_mebi,
                                          unsigned repeats) {
  constexpr std::size_t times = 4;
  const std::size_t bytes = times * host_mebi / part_mebi * part_mebi * mebi;
  const std::size_t part = part_mebi * mebi / sizeof(std::uint32_t);
  const hpe::array<std::uint32_t> sum(part);
  const hpe::array<std::uint32_t> data(bytes / sizeof(std::uint32_t));
  pass(data, sum, part, true);
  // The number of disk transfers that hpe makes concurrently (work::host_memory).
  const std::size_t at_once = std::clamp<std::size_t>(host_mebi * mebi / 8 / hpe::granule_size, 1, 8);
  std::vector<hpe::bench::result> lines;
  for (const bool write : {false, true}) {
    disk_rates disk;
    const auto nothing = [] {};
    double from_file = 0;
    const auto count = [&] { from_file = static_cast<double>(hpe::statistics().bytes_unspilled); };
    const auto timings = hpe::bench::paired_timings(
        repeats, count,
        [&] {
          pass(data, sum, part, write);
          from_file = static_cast<double>(hpe::statistics().bytes_unspilled) - from_file;
        },
        nothing, [&] { disk = measure_disk(folder, bytes, at_once); });
    const double rate = from_file / timings.first.median;
    const double bound = write ? disk.both : disk.read;
    lines.push_back(
        {fmt::format("{} x the host's limit, {}: from the file", times, write ? "read and written" : "read"),
         rate * 1e-9, "GB/s", "", true,
         fmt::format("(whole array: {:.2f} GB/s)", static_cast<double>(bytes) / timings.first.median * 1e-9)});
    lines.push_back({write ? "  rate / rate of the disk's reads while it writes" : "  rate / rate of the disk's reads",
                     rate / bound, "x", "", true, fmt::format("({:.2f} GB/s)", bound * 1e-9)});
  }
  return lines;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t part_mebi = 0;
  std::size_t memory_mebi = 0;
  std::size_t phase_milliseconds = 1000;
  std::size_t host_mebi = 256;
  std::string folder;
  const auto arguments = hpe::bench::parse(
      argc, argv,
      "streams over arrays of 1.5, 2 and 4 times device memory, compared with double buffering by hand, wave steps and "
      "scans over twice the memory, and two processes that share a device",
      {{"--part", "N", "MiB of the array that a launch uses (64 on GPUs, 8 on soft devices)",
        hpe::bench::to_whole(part_mebi, 1, 4096)},
       {"--memory", "N", "MiB of device memory (HPE_DEVICE_MEMORY; else 8192 on GPUs, 256 on soft devices)",
        hpe::bench::to_whole(memory_mebi, 16, 1 << 20)},
       {"--phase", "N", "milliseconds of each phase of two processes that share the device (1000; 0: without them)",
        hpe::bench::to_whole(phase_milliseconds, 0, 100000)},
       {"--spill", "FOLDER",
        "measure only streams over an array of 4 times the limit of host memory, from a file in FOLDER",
        hpe::bench::to_text(folder)},
       {"--host-memory", "N", "MiB of host memory with --spill (HPE_HOST_MEMORY; 256)",
        hpe::bench::to_whole(host_mebi, 16, 1 << 20)}});
  const std::string devices = hpe::options::from_environment().devices;
  const bool gpu = devices.empty() || devices.starts_with("cuda");
  if (memory_mebi == 0) memory_mebi = gpu ? 8192 : 256;
  if (!folder.empty()) {
    ::setenv("HPE_SPILL", folder.c_str(), 1);
    ::setenv("HPE_HOST_MEMORY", fmt::format("{}M", host_mebi).c_str(), 1);
  }
  ::setenv("HPE_DEVICE_MEMORY", fmt::format("{}M", memory_mebi).c_str(), 0);
  if (part_mebi == 0) part_mebi = gpu ? 64 : 8;
  std::vector<hpe::bench::result> shared;
  if (phase_milliseconds != 0 && folder.empty())
    compare_two_processes(memory_mebi * mebi, part_mebi * mebi, static_cast<double>(phase_milliseconds) * 1e-3,
                          arguments.repeats, shared);
  const std::size_t memory = hpe::device_info(0).memory_total;
  const std::size_t part = part_mebi * mebi / sizeof(std::uint32_t);
  const auto title = [&](const std::string& more) {
    return fmt::format("larger: {}, {} MiB{}, {}", hpe::device_info(0).name, memory / mebi, more,
                       hpe::bench::load_of_machine());
  };
  if (!folder.empty())
    return report(title(fmt::format(", host memory {} MiB", host_mebi)),
                  from_disk(folder, host_mebi, part_mebi, arguments.repeats), arguments);

  std::vector<hpe::bench::result> lines;
  hpe::bench::link_rates link;
  by_hand hand(part_mebi * mebi, std::min(memory, 2048 * mebi));
  const hpe::array<std::uint32_t> sum(part);
  for (const double times : {1.5, 2.0, 4.0}) {
    const std::size_t bytes =
        static_cast<std::size_t>(times * static_cast<double>(memory / mebi)) / part_mebi * part_mebi * mebi;
    const hpe::array<std::uint32_t> data(bytes / sizeof(std::uint32_t));
    pass(data, sum, part, true);  // warms up: allocates and pins the pages in host memory
    for (const bool write : {false, true}) {
      for (int n = 0; n < 2; ++n) pass(data, sum, part, write);  // hpe then knows the order of the accesses
      std::uint64_t came_in = 0;
      const auto count = [&] { came_in = hpe::statistics().bytes_brought_in; };
      const auto both = hpe::bench::paired_timings(
          arguments.repeats, count,
          [&] {
            pass(data, sum, part, write);
            came_in = hpe::statistics().bytes_brought_in - came_in;
          },
          [] {}, [&] { hand.pass(bytes, write); });
      const double moved = static_cast<double>(came_in) / static_cast<double>(bytes);
      const auto rate = [&](double seconds) { return static_cast<double>(bytes) / seconds * 1e-9; };
      (write ? link.both : link.up) = static_cast<double>(bytes) / both.second.median;
      const char* const what = write ? "read and written" : "read";
      lines.push_back({fmt::format("{} x the memory, {}", times, what), moved * rate(both.first.median), "GB/s", "",
                       true,
                       fmt::format("({:.2f}..{:.2f}; {:.2f} of the array come in)", moved * rate(both.first.slowest),
                                   moved * rate(both.first.fastest), moved)});
      const double value = moved * both.second.median / both.first.median;
      lines.push_back({"  of double buffering by hand", value, "x", ">= 0.95", value >= 0.95,
                       fmt::format("({:.2f} GB/s)", rate(both.second.median))});
    }
  }
  hpe::bench::measure_workloads(memory, part_mebi * mebi, link, arguments.repeats, lines);
  lines.insert(lines.end(), shared.begin(), shared.end());
  return report(title(""), lines, arguments);
}

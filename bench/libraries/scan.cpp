// On one GPU (HPE_DEVICES=cuda:1), hpe's scans are compared with CUB and with a copy within the device's memory, which
// reads and writes as many bytes. On several GPUs, a scan by all GPUs is compared with a scan by the first GPU. On soft
// devices, the references are oneTBB's parallel_scan with the same number of threads, and a copy by hpe. A timed body
// queues several scans and waits once, so that the time of the wait is negligible.

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <vector>

#include "apps/scan/scan_plan.h"
#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/libraries/scan_peers.h"
#include "bench/libraries/soft_bars.h"

namespace {

using namespace hpe::scan;
using hpe::array;
using hpe::bench::result;

constexpr std::uint64_t gpu_bytes = std::uint64_t{1} << 30, soft_bytes = std::uint64_t{1} << 28;

/// Times `first` and `second` in turn. A timed body calls its function `times` times and then waits for the devices.
hpe::bench::pair_of_medians in_turn(unsigned repeats, unsigned times, const std::function<void()>& first,
                                    const std::function<void()>& second) {
  const auto queued = [times](const std::function<void()>& body) {
    return [times, body] {
      for (unsigned i = 0; i < times; ++i) body();
      hpe::synchronize();
    };
  };
  return hpe::bench::paired_medians(
      repeats, [] {}, queued(first), [] {}, queued(second));
}

/// Copies by the CUDA runtime on GPUs, and by hpe on soft devices.
void reference_copy(void* output, const void* input, std::size_t bytes) {
  if (hpe::bench::on_gpus())
    hpe::bench::device_copy(0, output, input, bytes);
  else
    hpe::copy(output, input, bytes);
}

/// Fills the input with random numbers, and the output with values that no scan produces.
template <class T>
void prepare(const array<T>& input, const array<T>& output) {
  constexpr std::size_t drawn = std::size_t{1} << 20;
  constexpr int most = 1000;
  std::minstd_rand draw(1);
  std::vector<T> numbers(drawn);
  for (T& x : numbers) x = static_cast<T>(static_cast<int>(draw() % (2 * most + 1)) - most);
  std::size_t there = std::min(drawn, input.size());
  hpe::copy(input.data(), numbers.data(), there * sizeof(T));
  while (there < input.size()) {
    const std::size_t more = std::min(there, input.size() - there);
    hpe::copy(input.data() + there, input.data(), more * sizeof(T));
    there += more;
  }
  hpe::fill(output.data(), 0xA5, output.size() * sizeof(T));
}

result line(const std::string& what, double value, const std::string& unit, double bar) {
  return {what, value, unit, bar > 0 ? fmt::format(">= {:.2f}", bar) : "", value >= bar};
}

struct measurements {
  unsigned repeats;
  std::vector<result> results;

  /// Times a scan by one device and a copy of the same number of bytes; returns the ratio of the copy's time to the
  /// scan's time.
  template <class T>
  double against_copy(std::uint64_t bytes, std::uint64_t length, const wishes& wished, const std::string& name,
                      double bar) {
    const std::uint64_t problems = bytes / sizeof(T) / length, count = problems * length;
    plan scan(operation_for<T>(built_in::sum), {length, problems}, wished);
    const array<T> input(count, scan.where()), output(count, scan.where());
    prepare(input, output);
    const auto t = in_turn(
        repeats, 5, [&] { reference_copy(output.data(), input.data(), count * sizeof(T)); },
        [&] { scan.run(input.data(), output.data()); });
    results.push_back(line(name, t.first / t.second, "x copy", bar));
    return t.first / t.second;
  }

  void cub(std::uint64_t length, const wishes& one) {
    const std::uint64_t count = gpu_bytes / sizeof(std::int32_t), problems = count / length;
    plan scan(operation_for<std::int32_t>(built_in::sum), {length, problems}, one);
    const array<std::int32_t> input(count, scan.where()), output(count, scan.where());
    prepare(input, output);
    hpe::bench::cub_sum peer(0, length, problems);
    const auto t = in_turn(
        repeats, 2, [&] { peer.run(input.data(), output.data()); }, [&] { scan.run(input.data(), output.data()); });
    results.push_back(line(fmt::format("int32, {} problems of {}", problems, length), t.first / t.second, "x CUB", 1));
  }

  void one_gpu() {
    wishes one;
    one.devices = {0};
    const double int32 = against_copy<std::int32_t>(gpu_bytes, std::uint64_t{1} << 28, one, "2^28 int32", 0.90);
    constexpr double within = 0.95;
    against_copy<float>(gpu_bytes, std::uint64_t{1} << 28, one, "2^28 float", within * int32);
    against_copy<std::int64_t>(gpu_bytes, std::uint64_t{1} << 27, one, "2^27 int64", within * int32);
    against_copy<double>(gpu_bytes, std::uint64_t{1} << 27, one, "2^27 double", within * int32);
    constexpr unsigned first = 10, last = 27;
    for (unsigned n = first; n <= last; ++n)
      against_copy<std::int32_t>(gpu_bytes, std::uint64_t{1} << n, one,
                                 fmt::format("2^{} int32 in problems of 2^{}", 28, n), 0.88);
    for (const std::uint64_t odd : {7, 1000, 100003, 10000019})
      against_copy<std::int32_t>(gpu_bytes, odd, one, fmt::format("2^28 int32 in problems of {}", odd), 0);
    wishes staged = one;
    staged.how = algorithm::three_stages;
    against_copy<std::int32_t>(gpu_bytes, std::uint64_t{1} << 28, staged, "2^28 int32, three stages", 0);
    against_copy<std::int32_t>(gpu_bytes, std::uint64_t{1} << 20, staged,
                               "2^28 int32 in problems of 2^20, three stages", 0);
    if (!hpe::bench::cub_sum::there()) return;
    cub(std::uint64_t{1} << 28, one);
    cub(std::uint64_t{1} << 20, one);
  }

  /// Compares a scan by all devices with a scan by the first device, each with the placement that its plan prefers.
  /// Queues ten scans before each wait, because the wait for a single scan would add 1 % to the time on four GPUs.
  template <class T>
  void speed_up(std::uint64_t length, std::uint64_t problems, split spread, const std::string& name, double bar) {
    wishes one, all;
    one.devices = {0};
    all.spread = spread;
    plan alone(operation_for<T>(built_in::sum), {length, problems}, one);
    plan together(operation_for<T>(built_in::sum), {length, problems}, all);
    const std::uint64_t count = length * problems;
    double seconds[2];
    for (int i = 0; i < 2; ++i) {
      plan& scan = i == 0 ? alone : together;
      const array<T> input(count, scan.where()), output(count, scan.where());
      prepare(input, output);
      seconds[i] = in_turn(
                       repeats, 10, [&] { scan.run(input.data(), output.data()); }, [] {})
                       .first;
    }
    results.push_back(line(name, seconds[0] / seconds[1], "x one", bar));
  }
};

}  // namespace

int main(int argc, char** argv) {
  const auto a = hpe::bench::parse(argc, argv, "batched scans, compared with copies, CUB, oneTBB and one device");
  measurements m{a.repeats, {}};
  const int devices = hpe::device_count();
  const hpeDeviceInfo first = hpe::device_info(0);
  if (first.kind == HPE_DEVICE_CUDA) {
    const double bar = 0.95 * devices;
    if (devices == 1) {
      m.one_gpu();
    } else {
      for (const unsigned n : {28U, 30U, 32U})
        m.speed_up<std::int32_t>(std::uint64_t{1} << n, 1, split::mps,
                                 fmt::format("2^{} int32, MPS, {} GPUs", n, devices), n < 30 ? 0 : bar);
      m.speed_up<double>(std::uint64_t{1} << 30, 1, split::mps, fmt::format("2^30 double, MPS, {} GPUs", devices), bar);
      m.speed_up<std::int32_t>(std::uint64_t{1} << 20, 1024, split::problems,
                               fmt::format("1024 problems of 2^20, {} GPUs", devices), bar);
    }
  } else {
    m.results = hpe::bench::scans_against_tbb(a.repeats);
    wishes one;
    one.devices = {0};
    m.against_copy<std::int32_t>(soft_bytes, soft_bytes / sizeof(std::int32_t), one, "int32, one soft device", 0);
    m.against_copy<std::int32_t>(soft_bytes, 1024, one, "int32 in problems of 1024, one soft device", 0);
  }
  return hpe::bench::report(fmt::format("scan on {} x {}, {}", devices, first.name, hpe::bench::load_of_machine()),
                            m.results, a);
}

// hpeMemcpy of pageable memory in both directions at once, on two threads, relative to each direction alone. A link
// carries both directions at full rate; therefore, any slowdown comes from the threads.

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "bench/common/measure.h"
#include "bench/copies/partner.h"
#include "hpe/hpe.hpp"

namespace {

using hpe::bench::timing;

constexpr std::size_t mebi = std::size_t{1} << 20;

double gigabytes(double bytes, double seconds) { return bytes / seconds * 1e-9; }

std::string span(const timing& t, double bytes) {
  return fmt::format("({:.3f}..{:.3f})", gigabytes(bytes, t.slowest), gigabytes(bytes, t.fastest));
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      hpe::bench::parse(argc, argv, "hpeMemcpy in both directions concurrently, relative to each direction alone");
  constexpr std::size_t largest = 64 * mebi;
  const hpe::array<std::byte> target(largest, hpe::on_device(0));
  const hpe::array<std::byte> source(largest, hpe::on_device(0));
  hpe::fill(target.data(), 1, largest);
  hpe::fill(source.data(), 2, largest);
  std::vector<std::byte> sent(largest, std::byte{3});
  std::vector<std::byte> received(largest, std::byte{4});

  std::vector<hpe::bench::result> lines;
  hpe::bench::partner second;
  for (const std::size_t bytes : {mebi, 4 * mebi, 16 * mebi, 64 * mebi}) {
    // Copies several times in a row, so that idle threads, an idle link or a single delay do not determine the result.
    constexpr int in_a_row = 4;
    const std::function<void()> up = [&] {
      for (int i = 0; i < in_a_row; ++i) hpe::copy(target.data(), sent.data(), bytes);
      hpe::synchronize();
    };
    const std::function<void()> down = [&] {
      for (int i = 0; i < in_a_row; ++i) hpe::copy(received.data(), source.data(), bytes);
    };
    const auto nothing = [] {};
    const auto alone = hpe::bench::paired_timings(arguments.repeats, nothing, up, nothing, down);
    const timing both = hpe::bench::timed(arguments.repeats, nothing, [&] {
      second.go(&down);
      up();
      second.wait();
    });
    const double moved = static_cast<double>(bytes) * in_a_row;
    const auto line = [&](const std::string& what, double amount, const timing& t) {
      lines.push_back({fmt::format("{} MiB, {}", bytes / mebi, what), gigabytes(amount, t.median), "GB/s", "", true,
                       span(t, amount)});
    };
    line("to the device", moved, alone.first);
    line("to the host", moved, alone.second);
    line("both concurrently", 2 * moved, both);
    // At best, both directions at once take as long as the slower direction alone.
    const auto of = [&](auto which) { return std::max(alone.first.*which, alone.second.*which) / both.*which; };
    const double value = of(&timing::median);
    lines.push_back({"  of twice the slower direction alone", value, "x", bytes == 4 * mebi ? ">= 0.9" : "",
                     value >= 0.9, fmt::format("(fastest {:.3f})", of(&timing::fastest))});
  }
  return report(fmt::format("two-way: {}, {}", hpe::device_info(0).name, hpe::bench::load_of_machine()), lines,
                arguments);
}

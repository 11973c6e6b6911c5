// Measures the time of kernels that access the memory of another device or of the host. The program repeats, on current
// devices, the study of GPU-SM in J. Cabezas's thesis, chapter 6.

#include <fmt/core.h>

#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/remote/hypotheses.h"

namespace {

using namespace hpe::bench::remote;

struct part {
  const char* name;
  answer (*measure)(experiment&);
  bool needs_gpus = false;  ///< a soft device adds the time on its links after a kernel, not during the kernel
};

constexpr part parts[] = {{"H1", bandwidth},     {"H2", progress_over_time, true},
                          {"H3", overhead},      {"H4", occupancy},
                          {"H5", cached_tables}, {"atomics", atomics},
                          {"filters", filters}};

}  // namespace

int main(int argc, char** argv) {
  std::size_t bytes = 0;
  std::string only, charts;
  std::vector<std::string> names;
  for (const part& one : parts) names.emplace_back(one.name);
  const auto given = hpe::bench::parse(
      argc, argv, "kernels that use the memory of another device or of the host: rates, overheads, caches",
      {{"--size", "BYTES", "the size of an array, a multiple of 4M (1G; 4M for soft devices)",
        hpe::bench::to_whole(bytes, std::size_t{1} << 22, std::int64_t{1} << 36)},
       {"--only", "PART", "H1 rates, H2 progress, H3 overhead, H4 occupancy, H5 tables; atomics; filters",
        hpe::bench::to_word(only, names)},
       {"--charts", "FILE", "write the curves to FILE ('scripts/measurements draw FILE' draws them)",
        hpe::bench::to_text(charts)}});
  const bool gpus = hpe::bench::on_gpus();
  constexpr std::size_t unit = std::size_t{1} << 22;
  if (bytes == 0) bytes = gpus ? std::size_t{1} << 30 : unit;
  if (bytes % unit != 0) throw hpe::command_line::bad_input(fmt::format("--size {}: not a multiple of 4M", bytes));
  hpe::bench::warm_up_gpus();
  experiment e(bytes, given.repeats);
  answer all;
  for (const part& one : parts) {
    if (!only.empty() && only != one.name) continue;
    const answer found = one.measure(e);
    if (one.needs_gpus && !gpus) continue;
    all.lines.insert(all.lines.end(), found.lines.begin(), found.lines.end());
    all.pictures.insert(all.pictures.end(), found.pictures.begin(), found.pictures.end());
  }
  if (!e.has_links()) {
    fmt::print(
        "All results are right. No times are printed, because soft devices whose links have no limits access each\n"
        "other's memory at the speed of host memory. To measure times, limit the links (for example with\n"
        "HPE_SOFT_PEER_LINK=1G:5 and HPE_SOFT_HOST_LINK=1G:5), or use GPUs (HPE_DEVICES=cuda).\n");
    return 0;
  }
  const std::string title = fmt::format("remote: {}, {}", hpe::device_info(0).name, hpe::bench::load_of_machine());
  hpe::command_line::write_text(charts.empty() ? "" : hpe::bench::as_json(title, all.pictures), charts);
  return report(title, all.lines, given);
}

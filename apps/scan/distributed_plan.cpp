// All ranks make the same calls of ranks_, so that no rank waits for a rank that has thrown. Therefore, values that may
// differ between ranks are compared first.

#include "apps/scan/distributed_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

namespace hpe::scan {

namespace {

void agree(ranks& with, std::uint64_t mine, const char* what) {
  const std::vector<std::uint64_t> all = with.all_of(mine);
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      throw error(HPE_ERROR_INVALID_ARGUMENT,
                  fmt::format("a scan over ranks needs the same {} on each: rank 0 has {}, rank {} has {}", what,
                              all[0], r, all[r]));
}

}  // namespace

distributed_plan::distributed_plan(const operation& what, const batch& mine, ranks& with,
                                   const std::vector<int>& devices, std::uint64_t iterations)
    : what_(what), work_(mine), ranks_(with), kernels_(load_kernels(what)), devices_(inspect(devices)) {
  agree(with, mine.problems, "number of problems");
  agree(with, mine.inclusive ? 1 : 0, "kind, inclusive or exclusive,");
  agree(with, what.element_size, "size of elements");
  agree(with, iterations, "K");
  if (iterations != 0 && !std::has_single_bit(iterations))
    throw error(HPE_ERROR_INVALID_ARGUMENT,
                fmt::format("K = {}: the number of iterations in a chunk must be a power of two", iterations));
  std::uint64_t chunks = 0;
  if (mine.length > 0 && mine.problems > 0) {
    local_.emplace(kernels_, mine, devices_);
    if (iterations != 0) local_->set_iterations(iterations);
    local_->scan_sums_by([this](std::span<std::byte> sums) { scan_sums(sums); });
    chunks = local_->sums_per_problem();
  }
  sums_ = {mine.problems, with.all_of(chunks), what.element_size};
  if (with.rank() == 0)
    all_sums_ = array<std::byte>(std::max<std::uint64_t>(sums_.rows * sums_.all_columns(), 1) * sums_.element_size,
                                 on_device(devices_.front().number));
}

std::string distributed_plan::complaint_about(const void* input, const void* output) const {
  const std::size_t bytes = work_.length * work_.problems * what_.element_size;
  const auto from = reinterpret_cast<std::uintptr_t>(input), to = reinterpret_cast<std::uintptr_t>(output);
  if (bytes == 0) return "";
  if (input == nullptr || output == nullptr) return "the address of an array of a scan is null";
  if (from % what_.element_size != 0 || to % what_.element_size != 0)
    return "input and output of a scan must be aligned to an element";
  if (from != to && from < to + bytes && to < from + bytes)
    return "input and output of a scan overlap in part; they must be identical or disjoint";
  return "";
}

void distributed_plan::run(const void* input, void* output) {
  const std::string complaint = complaint_about(input, output);
  const std::vector<std::uint64_t> refused = ranks_.all_of(complaint.empty() ? 0 : 1);
  if (!complaint.empty()) throw error(HPE_ERROR_INVALID_ARGUMENT, complaint);
  if (const auto r = std::find(refused.begin(), refused.end(), 1); r != refused.end())
    throw error(HPE_ERROR_INVALID_ARGUMENT,
                fmt::format("rank {} refused its arrays, so nothing was scanned", r - refused.begin()));
  if (local_)
    local_->queue({static_cast<const std::byte*>(input), static_cast<std::byte*>(output)});
  else
    scan_sums({});
}

void distributed_plan::scan_sums(std::span<std::byte> mine) {
  ranks_.gather(sums_, mine.data(), all_sums_.data());
  const std::uint64_t columns = sums_.all_columns();
  if (ranks_.rank() == 0 && sums_.rows * columns > 0) {
    stage_kernel_parameters p{};
    p.sums = all_sums_.data();
    p.sums_per_problem = columns;
    p.share = {columns, sums_.rows, 0, columns, 1};
    launch_on(devices_.front().number, kernels_.sums, shape_of_sums(devices_.front(), sums_.rows, columns), p,
              inout(all_sums_));
  }
  ranks_.scatter(sums_, all_sums_.data(), mine.data());
}

placement distributed_plan::where() const {
  std::vector<int> numbers;
  for (const device_traits& d : devices_) numbers.push_back(d.number);
  return numbers.size() == 1 ? on_device(numbers.front()) : block_distribution(numbers);
}

std::string distributed_plan::explain() const {
  std::string text = fmt::format(
      "rank {} of {}: {} problem{}; this rank has {} elements of {} bytes of each problem, {}, {}\nrank 0 scans {} "
      "sums of chunks of each problem, {} of these sums from this rank\n",
      ranks_.rank(), sums_.columns.size(), work_.problems, work_.problems == 1 ? "" : "s", work_.length,
      what_.element_size, work_.inclusive ? "inclusive" : "exclusive", what_.suffix, sums_.all_columns(),
      sums_.columns[static_cast<std::size_t>(ranks_.rank())]);
  return local_ ? text + local_->explain() : text;
}

}  // namespace hpe::scan

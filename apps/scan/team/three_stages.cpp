// The sums that several devices write interleave in memory. The results interleave too if each device has a part of
// several problems. A launch cannot declare such writes exactly, because an access is one contiguous range. If the
// devices reach each other, launches that may run concurrently declare the sums as only read. A launch before these
// launches declares a write, and so waits for earlier uses of the arrays. A launch after these launches declares a
// write too, and waits for all of them. If the devices do not reach each other, each launch declares all memory that it
// uses, so that hpe moves the memory; each launch then waits for the previous launch.

#include "apps/scan/team/three_stages.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace hpe::scan {

namespace {

bool soft(const device_traits& d) { return d.kind == HPE_DEVICE_SOFT; }

stage_parameters parameters_for(const device_traits& d, std::size_t element_size) {
  return soft(d) ? for_threads() : by_premises(data_centre_gpu, element_size);
}

/// Returns the smallest number of elements that stage 1 should leave to stage 2 (see iterations_to_try).
std::uint64_t stage_two(const device_traits& d, const stage_parameters& chosen) {
  return soft(d) ? d.units : data_centre_gpu.blocks * chosen.per_iteration();
}

hpeShape shape_for(const device_traits& d, std::uint64_t blocks, std::uint32_t threads) {
  constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max(), each_thread = 64;
  const std::uint64_t limit = soft(d) ? d.units * each_thread : most;
  return {{static_cast<std::uint32_t>(std::min(blocks, limit)), 1, 1}, {threads, 1, 1}};
}

}  // namespace

three_stages::three_stages(const kernel_set& with, const batch& work, std::vector<device_traits> devices)
    : with_(with),
      work_(work),
      devices_(std::move(devices)),
      connected_(reach_each_other(devices_)),
      chosen_(parameters_for(devices_.front(), with.element_size)),
      candidates_(iterations_to_try(work.length, work.problems, chosen_, stage_two(devices_.front(), chosen_),
                                    devices_.size())) {
  set_iterations(candidates_.back());
}

void three_stages::set_iterations(std::uint64_t iterations) {
  iterations_ = iterations;
  sums_per_problem_ = 0;
  for (std::size_t d = 0; d < devices_.size(); ++d) sums_per_problem_ += share_of(d).chunks();
  sums_ = array<std::byte>(work_.problems * std::max<std::uint64_t>(sums_per_problem_, 1) * with_.element_size,
                           on_device(devices_.front().number));
}

kernels::scan_share three_stages::share_of(std::size_t d) const {
  // Parts begin at cache lines if the problems do.
  constexpr std::uint64_t line = 128;
  const std::uint64_t unit = line / with_.element_size, count = devices_.size();
  const auto cut = [&](std::size_t i) {
    return i == count ? work_.length : static_cast<std::uint64_t>(work_.length * i / count / unit * unit);
  };
  return {work_.length, work_.problems, cut(d), cut(d + 1), iterations_ * chosen_.per_iteration()};
}

hpeShape three_stages::shape(std::size_t d, std::uint64_t blocks) const {
  return shape_for(devices_[d], blocks, 1U << chosen_.l);
}

hpeShape shape_of_sums(const device_traits& on, std::uint64_t problems, std::uint64_t sums_per_problem) {
  constexpr std::uint32_t few = 256, most_threads = 1024, warp = 32, rows = 8;
  if (soft(on)) return shape_for(on, problems, 1);
  // In stage 2, a block scans the sums of a problem with many chunks, and a warp those of a problem with few chunks
  // (premise 3: several problems in a block).
  if (sums_per_problem > few) return shape_for(on, problems, most_threads);
  return {{static_cast<std::uint32_t>((problems + rows - 1) / rows), 1, 1}, {warp, rows, 1}};
}

template <class Launch>
void three_stages::for_shares(const arrays& where, stage_kernel_parameters& p, Launch launch) const {
  const std::size_t bytes = work_.length * work_.problems * with_.element_size;
  p.first_sum = 0;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    p.share = share_of(d);
    const std::uint64_t chunks = p.share.chunks();
    // If there is one problem, a device uses one contiguous range. Otherwise, a device uses a part of each problem.
    const bool one = work_.problems == 1;
    const ranges used(where, one ? p.share.from * with_.element_size : 0,
                      one ? (p.share.to - p.share.from) * with_.element_size : bytes);
    if (chunks > 0) launch(d, used, shape(d, chunks * work_.problems));
    p.first_sum += chunks;
  }
}

void three_stages::queue(const arrays& where) {
  const std::size_t bytes = work_.length * work_.problems * with_.element_size;
  stage_kernel_parameters p{};
  p.input = where.input;
  p.output = where.output;
  p.sums = staged() ? sums_.data() : nullptr;
  p.sums_per_problem = sums_per_problem_;
  p.inclusive = work_.inclusive ? 1 : 0;
  p.stream = bytes > too_much_for_caches && where.input != where.output;
  if (staged()) {
    // The fill waits for launches that read the sums of the previous scan.
    fill(sums_.data(), 0, sums_.size());
    for_shares(where, p, [&](std::size_t d, const ranges& used, const hpeShape& blocks) {
      launch_on(devices_[d].number, with_.reduce, blocks, p, used.only_read(), connected_ ? in(sums_) : inout(sums_));
    });
    queue_sums(p);
  }
  queue_chunks(where, p);
}

void three_stages::queue_sums(stage_kernel_parameters& p) const {
  const int first = devices_.front().number;
  if (elsewhere_) {
    // Earlier launches declared the sums as only read, so this launch declares the write.
    launch_on(first, with_.fence, grid(1), nothing{}, inout(sums_));
    return elsewhere_(sums_.span());
  }
  p.share = {work_.length, work_.problems, 0, work_.length, 1};
  launch_on(first, with_.sums, shape_of_sums(devices_.front(), work_.problems, sums_per_problem_), p, inout(sums_));
}

void three_stages::queue_chunks(const arrays& where, stage_kernel_parameters& p) const {
  const std::size_t bytes = work_.length * work_.problems * with_.element_size;
  const std::span<std::byte> output(where.output, bytes);
  if (work_.problems == 1 || devices_.size() == 1) {
    for_shares(where, p, [&](std::size_t d, const ranges& used, const hpeShape& blocks) {
      launch_on(devices_[d].number, with_.chunks, blocks, p, used.read(), used.written(), in(sums_));
    });
    return;
  }
  if (!connected_) {
    for_shares(where, p, [&](std::size_t d, const ranges& used, const hpeShape& blocks) {
      launch_on(devices_[d].number, with_.chunks, blocks, p, used.read(), inout(output), in(sums_));
    });
    return;
  }
  const int first = devices_.front().number;
  const ranges all(where, 0, bytes);
  launch_on(first, with_.fence, grid(1), nothing{}, all.read(), all.written(), inout(sums_));
  for_shares(where, p, [&](std::size_t d, const ranges&, const hpeShape& blocks) {
    launch_on(devices_[d].number, with_.chunks, blocks, p, in(sums_));
  });
  launch_on(first, with_.fence, grid(1), nothing{}, all.only_read(), inout(output), inout(sums_));
}

std::string three_stages::explain() const {
  std::string text = hpe::scan::explain(chosen_, devices_.front());
  text += fmt::format(
      "premise 3: K from 1 to {} leaves enough work for stage 2; K = {} makes chunks of {} elements, {} chunks in each "
      "problem\n",
      candidates_.back(), iterations_, iterations_ * chosen_.per_iteration(), sums_per_problem_);
  if (devices_.size() > 1)
    text += fmt::format("premise 4: {} devices share each problem; device {} scans the sums\n", devices_.size(),
                        devices_.front().number);
  if (!staged()) text += "each problem is one chunk: only stage 3 runs\n";
  return text;
}

}  // namespace hpe::scan

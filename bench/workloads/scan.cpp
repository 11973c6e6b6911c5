// An inclusive prefix sum of int32. The hand-written version has three stages. Between stages, it copies the sums of
// all chunks to every device, and every device scans these sums.

#include "apps/scan/choice/premises.h"
#include "apps/scan/scan_plan.h"
#include "bench/libraries/scan_peers.h"
#include "bench/workloads/workload.h"

namespace hpe::bench {

namespace {

constexpr std::uint64_t chunk = std::uint64_t{1} << 14;

std::uint64_t count() { return std::uint64_t{1} << (on_gpus() ? 28 : 23); }

std::vector<std::int32_t> input_values() {
  std::vector<std::int32_t> all(count());
  for (std::uint64_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i * 2654435761U >> 20) - 2000;
  return all;
}

template <class Values>
std::vector<double> some_of(const Values& all) {
  const std::uint64_t step = count() / 128 - 1;
  std::vector<double> some;
  for (std::uint64_t i = 0; i < count(); i += step) some.push_back(all[i]);
  return some;
}

class through_hpe final : public program {
 public:
  explicit through_hpe(int devices)
      : plan_(scan::operation_for<std::int32_t>(scan::built_in::sum), {count(), 1}, wished(devices)),
        input_(count(), plan_.where()),
        output_(count(), plan_.where()) {
    const std::vector<std::int32_t> values = input_values();
    copy(input_.data(), values.data(), count() * sizeof(std::int32_t));
  }
  void run() override {
    plan_.run(input_.data(), output_.data());
    synchronize();
  }
  [[nodiscard]] std::vector<double> probe() override { return some_of(output_); }

 private:
  static scan::wishes wished(int devices) {
    scan::wishes w;
    for (int d = 0; d < devices; ++d) w.devices.push_back(d);
    return w;
  }
  scan::plan plan_;
  array<std::int32_t> input_, output_;
};

class written_by_hand final : public on_team {
 public:
  explicit written_by_hand(int devices)
      : on_team(devices, 4 * count() / static_cast<std::uint64_t>(devices) * sizeof(std::int32_t)),
        each_(count() / static_cast<std::uint64_t>(devices)),
        reduce_(kernel("scan_reduce_i32_sum")),
        sums_(kernel("scan_sums_i32_sum")),
        chunks_(kernel("scan_chunks_i32_sum")) {
    const std::vector<std::int32_t> values = input_values();
    for (int d = 0; d < devices; ++d) {
      parts_.push_back({team_.take<std::int32_t>(d, each_), team_.take<std::int32_t>(d, each_),
                        team_.take<std::int32_t>(d, count() / chunk)});
      team_.put(d, parts_.back().input, values.data() + static_cast<std::uint64_t>(d) * each_,
                each_ * sizeof(std::int32_t));
    }
  }
  void run() override {
    const std::uint64_t mine = each_ / chunk;
    const hpeShape shape = shape_of_chunks(mine), one = shape_of_sums();
    std::vector<kernels::scan_three_stages<std::int32_t>> all;
    for (int d = 0; d < team_.devices(); ++d) {
      const part& at = parts_[static_cast<std::size_t>(d)];
      kernels::scan_three_stages<std::int32_t> p{};
      p.input = at.input;
      p.output = at.output;
      p.sums = at.sums;
      p.sums_per_problem = count() / chunk;
      p.first_sum = static_cast<std::uint64_t>(d) * mine;
      p.share = {each_, 1, 0, each_, chunk};
      p.inclusive = 1;
      p.stream = 1;
      all.push_back(p);
      team_.launch(d, reduce_, shape, p);
    }
    std::vector<transfer> sums;
    for (int from = 0; from < team_.devices(); ++from)
      for (int to = 0; to < team_.devices(); ++to)
        if (from != to)
          sums.push_back({from, to, all[static_cast<std::size_t>(from)].sums + static_cast<std::uint64_t>(from) * mine,
                          all[static_cast<std::size_t>(to)].sums + static_cast<std::uint64_t>(from) * mine,
                          mine * sizeof(std::int32_t), team_.last(from), team_.last(to)});
    team_.exchange(sums);
    for (int d = 0; d < team_.devices(); ++d) {
      team_.launch(d, sums_, one, all[static_cast<std::size_t>(d)]);
      team_.launch(d, chunks_, shape, all[static_cast<std::size_t>(d)]);
    }
    team_.finish();
  }
  [[nodiscard]] std::vector<double> probe() override {
    std::vector<std::int32_t> whole(count());
    for (int d = 0; d < team_.devices(); ++d)
      team_.get(d, whole.data() + static_cast<std::uint64_t>(d) * each_, parts_[static_cast<std::size_t>(d)].output,
                each_ * sizeof(std::int32_t));
    return some_of(whole);
  }

 private:
  struct part {
    std::int32_t *input, *output, *sums;
  };
  /// Returns the shape of launches that have one block for each chunk.
  hpeShape shape_of_chunks(std::uint64_t chunks) const {
    if (!team_.on_gpus()) return grid(4 * team_.units());
    const unsigned threads = 1U << scan::by_premises(scan::data_centre_gpu, sizeof(std::int32_t)).l;
    return {{static_cast<std::uint32_t>(chunks), 1, 1}, {threads, 1, 1}};
  }
  hpeShape shape_of_sums() const {
    if (!team_.on_gpus()) return grid(1);
    return {{1, 1, 1}, {1024, 1, 1}};
  }
  device::kernel_id kernel(const char* name) { return team_.find(modules::path_of("libhpe-scan-kernels.so"), name); }

  const std::uint64_t each_;
  device::kernel_id reduce_, sums_, chunks_;
  std::vector<part> parts_;
};

class by_tbb final : public program {
 public:
  explicit by_tbb(unsigned threads) : threads_(threads), input_(input_values()), output_(count()) {}
  void run() override { tbb_sum(threads_, input_.data(), output_.data(), count()); }
  [[nodiscard]] std::vector<double> probe() override { return some_of(output_); }

 private:
  unsigned threads_;
  std::vector<std::int32_t> input_, output_;
};

}  // namespace

workload scan_workload() {
  return {"scan",
          std::string("2^") + (on_gpus() ? "28" : "23") + " int32",
          0,
          [](int devices) -> std::unique_ptr<program> { return std::make_unique<through_hpe>(devices); },
          [](int devices) -> std::unique_ptr<hand_written> { return std::make_unique<written_by_hand>(devices); },
          "oneTBB parallel_scan",
          [](unsigned threads) -> std::unique_ptr<program> { return std::make_unique<by_tbb>(threads); }};
}

}  // namespace hpe::bench

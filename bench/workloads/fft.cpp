// A Fourier transform in single precision. The hand-written version follows the FFT of the thesis on W devices (a power
// of two). In each of log2 W steps, pairs of devices exchange their elements. Then each device transforms its elements
// (by cuFFT on GPUs), and all devices exchange elements to put them in order.

#include "apps/fft/fft.h"

#include <bit>
#include <filesystem>

#include "apps/fft/cufft.h"
#include "apps/fft/fft_modules.h"
#include "bench/libraries/fft_peers.h"
#include "bench/workloads/workload.h"

namespace hpe::bench {

namespace {

using number = kernels::complex_number<float>;

std::int64_t length() { return std::int64_t{1} << (on_gpus() ? 26 : 18); }

number value_at(std::int64_t i) { return {static_cast<float>(i % 17) - 8, static_cast<float>(i % 5) - 2}; }

template <class Numbers>
std::vector<double> some_of(const Numbers& x) {
  std::vector<double> some;
  for (std::int64_t k = 0; k < length(); k += 4099) {
    some.push_back(x[static_cast<std::size_t>(k)].re);
    some.push_back(x[static_cast<std::size_t>(k)].im);
  }
  return some;
}

class through_hpe final : public program {
 public:
  through_hpe(int devices, fft::form how)
      : plan_({.length = length()}, {.how = how, .devices = devices}),
        in_(size(), plan_.where()),
        out_(size(), plan_.where()) {
    std::vector<number> x(size());
    for (std::int64_t i = 0; i < length(); ++i) x[static_cast<std::size_t>(i)] = value_at(i);
    copy(in_.data(), x.data(), size() * sizeof(number));
  }
  void run() override {
    plan_.forward(in_.data(), out_.data());
    synchronize();
  }
  [[nodiscard]] std::vector<double> probe() override {
    std::vector<number> x(size());
    copy(x.data(), out_.data(), size() * sizeof(number));
    return some_of(x);
  }

 private:
  static std::size_t size() { return static_cast<std::size_t>(length()); }
  fft::plan<float> plan_;
  array<std::complex<float>> in_, out_;
};

class written_by_hand final : public on_team {
 public:
  explicit written_by_hand(int devices)
      : on_team(devices, 8 * bytes(length() / devices)),
        part_(length() / devices),
        butterfly_(team_.find(modules::path_of("libhpe-fft-kernels.so"), "fft_butterfly_f32")),
        interleave_(team_.find(modules::path_of("libhpe-fft-kernels.so"), "fft_interleave_f32")) {
    if (!on_gpus()) transform_ = team_.find(modules::path_of("libhpe-fft-fftw.so"), "fft_local_f32");
    for (int d = 0; d < devices; ++d) {
      parts_.push_back(
          {team_.take<number>(d, elements()), team_.take<number>(d, elements()), team_.take<number>(d, elements()), 0});
      std::vector<number> x(elements());
      for (std::int64_t i = 0; i < part_; ++i) x[static_cast<std::size_t>(i)] = value_at(d * part_ + i);
      team_.put(d, parts_.back().given, x.data(), bytes(part_));
      if (on_gpus()) make_plan(d);
    }
  }
  written_by_hand(const written_by_hand&) = delete;
  written_by_hand& operator=(const written_by_hand&) = delete;
  ~written_by_hand() override {
    for (int d = 0; d < team_.devices() && on_gpus(); ++d) try {
        team_.enqueue(d, [&](void*) { return fft::cufft::load().destroy(at(d).plan); });
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): a destructor cannot report the error
      }
  }

  void run() override {
    const number* (*const source)(part&, bool) = [](part& p, bool first) -> const number* {
      return first ? p.given : p.data;
    };
    bool first = true;
    for (int distance = team_.devices() / 2; distance > 0; distance /= 2, first = false) {
      std::vector<transfer> swaps;
      for (int d = 0; d < team_.devices(); ++d)
        swaps.push_back({d ^ distance, d, source(at(d ^ distance), first), at(d).brought, bytes(part_),
                         last(d ^ distance), last(d)});
      team_.exchange(swaps);
      for (int d = 0; d < team_.devices(); ++d) combine(d, distance, source(at(d), first));
    }
    for (int d = 0; d < team_.devices(); ++d) transform(d, source(at(d), first));
    if (team_.devices() > 1) put_in_order();
    team_.finish();
  }

  [[nodiscard]] std::vector<double> probe() override {
    std::vector<number> all(static_cast<std::size_t>(length()));
    for (int d = 0; d < team_.devices(); ++d) team_.get(d, all.data() + d * part_, at(d).data, bytes(part_));
    return some_of(all);
  }

 private:
  struct part {
    number *given, *data, *brought;
    fft::cufft::handle plan = 0;  ///< used only on GPUs
  };
  part& at(int device) { return parts_[static_cast<std::size_t>(device)]; }
  [[nodiscard]] std::size_t elements() const { return static_cast<std::size_t>(part_); }
  static std::size_t bytes(std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(number); }
  [[nodiscard]] timepoint last(int device) const { return team_.last(device); }
  static hpeShape tiles(std::int64_t n) {
    return grid(static_cast<std::uint32_t>(kernels::parts_of(n, kernels::tile_elements)));
  }

  /// Computes the sums (or the differences) that this device keeps; the kernel computes both, and the other half is
  /// discarded.
  void combine(int d, int distance, const number* own) {
    const bool upper = (d & distance) != 0;
    kernels::fft_butterfly<float> p{};
    p.a = upper ? at(d).brought : own;
    p.b = upper ? own : at(d).brought;
    p.lower = upper ? at(d).brought : at(d).data;
    p.upper = upper ? at(d).data : at(d).brought;
    p.end = part_;
    p.offset = d % distance * part_;
    p.root = 2 * distance * part_;
    p.sign = -1;
    team_.launch(d, butterfly_, tiles(part_), p);
  }

  void make_plan(int d) {
    const fft::cufft::library& cufft = fft::cufft::load();
    std::size_t work = 0;
    team_.enqueue(d, [&](void*) {
      long long length = part_;
      if (const auto status = cufft.create(&at(d).plan)) return status;
      if (const auto status = cufft.set_auto_allocation(at(d).plan, 0)) return status;
      return cufft.make_plan_many(at(d).plan, 1, &length, nullptr, 1, 0, nullptr, 1, 0, fft::cufft::c2c, 1, &work);
    });
    auto* const area = team_.take<std::byte>(d, work);
    team_.enqueue(d, [&](void*) { return cufft.set_work_area(at(d).plan, area); });
  }

  void transform(int d, const number* own) {
    if (on_gpus()) {
      const fft::cufft::library& cufft = fft::cufft::load();
      team_.enqueue(d, [&](void* stream) {
        if (const auto status = cufft.set_stream(at(d).plan, stream)) return status;
        return cufft.execute_c2c(at(d).plan, const_cast<number*>(own), at(d).data, -1);
      });
      return;
    }
    kernels::fft_local<float> p{};
    p.source = own;
    p.target = at(d).data;
    p.lengths[0] = 1;
    p.lengths[1] = part_;
    p.count = p.per_tile = 1;
    p.sign = -1;
    p.effort = kernels::fft_effort::measure;
    p.threads = static_cast<std::int32_t>(team_.units());
    team_.launch(d, transform_, grid(1), p);
  }

  void put_in_order() {
    const std::int64_t each = part_ / team_.devices();
    std::vector<transfer> transfers;
    for (int d = 0; d < team_.devices(); ++d)
      for (int from = 0; from < team_.devices(); ++from)
        transfers.push_back(
            {from, d, at(from).data + d * each, at(d).brought + from * each, bytes(each), last(from), last(d)});
    team_.exchange(transfers);
    for (int d = 0; d < team_.devices(); ++d)
      team_.launch(d, interleave_, tiles(part_),
                   kernels::fft_interleave<float>{at(d).brought, at(d).data, each, 0, part_,
                                                  std::countr_zero(static_cast<unsigned>(team_.devices()))});
  }

  const std::int64_t part_;
  device::kernel_id butterfly_, interleave_, transform_{};
  std::vector<part> parts_;
};

/// Wraps a reference of bench/libraries/fft_peers.h, which returns no results to compare.
class other_peer final : public program {
 public:
  explicit other_peer(std::unique_ptr<peer> it) : it_(std::move(it)) {}
  void run() override { it_->run(1); }
  [[nodiscard]] std::vector<double> probe() override { return {}; }

 private:
  std::unique_ptr<peer> it_;
};

std::unique_ptr<program> unless_null(std::unique_ptr<peer> it) {
  if (it == nullptr) return nullptr;
  return std::make_unique<other_peer>(std::move(it));
}

std::string why_not_here() {
  if (on_gpus() || std::filesystem::exists(modules::path_of("libhpe-fft-fftw.so"))) return "";
  return "hpe was built without FFTW, which computes the transforms on soft devices";
}

}  // namespace

workload fft_workload(fft::form how) {
  return {"fft",
          std::to_string(length()) + " complex numbers",
          1e-3,
          [how](int devices) -> std::unique_ptr<program> { return std::make_unique<through_hpe>(devices, how); },
          [](int devices) -> std::unique_ptr<hand_written> { return std::make_unique<written_by_hand>(devices); },
          "FFTW",
          [](unsigned threads) { return unless_null(make_fftw({.length = length()}, static_cast<int>(threads))); },
          why_not_here()};
}

}  // namespace hpe::bench

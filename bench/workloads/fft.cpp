// One transform in single precision. By hand, as the FFT of the thesis: pairs of devices swap their parts at each of
// log2 W steps, then each transforms its part, and all exchange pieces to put the elements in order. For powers of two
// of devices.

#include "apps/fft/fft.h"

#include <bit>
#include <filesystem>

#include "apps/fft/modules.h"
#include "bench/fft_peers.h"
#include "bench/workloads/program.h"

namespace hpe::bench {

namespace {

using number = kernels::complex_number<float>;

std::int64_t length() { return std::int64_t{1} << (device_info(0).kind == HPE_DEVICE_CUDA ? 26 : 18); }

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
  explicit through_hpe(int devices)
      : plan_({.length = length()}, {.devices = devices}), in_(size(), where(devices)), out_(size(), where(devices)) {
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
  static placement where(int devices) {
    std::vector<int> list;
    for (int d = 0; d < devices; ++d) list.push_back(d);
    return devices == 1 ? on_device(0) : block_distribution(list);
  }
  fft::plan<float> plan_;
  array<std::complex<float>> in_, out_;
};

class written_by_hand final : public on_team {
 public:
  explicit written_by_hand(int devices)
      : on_team(devices, 4 * bytes(length() / devices)),
        part_(length() / devices),
        butterfly_(team_.find(module_of("libhpe-fft-kernels.so"), "fft_butterfly_f32")),
        interleave_(team_.find(module_of("libhpe-fft-kernels.so"), "fft_interleave_f32")),
        transform_(team_.find(module_of("libhpe-fft-fftw.so"), "fft_local_f32")) {
    for (int d = 0; d < devices; ++d) {
      parts_.push_back(
          {team_.take<number>(d, elements()), team_.take<number>(d, elements()), team_.take<number>(d, elements())});
      std::vector<number> x(elements());
      for (std::int64_t i = 0; i < part_; ++i) x[static_cast<std::size_t>(i)] = value_at(d * part_ + i);
      team_.put(d, parts_.back().given, x.data(), bytes(part_));
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
  };
  part& at(int device) { return parts_[static_cast<std::size_t>(device)]; }
  [[nodiscard]] std::size_t elements() const { return static_cast<std::size_t>(part_); }
  static std::size_t bytes(std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(number); }
  [[nodiscard]] timepoint last(int device) const { return team_.last(device); }
  static hpeShape tiles(std::int64_t n) {
    return grid(static_cast<std::uint32_t>(kernels::parts_of(n, kernels::tile_elements)));
  }

  /// This device's half of the sums and differences; the other half of what the kernel computes is thrown away.
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

  void transform(int d, const number* own) {
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
    std::vector<transfer> pieces;
    for (int d = 0; d < team_.devices(); ++d)
      for (int from = 0; from < team_.devices(); ++from)
        pieces.push_back(
            {from, d, at(from).data + d * each, at(d).brought + from * each, bytes(each), last(from), last(d)});
    team_.exchange(pieces);
    for (int d = 0; d < team_.devices(); ++d)
      team_.launch(d, interleave_, tiles(part_),
                   kernels::fft_interleave<float>{at(d).brought, at(d).data, each, 0, part_,
                                                  std::countr_zero(static_cast<unsigned>(team_.devices()))});
  }

  const std::int64_t part_;
  device::kernel_id butterfly_, interleave_, transform_;
  std::vector<part> parts_;
};

/// The peers of bench/fft_peers.h, whose results are theirs.
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

/// On GPUs, where cuFFT transforms: bench/fft_cuda.cu.
class in_cuda final : public hand_written {
 public:
  explicit in_cuda(int devices) : devices_(devices) {}
  [[nodiscard]] bool use(copy_scheme how, bool left_out) override {
    it_ = nullptr;  // its memory goes first
    if (left_out || how == copy_scheme::double_buffered) return false;
    it_ = make_by_hand(length(), devices_,
                       how == copy_scheme::naive    ? scheme::naive
                       : how == copy_scheme::pinned ? scheme::pinned
                                                    : scheme::peer);
    return it_ != nullptr;
  }
  void run() override { it_->run(1); }
  [[nodiscard]] std::vector<double> probe() override { return {}; }

 private:
  int devices_;
  std::unique_ptr<peer> it_;
};

std::unique_ptr<hand_written> make_by_hand_anywhere(int devices) {
  if (device_info(0).kind == HPE_DEVICE_SOFT) return std::make_unique<written_by_hand>(devices);
  return std::make_unique<in_cuda>(devices);
}

std::string why_not_here() {
  const bool soft = device_info(0).kind == HPE_DEVICE_SOFT;
  if (!soft || std::filesystem::exists(module_of("libhpe-fft-fftw.so"))) return "";
  return "hpe was built without FFTW, which transforms on soft devices";
}

}  // namespace

workload fft_workload() {
  return {"fft",
          std::to_string(length()) + " complex numbers",
          1e-3,
          [](int devices) -> std::unique_ptr<program> { return std::make_unique<through_hpe>(devices); },
          make_by_hand_anywhere,
          "FFTW",
          [](unsigned threads) { return unless_null(make_fftw({.length = length()}, static_cast<int>(threads))); },
          why_not_here()};
}

}  // namespace hpe::bench

// The form `exchange`, like the FFT of the thesis (J. Cabezas, 2015, section 5.5: "data must be exchanged between
// different pairs of GPUs at each step"). The array is divided among W devices, where W is a power of two that divides
// the length. At each of log2 W steps, radix-2 butterflies (decimation in frequency) combine the parts in pairs; each
// device of a pair computes half of the butterflies, and reads and writes the part of the other device through the
// shared pointer. Then each device transforms its part. Part d then holds the elements X[W k + r], where r is d with
// its bits in reverse order. A last pass brings all elements into natural order.

#include "apps/fft/fft_modules.h"
#include "apps/fft/method.h"

namespace hpe::fft {

namespace {

template <class T>
class exchange_method final : public method<T> {
 public:
  explicit exchange_method(const circumstances& c)
      : devices_(c.made.devices),
        part_(c.what.length / devices_),
        transforms_(make_local_transforms<T>(c)),
        parts_(static_cast<std::size_t>(c.what.length), block_distribution(first_devices(devices_))) {
    while (1 << bits_ < devices_) ++bits_;
  }

  void run(int sign, const number<T>* in, number<T>* out) override {
    const number<T>* source = in;
    for (int distance = devices_ / 2; distance > 0; distance /= 2, source = out)
      for (int d = 0; d < devices_; ++d) combine(d, distance, sign, source, out);
    for (int d = 0; d < devices_; ++d)
      transforms_->run(d, {{1, part_}, 1}, sign, out + d * part_, parts_.data() + d * part_);
    const std::int64_t length = devices_ * part_;
    for (int d = 0; d < devices_; ++d) {
      const range mine = part_of(length, d, devices_);
      launch_on(d, kernels_.interleave, tiles_for(mine.size()),
                {parts_.data(), out, part_, mine.begin, mine.end, bits_}, hpe::in(parts_),
                written(out + mine.begin, mine.size(), false));
    }
  }

  [[nodiscard]] std::string explain() const override {
    return std::to_string(devices_) + " parts of " + std::to_string(part_) + ", pairs exchanged " +
           std::to_string(bits_) + (bits_ == 1 ? " time" : " times");
  }

 private:
  /// Queues device d's half of the butterflies between its own part and the part of its partner.
  void combine(int d, int distance, int sign, const number<T>* source, number<T>* target) {
    const bool low = (d & distance) == 0;
    const int lower = low ? d : d - distance, upper = lower + distance;
    const range mine = part_of(part_, low ? 0 : 1, 2);
    if (mine.size() == 0) return;
    kernels::fft_butterfly<T> p{};
    p.a = source + lower * part_;
    p.b = source + upper * part_;
    p.lower = target + lower * part_;
    p.upper = target + upper * part_;
    p.begin = mine.begin;
    p.end = mine.end;
    p.offset = lower % distance * part_;
    p.root = 2 * distance * part_;
    p.sign = sign;
    const bool in_place = source == target;
    const hpeAccess writes_lower = written(p.lower + mine.begin, mine.size(), in_place);
    const hpeAccess writes_upper = written(p.upper + mine.begin, mine.size(), in_place);
    if (in_place)
      launch_on(d, kernels_.butterfly, tiles_for(mine.size()), p, writes_lower, writes_upper);
    else
      launch_on(d, kernels_.butterfly, tiles_for(mine.size()), p, read(p.a + mine.begin, mine.size()),
                read(p.b + mine.begin, mine.size()), writes_lower, writes_upper);
  }

  int devices_;
  std::int64_t part_;
  std::int32_t bits_ = 0;
  kernel_set<T> kernels_;
  std::unique_ptr<local_transforms<T>> transforms_;
  array<number<T>> parts_;
};

}  // namespace

template <class T>
std::unique_ptr<method<T>> make_exchange(const circumstances& c) {
  return std::make_unique<exchange_method<T>>(c);
}
template std::unique_ptr<method<float>> make_exchange(const circumstances&);
template std::unique_ptr<method<double>> make_exchange(const circumstances&);

}  // namespace hpe::fft

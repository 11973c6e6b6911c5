// The form `local`: each device transforms some arrays of the batch.

#include "apps/fft/local.h"

#include "apps/fft/method.h"

namespace hpe::fft {

namespace {

template <class T>
class local_method final : public method<T> {
 public:
  explicit local_method(const circumstances& c) : c_(c), transforms_(make_local_transforms<T>(c)) {}

  void run(int sign, const number<T>* in, number<T>* out) override {
    std::int64_t at = 0;
    for (int d = 0; d < c_.made.devices; ++d) {
      const shape what = mine(d);
      if (what.count > 0) transforms_->run(d, what, sign, in + at, out + at);
      at += what.elements();
    }
  }

  [[nodiscard]] std::string explain() const override {
    return c_.what.batch == 1 ? "the first device transforms all of it"
                              : "each device transforms whole arrays of the batch";
  }

 private:
  [[nodiscard]] shape mine(int device) const {
    return {{c_.what.rows, c_.what.length}, part_of(c_.what.batch, device, c_.made.devices).size()};
  }

  circumstances c_;
  std::unique_ptr<local_transforms<T>> transforms_;
};

}  // namespace

template <class T>
std::unique_ptr<method<T>> make_local(const circumstances& c) {
  return std::make_unique<local_method<T>>(c);
}
template std::unique_ptr<method<float>> make_local(const circumstances&);
template std::unique_ptr<method<double>> make_local(const circumstances&);

}  // namespace hpe::fft

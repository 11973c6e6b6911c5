#include <cstdint>

#include "apps/fft/method.h"
#include "apps/fft/rates.h"

namespace hpe::fft {

namespace {

template <class T>
std::unique_ptr<method<T>> make(const circumstances& c) {
  switch (c.made.how) {
    case form::exchange: return make_exchange<T>(c);
    case form::transpose: return two_passes_possible(c) ? make_two_pass<T>(c) : make_transpose<T>(c);
    case form::convolution: return make_convolution<T>(c);
    default: return make_local<T>(c);
  }
}

circumstances look_around(const problem& what, const settings& wish, std::int64_t element_bytes) {
  const int there = device_count();
  if (wish.devices < 0 || wish.devices > there)
    throw error(HPE_ERROR_INVALID_ARGUMENT, "Fourier transform on " + std::to_string(wish.devices) +
                                                " devices: there are " + std::to_string(there));
  const int used = wish.devices == 0 ? there : wish.devices;
  const bool soft = device_info(0).kind == HPE_DEVICE_SOFT;
  machine on{used, soft, element_bytes};
  choice made = choose(what, wish, on);
  if (!soft && wish.how == form::automatic && made.how != form::local) {
    const copy_rates rates = measured_rates();
    on.link = rates.link;
    on.memory = rates.memory;
    made = choose(what, wish, on);
  }
  return {what, wish, made, soft};
}

void check_arrays(const void* in, const void* out, std::size_t bytes) {
  for (const void* pointer : {in, out}) {
    const hpePointerInfo into = pointer_info(pointer);
    if (into.kind == HPE_MEMORY_ORDINARY)
      throw error(HPE_ERROR_NOT_A_REGION,
                  "Fourier transform: input and output must be in memory of hpe, for example in an hpe::array");
    const auto left =
        static_cast<std::size_t>(static_cast<char*>(into.base) + into.size - static_cast<const char*>(pointer));
    if (left < bytes)
      throw error(HPE_ERROR_INVALID_ARGUMENT, "Fourier transform of " + std::to_string(bytes) +
                                                  " bytes: the allocation ends after " + std::to_string(left) +
                                                  " bytes");
  }
  const auto a = reinterpret_cast<std::uintptr_t>(in), b = reinterpret_cast<std::uintptr_t>(out);
  if (a != b && a < b + bytes && b < a + bytes)
    throw error(HPE_ERROR_INVALID_ARGUMENT,
                "Fourier transform: input and output overlap in part; they must be identical or disjoint");
}

}  // namespace

template <class T>
class plan<T>::parts {
 public:
  parts(const problem& what, const settings& wish)
      : around_(look_around(what, wish, sizeof(number<T>))), method_(make<T>(around_)) {}

  void run(int sign, const std::complex<T>* in, std::complex<T>* out) {
    check_arrays(in, out, static_cast<std::size_t>(around_.what.elements()) * sizeof(number<T>));
    const auto* from = reinterpret_cast<const number<T>*>(in);
    auto* to = reinterpret_cast<number<T>*>(out);
    if (around_.made.how == form::local) return method_->run(sign, from, to);
    const std::int64_t one = around_.what.rows * around_.what.length;
    for (std::int64_t b = 0; b < around_.what.batch; ++b) method_->run(sign, from + b * one, to + b * one);
  }

  [[nodiscard]] const circumstances& around() const { return around_; }
  [[nodiscard]] const method<T>& how() const { return *method_; }

 private:
  circumstances around_;
  std::unique_ptr<method<T>> method_;
};

template <class T>
plan<T>::plan(const problem& what, const settings& wish) : parts_(std::make_unique<parts>(what, wish)) {}
template <class T>
plan<T>::plan(plan&&) noexcept = default;
template <class T>
plan<T>& plan<T>::operator=(plan&&) noexcept = default;
template <class T>
plan<T>::~plan() = default;

template <class T>
void plan<T>::forward(const std::complex<T>* in, std::complex<T>* out) {
  parts_->run(forward_sign, in, out);
}

template <class T>
void plan<T>::inverse(const std::complex<T>* in, std::complex<T>* out) {
  parts_->run(inverse_sign, in, out);
}

template <class T>
std::int64_t plan<T>::position(std::int64_t k) const {
  return parts_->how().position(k);
}

template <class T>
form plan<T>::chosen() const {
  return parts_->around().made.how;
}

template <class T>
int plan<T>::devices() const {
  return parts_->around().made.devices;
}

template <class T>
placement plan<T>::where() const {
  return devices() == 1 ? on_device(0) : placement(block_distribution(first_devices(devices())));
}

template <class T>
std::string plan<T>::explain() const {
  const choice& made = parts_->around().made;
  return std::string(name_of(made.how)) + " on " + std::to_string(made.devices) +
         (made.devices == 1 ? " device: " : " devices: ") + parts_->how().explain();
}

template class plan<float>;
template class plan<double>;

}  // namespace hpe::fft

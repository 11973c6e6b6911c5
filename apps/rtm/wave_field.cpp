// If the exchange is `copied`, the array of device d holds the planes [first(d) - radius, last(d) + radius). After
// clear(), the planes beyond the grid stay zero, and only send() writes the other planes beyond the slab.
#include "apps/rtm/wave_field.h"

namespace hpe::rtm {

namespace {

std::vector<int> devices_from(int first, int count) {
  std::vector<int> all;
  for (int d = 0; d < count; ++d) all.push_back(first + d);
  return all;
}

template <class T>
void copy_planes(std::span<T> to, std::span<const T> from) {
  copy(to.data(), from.data(), from.size_bytes());
}

}  // namespace

template <class T>
wave_field<T>::wave_field(const kernels::field_layout& layout, const std::vector<std::int64_t>& planes, exchange how,
                          int first_device)
    : layout_(layout), planes_(planes), first_device_(first_device) {
  bool thick = true;
  for (int d = 0; d < devices(); ++d) thick = thick && last(d) - first(d) >= layout_.radius;
  if (how == exchange::direct || !thick) {
    whole_ =
        array<T>(static_cast<std::size_t>(layout_.size()), block_distribution(devices_from(first_device_, devices())));
    return;
  }
  for (int d = 0; d < devices(); ++d)
    parts_.emplace_back(static_cast<std::size_t>((last(d) - first(d) + 2 * layout_.radius) * layout_.plane),
                        on_device(first_device_ + d));
}

template <class T>
void wave_field<T>::clear() const {
  for (const array<T>& part : parts_) fill(part.data(), 0, part.size() * sizeof(T));
  if (parts_.empty()) fill(whole_.data(), 0, whole_.size() * sizeof(T));
}

template <class T>
T* wave_field<T>::seen_by(int d) const {
  return parts_.empty() ? whole_.data() : parts_[static_cast<std::size_t>(d)].data() - first(d) * layout_.plane;
}

template <class T>
std::span<T> wave_field<T>::planes(int d, std::int64_t x0, std::int64_t x1) const {
  const array<T>& all = parts_.empty() ? whole_ : parts_[static_cast<std::size_t>(d)];
  const std::int64_t begin = x0 + layout_.radius - (parts_.empty() ? 0 : first(d));
  return all.subspan(static_cast<std::size_t>(begin * layout_.plane),
                     static_cast<std::size_t>((x1 - x0) * layout_.plane));
}

template <class T>
void wave_field<T>::send() const {
  if (parts_.empty()) return;
  for (int d = 0; d + 1 < devices(); ++d) {
    const std::int64_t x = last(d);
    copy_planes<T>(planes(d + 1, x - layout_.radius, x), planes(d, x - layout_.radius, x));
    copy_planes<T>(planes(d, x, x + layout_.radius), planes(d + 1, x, x + layout_.radius));
  }
}

template <class T>
const array<T>& wave_field<T>::whole() {
  if (parts_.empty()) return whole_;
  if (whole_.size() == 0)
    whole_ =
        array<T>(static_cast<std::size_t>(layout_.size()), block_distribution(devices_from(first_device_, devices())));
  for (int d = 0; d < devices(); ++d) {
    const std::int64_t x0 = d == 0 ? -layout_.radius : first(d);
    const std::int64_t x1 = d + 1 == devices() ? layout_.nx + layout_.radius : last(d);
    copy_planes<T>(whole_.subspan(static_cast<std::size_t>((x0 + layout_.radius) * layout_.plane),
                                  static_cast<std::size_t>((x1 - x0) * layout_.plane)),
                   planes(d, x0, x1));
  }
  return whole_;
}

template class wave_field<float>;
template class wave_field<double>;

}  // namespace hpe::rtm

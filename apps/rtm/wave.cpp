#include "apps/rtm/wave.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

namespace hpe::rtm {

namespace {

template <class T>
std::string kernel_name(const std::string& name) {
  return name + (std::is_same_v<T, float> ? "_f32" : "_f64");
}

std::size_t cells(const kernels::window& w) { return static_cast<std::size_t>(w.nx * w.ny * w.nz); }

/// Returns the bytes of the largest part of a kept field on one device.
template <class T>
std::size_t largest_part(const grid& g, const decomposition& parts, std::int64_t bits) {
  std::size_t most = 0;
  for (int d = 0; d < parts.devices(); ++d) most = std::max(most, kept_bytes<T>(model_part(g, parts, d), bits));
  return round_up(most, sector);
}

/// Returns the ranges of all slabs. With launch_order::rims_first, the outer planes that a neighbour reads are ranges
/// of their own, which come first, if the slab has more than 4 `rim` planes.
std::vector<plane_range> ranges_of(const decomposition& parts, std::int64_t rim, launch_order order,
                                   neighbours beyond) {
  std::vector<plane_range> rims, inner;
  for (int d = 0; d < parts.devices(); ++d) {
    std::int64_t x0 = parts.first(d), x1 = parts.last(d);
    if (order == launch_order::rims_first && x1 - x0 > 4 * rim) {
      if (d > 0 || beyond.before) rims.push_back({d, x0, x0 + rim}), x0 += rim;
      if (d + 1 < parts.devices() || beyond.after) rims.push_back({d, x1 - rim, x1}), x1 -= rim;
    }
    inner.push_back({d, x0, x1});
  }
  rims.insert(rims.end(), inner.begin(), inner.end());
  return rims;
}

/// Returns the planes [x0, x1) of one device, cut into tiles that suit the kind of the device.
template <class T>
kernels::slab cut(const grid& g, int device, std::int64_t x0, std::int64_t x1) {
  const hpeDeviceInfo it = device_info(device);
  const kernels::section across = kernels::whole_section(g.layout);
  if (it.kind == HPE_DEVICE_SOFT) return kernels::make_slab(g.layout, across, x0, x1, sizeof(T));
  return kernels::make_cuda_slab(across, g.ends, x0, x1, it.compute_units);
}

}  // namespace

kernels::window model_part(const grid& g, const decomposition& parts, int d) {
  const kernels::window& m = g.model;
  const std::int64_t from = std::clamp(m.x, parts.first(d), parts.last(d));
  const std::int64_t to = std::clamp(m.x + m.nx, parts.first(d), parts.last(d));
  return {from, m.y, m.z, to - from, m.ny, m.nz};
}

template <class T>
std::size_t kept_bytes(const kernels::window& w, std::int64_t bits) {
  if (bits == 0) return cells(w) * sizeof(T);
  return static_cast<std::size_t>(w.nx * w.ny * kernels::compressed_row<T>(w.nz, bits));
}

std::vector<int> decomposition::list() const {
  std::vector<int> all(static_cast<std::size_t>(devices()));
  for (int d = 0; d < devices(); ++d) all[static_cast<std::size_t>(d)] = device(d);
  return all;
}

void decomposition::synchronize() const {
  for (const int d : list()) hpe::synchronize(d);
}

decomposition decompose(const kernels::field_layout& layout, int devices, std::size_t element_size, launch_order order,
                        neighbours beyond, int first_device) {
  const auto granule = static_cast<std::int64_t>(granularity());
  const std::int64_t plane = layout.plane * static_cast<std::int64_t>(element_size);
  const std::int64_t granules = (layout.size() * static_cast<std::int64_t>(element_size) + granule - 1) / granule;
  const std::int64_t tolerated = layout.nx / devices / 50;
  decomposition parts;
  parts.first_device = first_device;
  for (int d = 0; d <= devices; ++d) {
    const std::int64_t even = layout.nx * d / devices;
    const std::int64_t placed = granules * d / devices * granule / plane - layout.radius;
    const bool inner = d > 0 && d < devices;
    parts.planes.push_back(inner && std::abs(placed - even) <= tolerated ? placed : even);
  }
  parts.ranges = ranges_of(parts, layout.radius, order, beyond);
  return parts;
}

template <class T>
traces<T>::traces(const decomposition& parts, const std::vector<kernels::point>& points, std::int64_t steps)
    : steps_(steps), count_(points.size()), shares_(parts.ranges.size()) {
  for (std::size_t n = 0; n < shares_.size(); ++n) {
    const plane_range& mine = parts.ranges[n];
    share& s = shares_[n];
    for (std::size_t i = 0; i < points.size(); ++i)
      if (points[i].x >= mine.x0 && points[i].x < mine.x1) s.numbers.push_back(i);
    if (s.numbers.empty()) continue;
    s.points = array<kernels::point>(s.count(), on_device(parts.device(mine.device)));
    for (std::size_t i = 0; i < s.count(); ++i) s.points[i] = points[s.numbers[i]];
    s.samples = array<T>(s.count() * static_cast<std::size_t>(steps), on_device(parts.device(mine.device)));
    std::fill(s.samples.begin(), s.samples.end(), T(0));
  }
}

template <class T>
std::vector<T> traces<T>::read() const {
  std::vector<T> all(count_ * static_cast<std::size_t>(steps_));
  for (const share& s : shares_)
    for (std::int64_t t = 0; t < steps_ && s.count() > 0; ++t) {
      const std::span<const T> row = s.row(t);
      for (std::size_t i = 0; i < row.size(); ++i) all[static_cast<std::size_t>(t) * count_ + s.numbers[i]] = row[i];
    }
  return all;
}

template <class T>
void traces<T>::write(const std::vector<T>& samples) {
  for (const share& s : shares_)
    for (std::int64_t t = 0; t < steps_ && s.count() > 0; ++t) {
      const std::span<T> row = s.row(t);
      for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = samples[static_cast<std::size_t>(t) * count_ + s.numbers[i]];
    }
}

template <class T>
medium<T>::medium(const grid& g, const decomposition& parts, const volume& velocity, double time_step,
                  const volume* density)
    : speed(static_cast<std::size_t>(g.layout.size()), block_distribution(parts.list())) {
  std::fill(speed.begin(), speed.end(), T(0));
  const kernels::window& m = g.whole;
  for (std::int64_t x = 0; x < g.layout.nx; ++x)
    for (std::int64_t y = 0; y < g.layout.ny; ++y) {
      T* row = speed.data() + g.layout.index(x, y, 0);
      const float* c = &velocity.values[velocity.index(std::clamp<std::int64_t>(x + g.first_plane - m.x, 0, m.nx - 1),
                                                       std::clamp<std::int64_t>(y - m.y, 0, m.ny - 1), 0)];
      const double side = g.taper_x[static_cast<std::size_t>(x)] * g.taper_y[static_cast<std::size_t>(y)];
      for (std::int64_t z = 0; z < g.layout.nz; ++z) {
        const double way = time_step * c[std::clamp<std::int64_t>(z - m.z, 0, m.nz - 1)];
        row[z] = static_cast<T>(side * g.taper_z[static_cast<std::size_t>(z)] * way * way);
      }
    }
  if (density == nullptr) return;
  potential = array<T>(speed.size(), block_distribution(parts.list()));
  std::fill(potential.begin(), potential.end(), T(0));
  const density_potential of(*density, g.ends, g.free_surface, 2 * g.layout.radius);
  for (std::int64_t x = 0; x < g.layout.nx; ++x)
    for (std::int64_t y = 0; y < g.layout.ny; ++y)
      for (std::int64_t z = 0; z < g.layout.nz; ++z)
        potential[static_cast<std::size_t>(g.layout.index(x, y, z))] =
            static_cast<T>(of.at(x + g.first_plane - m.x, y - m.y, z - m.z));
}

template <class T>
std::size_t kept_fields<T>::bytes_per_device(const grid& g, const decomposition& parts, std::int64_t count,
                                             std::int64_t bits) {
  return round_up(largest_part<T>(g, parts, bits) * static_cast<std::size_t>(count), granularity());
}

template <class T>
kept_fields<T>::kept_fields(const grid& g, const decomposition& parts, std::int64_t count, std::int64_t bits)
    : bits_(bits),
      part_(bytes_per_device(g, parts, count, bits)),
      fields_(part_ * static_cast<std::size_t>(parts.devices()), block_distribution(parts.list())) {
  for (int d = 0; d < parts.devices(); ++d) windows_.push_back(model_part(g, parts, d));
}

template <class T>
std::span<std::uint8_t> kept_fields<T>::bytes(int d, std::int64_t number) const {
  return room(d, number).first(kept_bytes<T>(window(d), bits_));
}

template <class T>
std::span<std::uint8_t> kept_fields<T>::room(int d, std::int64_t number) const {
  const std::size_t size = round_up(kept_bytes<T>(window(d), bits_), sector);
  return fields_.subspan(part_ * static_cast<std::size_t>(d) + static_cast<std::size_t>(number) * size, size);
}

template <class T>
std::span<T> kept_fields<T>::on(int d, std::int64_t number) const {
  const std::span<std::uint8_t> all = bytes(d, number);
  return {reinterpret_cast<T*>(all.data()), all.size() / sizeof(T)};
}

template <class T>
stack<T>::stack(const grid& g, const decomposition& parts)
    : image(cells(g.model), block_distribution(parts.list())),
      illumination(cells(g.model), block_distribution(parts.list())) {
  clear();
}

template <class T>
void stack<T>::clear() const {
  fill(image.data(), 0, image.size() * sizeof(T));
  fill(illumination.data(), 0, illumination.size() * sizeof(T));
}

template <class T>
propagator<T>::propagator(const grid& g, const decomposition& parts, exchange how,
                          std::unique_ptr<halo_exchange> outside)
    : grid_(g),
      parts_(parts),
      now_(g.layout, parts.planes, how, parts.first_device),
      next_(g.layout, parts.planes, how, parts.first_device),
      step_(module(), kernel_name<T>("wave_step_" + std::to_string(2 * g.layout.radius)).c_str()),
      absorb_(module(), kernel_name<T>("absorb").c_str()),
      keep_(module(), kernel_name<T>("keep").c_str()),
      correlate_(module(), kernel_name<T>("correlate").c_str()),
      keep_compressed_(module(), kernel_name<T>("keep_compressed").c_str()),
      correlate_compressed_(module(), kernel_name<T>("correlate_compressed").c_str()),
      outside_(std::move(outside)) {
  std::vector<double> all;
  for (const auto* axis : {&g.taper_x, &g.taper_y, &g.taper_z}) all.insert(all.end(), axis->begin(), axis->end());
  for (int d = 0; d < parts.devices(); ++d) {
    slabs_.push_back(cut<T>(g, parts.device(d), parts.first(d), parts.last(d)));
    tapers_.emplace_back(all.size(), on_device(parts.device(d)));
    std::transform(all.begin(), all.end(), tapers_.back().begin(), [](double v) { return static_cast<T>(v); });
    if (!g.rates.empty()) layers_.push_back(make_layers(d));
  }
  for (const plane_range& it : parts.ranges) cuts_.push_back(cut<T>(g, parts.device(it.device), it.x0, it.x1));
  reset();
}

template <class T>
std::span<T> propagator<T>::planes(const array<T>& a, std::int64_t x0, std::int64_t x1) const {
  const std::int64_t plane = grid_.layout.plane;
  return a.subspan(static_cast<std::size_t>((x0 + grid_.layout.radius) * plane),
                   static_cast<std::size_t>((x1 - x0) * plane));
}

template <class T>
typename propagator<T>::layer_part propagator<T>::make_layers(int device) const {
  kernels::absorb<T> p{};
  p.layout = grid_.layout;
  p.x0 = parts_.first(device);
  p.x1 = parts_.last(device);
  const sides& h = grid_.spacing;
  const double per_area[] = {1 / (h.x * h.x), 1 / (h.y * h.y), 1 / (h.z * h.z)};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    p.ends[axis] = grid_.matched[axis];
    p.set_weights(static_cast<int>(axis), per_area[axis]);
  }
  const auto on = on_device(parts_.device(device));
  layer_part part{array<T>(static_cast<std::size_t>(p.memory_size()), on), array<T>(grid_.rates.size(), on), p, {}};
  std::transform(grid_.rates.begin(), grid_.rates.end(), part.rates.begin(),
                 [](double v) { return static_cast<T>(v); });
  part.parameters.memory = part.memory.data();
  part.parameters.rates = part.rates.data();
  part.shape = kernels::absorb_shape(p, device_info(parts_.device(device)).kind == HPE_DEVICE_CUDA);
  return part;
}

template <class T>
void propagator<T>::reset() {
  if (outside_ != nullptr) outside_->finish();
  now_.clear();
  next_.clear();
  for (const layer_part& it : layers_)
    if (it.memory.size() > 0) fill(it.memory.data(), 0, it.memory.size() * sizeof(T));
}

template <class T>
void propagator<T>::absorb(const medium<T>& m) {
  const std::int64_t radius = grid_.layout.radius;
  for (int d = 0; d < static_cast<int>(layers_.size()); ++d) {
    layer_part& it = layers_[static_cast<std::size_t>(d)];
    if (it.memory.size() == 0) continue;
    kernels::absorb<T>& p = it.parameters;
    p.next = next_.seen_by(d);
    p.now = now_.seen_by(d);
    p.speed = m.speed.data();
    launch_on(parts_.device(d), absorb_, it.shape, p, in(now_.planes(d, p.x0 - radius, p.x1 + radius)),
              inout(next_.planes(d, p.x0, p.x1)), in(planes(m.speed, p.x0, p.x1)), inout(it.memory), in(it.rates));
  }
}

template <class T>
void propagator<T>::step(const medium<T>& m, const traces<T>* injected, const traces<T>* recorded, std::int64_t t) {
  if (outside_ != nullptr) outside_->finish();
  absorb(m);
  const std::int64_t radius = grid_.layout.radius;
  const sides& h = grid_.spacing;
  kernels::wave_step<T> p{};
  p.speed = m.speed.data();
  p.potential = m.potential.data();
  p.layout = grid_.layout;
  p.across = kernels::whole_section(p.layout);
  p.ends = grid_.ends;
  p.set_weights(1 / (h.x * h.x), 1 / (h.y * h.y), 1 / (h.z * h.z));
  p.free_surface = grid_.free_surface;

  for (std::size_t n = 0; n < parts_.ranges.size(); ++n) {
    const int d = parts_.ranges[n].device;
    const kernels::slab& slab = cuts_[n];
    const array<T>& tapers = tapers_[static_cast<std::size_t>(d)];
    std::span<kernels::point> sources, receivers;
    std::span<T> amplitude, record;
    if (injected != nullptr && injected->of(n).count() > 0) {
      sources = injected->of(n).points.span();
      amplitude = injected->of(n).row(t);
    }
    if (recorded != nullptr && recorded->of(n).count() > 0) {
      receivers = recorded->of(n).points.span();
      record = recorded->of(n).row(t);
    }
    std::span<T> potential;
    if (m.potential.size() > 0) potential = planes(m.potential, slab.x0, slab.x1);
    p.next = next_.seen_by(d);
    p.now = now_.seen_by(d);
    p.part = slab;
    p.taper_x = tapers.data();
    p.taper_y = p.taper_x + grid_.taper_x.size();
    p.taper_z = p.taper_y + grid_.taper_y.size();
    p.injected = sources.data();
    p.amplitude = amplitude.data();
    p.injected_count = static_cast<std::int64_t>(sources.size());
    p.recorded = receivers.data();
    p.record = record.data();
    p.recorded_count = static_cast<std::int64_t>(receivers.size());
    launch_on(parts_.device(d), step_, kernels::step_shape(slab, p.across), p,
              in(now_.planes(d, slab.x0 - radius, slab.x1 + radius)), inout(next_.planes(d, slab.x0, slab.x1)),
              in(planes(m.speed, slab.x0, slab.x1)), in(potential), in(tapers), in(sources), in(amplitude),
              in(receivers), out(record));
  }
  next_.send();
  begin_exchange();
  std::swap(now_, next_);
}

template <class T>
void propagator<T>::begin_exchange() {
  if (outside_ == nullptr) return;
  if constexpr (std::is_same_v<T, float>) {
    const std::int64_t radius = grid_.layout.radius, end = grid_.layout.nx;
    const int last = parts_.devices() - 1;
    outside_->begin(next_.planes(0, 0, radius), next_.planes(0, -radius, 0), next_.planes(last, end - radius, end),
                    next_.planes(last, end, end + radius));
  }
}

template <class T>
void propagator<T>::keep(const kept_fields<T>& to, std::int64_t number) {
  for (int d = 0; d < parts_.devices(); ++d) {
    const kernels::slab& slab = slabs_[static_cast<std::size_t>(d)];
    const kernels::window w = to.window(d);
    if (w.nx == 0) continue;
    const std::span<T> field = now_.planes(d, slab.x0, slab.x1);
    if (to.bits() != 0) {
      const std::span<std::uint8_t> kept = to.bytes(d, number);
      const kernels::keep_compressed<T> p{kept.data(), now_.seen_by(d), grid_.layout, slab, w, to.bits()};
      launch_on(parts_.device(d), keep_compressed_, kernels::window_shape(slab, w), p, out(kept), in(field));
    } else {
      const std::span<T> kept = to.on(d, number);
      const kernels::keep<T> p{kept.data(), now_.seen_by(d), grid_.layout, slab, w};
      launch_on(parts_.device(d), keep_, kernels::window_shape(slab, w), p, out(kept), in(field));
    }
  }
}

template <class T>
void propagator<T>::correlate(const kept_fields<T>& with, std::int64_t number, const stack<T>& onto) {
  for (int d = 0; d < parts_.devices(); ++d) {
    const kernels::slab& slab = slabs_[static_cast<std::size_t>(d)];
    const kernels::window w = with.window(d);
    if (w.nx == 0) continue;
    const auto first = static_cast<std::size_t>((w.x - grid_.model.x) * w.ny * w.nz);
    const std::span<T> image = onto.image.subspan(first, cells(w));
    const std::span<T> illumination = onto.illumination.subspan(first, cells(w));
    const std::span<T> field = now_.planes(d, slab.x0, slab.x1);
    if (with.bits() != 0) {
      const std::span<std::uint8_t> kept = with.bytes(d, number);
      const kernels::correlate_compressed<T> p{
          image.data(), illumination.data(), kept.data(), now_.seen_by(d), grid_.layout, slab, w, with.bits()};
      launch_on(parts_.device(d), correlate_compressed_, kernels::window_shape(slab, w), p, inout(image),
                inout(illumination), in(kept), in(field));
    } else {
      const std::span<T> kept = with.on(d, number);
      const kernels::correlate<T> p{
          image.data(), illumination.data(), kept.data(), now_.seen_by(d), grid_.layout, slab, w};
      launch_on(parts_.device(d), correlate_, kernels::window_shape(slab, w), p, inout(image), inout(illumination),
                in(kept), in(field));
    }
  }
}

template <class T>
std::vector<std::span<T>> propagator<T>::state(int d) const {
  std::vector<std::span<T>> all{now_.planes(d, parts_.first(d), parts_.last(d)),
                                next_.planes(d, parts_.first(d), parts_.last(d))};
  if (!layers_.empty()) all.push_back(layers_[static_cast<std::size_t>(d)].memory.span());
  return all;
}

template std::size_t kept_bytes<float>(const kernels::window&, std::int64_t);
template std::size_t kept_bytes<double>(const kernels::window&, std::int64_t);
template class traces<float>;
template class traces<double>;
template struct medium<float>;
template struct medium<double>;
template class kept_fields<float>;
template class kept_fields<double>;
template struct stack<float>;
template struct stack<double>;
template class propagator<float>;
template class propagator<double>;

}  // namespace hpe::rtm

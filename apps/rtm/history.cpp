// The method `boundary`: in cells without damping, a step from p(t) and p(t + 1) with the source's sample of step t
// gives p(t - 1). The stencil reads cells up to its radius outside the model. These cells are kept at each step of the
// forward pass and restored in the backward pass; cells further outside are damped, but steps inside the model never
// read them.
#include "apps/rtm/history.h"

#include <algorithm>
#include <utility>

#include "apps/rtm/keep/revolve.h"
#include "kernels/copy_boxes.h"

namespace hpe::rtm {

namespace {

std::size_t cells_of(const kernels::window& w) { return static_cast<std::size_t>(w.nx * w.ny * w.nz); }

/// Returns the bits of a cell in device memory: zfp compresses on the host, so fields on devices are then uncompressed.
std::int64_t bits_on_devices(const keeping& k) { return k.zfp ? 0 : k.bits; }

std::unique_ptr<codec> packing_of(const keeping& k, const kept_fields<float>& fields, int devices) {
  if (!k.zfp || k.bits == 0) return nullptr;
  std::vector<part_shape> shapes;
  for (int d = 0; d < devices; ++d) shapes.push_back({fields.window(d).nz, fields.window(d).ny, fields.window(d).nx});
  return make_zfp(std::move(shapes), k.bits);
}

/// The method `fields`: keeps every keep_every-th field, in the store that the settings name.
class kept_history final : public source_history {
 public:
  kept_history(const history_shape& shape, const keeping& k)
      : every_(shape.keep_every),
        ring_(shape.cells, shape.parts, slots_of(k.where, shape.fields(), bytes_of_field(shape, k).on_devices),
              bits_on_devices(k)) {
    const int devices = shape.parts.devices();
    slots memory(static_cast<std::size_t>(slots_of(k.where, shape.fields(), bytes_of_field(shape, k).on_devices)));
    for (std::size_t s = 0; s < memory.size(); ++s)
      for (int d = 0; d < devices; ++d) memory[s].push_back(ring_.room(d, static_cast<std::int64_t>(s)));
    store_ = make_store({k.where, shape.fields(), k.folder, packing_of(k, ring_, devices)}, std::move(memory));
  }

  void before_step(propagator<float>& forward, std::int64_t t) override {
    if (t % every_ != 0) return;
    forward.keep(ring_, store_->to_write(t / every_));
    store_->written(t / every_);
  }

  void turn(const propagator<float>& /*forward*/, const medium<float>& /*m*/,
            const traces<float>& /*source*/) override {}

  void correlate(propagator<float>& backward, std::int64_t t, const stack<float>& onto) override {
    if (t % every_ != 0) return;
    backward.correlate(ring_, store_->to_read(t / every_), onto);
    store_->was_read(t / every_);
  }

 private:
  const std::int64_t every_;
  const kept_fields<float> ring_;
  std::unique_ptr<field_store> store_;
};

/// A second propagator computes the source's field again during the backward pass.
class computed_history : public source_history {
 public:
  void turn(const propagator<float>& forward, const medium<float>& m, const traces<float>& source) override {
    medium_ = &m;
    source_ = &source;
    turned(forward);
  }

 protected:
  explicit computed_history(const history_shape& shape)
      : shape_(shape), again_(shape.cells, shape.parts), present_(shape.cells, shape.parts, 1) {}

  void step(std::int64_t t) { again_.step(*medium_, source_, nullptr, t); }

  void correlate_present(propagator<float>& backward, const stack<float>& onto) {
    again_.keep(present_, 0);
    backward.correlate(present_, 0, onto);
  }

  [[nodiscard]] int devices() const { return shape_.parts.devices(); }

  const history_shape shape_;
  propagator<float> again_;

 private:
  virtual void turned(const propagator<float>& forward) = 0;

  const kept_fields<float> present_;
  const medium<float>* medium_ = nullptr;
  const traces<float>* source_ = nullptr;
};

/// Returns the boxes of cells outside the model that the stencil reads from cells inside, clipped to the grid and to
/// planes [x0, x1).
std::vector<kernels::window> boxes_around(const grid& g, std::int64_t x0, std::int64_t x1) {
  const std::int64_t reach = g.layout.radius;
  const kernels::window& m = g.model;
  struct range {
    std::int64_t from, to;
  };
  const auto within = [](std::int64_t from, std::int64_t to, range limits) {
    return range{std::max(from, limits.from), std::min(to, limits.to)};
  };
  const range planes{x0, x1}, rows{0, g.layout.ny}, depths{0, g.layout.nz};
  const range x = within(m.x, m.x + m.nx, planes), y{m.y, m.y + m.ny}, z{m.z, m.z + m.nz};
  std::vector<kernels::window> boxes;
  const auto add = [&](range bx, range by, range bz) {
    if (bx.from < bx.to && by.from < by.to && bz.from < bz.to)
      boxes.push_back({bx.from, by.from, bz.from, bx.to - bx.from, by.to - by.from, bz.to - bz.from});
  };
  add(within(m.x - reach, m.x, planes), y, z);
  add(within(m.x + m.nx, m.x + m.nx + reach, planes), y, z);
  if (g.ends == kernels::y_ends::closed) {
    add(x, within(y.from - reach, y.from, rows), z);
    add(x, within(y.to, y.to + reach, rows), z);
  }
  add(x, y, within(z.from - reach, z.from, depths));
  add(x, y, within(z.to, z.to + reach, depths));
  return boxes;
}

std::size_t bytes_of_boxes(const std::vector<kernels::window>& boxes) {
  std::size_t all = 0;
  for (const kernels::window& w : boxes) all += cells_of(w) * sizeof(float);
  return round_up(all, sector);
}

class boundary_history final : public computed_history {
 public:
  boundary_history(const history_shape& shape, const keeping& k)
      : computed_history(shape), copy_(module(), "copy_boxes_f32") {
    slots memory(static_cast<std::size_t>(slots_of(k.where, shape.steps, bytes_of_boundary(shape).on_devices)));
    for (int d = 0; d < devices(); ++d) {
      boxes_.push_back(boxes_around(shape.cells, shape.parts.first(d), shape.parts.last(d)));
      const std::size_t bytes = bytes_of_boxes(boxes_.back());
      ring_.emplace_back(bytes * memory.size(), on_device(shape.parts.device(d)));
      for (std::size_t s = 0; s < memory.size(); ++s) memory[s].push_back(ring_.back().subspan(bytes * s, bytes));
    }
    slots_ = memory;
    store_ = make_store({k.where, shape.steps, k.folder}, std::move(memory));
  }

  void before_step(propagator<float>& forward, std::int64_t t) override {
    copy(forward, store_->to_write(t), false);
    store_->written(t);
  }

  void correlate(propagator<float>& backward, std::int64_t t, const stack<float>& onto) override {
    if (t % shape_.keep_every == 0) correlate_present(backward, onto);
    if (t == 0) return;
    step(t);
    copy(again_, store_->to_read(t - 1), true);
    store_->was_read(t - 1);
  }

 private:
  void turned(const propagator<float>& forward) override {
    for (int d = 0; d < devices(); ++d) {
      const std::vector<std::span<float>> from = forward.state(d), to = again_.state(d);
      for (std::size_t i = 0; i < to.size(); ++i) hpe::copy(to[i].data(), from[i].data(), to[i].size_bytes());
    }
    again_.turn();
    static_cast<void>(store_->to_read(shape_.steps - 1));  // the propagator already has this state
    store_->was_read(shape_.steps - 1);
  }

  /// Copies the cells around the model to a slot, or from the slot if `back` is set.
  void copy(propagator<float>& wave, std::int64_t slot, bool back) {
    for (int d = 0; d < devices(); ++d) {
      const std::vector<kernels::window>& boxes = boxes_[static_cast<std::size_t>(d)];
      if (boxes.empty()) continue;
      const std::span<std::uint8_t> kept = slots_[static_cast<std::size_t>(slot)][static_cast<std::size_t>(d)];
      const wave_field<float>& field = wave.present();
      kernels::copy_boxes<float> p{};
      p.packed = reinterpret_cast<float*>(kept.data());
      p.field = field.seen_by(d);
      p.layout = shape_.cells.layout;
      std::copy(boxes.begin(), boxes.end(), p.boxes);
      p.count = static_cast<std::int64_t>(boxes.size());
      p.restore = back ? 1 : 0;
      const std::span<float> planes = field.planes(d, shape_.parts.first(d), shape_.parts.last(d));
      const hpeShape shape = kernels::boxes_shape(static_cast<std::int64_t>(kept.size() / sizeof(float)),
                                                  device_info(shape_.parts.device(d)).kind == HPE_DEVICE_SOFT);
      launch_on(shape_.parts.device(d), copy_, shape, p, back ? in(kept) : out(kept),
                back ? inout(planes) : in(planes));
    }
  }

  std::vector<std::vector<kernels::window>> boxes_;  ///< boxes around the model, by device
  std::vector<array<std::uint8_t>> ring_;
  slots slots_;
  std::unique_ptr<field_store> store_;
  const kernel<kernels::copy_boxes<float>> copy_;
};

class checkpoint_history final : public computed_history {
 public:
  checkpoint_history(const history_shape& shape, std::int64_t checkpoints)
      : computed_history(shape), schedule_(revolve(shape.fields(), checkpoints)) {
    for (std::int64_t s = 0; s < checkpoints; ++s) {
      std::vector<array<float>>& slot = slots_.emplace_back();
      for (int d = 0; d < devices(); ++d)
        for (const std::span<float>& part : again_.state(d))
          slot.emplace_back(part.size(), on_device(shape.parts.device(d)));
    }
  }

  void before_step(propagator<float>& forward, std::int64_t t) override {
    if (t == 0) saved_ = 0;
    if (saved_ == schedule_.saves.size() || t != schedule_.saves[saved_].number * shape_.keep_every) return;
    move(forward, schedule_.saves[saved_++].slot, true);
  }

  void correlate(propagator<float>& backward, std::int64_t t, const stack<float>& onto) override {
    if (t % shape_.keep_every != 0) return;
    using kind = revolve_action::kind;
    for (;; ++next_) {
      const revolve_action& a = schedule_.back[next_];
      switch (a.what) {
        case kind::load: move(again_, a.slot, false); break;
        case kind::save: move(again_, a.slot, true); break;
        case kind::advance:
          for (std::int64_t s = here_ * shape_.keep_every; s < a.number * shape_.keep_every; ++s) step(s);
          break;
        case kind::use:
          correlate_present(backward, onto);
          ++next_;
          return;
      }
      here_ = a.number;
    }
  }

 private:
  void turned(const propagator<float>& /*forward*/) override { next_ = 0; }

  void move(propagator<float>& wave, std::int64_t slot, bool save) {
    const std::vector<array<float>>& kept = slots_[static_cast<std::size_t>(slot)];
    std::size_t i = 0;
    for (int d = 0; d < devices(); ++d)
      for (const std::span<float>& part : wave.state(d)) {
        hpe::copy(save ? kept[i].data() : part.data(), save ? part.data() : kept[i].data(), part.size_bytes());
        ++i;
      }
  }

  const revolve_schedule schedule_;
  std::vector<std::vector<array<float>>> slots_;
  std::size_t saved_ = 0, next_ = 0;  ///< number of done actions of schedule_.saves, and of schedule_.back
  std::int64_t here_ = 0;             ///< number of the state that the propagator again_ has
};

}  // namespace

std::unique_ptr<source_history> make_history(const history_shape& shape, const keeping& k) {
  if (k.how == keep_method::boundary) return std::make_unique<boundary_history>(shape, k);
  if (k.how == keep_method::checkpoints) return std::make_unique<checkpoint_history>(shape, k.checkpoints);
  return std::make_unique<kept_history>(shape, k);
}

item_bytes bytes_of_field(const history_shape& shape, const keeping& k) {
  item_bytes all;
  for (int d = 0; d < shape.parts.devices(); ++d) {
    const kernels::window w = model_part(shape.cells, shape.parts, d);
    const std::size_t bytes = round_up(kept_bytes<float>(w, bits_on_devices(k)), sector);
    all.on_one_device = std::max(all.on_one_device, bytes);
    all.on_devices += bytes;
    all.kept += k.zfp && k.bits != 0 ? cells_of(w) * static_cast<std::size_t>(k.bits) / 8 : bytes;
  }
  return all;
}

item_bytes bytes_of_boundary(const history_shape& shape) {
  item_bytes all;
  for (int d = 0; d < shape.parts.devices(); ++d) {
    const std::size_t bytes = bytes_of_boxes(boxes_around(shape.cells, shape.parts.first(d), shape.parts.last(d)));
    all.on_one_device = std::max(all.on_one_device, bytes);
    all.on_devices += bytes;
  }
  all.kept = all.on_devices;
  return all;
}

item_bytes bytes_of_checkpoint(const history_shape& shape) {
  item_bytes all;
  constexpr std::size_t fields = 2;
  for (int d = 0; d < shape.parts.devices(); ++d) {
    const auto planes = static_cast<std::size_t>(shape.parts.last(d) - shape.parts.first(d));
    const std::size_t bytes = fields * planes * static_cast<std::size_t>(shape.cells.layout.plane) * sizeof(float);
    all.on_one_device = std::max(all.on_one_device, bytes);
    all.on_devices += bytes;
  }
  all.kept = all.on_devices;
  return all;
}

}  // namespace hpe::rtm

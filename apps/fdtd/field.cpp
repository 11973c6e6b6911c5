#include "apps/fdtd/field.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hpe::fdtd {

namespace {

std::int64_t checked_radius(std::int64_t order) {
  if (order < 2 || order > 2 * kernels::most_radius || order % 2 != 0)
    throw bad_input("order " + std::to_string(order) + ": the order must be an even number from 2 to " +
                    std::to_string(2 * kernels::most_radius));
  return order / 2;
}

std::vector<box> checked_boxes(const triple& cells, std::int64_t radius, const triple& parts, exchange how) {
  for (const std::int64_t n : cells)
    if (n < 1) throw bad_input("a grid needs at least one cell along each axis");
  const std::int64_t wanted = parts[0] * parts[1] * parts[2];
  if (wanted > device_count())
    throw bad_input(std::to_string(wanted) + " devices: there are " + std::to_string(device_count()) +
                    "; HPE_DEVICES=soft:N provides N soft devices");
  std::vector<box> boxes = cut_grid(cells, radius, parts);
  if (how == exchange::copied) return boxes;
  for (const box& b : boxes)
    for (const int neighbour : b.neighbour)
      if (neighbour >= 0 &&
          ((device_info(b.device).peers >> boxes[static_cast<std::size_t>(neighbour)].device) & 1) == 0)
        throw bad_input("direct exchange: devices " + std::to_string(b.device) + " and " + std::to_string(neighbour) +
                        " do not reach each other's memory");
  return in_one_memory(std::move(boxes), cells);
}

/// Returns planes [x0, x1) of an array with the layout of a box.
std::span<float> planes(const array<float>& a, const kernels::field_layout& layout, std::int64_t x0, std::int64_t x1) {
  return a.subspan(static_cast<std::size_t>((x0 + layout.radius) * layout.plane),
                   static_cast<std::size_t>((x1 - x0) * layout.plane));
}

}  // namespace

double stable_speed(std::int64_t order) { return 4 / (3 * kernels::stencil_bound(order / 2)); }

field::field(const triple& cells, std::int64_t order, const triple& parts,
             const std::function<float(std::int64_t, std::int64_t, std::int64_t)>& speed, exchange how)
    : cells_(cells),
      radius_(checked_radius(order)),
      slabs_(parts[1] == 1 && parts[2] == 1),
      boxes_(checked_boxes(cells, radius_, parts, how)),
      step_(module(), ("wave_step_" + std::to_string(order) + "_f32").c_str()) {
  std::vector<int> devices;
  for (const box& b : boxes_) devices.push_back(b.device);
  for (const box& b : boxes_) {
    const bool shared = how == exchange::direct;
    const placement on = shared ? block_distribution(devices) : on_device(b.device);
    if (memories_.empty() || !shared) {
      const auto size = static_cast<std::size_t>(b.layout.size());
      memories_.push_back({array<float>(size, on), array<float>(size, on), array<float>(size, on)});
      const memory& m = memories_.back();
      for (const array<float>* a : {&m.now, &m.next, &m.speed}) fill(a->data(), 0, size * sizeof(float));
    }
    const hpeDeviceInfo device = device_info(b.device);
    const auto longest =
        static_cast<std::size_t>(std::max({b.layout.nx, b.layout.ny, kernels::whole_vectors(b.layout.nz)}));
    part p{memories_.size() - 1, array<float>(longest, on_device(b.device)), {}, {}, rims_first(b), 0};
    std::fill(p.ones.begin(), p.ones.end(), 1.0F);
    if (device.kind == HPE_DEVICE_CUDA) p.multiprocessors = device.compute_units;
    for (int side = 0; side < sides; ++side) {
      const bool packed = !slabs_ && b.neighbour[static_cast<std::size_t>(side)] >= 0;
      const auto face = packed ? static_cast<std::size_t>(b.face(side).count()) : 0;
      p.sent.emplace_back(face, on);
      p.received.emplace_back(face, on);
    }
    for (std::int64_t x = 0; x < b.cells[0]; ++x)
      for (std::int64_t y = 0; y < b.cells[1]; ++y) {
        float* const row = memories_.back().speed.data() + b.index(x, y, 0);
        for (std::int64_t z = 0; z < b.cells[2]; ++z) row[z] = speed(b.origin[0] + x, b.origin[1] + y, b.origin[2] + z);
      }
    parts_.push_back(std::move(p));
  }
}

void field::set(const std::function<float(std::int64_t, std::int64_t, std::int64_t)>& value) {
  for (std::size_t n = 0; n < boxes_.size(); ++n) {
    const box& b = boxes_[n];
    const memory& m = memory_of(n);
    for (std::int64_t x = 0; x < b.cells[0]; ++x)
      for (std::int64_t y = 0; y < b.cells[1]; ++y) {
        const auto first = static_cast<std::size_t>(b.index(x, y, 0));
        for (std::int64_t z = 0; z < b.cells[2]; ++z)
          m.now[first + static_cast<std::size_t>(z)] = m.next[first + static_cast<std::size_t>(z)] =
              value(b.origin[0] + x, b.origin[1] + y, b.origin[2] + z);
      }
    send(n, m.now);
  }
}

void field::set(const field& other) {
  const auto same = [](const box& a, const box& b) {
    return a.device == b.device && a.cells == b.cells && a.origin == b.origin && a.place == b.place &&
           a.layout.size() == b.layout.size();
  };
  if (!std::equal(boxes_.begin(), boxes_.end(), other.boxes_.begin(), other.boxes_.end(), same))
    throw bad_input("a field can be set only to a field with the same devices and boxes");
  for (std::size_t i = 0; i < memories_.size(); ++i) {
    copy(memories_[i].now.data(), other.memories_[i].now.data(), memories_[i].now.size() * sizeof(float));
    copy(memories_[i].next.data(), other.memories_[i].next.data(), memories_[i].next.size() * sizeof(float));
  }
  for (std::size_t n = 0; n < boxes_.size(); ++n) send(n, memory_of(n).now);
}

void field::send(std::size_t number, const array<float>& from) {
  const box& b = boxes_[number];
  for (int side = 0; side < sides; ++side) {
    const array<float>& packed = parts_[number].sent[static_cast<std::size_t>(side)];
    if (packed.size() == 0) continue;
    const kernels::cell_range face = b.face(side);
    const kernels::fdtd_pack<float> p{{packed.data(), from.data(), b.layout, face}};
    launch_on(b.device, pack_, kernels::face_shape<float>(p), p, out(packed),
              in(planes(from, b.layout, face.x0, face.x1)));
  }
}

void field::receive(std::size_t number) {
  const box& b = boxes_[number];
  part& mine = parts_[number];
  for (int side = 0; side < sides; ++side) {
    if (b.neighbour[static_cast<std::size_t>(side)] < 0) continue;
    const auto other = static_cast<std::size_t>(b.neighbour[static_cast<std::size_t>(side)]);
    const kernels::cell_range rim = b.rim(side);
    if (slabs_) {
      const kernels::cell_range face = boxes_[other].face(opposite(side));
      const std::span<float> to = planes(memory_of(number).now, b.layout, rim.x0, rim.x1);
      copy(to.data(), planes(memory_of(other).now, boxes_[other].layout, face.x0, face.x1).data(), to.size_bytes());
      continue;
    }
    const array<float>& packed = mine.received[static_cast<std::size_t>(side)];
    const array<float>& theirs = parts_[other].sent[static_cast<std::size_t>(opposite(side))];
    copy(packed.data(), theirs.data(), packed.size() * sizeof(float));
    const array<float>& now = memory_of(number).now;
    const kernels::fdtd_unpack<float> p{{packed.data(), now.data(), b.layout, rim}};
    launch_on(b.device, unpack_, kernels::face_shape<float>(p), p, in(packed),
              inout(planes(now, b.layout, rim.x0, rim.x1)));
  }
}

void field::compute(std::size_t number, const kernels::cell_range& of_box) {
  const box& b = boxes_[number];
  const memory& mine = memory_of(number);
  const array<float>& ones = parts_[number].ones;
  const kernels::cell_range cells = b.in_memory(of_box);
  kernels::wave_step<float> p{};
  p.next = mine.next.data();
  p.now = mine.now.data();
  p.speed = mine.speed.data();
  p.layout = b.layout;
  p.ends = kernels::y_ends::closed;
  p.taper_x = p.taper_y = p.taper_z = ones.data();
  p.set_weights(1, 1, 1);
  kernels::set_cells(p, cells, parts_[number].multiprocessors);
  launch_on(b.device, step_, kernels::step_shape(p.part, p.across), p,
            in(planes(mine.now, b.layout, cells.x0 - radius_, cells.x1 + radius_)),
            inout(planes(mine.next, b.layout, cells.x0, cells.x1)),
            in(planes(mine.speed, b.layout, cells.x0, cells.x1)), in(ones));
}

void field::step() {
  for (std::size_t n = 0; n < boxes_.size(); ++n) receive(n);
  for (std::size_t n = 0; n < boxes_.size(); ++n) {
    for (const kernels::cell_range& cells : parts_[n].work.first) compute(n, cells);
    send(n, memory_of(n).next);
  }
  for (std::size_t n = 0; n < boxes_.size(); ++n)
    for (const kernels::cell_range& cells : parts_[n].work.then) compute(n, cells);
  for (memory& m : memories_) std::swap(m.now, m.next);
}

std::vector<float> field::values(std::int64_t from, std::int64_t to) const {
  const std::int64_t rows = to - from;
  std::vector<float> some(static_cast<std::size_t>(cells_[0] * rows * cells_[2]));
  for (std::size_t n = 0; n < boxes_.size(); ++n) {
    const box& b = boxes_[n];
    for (std::int64_t x = 0; x < b.cells[0]; ++x)
      for (std::int64_t y = std::max(from, b.origin[1]); y < std::min(to, b.origin[1] + b.cells[1]); ++y) {
        const float* const row = memories_[parts_[n].memory].now.data() + b.index(x, y - b.origin[1], 0);
        std::copy(row, row + b.cells[2],
                  some.begin() + (((b.origin[0] + x) * rows + y - from) * cells_[2] + b.origin[2]));
      }
  }
  return some;
}

}  // namespace hpe::fdtd

// Compiled code may call these functions, and stopping a kernel runs no destructors. Therefore no object with a
// destructor may exist where a function stops the kernel.

#include "runtime/ptx/execution/textures/texture_access.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/ptx/execution/textures/surface.h"
#include "runtime/ptx/execution/thread_memory.h"

namespace hpe::ptx {

namespace {

using u64 = std::uint64_t;

struct access {
  block_context& block;
  std::uint32_t thread;
  const instruction& what;
  const texture& object;
  const u64* sources;
  u64* results;

  [[nodiscard]] texture_position<std::int32_t> position() const {
    const auto coordinate = [&](std::size_t n) { return static_cast<std::int32_t>(sources[texture_x + n]); };
    return {coordinate(0), coordinate(1), coordinate(2), static_cast<std::uint32_t>(sources[texture_layer])};
  }
};

float float_at(const access& by, std::size_t n) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(by.sources[n]));
}

texture_position<float> place(const access& by) {
  return {float_at(by, texture_x), float_at(by, texture_x + 1), float_at(by, texture_x + 2), by.position().layer};
}

std::array<std::uint32_t, 4> found_at(const access& by) {
  using enum modifier;
  if (by.what.op == opcode::tld4) {
    const modifier channel = by.what.modifiers.one_of(r, g, b, a);
    return gather_texture(by.object, place(by), channel == r ? 0 : channel == g ? 1 : channel == b ? 2 : 3);
  }
  if (by.what.types[1] != type::f32) return fetch_texture(by.object, by.position());
  if (by.what.has(level)) return read_texture(by.object, place(by), float_at(by, texture_level_of_detail));
  if (!by.what.has(grad)) return read_texture(by.object, place(by));
  const auto gradient = [&](std::size_t n) -> std::array<float, 3> {
    return {float_at(by, n), float_at(by, n + 1), float_at(by, n + 2)};
  };
  return read_texture(
      by.object, place(by),
      level_of_gradients(by.object, place(by), gradient(first_texture_gradient), gradient(first_texture_gradient + 3)));
}

void read(const access& by) {
  const auto record = [&by](const void* at, std::size_t bytes) { record_range(by.block, by.what, at, bytes, false); };
  const texel_observer observer(record);
  if (by.what.description != 0) set_texel_observer(&observer);
  const auto found = found_at(by);
  set_texel_observer(nullptr);
  for (std::size_t n = 0; n < by.what.results.size(); ++n) by.results[n] = found[n];
}

u64 query(const access& by) {
  using enum modifier;
  switch (by.what.modifiers.one_of(width, height, depth, array_size, normalized_coords)) {
    case width: return by.object.width;
    case height: return by.object.height;
    case depth: return by.object.depth;
    case array_size: return by.object.layers;
    default: return by.object.normalized ? 1 : 0;
  }
}

surface_boundary boundary_of(const instruction& i) {
  return i.has(modifier::clamp)  ? surface_boundary::clamp
         : i.has(modifier::zero) ? surface_boundary::zero
                                 : surface_boundary::trap;
}

[[noreturn]] void leave_surface(const access& by, const texture_position<std::int32_t>& where, std::uint32_t bytes) {
  by.block.current = by.thread;
  const texture& s = by.object;
  by.block.record(
      trap::reason::surface, 0,
      fmt::format("{} bytes at byte {}, row {}, plane {} of {} bytes, {} rows, {} planes: {}", bytes, where.x, where.y,
                  s.layers == 0 ? where.z : static_cast<std::int32_t>(where.layer), s.row_bytes(),
                  std::max<u64>(s.height, 1), std::max({s.depth, s.layers, u64{1}}), place_of(by.block, by.what)));
  by.block.stop();
}

// Returns the address of an access; null if the access has no effect (surface_boundary::zero). Stops the kernel in case
// of surface_boundary::trap.
std::uint8_t* find(const access& by, const texture_position<std::int32_t>& where, std::uint32_t bytes) {
  const surface_boundary outside = boundary_of(by.what);
  std::uint8_t* const at = find_in_surface(by.object, where, bytes, outside);
  if (at == nullptr && outside == surface_boundary::trap) leave_surface(by, where, bytes);
  return at;
}

void load(const access& by) {
  const unsigned size = bytes_of(by.what.types[0]);
  const std::uint8_t* const at = find(by, by.position(), size * by.what.vector);
  if (at != nullptr) record_range(by.block, by.what, at, std::uint64_t{size} * by.what.vector, false);
  for (unsigned n = 0; n < by.what.vector; ++n) {
    by.results[n] = 0;
    if (at != nullptr) std::memcpy(&by.results[n], at + std::size_t{n} * size, size);
  }
}

void store(const access& by) {
  const unsigned size = bytes_of(by.what.types[0]);
  std::uint8_t* const at = find(by, by.position(), size * by.what.vector);
  if (at == nullptr) return;
  record_range(by.block, by.what, at, std::uint64_t{size} * by.what.vector, true);
  for (unsigned n = 0; n < by.what.vector; ++n)
    std::memcpy(at + std::size_t{n} * size, &by.sources[first_surface_value + n], size);
}

// Executes sust.p. where.x is in elements, and the function converts values to the surface's format.
void store_formatted(const access& by) {
  const unsigned size = by.object.channel_bytes();
  const auto element = static_cast<std::int32_t>(size * by.object.channels);
  texture_position<std::int32_t> where = by.position();
  where.x =
      // clamped, so that the byte offset does not overflow
      std::clamp(where.x, -1, static_cast<std::int32_t>(by.object.width)) * element;
  std::uint8_t* const at = find(by, where, static_cast<std::uint32_t>(element));
  if (at == nullptr) return;
  record_range(by.block, by.what, at, static_cast<std::uint64_t>(element), true);
  for (unsigned n = 0; n < by.object.channels && n < by.what.vector; ++n) {
    const std::uint32_t value =
        to_channel(by.object.format, static_cast<std::uint32_t>(by.sources[first_surface_value + n]));
    std::memcpy(at + std::size_t{n} * size, &value, size);
  }
}

}  // namespace

void access_texture(block_context& block, std::uint32_t thread, const instruction& i, const u64* sources,
                    u64* results) {
  if (sources[0] == 0) {
    block.current = thread;
    block.record(trap::reason::address, 0, "the texture or surface object is 0");
    block.stop();
  }
  const access by{block, thread, i, *reinterpret_cast<const texture*>(sources[0]), sources, results};
  switch (i.op) {
    case opcode::tex:
    case opcode::tld4: return read(by);
    case opcode::suld: return load(by);
    case opcode::sust: return i.has(modifier::p) ? store_formatted(by) : store(by);
    default: results[0] = query(by);
  }
}

}  // namespace hpe::ptx

#pragma once

/// The hooks for copies and fills. Only hook_table.cpp includes this file. For most small copies, a hook costs a few
/// loads and comparisons and then calls the driver.

#include <optional>
#include <type_traits>

#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/hooks/real_entries.h"
#include "interpose/gpu/interposer.h"
#include "interpose/gpu/work/default_stream.h"
#include "interpose/gpu/work/enqueue_guard.h"
#include "interpose/shape/described_copy.h"
#include "runtime/trace/measured.h"
#include "runtime/trace/status_page.h"

namespace hpe::cuda_hooks {

namespace {

using trace::measured;
using trace::way;

/// The direction in which a driver entry copies, according to its name: `up` from host memory to device memory, `down`
/// from device memory to host memory, `across` between device addresses, `peer` between contexts, `any` if only the
/// addresses determine the direction.
enum class direction : std::uint8_t { up, down, across, peer, any };

/// Collects the arguments of an entry that copies a range of bytes: the destination, the source, the number of bytes
/// and, in some entries, a stream, in this order. A context may follow each address.
struct copied_range {
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;
  std::size_t bytes = 0;
  CUstream stream = nullptr;
  bool has_stream = false;
  unsigned addresses = 0;

  void take(CUdeviceptr address) { (addresses++ == 0 ? to : from) = address; }
  void take(const void* address) { take(reinterpret_cast<CUdeviceptr>(address)); }
  void take(std::size_t given) { bytes = given; }
  void take(CUcontext /*of an address*/) {}
  void take(CUstream given) {
    stream = given;
    has_stream = true;
  }
};

// Returns the interposer if the copy is large enough for hpe's own copies; otherwise, or if there is no interposer,
// returns nullptr.
inline interposer* for_large(std::size_t bytes) {
  static_assert(pageable_copy::smallest == peer_copy::smallest);
  return bytes >= pageable_copy::smallest ? interposer::instance() : nullptr;
}

// Lets hpe execute a copy in place of the driver, and returns the result. Returns nullopt, without effect, if hpe is
// not faster than the driver or does not support the copy.
// NOLINTBEGIN(performance-no-int-to-ptr): CUDA's integer addresses
template <direction Way>
std::optional<CUresult> staged(interposer& hpe, const copied_range& c, CUstream in, bool waits) {
  switch (Way) {
    case direction::up: return hpe.copies().upload(c.to, reinterpret_cast<void*>(c.from), c.bytes, in, waits);
    case direction::down: return hpe.copies().download(reinterpret_cast<void*>(c.to), c.from, c.bytes, in);
    case direction::across: return hpe.peers().copy(c.to, c.from, c.bytes, in);
    case direction::peer:
      return c.has_stream ? hpe.peers().copy(c.to, c.from, c.bytes, in)
                          : hpe.peers().copy_after_all(c.to, c.from, c.bytes);
    case direction::any: return hpe.any_copy(c.to, c.from, c.bytes, in, waits);
  }
  return std::nullopt;
}
// NOLINTEND(performance-no-int-to-ptr)

struct ways {
  way by_driver, by_hpe;
};
constexpr ways ways_of(direction d) {
  switch (d) {
    case direction::up: return {way::up_driver, way::up_staged};
    case direction::down: return {way::down_driver, way::down_staged};
    default: return {way::any_driver, way::any_staged};
  }
}

// Counts a copy between host memory and device memory for `hpe top`. Does not count a copy by an entry that accepts any
// two addresses, because hpe would have to query the driver for the direction.
inline void count_copy(way by_driver, std::size_t bytes) {
  counters& count = trace::status_page::own().count;
  if (by_driver == way::up_driver) counters::add(count.bytes_to_device, bytes);
  if (by_driver == way::down_driver) counters::add(count.bytes_to_host, bytes);
}

// Queues one part of a copy. The memory_kind that manages the copied memory calls this function once for each part.
inline CUresult copy_part(const copied_range& c, CUstream in, const box_part& part) {
  const CUdeviceptr to = c.to + part.x, from = c.from + part.x;
  const std::size_t bytes = part.extent.width;
  const enqueue_guard work(in, {{to, bytes, true}, {from, bytes, false}});
  if (work.failed()) return work.result();
  interposer* const hpe = interposer::instance();
  if (for_large(bytes) != nullptr)
    if (const auto done = hpe->any_copy(to, from, bytes, in, false)) return *done;
  return hpe->driver().cuMemcpyAsync(to, from, bytes, in);
}

template <auto Entry, flavour Flavour, direction Way, class... Arguments>
CUresult copy_whole(const copied_range& c, CUstream in, bool waits, Arguments... arguments) {
  constexpr ways told = ways_of(Way);
  measured measure(told.by_driver, c.bytes);
  count_copy(told.by_driver, c.bytes);
  enqueue_guard work(waits && Way == direction::peer ? unknown_stream() : in,
                     {{c.to, c.bytes, true}, {c.from, c.bytes, false}});
  if (waits && Way == direction::down) work.needs_no_wait();  // the driver's call returns only after the copy
  if (work.failed()) return work.result();
  if (interposer* const hpe = for_large(c.bytes))
    if (const auto done = staged<Way>(*hpe, c, in, waits)) return measure.goes(told.by_hpe), *done;
  return (real.*Entry)(arguments...);
}

template <auto Entry, flavour Flavour, direction Way, class... Arguments>
CUresult CUDAAPI copy(Arguments... arguments) {
  copied_range c;
  (c.take(arguments), ...);
  const CUstream in = c.has_stream ? named(c.stream, Flavour) : default_stream(Flavour);
  const bool waits = !c.has_stream && Way != direction::across;
  const auto describe = [&]() -> device_call {
    return {.what = device_call::family::copy,
            .stream = in,
            .waits = waits,
            .to = c.to,
            .from = c.from,
            .shape = {{c.bytes}}};
  };
  const auto elsewhere = memory_kinds::first([&](memory_kind& kind) {
    return kind.run(describe(), [&](const box_part& part) { return copy_part(c, in, part); });
  });
  return observed(elsewhere ? *elsewhere : copy_whole<Entry, Flavour, Way>(c, in, waits, arguments...), describe);
}

// ---- rows and planes ---------------------------------------------------------------------------------------------

// Calls the driver for a copy of rows and planes. hpe assumes that the copy may use any memory if the source or the
// destination is an array, or if `decoded` is empty because the description is invalid.
template <auto Entry, flavour Flavour, class Description, class... Stream>
CUresult copy_described(const Description* description, const std::optional<cuda_shape::described_copy>& decoded,
                        Stream... stream) {
  constexpr bool waits = sizeof...(Stream) == 0;
  const bool is_plain = decoded && decoded->is_in_memory();
  const box_copy shape = is_plain ? decoded->shape() : box_copy{};
  measured measure(way::any_driver, shape.bytes());
  CUstream const in = stream_of<Flavour>(stream...);
  const enqueue_guard work = is_plain ? enqueue_guard(in, {{decoded->to.first(), shape.written().span(), true},
                                                           {decoded->from.first(), shape.read().span(), false}})
                                      : enqueue_guard(unknown_stream());
  if (work.failed()) return work.result();
  if (interposer* const hpe = for_large(shape.bytes())) {
    constexpr bool after_all = waits && std::is_same_v<Description, CUDA_MEMCPY3D_PEER>;
    if (const auto done = hpe->box_copied(decoded->to.first(), decoded->from.first(), shape, in, waits, after_all))
      return measure.goes(way::any_staged), *done;
  }
  return (real.*Entry)(description, stream...);
}

template <auto Entry, flavour Flavour, class Description, class... Stream>
CUresult CUDAAPI copy_rows(const Description* description, Stream... stream) {
  const auto whole = description != nullptr ? cuda_shape::decoded(*description) : std::nullopt;
  const auto describe = [&](bool waits) -> device_call {
    if (!whole) return {.stream = stream_of<Flavour>(stream...), .uses = {.anything = true}};
    return {.what = device_call::family::copy,
            .stream = stream_of<Flavour>(stream...),
            .waits = waits,
            .to = whole->to.first(),
            .from = whole->from.first(),
            .shape = whole->shape()};
  };
  const auto elsewhere = memory_kinds::first([&](memory_kind& kind) -> std::optional<CUresult> {
    if (!whole) return std::nullopt;
    return kind.run(describe(false), [&](const box_part& part) {
      const Description described = cuda_shape::part_of(*description, *whole, part);
      return copy_described<Entry, Flavour>(&described, cuda_shape::decoded(described), stream...);
    });
  });
  return observed(elsewhere ? *elsewhere : copy_described<Entry, Flavour>(description, whole, stream...),
                  [&] { return describe(sizeof...(stream) == 0); });
}

// ---- fills -------------------------------------------------------------------------------------------------------

// Fills a box of elements of `element` bytes. fill(address, extent) calls the driver for a part of the box.
template <class Fill>
CUresult fill_box(CUdeviceptr to, const box& whole, std::size_t element, CUstream in, const Fill& fill) {
  const auto queue = [&](const box_part& part) {
    const CUdeviceptr at = to + whole.strides.offset_of(part.x, part.y, part.z);
    const enqueue_guard work(in, {{at, box{part.extent, whole.strides}.span(), true}});
    if (work.failed()) return work.result();
    return fill(at, part.extent);
  };
  const auto describe = [&]() -> device_call {
    return {.what = device_call::family::fill,
            .stream = in,
            .to = to,
            .shape = {whole.extent, whole.strides, {}},
            .unit = element};
  };
  const auto elsewhere = memory_kinds::first([&](memory_kind& kind) { return kind.run(describe(), queue); });
  return observed(elsewhere ? *elsewhere : queue({0, 0, 0, whole.extent}), describe);
}

template <auto Entry, flavour Flavour, class Value, class... Stream>
CUresult CUDAAPI fill(CUdeviceptr to, Value value, std::size_t count, Stream... stream) {
  const box whole{{saturated_product(count, sizeof value)}, {}};
  return fill_box(to, whole, sizeof value, stream_of<Flavour>(stream...), [&](CUdeviceptr at, const box_extent& part) {
    return (real.*Entry)(at, value, part == whole.extent ? count : part.width / sizeof value, stream...);
  });
}

template <auto Entry, flavour Flavour, class Value, class... Stream>
CUresult CUDAAPI fill_rows(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width, std::size_t height,
                           Stream... stream) {
  const box whole{{saturated_product(width, sizeof value), height, 1}, {pitch, 0}};
  return fill_box(to, whole, sizeof value, stream_of<Flavour>(stream...), [&](CUdeviceptr at, const box_extent& part) {
    return (real.*Entry)(at, pitch, value, part.width == whole.extent.width ? width : part.width / sizeof value,
                         part.rows, stream...);
  });
}

}  // namespace

}  // namespace hpe::cuda_hooks

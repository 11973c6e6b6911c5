#pragma once

/// The hooks of copies. Only hook_table.cpp includes this file. A hook with nothing to do costs a comparison and a call
/// of the driver.

#include <optional>

#include "interpose/cuda/copies/copy_boxes.h"
#include "interpose/cuda/copies/copy_shapes.h"
#include "interpose/cuda/hooks/oversubscribed_hooks.h"
#include "interpose/cuda/hooks/real_entries.h"
#include "interpose/cuda/interposer.h"
#include "interpose/cuda/work/device_work.h"
#include "runtime/trace/measured.h"
#include "runtime/trace/status_page.h"

namespace hpe::cuda_hooks {

namespace {

using trace::measured;
using trace::way;

// For `hpe top`. Copies whose direction depends on the addresses are not counted, because the driver would have to be
// asked.
inline void count_copy(way by_driver, std::size_t bytes) {
  counters& count = trace::status_page::own().count;
  if (by_driver == way::up_driver) counters::add(count.bytes_to_device, bytes);
  if (by_driver == way::down_driver) counters::add(count.bytes_to_host, bytes);
}

inline CUdeviceptr number_of(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

// The interposer for large copies; null for others, which go to the driver.
inline interposer* for_large(std::size_t bytes) {
  static_assert(pageable_copy::smallest == peer_copy::smallest);
  return bytes >= pageable_copy::smallest ? interposer::instance() : nullptr;
}

// Copies bytes of which some are in memory of hpe (--oversubscribe). Nothing for other copies.
inline std::optional<CUresult> copy_larger(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream in,
                                           bool waits) {
  oversubscribed* const all = oversubscribed::active();
  if (all == nullptr) [[likely]]
    return std::nullopt;
  return all->copy(to, from, bytes, in, waits, [&](std::size_t at, std::size_t part) {
    const device_work work(in, {{to + at, part, true}, {from + at, part, false}});
    if (work.failed()) return work.result();
    interposer* const hpe = interposer::instance();
    if (for_large(part) != nullptr)
      if (const auto done = hpe->any_copy(to + at, from + at, part, in, false)) return *done;
    return hpe->driver().cuMemcpyAsync(to + at, from + at, part, in);
  });
}

// Copies a range of bytes, as device work of the program: by hpe if `staged` returns a result, else by the driver. A
// null stream means that the copy is done when the call returns.
template <class Staged, class Driver>
CUresult copy_bytes(way by_driver, way by_hpe, CUstream in, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                    const Staged& staged, const Driver& driver) {
  measured measure(by_driver, bytes);
  count_copy(by_driver, bytes);
  device_work work(in, {{to, bytes, true}, {from, bytes, false}});
  if (in == nullptr) work.needs_no_wait();
  if (work.failed()) return work.result();
  if (interposer* const hpe = for_large(bytes))
    if (const std::optional<CUresult> done = staged(*hpe)) return measure.goes(by_hpe), *done;
  return driver();
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI upload(CUdeviceptr to, const void* from, std::size_t bytes) {
  if (const auto done = copy_larger(to, number_of(from), bytes, default_stream(Flavour), true)) return *done;
  return copy_bytes(
      way::up_driver, way::up_staged, default_stream(Flavour), to, number_of(from), bytes,
      [=](interposer& hpe) { return hpe.copies().upload(to, from, bytes, default_stream(Flavour), true); },
      [=] { return (real.*Entry)(to, from, bytes); });
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI upload_async(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  if (const auto done = copy_larger(to, number_of(from), bytes, named(stream, Flavour), false)) return *done;
  return copy_bytes(
      way::up_driver, way::up_staged, named(stream, Flavour), to, number_of(from), bytes,
      [=](interposer& hpe) { return hpe.copies().upload(to, from, bytes, named(stream, Flavour), false); },
      [=] { return (real.*Entry)(to, from, bytes, stream); });
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI download(void* to, CUdeviceptr from, std::size_t bytes) {
  if (const auto done = copy_larger(number_of(to), from, bytes, default_stream(Flavour), true)) return *done;
  return copy_bytes(
      way::down_driver, way::down_staged, nullptr, number_of(to), from, bytes,
      [=](interposer& hpe) { return hpe.copies().download(to, from, bytes, default_stream(Flavour)); },
      [=] { return (real.*Entry)(to, from, bytes); });
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI download_async(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  if (const auto done = copy_larger(number_of(to), from, bytes, named(stream, Flavour), false)) return *done;
  return copy_bytes(
      way::down_driver, way::down_staged, named(stream, Flavour), number_of(to), from, bytes,
      [=](interposer& hpe) { return hpe.copies().download(to, from, bytes, named(stream, Flavour)); },
      [=] { return (real.*Entry)(to, from, bytes, stream); });
}

// Copies whose addresses tell whether each end is in host or device memory.
template <class Staged, class Driver>
CUresult copy_any(CUstream in, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, const Staged& staged,
                  const Driver& driver) {
  return copy_bytes(way::any_driver, way::any_staged, in, to, from, bytes, staged, driver);
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  if (const auto done = copy_larger(to, from, bytes, default_stream(Flavour), true)) return *done;
  return copy_any(
      default_stream(Flavour), to, from, bytes,
      [=](interposer& hpe) { return hpe.any_copy(to, from, bytes, default_stream(Flavour), true); },
      [=] { return (real.*Entry)(to, from, bytes); });
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI copy_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  if (const auto done = copy_larger(to, from, bytes, named(stream, Flavour), false)) return *done;
  return copy_any(
      named(stream, Flavour), to, from, bytes,
      [=](interposer& hpe) { return hpe.any_copy(to, from, bytes, named(stream, Flavour), false); },
      [=] { return (real.*Entry)(to, from, bytes, stream); });
}

// ---- between devices ---------------------------------------------------------------------------------------------

template <auto Entry, flavour Flavour>
CUresult CUDAAPI copy_across(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  if (const auto done = copy_larger(to, from, bytes, default_stream(Flavour), false)) return *done;
  return copy_any(
      default_stream(Flavour), to, from, bytes,
      [=](interposer& hpe) { return hpe.peers().copy(to, from, bytes, default_stream(Flavour)); },
      [=] { return (real.*Entry)(to, from, bytes); });
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI copy_across_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  if (const auto done = copy_larger(to, from, bytes, named(stream, Flavour), false)) return *done;
  return copy_any(
      named(stream, Flavour), to, from, bytes,
      [=](interposer& hpe) { return hpe.peers().copy(to, from, bytes, named(stream, Flavour)); },
      [=] { return (real.*Entry)(to, from, bytes, stream); });
}

template <auto Entry>
CUresult CUDAAPI copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t bytes) {
  if (const auto done = copy_larger(to, from, bytes, default_stream(legacy), true)) return *done;
  return copy_any(
      unknown_stream(), to, from, bytes, [=](interposer& hpe) { return hpe.peers().copy_after_all(to, from, bytes); },
      [=] { return (real.*Entry)(to, to_context, from, from_context, bytes); });
}

template <auto Entry, flavour Flavour>
CUresult CUDAAPI copy_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                 std::size_t bytes, CUstream stream) {
  if (const auto done = copy_larger(to, from, bytes, named(stream, Flavour), false)) return *done;
  return copy_any(
      named(stream, Flavour), to, from, bytes,
      [=](interposer& hpe) { return hpe.peers().copy(to, from, bytes, named(stream, Flavour)); },
      [=] { return (real.*Entry)(to, to_context, from, from_context, bytes, stream); });
}

// ---- rows and planes ---------------------------------------------------------------------------------------------

// Copies of arrays may use any memory; so may invalid descriptions.
template <auto Entry, flavour Flavour, bool Waits, class Description, class... Stream>
CUresult copy_shape_in_memory(const Description* description, Stream... stream) {
  const copy_shape_of shape(description);
  measured measure(way::any_driver, shape.bytes());
  CUstream const in = stream_of<Flavour>(stream...);
  const device_work work =
      shape.is_plain() ? device_work(in, {shape.written(), shape.read()}) : device_work(unknown_stream());
  if (work.failed()) return work.result();
  if (interposer* const hpe = for_large(shape.bytes())) {
    if (const auto done = hpe->shaped_copy(shape, in, Waits)) return measure.goes(way::any_staged), *done;
  }
  return (real.*Entry)(description, stream...);
}

template <auto Entry, flavour Flavour, bool Waits, class Description, class... Stream>
CUresult copy_shape(const Description* description, Stream... stream) {
  if (oversubscribed* const all = oversubscribed::active(); all != nullptr && description != nullptr) [[unlikely]] {
    const copied_box box = box_of(*description);
    const auto copy_part = [&](const box_part& part) {
      const Description described = part_of(*description, part);
      return copy_shape_in_memory<Entry, Flavour, Waits>(&described, stream...);
    };
    if (const auto done = all->use_box(box.to, box.from, box.whole, stream_of<Flavour>(stream...), copy_part))
      return *done;
  }
  return copy_shape_in_memory<Entry, Flavour, Waits>(description, stream...);
}

template <auto Entry, flavour Flavour, class Description>
CUresult CUDAAPI copy_rows(const Description* description) {
  return copy_shape<Entry, Flavour, true>(description);
}

template <auto Entry, flavour Flavour, class Description>
CUresult CUDAAPI copy_rows_async(const Description* description, CUstream stream) {
  return copy_shape<Entry, Flavour, false>(description, stream);
}

}  // namespace

}  // namespace hpe::cuda_hooks

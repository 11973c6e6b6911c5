// Memory accesses of the interpreter. The interpreter checks each access.

#include <cstring>

#include "runtime/ptx/arithmetic/matrix.h"
#include "runtime/ptx/execution/interpreted_thread.h"

namespace hpe::ptx {

namespace {

// As on a GPU, a single access is atomic: threads of other blocks never see a partly written value.
std::uint64_t read(const std::uint8_t* at, unsigned bytes) {
  switch (bytes) {
    case 1: return __atomic_load_n(at, __ATOMIC_ACQUIRE);
    case 2: return __atomic_load_n(reinterpret_cast<const std::uint16_t*>(at), __ATOMIC_ACQUIRE);
    case 4: return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at), __ATOMIC_ACQUIRE);
    default: return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at), __ATOMIC_ACQUIRE);
  }
}

void write(std::uint8_t* at, unsigned bytes, std::uint64_t value) {
  switch (bytes) {
    case 1: return __atomic_store_n(at, static_cast<std::uint8_t>(value), __ATOMIC_RELEASE);
    case 2:
      return __atomic_store_n(reinterpret_cast<std::uint16_t*>(at), static_cast<std::uint16_t>(value),
                              __ATOMIC_RELEASE);
    case 4:
      return __atomic_store_n(reinterpret_cast<std::uint32_t*>(at), static_cast<std::uint32_t>(value),
                              __ATOMIC_RELEASE);
    default: return __atomic_store_n(reinterpret_cast<std::uint64_t*>(at), value, __ATOMIC_RELEASE);
  }
}

std::uint64_t sign_extended(std::uint64_t value, type t) {
  if (!is_signed(t)) return value;
  const unsigned cut = 64 - bits_of(t);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << cut) >> cut);
}

bool is_param(const instruction& i) {
  return i.has(modifier::param) || i.has(modifier::param_entry) || i.has(modifier::param_func);
}

}  // namespace

std::uint8_t* interpreted_thread::checked(address_window window, std::uint64_t address, std::uint64_t bytes,
                                          std::uint64_t alignment) {
  std::uint8_t* const memory = reach(block_, number_, window, address, bytes);
  // As on a GPU, the check of the alignment precedes the check of the access rights.
  if (address % alignment != 0)
    fail(trap::reason::misaligned, memory == nullptr ? address : reinterpret_cast<std::uint64_t>(memory));
  if (memory == nullptr) {
    if (window == address_window::own_shared)
      address = reinterpret_cast<std::uint64_t>(block_.shared) +
                static_cast<std::uint64_t>(static_cast<std::int32_t>(address));
    fail(trap::reason::address, address);
  }
  return memory;
}

std::uint8_t* interpreted_thread::checked(const instruction& i, const operand& where, std::uint64_t bytes,
                                          std::uint64_t alignment) {
  const std::uint64_t at = address(where);
  if (where.what == operand::kind::formal || where.what == operand::kind::scratch)
    return reinterpret_cast<std::uint8_t*>(at);
  if (is_param(i)) return reinterpret_cast<std::uint8_t*>(at);
  return checked(window_of(i), at, bytes, alignment);
}

// Reports an access to the race finder, if there is one. `value` points to the bytes that a write stores.
void interpreted_thread::touch(const instruction& i, const std::uint8_t* at, std::uint64_t bytes, memory_use how,
                               const void* value) {
  if (block_.races == nullptr) return;
  const bool is_strong =
      i.modifiers.one_of(modifier::relaxed, modifier::acquire, modifier::release, modifier::mmio) != modifier::count;
  block_.races->touch(block_, number_, i, at, bytes, is_strong ? memory_use::atomic : how, value);
}

void interpreted_thread::touch_fragment(const instruction& i, const std::uint8_t* matrix, std::uint64_t stride,
                                        memory_use how) {
  if (block_.races == nullptr) return;
  const unsigned bytes = bytes_of(part_of(i, *matrix_shape_of(i)).element);
  for (const std::uint64_t offset : fragment_offsets(i, number_ % 32, stride)) touch(i, matrix + offset, bytes, how);
}

// Reports cp.async.commit_group, cp.async.wait_group and cp.async.wait_all to the race finder.
void interpreted_thread::order_copies(const instruction& i) {
  if (i.has(modifier::commit_group) || i.has(modifier::wait_all)) block_.races->commit_copies(block_, number_);
  if (i.has(modifier::wait_all)) block_.races->wait_for_copies(block_, number_, 0);
  if (i.has(modifier::wait_group) && !i.has(modifier::bulk))
    block_.races->wait_for_copies(block_, number_, static_cast<std::uint32_t>(value(i.sources[0])));
}

void interpreted_thread::load(const instruction& i) {
  if (i.op == opcode::wmma) {
    std::uint64_t registers[8] = {};
    const std::uint64_t stride = value(i.sources[1]);
    const std::uint8_t* const matrix = checked(i, i.sources[0], fragment_bytes(i, stride), 1);
    touch_fragment(i, matrix, stride, memory_use::read);
    load_fragment(i, number_ % 32, matrix, stride, registers);
    for (std::size_t n = 0; n < i.results.size(); ++n) set(i.results[n], registers[n]);
    return;
  }
  const unsigned bytes = bytes_of(i.types[0]);
  const std::uint8_t* const at =
      checked(i, i.sources[0], std::uint64_t{bytes} * i.vector, std::uint64_t{bytes} * i.vector);
  touch(i, at, std::uint64_t{bytes} * i.vector, memory_use::read);
  std::uint64_t values[8];
  for (unsigned n = 0; n < i.vector; ++n)
    values[n] = sign_extended(read(at + std::size_t{n} * bytes, bytes), i.types[0]);
  for (unsigned n = 0; n < i.vector; ++n) set(i.results[n], values[n]);
}

void interpreted_thread::store(const instruction& i) {
  if (i.op == opcode::wmma) {
    std::uint64_t registers[8] = {};
    for (std::size_t n = 2; n < i.sources.size(); ++n) registers[n - 2] = value(i.sources[n]);
    const std::uint64_t stride = value(i.sources[1]);
    std::uint8_t* const matrix = checked(i, i.sources[0], fragment_bytes(i, stride), 1);
    touch_fragment(i, matrix, stride, memory_use::write);
    return store_fragment(i, number_ % 32, matrix, stride, registers);
  }
  const unsigned bytes = bytes_of(i.types[0]);
  std::uint8_t* const at = checked(i, i.sources[0], std::uint64_t{bytes} * i.vector, std::uint64_t{bytes} * i.vector);
  if (block_.races != nullptr) {
    std::uint8_t stored[64];
    for (unsigned n = 0; n < i.vector; ++n) {
      const std::uint64_t element = value(i.sources[1 + n]);
      std::memcpy(stored + std::size_t{n} * bytes, &element, bytes);
    }
    touch(i, at, std::uint64_t{bytes} * i.vector, memory_use::write, stored);
  }
  for (unsigned n = 0; n < i.vector; ++n) write(at + std::size_t{n} * bytes, bytes, value(i.sources[1 + n]));
}

void interpreted_thread::update(const instruction& i) {
  const unsigned bytes = bytes_of(i.types[0]);
  std::uint8_t* const at = checked(i, i.sources[0], bytes, bytes);
  touch(i, at, bytes, memory_use::atomic);
  const std::uint64_t old = i.atomic(at, value(i.sources[1]), i.sources.size() > 2 ? value(i.sources[2]) : 0);
  if (!i.results.empty()) set(i.results[0], old);
}

// Executes cp.async. The bytes after the given source size become zero.
void interpreted_thread::copy(const instruction& i) {
  const std::uint64_t size = value(i.sources[2]);
  const std::uint64_t given = i.sources.size() > 3 ? std::min(value(i.sources[3]), size) : size;
  std::uint8_t* const to = checked(address_window::own_shared, address(i.sources[0]), size, size);
  const std::uint8_t* const from =
      checked(address_window::generic, address(i.sources[1]), given, given == 0 ? 1 : size);
  touch(i, to, size, memory_use::asynchronous_copy, given == size ? from : nullptr);
  std::memcpy(to, from, given);
  std::memset(to + given, 0, size - given);
}

}  // namespace hpe::ptx

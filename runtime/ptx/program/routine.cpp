// One CPU thread runs all threads of a cluster, so barriers in shared memory need no atomic operations. Compiled code
// may call these functions. Stopping a kernel runs no destructors, so no object with a destructor may exist where a
// function stops the kernel.

#include "runtime/ptx/program/routine.h"

#include <bit>
#include <cstring>

#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/races/race_finder.h"

namespace hpe::ptx {

namespace {

using u64 = std::uint64_t;

// The memory accesses of one instruction in one thread.
struct access {
  block_context& block;
  std::uint32_t thread;
  const instruction& what;

  [[noreturn]] void fail(trap::reason why, u64 address) const {
    block.current = thread;
    block.record(why, address, place_of(block, what));
    block.stop();
  }
  [[nodiscard]] std::uint8_t* bytes(address_window window, u64 address, u64 size, u64 alignment) const {
    std::uint8_t* const at = reach(block, thread, window, address, size);
    if (at == nullptr) fail(trap::reason::address, address);
    if (reinterpret_cast<u64>(at) % alignment != 0) fail(trap::reason::misaligned, address);
    return at;
  }
  void touch(const std::uint8_t* at, u64 size, memory_use how) const {
    record_range(block, what, at, size, how == memory_use::write);
    if (block.races != nullptr) block.races->touch(block, thread, what, at, size, how);
  }
  // Reports the arrival to the race finder: accesses before a thread's arrival at an mbarrier happen before the
  // accesses of another thread after its wait.
  void arrive_at(const void* barrier) const {
    if (block.races != nullptr) block.races->release(block, thread, reinterpret_cast<u64>(barrier));
  }
  // Reports to the race finder that the thread's asynchronous copies are complete and signal the barrier.
  void arrive_with_copies(u64 barrier) const {
    if (block.races == nullptr) return;
    block.races->commit_copies(block, thread);
    block.races->wait_for_copies(block, thread, 0);
    arrive_at(bytes(window_of(what), barrier, sizeof(u64), sizeof(u64)));
  }
  void leave(const void* barrier) const {
    if (block.races != nullptr) block.races->acquire(block, thread, reinterpret_cast<u64>(barrier));
  }
  void require(bool possible) const {
    if (!possible) fail(trap::reason::illegal, 0);
  }
};

class shared_barrier {
 public:
  shared_barrier(const access& by, address_window window, u64 address)
      : at_(reinterpret_cast<u64*>(by.bytes(window, address, sizeof(u64), sizeof(u64)))) {}
  [[nodiscard]] barrier_word get() const { return barrier_word(*at_); }
  void set(barrier_word w) const { *at_ = w.bits(); }
  [[nodiscard]] const void* place() const { return at_; }
  void complete(const access& by, u64 bytes) const {
    by.arrive_at(at_);
    barrier_word w = get();
    by.require(w.expect(-static_cast<std::int64_t>(bytes)));
    set(w);
  }

 private:
  u64* at_;
};

u64 run_barrier(const access& by, const u64* sources) {
  using enum modifier;
  const instruction& i = by.what;
  if (i.has(pending_count)) return barrier_word(sources[0]).pending();
  const shared_barrier at(by, window_of(i), sources[0]);
  if (i.has(init)) {
    by.require(sources[1] >= 1 && sources[1] <= barrier_word::most_arrivals);
    at.set(barrier_word::of(sources[1]));
    return 0;
  }
  if (i.has(inval)) {
    at.set(barrier_word(~u64{0}));
    return 0;
  }
  barrier_word w = at.get();
  const u64 before = w.bits();
  if (i.has(test_wait) || i.has(try_wait)) {
    const bool is_complete = w.parity() != (i.has(parity) ? sources[1] & 1 : barrier_word(sources[1]).parity());
    if (is_complete) by.leave(at.place());
    return is_complete ? 1 : 0;
  }
  const bool arrives = i.has(arrive) || i.has(arrive_drop);
  if (i.has(complete_tx)) by.require(w.expect(-static_cast<std::int64_t>(sources[1])));
  if (i.has(expect_tx)) by.require(w.expect(static_cast<std::int64_t>(sources[1])));
  if (arrives) {
    by.arrive_at(at.place());
    const u64 count = i.has(expect_tx) || i.sources.size() < 2 ? 1 : sources[1];
    by.require(i.has(arrive) ? w.arrive(count) : w.drop(count));
  }
  at.set(w);
  return before;
}

// sources: the destination, the source, the number of bytes, the barrier (if the copy signals one), and the set of
// blocks (if the copy is a multicast)
void copy_bulk(const access& by, const u64* sources) {
  const instruction& i = by.what;
  const bool to_cluster = i.has(modifier::shared_cluster), to_global = i.has(modifier::bulk_group);
  const address_window to = to_cluster  ? address_window::cluster_shared
                            : to_global ? address_window::generic
                                        : address_window::own_shared;
  const bool from_shared = to_global || (to_cluster && !i.has(modifier::global));
  const u64 size = sources[2];
  constexpr u64 unit = 16;
  by.require(size % unit == 0);
  const std::uint8_t* const from =
      by.bytes(from_shared ? address_window::own_shared : address_window::generic, sources[1], size, unit);
  by.touch(from, size, memory_use::read);
  if (!i.has(modifier::multicast)) {
    std::uint8_t* const target = by.bytes(to, sources[0], size, unit);
    by.touch(target, size, memory_use::write);
    std::memmove(target, from, size);
    if (!to_global) shared_barrier(by, to, sources[3]).complete(by, size);
    return;
  }
  // Multicast: copies to the same offset in several blocks, and signals the barrier of each block.
  const std::uint32_t place = split_cluster_address(by.block, sources[0]).offset;
  const std::uint32_t told = split_cluster_address(by.block, sources[3]).offset;
  for (u64 rest = sources[4] & 0xffff; rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<std::uint32_t>(std::countr_zero(rest));
    std::uint8_t* const target = by.bytes(to, address_in_cluster(rank, place), size, unit);
    by.touch(target, size, memory_use::write);
    std::memmove(target, from, size);
    shared_barrier(by, to, address_in_cluster(rank, told)).complete(by, size);
  }
}

// sources: the address, the barrier, the values to store
void store_async(const access& by, const u64* sources) {
  const unsigned bytes = bytes_of(by.what.types[0]);
  const u64 size = u64{bytes} * by.what.vector;
  std::uint8_t* const to = by.bytes(address_window::cluster_shared, sources[0], size, size);
  by.touch(to, size, memory_use::write);
  for (unsigned n = 0; n < by.what.vector; ++n) std::memcpy(to + std::size_t{n} * bytes, &sources[2 + n], bytes);
  shared_barrier(by, address_window::cluster_shared, sources[1]).complete(by, size);
}

u64 run_mapa(const access& by, u64 address, u64 rank) {
  const block_context& block = by.block;
  const u64 blocks = block.cluster == nullptr ? 1 : block.cluster->blocks.size();
  by.require(rank < blocks);
  const bool generic = !by.what.has(modifier::shared_cluster);
  const block_context* owner = generic ? owner_of_shared(block, address) : split_cluster_address(block, address).owner;
  if (owner == nullptr) by.fail(trap::reason::address, address);
  if (!generic)
    return address_in_cluster(static_cast<std::uint32_t>(rank), split_cluster_address(block, address).offset);
  const block_context* const wanted = block.cluster == nullptr ? &block : block.cluster->blocks[rank];
  return address - reinterpret_cast<u64>(owner->shared) + reinterpret_cast<u64>(wanted->shared);
}

}  // namespace

void barrier_word::set(u64 pending, u64 expected, std::int64_t bytes, u64 parity) {
  if (pending == 0 && bytes == 0) {
    pending = expected;
    parity ^= 1;
  }
  constexpr u64 byte_mask = (u64{1} << 22) - 1;
  bits_ = pending | expected << 20 | (static_cast<u64>(bytes) & byte_mask) << 40 | parity << 62;
}

bool barrier_word::arrive(u64 count) {
  if (count == 0 || count > pending()) return false;
  set(pending() - count, expected(), bytes(), parity());
  return true;
}

bool barrier_word::drop(u64 count) {
  if (count == 0 || count > pending() || count > expected()) return false;
  set(pending() - count, expected() - count, bytes(), parity());
  return true;
}

bool barrier_word::expect(std::int64_t more) {
  const std::int64_t sum = bytes() + more;
  if (more > most_bytes || more < -most_bytes || sum > most_bytes || sum < -most_bytes) return false;
  set(pending(), expected(), sum, parity());
  return true;
}

std::uint64_t run_routine(block_context& block, std::uint32_t thread, const instruction& i, const u64* sources) {
  const access by{block, thread, i};
  switch (i.op) {
    case opcode::mbarrier: return run_barrier(by, sources);
    case opcode::mapa: return run_mapa(by, sources[0], sources[1]);
    case opcode::getctarank: {
      const bool generic = !i.has(modifier::shared_cluster);
      const block_context* const owner =
          generic ? owner_of_shared(block, sources[0]) : split_cluster_address(block, sources[0]).owner;
      if (owner == nullptr) by.fail(trap::reason::address, sources[0]);
      return owner->cluster_rank;
    }
    case opcode::cp:
      if (i.has(modifier::bulk)) {
        copy_bulk(by, sources);
        return 0;
      }
      by.arrive_with_copies(sources[0]);
      if (i.has(modifier::noinc)) {
        // Without .noinc, the instruction adds one pending arrival, and the completion of the copies removes it.
        const shared_barrier at(by, window_of(i), sources[0]);
        barrier_word w = at.get();
        by.require(w.arrive(1));
        at.set(w);
      }
      return 0;
    case opcode::st: store_async(by, sources); return 0;
    default: return 0;  // createpolicy has no effect, because the CPU manages its own caches
  }
}

}  // namespace hpe::ptx

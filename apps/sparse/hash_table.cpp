#include "apps/sparse/hash_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "apps/sparse/rows.h"

namespace hpe::sparse {

namespace {

constexpr std::uint64_t most_entries = std::uint64_t{1} << 30;

/// Returns the number of slots of a level. A level with few entries has many slots for each entry, so that few levels
/// follow.
std::uint64_t slots_for(std::uint64_t entries) {
  return entries < 4096 ? std::max<std::uint64_t>(32 * entries, 64) : 2 * entries;
}

void check_count(std::uint64_t count, const char* what) {
  if (count > most_entries)
    throw error(HPE_ERROR_INVALID_ARGUMENT, fmt::format("{} {}; at most {} are possible", count, what, most_entries));
}

template <class T>
std::span<T> some(const T* data, std::uint64_t count) {
  return {const_cast<T*>(data), count};
}

}  // namespace

hash_table::hash_table(const std::uint64_t* entries, std::uint64_t count, int device, const method_choice& choose)
    : device_(device),
      module_(kernels_file()),
      slots_(module_, "hash_slots"),
      settle_(module_, "hash_settle"),
      match_(module_, "hash_match"),
      count_(1, on_device(device)) {
  check_count(count, "entries");
  make_room(count);
  array<std::uint64_t> rest(count, on_device(device)), next(count, on_device(device));
  const std::uint64_t* pending = entries;
  while (count > 0) {
    const std::uint64_t slots = slots_for(count);
    const std::size_t at = levels_.size();
    levels_.emplace_back(slots, on_device(device));
    fill(levels_[at].data(), 0xff, slots * sizeof(std::uint64_t));
    compute_slots(pending, nullptr, count, at);
    const gather::problem scatter{gather::way::scatter, sizeof(std::uint64_t), sizeof(std::uint32_t), slots, count};
    // const_cast is safe, because a scatter only reads its values.
    gather::plan(scatter, choose(scatter), {device})
        .run(levels_[at].data(), batch_.indices.data(), const_cast<std::uint64_t*>(pending));
    gather_from(at, count, choose);
    count_[0] = 0;
    launch_on(device_, settle_, shape_for(count, device_),
              {pending, batch_.found.data(), count, rest.data(), count_.data()}, in(some(pending, count)),
              in(batch_.found.subspan(0, count)), inout(rest), inout(count_));
    count = count_[0];
    pending = rest.data();
    std::swap(rest, next);
  }
}

std::uint64_t hash_table::slots() const {
  std::uint64_t all = 0;
  for (const auto& slots : levels_) all += slots.size();
  return all;
}

void hash_table::make_room(std::uint64_t count) {
  if (batch_.indices.size() >= count) return;
  batch_ = {array<std::uint32_t>(count, on_device(device_)), array<std::uint64_t>(count, on_device(device_))};
}

void hash_table::compute_slots(const std::uint64_t* entries, const std::uint32_t* keys, std::uint64_t count,
                               std::size_t level) {
  const auto slots = static_cast<std::uint32_t>(levels_[level].size());
  launch_on(device_, slots_, shape_for(count, device_),
            {entries, keys, count, static_cast<std::uint32_t>(level), slots, batch_.indices.data()},
            in(some(entries, entries != nullptr ? count : 0)), in(some(keys, keys != nullptr ? count : 0)),
            out(batch_.indices.subspan(0, count)));
}

void hash_table::gather_from(std::size_t level, std::uint64_t count, const method_choice& choose) {
  const gather::problem what{gather::way::gather, sizeof(std::uint64_t), sizeof(std::uint32_t), levels_[level].size(),
                             count};
  gather::plan(what, choose(what), {device_}).run(levels_[level].data(), batch_.indices.data(), batch_.found.data());
}

void hash_table::find(const std::uint32_t* keys, std::uint64_t count, std::uint32_t* results, std::uint32_t missing,
                      const method_choice& choose) {
  check_count(count, "keys");
  make_room(count);
  const placement here = on_device(device_);
  array<std::uint32_t> rest_keys(count, here), rest_places(count, here), next_keys(count, here),
      next_places(count, here);
  const auto answers = some(results, count);
  const std::uint32_t* places = nullptr;
  for (std::size_t level = 0; count > 0; ++level) {
    if (level == levels_.size()) {
      // No level is left to search. 0xff bytes mark empty slots, so that the kernel finds none of the remaining keys.
      fill(batch_.found.data(), 0xff, count * sizeof(std::uint64_t));
    } else {
      compute_slots(nullptr, keys, count, level);
      gather_from(level, count, choose);
    }
    count_[0] = 0;
    launch_on(device_, match_, shape_for(count, device_),
              {keys, places, batch_.found.data(), count, results, missing, rest_keys.data(), rest_places.data(),
               count_.data()},
              in(some(keys, count)), in(some(places, places != nullptr ? count : 0)),
              in(batch_.found.subspan(0, count)), inout(answers), inout(rest_keys), inout(rest_places), inout(count_));
    count = count_[0];
    keys = rest_keys.data();
    places = rest_places.data();
    std::swap(rest_keys, next_keys);
    std::swap(rest_places, next_places);
  }
}

}  // namespace hpe::sparse

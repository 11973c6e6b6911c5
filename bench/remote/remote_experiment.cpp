#include "bench/remote/remote_experiment.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <stdexcept>

#include "apps/modules/modules.h"
#include "runtime/base/options.h"

namespace hpe::bench::remote {

namespace {

constexpr std::size_t tile_bytes = tile_elements * sizeof(element);
constexpr uint32_t resident_blocks = 2048 / tile_elements;  // blocks on a multiprocessor, as compiled in pass.cu
constexpr std::size_t pattern_tiles = 1024;
// The bytes that empty_caches() accesses; larger than the second-level cache of any device.
constexpr std::size_t cache_bytes = std::size_t{256} << 20;

int other(int device) { return 1 - device; }

far_part part(double share, bool in_columns, uint32_t columns, uint32_t rows) {
  return {static_cast<uint32_t>(std::lround(share * (in_columns ? columns : rows))), in_columns ? 1U : 0U};
}

element computed(element e, uint32_t steps) {
  for (float& v : e.at)
    for (uint32_t s = 0; s < steps; ++s) v = std::fma(v, factor, addend);
  return e;
}

/// Returns the PTX module if the links of soft devices have limits; else nullopt. HPE_REMOTE_PTX is the path of the
/// module's file; empty if hpe was built without nvcc.
std::optional<hpe::ptx_module> ptx_for_links() {
  const options chosen = options::from_environment();
  const std::string file = HPE_REMOTE_PTX;
  if (on_gpus() || file.empty() || (chosen.soft_peer_link.empty() && chosen.soft_host_link.empty()))
    return std::nullopt;
  std::ifstream in(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  if (text.empty()) throw std::runtime_error(fmt::format("cannot read the kernels in {}", file));
  return hpe::ptx_module(text);
}

bool same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }
bool same_bits(const element& a, const element& b) {
  return std::equal(std::begin(a.at), std::end(a.at), std::begin(b.at),
                    [](float x, float y) { return same_bits(x, y); });
}

}  // namespace

/// The arrays of the pass on one device. The arrays in far memory (another device's, or the host's) are allocated when
/// an experiment first uses them.
struct experiment::side {
  int device = 0;
  hpe::array<element> near_in, near_out;
  hpe::array<element> peer_in, peer_out, host_in, host_out;
  hpe::array<element> sums;
};

experiment::experiment(std::size_t bytes, unsigned repeats)
    : bytes_(bytes),
      repeats_(repeats),
      rows_(bytes >= (std::size_t{64} << 20) ? 1024 : 32),
      columns_(static_cast<uint32_t>(bytes / tile_bytes / rows_)),
      module_(modules::require("libhpe-remote-kernels.so")),
      pass_(module_, "remote_pass"),
      look_up_(module_, "remote_look_up"),
      adding_(module_, "remote_add"),
      filter_(module_, "remote_filter"),
      ptx_(ptx_for_links()) {
  const bool has_peer = hpe::device_count() > 1 && ((hpe::device_info(0).peers >> 1) & 1) != 0;
  targets_ = has_peer ? std::vector{target::own, target::peer, target::host} : std::vector{target::own, target::host};
  std::mt19937 random(std::random_device{}());
  std::uniform_real_distribution<float> numbers(-1, 1);
  for (auto& pattern : patterns_) {
    pattern.resize(pattern_tiles * tile_elements);
    for (element& e : pattern)
      for (float& v : e.at) v = numbers(random);
  }
  for (int device = 0; device < (has_peer ? 2 : 1); ++device)
    caches_.emplace_back(on_gpus() ? cache_bytes : 1, hpe::on_device(device));
}

experiment::~experiment() = default;

hpe::array<element> experiment::random_array(const hpe::placement& place, std::size_t count, near_or_far which) {
  hpe::array<element> made(count, place);
  const std::vector<element>& pattern = patterns_[which];
  for (std::size_t done = 0; done < count; done += pattern.size())
    hpe::copy(made.data() + done, pattern.data(), std::min(count - done, pattern.size()) * sizeof(element));
  return made;
}

experiment::side& experiment::side_of(int device) {
  std::unique_ptr<side>& found = sides_[device];
  if (found) return *found;
  found = std::make_unique<side>();
  found->device = device;
  const std::size_t count = bytes_ / sizeof(element);
  found->near_in = random_array(hpe::on_device(device), count, near);
  found->near_out = hpe::array<element>(count, hpe::on_device(device));
  found->sums = hpe::array<element>(std::size_t{blocks(1)} * tile_elements, hpe::on_device(device));
  return *found;
}

const hpe::array<element>& experiment::far_in(side& s, target where) {
  if (where == target::own) return s.near_in;
  hpe::array<element>& found = where == target::peer ? s.peer_in : s.host_in;
  if (found.size() == 0) found = random_array(place_of(where, s.device), s.near_in.size(), far);
  return found;
}

const hpe::array<element>& experiment::far_out(side& s, target where) {
  if (where == target::own) return s.near_out;
  hpe::array<element>& found = where == target::peer ? s.peer_out : s.host_out;
  if (found.size() == 0) found = hpe::array<element>(s.near_out.size(), place_of(where, s.device));
  return found;
}

hpe::placement experiment::place_of(target where, int device) {
  if (where == target::host) return hpe::on_host();
  return hpe::on_device(where == target::own ? device : other(device));
}

uint32_t experiment::blocks(double occupancy) const {
  const double all = on_gpus() ? hpe::device_info(0).compute_units * resident_blocks : 64;
  return std::max(1U, static_cast<uint32_t>(std::lround(occupancy * all)));
}

template <class Parameters, class... Accesses>
void experiment::launch_on(int device, const hpe::kernel<Parameters>& kernel, const char* name, uint32_t blocks,
                           const Parameters& parameters, const Accesses&... accesses) const {
  if (!ptx_) {
    hpe::launch_on(device, kernel, {{blocks, 1, 1}, {tile_elements, 1, 1}}, parameters, accesses...);
    return;
  }
  std::vector<hpeAccess> used{accesses...};
  std::erase_if(used, [](const hpeAccess& a) { return a.size == 0; });
  const hpeGrid shape{{blocks, 1, 1}, {tile_elements, 1, 1}, 0, 0, {}};
  hpe::check(
      hpeLaunchGrid(device, (*ptx_)[name], &shape, &parameters, sizeof parameters, used.data(), used.size(), nullptr));
}

void experiment::launch(int device, const setting& s, uint64_t* stamps) {
  side& mine = side_of(device);
  const auto& in = far_in(mine, s.where);
  const auto& out = far_out(mine, s.where);
  const pass p{{mine.near_in.data(), in.data()},
               {mine.near_out.data(), out.data()},
               mine.sums.data(),
               stamps,
               columns_,
               rows_,
               part(s.far_reads, s.in_columns, columns_, rows_),
               part(s.far_writes, s.in_columns, columns_, rows_),
               s.steps,
               s.reads ? 1U : 0U,
               s.writes ? 1U : 0U};
  const hpeAccess stamped{stamps, stamps != nullptr ? std::size_t{columns_} * rows_ * 2 * sizeof *stamps : 0, HPE_OUT};
  launch_on(device, pass_, "remote_pass", blocks(s.occupancy), p, hpe::in(mine.near_in), hpe::in(in),
            hpe::inout(mine.near_out), hpe::inout(out), hpe::inout(mine.sums), stamped);
}

void experiment::check(int device, const setting& s) {
  side& mine = side_of(device);
  std::mt19937 random(std::random_device{}());
  const uint32_t tiles = columns_ * rows_;
  const far_part reads = part(s.where == target::own ? 0 : s.far_reads, s.in_columns, columns_, rows_);
  const auto expected = [&](uint32_t tile, uint32_t t) {
    const auto number = static_cast<float>(t);
    const std::vector<element>& pattern = patterns_[where(reads, tile % columns_, tile / columns_)];
    const element e = s.reads ? pattern[(std::size_t{tile} * tile_elements + t) % pattern.size()]
                              : element{{number, number, number, number}};
    return computed(e, s.steps);
  };
  const auto refuse = [&](const std::string& what) {
    throw std::runtime_error(fmt::format("device {}: {} has a wrong result", device, what));
  };
  std::vector<element> got(tile_elements);
  if (!s.writes) {
    const uint32_t grid = blocks(s.occupancy), block = random() % std::min(grid, tiles);
    hpe::copy(got.data(), mine.sums.data() + std::size_t{block} * tile_elements, tile_bytes);
    for (uint32_t t = 0; t < tile_elements; ++t) {
      element sum{};
      for (uint32_t tile = block; tile < tiles; tile += grid)
        for (int i = 0; i < 4; ++i) sum.at[i] += expected(tile, t).at[i];
      if (!same_bits(sum, got[t])) refuse(fmt::format("thread {} of block {}", t, block));
    }
    return;
  }
  const far_part writes = part(s.far_writes, s.in_columns, columns_, rows_);
  for (int sample = 0; sample < 64; ++sample) {
    const uint32_t tile = random() % tiles;
    const auto& out = where(writes, tile % columns_, tile / columns_) == far ? far_out(mine, s.where) : mine.near_out;
    hpe::copy(got.data(), out.data() + std::size_t{tile} * tile_elements, tile_bytes);
    for (uint32_t t = 0; t < tile_elements; ++t)
      if (!same_bits(expected(tile, t), got[t])) refuse(fmt::format("element {} of tile {}", t, tile));
  }
}

void experiment::empty_caches() {
  for (const auto& memory : caches_) hpe::fill(memory.data(), 1, memory.size());
  hpe::synchronize();
}

timing experiment::seconds(const setting& s) {
  const std::vector<int> devices = s.on_both ? std::vector{0, 1} : std::vector{0};
  const auto run = [&] {
    for (const int device : devices) launch(device, s, nullptr);
    hpe::synchronize();
  };
  constexpr int poison = 0xff;
  for (const int device : devices) {
    side& mine = side_of(device);
    const auto poisoned = [](const hpe::array<element>& a) { hpe::fill(a.data(), poison, a.size() * sizeof(element)); };
    poisoned(mine.near_out);
    poisoned(far_out(mine, s.where));
    poisoned(mine.sums);
  }
  run();
  for (const int device : devices) check(device, s);
  return timed(
      repeats_, [&] { empty_caches(); }, run);
}

time_line experiment::progress(const setting& s, std::size_t spans) {
  const std::size_t tiles = std::size_t{columns_} * rows_;
  const hpe::array<uint64_t> stamps(2 * tiles, hpe::on_device(0));
  launch(0, s, stamps.data());
  empty_caches();
  launch(0, s, stamps.data());
  hpe::synchronize();
  check(0, s);
  std::vector<uint64_t> all(stamps.size());
  hpe::copy(all.data(), stamps.data(), stamps.size() * sizeof(uint64_t));
  const auto [first, last] = std::minmax_element(all.begin(), all.end());
  time_line line;
  const double whole = std::max(1.0, static_cast<double>(*last - *first)) * 1e-9;
  line.seconds_a_span = whole / static_cast<double>(spans);
  line.near_bytes.assign(spans, 0);
  line.far_bytes.assign(spans, 0);
  const far_part reads = part(s.far_reads, s.in_columns, columns_, rows_);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const double end = static_cast<double>(all[2 * tile + 1] - *first) * 1e-9;
    const auto span = std::min(spans - 1, static_cast<std::size_t>(end / line.seconds_a_span));
    const auto column = static_cast<uint32_t>(tile % columns_), row = static_cast<uint32_t>(tile / columns_);
    auto& bytes = where(reads, column, row) == far ? line.far_bytes : line.near_bytes;
    bytes[span] += static_cast<double>(tile_bytes) / line.seconds_a_span;
  }
  return line;
}

timing experiment::seconds_of_copy(target where) {
  side& mine = side_of(0);
  const auto& from = far_in(mine, where);
  return timed(
      repeats_, [&] { empty_caches(); },
      [&] {
        hpe::copy(mine.near_out.data(), from.data(), bytes_);
        hpe::synchronize();
      });
}

experiment::look_up_result experiment::look_up_seconds(target where, std::size_t table_bytes, double occupancy,
                                                       bool read_only) {
  side& mine = side_of(0);
  const auto entries = static_cast<uint32_t>(table_bytes / sizeof(element));
  const hpe::array<element> table = random_array(place_of(where), entries, far);
  // On GPUs, each thread reads often enough that the time to load the table into the cache is negligible. Over a link
  // of limited rate, a large table takes 35 ms.
  const uint32_t reads = on_gpus() ? 256 : 4, grid = blocks(occupancy);
  const auto run = [&] {
    launch_on(0, look_up_, "remote_look_up", grid,
              look_up{table.data(), mine.sums.data(), entries, reads, read_only ? 1U : 0U}, hpe::in(table),
              hpe::inout(mine.sums));
    hpe::synchronize();
  };
  hpe::fill(mine.sums.data(), 0xff, mine.sums.size() * sizeof(element));
  run();
  std::vector<element> got(tile_elements);
  const uint32_t block = grid / 2;
  hpe::copy(got.data(), mine.sums.data() + std::size_t{block} * tile_elements, tile_bytes);
  for (uint32_t t = 0; t < tile_elements; ++t) {
    element sum{};
    for (uint32_t k = 0; k < reads; ++k)
      for (int i = 0; i < 4; ++i)
        sum.at[i] += patterns_[far][entry(block, t, k, entries) % patterns_[far].size()].at[i];
    if (!same_bits(sum, got[t])) throw std::runtime_error(fmt::format("thread {} of a look-up has a wrong sum", t));
  }
  return {timed(
              repeats_, [&] { empty_caches(); }, run),
          std::size_t{grid} * tile_elements * reads * sizeof(element)};
}

experiment::adding_result experiment::adding_seconds(target where, uint32_t entries) {
  const hpe::array<uint32_t> counters(entries, place_of(where));
  // A link carries only about a million additions per second; therefore, each thread makes few additions in host
  // memory.
  const uint32_t grid = blocks(1), adds = !on_gpus() ? 4 : where == target::host ? 1 : 64;
  const auto run = [&] {
    launch_on(0, adding_, "remote_add", grid, adding{counters.data(), entries, adds}, hpe::inout(counters));
    hpe::synchronize();
  };
  hpe::fill(counters.data(), 0, entries * sizeof(uint32_t));
  run();
  const uint64_t all = uint64_t{grid} * tile_elements * adds;
  const uint64_t counted = std::accumulate(counters.begin(), counters.end(), uint64_t{0});
  if (counted != all)
    throw std::runtime_error(fmt::format("the threads made {} additions, but the counters contain {}", all, counted));
  return {timed(
              repeats_, [&] { empty_caches(); }, run),
          static_cast<double>(all)};
}

timing experiment::filter_seconds(uint32_t side, uint32_t reach, target where, weight_path path) {
  const std::size_t pixels = std::size_t{side} * side;
  const hpe::array<element> image = random_array(hpe::on_device(0), (pixels + 3) / 4, near);
  const hpe::array<float> filtered(pixels, hpe::on_device(0));
  const hpe::array<float> weights(most_weights, place_of(where));
  filter p{image.data()->at, filtered.data(), weights.data(), side, reach, path, {}};
  for (uint32_t k = 0; k < most_weights; ++k) weights[k] = p.by_value[k] = patterns_[far][k].at[0];
  const auto run = [&] {
    launch_on(0, filter_, "remote_filter", blocks(1), p, hpe::in(image), hpe::in(weights), hpe::out(filtered));
    hpe::synchronize();
  };
  hpe::fill(filtered.data(), 0xff, pixels * sizeof(float));
  run();
  std::mt19937 random(std::random_device{}());
  const auto pixel = [&](std::size_t i) { return patterns_[near][i / 4 % patterns_[near].size()].at[i % 4]; };
  for (int sample = 0; sample < 64; ++sample) {
    // The first four samples are the corners of the image.
    const std::size_t place =
        sample < 4 ? (sample & 1) * (side - 1U) + (sample >> 1) * (pixels - side) : random() % pixels;
    const auto y = static_cast<int64_t>(place / side), x = static_cast<int64_t>(place % side), r = int64_t{reach};
    float sum = 0, got = 0;
    for (int64_t dy = -r; dy <= r; ++dy)
      for (int64_t dx = -r; dx <= r; ++dx)
        sum = std::fma(p.by_value[(dy + r) * (2 * r + 1) + dx + r],
                       pixel(std::size_t{in_image(y + dy, side)} * side + in_image(x + dx, side)), sum);
    hpe::copy(&got, filtered.data() + place, sizeof got);
    if (!same_bits(sum, got)) throw std::runtime_error(fmt::format("pixel {} of a filtered image is wrong", place));
  }
  return timed(
      repeats_, [&] { empty_caches(); }, run);
}

}  // namespace hpe::bench::remote

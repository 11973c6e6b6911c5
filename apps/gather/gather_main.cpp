#include "apps/gather/gather_main.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "apps/command_line/program.h"
#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/files/element_file.h"
#include "apps/gather/fit.h"
#include "apps/gather/gather_request.h"
#include "apps/gather/index_file.h"
#include "apps/gather/model.h"

namespace hpe::gather {

namespace {

/// Returns the size in bytes of a type as in apps/files/element_file.h: "f64", or a pair such as "u32_u32".
std::size_t bytes_of(const std::string& type) {
  std::size_t bits = 0;
  for (std::size_t at = 0; at != std::string::npos; at = type.find('_', at))
    bits += std::stoul(type.substr(type.find_first_of("0123456789", at++)));
  return bits / 8;
}

/// Returns a type for elements of `bytes` bytes.
std::string type_for(std::size_t bytes) { return bytes == 4 ? "u32" : bytes == 8 ? "u64" : "u64_u64"; }

/// Reads the indices of a file. Throws bad_input, before reading, if host memory is too short for a .npy file. (The
/// number of indices of a .json file has a limit.)
std::vector<std::uint64_t> indices_in(const std::string& path, std::uint64_t pattern) {
  if (files::is_npy(path)) {
    // While read_indices runs, host memory contains each index twice: as in the file, and as a 64-bit number.
    const files::description file = files::describe(path);
    const std::uint64_t count = file.bytes / bytes_of(file.type);
    command_line::check_room(
        fmt::format("{} indices in {}", count, path),
        {.on_host = static_cast<double>(file.bytes) + static_cast<double>(count) * sizeof(std::uint64_t)}, 0);
  }
  return read_indices(path, pattern);
}

struct devices_and_choice {
  std::vector<int> devices;
  choice how;
  std::string why;
};

choice wanted(const request& r) {
  const std::uint32_t chunks = r.chunks == 0 ? 16 : static_cast<std::uint32_t>(r.chunks);
  switch (r.how) {
    case wish::multi_pass: return {method::multi_pass, chunks};
    case wish::partitioned: return {method::partitioned, chunks};
    case wish::staged: return {method::staged, chunks};
    default: return {method::single_pass, 1};
  }
}

/// Sets the method for several devices, and the reason that --explain prints.
void choose_for_several(devices_and_choice& result, const problem& what) {
  // Bytes per second. Over links that are faster, writing eight bytes at random addresses takes less time than a
  // partition (measured on NVLink 4).
  constexpr double fast = 200e9;
  const bool direct = device_info(result.devices.front()).kind == HPE_DEVICE_CUDA && what.direction == way::scatter &&
                      what.element <= 8;
  const double rate = direct ? link_rate(result.devices[0], result.devices[1]) : 0;
  if (what.keeps_order()) {
    result.how = {method::single_pass, 1};
    result.why = "a single pass with remote access, because a partition does not keep the order of equal indices\n";
  } else if (rate > fast) {
    result.how = {method::single_pass, 1};
    result.why = fmt::format(
        "a single pass with remote access, because the link carries {:.0f} GB/s and a partition would take longer\n",
        rate / 1e9);
  } else {
    result.how = {method::partitioned, 1};
    result.why =
        "several devices: the indices are partitioned by the device that holds the element, exchanged in bulk, and "
        "used locally\n";
  }
}

/// Returns the devices, the method, and the sentences that --explain prints.
devices_and_choice choose(const request& r, const problem& what) {
  devices_and_choice result;
  result.devices.resize(static_cast<std::size_t>(command_line::devices_of(r.devices)));
  std::iota(result.devices.begin(), result.devices.end(), 0);
  const bool modelled = result.devices.size() == 1 && !r.host;
  if (modelled && (r.explain || r.measure || r.how == wish::automatic)) {
    const auto told = [&](const std::string& step) {
      if (!r.quiet) fmt::print(stderr, "measuring {}, once for this machine\n", step);
    };
    const parameters machine = fitted(result.devices.front(), r.measure, told);
    result.how = choices(machine, what).front().how;
    result.why = explain(machine, what);
  }
  if (r.how != wish::automatic) {
    result.how = wanted(r);
    result.why += fmt::format("{} was asked for\n", name_of(result.how.how));
  } else if (r.host) {
    if (result.devices.size() > 1) throw bad_input("--host with several devices needs --method");
    result.how = {method::staged, 1};
    // A chunk takes at most half of the free memory, unless the table is so large that run() refuses it.
    const double table = static_cast<double>(what.table) * static_cast<double>(what.element);
    while (2 * table / result.how.chunks > static_cast<double>(device_info(0).memory_free) &&
           result.how.chunks < chunks_limit)
      result.how.chunks *= 2;
    result.why = "the table is in host memory: its chunks are copied to the device one after the other\n";
  } else if (result.devices.size() > 1) {
    choose_for_several(result, what);
  }
  return result;
}

/// put stores an index of `bytes` bytes, and get loads it.
void put(std::byte* to, std::uint64_t index, std::size_t bytes) { std::memcpy(to, &index, bytes); }
std::uint64_t get(const std::byte* from, std::size_t bytes) {
  std::uint64_t index = 0;
  std::memcpy(&index, from, bytes);
  return index;
}

/// Fills an array with elements that encode their own index, so that all words differ.
void number_elements(std::byte* to, std::uint64_t count, std::size_t bytes) {
  auto* const words = reinterpret_cast<std::uint32_t*>(to);
  const std::size_t each = bytes / 4;
  for (std::uint64_t i = 0; i < count * each; ++i) words[i] = static_cast<std::uint32_t>(i * 2654435761U + 1);
}

class command {
 public:
  command(const request& r, way direction) : r_(r), gathers_(direction == way::gather) {
    what_.direction = direction;
    what_.element = r.element;
    what_.equal = r.equal;
    what_.beyond = r.beyond;
    if (!r.indices.empty()) given_ = indices_in(r.indices, r.pattern);
    what_.count = given_.empty() ? r.count : given_.size();
    if (!r.data.empty()) {
      file_ = files::describe(r.data);
      type_ = file_.type;
      if (file_.npy) what_.element = bytes_of(type_);
    }
    const std::uint64_t in_file = r.data.empty() ? 0 : file_.elements(what_.element);
    if (!r.data.empty() && !gathers_ && in_file != what_.count)
      throw bad_input(fmt::format("{} has {} values for {} indices", r.data, in_file, what_.count));
    const std::uint64_t greatest = given_.empty() ? r.count - 1 : *std::max_element(given_.begin(), given_.end());
    const bool table_follows = r.table == 0 && (!gathers_ || in_file == 0);
    if (table_follows && !given_.empty() && greatest > largest_index)
      throw bad_input(
          fmt::format("{} contains the index {}, and the table must be larger than its indices; without --table, the "
                      "largest possible index is {}",
                      r.indices, greatest, largest_index));
    what_.table = r.table != 0 ? r.table : gathers_ && in_file != 0 ? in_file : greatest + 1;
    if (gathers_ && in_file != 0 && what_.table != in_file)
      throw bad_input(fmt::format("{} has {} elements, but --table states {}", r.data, in_file, what_.table));
    if (r.partitions > what_.table)
      throw bad_input(fmt::format("--partitions {}: the table has only {} elements", r.partitions, what_.table));
    what_.index = std::max(what_.table, greatest) > 0xffffffffU ? 8 : 4;
    if (type_.empty()) type_ = type_for(what_.element);
    if (what_.element == 32 && files::is_npy(r.output))
      throw bad_input("--output: a .npy file has no type for elements of 32 bytes; write a raw file instead");
  }

  int run() {
    command_line::check_outputs({r_.output, r_.json}, {r_.indices, r_.data});
    const devices_and_choice chosen = choose(r_, what_);
    const auto bytes = [](std::uint64_t n, std::size_t each) {
      return static_cast<double>(n) * static_cast<double>(each);
    };
    const double arrays = bytes(what_.table, what_.element) + bytes(what_.count, what_.element + what_.index);
    command_line::check_room(
        fmt::format("{} indices into {} elements of {} bytes", what_.count, what_.table, what_.element),
        {arrays + plan::workspace(what_, chosen.how, chosen.devices.size()), 2 * arrays},
        static_cast<int>(chosen.devices.size()));
    plan work(what_, chosen.how, chosen.devices);
    const array<std::byte> table(what_.table * what_.element, r_.host ? on_host() : work.where_table()),
        indices(what_.count * what_.index, work.where_indices()),
        values(what_.count * what_.element, work.where_values());
    make_indices(indices, chosen.devices);
    const array<std::byte>&from = gathers_ ? table : values, &to = gathers_ ? values : table;
    if (r_.data.empty())
      number_elements(from.data(), from.size() / what_.element, what_.element);
    else
      files::read(file_, from.data());
    const double time = command_line::median_seconds(
        r_.repeats, r_.quiet, [&] { work.run(table.data(), indices.data(), values.data()); },
        [&] { fill(to.data(), 0, to.size()); });
    work.finish(indices.data());
    if (!r_.no_check && !right(table, indices, values)) {
      fmt::print(stderr, "hpe {}: the result is wrong\n", name());
      return command_line::failed;
    }
    if (!r_.output.empty()) files::write(r_.output, type_, {to.size() / what_.element}, to.data(), what_.element);
    answer(chosen, time);
    return 0;
  }

 private:
  [[nodiscard]] const char* name() const { return gathers_ ? "gather" : "scatter"; }

  void make_indices(const array<std::byte>& indices, const std::vector<int>& devices) const {
    if (given_.empty()) {
      random_indices(devices).fill(indices.data(), what_.index, shares(what_.count, devices), what_.table, 1,
                                   r_.partitions);
      return;
    }
    for (std::uint64_t i = 0; i < what_.count; ++i) put(indices.data() + i * what_.index, given_[i], what_.index);
  }

  /// Compares all results with the indices. If a scatter has equal indices, the table must contain the element of one
  /// of them, or of the last one.
  [[nodiscard]] bool right(const array<std::byte>& table, const array<std::byte>& indices,
                           const array<std::byte>& values) const {
    const std::size_t z = what_.element;
    const auto same = [&](std::uint64_t i, std::uint64_t x) {
      return std::memcmp(values.data() + i * z, table.data() + x * z, z) == 0;
    };
    std::vector<bool> written(gathers_ ? 0 : what_.table), agrees(written);
    for (std::uint64_t k = what_.count; k-- > 0;) {
      const std::uint64_t x = get(indices.data() + k * what_.index, what_.index);
      if (x >= what_.table) continue;
      if (gathers_) {
        if (!same(k, x)) return false;
        continue;
      }
      // The loop runs backwards, so the first index k with indices[k] = x that the loop reaches is the last one.
      if ((what_.equal != duplicates::last || !written[x]) && same(k, x)) agrees[x] = true;
      written[x] = true;
    }
    return written == agrees;
  }

  void answer(const devices_and_choice& chosen, double time) const {
    const double moved = static_cast<double>(what_.count) * static_cast<double>(2 * what_.element + what_.index);
    const std::string title =
        fmt::format("{} of {} elements of {} bytes, table of {}: {}, {} chunks", name(), what_.count, what_.element,
                    what_.table, name_of(chosen.how.how), chosen.how.chunks);
    command_line::answer(
        {fmt::format("hpe {}", name()),
         gathers_ ? "reads elements of a table by index" : "writes elements of a table by index",
         title,
         r_.repeats,
         command_line::names_of_devices(static_cast<int>(chosen.devices.size())),
         {{"time", 1e3 * time, "ms"},
          {"elements a second", 1e-6 * static_cast<double>(what_.count) / time, "M/s"},
          {"bytes moved", moved / time / 1e9, "GB/s"}}},
        fmt::format("{}{} in {:.3f} ms, {:.1f} million a second{}\n", r_.explain ? chosen.why : "", title, 1e3 * time,
                    1e-6 * static_cast<double>(what_.count) / time, r_.no_check ? "" : "; the result is right"),
        r_.json, r_.quiet);
  }

  const request r_;
  const bool gathers_;
  problem what_;
  std::vector<std::uint64_t> given_;  ///< indices of a file
  files::description file_;
  std::string type_;
};

int run(way direction, int argc, char** argv) {
  return command_line::guarded(direction == way::gather ? "hpe gather" : "hpe scatter", [&] {
    request r;
    command_line::read(options_of(r, direction), argc, argv);
    if (!r.help) return command(r, direction).run();
    command_line::print_help(help_text(direction));
    return 0;
  });
}

}  // namespace

}  // namespace hpe::gather

int gather_main(int argc, char** argv) { return hpe::gather::run(hpe::gather::way::gather, argc, argv); }
int scatter_main(int argc, char** argv) { return hpe::gather::run(hpe::gather::way::scatter, argc, argv); }

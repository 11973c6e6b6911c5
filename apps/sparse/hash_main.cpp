#include <fmt/core.h>

#include "apps/command_line/program.h"
#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/files/element_file.h"
#include "apps/gather/fit.h"
#include "apps/gather/model.h"
#include "apps/sparse/hash_table.h"
#include "apps/sparse/rows.h"
#include "apps/sparse/sparse_main.h"

namespace hpe::sparse {

namespace {

enum class wish { automatic, single_pass, multi_pass, partitioned };

struct request {
  bool help = false, quiet = false, no_check = false;
  std::uint64_t keys = std::uint64_t{1} << 18, queries = 0, chunks = 16;
  double present = 0.5;
  std::string file, values, ask, output, json;
  wish how = wish::automatic;
  std::uint32_t missing = 0xffffffffU;
  std::int64_t devices = 0, repeats = 5;
};

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return {
      {"SIZE|FILE", "", "the number of random keys, as in 1000 or 2^24 (2^18); or a file of keys, .npy or raw u32",
       to_size_or_file(to_whole(r.keys, 1, 1 << 30), r.file)},
      {"--values", "FILE", "a value for each key, .npy or raw u32 (the places of the keys)", to_text(r.values)},
      {"--queries", "N|FILE", "the number of random queries, or a file of keys to find (as many as there are keys)",
       to_size_or_file(to_whole(r.queries, 1, 1 << 30), r.ask)},
      {"--present", "SHARE", "the share of random queries whose key is in the table (0.5)", to_not_negative(r.present)},
      {"--missing", "VALUE", "the result of a query whose key is not in the table (4294967295)",
       to_whole(r.missing, 0, 0xffffffffLL)},
      {"--output", "FILE", "write the results to this file, .npy or raw u32", to_text(r.output)},
      {"--method", "NAME",
       "how entries are scattered and gathered: automatic, single-pass, multi-pass or partitioned (automatic: the "
       "model of `hpe gather` chooses)",
       to_one_of<wish>(r.how, {{"automatic", wish::automatic},
                               {"single-pass", wish::single_pass},
                               {"multi-pass", wish::multi_pass},
                               {"partitioned", wish::partitioned}})},
      {"--chunks", "C", "chunks of the table, for multi-pass and partitioned (16)", to_whole(r.chunks, 1, 256)},
      devices_option(r.devices),
      repeats_option(r.repeats),
      {"--no-check", "", "do not compare the results with results that the host computes", to_flag(r.no_check)},
      json_option(r.json),
      quiet_option(r.quiet),
      help_option(r.help)};
}

std::string help_text() {
  request defaults;
  return fmt::format(
      "Usage: hpe hash [options] [SIZE|FILE]\n\nBuilds a hash table of keys and values on the first device, by "
      "scatters, and finds keys in it, by gathers.\n\n{}\nExamples:\n  hpe hash 2^24 --queries 2^26 --present 0.9\n"
      "  hpe hash keys.npy --values values.npy --queries wanted.npy --output found.npy\n",
      command_line::lines_of_help(options_of(defaults)));
}

method_choice choice_for(const request& r) {
  const auto chunks = static_cast<std::uint32_t>(r.chunks);
  switch (r.how) {
    case wish::single_pass: return [](const gather::problem&) { return gather::choice{}; };
    case wish::multi_pass:
      return [chunks](const gather::problem&) { return gather::choice{gather::method::multi_pass, chunks}; };
    case wish::partitioned:
      return [chunks](const gather::problem&) { return gather::choice{gather::method::partitioned, chunks}; };
    case wish::automatic: break;
  }
  const auto told = [quiet = r.quiet](const std::string& step) {
    if (!quiet) fmt::print(stderr, "measuring {}, once for this machine\n", step);
  };
  return [machine = gather::fitted(0, false, told)](const gather::problem& what) {
    return gather::choices(machine, what).front().how;
  };
}

array<std::uint32_t> numbers(const std::string& path) {
  const files::description given = files::describe(path);
  given.must_hold("u32");
  array<std::uint32_t> all(given.elements(sizeof(std::uint32_t)), on_device(0));
  files::read(given, all.data());
  return all;
}

array<std::uint64_t> entries_of(const request& r) {
  const array<std::uint32_t> keys = r.file.empty() ? array<std::uint32_t>() : numbers(r.file);
  const array<std::uint32_t> values = r.values.empty() ? array<std::uint32_t>() : numbers(r.values);
  const std::uint64_t count = r.file.empty() ? r.keys : keys.size();
  if (values.data() != nullptr && values.size() != count)
    throw bad_input(fmt::format("{} has {} values for {} keys", r.values, values.size(), count));
  array<std::uint64_t> entries(count, on_device(0));
  for (std::uint64_t i = 0; i < count; ++i) {
    // The factor is odd, so all random keys differ.
    const std::uint32_t key = r.file.empty() ? static_cast<std::uint32_t>(i) * 0x9e3779b1U : keys[i];
    const auto value = values.data() != nullptr ? values[i] : static_cast<std::uint32_t>(i);
    entries[i] = std::uint64_t{value} << 32 | key;
    if (entries[i] == kernels::hash_empty)
      throw bad_input(
          fmt::format("key {0} with value {0}, at place {1}, marks an empty slot and cannot be stored", key, i));
  }
  return entries;
}

array<std::uint32_t> queries_of(const request& r, std::uint64_t keys, const array<std::uint64_t>& entries) {
  if (!r.ask.empty()) return numbers(r.ask);
  array<std::uint32_t> all(r.queries != 0 ? r.queries : keys, on_device(0));
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    const std::uint64_t bits = scrambled(i, 5);
    const bool present = static_cast<double>(bits >> 40) * 0x1p-24 < r.present;
    all[i] = present ? kernels::hash_key_of(entries[bits % keys]) : static_cast<std::uint32_t>(bits >> 8);
  }
  return all;
}

/// A hash table on the host, with open addressing and linear probing.
class host_table {
 public:
  explicit host_table(const array<std::uint64_t>& entries) {
    std::uint64_t size = 16;
    while (size < 2 * entries.size()) size *= 2;
    slots_.assign(size, kernels::hash_empty);
    for (const std::uint64_t e : entries) {
      std::uint64_t at = slot(kernels::hash_key_of(e));
      while (slots_[at] != kernels::hash_empty) at = (at + 1) % size;
      slots_[at] = e;
    }
  }
  /// Whether `result` is one of the values of the key or, if the table does not contain the key, equals `missing`.
  [[nodiscard]] bool agrees(std::uint32_t key, std::uint32_t result, std::uint32_t missing) const {
    bool present = false;
    for (std::uint64_t at = slot(key); slots_[at] != kernels::hash_empty; at = (at + 1) % slots_.size()) {
      if (kernels::hash_key_of(slots_[at]) != key) continue;
      if (kernels::hash_value_of(slots_[at]) == result) return true;
      present = true;
    }
    return !present && result == missing;
  }

 private:
  [[nodiscard]] std::uint64_t slot(std::uint32_t key) const {
    return (key * 0x9e3779b97f4a7c15U >> 20) % slots_.size();
  }
  std::vector<std::uint64_t> slots_;
};

int run(const request& r) {
  check_one_device(r.devices);
  if (r.present > 1) throw bad_input(fmt::format("--present is {}; a share from 0 to 1 is possible", r.present));
  command_line::check_outputs({r.output, r.json}, {r.file, r.values, r.ask});
  // 46 bytes for each key: the entry, its slots in the table, and its place in two lists of entries that move to the
  // next level. 36 bytes for each query: the key, the result, the slot, the entry found there, and the lists.
  const double bytes =
      46.0 * static_cast<double>(r.keys) + 36.0 * static_cast<double>(r.queries != 0 ? r.queries : r.keys);
  command_line::check_room(fmt::format("a hash table of {} keys", r.keys), {bytes, 2 * bytes}, 1);
  const array<std::uint64_t> entries = entries_of(r);
  const array<std::uint32_t> queries = queries_of(r, entries.size(), entries);
  const array<std::uint32_t> results(queries.size(), on_device(0));
  const method_choice choose = choice_for(r);
  const double building = command_line::median_seconds(
      r.repeats, r.quiet, [&] { const hash_table table(entries.data(), entries.size(), 0, choose); });
  hash_table table(entries.data(), entries.size(), 0, choose);
  const double finding = command_line::median_seconds(
      r.repeats, r.quiet, [&] { table.find(queries.data(), queries.size(), results.data(), r.missing, choose); });
  if (!r.no_check) {
    const host_table expected(entries);
    for (std::uint64_t i = 0; i < queries.size(); ++i)
      if (!expected.agrees(queries[i], results[i], r.missing)) {
        fmt::print(stderr, "hpe hash: the result of query {}, key {}, is wrong\n", i, queries[i]);
        return command_line::failed;
      }
  }
  if (!r.output.empty()) files::write(r.output, "u32", {results.size()}, results.data(), sizeof(std::uint32_t));
  const auto rate = [](std::uint64_t count, double time) { return 1e-6 * static_cast<double>(count) / time; };
  const std::string title = fmt::format("hash table of {} keys, {} queries", entries.size(), queries.size());
  command_line::answer({"hpe hash",
                        "builds a hash table by scatters and searches it by gathers",
                        title,
                        r.repeats,
                        command_line::names_of_devices(1),
                        {{"building", 1e3 * building, "ms"},
                         {"keys a second", rate(entries.size(), building), "M/s"},
                         {"finding", 1e3 * finding, "ms"},
                         {"queries a second", rate(queries.size(), finding), "M/s"},
                         {"levels", static_cast<double>(table.levels()), ""}}},
                       fmt::format("{}: built in {:.3f} ms, {:.1f} million keys a second, {} levels; found in {:.3f} "
                                   "ms, {:.1f} million queries a "
                                   "second{}\n",
                                   title, 1e3 * building, rate(entries.size(), building), table.levels(), 1e3 * finding,
                                   rate(queries.size(), finding), r.no_check ? "" : "; the results are right"),
                       r.json, r.quiet);
  return 0;
}

}  // namespace

}  // namespace hpe::sparse

int hash_main(int argc, char** argv) {
  using namespace hpe;
  return command_line::guarded("hpe hash", [&] {
    sparse::request r;
    command_line::read(sparse::options_of(r), argc, argv);
    if (!r.help) return sparse::run(r);
    hpe::command_line::print_help(sparse::help_text());
    return 0;
  });
}

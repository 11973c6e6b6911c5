#include "apps/sort/sort_main.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>

#include "apps/command_line/program.h"
#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "apps/command_line/values.h"
#include "apps/command_line/wrapping.h"
#include "apps/files/element_file.h"
#include "apps/sort/sorter.h"

namespace hpe::sort {

namespace {

using command_line::bad_input;

constexpr const char* about = "stable sorts over all devices";

struct request {
  bool help = false, quiet = false;
  std::uint64_t length = std::uint64_t{1} << 22;
  std::string input, output, json;
  std::string type;  // empty: the type in the file, else u32
  method how = method::automatic;
  std::int64_t devices = 0, repeats = 5;
  bool explain = false;
  bool no_check = false;
};

std::vector<std::string> types() {
  return {
#define HPE_SORT(name, ...) #name,
#include "kernels/sort.def"
#undef HPE_SORT
  };
}

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return {
      {"SIZE|FILE", "",
       "the number of random elements, as in 1000, 2^28 or 64M (default: 4194304); or a file of elements: .npy, "
       "or raw as in memory",
       to_size_or_file(to_whole(r.length, 1), r.input)},
      {"--type", "TYPE",
       "i32, u32, i64, u64, f32 or f64; or a key with a value: u32_u32, u64_u64 or f32_u32 (default: the type in the "
       ".npy file, else u32)",
       to_word(r.type, types())},
      {"--method", "NAME",
       "merge: each device sorts its part, then parts are merged; radix: each element moves once, to its final device; "
       "or auto (auto: radix for many elements on soft devices and for many pairs on GPUs, else merge)",
       to_one_of<method>(r.how, {{"auto", method::automatic}, {"merge", method::merge}, {"radix", method::radix}})},
      {"--output", "FILE", "write the sorted elements to this file: .npy if its name ends in .npy, else raw",
       to_text(r.output)},
      devices_option(r.devices),
      repeats_option(r.repeats),
      {"--explain", "", "print the choices and their reasons", to_flag(r.explain)},
      {"--no-check", "", "do not compare the result with a sort on the host", to_flag(r.no_check)},
      json_option(r.json),
      quiet_option(r.quiet),
      help_option(r.help),
  };
}

std::string help_text() {
  request defaults;
  return "Usage: hpe sort [options] [SIZE|FILE]\n\n"
         "Sorts elements on all devices, by merges of sorted parts or by radix. Equal elements keep their order.\n\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe sort 2^28 --type f32\n"
         "  hpe sort 2^24 --method radix --explain\n"
         "  hpe sort in.npy --output out.npy\n";
}

template <class T>
void set(T& element, std::uint64_t key, std::size_t place) {
  if constexpr (requires { element.value; })
    element = {static_cast<decltype(element.key)>(key), static_cast<decltype(element.value)>(place)};
  else
    element = static_cast<T>(key);
}

template <class T>
auto key_of(const T& element) {
  if constexpr (requires { element.key; })
    return element.key;
  else
    return element;
}

/// Returns random elements. Their keys have so few different values that some keys are equal.
template <class T>
std::vector<T> random_elements(std::size_t count) {
  std::minstd_rand random(1);
  std::vector<T> all(count);
  for (std::size_t i = 0; i < count; ++i) set(all[i], random() >> 8, i);
  return all;
}

template <class T>
bool same(const T& a, const T& b) {
  if constexpr (requires { a.value; })
    return a.key == b.key && a.value == b.value;
  else
    return a == b;
}

/// Returns the elements to sort, in ordinary memory. Each run begins with a copy of these elements.
template <class T>
std::vector<T> given_elements(const request& r, const files::description& file) {
  if (r.input.empty()) return random_elements<T>(r.length);
  std::vector<T> all(r.length);
  files::read(file, all.data());
  const auto nan = std::find_if(all.begin(), all.end(), [](const T& v) { return key_of(v) != key_of(v); });
  if (nan != all.end())
    throw bad_input(
        fmt::format("{}: element {} is not a number (NaN), so it cannot be sorted", r.input, nan - all.begin()));
  return all;
}

template <class T>
int run(request r, const files::description& file) {
  const int devices = command_line::devices_of(r.devices);
  if (!r.input.empty()) r.length = file.elements(sizeof(T));
  if (file.shape.size() > 1)
    throw bad_input(fmt::format("{} has {} axes; hpe sort accepts one", r.input, file.shape.size()));
  const double bytes = static_cast<double>(r.length) * sizeof(T);
  command_line::check_room(fmt::format("{} elements of {} bytes", r.length, sizeof(T)),
                           {2 * bytes, (r.no_check ? 1 : 2) * bytes}, devices);
  command_line::check_outputs({r.output, r.json}, {r.input});

  std::vector<int> numbers(static_cast<std::size_t>(devices));
  std::iota(numbers.begin(), numbers.end(), 0);
  sorter work(element_of<T>(), r.length, numbers, r.how);
  std::vector<T> given = given_elements<T>(r, file);
  const array<T> data(r.length, work.where());
  const double time = command_line::median_seconds(
      r.repeats, r.quiet, [&] { work.run(data.data()); },
      [&] { copy(data.data(), given.data(), r.length * sizeof(T)); });
  if (!r.no_check) {
    std::stable_sort(given.begin(), given.end(), kernels::by_key{});
    if (!std::equal(given.begin(), given.end(), data.begin(), same<T>)) {
      fmt::print(stderr, "hpe sort: the result is wrong\n");
      return command_line::failed;
    }
  }
  if (!r.output.empty()) files::write(r.output, r.type, {r.length}, data.data(), sizeof(T));
  const double rate = static_cast<double>(r.length) / time;
  const std::string title = fmt::format("{} elements of the type {}, method {}", r.length, r.type, name_of(work.how()));
  command_line::answer({"hpe sort",
                        about,
                        title,
                        r.repeats,
                        command_line::names_of_devices(devices),
                        {{"time", 1e3 * time, "ms"}, {"elements a second", 1e-6 * rate, "M/s"}}},
                       fmt::format("{}{} element{} in {:.3f} ms, {:.1f} million a second{}\n",
                                   r.explain ? work.explain() + "\n" : "", r.length, r.length == 1 ? "" : "s",
                                   1e3 * time, 1e-6 * rate, r.no_check ? "" : "; the result is right"),
                       r.json, r.quiet);
  return 0;
}

int run_type(request r) {
  files::description file;
  if (!r.input.empty()) file = files::describe(r.input);
  if (r.type.empty()) r.type = file.npy ? file.type : "u32";
  file.must_hold(r.type);
#define HPE_SORT_PAIR(K, V) kernels::sort_pair<K, V>
#define HPE_SORT(name, ...) \
  if (r.type == #name) return run<__VA_ARGS__>(r, file);
#include "kernels/sort.def"
#undef HPE_SORT
#undef HPE_SORT_PAIR
  throw bad_input(fmt::format(
      "{} holds elements of the type {}, for which hpe sort has no kernels; --help lists the types", r.input, r.type));
}

}  // namespace

}  // namespace hpe::sort

int sort_main(int argc, char** argv) {
  return hpe::command_line::guarded("hpe sort", [&] {
    hpe::sort::request r;
    hpe::command_line::read(hpe::sort::options_of(r), argc, argv);
    if (!r.help) return hpe::sort::run_type(r);
    hpe::command_line::print_help(hpe::sort::help_text());
    return 0;
  });
}

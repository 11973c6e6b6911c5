#include "apps/sort/sort_main.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <random>

#include "apps/command_line/values.h"
#include "apps/sort/sorter.h"

namespace hpe::sort {

namespace {

using command_line::bad_input;

struct request {
  bool help = false;
  std::string type = "u32";
  std::uint64_t length = std::uint64_t{1} << 22;
  std::uint64_t devices = 0;
  std::uint64_t repeats = 5;
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
      {"--length", "N", "elements, as in 1000, 2^28 or 64M (4194304)", to_whole(r.length)},
      {"--type", "TYPE", "i32, u32, i64, u64, f32, f64, or a key and its value: u32_u32, u64_u64, f32_u32 (u32)",
       to_word(r.type, types())},
      {"--devices", "N", "use the first N devices (all; HPE_DEVICES=soft:N makes N)", to_whole(r.devices)},
      {"--repeats", "N", "timed runs; the median is told (5)", to_whole(r.repeats, 1)},
      {"--explain", "", "tell what was chosen, and why", to_flag(r.explain)},
      {"--no-check", "", "do not compare the result with a sort on the host", to_flag(r.no_check)},
      {"--help", "", "this text", to_flag(r.help)},
  };
}

std::string help_text() {
  constexpr std::size_t column = 17;
  request defaults;
  return "usage: hpe sort [options]\n"
         "Sorts random elements on all devices: each sorts a part, then parts are merged two by two. Equal elements "
         "keep\n"
         "their order.\n\n" +
         command_line::lines_of_help(options_of(defaults), column);
}

request parse(int argc, char** argv) {
  request r;
  command_line::read(options_of(r), argc, argv);
  if (!r.help && r.devices > static_cast<std::uint64_t>(device_count()))
    throw bad_input(fmt::format("--devices {}: there are {}", r.devices, device_count()));
  return r;
}

template <class T>
void set(T& element, std::uint64_t key, std::size_t place) {
  if constexpr (requires { element.value; })
    element = {static_cast<decltype(element.key)>(key), static_cast<decltype(element.value)>(place)};
  else
    element = static_cast<T>(key);
}

/// Few enough kinds of keys that some are equal.
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

template <class T>
int run(const request& r) {
  std::vector<int> devices;
  for (std::uint64_t d = 0; d < r.devices; ++d) devices.push_back(static_cast<int>(d));
  sorter work(element_of<T>(), r.length, devices);
  std::vector<T> given = random_elements<T>(r.length);
  const array<T> data(r.length, work.where());
  std::vector<double> times;
  for (std::uint64_t i = 0; i < r.repeats + 1; ++i) {
    copy(data.data(), given.data(), r.length * sizeof(T));
    synchronize();
    const auto begin = std::chrono::steady_clock::now();
    work.run(data.data());
    synchronize();
    if (i > 0) times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  if (!r.no_check) {
    std::stable_sort(given.begin(), given.end(), kernels::by_key{});
    if (!std::equal(given.begin(), given.end(), data.begin(), same<T>)) {
      fmt::print(stderr, "hpe sort: the result is wrong\n");
      return 1;
    }
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  const double time = times[times.size() / 2];
  if (r.explain) fmt::print("{}\n", work.explain());
  fmt::print("{} elements in {:.3f} ms, {:.1f} million a second{}\n", r.length, 1e3 * time,
             1e-6 * static_cast<double>(r.length) / time, r.no_check ? "" : "; the result is right");
  return 0;
}

int run_type(const request& r) {
#define HPE_SORT_PAIR(K, V) kernels::sort_pair<K, V>
#define HPE_SORT(name, ...) \
  if (r.type == #name) return run<__VA_ARGS__>(r);
#include "kernels/sort.def"
#undef HPE_SORT
#undef HPE_SORT_PAIR
  throw bad_input("--type " + r.type + ": it is among the types, but there are no kernels for it");
}

}  // namespace

}  // namespace hpe::sort

int sort_main(int argc, char** argv) {
  try {
    const hpe::sort::request r = hpe::sort::parse(argc, argv);
    if (r.help) {
      std::fputs(hpe::sort::help_text().c_str(), stdout);
      return 0;
    }
    return hpe::sort::run_type(r);
  } catch (const hpe::sort::bad_input& e) {
    std::fprintf(stderr, "hpe sort: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hpe sort: %s\n", e.what());
    return 1;
  }
}

#include "apps/sort/sort_main.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <random>
#include <stdexcept>
#include <string_view>

#include "apps/sort/sorter.h"

namespace hpe::sort {

namespace {

struct bad_input : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct request {
  std::string type = "u32";
  std::uint64_t length = std::uint64_t{1} << 22;
  std::uint64_t devices = 0;
  std::uint64_t repeats = 5;
  bool check = true;
};

constexpr const char* help =
    "usage: hpe sort [options]\n"
    "Sorts random elements on all devices: each sorts a part, then parts are merged two by two. Equal elements keep\n"
    "their order.\n\n"
    "  --length N     elements (4194304)\n"
    "  --type TYPE    i32, u32, i64, u64, f32, f64, or a key and its value: u32_u32, u64_u64, f32_u32 (u32)\n"
    "  --devices N    use the first N devices (all; HPE_DEVICES=soft:N makes N)\n"
    "  --repeats N    timed runs; the median is told (5)\n"
    "  --no-check     do not compare the result with a sort on the host\n"
    "  --help         this text\n";

std::uint64_t number(std::string_view name, std::string_view text) {
  std::uint64_t value = 0;
  const auto [rest, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || rest != text.data() + text.size())
    throw bad_input(fmt::format("{} {}: it must be a whole number", name, text));
  return value;
}

request parse(int argc, char** argv) {
  request r;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--no-check") {
      r.check = false;
      continue;
    }
    const bool known = name == "--length" || name == "--type" || name == "--devices" || name == "--repeats";
    if (!known) throw bad_input(fmt::format("unknown option {}; --help lists them", name));
    if (i + 1 == argc) throw bad_input(fmt::format("{} needs a value", name));
    const std::string_view value = argv[++i];
    if (name == "--type")
      r.type = value;
    else
      (name == "--length" ? r.length : name == "--devices" ? r.devices : r.repeats) = number(name, value);
  }
  if (r.repeats == 0) throw bad_input("--repeats 0: one run is the least");
  if (r.devices > static_cast<std::uint64_t>(device_count()))
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
  if (r.check) {
    std::stable_sort(given.begin(), given.end(), kernels::by_key{});
    if (!std::equal(given.begin(), given.end(), data.begin(), same<T>)) {
      fmt::print(stderr, "hpe sort: the result is wrong\n");
      return 1;
    }
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  const double time = times[times.size() / 2];
  fmt::print("{} elements in {:.3f} ms, {:.1f} million a second{}\n", r.length, 1e3 * time,
             1e-6 * static_cast<double>(r.length) / time, r.check ? "; the result is right" : "");
  return 0;
}

int run_type(const request& r) {
  std::string known;
#define HPE_SORT_PAIR(K, V) kernels::sort_pair<K, V>
#define HPE_SORT(name, ...)                        \
  if (r.type == #name) return run<__VA_ARGS__>(r); \
  known += " " #name;
#include "kernels/sort.def"
#undef HPE_SORT
#undef HPE_SORT_PAIR
  throw bad_input(fmt::format("--type {}: possible are{}", r.type, known));
}

}  // namespace

}  // namespace hpe::sort

int sort_main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string_view(argv[1]) == "--help") {
      std::fputs(hpe::sort::help, stdout);
      return 0;
    }
    return hpe::sort::run_type(hpe::sort::parse(argc, argv));
  } catch (const hpe::sort::bad_input& e) {
    std::fprintf(stderr, "hpe sort: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hpe sort: %s\n", e.what());
    return 1;
  }
}

#include "apps/gather/index_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "apps/files/descriptor.h"
#include "apps/files/element_file.h"

namespace hpe::gather {

namespace {

using json = nlohmann::json;
using list = std::vector<std::uint64_t>;

std::uint64_t number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value > largest_index)
    throw bad_input(fmt::format("\"{}\" is not a number from 0 to {}", text, largest_index));
  return value;
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

list numbers_in(std::string_view text) {
  list all;
  for (const std::string_view part : parts_of(text, ',')) all.push_back(number_in(part));
  return all;
}

void check_length(std::uint64_t length, std::uint64_t most) {
  if (length == 0 || length > most)
    throw bad_input(fmt::format("a pattern of {} indices; from 1 to {} are possible", length, most));
}

/// Returns the index `last` + `gap`.
std::uint64_t behind(std::uint64_t last, std::uint64_t gap) {
  if (last > largest_index - gap)
    throw bad_input(fmt::format("an index beyond {}, the largest possible index", largest_index));
  return last + gap;
}

list uniform(std::uint64_t length, std::uint64_t gap, std::uint64_t most) {
  check_length(length, most);
  list all{0};
  while (all.size() < length) all.push_back(behind(all.back(), gap));
  return all;
}

/// Returns indices with stride 1, except that the stride at places[i] is gaps[i], or gaps[0] if there is only one gap.
list mostly_one(std::uint64_t length, const list& places, const list& gaps, std::uint64_t most) {
  check_length(length, most);
  if (gaps.size() != 1 && gaps.size() != places.size())
    throw bad_input(fmt::format("{} places of gaps are given, but {} gaps", places.size(), gaps.size()));
  list step(length, 1);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] == 0 || places[i] >= length)
      throw bad_input(fmt::format("a gap at place {}; the place must be above 0 and below the number of indices, {}",
                                  places[i], length));
    step[places[i]] = gaps.size() == 1 ? gaps[0] : gaps[i];
  }
  list all{0};
  while (all.size() < length) all.push_back(behind(all.back(), step[all.size()]));
  return all;
}

/// Returns the indices of a stencil on a grid of `size` cells along each dimension.
list laplacian(std::uint64_t dimensions, std::uint64_t order, std::uint64_t size) {
  if (dimensions < 1 || dimensions > 3)
    throw bad_input(fmt::format("a stencil of {} dimensions; 1 to 3 are possible", dimensions));
  if (order < 1 || order > 1024 || size < 1 || size > (1U << 15))
    throw bad_input(
        fmt::format("a stencil of order {} on a grid of {} cells along each axis; 1 to 1024 (order) and 1 to 32768 "
                    "(cells) are possible",
                    order, size));
  std::uint64_t stride = 1;
  for (std::uint64_t d = 1; d < dimensions; ++d) stride *= size;
  const std::uint64_t middle = order * stride;
  list all{middle};
  for (; stride > 0; stride = stride == 1 ? 0 : stride / size)
    for (std::uint64_t k = 1; k <= order; ++k) all.insert(all.end(), {middle - k * stride, middle + k * stride});
  std::sort(all.begin(), all.end());
  return all;
}

list named_pattern(std::string_view text, std::uint64_t most) {
  const auto parts = parts_of(text, ':');
  const auto must_have = [&](std::size_t count, const char* form) {
    if (parts.size() != count)
      throw bad_input(fmt::format("the pattern \"{}\" is invalid; the form is {}", text, form));
  };
  if (parts[0] == "UNIFORM") {
    must_have(3, "UNIFORM:LENGTH:GAP");
    return uniform(number_in(parts[1]), number_in(parts[2]), most);
  }
  if (parts[0] == "MS1") {
    must_have(4, "MS1:LENGTH:PLACES:GAPS");
    return mostly_one(number_in(parts[1]), numbers_in(parts[2]), numbers_in(parts[3]), most);
  }
  if (parts[0] == "LAPLACIAN") {
    must_have(4, "LAPLACIAN:DIMENSIONS:ORDER:SIZE");
    return laplacian(number_in(parts[1]), number_in(parts[2]), number_in(parts[3]));
  }
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0)
    throw bad_input(fmt::format("the pattern \"{}\" is neither UNIFORM, MS1, LAPLACIAN nor a list of numbers", text));
  return numbers_in(text);
}

std::uint64_t number_of(const json& value, const std::string& name) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<std::int64_t>() < 0) ||
      value.get<std::uint64_t>() > largest_index)
    throw bad_input(fmt::format("\"{}\" has the value {}; a whole number from 0 to {} is possible", name,
                                value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40),
                                largest_index));
  return value.get<std::uint64_t>();
}

list numbers_of(const json& value, const std::string& name) {
  if (!value.is_array()) return {number_of(value, name)};
  list all;
  for (const json& v : value) all.push_back(number_of(v, name));
  if (all.empty()) throw bad_input(fmt::format("\"{}\" is an empty list", name));
  return all;
}

list indices_of(const json& what, std::uint64_t most) {
  if (!what.is_object()) throw bad_input("a pattern is not an object");
  std::string kernel =
      what.contains("kernel") && what["kernel"].is_string() ? what["kernel"].get<std::string>() : "gather";
  for (char& c : kernel) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (kernel != "gather" && kernel != "scatter")
    throw bad_input("its kernel is neither Gather nor Scatter; other kernels have several patterns");
  if (!what.contains("pattern")) throw bad_input("\"pattern\" is missing");
  const json& given = what["pattern"];
  const list pattern = given.is_string() ? named_pattern(given.get<std::string>(), most) : numbers_of(given, "pattern");
  const bool stencil = given.is_string() && given.get<std::string>().starts_with("LAPLACIAN");
  const list deltas = what.contains("delta") ? numbers_of(what["delta"], "delta") : list{stencil ? 1U : 8U};
  const char* const name = what.contains("count") ? "count" : "length";
  const std::uint64_t count = what.contains(name) ? number_of(what[name], name) : 1024;
  if (count == 0 || count > most / pattern.size())
    throw bad_input(fmt::format("{} repetitions of a pattern of {} indices; from 1 to {} indices in all are possible",
                                count, pattern.size(), most));
  list all;
  all.reserve(count * pattern.size());
  std::uint64_t begin = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    for (const std::uint64_t p : pattern) all.push_back(behind(p, begin));
    begin = behind(begin, deltas[i % deltas.size()]);
  }
  return all;
}

template <class Integer>
list read_npy(const files::description& file) {
  std::vector<Integer> given(file.elements(sizeof(Integer)));
  files::read(file, given.data());
  const auto negative = std::find_if(given.begin(), given.end(), [](Integer x) { return x < Integer{0}; });
  if (negative != given.end())
    throw bad_input(
        fmt::format("{}: index {} at place {} is negative", file.path, *negative, negative - given.begin()));
  return {given.begin(), given.end()};
}

}  // namespace

list indices_of_json(const std::string& text, std::uint64_t pattern, const std::string& file, std::uint64_t most) {
  try {
    const json all = json::parse(text);
    if (!all.is_array()) throw bad_input("the text is not a list of patterns");
    if (pattern >= all.size())
      throw bad_input(
          fmt::format("there is no pattern {}; the file has {} patterns, numbered from 0", pattern, all.size()));
    return indices_of(all[pattern], most);
  } catch (const json::exception& wrong) {
    throw bad_input(fmt::format("{}: {}", file, wrong.what()));
  } catch (const bad_input& wrong) {
    throw bad_input(fmt::format("{}: {}", file, wrong.what()));
  }
}

list read_indices(const std::string& path, std::uint64_t pattern) {
  if (path.ends_with(".json")) {
    std::ifstream file(path);
    if (!file) throw bad_input("cannot read " + path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (const std::string container = files::container_of(text); !container.empty())
      throw bad_input(fmt::format("{}: {}", path, container));
    return indices_of_json(text, pattern, path);
  }
  const files::description file = files::describe(path);
  if (!file.npy) throw bad_input(path + " is neither .npy nor .json");
  if (file.shape.size() > 1) throw bad_input(fmt::format("{} has {} axes; indices have one", path, file.shape.size()));
  if (file.type == "i32") return read_npy<std::int32_t>(file);
  if (file.type == "u32") return read_npy<std::uint32_t>(file);
  if (file.type == "i64") return read_npy<std::int64_t>(file);
  if (file.type == "u64") return read_npy<std::uint64_t>(file);
  throw bad_input(fmt::format("{} holds elements of the type {}; indices are i32, u32, i64 or u64", path, file.type));
}

}  // namespace hpe::gather

// The format: magic bytes, version, the header's length, and the header, a Python dictionary as text, padded so that
// the data begin at a multiple of 64 bytes (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).

#include "apps/files/element_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>

#include "apps/files/descriptor.h"

namespace hpe::files {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::string_view possible = "i32, i64, u32, u64, f32, f64, c64 and c128, little-endian";

/// NumPy's name of a type, "<f4" for f32. A pair is a list of two fields.
std::string numpy_type(const std::string& type) {
  if (const std::size_t cut = type.find('_'); cut != std::string::npos)
    return fmt::format("[('key', '{}'), ('value', '{}')]", numpy_type(type.substr(0, cut)),
                       numpy_type(type.substr(cut + 1)));
  return fmt::format("<{}{}", type[0], std::stoi(type.substr(1)) / 8);
}

std::optional<std::string> own_type(std::string_view numpy) {
  for (const char* const type : {"i32", "i64", "u32", "u64", "f32", "f64", "c64", "c128"})
    if (numpy_type(type) == numpy) return type;
  return std::nullopt;
}

/// The value of 'key' in the dictionary, up to the comma that ends it.
std::string_view entry(std::string_view header, const std::string& key) {
  std::size_t at = header.find("'" + key + "':");
  if (at == std::string_view::npos) return "";
  at = header.find_first_not_of(' ', at + key.size() + 3);
  int depth = 0;
  for (std::size_t end = at; end < header.size(); ++end) {
    const char c = header[end];
    if (depth == 0 && (c == ',' || c == '}')) return header.substr(at, end - at);
    depth += c == '(' || c == '[' ? 1 : (c == ')' || c == ']' ? -1 : 0);
  }
  return "";
}

/// All quoted strings of a text, without the quotes.
std::vector<std::string_view> quoted(std::string_view text) {
  std::vector<std::string_view> all;
  for (std::size_t open = 0; (open = text.find('\'', open)) != std::string_view::npos;) {
    const std::size_t close = text.find('\'', open + 1);
    if (close == std::string_view::npos) break;
    all.push_back(text.substr(open + 1, close - open - 1));
    open = close + 1;
  }
  return all;
}

std::string type_in(const std::string& path, std::string_view descr) {
  const auto words = quoted(descr);
  if (descr.starts_with("'") && words.size() == 1) {
    if (const auto type = own_type(words[0])) return *type;
  } else if (descr.starts_with("[") && words.size() == 4) {
    const auto key = own_type(words[1]), value = own_type(words[3]);
    if (key && value) return *key + "_" + *value;
  }
  throw bad_input(
      fmt::format("{} holds elements of the type {}; possible are {}, and pairs of them", path, descr, possible));
}

std::vector<std::uint64_t> shape_in(const std::string& path, std::string_view text) {
  std::vector<std::uint64_t> shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (*at == '(' || *at == ')' || *at == ',' || *at == ' ') {
      ++at;
      continue;
    }
    const auto [stop, failure] = std::from_chars(at, end, shape.emplace_back());
    if (failure != std::errc()) throw bad_input(fmt::format("{} has a header without a shape: {}", path, text));
    at = stop;
  }
  return shape;
}

/// Reads the header of a .npy file of `size` bytes.
description read_header(const std::string& path, const descriptor& file, std::uint64_t size) {
  const auto refuse = [&](const std::string& what) { return bad_input(path + " is no .npy file: " + what); };
  unsigned char head[12]{};
  const std::uint64_t got = file.read_at(head, sizeof(head), 0);
  if (got < 10 || std::memcmp(head, magic.data(), magic.size()) != 0) throw refuse("the magic bytes are missing");
  const unsigned version = head[6];
  if (version < 1 || version > 3) throw refuse(fmt::format("its version is {}; 1, 2 and 3 are known", version));
  std::uint64_t length = head[8] + (std::uint64_t{head[9]} << 8);
  if (version > 1) length += (std::uint64_t{head[10]} << 16) + (std::uint64_t{head[11]} << 24);
  description d{path, true, "", {}, (version > 1 ? 12 : 10) + length, 0};
  if (d.begin > size) throw refuse("it ends in its header");
  std::string header(length, '\0');
  if (file.read_at(header.data(), length, d.begin - length) != length) throw refuse("it ends in its header");
  d.type = type_in(path, entry(header, "descr"));
  if (entry(header, "fortran_order") != "False")
    throw bad_input(path + " is in Fortran order, the first axis fastest; numpy.ascontiguousarray turns it");
  d.shape = shape_in(path, entry(header, "shape"));
  d.bytes = size - d.begin;
  return d;
}

}  // namespace

bool is_npy(const std::string& path) { return path.ends_with(".npy"); }

std::uint64_t description::elements(std::size_t size) const {
  double wanted = npy ? static_cast<double>(size) : static_cast<double>(bytes);
  for (const std::uint64_t n : shape) wanted *= static_cast<double>(n);
  if (bytes == 0 || bytes % size != 0 || wanted != static_cast<double>(bytes))
    throw bad_input(
        npy ? fmt::format("{} has {} bytes of data, but the shape ({}) of elements of {} bytes takes {:.0f}", path,
                          bytes, fmt::join(shape, ", "), size, wanted)
            : fmt::format("{} has {} bytes, which is no number of elements of {} bytes", path, bytes, size));
  return bytes / size;
}

void description::must_hold(const std::string& wanted) const {
  if (npy && type != wanted)
    throw bad_input(fmt::format("{} holds elements of the type {}; expected {}", path, type, wanted));
}

description describe(const std::string& path) {
  const descriptor file = open_to_read(path);
  const std::uint64_t size = size_of(file, path);
  if (is_npy(path)) return read_header(path, file, size);
  return {path, false, "", {}, 0, size};
}

void read(const description& file, void* to) {
  const descriptor opened = open_to_read(file.path);
  if (opened.read_at(to, file.bytes, file.begin) == file.bytes) return;
  throw bad_input(file.path + " cannot be read to its end: " + (errno != 0 ? reason() : "it has become shorter"));
}

void write(const std::string& path, const std::string& type, const std::vector<std::uint64_t>& shape, const void* from,
           std::size_t size) {
  descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  std::string header;
  if (is_npy(path)) {
    std::string text = fmt::format("{{'descr': {0}{1}{0}, 'fortran_order': False, 'shape': ({2}{3}), }}",
                                   type.find('_') == std::string::npos ? "'" : "", numpy_type(type),
                                   fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
    constexpr std::size_t before = 10, multiple = 64;
    text.append((2 * multiple - (before + text.size() + 1) % multiple) % multiple, ' ').append("\n");
    header = std::string(magic) + std::string("\x01\0", 2) + static_cast<char>(text.size() & 255) +
             static_cast<char>(text.size() >> 8) + text;
  }
  const std::uint64_t elements = std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
  const bool opened = file.good();
  if (opened && file.write(header.data(), header.size()) && file.write(from, elements * size) && file.close()) return;
  const std::string why = reason();
  if (opened && std::filesystem::is_regular_file(path)) std::filesystem::remove(path);
  throw std::runtime_error("cannot write " + path + ": " + why);
}

}  // namespace hpe::files

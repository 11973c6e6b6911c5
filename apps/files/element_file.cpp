// A .npy file begins with magic bytes, a version, and the length of the header. The header follows: a Python dictionary
// as text, padded so that the data begin at a multiple of 64 bytes
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).

#include "apps/files/element_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>

#include "apps/files/descriptor.h"
#include "apps/files/python_literal.h"
#include "runtime/os/output_file.h"

namespace hpe::files {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::array endings_of_containers{".gz", ".bz2", ".xz", ".zst", ".zip", ".npz"};
constexpr std::string_view possible = "i32, i64, u32, u64, f32, f64, c64 and c128, little-endian";

/// Returns NumPy's name of a type: "<f4" for f32, and a list of two fields for a pair.
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

std::string type_in(const std::string& path, const python_literal& descr) {
  using kind = python_literal::kind;
  const auto own = [](const python_literal& p) { return p.is == kind::text ? own_type(p.text) : std::nullopt; };
  if (const auto type = own(descr)) return *type;
  const auto is_field = [](const python_literal& p) { return p.is == kind::tuple && p.parts.size() == 2; };
  if (descr.is == kind::list && descr.parts.size() == 2 && is_field(descr.parts[0]) && is_field(descr.parts[1])) {
    const auto key = own(descr.parts[0].parts[1]), value = own(descr.parts[1].parts[1]);
    if (key && value) return *key + "_" + *value;
  }
  throw bad_input(fmt::format("{} holds elements of the type {}; the possible types are {}, and pairs of these types",
                              path, printable(descr.source), possible));
}

/// Reads the header of a .npy file of `size` bytes.
description read_header(const std::string& path, const descriptor& file, std::uint64_t size) {
  const auto refuse = [&](const std::string& what) { return bad_input(path + " is not a .npy file: " + what); };
  unsigned char head[12]{};
  const std::uint64_t got = file.read_at(head, sizeof(head), 0);
  const std::string_view begin(reinterpret_cast<const char*>(head), got);
  if (const std::string container = container_of(begin); !container.empty()) throw refuse(container);
  if (got < 10 || !begin.starts_with(magic)) throw refuse("the magic bytes are missing");
  const unsigned version = head[6];
  if (version < 1 || version > 3)
    throw refuse(fmt::format("its version is {}; versions 1, 2 and 3 are supported", version));
  std::uint64_t length = head[8] + (std::uint64_t{head[9]} << 8);
  if (version > 1) length += (std::uint64_t{head[10]} << 16) + (std::uint64_t{head[11]} << 24);
  description d{path, true, "", {}, (version > 1 ? 12 : 10) + length, 0};
  if (d.begin > size) throw refuse("it ends within its header");
  std::string header(length, '\0');
  if (file.read_at(header.data(), length, d.begin - length) != length) throw refuse("it ends within its header");
  const auto literal = parse_python(header);
  if (!literal) throw refuse("its header is not a dictionary of Python: " + printable(header));
  const auto value = [&](const char* key) -> const python_literal& {
    const python_literal* const found = literal->find(key);
    if (found == nullptr) throw refuse(fmt::format("its header has no '{}': {}", key, printable(header)));
    return *found;
  };
  d.type = type_in(path, value("descr"));
  const auto shape = value("shape").whole_numbers();
  if (!shape)
    throw bad_input(fmt::format("{} has a header without a shape: {}", path, printable(value("shape").source)));
  d.shape = *shape;
  // If at most one axis is longer than 1, C order and Fortran order are the same.
  const bool one_axis = std::count_if(d.shape.begin(), d.shape.end(), [](std::uint64_t n) { return n > 1; }) < 2;
  if (value("fortran_order").text != "False" && !one_axis)
    throw bad_input(path + " is in Fortran order (the first axis is fastest); numpy.ascontiguousarray converts it");
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
            : fmt::format("{} has {} bytes, which is not a whole number of elements of {} bytes", path, bytes, size));
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
  char first[6];
  const std::string_view begin(first, file.read_at(first, sizeof first, 0));
  if (begin == magic) throw bad_input(path + " begins like a .npy file, so its name must end in .npy");
  // Raw elements may begin with any bytes, so a raw file is refused only if its first bytes and its name both show that
  // it is compressed.
  const bool named_so = std::any_of(endings_of_containers.begin(), endings_of_containers.end(),
                                    [&](const char* ending) { return path.ends_with(ending); });
  if (const std::string container = container_of(begin); named_so && !container.empty())
    throw bad_input(path + " holds no elements: " + container);
  return {path, false, "", {}, 0, size};
}

void read(const description& file, void* to) {
  const descriptor opened = open_to_read(file.path);
  if (opened.read_at(to, file.bytes, file.begin) == file.bytes) return;
  throw bad_input(file.path + " cannot be read to its end: " + (errno != 0 ? reason() : "it has become shorter"));
}

void write(const std::string& path, const std::string& type, const std::vector<std::uint64_t>& shape, const void* from,
           std::size_t size) {
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
  os::output_file file(path, header.size() + elements * size);
  file.write(header);
  file.write(from, elements * size);
  file.close();
}

}  // namespace hpe::files

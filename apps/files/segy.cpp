// Before memory for items is allocated, the number of items that a header states is compared with the file's size.
#include "apps/files/segy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace hpe::files::segy {

namespace {

constexpr std::size_t text_bytes = 3200, head_bytes = 3600, trace_header_bytes = 240;
constexpr std::uint64_t in_order = 0x01020304, swapped = 0x04030201;

std::uint64_t load(const std::uint8_t* at, std::size_t bytes, bool little) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | at[little ? bytes - 1 - i : i];
  return value;
}

void store(std::uint8_t* at, std::size_t bytes, bool little, std::uint64_t value) {
  for (std::size_t i = 0; i < bytes; ++i) at[little ? i : bytes - 1 - i] = static_cast<std::uint8_t>(value >> 8 * i);
}

std::int64_t with_sign(std::uint64_t value, std::size_t bytes) {
  const auto unused = static_cast<unsigned>(64 - 8 * bytes);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

/// The EBCDIC codes (code page 37) of the printable ASCII characters, in ASCII order, beginning with the space.
constexpr std::string_view ebcdic =
    "\x40\x5a\x7f\x7b\x5b\x6c\x50\x7d\x4d\x5d\x5c\x4e\x6b\x60\x4b\x61\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7"
    "\xf8\xf9\x7a\x5e\x4c\x7e\x6e\x6f\x7c\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xd1\xd2\xd3\xd4\xd5\xd6"
    "\xd7\xd8\xd9\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xba\xe0\xbb\xb0\x6d\x79\x81\x82\x83\x84\x85\x86\x87"
    "\x88\x89\x91\x92\x93\x94\x95\x96\x97\x98\x99\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xc0\x4f\xd0\xa1";

std::uint8_t to_ebcdic(char c) {
  const auto number = static_cast<std::size_t>(static_cast<unsigned char>(c)) - ' ';
  return static_cast<std::uint8_t>(ebcdic[number < ebcdic.size() ? number : 0]);
}

struct known_format {
  sample_format number;
  std::size_t bytes;
  enum class kind { ibm, ieee, with_sign, without_sign } is;
};

constexpr std::array known_formats{
    known_format{sample_format::ibm, 4, known_format::kind::ibm},
    known_format{sample_format::i32, 4, known_format::kind::with_sign},
    known_format{sample_format::i16, 2, known_format::kind::with_sign},
    known_format{sample_format::f32, 4, known_format::kind::ieee},
    known_format{sample_format::f64, 8, known_format::kind::ieee},
    known_format{sample_format::i24, 3, known_format::kind::with_sign},
    known_format{sample_format::i8, 1, known_format::kind::with_sign},
    known_format{sample_format::i64, 8, known_format::kind::with_sign},
    known_format{sample_format::u32, 4, known_format::kind::without_sign},
    known_format{sample_format::u16, 2, known_format::kind::without_sign},
    known_format{sample_format::u64, 8, known_format::kind::without_sign},
    known_format{sample_format::u24, 3, known_format::kind::without_sign},
    known_format{sample_format::u8, 1, known_format::kind::without_sign},
};

const known_format* find(std::uint64_t number) {
  const auto* const found = std::find_if(known_formats.begin(), known_formats.end(), [&](const known_format& f) {
    return static_cast<std::uint64_t>(f.number) == number;
  });
  return found == known_formats.end() ? nullptr : found;
}

const known_format& details(sample_format number) { return *find(static_cast<std::uint64_t>(number)); }

/// Converts a number in IBM's format: a sign, an exponent to the base 16 with a bias of 64, and a fraction of 24 bits.
double from_ibm(std::uint64_t bits) {
  const double size =
      std::ldexp(static_cast<double>(bits & 0xffffff), 4 * (static_cast<int>(bits >> 24 & 127) - 64) - 24);
  return (bits >> 31 & 1) != 0 ? -size : size;
}

/// Converts to the nearest number in IBM's format.
std::uint64_t to_ibm(double value) {
  int binary = 0;
  const double fraction = std::frexp(std::abs(value), &binary);
  int exponent = std::max((binary > 0 ? binary + 3 : binary) / 4, -64);
  auto digits = static_cast<std::uint64_t>(std::llround(std::ldexp(fraction, binary - 4 * exponent + 24)));
  if (digits >> 24 != 0) {
    digits >>= 4;
    ++exponent;
  }
  const std::uint64_t sign = std::signbit(value) ? std::uint64_t{1} << 31 : 0;
  return digits == 0 ? sign : sign | static_cast<std::uint64_t>(exponent + 64) << 24 | digits;
}

double decode(const known_format& f, std::uint64_t bits) {
  switch (f.is) {
    case known_format::kind::ibm: return from_ibm(bits);
    case known_format::kind::ieee:
      return f.bytes == 8 ? std::bit_cast<double>(bits)
                          : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case known_format::kind::with_sign: return static_cast<double>(with_sign(bits, f.bytes));
    case known_format::kind::without_sign: return static_cast<double>(bits);
  }
  return 0;
}

/// Whether a number can be written in a format.
bool fits(const known_format& f, double value) {
  const int bits = static_cast<int>(8 * f.bytes);
  switch (f.is) {
    case known_format::kind::ibm: return std::abs(value) <= from_ibm(0x7fffffff);
    case known_format::kind::ieee: return true;
    case known_format::kind::with_sign:
      return std::rint(value) >= -std::ldexp(1, bits - 1) && std::rint(value) < std::ldexp(1, bits - 1);
    case known_format::kind::without_sign: return std::rint(value) >= 0 && std::rint(value) < std::ldexp(1, bits);
  }
  return false;
}

std::uint64_t encode(const known_format& f, double value) {
  switch (f.is) {
    case known_format::kind::ibm: return to_ibm(value);
    case known_format::kind::ieee:
      return f.bytes == 8 ? std::bit_cast<std::uint64_t>(value)
                          : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case known_format::kind::with_sign: return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::rint(value)));
    case known_format::kind::without_sign: return static_cast<std::uint64_t>(std::rint(value));
  }
  return 0;
}

/// Whether the file's header is little-endian. Headers of revision 2 state the byte order. In earlier revisions, the
/// byte order is the one in which the code of the sample format is valid.
bool is_little(const header& h) {
  const std::uint64_t order = h.get_unsigned(in_file::byte_order);
  if (order == in_order || order == swapped) return order == swapped;
  header other = h;
  other.little_endian = true;
  return find(h.get_unsigned(in_file::format)) == nullptr && find(other.get_unsigned(in_file::format)) != nullptr;
}

/// Whether a text header is the last one: if a file states -1 further text headers, the last of them contains "((SEG:
/// EndText))".
bool ends_text(std::span<const std::uint8_t> text) {
  constexpr std::string_view ascii = "((SEG: EndText))";
  std::string encoded(ascii);
  std::transform(encoded.begin(), encoded.end(), encoded.begin(),
                 [](char c) { return static_cast<char>(to_ebcdic(c)); });
  const std::string_view all(reinterpret_cast<const char*>(text.data()), text.size());
  return all.find(ascii) != std::string_view::npos || all.find(encoded) != std::string_view::npos;
}

/// Returns the revision that a header states. Some programs fill headers with blanks, which count as revision 0, or
/// write the revision's digits as characters.
std::uint64_t revision_of(const header& h) {
  const std::uint64_t major = h.get_unsigned(in_file::revision), minor = h.get_unsigned(in_file::minor_revision);
  for (const char blank : {' ', '\x40'})  // ASCII, EBCDIC
    if (major == static_cast<std::uint64_t>(blank) && minor == major) return 0;
  for (const std::uint64_t zero : {0x30U, 0xf0U})
    if (major >= zero && major <= zero + 9) return major - zero;
  // Some files state the revision as one number of two bytes, in the file's byte order.
  return h.little_endian && major == 0 ? minor : major;
}

/// Returns the trace length and sample format that the file's header states. Throws bad_input for an invalid header.
layout layout_of(const header& h, const std::string& path) {
  const std::uint64_t revision = revision_of(h);
  if (revision > 2)
    throw bad_input(
        fmt::format("{} states SEG-Y revision {} (bytes 3501 and 3502 are {} and {}); hpe reads revisions 0, 1 and 2, "
                    "whose bytes are 0 and 0, 1 and 0, or 2 and 0",
                    path, revision, h.get_unsigned(in_file::revision), h.get_unsigned(in_file::minor_revision)));
  const std::uint64_t number = h.get_unsigned(in_file::format);
  if (find(number) == nullptr)
    throw bad_input(
        fmt::format("{} states sample format {} (bytes 3225 and 3226); hpe reads the formats 1 (IBM), 5 and 6 (IEEE), "
                    "and 2, 3, 7 to 12, 15 and 16 (integers). Is this a SEG-Y file?",
                    path, number));
  layout shape{static_cast<sample_format>(number), h.get_unsigned(in_file::samples),
               static_cast<double>(h.get_unsigned(in_file::interval)), trace_header_bytes};
  if (revision < 2) return shape;
  if (const std::uint64_t samples = h.get_unsigned(in_file::long_samples); samples != 0) shape.samples = samples;
  if (const auto interval = std::bit_cast<double>(h.get_unsigned(in_file::long_interval));
      interval > 0 && std::isfinite(interval))
    shape.interval = interval;
  shape.header_bytes *= 1 + h.get_unsigned(in_file::more_trace_headers);
  return shape;
}

/// Appends to `h` the text headers that follow the first 3600 bytes, up to the first trace.
void read_further_text(const descriptor& file, const std::string& path, std::uint64_t size, header& h) {
  const std::uint64_t revision = revision_of(h);
  std::uint64_t begin = head_bytes;
  const std::int64_t texts = revision == 0 ? 0 : h.get(in_file::text_headers);
  const std::uint64_t stated = revision < 2 ? 0 : h.get_unsigned(in_file::first_trace);
  const auto append = [&](std::uint64_t end) {
    if (end > size)
      throw bad_input(fmt::format("{} ends in its headers: they take {} bytes, and the file has {}", path, end, size));
    h.bytes.resize(end);
    if (file.read_at(h.bytes.data() + begin, end - begin, begin) != end - begin)
      throw bad_input(path + " cannot be read: " + reason());
    begin = end;
  };
  if (stated != 0 && stated < head_bytes)
    throw bad_input(
        fmt::format("{} states that its first trace begins at byte {}, which is within the header", path, stated));
  if (stated != 0) return append(stated);
  if (texts > 0) return append(head_bytes + static_cast<std::uint64_t>(texts) * text_bytes);
  for (bool more = texts < 0; more;) {
    append(begin + text_bytes);
    more = !ends_text(std::span(h.bytes).last(text_bytes));
  }
}

}  // namespace

std::uint64_t header::get_unsigned(field f) const { return load(&bytes.at(f.first - 1), f.bytes, little_endian); }
std::int64_t header::get(field f) const { return with_sign(get_unsigned(f), f.bytes); }
void header::set(field f, std::int64_t value) {
  store(&bytes.at(f.first - 1), f.bytes, little_endian, static_cast<std::uint64_t>(value));
}

double header::get_scaled(field f, field scalar) const {
  const auto value = static_cast<double>(get(f)), by = static_cast<double>(get(scalar));
  return by > 0 ? value * by : by < 0 ? value / -by : value;
}

void header::set_scaled(field f, field scalar, double value) {
  const auto by = static_cast<double>(get(scalar));
  set(f, std::llround(by > 0 ? value / by : by < 0 ? value * -by : value));
}

std::int64_t scalar_for(double largest) {
  constexpr double most = 2147483647;
  for (const std::int64_t divisor : {1000, 100, 10})
    if (largest * static_cast<double>(divisor) <= most) return -divisor;
  return 1;
}

std::uint64_t layout::trace_bytes() const { return header_bytes + samples * details(format).bytes; }

header make_header(sample_format format, std::uint64_t samples, double interval, const std::vector<std::string>& text) {
  constexpr double most = 32767;
  header h{false, std::vector<std::uint8_t>(head_bytes)};
  std::fill_n(h.bytes.begin(), text_bytes, to_ebcdic(' '));
  constexpr std::size_t lines = 40, line_bytes = 80;
  for (std::size_t i = 0; i < lines; ++i) {
    const std::string line = fmt::format("C{:2} {}", i + 1, i < text.size() ? text[i] : "");
    std::transform(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(std::min(line.size(), line_bytes)),
                   h.bytes.begin() + static_cast<std::ptrdiff_t>(i * line_bytes), to_ebcdic);
  }
  const bool second = static_cast<double>(samples) > most || interval > most || interval != std::rint(interval);
  h.set(in_file::format, static_cast<std::int64_t>(format));
  h.set(in_file::unit, 1);
  h.set(in_file::revision, second ? 2 : 1);
  h.set(in_file::equal_traces, 1);
  h.set(in_file::samples, second ? 0 : static_cast<std::int64_t>(samples));
  h.set(in_file::interval, second ? 0 : std::llround(interval));
  if (second) {
    h.set(in_file::long_samples, static_cast<std::int64_t>(samples));
    h.set(in_file::long_interval, std::bit_cast<std::int64_t>(interval));
    h.set(in_file::byte_order, in_order);
  }
  return h;
}

trace make_trace(const header& file) {
  const layout shape = layout_of(file, "the header");
  trace t{{file.little_endian, std::vector<std::uint8_t>(shape.header_bytes)}, std::vector<double>(shape.samples)};
  t.head.set(in_trace::kind, 1);
  t.head.set(in_trace::coordinate_unit, 1);
  t.head.set(in_trace::samples, file.get(in_file::samples));
  t.head.set(in_trace::interval, file.get(in_file::interval));
  return t;
}

reader::reader(const std::string& path) : path_(path), file_(open_to_read(path)) {
  const std::uint64_t size = size_of(file_, path);
  if (size < head_bytes)
    throw bad_input(fmt::format("{} has {} bytes; a SEG-Y file has at least {}", path, size, head_bytes));
  head_.bytes.resize(head_bytes);
  if (file_.read_at(head_.bytes.data(), head_bytes, 0) != head_bytes)
    throw bad_input(path + " cannot be read: " + reason());
  if (const std::string container = container_of({reinterpret_cast<const char*>(head_.bytes.data()), head_bytes});
      !container.empty())
    throw bad_input(path + " is not a SEG-Y file: " + container);
  head_.little_endian = is_little(head_);
  shape_ = layout_of(head_, path);
  read_further_text(file_, path, size, head_);

  const bool second = revision_of(head_) == 2;
  const std::uint64_t trailers = second ? head_.get_unsigned(in_file::trailers) * text_bytes : 0;
  const std::uint64_t begin = head_.bytes.size();
  if (trailers > size - begin)
    throw bad_input(
        fmt::format("{} states {} bytes of trailers behind its traces, but only {} bytes follow its headers", path,
                    trailers, size - begin));
  const std::uint64_t rest = size - begin - trailers;
  if (shape_.header_bytes > rest)
    throw bad_input(fmt::format("{} has no trace: {} bytes follow its headers", path, rest));
  if (shape_.samples == 0) shape_.samples = read_header(0).get_unsigned(in_trace::samples);
  if (shape_.samples == 0)
    throw bad_input(path +
                    " states that its traces have 0 samples (bytes 3221 and 3222, and 115 and 116 of its first trace)");
  if (shape_.interval == 0) shape_.interval = static_cast<double>(read_header(0).get_unsigned(in_trace::interval));
  traces_ = rest / shape_.trace_bytes();
  if (const std::uint64_t left = rest % shape_.trace_bytes(); left != 0)
    throw bad_input(
        fmt::format("{} is truncated, or its traces differ in length: {} bytes follow trace {}, where a trace of {} "
                    "samples takes {}",
                    path, left, traces_, shape_.samples, shape_.trace_bytes()));
  if (const std::uint64_t stated = second ? head_.get_unsigned(in_file::traces) : 0; stated != 0 && stated != traces_)
    throw bad_input(fmt::format("{} states {} traces, but has {}", path, stated, traces_));
}

std::vector<std::uint8_t> reader::bytes(std::uint64_t number, std::uint64_t count) const {
  std::vector<std::uint8_t> all(count);
  if (file_.read_at(all.data(), count, head_.bytes.size() + number * shape_.trace_bytes()) != count)
    throw bad_input(fmt::format("{}: trace {} cannot be read: {}", path_, number + 1,
                                errno != 0 ? reason() : "the file has become shorter"));
  return all;
}

header reader::read_header(std::uint64_t number) const {
  return {head_.little_endian, bytes(number, shape_.header_bytes)};
}

trace reader::read(std::uint64_t number) const {
  std::vector<std::uint8_t> all = bytes(number, shape_.trace_bytes());
  const known_format& f = details(shape_.format);
  trace t;
  t.samples.resize(shape_.samples);
  for (std::uint64_t i = 0; i < shape_.samples; ++i)
    t.samples[i] = decode(f, load(all.data() + shape_.header_bytes + i * f.bytes, f.bytes, head_.little_endian));
  all.resize(shape_.header_bytes);
  t.head = {head_.little_endian, std::move(all)};
  // In revision 0 all traces have equal lengths; in later revisions the file's header states whether they do. If they
  // do, a trace's header may hold the length that the trace had before a program cut it, so this length is not
  // compared.
  const bool equal = revision_of(head_) == 0 || head_.get_unsigned(in_file::equal_traces) == 1;
  const std::uint64_t stated = t.head.get_unsigned(in_trace::samples);
  if (!equal && stated != 0 && stated != (shape_.samples & 0xffff))
    throw bad_input(fmt::format(
        "{}: trace {} states {} samples, but {} are expected; hpe does not read traces of different lengths", path_,
        number + 1, stated, shape_.samples));
  return t;
}

std::uint64_t whole_traces(const std::string& path, const header& head) {
  if (!std::filesystem::exists(path)) return 0;
  const descriptor file = open_to_read(path);
  const std::uint64_t size = size_of(file, path), begin = std::min<std::uint64_t>(size, head.bytes.size());
  std::vector<std::uint8_t> found(begin);
  if (file.read_at(found.data(), begin, 0) != begin) throw bad_input(path + " cannot be read: " + reason());
  if (!std::equal(found.begin(), found.end(), head.bytes.begin()))
    throw bad_input(path + " exists, but its headers differ from those of this run");
  return begin < head.bytes.size() ? 0 : (size - begin) / layout_of(head, path).trace_bytes();
}

writer::writer(const std::string& path, const header& head, std::uint64_t kept)
    : path_(path), begin_(head.bytes.size()), shape_(layout_of(head, path)), traces_(kept) {
  if (kept > 0) {
    go_on();
    return;
  }
  new_.emplace(path);
  new_->write(head.bytes.data(), head.bytes.size());
}

void writer::fail() const { throw std::runtime_error("cannot write " + path_ + ": " + reason()); }

/// Opens the file to append to its first traces_ traces, and cuts off all later traces.
void writer::go_on() {
  file_.emplace(path_, O_WRONLY);
  const auto at = static_cast<off_t>(end());
  if (!file_->good() || ::ftruncate(file_->get(), at) != 0 || ::lseek(file_->get(), at, SEEK_SET) < 0) fail();
}

void writer::write(std::span<const trace> traces) {
  const known_format& f = details(shape_.format);
  std::vector<std::uint8_t> all(traces.size() * shape_.trace_bytes());
  std::uint8_t* at = all.data();
  for (const trace& t : traces) {
    if (t.samples.size() != shape_.samples || t.head.bytes.size() != shape_.header_bytes)
      throw bad_input(fmt::format("{}: a trace of {} samples does not fit into a file whose traces have {}", path_,
                                  t.samples.size(), shape_.samples));
    at = std::copy(t.head.bytes.begin(), t.head.bytes.end(), at);
    for (const double sample : t.samples) {
      if (!fits(f, sample))
        throw bad_input(fmt::format("{}: {} cannot be written in sample format {}", path_, sample,
                                    static_cast<int>(shape_.format)));
      store(at, f.bytes, t.head.little_endian, encode(f, sample));
      at += f.bytes;
    }
  }
  if (new_) {
    new_->write(all.data(), all.size());
  } else if (!file_->write(all.data(), all.size())) {
    const int why = errno;
    const auto at = static_cast<off_t>(end());
    static_cast<void>(::ftruncate(file_->get(), at) == 0 && ::lseek(file_->get(), at, SEEK_SET) == at);
    errno = why;
    fail();
  }
  traces_ += traces.size();
}

void writer::publish() {
  if (!new_) return;
  new_->close();
  new_.reset();
  go_on();
}

void writer::close() {
  if (new_) return new_->close();
  if (::fsync(file_->get()) != 0 || !file_->close()) fail();
}

}  // namespace hpe::files::segy

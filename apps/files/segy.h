#pragma once

/// SEG-Y, the exchange format of seismic data (Society of Exploration Geophysicists, revisions 0, 1 and 2): a text
/// header of 3200 bytes, a binary header of 400, further text headers, then traces of equal length, each behind a
/// header of its own. Headers are kept as the file's bytes, so that what is read is written back unchanged.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/command_line/bad_input.h"
#include "apps/files/descriptor.h"

namespace hpe::files::segy {

/// A number in a header: its first byte, counted from 1 as in the standard, and its length.
struct field {
  std::size_t first, bytes;
};

/// Fields of the file's header.
namespace in_file {
inline constexpr field interval{3217, 2}, samples{3221, 2}, format{3225, 2}, sorting{3229, 2}, unit{3255, 2};
inline constexpr field long_samples{3269, 4}, long_interval{3273, 8}, byte_order{3297, 4};  // revision 2
inline constexpr field revision{3501, 1}, minor_revision{3502, 1}, equal_traces{3503, 2}, text_headers{3505, 2};
inline constexpr field more_trace_headers{3507, 4}, traces{3513, 8}, first_trace{3521, 8}, trailers{3529, 4};
}  // namespace in_file

/// Fields of a trace's header.
namespace in_trace {
inline constexpr field number{5, 4}, shot{9, 4}, channel{13, 4}, ensemble{21, 4}, kind{29, 2};
inline constexpr field receiver_elevation{41, 4}, source_depth{49, 4}, depth_scalar{69, 2}, scalar{71, 2};
inline constexpr field source_x{73, 4}, source_y{77, 4}, receiver_x{81, 4}, receiver_y{85, 4}, coordinate_unit{89, 2};
inline constexpr field delay{109, 2}, samples{115, 2}, interval{117, 2}, x{181, 4}, y{185, 4};
}  // namespace in_trace

/// The bytes of a header and the numbers in them.
struct header {
  bool little_endian = false;
  std::vector<std::uint8_t> bytes;

  /// A number with a sign.
  [[nodiscard]] std::int64_t get(field f) const;
  /// A number without a sign: counts, and intervals.
  [[nodiscard]] std::uint64_t get_unsigned(field f) const;
  void set(field f, std::int64_t value);

  /// A length with its scalar: a positive scalar multiplies, a negative one divides, 0 is 1.
  [[nodiscard]] double get_scaled(field f, field scalar) const;
  /// Sets a length; the scalar must be set before.
  void set_scaled(field f, field scalar, double value);
};

/// The scalar with which lengths up to `largest` fit into a field of four bytes and keep the most digits, to 0.001.
[[nodiscard]] std::int64_t scalar_for(double largest);

/// How samples are written; the numbers are the standard's. 64-bit integers keep 53 bits when they are read.
enum class sample_format : std::uint16_t {
  ibm = 1,
  i32 = 2,
  i16 = 3,
  f32 = 5,
  f64 = 6,
  i24 = 7,
  i8 = 8,
  i64 = 9,
  u32 = 10,
  u16 = 11,
  u64 = 12,
  u24 = 15,
  u8 = 16
};

struct trace {
  header head;
  std::vector<double> samples;
};

/// What the file's header says about all traces.
struct layout {
  sample_format format;
  std::uint64_t samples;       ///< of a trace
  double interval;             ///< between samples: microseconds, or millimetres of depth
  std::uint64_t header_bytes;  ///< of a trace

  [[nodiscard]] std::uint64_t trace_bytes() const;
};

/// The header of a new file, in revision 1, or 2 if there are too many samples or the interval is not whole. text: up
/// to 40 lines of 76 characters, written in EBCDIC.
[[nodiscard]] header make_header(sample_format format, std::uint64_t samples, double interval,
                                 const std::vector<std::string>& text);

/// A trace of zeros for a file with that header.
[[nodiscard]] trace make_trace(const header& file);

/// Reads a file. Allocates no more than a constant times the file's size, whatever its headers say. Throws bad_input
/// for a file that is not SEG-Y, is truncated, or has traces of different lengths; the message says which.
class reader {
 public:
  explicit reader(const std::string& path);

  [[nodiscard]] const header& head() const { return head_; }
  [[nodiscard]] const layout& shape() const { return shape_; }
  [[nodiscard]] std::uint64_t traces() const { return traces_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// A trace, counted from 0. Throws bad_input if the header has another number of samples than the file's header.
  [[nodiscard]] trace read(std::uint64_t number) const;
  /// Its header alone.
  [[nodiscard]] header read_header(std::uint64_t number) const;

 private:
  [[nodiscard]] std::vector<std::uint8_t> bytes(std::uint64_t number, std::uint64_t count) const;

  const std::string path_;
  const descriptor file_;
  header head_;
  layout shape_{};
  std::uint64_t traces_ = 0;
};

/// How many whole traces a file with exactly this header holds; 0 if there is no file. Throws bad_input if its header
/// is another.
[[nodiscard]] std::uint64_t whole_traces(const std::string& path, const header& head);

/// Writes a file. Errors are std::runtime_error with the system's reason, as in "No space left on device".
class writer {
 public:
  /// Begins a file, or goes on behind the first `kept` traces of a file with the same header.
  writer(const std::string& path, const header& head, std::uint64_t kept = 0);

  [[nodiscard]] std::uint64_t traces() const { return traces_; }

  /// Appends traces: all of them, or none if it throws. Throws bad_input for a sample that the format cannot hold.
  void write(std::span<const trace> traces);

  /// Ends the file: its bytes are on the disk when this returns.
  void close();

 private:
  [[noreturn]] void fail(const std::string& path) const;

  const std::string path_;
  descriptor file_;
  const std::uint64_t begin_;
  const layout shape_;
  std::uint64_t traces_;
};

}  // namespace hpe::files::segy

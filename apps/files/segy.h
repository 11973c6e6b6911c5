#pragma once

/// SEG-Y, the exchange format of seismic data (Society of Exploration Geophysicists, revisions 0, 1 and 2): a text
/// header of 3200 bytes, a binary header of 400 bytes, further text headers, then traces of equal length, each of which
/// follows a header of its own. Headers are stored as the file's bytes, so that a copy of a file contains all header
/// fields.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/command_line/bad_input.h"
#include "apps/files/descriptor.h"
#include "runtime/os/output_file.h"

namespace hpe::files::segy {

/// The position of a number in a header: its first byte, counted from 1 as in the standard, and its length in bytes.
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

  /// Reads a signed number.
  [[nodiscard]] std::int64_t get(field f) const;
  /// Reads an unsigned number: a count or an interval.
  [[nodiscard]] std::uint64_t get_unsigned(field f) const;
  void set(field f, std::int64_t value);

  /// Reads a length and applies its scalar: a positive scalar multiplies, a negative one divides, 0 counts as 1.
  [[nodiscard]] double get_scaled(field f, field scalar) const;
  /// Sets a length; its scalar must be set first.
  void set_scaled(field f, field scalar, double value);
};

/// Returns the scalar with which lengths up to `largest` fit into a field of four bytes and keep the most decimal
/// places, at most three.
[[nodiscard]] std::int64_t scalar_for(double largest);

/// The format of samples; the values are those of the standard. 64-bit integers keep only 53 bits when they are read.
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

/// The properties of all traces, from the file's header. If the file's header omits the number of samples or the
/// interval, a reader uses that of the first trace's header.
struct layout {
  sample_format format;
  std::uint64_t samples;       ///< number of samples of each trace
  double interval;             ///< between samples: microseconds, or millimetres of depth; 0: not stated
  std::uint64_t header_bytes;  ///< bytes of each trace's header

  [[nodiscard]] std::uint64_t trace_bytes() const;
};

/// Makes the header of a new file, in revision 1, or in revision 2 if the number of samples or the interval is above
/// 32767, or the interval is not whole. text: up to 40 lines of 76 characters, which are written in EBCDIC.
[[nodiscard]] header make_header(sample_format format, std::uint64_t samples, double interval,
                                 const std::vector<std::string>& text);

/// Returns a trace of zeros for a file with that header.
[[nodiscard]] trace make_trace(const header& file);

/// Reads a SEG-Y file. Allocated memory is proportional to the file's size, even if headers state larger numbers.
/// Throws bad_input, with the reason, for a file that is not SEG-Y, is truncated, or has traces of different lengths.
class reader {
 public:
  explicit reader(const std::string& path);

  [[nodiscard]] const header& head() const { return head_; }
  [[nodiscard]] const layout& shape() const { return shape_; }
  [[nodiscard]] std::uint64_t traces() const { return traces_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Reads a trace, counted from 0. Throws bad_input if the trace's header states another number of samples than the
  /// file's header, unless the file is of revision 0 or its header states that all traces have the same length.
  [[nodiscard]] trace read(std::uint64_t number) const;
  /// Reads only the header of a trace.
  [[nodiscard]] header read_header(std::uint64_t number) const;

 private:
  [[nodiscard]] std::vector<std::uint8_t> bytes(std::uint64_t number, std::uint64_t count) const;

  const std::string path_;
  const descriptor file_;
  header head_;
  layout shape_{};
  std::uint64_t traces_ = 0;
};

/// Returns the number of whole traces in a file that begins with exactly this header; 0 if the file does not exist.
/// Throws bad_input if the file has another header.
[[nodiscard]] std::uint64_t whole_traces(const std::string& path, const header& head);

/// Writes a file. Errors are std::runtime_error with the system's reason, as in "No space left on device".
class writer {
 public:
  /// Creates a file if `kept` is 0; else continues a file with the same header after its first `kept` traces. A new
  /// file gets its name when publish() or close() is called; until then, an earlier file of that name stays unchanged.
  writer(const std::string& path, const header& head, std::uint64_t kept = 0);

  [[nodiscard]] std::uint64_t traces() const { return traces_; }

  /// Appends traces: all of them, or none if write throws. Throws bad_input for a sample that the format cannot hold,
  /// and for a trace with another number of samples.
  void write(std::span<const trace> traces);

  /// Gives a new file its name; later calls of write append to it under that name.
  void publish();

  /// Closes the file; its bytes are on the disk when this returns.
  void close();

 private:
  [[noreturn]] void fail() const;
  [[nodiscard]] std::uint64_t end() const { return begin_ + traces_ * shape_.trace_bytes(); }
  void go_on();

  const std::string path_;
  const std::uint64_t begin_;
  const layout shape_;
  std::uint64_t traces_;
  std::optional<os::output_file> new_;  ///< a new file, until it is published
  std::optional<descriptor> file_;
};

}  // namespace hpe::files::segy

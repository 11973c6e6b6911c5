// SEG-Y: headers and samples survive writing and reading, in every format and revision. A damaged file is refused with
// a message that names the defect.

#include "apps/files/segy.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>

namespace hpe::files::segy {
namespace {

constexpr sample_format formats[] = {sample_format::ibm, sample_format::i32, sample_format::i16, sample_format::f32,
                                     sample_format::f64, sample_format::i24, sample_format::i8,  sample_format::i64,
                                     sample_format::u32, sample_format::u16, sample_format::u64, sample_format::u24,
                                     sample_format::u8};

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class segy_file : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  std::string save(const std::string& bytes) const {
    std::ofstream(path("a.sgy"), std::ios::binary) << bytes;
    return path("a.sgy");
  }

  /// Writes a file of three traces with four samples each, which are small whole numbers.
  [[nodiscard]] std::string write(const header& head, const std::string& name = "a.sgy") const {
    writer file(path(name), head);
    for (int n = 1; n <= 3; ++n) {
      trace t = make_trace(head);
      t.head.set(in_trace::shot, n);
      t.samples = {1.0 * n, 2.0 * n, 0, 100};
      file.write(std::span(&t, 1));
    }
    file.close();
    return path(name);
  }

  /// Reads a file, writes its contents to another file, and returns the bytes of that file.
  [[nodiscard]] std::string written_back(const std::string& from) const {
    const reader source(from);
    writer copy(path("copy.sgy"), source.head());
    for (std::uint64_t n = 0; n < source.traces(); ++n) {
      const trace t = source.read(n);
      copy.write(std::span(&t, 1));
    }
    copy.close();
    return contents(path("copy.sgy"));
  }

  /// Returns the error message for a file of these bytes; empty if the file is valid.
  [[nodiscard]] std::string complaint(const std::string& bytes) const {
    try {
      const reader file(save(bytes));
      for (std::uint64_t n = 0; n < file.traces(); ++n) static_cast<void>(file.read(n));
    } catch (const bad_input& e) {
      return e.what();
    }
    return "";
  }

  /// Returns the bytes of write(), with one number of the file's header changed.
  [[nodiscard]] std::string changed(field f, std::int64_t value, bool second_revision = false) const {
    header head = make_header(sample_format::f32, 4, 4000, {});
    if (second_revision) head.set(in_file::revision, 2);
    const std::string all = contents(write(head));
    head.set(f, value);
    return std::string(head.bytes.begin(), head.bytes.end()) + all.substr(head.bytes.size());
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("hpe-segy-" + std::to_string(getpid()));
};

TEST_F(segy_file, a_survey_of_the_field_is_written_back_byte_for_byte) {
  const char* const given = std::getenv("HPE_TEST_SEGY");
  const std::string file = given != nullptr ? given : "/work/shared/data/f3.sgy";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is absent; HPE_TEST_SEGY can name another SEG-Y file";
  EXPECT_TRUE(written_back(file) == contents(file));
}

TEST_F(segy_file, every_format_is_written_back_byte_for_byte_in_both_byte_orders) {
  for (const sample_format format : formats)
    for (const bool little : {false, true}) {
      header head = make_header(format, 4, 2000, {"a line"});
      if (little) {
        const header big = head;
        head.little_endian = true;
        for (const field f : {in_file::format, in_file::samples, in_file::interval, in_file::unit})
          head.set(f, big.get(f));
        head.set(in_file::byte_order, 0x01020304);
        head.set(in_file::revision, 2);
      }
      const std::string file = write(head);
      const reader read(file);
      SCOPED_TRACE(testing::Message() << "format " << static_cast<int>(format) << (little ? ", little-endian" : ""));
      ASSERT_EQ(read.traces(), 3U);
      EXPECT_EQ(read.head().little_endian, little);
      EXPECT_EQ(read.shape().interval, 2000);
      const trace t = read.read(1);
      EXPECT_EQ(t.samples, (std::vector<double>{2, 4, 0, 100}));
      EXPECT_EQ(t.head.get(in_trace::shot), 2);
      EXPECT_TRUE(written_back(file) == contents(file));
    }
}

TEST_F(segy_file, samples_are_those_of_the_standard) {
  const std::pair<std::uint32_t, double> known[] = {{0xC276A000, -118.625},
                                                    {0x42640000, 100},
                                                    {0x00000000, 0},
                                                    {0x41100000, 1},
                                                    {0x40800000, 0.5},
                                                    {0x7FFFFFFF, 7.2370051459731155e75},
                                                    {0x00000001, std::ldexp(1, -280)}};
  header head = make_header(sample_format::ibm, 1, 4000, {});
  for (const auto& [bits, value] : known) {
    writer file(path("ibm.sgy"), head);
    trace t = make_trace(head);
    t.samples = {value};
    file.write(std::span(&t, 1));
    file.close();
    std::string expected;
    for (int shift = 24; shift >= 0; shift -= 8) expected += static_cast<char>(bits >> shift);
    EXPECT_EQ(contents(path("ibm.sgy")).substr(3840), expected) << value;
    EXPECT_DOUBLE_EQ(reader(path("ibm.sgy")).read(0).samples[0], value);
  }
}

TEST_F(segy_file, signs_and_ranges_are_those_of_the_format) {
  const std::pair<sample_format, std::vector<double>> ranges[] = {{sample_format::i8, {-128, 127}},
                                                                  {sample_format::u8, {0, 255}},
                                                                  {sample_format::i16, {-32768, 32767}},
                                                                  {sample_format::u16, {0, 65535}},
                                                                  {sample_format::i24, {-8388608, 8388607}},
                                                                  {sample_format::u24, {0, 16777215}},
                                                                  {sample_format::i32, {-2147483648.0, 2147483647.0}}};
  for (const auto& [format, range] : ranges) {
    const header head = make_header(format, 2, 4000, {});
    writer file(path("a.sgy"), head);
    trace t = make_trace(head);
    t.samples = range;
    file.write(std::span(&t, 1));
    file.publish();
    EXPECT_EQ(reader(path("a.sgy")).read(0).samples, range);
    for (const double beyond : {range[0] - 1, range[1] + 1, std::numeric_limits<double>::quiet_NaN()}) {
      t.samples[0] = beyond;
      EXPECT_THROW(file.write(std::span(&t, 1)), bad_input) << beyond;
    }
    EXPECT_EQ(reader(path("a.sgy")).traces(), 1U);
  }
}

TEST_F(segy_file, scalars_multiply_or_divide) {
  header h = make_trace(make_header(sample_format::f32, 1, 1, {})).head;
  h.set(in_trace::source_x, 1250);
  const std::pair<std::int64_t, double> known[] = {{0, 1250}, {1, 1250}, {10, 12500}, {-100, 12.5}, {-1000, 1.25}};
  for (const auto& [scalar, metres] : known) {
    h.set(in_trace::scalar, scalar);
    EXPECT_EQ(h.get_scaled(in_trace::source_x, in_trace::scalar), metres) << scalar;
  }
  for (const double metres : {7.5, -12.125, 612345.25, 9876543.2, 3e8}) {
    h.set(in_trace::scalar, scalar_for(std::abs(metres)));
    h.set_scaled(in_trace::receiver_x, in_trace::scalar, metres);
    EXPECT_NEAR(h.get_scaled(in_trace::receiver_x, in_trace::scalar), metres, 0.05);
  }
}

TEST_F(segy_file, further_headers_and_trailers_of_later_revisions_are_read_over) {
  const std::string plain = contents(write(make_header(sample_format::f32, 4, 4000, {})));
  const auto with = [&](int revision, int texts, const std::string& text, const std::string& trailer) {
    header head = make_header(sample_format::f32, 4, 4000, {});
    head.set(in_file::revision, revision);
    head.set(in_file::text_headers, texts);
    head.set(in_file::trailers, static_cast<std::int64_t>(trailer.size() / 3200));
    return save(std::string(head.bytes.begin(), head.bytes.end()) + text + plain.substr(3600) + trailer);
  };
  const std::string block(3200, ' '), last = "((SEG: EndText))" + std::string(3184, ' ');
  for (const std::string& file :
       {with(1, 2, block + block, ""), with(1, -1, block + last, ""), with(2, 0, "", block)}) {
    const reader read(file);
    EXPECT_EQ(read.traces(), 3U);
    EXPECT_EQ(read.read(2).samples, (std::vector<double>{3, 6, 0, 100}));
  }
  EXPECT_EQ(complaint(contents(with(0, 7, "", ""))), "");  // revision 0 does not assign these bytes
}

TEST_F(segy_file, long_traces_and_broken_intervals_take_the_second_revision) {
  const header head = make_header(sample_format::f32, 70000, 833.25, {});
  writer file(path("long.sgy"), head);
  trace t = make_trace(head);
  t.samples.back() = 5;
  file.write(std::span(&t, 1));
  file.close();
  const reader read(path("long.sgy"));
  EXPECT_EQ(read.head().get(in_file::revision), 2);
  EXPECT_EQ(read.shape().interval, 833.25);
  EXPECT_EQ(read.read(0).samples.at(69999), 5);
}

TEST_F(segy_file, goes_on_behind_the_traces_that_are_kept) {
  const header head = make_header(sample_format::f32, 4, 4000, {});
  const std::string file = write(head), all = contents(file);
  EXPECT_EQ(whole_traces(file, head), 3U);
  EXPECT_THROW(static_cast<void>(whole_traces(file, make_header(sample_format::ibm, 4, 4000, {}))), bad_input);
  EXPECT_EQ(whole_traces(path("none.sgy"), head), 0U);
  EXPECT_EQ(whole_traces(save(all.substr(0, all.size() - 1)), head), 2U);
  EXPECT_EQ(whole_traces(save(all.substr(0, 100)), head), 0U);
  save(all);
  trace t = make_trace(head);
  {
    writer more(file, head, 2);
    EXPECT_EQ(more.traces(), 2U);
    more.write(std::span(&t, 1));
  }
  const std::string now = contents(file);
  ASSERT_EQ(now.size(), all.size());
  EXPECT_EQ(now.substr(0, 3600 + 2 * 256), all.substr(0, 3600 + 2 * 256));
  EXPECT_EQ(reader(file).read(2).samples, t.samples);
}

TEST_F(segy_file, a_new_file_takes_its_name_when_it_is_published) {
  const header head = make_header(sample_format::f32, 4, 4000, {});
  const std::string file = save("what was there"), all = contents(write(head, "whole.sgy"));
  const trace t = reader(path("whole.sgy")).read(0);
  { writer never(file, head); }
  EXPECT_EQ(contents(file), "what was there");
  writer begun(file, head);
  begun.write(std::span(&t, 1));
  EXPECT_EQ(contents(file), "what was there");
  begun.publish();
  EXPECT_EQ(contents(file), all.substr(0, 3600 + 256));
  begun.write(std::span(&t, 1));
  EXPECT_EQ(contents(file).size(), 3600U + 2 * 256) << "other programs may read the complete traces";
  begun.publish();
  begun.close();
  EXPECT_EQ(reader(file).traces(), 2U);
}

TEST_F(segy_file, revisions_in_text_and_intervals_of_traces_are_read) {
  const std::string all = contents(write(make_header(sample_format::f32, 4, 4000, {})));
  const auto with = [&](std::size_t first, const std::string& bytes) {
    return std::string(all).replace(first - 1, bytes.size(), bytes);
  };
  // If the header text consists of blanks in ASCII or EBCDIC, the fields that revision 1 adds may be blanks too.
  for (const std::string& blanks : {std::string(8, ' '), std::string(8, '\x40')})
    EXPECT_EQ(complaint(with(3501, blanks)), "");
  for (const char* const digits : {"10", "1.", "00", "\xf1\xf0"})
    EXPECT_EQ(complaint(with(3501, digits)), "") << digits;
  const std::string refused = complaint(with(3501, "90"));
  EXPECT_NE(refused.find("revision 9 (bytes 3501 and 3502 are 57 and 48)"), std::string::npos) << refused;
  EXPECT_EQ(reader(save(all)).shape().interval, 4000);
  EXPECT_EQ(reader(save(with(3217, std::string(2, '\0')))).shape().interval, 4000) << "traces state it";
  EXPECT_NE(complaint("\x1f\x8b" + all).find("compressed by gzip"), std::string::npos);
}

TEST_F(segy_file, a_full_disk_leaves_whole_writes_and_says_so) {
  const header head = make_header(sample_format::f32, 4, 4000, {});
  const std::vector<trace> two(2, make_trace(head));
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  {
    writer file(path("full.sgy"), head);
    file.write(two);
    file.publish();
    const struct rlimit small { 3600 + 3 * 256 + 10, before.rlim_max };
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    try {
      file.write(two);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(std::string(e.what()), "cannot write " + path("full.sgy") + ": File too large");
    }
    EXPECT_EQ(file.traces(), 2U);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  static_cast<void>(std::signal(SIGXFSZ, handler));
  EXPECT_EQ(reader(path("full.sgy")).traces(), 2U);
}

TEST_F(segy_file, a_file_cut_within_a_trace_or_a_header_is_refused) {
  const std::string all = contents(write(make_header(sample_format::f32, 4, 4000, {})));
  for (std::size_t size = 0; size < all.size(); size += 61) {
    if (size > 3600 && (size - 3600) % 256 == 0) continue;
    EXPECT_NE(complaint(all.substr(0, size)), "") << size;
  }
  EXPECT_NE(complaint(all.substr(0, all.size() - 1)).find("is truncated"), std::string::npos);
  EXPECT_NE(complaint(all.substr(0, 3600)).find("has no trace"), std::string::npos);
}

TEST_F(segy_file, a_wrong_header_is_refused_with_its_defect) {
  constexpr std::int64_t huge = 0xffffffff;
  const std::pair<std::string, const char*> lies[] = {
      {changed(in_file::format, 4), "states sample format 4"},
      {changed(in_file::revision, 9), "states SEG-Y revision 9"},
      {changed(in_file::samples, -1), "a trace of 65535 samples takes 262380"},
      {changed(in_file::text_headers, 32767), "ends in its headers"},
      {changed(in_file::text_headers, -1), "ends in its headers"},
      {changed(in_file::long_samples, huge, true), "a trace of 4294967295 samples"},
      {changed(in_file::more_trace_headers, huge, true), "has no trace"},
      {changed(in_file::trailers, huge, true), "of trailers behind its traces"},
      {changed(in_file::first_trace, -1, true), "ends in its headers"},
      {changed(in_file::first_trace, 5, true), "begins at byte 5, which is within the header"},
      {changed(in_file::traces, 5, true), "states 5 traces, but has 3"},
  };
  for (const auto& [bytes, words] : lies)
    EXPECT_NE(complaint(bytes).find(words), std::string::npos) << complaint(bytes);

  EXPECT_EQ(complaint(changed(in_file::samples, 0)), "");  // the headers of the traces state the number of samples
  EXPECT_NE(complaint(std::string(4000, '\0').replace(3225, 1, "\1")).find("states that its traces have 0 samples"),
            std::string::npos);
  std::string all = changed(in_file::equal_traces, 0);
  EXPECT_EQ(complaint(all), "");
  all[3600 + 256 + 115] = 3;
  EXPECT_NE(complaint(all).find("trace 2 states 3 samples, but 4 are expected"), std::string::npos) << complaint(all);
  EXPECT_THROW(reader("/nowhere/a.sgy"), bad_input);
  EXPECT_THROW(reader("/dev/zero"), bad_input);
}

}  // namespace
}  // namespace hpe::files::segy

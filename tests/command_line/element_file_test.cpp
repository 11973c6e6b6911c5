// Files of elements: hpe reads files of NumPy, NumPy reads files of hpe, and damaged files get a clear error.

#include "apps/files/element_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "hpe/hpe.hpp"

namespace hpe::files {
namespace {

class element_file : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  /// Writes a file as numpy.save does in this version of the format.
  std::string save(const std::string& dictionary, const std::string& data, int version = 1) {
    std::string header = dictionary + "\n";
    std::string bytes =
        std::string("\x93NUMPY") + static_cast<char>(version) + '\0' + static_cast<char>(header.size()) + '\0';
    if (version > 1) bytes += std::string(2, '\0');
    return write_raw("a.npy", bytes + header + data);
  }
  std::string write_raw(const std::string& name, const std::string& bytes) {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  static std::string complaint(const std::string& file) {
    try {
      static_cast<void>(describe(file));
    } catch (const bad_input& e) {
      return e.what();
    }
    return "";
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("hpe-files-" + std::to_string(getpid()));
};

TEST_F(element_file, reads_files_of_numpy_into_device_memory) {
  for (const int version : {1, 2, 3}) {
    const std::string name = save("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }",
                                  std::string("\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6\0\0\0", 24), version);
    const description file = describe(name);
    EXPECT_EQ(file.type, "i32");
    EXPECT_EQ(file.shape, (std::vector<std::uint64_t>{2, 3}));
    ASSERT_EQ(file.elements(4), 6U);
    const array<std::int32_t> data(6);
    read(file, data.data());
    for (int i = 0; i < 6; ++i) EXPECT_EQ(data[static_cast<std::size_t>(i)], i + 1);
  }
}

TEST_F(element_file, reads_the_files_that_it_writes) {
  for (const char* type : {"i32", "u64", "f32", "f64", "c64", "c128", "u32_u32", "f32_u32"}) {
    const array<std::byte> data(16 * 10);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
    write(path("b.npy"), type, {5, 2}, data.data(), 16);
    const description file = describe(path("b.npy"));
    EXPECT_EQ(file.type, type);
    EXPECT_EQ(file.shape, (std::vector<std::uint64_t>{5, 2}));
    EXPECT_EQ(file.begin % 64, 0U);
    EXPECT_EQ(file.bytes, 160U);
    std::vector<std::byte> back(160);
    read(file, back.data());
    EXPECT_TRUE(std::equal(back.begin(), back.end(), data.begin()));
  }
  write(path("c.raw"), "u32", {3}, "aaabbbcccddd", 4);
  EXPECT_EQ(describe(path("c.raw")).elements(4), 3U);
  EXPECT_THROW(static_cast<void>(describe(path("c.raw")).elements(8)), bad_input);
  write(path("one.npy"), "u32", {3}, "aaabbbcccddd", 4);
  std::ostringstream text;
  text << std::ifstream(path("one.npy")).rdbuf();
  EXPECT_NE(text.str().find("{'descr': '<u4', 'fortran_order': False, 'shape': (3,), }"), std::string::npos)
      << text.str();
}

TEST_F(element_file, names_the_defect_of_a_file) {
  EXPECT_NE(complaint(path("none")).find("No such file"), std::string::npos);
  EXPECT_NE(complaint(testing::TempDir()).find("not a regular file"), std::string::npos);
  EXPECT_NE(complaint(write_raw("a.npy", "numbers in text")).find("the magic bytes are missing"), std::string::npos);
  EXPECT_NE(complaint(save("{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }", "", 9)).find("version is 9"),
            std::string::npos);
  EXPECT_NE(complaint(save("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "abcd"))
                .find("'>f4'; the possible types are i32"),
            std::string::npos);
  EXPECT_NE(complaint(save("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", "abcd")).find("Fortran order"),
            std::string::npos);
  EXPECT_NE(
      complaint(save("{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }", "abcd")).find("without a shape"),
      std::string::npos);
  const description file = describe(save("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "abcd"));
  EXPECT_THROW(static_cast<void>(file.elements(4)), bad_input) << "three elements are not four bytes";
  EXPECT_THROW(file.must_hold("f64"), bad_input);
  EXPECT_NO_THROW(file.must_hold("f32"));
  EXPECT_THROW(write("/dev/full", "u32", {3}, "aaabbbcccddd", 4), std::runtime_error);
  EXPECT_TRUE(std::filesystem::exists("/dev/full")) << "only files are removed";
}

TEST_F(element_file, reads_headers_in_any_form_of_python) {
  const std::string three("\3\0\0\0\1\0\0\0\2\0\0\0", 12);
  for (const char* const header : {"{'descr': '<u4', 'fortran_order': True, 'shape': (3,), }",
                                   "{'descr': '<u4', 'fortran_order': True, 'shape': (1, 3)}",
                                   R"({"shape": (3,), "descr": "<u4", "fortran_order": False})",
                                   "{ 'descr' : u'<u4' , 'fortran_order' : False, 'shape' : (3L,) }",
                                   "{'descr': '<u4',\n 'fortran_order': False,\n 'shape': [3]}"}) {
    const description file = describe(save(header, three));
    EXPECT_EQ(file.type, "u32") << header;
    EXPECT_EQ(file.elements(4), 3U) << header;
  }
  for (const char* const names : {R"([("owner's", '<u4'), ('value', '<f4')])", "[('k[0], a', '<u4'), ('v)', '<f4')]",
                                  R"([('it\'s, \\', '<u4'), ("\"", '<f4'),])"}) {
    const auto header = std::string("{'descr': ") + names + ", 'fortran_order': False, 'shape': (1,), }";
    EXPECT_EQ(describe(save(header, "abcdefgh")).type, "u32_f32") << header;
  }
}

TEST_F(element_file, quotes_what_it_does_not_read) {
  const auto of = [&](const std::string& header) { return complaint(save(header, "abcd")); };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const std::string type = of("{'descr': [('a', '<f4'), ('', '|V4')], 'fortran_order': False, 'shape': (1,)}");
  EXPECT_TRUE(has(type, "type [('a', '<f4'), ('', '|V4')]; the possible types are")) << type;
  EXPECT_TRUE(has(of("{'fortran_order': False, 'shape': (1,)}"), "its header has no 'descr'"));
  EXPECT_TRUE(
      has(of("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)"), "its header is not a dictionary of Python"));
  EXPECT_TRUE(has(of("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), "without a shape: (-1,)"));
  EXPECT_TRUE(has(of("{'descr': '<f4', 'fortran_order': False, 'shape': 1}"), "without a shape: 1"));
  EXPECT_TRUE(has(of("\x1b[31m"), "of Python: \\x1b[31m")) << "terminals obey such bytes";
  EXPECT_TRUE(has(of(std::string(1000, '(')), "not a dictionary of Python"));
}

TEST_F(element_file, names_compressed_files_and_other_names) {
  EXPECT_NE(complaint(write_raw("a.npy", "\x1f\x8b\b")).find("compressed by gzip"), std::string::npos);
  EXPECT_NE(complaint(write_raw("a.npy", "PK\3\4 of numpy.savez")).find("zip archive"), std::string::npos);
  EXPECT_NE(complaint(write_raw("a.raw.gz", "\x1f\x8b\b")).find("compressed by gzip"), std::string::npos);
  EXPECT_EQ(complaint(write_raw("a.raw", "\x1f\x8b\b")), "") << "elements may begin with these bytes";
  EXPECT_EQ(complaint(write_raw("b.raw.gz", "elements")), "");
  EXPECT_NE(complaint(write_raw("a.raw", "\x93NUMPY")).find("must end in .npy"), std::string::npos);
}

TEST_F(element_file, a_file_that_cannot_be_written_stays) {
  const std::string file = write_raw("a.raw", "earlier elements");
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small { 100, before.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<std::uint32_t> elements(1000);
  EXPECT_THROW(write(file, "u32", {1000}, elements.data(), 4), std::runtime_error);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(describe(file).bytes, 16U);
}

TEST_F(element_file, a_file_cut_anywhere_is_refused) {
  const std::string whole = [&] {
    save("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", "abcdefgh");
    std::ostringstream text;
    text << std::ifstream(path("a.npy")).rdbuf();
    return text.str();
  }();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_raw("a.npy", whole.substr(0, size));
    EXPECT_THROW(static_cast<void>(describe(path("a.npy")).elements(4)), bad_input) << size;
  }
}

}  // namespace
}  // namespace hpe::files

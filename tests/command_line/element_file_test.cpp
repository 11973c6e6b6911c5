// Files of elements: hpe reads files of NumPy, NumPy reads files of hpe, and damaged files get a clear error.

#include "apps/files/element_file.h"

#include <gtest/gtest.h>
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

  /// A file as numpy.save writes it in a given version of the format.
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
  EXPECT_NE(complaint(write_raw("a.npy", "PK\3\4 an archive")).find("the magic bytes are missing"), std::string::npos);
  EXPECT_NE(complaint(save("{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }", "", 9)).find("version is 9"),
            std::string::npos);
  EXPECT_NE(complaint(save("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "abcd"))
                .find("'>f4'; possible are i32"),
            std::string::npos);
  EXPECT_NE(complaint(save("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "abcd")).find("Fortran order"),
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

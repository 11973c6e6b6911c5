// Runs `hpe spmv`, `hpe bfs` and `hpe hash` as users do, and tests the files that they read.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "apps/files/element_file.h"
#include "apps/gather/gather_plan.h"
#include "apps/sparse/file.h"
#include "apps/sparse/hash_table.h"
#include "apps/sparse/rows.h"
#include "apps/sparse/sparse_main.h"
#include "tests/command.h"

namespace {

using namespace hpe::sparse;
using command_test::contains;
using command_test::outcome;

class sparse_command : public ::testing::Test {
 protected:
  sparse_command() : folder_(std::filesystem::path(::testing::TempDir()) / ("hpe-sparse-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~sparse_command() override { std::filesystem::remove_all(folder_); }

  static outcome run(std::vector<std::string> words) {
    const auto main_function = words.front() == "spmv" ? spmv_main : words.front() == "bfs" ? bfs_main : hash_main;
    return command_test::call(main_function, std::move(words));
  }
  static void succeeds(const std::vector<std::string>& words, const std::string& says) {
    const outcome o = run(words);
    EXPECT_EQ(o.status, 0) << o.out << o.err;
    EXPECT_TRUE(contains(o.out, says)) << o.out;
  }
  static void refused(const std::vector<std::string>& words, const std::string& because) {
    const outcome o = run(words);
    EXPECT_EQ(o.status, 2) << o.out << o.err;
    EXPECT_TRUE(contains(o.err, because)) << o.err;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  template <class T>
  [[nodiscard]] std::string write(const std::string& name, const std::string& type,
                                  const std::vector<T>& values) const {
    hpe::files::write(path(name), type, {values.size()}, values.data(), sizeof(T));
    return path(name);
  }
  template <class T>
  [[nodiscard]] std::vector<T> read(const std::string& name) const {
    const hpe::files::description d = hpe::files::describe(path(name));
    std::vector<T> all(d.elements(sizeof(T)));
    hpe::files::read(d, all.data());
    return all;
  }

 private:
  const std::filesystem::path folder_;
};

TEST_F(sparse_command, random_products_are_right_by_every_method_and_on_several_devices) {
  for (const char* type : {"f32", "f64"}) {
    for (const char* method : {"single-pass", "multi-pass", "partitioned"})
      succeeds({"spmv", "3001", "--type", type, "--method", method, "--devices=1", "--repeats=1"},
               "the product is right");
    for (const char* devices : {"1", "2", "3"})
      succeeds({"spmv", "3001", "--elements=9", "--type", type, "--devices", devices, "--repeats=1"},
               "the product is right");
  }
  succeeds({"spmv", "1", "--repeats=1"}, "the product is right");
  refused({"spmv", "100", "--method=partitioned", "--devices=2"}, "runs on one device only");
}

TEST(sparse, rows_are_shared_by_as_many_threads_as_they_have_elements) {
  const auto shared = [](std::uint64_t least, std::uint64_t most) {
    return share_rows(random_rows<float>({300, least, most}, false, 0).first);
  };
  EXPECT_EQ(shared(1, 1).lanes, 1U);
  EXPECT_EQ(shared(15, 15).lanes, 16U) << "a mean just below a power of two";
  EXPECT_EQ(shared(15, 15).each, 2U);
  EXPECT_EQ(shared(33, 33).each, 2U);
  EXPECT_EQ(shared(200, 200).lanes, 32U);
  EXPECT_EQ(shared(200, 200).each, 4U);
  hpe::array<std::uint32_t> first(101);
  for (std::uint32_t r = 0; r <= 100; ++r) first[r] = r < 100 ? r : 700;
  EXPECT_EQ(share_rows(first).lanes, 16U) << "one long row among short ones";
  EXPECT_EQ(share_rows(first).each, 4U);
}

TEST_F(sparse_command, a_matrix_and_a_vector_of_files_give_the_product) {
  const std::string matrix = write("m.mtx",
                                   "%%MatrixMarket matrix coordinate real general\n% a comment\n3 4 4\n"
                                   "1 1 2\n3 4 -1.5e0\n1 3 1\n1 1 0.5\n");
  const std::string x = write<double>("x.npy", "f64", {1, 2, 3, 4});
  succeeds({"spmv", matrix, "--x", x, "--output", path("y.npy"), "--repeats=1"}, "3 x 4 with 3 elements");
  EXPECT_EQ(read<double>("y.npy"), (std::vector<double>{5.5, 0, -6}));
  const std::string mirrored = write("s.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 2\n2 1\n3 3\n");
  succeeds({"spmv", mirrored, "--x", x, "--output", path("y.npy"), "--repeats=1"}, "with 3 elements");
  EXPECT_EQ(read<double>("y.npy"), (std::vector<double>{2, 1, 3, 0}));
  refused({"spmv", matrix, "--x", write<double>("short.npy", "f64", {1})},
          "has 1 elements, but the matrix has 4 columns");
  refused({"spmv", matrix, "--x", x, "--type=f32"}, "f64");
  refused({"spmv", path("absent.mtx")}, "cannot be opened");
}

TEST(sparse, a_matrix_has_the_sum_of_the_values_of_an_element) {
  using place = std::tuple<std::uint32_t, std::uint32_t, double>;
  const auto read = [](const std::string& kind, const std::string& text) {
    std::vector<place> all;
    for (const element& e : matrix_of("%%MatrixMarket matrix coordinate " + kind + "\n" + text, "m").elements)
      all.emplace_back(e.row, e.column, e.value);
    return all;
  };
  EXPECT_EQ(read("real general", "3 3 6\n3 1 8\n1 2 0.5\n3 1 -2\n1 1 4\n1 2 1\n1 2 2\n"),
            (std::vector<place>{{0, 0, 4}, {0, 1, 3.5}, {2, 0, 6}}));
  EXPECT_EQ(read("integer symmetric", "2 2 4\n2 1 3\n2 2 1\n1 2 4\n2 2 -1\n"),
            (std::vector<place>{{0, 1, 7}, {1, 0, 7}, {1, 1, 0}}));
  EXPECT_EQ(read("real skew-symmetric", "2 2 2\n2 1 3\n2 1 4\n"), (std::vector<place>{{0, 1, -7}, {1, 0, 7}}));
  EXPECT_EQ(read("pattern general", "2 2 2\n2 2\n2 2\n"), (std::vector<place>{{1, 1, 2}}));
  EXPECT_TRUE(read("real general", "2 2 0\n").empty());
  EXPECT_EQ(graph_of("2\n0 2\n0 0\n0\n2\n1 5\n1 7\n", "g").elements.size(), 2U) << "edges of a graph stay separate";
  const auto rows = compress<float>(matrix_of("%%MatrixMarket matrix coordinate real general\n3 2 3\n"
                                              "3 1 1\n1 2 2\n3 1 4\n",
                                              "m"),
                                    0);
  EXPECT_EQ(std::vector<std::uint32_t>(rows.first.begin(), rows.first.end()), (std::vector<std::uint32_t>{0, 1, 1, 2}));
  EXPECT_EQ(std::vector<float>(rows.values.begin(), rows.values.end()), (std::vector<float>{2, 5}));
}

TEST_F(sparse_command, searches_find_the_shortest_ways) {
  succeeds({"bfs", "4000", "--edges=3", "--repeats=1"}, "the levels are right");
  // 0 -> 1 -> 2 -> 0, 3 -> 0; the source is 1.
  const std::string graph = write("g.txt", "4\n0 1\n1 1\n2 1\n3 1\n\n1\n\n4\n1 5\n2 5\n0 5\n0 5\n");
  succeeds({"bfs", graph, "--output", path("l.npy"), "--repeats=1"}, "3 vertices reached, greatest level 2");
  EXPECT_EQ(read<std::uint32_t>("l.npy"), (std::vector<std::uint32_t>{2, 0, 1, 0xffffffffU}));
  succeeds({"bfs", graph, "--source=3", "--repeats=1"}, "4 vertices reached, greatest level 3");
  refused({"bfs", graph, "--source=4"}, "vertex 4 does not exist; the graph has the vertices 0 to 3");
  // A chain has more levels than the number of steps in a batch.
  std::string chain = "%%MatrixMarket matrix coordinate pattern general\n50 50 49\n";
  for (int v = 1; v < 50; ++v) chain += std::to_string(v) + " " + std::to_string(v + 1) + "\n";
  succeeds({"bfs", write("chain.mtx", chain), "--repeats=1"}, "greatest level 49");
  refused({"bfs", write("flat.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 4 1\n1 1\n")},
          "a graph needs as many rows as columns");
}

TEST_F(sparse_command, hash_tables_find_their_entries) {
  for (const char* method : {"single-pass", "multi-pass", "partitioned"})
    succeeds({"hash", "20001", "--queries=30000", "--method", method, "--repeats=1"}, "the results are right");
  const std::string keys = write<std::uint32_t>("k.npy", "u32", {7, 0, 0xffffffffU, 7, 9}),
                    values = write<std::uint32_t>("v.npy", "u32", {1, 2, 3, 1, 4}),
                    queries = write<std::uint32_t>("q.npy", "u32", {9, 8, 7, 0xffffffffU, 0});
  succeeds({"hash", keys, "--values", values, "--queries", queries, "--missing=77", "--method=single-pass", "--output",
            path("found.npy"), "--repeats=1"},
           "the results are right");
  EXPECT_EQ(read<std::uint32_t>("found.npy"), (std::vector<std::uint32_t>{4, 77, 1, 3, 2}));
  const std::string reserved = write<std::uint32_t>("r.npy", "u32", {0xffffffffU});
  refused({"hash", reserved, "--values", reserved, "--method=single-pass"}, "marks an empty slot");
  refused({"hash", keys, "--values", reserved, "--method=single-pass"}, "1 values for 5 keys");
  refused({"hash", "10", "--devices=2", "--method=single-pass"}, "only one device, the first, can do this work");
  refused({"hash", "--present=1.5", "--method=single-pass"}, "a share from 0 to 1");
}

/// Different keys that share a slot of a level go to further levels; equal keys do not.
TEST_F(sparse_command, equal_keys_need_no_more_levels) {
  const hpe::array<std::uint64_t> entries(5000);
  for (std::uint64_t i = 0; i < entries.size(); ++i) entries[i] = i << 32 | 12345;
  hash_table table(entries.data(), entries.size(), 0,
                   [](const hpe::gather::problem&) { return hpe::gather::choice{}; });
  EXPECT_EQ(table.levels(), 1U);
}

TEST_F(sparse_command, matrices_are_read_as_other_tools_write_them) {
  const std::string head = "%%MatrixMarket matrix coordinate real general\n", body = "2 2 2\n1 1 1.5\n2 1 -2\n";
  for (const std::string& text :
       {head + "  % behind blanks\n" + body, head + "\n% behind an empty line\n\n" + body, head + "%\r\n\t%\r\n" + body,
        "\xef\xbb\xbf" + head + body, head + "+2 2 2\n1 +1 +1.5\n2 1 -2e+0\n", head + body + "\n\n"}) {
    const contents c = read_file(write("m.mtx", text));
    ASSERT_EQ(c.elements.size(), 2U) << text;
    EXPECT_EQ(c.elements[0].value, 1.5) << text;
    EXPECT_EQ(c.elements[1].row, 1U) << text;
    EXPECT_EQ(c.elements[1].value, -2) << text;
  }
  const contents tiny = read_file(write("m.mtx", head + "2 2 3\n1 1 1e-400\n1 2 -1e-400\n2 2 3e-320\n"));
  EXPECT_EQ(tiny.elements[0].value, 0);
  EXPECT_EQ(tiny.elements[1].value, 0);
  EXPECT_EQ(tiny.elements[2].value, 3e-320) << "less than normal, and not 0";
  refused({"spmv", write("m.mtx", head + "2 2 1\n1 1 1e400\n")}, "line 3: a value is not finite");
  refused({"spmv", write("m.mtx", head + "2 2 1\n1 1 +-1\n")}, "\"+-1\" is not a value");
  refused({"spmv", write("m.mtx", head + "2 2 1\n1 1 \x1b[1m\n")}, "\"\\x1b[1m\" is not a value");
  refused({"spmv", write("m.mtx.gz", "\x1f\x8b\b and so on")}, "it is compressed by gzip");
  refused({"spmv", write("m.mtx", "\xff\xfe%")}, "byte order mark of UTF-16");
  refused({"bfs", write("m.mtx", "rows 2\n")}, "begins with \"rows 2\"; a Matrix Market file begins with");
}

TEST_F(sparse_command, malformed_files_are_refused_with_their_line) {
  const std::string head = "%%MatrixMarket matrix coordinate real general\n";
  const std::vector<std::pair<std::string, std::string>> matrices{
      {"%%MatrixMarket vector", "line 1: not a Matrix Market file"},
      {"%%MatrixMarket matrix array real general\n2 2\n", "the format \"array\" is not supported"},
      {"%%MatrixMarket matrix coordinate complex general\n", "only real, integer and pattern are"},
      {"%%MatrixMarket matrix coordinate real hermitian\n", "only general, symmetric and skew-symmetric are"},
      {head, "the file ends, but the number of rows should follow"},
      {head + "2 2 99999999\n", "line 2: the number of elements is 99999999"},
      {head + "4000000000 2 1\n1 1 1\n", "line 2: the number of rows is 4000000000"},
      {head + "2 2 1\n\n3 1 1\n", "line 4: a row is 3; values from 1 to 2 are possible"},
      {head + "2 2 1\n0 1 1\n", "line 3: a row is 0"},
      {head + "2 2 1\n1 x 1\n", "line 3: \"x\" is not a column"},
      {head + "2 2 1\n1 1 inf\n", "not finite"},
      {head + "2 2 1\n1 1\n", "the file ends, but a value should follow"},
      {head + "2 2 1\n1 1 1\n2 2 2\n", "line 4: the file continues after its last element"},
      {"%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n", "a symmetric matrix of 2 x 3"},
  };
  for (const auto& [text, because] : matrices) {
    try {
      static_cast<void>(matrix_of(text, "the file"));
      ADD_FAILURE() << text << " was read";
    } catch (const bad_input& e) {
      EXPECT_TRUE(contains(e.what(), because)) << text << ": " << e.what();
    }
  }
  const std::vector<std::pair<std::string, std::string>> graphs{
      {"-1", "\"-1\" is not the number of vertices"},
      {"9", "from 1 to 1 are possible"},
      {"2\n0 1\n1 1\n2\n0\n", "line 4: the source is 2"},
      {"2\n0 1\n1 1\n0\n2\n1 1\n2 1\n", "line 7: the target of an edge is 2"},
      {"2\n0 1\n1 2\n0\n2\n1 1\n0 1\n", "vertex 1 has 2 edges from edge 1 on, but the file has only 2 edges"},
      {"3\n0 1\n0 1\n0 1\n0\n2\n1 1\n0 1\n", "more edges than the 2 edges of the file"},
  };
  for (const auto& [text, because] : graphs) {
    try {
      static_cast<void>(graph_of(text, "the file"));
      ADD_FAILURE() << text << " was read";
    } catch (const bad_input& e) {
      EXPECT_TRUE(contains(e.what(), because)) << text << ": " << e.what();
    }
  }
}

}  // namespace

// Streams of stdio and of C++.

#undef _FORTIFY_SOURCE

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/io/support.h"

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names of libc
extern "C" {
std::size_t __fread_chk(void*, std::size_t, std::size_t, std::size_t, std::FILE*);
std::size_t __fread_unlocked_chk(void*, std::size_t, std::size_t, std::size_t, std::FILE*);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

using namespace io_test;

class opened {
 public:
  opened(const file& f, const char* mode) : stream_(::fdopen(::dup(f.get()), mode)) {}
  ~opened() { std::fclose(stream_); }
  opened(const opened&) = delete;
  opened& operator=(const opened&) = delete;
  operator std::FILE*() const { return stream_; }

 private:
  std::FILE* stream_;
};

class stdio : public testing::TestWithParam<place> {};

TEST_P(stdio, EveryFread) {
  using call = std::function<std::size_t(void*, std::size_t, std::size_t, std::FILE*)>;
  const std::vector<call> calls = {
      [](void* p, std::size_t s, std::size_t n, std::FILE* f) { return std::fread(p, s, n, f); },
      [](void* p, std::size_t s, std::size_t n, std::FILE* f) { return ::fread_unlocked(p, s, n, f); },
      [](void* p, std::size_t s, std::size_t n, std::FILE* f) { return ::__fread_chk(p, s * n, s, n, f); },
      [](void* p, std::size_t s, std::size_t n, std::FILE* f) { return ::__fread_unlocked_chk(p, s * n, s, n, f); },
  };
  const content source = random_content(room_for(GetParam()) + 10);
  const file f;
  f.fill(source);
  memory m(GetParam(), room_for(GetParam()));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (const std::size_t n : sizes_for(GetParam())) {
      m.renew();
      ::lseek(f.get(), 0, SEEK_SET);
      const opened stream(f, "r");
      ASSERT_EQ(std::fgetc(stream), int(source[0]));  // puts a part of the file into the buffer of the stream
      errno = 4711;
      ASSERT_EQ(calls[i](m.data() + 3, 1, n, stream), n);
      ASSERT_EQ(std::ftell(stream), long(n + 1));
      m.expect(3, {source.begin() + 1, source.begin() + 1 + std::ptrdiff_t(n)});
      m.check(("after fread " + std::to_string(i) + " of " + std::to_string(n)).c_str());
    }
  }
}

TEST_P(stdio, FreadCountsWholeItems) {
  const content source = random_content(1000);
  const file f;
  f.fill(source);
  memory m(GetParam(), 2000);
  const opened stream(f, "r");
  EXPECT_EQ(std::fread(m.data(), 300, 0, stream), 0U);
  EXPECT_EQ(std::fread(m.data(), 0, 300, stream), 0U);
  EXPECT_EQ(std::fread(m.data(), 300, 5, stream), 3U);  // and 100 bytes of the fourth item
  EXPECT_NE(std::feof(stream), 0);
  EXPECT_EQ(std::ferror(stream), 0);
  m.expect(0, source);
  m.check("after it");
  EXPECT_EQ(std::fread(m.data(), 300, 5, stream), 0U);
  m.check("at the end");
}

TEST_P(stdio, EveryFwrite) {
  memory m(GetParam(), room_for(GetParam()));
  for (const bool unlocked : {false, true}) {
    const file f;
    content expected;
    {
      const opened stream(f, "w");
      for (const std::size_t n : sizes_for(GetParam())) {
        m.renew();
        std::fputc('x', stream);
        expected.push_back(std::byte{'x'});
        ASSERT_EQ(unlocked ? ::fwrite_unlocked(m.data() + 7, 1, n, stream) : std::fwrite(m.data() + 7, 1, n, stream),
                  n);
        const content part = m.part(7, n);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      ASSERT_EQ(std::fwrite(m.data(), 100, 7, stream), 7U);
      const content part = m.part(0, 700);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    ASSERT_TRUE(f.all() == expected);
  }
}

TEST_P(stdio, LargeOnesGoThroughInChunks) {
  if (GetParam() == place::small) return;
  constexpr std::size_t large = (11 << 20) + 77;
  memory m(GetParam(), large + 10);
  const file f;
  {
    const opened stream(f, "w");
    ASSERT_EQ(std::fwrite(m.data() + 3, 1, large, stream), large);
  }
  const content put = m.part(3, large);
  ASSERT_TRUE(f.all() == put);
  m.renew();
  ::lseek(f.get(), 0, SEEK_SET);
  const opened stream(f, "r");
  ASSERT_EQ(std::fread(m.data() + 5, 1, large + 2, stream), large);
  m.expect(5, put);
  m.check("after a large fread");
}

TEST_P(stdio, TextIsWrittenWhateverItsLength) {
  for (const std::size_t length : {0UL, 10UL, 4000UL, 100'000UL}) {
    if (GetParam() == place::small && length > 5000) continue;
    memory m(GetParam(), length + 1);
    std::memset(m.data(), 'a', length);
    m.data()[length] = std::byte{0};
    const auto* text = reinterpret_cast<const char*>(m.data());
    const file f;
    {
      const opened stream(f, "w");
      EXPECT_GE(std::fputs(text, stream), 0);
      EXPECT_GE(::fputs_unlocked(text, stream), 0);
    }
    EXPECT_TRUE(f.all() == content(2 * length, std::byte{'a'}));
    f.fill({});
    std::fflush(stdout);
    const int out = ::dup(STDOUT_FILENO);
    ::dup2(f.get(), STDOUT_FILENO);
    EXPECT_EQ(std::puts(text), int(length + 1));
    std::fflush(stdout);
    ::dup2(out, STDOUT_FILENO);
    ::close(out);
    content expected(length, std::byte{'a'});
    expected.push_back(std::byte{'\n'});
    EXPECT_TRUE(f.all() == expected);
  }
}

// hpe does not interpose these functions: libc copies between the stream's buffer and hpe memory itself.
TEST_P(stdio, LinesAreRead) {
  memory m(GetParam(), 5000);
  const file f;
  content line(4500, std::byte{'b'});
  line.push_back(std::byte{'\n'});
  f.fill(line);
  const opened stream(f, "r");
  ASSERT_EQ(std::fgets(reinterpret_cast<char*>(m.data()), 5000, stream), reinterpret_cast<char*>(m.data()));
  line.push_back(std::byte{0});
  m.expect(0, line);
  m.check("after fgets");
}

TEST_P(stdio, AFailureIsOneOfTheStream) {
  memory m(GetParam(), room_for(GetParam()));
  std::FILE* full = std::fopen("/dev/full", "w");
  std::setbuf(full, nullptr);
  EXPECT_LT(std::fwrite(m.data(), 1, 5000, full), 5000U);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_NE(std::ferror(full), 0);
  std::fclose(full);
  if (GetParam() != place::small) {
    std::memset(m.data(), 'a', 20);
    m.data()[20] = std::byte{0};
    content line(20, std::byte{'a'});
    line.push_back(std::byte{0});
    m.expect(0, line);
    const auto* text = reinterpret_cast<const char*>(m.data());
    for (int (*const put)(const char*, std::FILE*) : {std::fputs, ::fputs_unlocked}) {
      std::FILE* unbuffered = std::fopen("/dev/full", "w");
      std::setbuf(unbuffered, nullptr);
      EXPECT_EQ(put(text, unbuffered), EOF);
      std::fclose(unbuffered);
    }
  }
  std::FILE* folder = std::fopen("/", "r");
  errno = 0;
  EXPECT_EQ(std::fread(m.data(), 1, 5000, folder), 0U);
  EXPECT_EQ(errno, EISDIR);
  EXPECT_NE(std::ferror(folder), 0);
  std::fclose(folder);
  m.check("after failures");
}

TEST_P(stdio, StreamsOfCPlusPlus) {
  memory m(GetParam(), room_for(GetParam()));
  const std::string name = "/tmp/hpe-test-stream-" + std::to_string(::getpid());
  const auto n = static_cast<std::streamsize>(m.size());
  {
    std::ofstream out(name, std::ios::binary);
    ASSERT_TRUE(out.write(reinterpret_cast<const char*>(m.data()), n));
  }
  const content put = m.part(0, m.size());
  m.renew();
  std::ifstream in(name, std::ios::binary);
  ASSERT_TRUE(in.read(reinterpret_cast<char*>(m.data()), n));
  m.expect(0, put);
  m.check("after ifstream::read");
  ::unlink(name.c_str());
}

INSTANTIATE_TEST_SUITE_P(Places, stdio, testing::ValuesIn(all_places), name_of_parameter);

TEST(shared_streams, PiecesOfDifferentThreadsDoNotMix) {
  constexpr std::size_t each = 9 << 20;
  const file f;
  {
    const opened stream(f, "w");
    std::vector<std::thread> threads;
    for (unsigned char t = 1; t <= 3; ++t)
      threads.emplace_back([&, t] {
        const hpe::array<unsigned char> mine(each);
        std::memset(mine.data(), t, each);
        EXPECT_EQ(std::fwrite(mine.data(), 1, each, stream), each);
      });
    for (auto& t : threads) t.join();
  }
  const content all = f.all();
  ASSERT_EQ(all.size(), 3 * each);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(content(all.begin() + std::ptrdiff_t(i * each), all.begin() + std::ptrdiff_t((i + 1) * each)) ==
                content(each, all[i * each]));
}

}  // namespace

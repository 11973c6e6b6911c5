// Fat binaries: those that nvcc makes, and damaged ones of every kind. Damaged bytes are directly in front of unmapped
// memory, so reading past their end causes a crash.

#include <gtest/gtest.h>
#include <lz4.h>
#include <sys/resource.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "hpe/error.hpp"
#include "runtime/ptx/files/device_code.h"
#include "runtime/ptx/files/fat_binary.h"
#include "runtime/ptx/files/mapped_memory.h"
#include "tests/bytes_at_end.h"

namespace hpe::ptx {
namespace {

std::string text_with(const std::string& body) {
  return ".version 8.6\n.target sm_75\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<4>;\n" + body +
         "\nret;\n}\n";
}

// Returns a container in nvcc's format.
std::string container(const std::string& ptx, std::uint64_t flags) {
  std::string body = ptx;
  if ((flags & 0x8000) != 0) {
    body.resize(ZSTD_compressBound(ptx.size()));
    body.resize(ZSTD_compress(body.data(), body.size(), ptx.data(), ptx.size(), 3));
  } else if ((flags & 0x2000) != 0) {
    body.resize(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(ptx.size()))));
    body.resize(static_cast<std::size_t>(
        LZ4_compress_default(ptx.data(), body.data(), static_cast<int>(ptx.size()), static_cast<int>(body.size()))));
  }
  std::string entry(64, '\0');
  const auto put = [](std::string& to, std::size_t at, auto value) {
    std::memcpy(to.data() + at, &value, sizeof value);
  };
  put(entry, 0, std::uint16_t{1});
  put(entry, 4, std::uint32_t{64});
  put(entry, 8, std::uint64_t{body.size()});
  put(entry, 16, static_cast<std::uint32_t>((flags & 0xa000) != 0 ? body.size() : 0));
  put(entry, 28, std::uint32_t{75});
  put(entry, 40, flags);
  put(entry, 56, std::uint64_t{ptx.size()});
  std::string cubin(64, '\0');
  put(cubin, 0, std::uint16_t{2});
  put(cubin, 4, std::uint32_t{64});
  put(cubin, 8, std::uint64_t{8});
  cubin += "machine.";
  std::string head(16, '\0');
  put(head, 0, std::uint32_t{0xba55ed50});
  put(head, 4, std::uint16_t{1});
  put(head, 6, std::uint16_t{16});
  put(head, 8, std::uint64_t{cubin.size() + entry.size() + body.size()});
  return head + cubin + entry + body;
}

TEST(FatBinary, ReadsAllCompressions) {
  const std::string ptx = text_with("add.s32 %r1, %r2, %r3;");
  for (const std::uint64_t flags : {0x0ULL, 0x2000ULL, 0x8000ULL}) {
    const std::string bytes = container(ptx, flags);
    const auto entries = read_fat_binary(bytes.data(), bytes.size());
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].what, fat_binary_entry::kind::cubin);
    EXPECT_EQ(choose_ptx(entries).text, ptx);
    EXPECT_EQ(choose_ptx(entries).architecture, 75U);
    struct {
      std::uint32_t magic, version;
      const void* data;
      void* unused;
    } const wrapper{0x466243b1, 1, bytes.data(), nullptr};
    EXPECT_EQ(choose_ptx(read_fat_binary_in_memory(&wrapper)).text, ptx);
    EXPECT_EQ(choose_ptx(read_fat_binary_in_memory(bytes.data())).text, ptx);
    // If a file looks like a wrapper, the address in it must not be used.
    EXPECT_THROW(static_cast<void>(read_fat_binary(&wrapper, sizeof wrapper)), error);
  }
}

TEST(FatBinary, SurvivesDamage) {
  const std::string good = container(text_with("add.s32 %r1, %r2, %r3;"), 0x8000);
  for (std::size_t n = 0; n < good.size(); n += 5) {
    EXPECT_THROW(static_cast<void>(read_fat_binary(good.data(), n)), error) << n;
  }
  std::string bad = good;
  bad[bad.size() - 20] = static_cast<char>(bad[bad.size() - 20] ^ 0x55);
  try {
    EXPECT_NE(choose_ptx(read_fat_binary(bad.data(), bad.size())).text, text_with("add.s32 %r1, %r2, %r3;"));
  } catch (const error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_THROW(static_cast<void>(read_fat_binary("\x7f"
                                                 "ELF............",
                                                 16)),
               error);
}

// libFuzzer (tests/fuzz) has found these inputs.
TEST(FatBinary, TakesNoMemoryForASizeThatItsBytesCannotHave) {
  constexpr std::size_t entry = 16 + 64 + 8;  // the entry after the container's header and the cubin
  constexpr std::uint64_t stated = 0x70000000;
  const auto most_kib = [] {
    struct rusage usage {};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  for (const std::uint64_t flags : {0x2000ULL, 0x8000ULL}) {
    std::string bytes = container(text_with("add.s32 %r1, %r2, %r3;"), flags);
    std::memcpy(bytes.data() + entry + 56, &stated, sizeof stated);
    const long before = most_kib();
    EXPECT_THROW(static_cast<void>(read_fat_binary(bytes.data(), bytes.size())), error);
    EXPECT_LT(most_kib() - before, 256 << 10);
  }
}

TEST(FatBinary, ReadsTextsOfSeveralMebibytes) {
  const std::string ptx = text_with(std::string(3 << 20, ' ') + "add.s32 %r1, %r2, %r3;");
  for (const std::uint64_t flags : {0x2000ULL, 0x8000ULL}) {
    const std::string bytes = container(ptx, flags);
    EXPECT_EQ(choose_ptx(read_fat_binary(bytes.data(), bytes.size())).text, ptx);
  }
}

TEST(FatBinary, RefusesATextThatIsFarLargerThanItsBytes) {
  const std::string bytes = container(text_with(std::string(64 << 20, ' ')), 0x8000);
  ASSERT_LT(bytes.size(), 32U << 10);
  EXPECT_THROW(static_cast<void>(read_fat_binary(bytes.data(), bytes.size())), error);
}

TEST(FatBinary, OfSeveralTextsTheOneForTheNewestArchitectureIsTaken) {
  std::vector<fat_binary_entry> entries;
  for (const std::uint32_t architecture : {70U, 90U, 80U})
    entries.push_back({fat_binary_entry::kind::ptx, architecture, std::to_string(architecture)});
  EXPECT_EQ(choose_ptx(entries).text, "90");
  std::reverse(entries.begin(), entries.end());
  EXPECT_EQ(choose_ptx(entries).text, "90");
}

TEST(FatBinary, TellsHowToGetPtx) {
  try {
    static_cast<void>(choose_ptx({{fat_binary_entry::kind::cubin, 90, ""}}));
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_NOT_SUPPORTED);
    EXPECT_NE(std::string(e.what()).find("-arch=compute_75"), std::string::npos);
  }
}

std::vector<std::string> good_images() {
  std::vector<std::string> images;
  for (const std::uint64_t flags : {0x0ULL, 0x2000ULL, 0x8000ULL})
    images.push_back(container(text_with("add.s32 %r1, %r2, %r3;"), flags));
  for (const auto& each : std::filesystem::directory_iterator(HPE_FAT_BINARY_CORPUS)) {
    std::ifstream file(each.path(), std::ios::binary);
    images.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return images;
}

// Reads the bytes with every reader. Each reader may refuse them.
void read_all(const test::bytes_at_end& bytes) {
  const auto tolerantly = [](const auto& read) {
    try {
      static_cast<void>(read());
    } catch (const error& e) {
      EXPECT_TRUE(e.status() == HPE_ERROR_INVALID_ARGUMENT || e.status() == HPE_ERROR_NOT_SUPPORTED) << e.what();
    }
  };
  const std::uint64_t wrapper[3] = {0x1466243b1, reinterpret_cast<std::uintptr_t>(bytes.data()), 0};
  tolerantly([&] { return read_fat_binary(bytes.data(), bytes.size()); });
  tolerantly([&] { return device_code_in({bytes.data(), bytes.size()}, "damaged"); });
  tolerantly([&] { return read_fat_binary_in_memory(wrapper); });
  const bool is_wrapper = bytes.size() > 3 && std::memcmp(bytes.data(), wrapper, 4) == 0;
  if (!is_wrapper) tolerantly([&] { return read_fat_binary_in_memory(bytes.data()); });
}

TEST(FatBinary, EveryTruncationIsRefusedOrReadInsideItsBytes) {
  for (const std::string& good : good_images())
    for (std::size_t n = 0; n <= good.size(); ++n) read_all(test::bytes_at_end(good.substr(0, n)));
}

TEST(FatBinary, RandomChangesAreRefusedOrReadInsideTheirBytes) {
  std::mt19937_64 random(20261126);
  const std::vector<std::string> all = good_images();
  constexpr std::uint64_t borders[] = {0,          1,          47,         48,         63,         0x7fff,
                                       0x00bd0050, 0x7fffffff, 0xffffffff, 1ULL << 40, ~0ULL - 15, ~0ULL};
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = all[random() % all.size()];
    for (auto changes = random() % 4 + 1; changes > 0; --changes) {
      // Most changes are in the headers, and half of the new values are at the limits of a field.
      const std::size_t at = random() % std::min<std::size_t>(bytes.size(), random() % 4 == 0 ? bytes.size() : 168);
      const std::size_t size = std::min<std::size_t>(std::size_t{1} << random() % 4, bytes.size() - at);
      const std::uint64_t value = random() % 2 == 0 ? random() : borders[random() % std::size(borders)];
      std::memcpy(bytes.data() + at, &value, size);
    }
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    read_all(test::bytes_at_end(bytes));
  }
}

TEST(FatBinary, AnEntryEndsInsideItsContainer) {
  const std::string good = container(text_with("add.s32 %r1, %r2, %r3;"), 0);
  std::string shorter = good;
  const std::uint64_t body = good.size() - 16 - 1;  // the body lacks the last byte of the last entry
  std::memcpy(shorter.data() + 8, &body, sizeof body);
  EXPECT_THROW(static_cast<void>(read_fat_binary(shorter.data(), shorter.size())), error);
  EXPECT_THROW(static_cast<void>(read_fat_binary_in_memory(shorter.data())), error);
  EXPECT_EQ(read_fat_binary_in_memory(good.data()).size(), 2U);
}

TEST(FatBinary, MappedBytesEndAtTheFirstUnmappedPage) {
  for (const std::size_t size : {1UL, 4095UL, 4096UL, 4097UL, 1UL << 20, (5UL << 20) + 17}) {
    const test::bytes_at_end bytes(std::string(size, 'x'));
    EXPECT_EQ(mapped_bytes(bytes.data(), SIZE_MAX), size);
    EXPECT_EQ(mapped_bytes(bytes.data(), size + 1), size);
    EXPECT_EQ(mapped_bytes(bytes.data(), size), size);
    EXPECT_EQ(mapped_bytes(bytes.data(), size - 1), size - 1);
    EXPECT_EQ(mapped_bytes(bytes.data() + size, 100), 0U);
  }
  EXPECT_EQ(mapped_bytes(nullptr, 100), 0U);
  EXPECT_EQ(mapped_bytes(reinterpret_cast<const void*>(UINTPTR_MAX), 100), 0U);
}

// One entry, whose header has `header` bytes.
std::string plain_entry(std::uint16_t kind, std::uint32_t architecture, const std::string& payload,
                        std::uint32_t header = 48) {
  std::string entry(std::max<std::size_t>(header, 48), '\0');
  const std::uint64_t size = payload.size();
  std::memcpy(entry.data(), &kind, sizeof kind);
  std::memcpy(entry.data() + 4, &header, sizeof header);
  std::memcpy(entry.data() + 8, &size, sizeof size);
  std::memcpy(entry.data() + 28, &architecture, sizeof architecture);
  return entry + payload;
}

std::string plain_container(const std::string& body, std::uint16_t header = 16) {
  std::string head(std::max<std::size_t>(header, 16), '\0');
  const std::uint32_t magic = 0xba55ed50;
  const std::uint64_t size = body.size();
  std::memcpy(head.data(), &magic, sizeof magic);
  std::memcpy(head.data() + 6, &header, sizeof header);
  std::memcpy(head.data() + 8, &size, sizeof size);
  return head + body;
}

std::vector<fat_binary_entry> read_exactly(const std::string& bytes) {
  const test::bytes_at_end there(bytes);  // nothing behind the last byte may be read
  return read_fat_binary(there.data(), bytes.size());
}

std::string sentence_about(const std::string& bytes) {
  try {
    static_cast<void>(read_exactly(bytes));
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

TEST(FatBinary, EntriesKeepTheirOrderKindAndArchitecture) {
  const std::string text = text_with("");
  const auto entries = read_exactly(plain_container(
      plain_entry(1, 75, text) + plain_entry(2, 80, "elf") + plain_entry(2, 81, "x.text.kernel") +
          plain_entry(3, 90, "y") + plain_entry(1, 86, text + '\0' + "behind it") + plain_entry(1, 50, "", 64),
      24));
  using kind = fat_binary_entry::kind;
  struct row {
    kind what;
    std::uint32_t architecture;
    std::string text;
  };
  const row rows[] = {{kind::ptx, 75, text}, {kind::cubin, 80, ""}, {kind::cubin, 81, ""},
                      {kind::other, 90, ""}, {kind::ptx, 86, text}, {kind::ptx, 50, ""}};
  ASSERT_EQ(entries.size(), std::size(rows));
  for (std::size_t n = 0; n < std::size(rows); ++n) {
    EXPECT_EQ(entries[n].what, rows[n].what) << n;
    EXPECT_EQ(entries[n].architecture, rows[n].architecture) << n;
    EXPECT_EQ(entries[n].text, rows[n].text) << n;
  }
  EXPECT_TRUE(entries[1].is_empty) << "machine code without functions";
  EXPECT_FALSE(entries[2].is_empty);
  EXPECT_EQ(choose_ptx(entries).architecture, 86U);
  const std::vector<fat_binary_entry> equal{{kind::ptx, 75, "first"}, {kind::ptx, 75, "second"}, {kind::cubin, 90, ""}};
  EXPECT_EQ(choose_ptx(equal).text, "first") << "of two equal texts, the first";
  EXPECT_TRUE(read_exactly(plain_container("")).empty());
}

TEST(FatBinary, HeadersMayBeAsShortAsTheFormatAllows) {
  const std::string text = text_with("");
  EXPECT_EQ(read_exactly(plain_container(plain_entry(1, 75, text, 48), 16)).front().text, text);
  EXPECT_NE(sentence_about(plain_container(plain_entry(1, 75, text), 15))
                .find("a fat binary has a header of 15 bytes; it must have 16 or more"),
            std::string::npos);
  EXPECT_NE(sentence_about(plain_container(plain_entry(1, 75, text, 47)))
                .find("an entry of a fat binary has a header of 47 bytes; it must have 48 or more"),
            std::string::npos);
  std::string longer = plain_container(plain_entry(1, 75, text));
  longer += "behind it";
  EXPECT_EQ(read_exactly(longer).size(), 1U);
  longer.resize(longer.size() - 10);
  EXPECT_NE(sentence_about(longer).find("the fat binary ends early"), std::string::npos);
  EXPECT_NE(sentence_about("ELF.............").find("this is not a fat binary: it begins with 0x2e464c45"),
            std::string::npos);
}

TEST(FatBinary, IsRecognisedByItsFirstBytes) {
  EXPECT_TRUE(begins_with_fat_binary("\x50\xed\x55\xba"));
  EXPECT_TRUE(begins_with_fat_binary("\xb1\x43\x62\x46"));
  for (const char* const other : {"", "\x50", "\x50\xed\x55", "\x7f\x45\x4c\x46", ".version 8.0", "\xb1\x43\x62\x47"})
    EXPECT_FALSE(begins_with_fat_binary(other)) << other;
}

}  // namespace
}  // namespace hpe::ptx

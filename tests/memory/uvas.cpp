#include "runtime/memory/uvas.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "runtime/base/granule.h"
#include "runtime/os/virtual_memory.h"
#include "tests/memory/expect_error.h"

namespace {

using namespace hpe;
using memory::segment;
using memory::segment_kind;
using memory::uvas;

constexpr std::size_t MiB = std::size_t{1} << 20;

// An address that no sanitizer uses for its shadow memory.
constexpr std::uintptr_t base_hint = 0x7e9000000000;
constexpr std::size_t segment_size = 64 * MiB;

// ThreadSanitizer allows mappings only in its own ranges, which are too small for terabytes.
#ifdef __SANITIZE_THREAD__
constexpr bool terabytes_fit = false;
#else
constexpr bool terabytes_fit = true;
#endif

// Returns the flags (VmFlags) of the mapping that contains p; empty if there is no such mapping.
std::string mapping_flags(const void* p) {
  std::FILE* file = std::fopen("/proc/self/smaps", "r");
  char line[512];
  bool inside = false;
  std::string flags;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line, "%lx-%lx", &begin, &end) == 2)
      inside = begin <= reinterpret_cast<std::uintptr_t>(p) && reinterpret_cast<std::uintptr_t>(p) < end;
    if (inside && std::strncmp(line, "VmFlags:", 8) == 0) flags = line;
  }
  std::fclose(file);
  return flags;
}

TEST(Uvas, LiesWhereItIsAskedFor) {
  const uvas space(base_hint, segment_size, 2);
  EXPECT_EQ(space.layout().base, base_hint);
  EXPECT_EQ(space.layout().segments, 6u);
  EXPECT_EQ(space.layout().size(), 6 * segment_size);
}

TEST(Uvas, TerabytesCostNothing) {
  if (!terabytes_fit) GTEST_SKIP() << "not in this address layout";
  constexpr std::uintptr_t usual_base = 0x200000000000;
  constexpr std::size_t usual_size = std::size_t{1} << 40;
  uvas space(usual_base, usual_size, 4);
  EXPECT_EQ(space.layout().base, usual_base);
  std::byte* last = space.segment_begin(segment_kind::runtime) - granule_size;
  space.map_view(last, granule_size, os::page_protection::read_write);
  last[5] = std::byte{5};
  EXPECT_EQ(space.alias(last)[5], std::byte{5});
}

TEST(Uvas, TakesAnotherAlignedPlaceWhenTheWantedOneIsTaken) {
  const uvas first(base_hint, segment_size, 2);
  const uvas second(base_hint, segment_size, 2);
  EXPECT_NE(second.layout().base, first.layout().base);
  EXPECT_EQ(second.layout().base % segment_size, 0u);
  EXPECT_FALSE(second.contains(first.segment_begin(segment_kind::device, 0)));
}

// The processes of soft devices need the same addresses as this process. Their own programs are at random addresses
// above this limit.
TEST(Uvas, StaysBelowProgramsWhereTheMiddleOfTheAddressesIsTaken) {
  if (!terabytes_fit) GTEST_SKIP() << "not in this address layout";
  const os::reservation middle(0x2a0000000000, MiB, granule_size);
  const uvas space(0x200000000000, std::size_t{1} << 40, 16);
  EXPECT_LE(space.layout().base + space.layout().size(), 0x550000000000);
  EXPECT_NE(space.layout().base, 0x200000000000);
}

TEST(Uvas, SegmentsNeedNotBePowersOfTwo) {
  const uvas space(base_hint + 1, 3 * granule_size, 3);
  EXPECT_EQ(space.layout().base % granule_size, 0u);
  std::byte* last = space.segment_begin(segment_kind::runtime) - 1;
  EXPECT_EQ(space.segment_of(last), (segment{segment_kind::striped, 0}));
}

TEST(Uvas, SegmentsFollowOneAnother) {
  const uvas space(base_hint, segment_size, 3);
  const segment expected[] = {{segment_kind::device, 0}, {segment_kind::device, 1},  {segment_kind::device, 2},
                              {segment_kind::host, 0},   {segment_kind::striped, 0}, {segment_kind::runtime, 0},
                              {segment_kind::foreign, 0}};
  std::byte* begin = space.segment_begin(segment_kind::device, 0);
  for (const segment& s : expected) {
    EXPECT_EQ(space.segment_begin(s.kind, s.device), begin);
    EXPECT_EQ(space.segment_of(begin), s);
    EXPECT_EQ(space.segment_of(begin + segment_size - 1), s);
    EXPECT_TRUE(space.contains(begin));
    begin += segment_size;
  }
  EXPECT_FALSE(space.contains(begin));
  EXPECT_FALSE(space.contains(space.segment_begin(segment_kind::device, 0) - 1));
  EXPECT_FALSE(space.contains(nullptr));
}

TEST(Uvas, AliasIsTheViewsMemoryAtAConstantDistance) {
  uvas space(base_hint, segment_size, 1);
  std::byte* p = space.segment_begin(segment_kind::striped) + 4 * MiB;
  EXPECT_EQ(space.view(space.alias(p)), p);
  EXPECT_EQ(space.alias(p) - p, space.alias(p + MiB) - (p + MiB));

  space.open_alias(p, MiB);
  space.alias(p)[17] = std::byte{42};
  space.map_view(p, granule_size, os::page_protection::read_write);
  EXPECT_EQ(p[17], std::byte{42});
  p[18] = std::byte{43};
  EXPECT_EQ(space.alias(p)[18], std::byte{43});

  std::byte from_file{};
  ASSERT_EQ(::pread(space.shadow_file(), &from_file, 1, static_cast<off_t>(space.offset(p + 18))), 1);
  EXPECT_EQ(from_file, std::byte{43});
}

TEST(Uvas, UnmappedMemoryReadsAsZeroNextTime) {
  uvas space(base_hint, segment_size, 1);
  std::byte* p = space.segment_begin(segment_kind::device, 0);
  space.map_view(p, 2 * granule_size, os::page_protection::read_write);
  std::memset(p, 1, 2 * granule_size);
  EXPECT_TRUE(space.unmap_view(p, granule_size));
  EXPECT_EQ(space.alias(p)[0], std::byte{0});
  EXPECT_EQ(p[granule_size], std::byte{1}) << "the neighbouring granule is unchanged";
  space.map_view(p, granule_size, os::page_protection::read);
  EXPECT_EQ(p[granule_size - 1], std::byte{0});
}

TEST(Uvas, AliasIsClosedWhereNothingIs) {
  uvas space(base_hint, 32 * segment_size, 1);
  std::byte* p = space.segment_begin(segment_kind::device, 0);
  space.map_view(p, granule_size, os::page_protection::none);
  EXPECT_EQ(::madvise(space.alias(p), granule_size, MADV_POPULATE_WRITE), 0);
  EXPECT_NE(::madvise(space.alias(p) + 16 * segment_size, granule_size, MADV_POPULATE_WRITE), 0);
}

TEST(Uvas, CoreFilesHaveHostMemoryAndSmallAllocations) {
  uvas space(base_hint, segment_size, 1);
  constexpr std::size_t large = 32 * MiB;
  std::byte* const host = space.segment_begin(segment_kind::host);
  std::byte* const striped = space.segment_begin(segment_kind::striped);
  space.map_view(host, large, os::page_protection::read_write);
  space.map_view(striped, granule_size, os::page_protection::none);
  space.map_view(striped + 2 * granule_size, large, os::page_protection::none);
  const auto excluded = [](const void* p) { return mapping_flags(p).find(" dd ") != std::string::npos; };
  EXPECT_FALSE(excluded(host));
  EXPECT_FALSE(excluded(striped));
  EXPECT_TRUE(excluded(striped + 2 * granule_size));
  EXPECT_TRUE(excluded(host + large)) << "gcore must not write reserved addresses";
  EXPECT_TRUE(excluded(space.alias(host)));
  EXPECT_TRUE(excluded(space.alias(host) + segment_size / 2));

  ASSERT_TRUE(os::protect(striped + 3 * granule_size, granule_size, os::page_protection::read));
  space.keep_views_in_core();
  EXPECT_FALSE(excluded(striped + 3 * granule_size)) << "the host can read these bytes";
  EXPECT_TRUE(excluded(striped + 2 * granule_size));
  EXPECT_TRUE(excluded(striped + 4 * granule_size));
  EXPECT_TRUE(excluded(space.alias(striped)));
  EXPECT_TRUE(space.unmap_view(host, large));
  EXPECT_TRUE(excluded(host));
}

TEST(Uvas, ChildrenOfForkGetNothing) {
  uvas space(base_hint, segment_size, 1);
  std::byte* p = space.segment_begin(segment_kind::host);
  space.map_view(p, granule_size, os::page_protection::read_write);
  space.map_view(p + 2 * granule_size, granule_size, os::page_protection::read_write);
  EXPECT_TRUE(space.unmap_view(p + 2 * granule_size, granule_size));
  for (const void* q : {static_cast<const void*>(p), static_cast<const void*>(p + 2 * granule_size),
                        static_cast<const void*>(space.alias(p)), static_cast<const void*>(p - 1)})
    EXPECT_NE(mapping_flags(q).find(" dc "), std::string::npos) << q << ' ' << mapping_flags(q);

  const pid_t child = ::fork();
  if (child == 0) {
    unsigned char resident = 0;
    const bool absent = ::mincore(p, 1, &resident) != 0 && errno == ENOMEM;
    ::_exit(absent ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Uvas, AnErrorNamesTheValidSegmentSizes) {
  expect_error(HPE_ERROR_INITIALIZATION, "multiple of 2097152", [] { uvas(base_hint, MiB, 2); });
  expect_error(HPE_ERROR_INITIALIZATION, "multiple of 2097152", [] { uvas(base_hint, 0, 2); });
  expect_error(HPE_ERROR_INITIALIZATION, "HPE_SEGMENT_SIZE", [] { uvas(base_hint, std::size_t{1} << 46, 2); });
  expect_error(HPE_ERROR_INITIALIZATION, "without devices", [] { uvas(base_hint, segment_size, 0); });
}

}  // namespace

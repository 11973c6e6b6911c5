#include "tests/io/support.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/core/kernels.h"

// AddressSanitizer calls this function, which turns off the search for leaks: a child made by fork does not have the
// parent's threads, so their memory would look like a leak.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {  // NOLINT
  return "detect_leaks=0";
}

namespace io_test {

namespace {

std::mt19937_64& generator() {
  static std::mt19937_64 it = [] {
    const unsigned seed = std::random_device{}();
    testing::Test::RecordProperty("seed", static_cast<int>(seed));
    return std::mt19937_64(seed);
  }();
  return it;
}

hpe::array<std::uint32_t> allocate(place where, std::size_t words) {
  switch (where) {
    case place::striped: return hpe::array<std::uint32_t>(words, hpe::cyclic_distribution());
    case place::host: return hpe::array<std::uint32_t>(words, hpe::on_host());
    case place::ordinary: return {};
    default: return hpe::array<std::uint32_t>(words);
  }
}

// Returns a description of the first difference, or an empty string if there is none.
std::string difference(const std::byte* found, const content& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (found[i] != expected[i])
      return "byte " + std::to_string(i) + " of " + std::to_string(expected.size()) + " is " +
             std::to_string(int(found[i])) + ", not " + std::to_string(int(expected[i]));
  return "";
}

}  // namespace

const char* name_of(place where) {
  static constexpr const char* names[] = {"Device", "HostOwned", "Striped", "Host", "Small", "Ordinary"};
  return names[static_cast<int>(where)];
}

std::string name_of_parameter(const testing::TestParamInfo<place>& info) { return name_of(info.param); }

content random_content(std::size_t bytes) {
  content result(bytes);
  for (std::byte& b : result) b = static_cast<std::byte>(generator()());
  return result;
}

memory::memory(place where, std::size_t bytes)
    : where_(where),
      bytes_((bytes + 3) / 4 * 4),
      memory_(allocate(where, bytes_ / 4)),
      ordinary_(where == place::ordinary ? bytes_ / 4 : 0),
      p_(where == place::ordinary ? ordinary_.data() : memory_.data()),
      model_(bytes_) {
  renew();
}

void memory::renew() {
  const auto first = static_cast<std::uint32_t>(generator()());
  const std::size_t words = bytes_ / 4;
  if (where_ == place::ordinary || where_ == place::host_owned)
    for (std::size_t i = 0; i < words; ++i) p_[i] = first + static_cast<std::uint32_t>(i);
  else
    hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {p_, words, first}, hpe::out(memory_));
  for (std::size_t i = 0; i < words; ++i) {
    const auto value = first + static_cast<std::uint32_t>(i);
    std::memcpy(model_.data() + 4 * i, &value, 4);
  }
}

content memory::part(std::size_t offset, std::size_t bytes) const {
  return {model_.begin() + static_cast<std::ptrdiff_t>(offset),
          model_.begin() + static_cast<std::ptrdiff_t>(offset + bytes)};
}

void memory::expect(std::size_t offset, const content& written) {
  std::copy(written.begin(), written.end(), model_.begin() + static_cast<std::ptrdiff_t>(offset));
}

void memory::check(const char* when) const {
  if (where_ != place::ordinary) {
    const std::size_t words = bytes_ / 4;
    const hpe::array<std::uint32_t> zeros(words);
    const hpe::array<std::uint32_t> seen(words);
    hpe::launch(test_kernel().fill, hpe::grid(1), {seen.data(), words, 7}, hpe::out(seen));
    hpe::launch(test_kernel().add, hpe::grid(test_tiles), {seen.data(), zeros.data(), p_, words}, hpe::out(seen),
                hpe::in(zeros), hpe::in(memory_));
    ASSERT_EQ(difference(reinterpret_cast<const std::byte*>(seen.data()), model_), "") << "in a kernel " << when;
  }
  ASSERT_EQ(difference(data(), model_), "") << "on the host " << when;
}

std::size_t room_for(place where) { return where == place::small ? 5000 : 3'000'000; }

std::vector<std::size_t> sizes_for(place where) {
  std::vector<std::size_t> sizes = {1, 7, 511, 4096};
  if (where != place::small) sizes.insert(sizes.end(), {65536, 1'048'577, 2'900'001});
  return sizes;
}

file::file(int flags, const char* folder) : file_(::open(folder, O_TMPFILE | O_RDWR | flags, 0600)) {
  EXPECT_GE(file_, 0) << std::strerror(errno);
}

file::~file() { ::close(file_); }

void write_all(int file, const content& what) {
  for (std::size_t done = 0; done < what.size();) {
    const ssize_t n = ::write(file, what.data() + done, what.size() - done);
    if (n <= 0) {
      ADD_FAILURE() << "write: " << std::strerror(errno);
      return;
    }
    done += static_cast<std::size_t>(n);
  }
}

content read_exactly(int file, std::size_t bytes) {
  content result(bytes);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::read(file, result.data() + done, bytes - done);
    if (n <= 0) {
      ADD_FAILURE() << "read: " << (n == 0 ? "end of file" : std::strerror(errno)) << " after " << done << " bytes";
      result.resize(done);
      return result;
    }
    done += static_cast<std::size_t>(n);
  }
  return result;
}

void file::fill(const content& what) const {
  ASSERT_EQ(::ftruncate(file_, 0), 0);
  ASSERT_EQ(::lseek(file_, 0, SEEK_SET), 0);
  write_all(file_, what);
  ::lseek(file_, 0, SEEK_SET);
}

content file::all() const {
  struct stat status {};
  ::fstat(file_, &status);
  const off_t before = position();
  ::lseek(file_, 0, SEEK_SET);
  content result = read_exactly(file_, static_cast<std::size_t>(status.st_size));
  ::lseek(file_, before, SEEK_SET);
  return result;
}

off_t file::position() const { return ::lseek(file_, 0, SEEK_CUR); }

ends::~ends() {
  close_a();
  close_b();
}

void ends::close_a() {
  if (a >= 0) ::close(std::exchange(a, -1));
}

void ends::close_b() {
  if (b >= 0) ::close(std::exchange(b, -1));
}

ends make_pipe(int flags) {
  int two[2] = {-1, -1};
  EXPECT_EQ(::pipe2(two, flags), 0);
  ends result;
  result.a = two[0];
  result.b = two[1];
  return result;
}

ends make_sockets(int type) {
  int two[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, type, 0, two), 0);
  ends result;
  result.a = two[0];
  result.b = two[1];
  return result;
}

ends make_tcp() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  ends result;
  result.a = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(::connect(result.a, reinterpret_cast<sockaddr*>(&address), size), 0);
  result.b = ::accept(listener, nullptr, nullptr);
  EXPECT_GE(result.b, 0);
  ::close(listener);
  return result;
}

}  // namespace io_test

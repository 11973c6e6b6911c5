#include "apps/files/descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace hpe::files {

namespace {

/// Calls move(done, rest) until all bytes are moved or a call moves none. Returns the number of moved bytes.
template <class Move>
std::uint64_t move_all(std::uint64_t bytes, Move move) {
  std::uint64_t done = 0;
  while (done < bytes) {
    const ssize_t moved = move(done, bytes - done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) break;
    done += static_cast<std::uint64_t>(moved);
  }
  return done;
}

}  // namespace

std::string reason() { return std::strerror(errno); }  // NOLINT(concurrency-mt-unsafe): one thread

descriptor::descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
descriptor::descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
descriptor::~descriptor() {
  if (number_ >= 0) ::close(number_);
}

bool descriptor::close() { return ::close(std::exchange(number_, -1)) == 0; }

std::uint64_t descriptor::read_at(void* to, std::uint64_t bytes, std::uint64_t from) const {
  errno = 0;
  return move_all(bytes, [&](std::uint64_t done, std::uint64_t rest) {
    return ::pread(number_, static_cast<char*>(to) + done, rest, static_cast<off_t>(from + done));
  });
}

bool descriptor::write(const void* from, std::uint64_t bytes) const {
  return move_all(bytes, [&](std::uint64_t done, std::uint64_t rest) {
           return ::write(number_, static_cast<const char*>(from) + done, rest);
         }) == bytes;
}

std::string container_of(std::string_view begin) {
  struct known {
    std::string_view bytes;
    const char* sentence;
  };
  static constexpr std::array all{
      known{"\x1f\x8b", "it is compressed by gzip; gunzip unpacks it"},
      known{"BZh", "it is compressed by bzip2; bunzip2 unpacks it"},
      known{{"\xfd"
             "7zXZ\0",
             6},
            "it is compressed by xz; unxz unpacks it"},
      known{"\x28\xb5\x2f\xfd", "it is compressed by zstd; unzstd unpacks it"},
      known{{"PK\3\4", 4}, "it is a zip archive, as .npz files are; unzip unpacks it"},
      known{"\xff\xfe", "it begins with the byte order mark of UTF-16; iconv -f UTF-16 -t UTF-8 converts it"},
      known{"\xfe\xff", "it begins with the byte order mark of UTF-16; iconv -f UTF-16 -t UTF-8 converts it"}};
  for (const known& k : all)
    if (begin.starts_with(k.bytes)) return k.sentence;
  return "";
}

std::string printable(std::string_view bytes) {
  constexpr std::size_t most = 60;
  std::string text;
  for (const char c : bytes.substr(0, most))
    text += c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return bytes.size() > most ? text + "..." : text;
}

descriptor open_to_read(const std::string& path) {
  descriptor file(path, O_RDONLY);
  if (!file.good()) throw bad_input(path + " cannot be opened: " + reason());
  return file;
}

std::uint64_t size_of(const descriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) throw bad_input(path + " is not a regular file");
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace hpe::files

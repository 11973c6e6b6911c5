#include "bench/copies/file_schemes.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "bench/common/measure.h"
#include "hpe/hpe.hpp"

namespace hpe::bench {

namespace {

constexpr std::size_t page = 4096;

[[noreturn]] void fail(const char* what, ssize_t moved) {
  fmt::print(stderr, "a {} of the file returned {}: {}\n", what, moved,
             std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  std::exit(1);                      // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

disk_file::disk_file(const std::string& folder, std::size_t bytes, bool direct)
    : file_(::open(folder.c_str(), O_TMPFILE | O_RDWR | (direct ? O_DIRECT : 0), 0600)) {
  if (file_ < 0) {
    why_ = std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
    return;
  }
  constexpr std::size_t step = std::size_t{1} << 20;
  std::vector<std::byte> storage(step + page, std::byte{5});
  std::byte* const aligned = storage.data() + (page - reinterpret_cast<std::uintptr_t>(storage.data()) % page) % page;
  for (std::size_t at = 0; at < bytes; at += step) write(aligned, std::min(step, bytes - at), static_cast<off_t>(at));
  ::fsync(file_);
}

disk_file::~disk_file() {
  if (file_ >= 0) ::close(file_);
}

void disk_file::read(void* p, std::size_t bytes, off_t offset) const {
  const ssize_t n = ::pread(file_, p, bytes, offset);
  if (n != static_cast<ssize_t>(bytes)) fail("read", n);
}

void disk_file::write(const void* p, std::size_t bytes, off_t offset) const {
  const ssize_t n = ::pwrite(file_, p, bytes, offset);
  if (n != static_cast<ssize_t>(bytes)) fail("write", n);
}

hand_made::hand_made(const std::string& specification, std::size_t largest)
    : bare_(specification, largest),
      pinned_(bare_.pinned(0)),
      storage_(largest + page, std::byte{1}),
      pageable_(storage_.data() + (page - reinterpret_cast<std::uintptr_t>(storage_.data()) % page) % page),
      driver_(largest) {
  if (!driver_.exists()) hpeMalloc(&hpes_, largest);
  for (const direction way : {up, down}) bare_.plain(way, 0, largest);
}

double hand_made::link(bool to_device, std::size_t bytes, unsigned repeats) {
  const auto copy = [&] { bare_.plain(to_device ? up : down, 0, bytes); };
  return static_cast<double>(bytes) /
         median_seconds(
             repeats, [] {}, copy) /
         1e9;
}

void hand_made::naive_in(const disk_file& file, std::size_t bytes) {
  file.read(pageable_, bytes, 0);
  if (driver_.exists()) return driver_.up(0, pageable_, bytes);
  hpeMemcpy(hpes_, pageable_, bytes);
  hpeSynchronize();
}

void hand_made::naive_out(const disk_file& file, std::size_t bytes) {
  if (driver_.exists())
    driver_.down(0, pageable_, bytes);
  else
    hpeMemcpy(pageable_, hpes_, bytes);
  file.write(pageable_, bytes, 0);
}

void hand_made::pinned_in(const disk_file& file, std::size_t bytes) {
  file.read(pinned_, bytes, 0);
  bare_.plain(up, 0, bytes);
}

void hand_made::pinned_out(const disk_file& file, std::size_t bytes) {
  bare_.plain(down, 0, bytes);
  file.write(pinned_, bytes, 0);
}

void hand_made::doubled_in(const disk_file& file, std::size_t bytes) {
  timepoint emptied[2];
  for (std::size_t at = 0, i = 0; at < bytes; at += chunk, ++i) {
    const std::size_t size = std::min(chunk, bytes - at);
    std::byte* const buffer = pinned_ + (i % 2) * chunk;
    bare_.finish(emptied[i % 2]);
    file.read(buffer, size, static_cast<off_t>(at));
    emptied[i % 2] = bare_.queue(up, 0, at, buffer, size);
  }
  for (const timepoint p : emptied) bare_.finish(p);
}

void hand_made::doubled_out(const disk_file& file, std::size_t bytes) {
  const auto fill = [&](std::size_t at) {
    return bare_.queue(down, 0, at, pinned_ + (at / chunk % 2) * chunk, std::min(chunk, bytes - at));
  };
  timepoint filled = fill(0);
  for (std::size_t at = 0; at < bytes; at += chunk) {
    bare_.finish(filled);
    if (at + chunk < bytes) filled = fill(at + chunk);
    file.write(pinned_ + (at / chunk % 2) * chunk, std::min(chunk, bytes - at), static_cast<off_t>(at));
  }
}

}  // namespace hpe::bench

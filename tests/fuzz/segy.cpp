// A libFuzzer target for SEG-Y files. segy::reader must read or refuse any input, and must not crash. The target writes
// the traces that were read, reads them again, and expects the same traces.

#include "apps/files/segy.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace {

using namespace hpe::files;

/// A file in memory that has a path.
class memory_file {
 public:
  memory_file() : number_(::memfd_create("segy", MFD_CLOEXEC)) {}
  ~memory_file() { ::close(number_); }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  int number_;
};

bool same(double a, double b) { return a == b || (a != a && b != b); }

void check_copy(const segy::reader& first, const std::string& path) {
  const segy::reader second(path);
  if (second.traces() != first.traces()) std::abort();
  for (std::uint64_t n = 0; n < first.traces(); ++n) {
    const segy::trace a = first.read(n), b = second.read(n);
    if (a.head.bytes != b.head.bytes || a.samples.size() != b.samples.size()) std::abort();
    for (std::size_t i = 0; i < a.samples.size(); ++i)
      if (!same(a.samples[i], b.samples[i])) std::abort();
  }
}

void read_and_write(const std::string& path) {
  const segy::reader file(path);
  // The copy has no trailers.
  segy::header head = file.head();
  head.set(segy::in_file::trailers, 0);
  const memory_file copy;
  {
    segy::writer to(copy.path(), head);
    for (std::uint64_t n = 0; n < file.traces(); ++n) {
      const segy::trace t = file.read(n);
      static_cast<void>(t.head.get_scaled(segy::in_trace::source_x, segy::in_trace::scalar));
      to.write(std::span(&t, 1));
    }
    to.close();
  }
  check_copy(file, copy.path());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const memory_file file;
  if (::write(file.number(), data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    read_and_write(file.path());
  } catch (const bad_input&) {
    // The reader refuses this input, which is correct.
  }
  return 0;
}

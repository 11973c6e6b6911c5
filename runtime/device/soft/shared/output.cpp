#include "runtime/device/soft/shared/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

namespace {

// The record before each text in the file.
struct header {
  std::uint64_t launch = 0;
  std::uint64_t size = 0;
  std::uint64_t is_error = 0;
};

constexpr std::uint64_t ended = std::numeric_limits<std::uint64_t>::max();

std::uint64_t size_of_file(int file) {
  struct stat about {};
  if (::fstat(file, &about) != 0) throw_system_error("fstat of the file with the kernels' output");
  return static_cast<std::uint64_t>(about.st_size);
}

void write_all(int file, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw_system_error(fmt::format("pwrite of {} bytes of a kernel's output", bytes.size()));
    bytes.remove_prefix(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
}

std::string read_all(int file, std::uint64_t offset, std::uint64_t size) {
  std::string bytes(size, '\0');
  for (std::uint64_t at = 0; at < size;) {
    const ssize_t done = ::pread(file, bytes.data() + at, size - at, static_cast<off_t>(offset + at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw_system_error("pread of a kernel's output");
    at += static_cast<std::uint64_t>(done);
  }
  return bytes;
}

}  // namespace

void output_writer::append(std::uint64_t launch, std::string_view text, bool is_error) {
  if (text.empty()) return;
  const header head{launch, text.size(), is_error ? 1U : 0U};
  const lock_guard lock(mutex_);
  const std::uint64_t at = written_.load(std::memory_order_relaxed);
  write_all(file_.get(), text, at + sizeof head);
  write_all(file_.get(), {reinterpret_cast<const char*>(&head), sizeof head}, at);
  written_.store(at + sizeof head + text.size(), std::memory_order_release);
}

output_reader::output_reader(fabric& shared) : fabric_(shared), taken_(shared.configuration().shape.devices(), 0) {
  for (unsigned d = 0; d < shared.configuration().shape.devices(); ++d)
    files_.push_back(os::create_memory_file("hpe-output", 0));
}

bool output_reader::take_from(unsigned device, std::vector<record>& records) {
  const int file = files_[device].get();
  const std::uint64_t begin = taken_[device], end = fabric_.status(device).output.load(std::memory_order_acquire);
  if (end == begin) return true;
  if (end < begin || end > size_of_file(file)) return false;
  const std::string bytes = read_all(file, begin, end - begin);
  for (std::size_t at = 0; at < bytes.size();) {
    header head;
    if (bytes.size() - at < sizeof head) return false;
    std::memcpy(&head, bytes.data() + at, sizeof head);
    at += sizeof head;
    if (head.size > bytes.size() - at) return false;
    records.push_back({head.launch, {bytes.substr(at, head.size), head.is_error != 0}});
    at += head.size;
  }
  os::discard(file, begin, end - begin);
  taken_[device] = end;
  return true;
}

std::vector<printed> output_reader::take() {
  std::vector<record> records;
  const lock_guard lock(mutex_);
  for (unsigned d = 0; d < files_.size(); ++d) {
    if (taken_[d] == ended || take_from(d, records)) continue;
    taken_[d] = ended;
    log(log_level::warn, "device {} overwrote the record of its kernels' output; the rest of the output is not shown",
        d);
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const record& a, const record& b) { return a.launch < b.launch; });
  std::vector<printed> result;
  result.reserve(records.size());
  for (record& r : records) result.push_back(std::move(r.what));
  return result;
}

}  // namespace hpe::device::soft

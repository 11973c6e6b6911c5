#include "runtime/device/soft/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

namespace {

// In front of each text.
struct header {
  std::uint64_t launch = 0;
  std::uint64_t size = 0;
  std::uint64_t is_error = 0;
};

void write_all(int file, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw_system_error(fmt::format("keeping {} bytes that a kernel printed", bytes.size()));
    bytes.remove_prefix(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
}

std::string read_all(int file, std::uint64_t offset, std::uint64_t size) {
  std::string bytes(size, '\0');
  for (std::uint64_t at = 0; at < size;) {
    const ssize_t done = ::pread(file, bytes.data() + at, size - at, static_cast<off_t>(offset + at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw_system_error("reading what a kernel printed");
    at += static_cast<std::uint64_t>(done);
  }
  return bytes;
}

}  // namespace

void output_writer::append(std::uint64_t launch, std::string_view text, bool is_error) {
  if (text.empty()) return;
  const header head{launch, text.size(), is_error ? 1U : 0U};
  const std::lock_guard lock(mutex_);
  const std::uint64_t at = written_.load(std::memory_order_relaxed);
  write_all(file_.get(), text, at + sizeof head);
  write_all(file_.get(), {reinterpret_cast<const char*>(&head), sizeof head}, at);
  written_.store(at + sizeof head + text.size(), std::memory_order_release);
}

output_reader::output_reader(fabric& shared) : fabric_(shared), taken_(shared.state().shape.devices(), 0) {
  for (unsigned d = 0; d < shared.state().shape.devices(); ++d)
    files_.push_back(os::create_memory_file("hpe-output", 0));
}

std::vector<printed> output_reader::take() {
  struct record {
    std::uint64_t launch;
    printed what;
  };
  std::vector<record> records;
  const std::lock_guard lock(mutex_);
  for (unsigned d = 0; d < files_.size(); ++d) {
    const std::uint64_t end = fabric_.state().devices[d].output.load(std::memory_order_acquire);
    if (end == taken_[d]) continue;
    const std::string bytes = read_all(files_[d].get(), taken_[d], end - taken_[d]);
    for (std::size_t at = 0; at < bytes.size();) {
      header head;
      std::memcpy(&head, bytes.data() + at, sizeof head);
      records.push_back({head.launch, {bytes.substr(at + sizeof head, head.size), head.is_error != 0}});
      at += sizeof head + head.size;
    }
    os::discard(files_[d].get(), taken_[d], end - taken_[d]);
    taken_[d] = end;
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const record& a, const record& b) { return a.launch < b.launch; });
  std::vector<printed> result;
  result.reserve(records.size());
  for (record& r : records) result.push_back(std::move(r.what));
  return result;
}

}  // namespace hpe::device::soft

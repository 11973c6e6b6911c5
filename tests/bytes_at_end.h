#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace hpe::test {

/// A copy of some bytes directly in front of an unmapped page, so that a read beyond the end of the copy crashes.
class bytes_at_end {
 public:
  explicit bytes_at_end(std::string_view bytes) : size_(bytes.size()), mapped_((size_ + 2 * page - 1) / page * page) {
    void* const made = ::mmap(nullptr, mapped_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) std::abort();
    begin_ = static_cast<char*>(made);
    ::munmap(begin_ + mapped_, page);
    if (!bytes.empty()) std::memcpy(begin_ + mapped_ - size_, bytes.data(), size_);
  }
  bytes_at_end(const bytes_at_end&) = delete;
  bytes_at_end& operator=(const bytes_at_end&) = delete;
  ~bytes_at_end() { ::munmap(begin_, mapped_); }

  [[nodiscard]] const char* data() const { return begin_ + mapped_ - size_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t page = 4096;
  std::size_t size_, mapped_;
  char* begin_ = nullptr;
};

}  // namespace hpe::test

#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

/// Returns the limit vm.max_map_count.
inline std::size_t most_mappings() {
  std::ifstream in("/proc/sys/vm/max_map_count");
  std::size_t most = 0;
  in >> most;
  return most;
}

/// Returns the number of mappings in a range.
inline std::size_t mappings_in(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    const auto at = std::stoull(line, nullptr, 16);
    const auto end = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
    count += at < begin + bytes && begin < end ? 1 : 0;
  }
  return count;
}

/// Uses up all mappings of the process except about `2 * spare`, until the object is destroyed or releases them. Every
/// second page of a reservation gets another protection, until the operating system refuses.
class used_mappings {
 public:
  explicit used_mappings(std::size_t spare = 0) : bytes_((2 * most_mappings() + 100) * page) {
    memory_ =
        static_cast<char*>(::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (memory_ == MAP_FAILED) throw std::runtime_error("no address space for a reservation");
    std::size_t at = page;
    while (at < bytes_ && ::mprotect(memory_ + at, page, PROT_READ) == 0) at += 2 * page;
    if (at >= bytes_) throw std::runtime_error("the mappings did not run out");
    for (; spare != 0; --spare) ::mprotect(memory_ + (at -= 2 * page), page, PROT_NONE);
  }
  used_mappings(const used_mappings&) = delete;
  used_mappings& operator=(const used_mappings&) = delete;
  ~used_mappings() { give_back(); }

  void give_back() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
    memory_ = nullptr;
  }

 private:
  static constexpr std::size_t page = 4096;
  std::size_t bytes_;
  char* memory_ = nullptr;
};

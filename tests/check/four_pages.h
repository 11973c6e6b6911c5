#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "runtime/check/watched_pages.h"

namespace hpe::check {

constexpr std::uintptr_t page = watched_pages::page_bytes;

/// A test with four pages of memory.
class with_four_pages : public testing::Test {
 protected:
  with_four_pages() {
    memory_ = static_cast<char*>(::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::pipe(pipe_), 0);
  }
  ~with_four_pages() override {
    ::munmap(memory_, 4 * page);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  std::uintptr_t at(std::uintptr_t offset) const { return reinterpret_cast<std::uintptr_t>(memory_) + offset; }
  /// What the operating system lets the program do with each page: - nothing, r read, w read and write.
  std::string protections() {
    std::string result;
    for (std::uintptr_t n = 0; n < 4; ++n) {
      char* const p = memory_ + n * page;
      char byte = 0;
      if (::write(pipe_[1], p, 1) != 1) {
        result += '-';
        continue;
      }
      const bool writes = ::read(pipe_[0], p, 1) == 1;
      if (!writes) {
        EXPECT_EQ(::read(pipe_[0], &byte, 1), 1);
      }
      result += writes ? 'w' : 'r';
    }
    return result;
  }

  char* memory_;

 private:
  int pipe_[2]{};
};

}  // namespace hpe::check

// An entry is valid while its token is not 0. The writer removes the token before it changes the other words, and a
// reader checks the token before and after it reads the other words. The writer stores each of these words with
// release, and the reader loads them with acquire: a reader that sees a newer word also sees that the token was
// removed.
#include "runtime/node/export_table.h"

#include <sys/stat.h>

#include <array>
#include <atomic>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/node/handle.h"

namespace hpe::node {

using word = std::atomic<std::uint64_t>;
static_assert(word::is_always_lock_free);

namespace {

constexpr std::uint32_t entries = 65536;
constexpr std::uint64_t told = 1024;  // how many of the latest retired memories the page lists

struct export_entry {
  word token;
  word memory;
  word offset;
  word bytes;
};

}  // namespace

struct export_page {
  word stamp;
  word retired;                             // how many memories were ever retired
  std::array<word, told> memories;          // the latest retired memories; the n-th one is at n % told
  std::array<export_entry, entries> table;  // uses memory only for pages that were written
};

namespace {

constexpr std::uint64_t stamp = 0x68706531'00000000 + sizeof(export_page);

std::size_t size_of_table() { return round_up(sizeof(export_page), os::page_size()); }

std::optional<exported> read(const export_page& page, const export_table::key& which) {
  if (which.entry >= entries || which.token == 0) return std::nullopt;
  const export_entry& e = page.table[which.entry];
  if (e.token.load(std::memory_order_acquire) != which.token) return std::nullopt;
  const exported result{e.memory.load(std::memory_order_acquire), e.offset.load(std::memory_order_acquire),
                        e.bytes.load(std::memory_order_acquire)};
  if (e.token.load(std::memory_order_relaxed) != which.token) return std::nullopt;
  return result;
}

}  // namespace

export_table::export_table()
    : file_(os::create_memory_file("hpe-exports", size_of_table())), memory_(0, size_of_table(), os::page_size()) {
  os::map_file(memory_.data(), memory_.size(), os::page_protection::read_write, file_.get(), 0);
  page_ = reinterpret_cast<export_page*>(memory_.data());
  page_->stamp.store(stamp);
}

export_table::key export_table::publish(const exported& what) {
  const lock_guard lock(mutex_);
  HPE_REQUIRE(!unused_.empty() || used_ < entries, HPE_ERROR_OUT_OF_MEMORY,
              "this process has {} exports that have not ended (hpeExportEnd); more are not possible", entries);
  key result{used_, random_number()};
  if (unused_.empty()) {
    if (unused_.capacity() <= used_) unused_.reserve(std::size_t{2} * used_ + 1);
    ++used_;
  } else {
    result.entry = unused_.back();
    unused_.pop_back();
  }
  export_entry& e = page_->table[result.entry];
  e.memory.store(what.memory, std::memory_order_release);
  e.offset.store(what.offset, std::memory_order_release);
  e.bytes.store(what.bytes, std::memory_order_release);
  e.token.store(result.token, std::memory_order_release);
  return result;
}

std::optional<exported> export_table::end(const key& which) noexcept {
  const lock_guard lock(mutex_);
  const auto found = read(*page_, which);
  if (!found) return std::nullopt;
  page_->table[which.entry].token.store(0, std::memory_order_relaxed);
  unused_.push_back(which.entry);
  return found;
}

void export_table::retire(std::uint64_t memory) {
  const lock_guard lock(mutex_);
  const std::uint64_t number = page_->retired.load(std::memory_order_relaxed);
  page_->memories[number % told].store(memory, std::memory_order_release);
  page_->retired.store(number + 1, std::memory_order_release);
}

std::optional<exported> export_table::find(const key& which) const { return read(*page_, which); }

export_view::export_view(const os::file_descriptor& file) : memory_(0, size_of_table(), os::page_size()) {
  struct stat found {};
  HPE_REQUIRE(::fstat(file.get(), &found) == 0 && static_cast<std::size_t>(found.st_size) == size_of_table(),
              HPE_ERROR_SYSTEM,
              "the exporting process uses another build of hpe; use the same build in both processes");
  os::map_file(memory_.data(), memory_.size(), os::page_protection::read, file.get(), 0);
  page_ = reinterpret_cast<const export_page*>(memory_.data());
  HPE_REQUIRE(page_->stamp.load() == stamp, HPE_ERROR_SYSTEM,
              "the exporting process uses another build of hpe; use the same build in both processes");
  seen_ = page_->retired.load();
}

std::optional<exported> export_view::find(const export_table::key& which) const { return read(*page_, which); }

export_view::retirement export_view::retired() {
  const lock_guard lock(mutex_);
  const std::uint64_t now = page_->retired.load(std::memory_order_acquire);
  retirement result;
  if (now == seen_) return result;
  for (std::uint64_t n = seen_; n < now && now - seen_ < told; ++n)
    result.memories.push_back(page_->memories[n % told].load(std::memory_order_acquire));
  // While this loop runs, the writer may overwrite a number with a newer one. The next call then reports the newer
  // number again.
  result.all = page_->retired.load(std::memory_order_relaxed) - seen_ >= told;
  seen_ = now;
  return result;
}

}  // namespace hpe::node

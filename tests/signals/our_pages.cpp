#include "tests/signals/our_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "runtime/os/signals.h"

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t capacity = 512;

std::atomic<char*> pages{nullptr};
std::atomic<std::size_t> used{0};
std::atomic<unsigned> opened_count{0};
std::atomic<unsigned> write_count{0};
std::atomic<bool> held{false};

// As far as the compiler knows, this function may throw. So the fault entry, which calls it, has an unwind table that
// says that no exception may leave the entry.
void wait_until_released() {
  while (held) std::this_thread::yield();
}
void (*volatile wait_while_held)() = wait_until_released;

hpe::os::fault_verdict open_page(const hpe::os::access_violation& f) noexcept {
  const auto offset = static_cast<std::size_t>(static_cast<char*>(f.address) - pages.load());
  if (offset >= capacity * page) return hpe::os::fault_verdict::not_ours;
  ::mprotect(pages.load() + offset / page * page, page, PROT_READ | PROT_WRITE);
  ++opened_count;
  if (f.kind == hpe::os::fault_access::write) ++write_count;
  wait_while_held();
  errno = EDOM;  // the handler must restore errno
  return hpe::os::fault_verdict::retry;
}

}  // namespace

namespace our_pages {

void start() {
  pages = static_cast<char*>(::mmap(nullptr, capacity * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  hpe::os::install_fault_handler(open_page);
}

volatile char* add() { return pages.load() + used++ * page; }

void close(volatile char* p) { ::mprotect(const_cast<char*>(p), page, PROT_NONE); }

void hold() { held = true; }

void go_on() { held = false; }

unsigned opened() { return opened_count; }

unsigned opened_for_writing() { return write_count; }

}  // namespace our_pages

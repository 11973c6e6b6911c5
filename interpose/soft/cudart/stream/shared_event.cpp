// Each recording that has not been reached occupies a place in the page. The owner of a place is the process that
// occupies it, or 0. The recording process increments the generation of a place when a recording begins and when the
// recording is reached, so the generation is odd while the place contains a recording. Place and generation together
// identify a recording, which is reached when the generation has changed. A waiting thread sleeps on the generation
// (futex), and checks periodically whether the owner exists. A process may be killed at any moment. So a process
// becomes the owner before a recording begins, and releases the place after the recording is reached: if the process is
// killed in between, it remains the owner, and other processes detect that it has ended.

#include "interpose/soft/cudart/stream/shared_event.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "interpose/soft/cudart/device/failure.h"

namespace hpe::cudart {
namespace {

constexpr std::size_t places = 256;
constexpr char file_name[] = "hpe-cudart-event";

struct event_place {
  std::atomic<std::uint32_t> generation;
  std::atomic<std::uint64_t> owner;
};

/// Identifies a process: the upper 32 bits are its id, the lower 32 bits are the lower half of its start time.
using process_mark = std::uint64_t;

/// Returns the mark of the process with this id; 0 if there is no such process, or if it is a zombie.
process_mark mark_of(pid_t id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may contain any character
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  char state = 0;
  std::uint64_t value = 0;
  std::string skipped;
  fields >> state;  // field 3 of proc(5)
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> value;  // field 22, starttime
  if (!fields || state == 'Z' || state == 'X') return 0;
  return std::uint64_t{static_cast<std::uint32_t>(id)} << 32 | (value & 0xffffffffU);
}

process_mark own_mark() { return mark_of(::getpid()); }

bool is_alive(process_mark mark) { return mark_of(static_cast<pid_t>(mark >> 32)) == mark; }

/// The content of a handle.
struct handle_content {
  std::uint64_t cookie;
  process_mark creator;
  int file;
};
static_assert(sizeof(handle_content) <= sizeof(cudaIpcEventHandle_t));

std::string path_of(const handle_content& content) {
  return "/proc/" + std::to_string(content.creator >> 32) + "/fd/" + std::to_string(content.file);
}

}  // namespace

struct shared_event_page {
  std::uint64_t cookie;
  std::atomic<shared_event::position> last;
  std::array<event_place, places> all;
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

namespace {

shared_event::position name_of(std::size_t place, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | (place + 1);
}
std::size_t place_of(shared_event::position where) { return (where & 0xffffffffU) - 1; }
std::uint32_t generation_of(shared_event::position where) { return static_cast<std::uint32_t>(where >> 32); }

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* limit) {
  ::syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

shared_event_page* map(int file) {
  void* const memory = ::mmap(nullptr, sizeof(shared_event_page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<shared_event_page*>(memory);
}

/// Begins a recording in a place that the caller owns, and returns its position. If the place contains a recording of
/// an owner that has ended, this recording becomes reached.
shared_event::position begin_in(shared_event_page& page, std::size_t i) {
  std::atomic<std::uint32_t>& generation = page.all[i].generation;
  const std::uint32_t before = generation;
  const std::uint32_t now = before + (before % 2 == 0 ? 1 : 2);
  generation = now;
  if (before % 2 != 0) futex(generation, FUTEX_WAKE, INT_MAX, nullptr);
  return name_of(i, now);
}

/// Occupies a place that is free or whose owner has ended, and begins a recording in this place; returns 0 if there is
/// no place.
shared_event::position take(shared_event_page& page, process_mark self) {
  for (std::size_t i = 0; i < places; ++i) {
    process_mark nobody = 0;
    if (page.all[i].owner.compare_exchange_strong(nobody, self)) return begin_in(page, i);
  }
  for (std::size_t i = 0; i < places; ++i) {
    process_mark owner = page.all[i].owner;
    if (owner != 0 && !is_alive(owner) && page.all[i].owner.compare_exchange_strong(owner, self))
      return begin_in(page, i);
  }
  return 0;
}

}  // namespace

shared_event::pending::~pending() { of_->end(where_); }

shared_event::shared_event(shared_event_page* page, int file, const cudaIpcEventHandle_t& handle)
    : page_(page), file_(file), handle_(handle) {}

shared_event::~shared_event() {
  ::munmap(page_, sizeof *page_);
  if (file_ >= 0) ::close(file_);
}

std::shared_ptr<shared_event> shared_event::create() {
  handle_content content{};
  content.file = ::memfd_create(file_name, MFD_CLOEXEC);
  require(content.file >= 0, cudaErrorMemoryAllocation);
  shared_event_page* page = nullptr;
  if (::ftruncate(content.file, sizeof(shared_event_page)) == 0) page = map(content.file);
  if (page == nullptr || ::getrandom(&content.cookie, sizeof content.cookie, 0) != sizeof content.cookie) {
    if (page != nullptr) ::munmap(page, sizeof *page);
    ::close(content.file);
    throw failure(cudaErrorMemoryAllocation);
  }
  page->cookie = content.cookie;
  content.creator = own_mark();
  cudaIpcEventHandle_t handle{};
  std::memcpy(&handle, &content, sizeof content);
  return std::shared_ptr<shared_event>(new shared_event(page, content.file, handle));
}

std::shared_ptr<shared_event> shared_event::open(const cudaIpcEventHandle_t& handle) {
  handle_content content{};
  std::memcpy(&content, &handle, sizeof content);
  require(content.creator != 0 && content.file >= 0 && is_alive(content.creator), cudaErrorInvalidResourceHandle);
  const std::string path = path_of(content);
  std::array<char, 64> target{};  // checked before open(), because opening another kind of file can have side effects
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  std::string wanted = "/memfd:";
  wanted += file_name;
  require(length > 0 && std::string(target.data(), static_cast<std::size_t>(length)).starts_with(wanted),
          cudaErrorInvalidResourceHandle);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  require(file >= 0, cudaErrorInvalidResourceHandle);
  struct stat about {};
  const bool is_page = ::fstat(file, &about) == 0 && about.st_size == sizeof(shared_event_page);
  shared_event_page* const page = is_page ? map(file) : nullptr;
  ::close(file);
  require(page != nullptr, cudaErrorInvalidResourceHandle);
  std::shared_ptr<shared_event> result(new shared_event(page, -1, handle));
  require(page->cookie == content.cookie, cudaErrorInvalidResourceHandle);
  return result;
}

std::shared_ptr<shared_event::pending> shared_event::begin() {
  const process_mark self = own_mark();
  position where = take(*page_, self);
  for (; where == 0; where = take(*page_, self)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::make_shared<pending>(shared_from_this(), where);
}

void shared_event::publish(const pending& recording) { page_->last = recording.where(); }

void shared_event::end(position where) {
  event_place& mine = page_->all[place_of(where)];
  mine.generation = generation_of(where) + 1;
  mine.owner = 0;
  futex(mine.generation, FUTEX_WAKE, INT_MAX, nullptr);
}

shared_event::position shared_event::last() const { return page_->last; }

bool shared_event::reached(position where) const {
  if (where == 0) return true;
  const event_place& its = page_->all[place_of(where)];
  return its.generation != generation_of(where) || !is_alive(its.owner);
}

void shared_event::wait(position where) const {
  constexpr timespec between_looks{0, 50'000'000};
  while (!reached(where)) {
    futex(page_->all[place_of(where)].generation, FUTEX_WAIT, generation_of(where), &between_looks);
  }
}

}  // namespace hpe::cudart

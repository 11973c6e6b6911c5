// The processes that share a device, and the memory that each process has taken. To take memory, a process first adds
// the bytes to its own claim and then computes the sum of all claims; if the sum is too large, the process subtracts
// the bytes again. So the memory in use never exceeds the device's memory, and a process that stops or dies between two
// instructions does not block the other processes.
#include "runtime/node/device_share.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/node/share_page.h"

namespace hpe::node {

namespace {

constexpr unsigned version_of_layout = 1;
constexpr std::chrono::seconds longest_patience{1'000'000};

std::size_t size_of_page() { return round_up(sizeof(share_page), os::page_size()); }

std::string path_of(const std::string& group, const std::string& device) {
  constexpr std::size_t longest = 64;
  const bool fits = group.size() <= longest && std::ranges::all_of(group, [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
                    });
  HPE_REQUIRE(fits, HPE_ERROR_INITIALIZATION,
              "HPE_SHARE=\"{}\" is not a name of at most {} letters, digits, dots, dashes and underscores", group,
              longest);
  return fmt::format("/dev/shm/hpe-share-{}-{}-{}-{}", version_of_layout, ::geteuid(), group, device);
}

// Locks of fcntl belong to the process and are released when it ends; children made by fork do not inherit the locks.
bool lock_slots(int file, unsigned first, unsigned count, short kind) noexcept {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = first;
  range.l_len = count;
  return ::fcntl(file, F_SETLK, &range) == 0;
}

// Returns the ID of the process that has locked a slot; 0 if no process has locked the slot; -1 if the process has no
// ID in this container.
int locked_by(int file, unsigned index) noexcept {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = index;
  range.l_len = 1;
  if (::fcntl(file, F_GETLK, &range) != 0) return -1;
  if (range.l_type == F_UNLCK) return 0;
  return range.l_pid > 0 ? range.l_pid : -1;
}

}  // namespace

device_share* device_share::join(const std::string& group, const std::string& device, std::uint64_t bytes,
                                 std::chrono::seconds patience) {
  if (group.empty()) return nullptr;
  static mutex joining;
  // The map is never destroyed, because threads may use a share until the process ends.
  static auto* const joined = new std::map<std::string, std::unique_ptr<device_share>>;
  const lock_guard lock(joining);
  std::unique_ptr<device_share>& found = (*joined)[device];
  if (found == nullptr) {
    found = std::make_unique<device_share>(group, device, bytes, patience);
    if (joined->size() == 1)
      std::atexit([] {
        for (const auto& [name, share] : *joined) share->remove_if_last();
      });
  }
  return found.get();
}

device_share::device_share(std::string group, const std::string& device, std::uint64_t bytes,
                           std::chrono::seconds patience)
    : group_(std::move(group)),
      path_(path_of(group_, device)),
      total_(bytes),
      patience_(std::min(patience, longest_patience)) {
  // A process that ends soon frees its slot, and a removed file is soon replaced. So failed attempts are repeated.
  constexpr int attempts = 200;
  bool done = open_and_lock();
  for (int i = 0; !done && i < attempts; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    done = open_and_lock();
  }
  HPE_REQUIRE(done, HPE_ERROR_INITIALIZATION,
              "HPE_SHARE=\"{}\": {} processes share this device already; more are not possible", group_,
              share_page::most_processes);
  memory_ = os::reservation(0, size_of_page(), os::page_size());
  os::map_file(memory_.data(), memory_.size(), os::page_protection::read_write, file_.get(), 0);
  page_ = reinterpret_cast<share_page*>(memory_.data());
  std::uint32_t used = page_->used.load();
  while (used <= index_ && !page_->used.compare_exchange_weak(used, index_ + 1)) {
  }
  share_slot& mine = own();
  for (share_word* const word :
       {&mine.held, &mine.wanted, &mine.used, &mine.waits_since, &mine.turn_ends, &mine.question})
    word->store(0);
  // The current turn may belong to a dead process that had the same slot.
  std::uint64_t current = page_->turn.load();
  if (turn_word::owner(current) == index_)
    page_->turn.compare_exchange_strong(current, turn_word::next(current, turn_word::nobody, 0));
  mine.member.store(1);
}

// Returns false if there is no free slot, or if the last process has just removed the file.
bool device_share::open_and_lock() {
  file_ = os::file_descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  struct stat about {};
  const bool usable = file_ && ::fstat(file_.get(), &about) == 0 && about.st_uid == ::geteuid();
  HPE_REQUIRE(usable, HPE_ERROR_INITIALIZATION, "HPE_SHARE=\"{}\": the file {} cannot be used: {}", group_, path_,
              file_ && about.st_uid != ::geteuid() ? "it belongs to another user"
                                                   : std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  // Sets the size of the file and allocates its pages: an access to a page for which the file system has no space would
  // end the process with SIGBUS.
  if (const int failure = ::posix_fallocate(file_.get(), 0, static_cast<off_t>(size_of_page())); failure != 0) {
    remove_if_last();
    HPE_THROW(HPE_ERROR_INITIALIZATION, "HPE_SHARE=\"{}\": the file {} cannot have {} bytes: {}", group_, path_,
              size_of_page(), std::strerror(failure));  // NOLINT(concurrency-mt-unsafe)
  }
  for (index_ = 0; index_ < share_page::most_processes; ++index_)
    if (lock_slots(file_.get(), index_, 1, F_WRLCK)) return ::fstat(file_.get(), &about) == 0 && about.st_nlink != 0;
  return false;
}

// Removes the file if this process can lock all slots. While it holds these locks, no other process can lock a slot, so
// no process joins a file that has no name.
void device_share::remove_if_last() noexcept {
  if (lock_slots(file_.get(), 0, share_page::most_processes, F_WRLCK)) ::unlink(path_.c_str());
}

share_slot& device_share::slot(unsigned index) const noexcept { return page_->slots[index]; }

unsigned device_share::used_slots() const noexcept { return std::min(page_->used.load(), share_page::most_processes); }

bool device_share::is_member(unsigned index) const noexcept { return slot(index).member.load() != 0; }

std::uint64_t device_share::taken() const noexcept {
  std::uint64_t result = 0;
  for (unsigned i = 0; i < used_slots(); ++i)
    if (is_member(i)) result += slot(i).held.load();
  return result;
}

std::uint64_t device_share::free() const noexcept {
  std::uint64_t not_free = taken();
  const unsigned owner = turn_word::owner(page_->turn.load());
  if (owner < used_slots() && owner != index_ && is_member(owner)) not_free += slot(owner).wanted.load();
  return not_free < total_ ? total_ - not_free : 0;
}

bool device_share::take(std::uint64_t bytes) noexcept {
  share_slot& mine = own();
  for (const bool last : {false, true}) {
    if (free() >= bytes) {
      mine.held += bytes;
      if (taken() <= total_) {
        const std::uint64_t wanted = mine.wanted.load();
        mine.wanted.store(wanted - std::min(wanted, bytes));
        return true;
      }
      mine.held -= bytes;
    }
    if (!last) forget_dead();
  }
  return false;
}

void device_share::give(std::uint64_t bytes) noexcept {
  own().held -= bytes;
  if (turn_word::owner(page_->turn.load()) != turn_word::nobody) wake();
}

void device_share::use() noexcept {
  own().used.store(static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()),
                   std::memory_order_relaxed);
}

bool device_share::others() const noexcept {
  for (unsigned i = 0; i < used_slots(); ++i)
    if (i != index_ && is_member(i)) return true;
  return false;
}

int device_share::process_of(unsigned index) const noexcept { return std::max(locked_by(file_.get(), index), 0); }

bool device_share::is_stopped(unsigned index) const noexcept {
  const int process = process_of(index);
  if (process == 0) return false;
  try {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(") ");  // the state follows the name
    return name_end != std::string::npos && name_end + 2 < line.size() &&
           (line[name_end + 2] == 'T' || line[name_end + 2] == 't');
  } catch (const std::exception&) {
    return false;
  }
}

std::string device_share::others_in_words() const {
  std::string text;
  for (unsigned i = 0; i < used_slots(); ++i) {
    if (i == index_ || !is_member(i)) continue;
    const int process = process_of(i);
    text += fmt::format("{}{} has {} bytes{}", text.empty() ? "" : ", ",
                        process != 0 ? fmt::format("process {}", process) : std::string("another process"),
                        slot(i).held.load(), is_stopped(i) ? " and is stopped" : "");
  }
  return text.empty() ? fmt::format("no other process shares the device (HPE_SHARE={})", group_)
                      : fmt::format("of the processes that share the device (HPE_SHARE={}), {}", group_, text);
}

void device_share::forget_dead() noexcept {
  const lock_guard lock(forgetting_);
  for (unsigned i = 0; i < used_slots(); ++i) {
    if (i == index_ || !is_member(i) || locked_by(file_.get(), i) != 0) continue;
    if (!lock_slots(file_.get(), i, 1, F_WRLCK)) continue;  // a new process has just taken the slot
    share_slot& dead = slot(i);
    dead.waits_since.store(0);
    dead.wanted.store(0);
    dead.held.store(0);
    dead.member.store(0);
    lock_slots(file_.get(), i, 1, F_UNLCK);
    wake();
  }
}

void device_share::wake() noexcept {
  page_->bell.fetch_add(1);
  os::futex_wake_all(page_->bell);
}

// ---- turns of processes, and the requests that processes send to each other -----------------------------------------

namespace {

using std::chrono::nanoseconds;
constexpr std::uint64_t millisecond = 1'000'000;

// The interval at which a waiting process checks the state of the others, even if no process wakes it: a process that
// ends or is stopped does not wake other processes.
constexpr std::uint64_t between_looks = 5 * millisecond;
constexpr std::uint64_t least_turn = 20 * millisecond;
// The length of a turn, as a multiple of the time that other processes took to give their memory back. The owner also
// copies its own data into that memory, so moving data takes about an eighth of the turn.
constexpr std::uint64_t turn_for_collecting = 16;
constexpr std::uint64_t most_for_collecting = 30'000 * millisecond;
// If another process waits and the owner does not use the device for a quarter of the collecting time, but at least
// least_idling and at most most_idling, the owner's turn ends.
constexpr std::uint64_t part_for_idling = 4;
constexpr std::uint64_t least_idling = 2 * millisecond;
constexpr std::uint64_t most_idling = 1000 * millisecond;
// A process that does not react within this time is treated as stopped.
constexpr std::uint64_t reacts_within = 1000 * millisecond;
// If the owner is still collecting memory this long after its turn should have ended, the owner hangs or waits for
// kernels, so its turn may end.
constexpr std::uint64_t collects_within = 10'000 * millisecond;

std::uint64_t now_in_nanoseconds() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void sleep_on(const os::futex_word& bell, std::uint32_t rung, std::uint64_t until) noexcept {
  os::futex_wait_until(bell, rung, std::chrono::steady_clock::time_point(nanoseconds(until)));
}

}  // namespace

bool device_share::is_waiting(unsigned index, std::uint64_t now) const noexcept {
  const share_slot& its = slot(index);
  return is_member(index) && its.waits_since.load() != 0 && its.waited.load() + reacts_within > now;
}

bool device_share::another_waits(std::uint64_t now) const noexcept {
  for (unsigned i = 0; i < used_slots(); ++i)
    if (i != index_ && is_waiting(i, now)) return true;
  return false;
}

bool device_share::may_end(turn current, std::uint64_t now) const noexcept {
  const unsigned owner = turn_word::owner(current);
  if (owner >= used_slots() || !is_member(owner)) return true;
  const std::uint64_t ends = slot(owner).turn_ends.load();
  if (now >= ends && turn_word::threads(current) == 0) return true;
  return is_stopped(owner) || now >= ends + collects_within;
}

bool device_share::is_next(std::uint64_t now) const noexcept {
  const std::uint64_t since = own().waits_since.load();
  for (unsigned i = 0; i < used_slots(); ++i) {
    if (i == index_ || !is_waiting(i, now)) continue;
    const std::uint64_t its = slot(i).waits_since.load();
    if (its < since || (its == since && i < index_)) return false;
  }
  return true;
}

device_share::turn device_share::enter() noexcept {
  share_slot& mine = own();
  for (bool told = false;;) {
    const std::uint32_t rung = page_->bell.load();
    const std::uint64_t now = now_in_nanoseconds();
    std::uint64_t current = page_->turn.load();
    const unsigned owner = turn_word::owner(current);
    if (owner == index_ && (now < mine.turn_ends.load() || !another_waits(now))) {
      if (!page_->turn.compare_exchange_strong(current, current + turn_word::one_thread)) continue;
      mine.waits_since.store(0);
      return turn_word::number(current);
    }
    if (std::uint64_t none = 0; mine.waits_since.compare_exchange_strong(none, now)) told = false;
    mine.waited.store(now);
    if (owner == index_) {
      // Waiting processes have priority over another turn of this process. This turn ends when no thread of this
      // process collects memory any more.
      if (turn_word::threads(current) == 0 &&
          page_->turn.compare_exchange_strong(current, turn_word::next(current, turn_word::nobody, 0))) {
        wake();
        continue;
      }
    } else if (may_end(current, now) && is_next(now)) {
      began_ = now;
      collecting_ = 0;
      mine.turn_ends.store(now + least_turn);
      mine.question.store(0);
      const std::uint64_t next = turn_word::next(current, index_, 1);
      if (page_->turn.compare_exchange_strong(current, next)) {
        mine.waits_since.store(0);
        wake();
        return turn_word::number(next);
      }
      continue;
    }
    if (!told) {
      told = true;
      wake();  // the owner of the turn then checks whether it still needs the turn
      continue;
    }
    sleep_on(page_->bell, rung, now + between_looks);
    forget_dead();
  }
}

void device_share::leave(turn mine) noexcept {
  own().wanted.store(0);
  std::uint64_t current = page_->turn.load();
  while (turn_word::owner(current) == index_ && turn_word::number(current) == mine &&
         !page_->turn.compare_exchange_weak(current, current - turn_word::one_thread)) {
  }
  if (another_waits(now_in_nanoseconds())) wake();
}

unsigned device_share::next_to_ask() const noexcept {
  unsigned result = turn_word::nobody;
  for (unsigned i = 0; i < used_slots(); ++i) {
    if (i == index_ || !is_member(i) || slot(i).held.load() == 0 || (refused_ >> i & 1) != 0) continue;
    if (result == turn_word::nobody || slot(i).used.load() < slot(result).used.load()) result = i;
  }
  return result;
}

void device_share::ask_all_again() noexcept {
  asked_ = turn_word::nobody;
  refused_ = stopped_ = 0;
}

device_share::reply device_share::ask(turn mine, std::uint64_t bytes, std::uint64_t enough) noexcept {
  share_slot& me = own();
  me.wanted.store(bytes);
  std::uint64_t last = now_in_nanoseconds();
  for (;;) {
    const std::uint32_t rung = page_->bell.load();
    forget_dead();
    const std::uint64_t current = page_->turn.load();
    if (turn_word::owner(current) != index_ || turn_word::number(current) != mine) return reply::lost;
    const std::uint64_t now = now_in_nanoseconds();
    collecting_ += now - last;
    last = now;
    me.turn_ends.store(began_ + least_turn + collecting_ +
                       std::min(turn_for_collecting * collecting_, most_for_collecting));
    const std::uint64_t there = free();
    if (there >= enough) return reply::memory;
    if (asked_ == turn_word::nobody) {
      asked_ = next_to_ask();
      if (asked_ == turn_word::nobody) return stopped_ != 0 ? reply::stopped : reply::nothing;
      asked_at_ = now;
      me.asked.store(asked_);
      me.asked_bytes.store(bytes - std::min(bytes, there));
      me.question.store(now);
      wake();
    }
    const share_slot& other = slot(asked_);
    const std::uint64_t bit = std::uint64_t{1} << asked_;
    if (!is_member(asked_)) {
      asked_ = turn_word::nobody;
    } else if (other.answered.load() == asked_at_) {
      if (other.gave.load() < me.asked_bytes.load()) refused_ |= bit;
      asked_ = turn_word::nobody;
    } else if (is_stopped(asked_) || (other.heard.load() != asked_at_ && now > asked_at_ + reacts_within)) {
      refused_ |= bit;
      stopped_ |= bit;
      asked_ = turn_word::nobody;
    } else {
      sleep_on(page_->bell, rung, now + between_looks);
    }
  }
}

void device_share::look_whether_idle(turn current, const service& by) noexcept {
  const std::uint64_t now = now_in_nanoseconds();
  if (by.busy()) busy_at_ = now;
  const std::uint64_t idling = std::clamp(collecting_ / part_for_idling, least_idling, most_idling);
  if (now < std::max(own().used.load(), busy_at_) + idling) return;
  if (page_->turn.compare_exchange_strong(current, turn_word::next(current, turn_word::nobody, 0))) wake();
}

void device_share::serve(const service& by, const std::atomic<bool>& end) {
  share_slot& mine = own();
  while (!end) {
    const std::uint32_t rung = page_->bell.load();
    const std::uint64_t current = page_->turn.load();
    const unsigned owner = turn_word::owner(current);
    if (owner < used_slots() && owner != index_) {
      const share_slot& other = slot(owner);
      const std::uint64_t question = other.question.load();
      if (question != 0 && question != mine.answered.load() && other.asked.load() == index_) {
        mine.heard.store(question);
        mine.gave.store(by.give(other.asked_bytes.load()));
        mine.answered.store(question);
        wake();
        continue;
      }
    }
    const std::uint64_t now = now_in_nanoseconds();
    if (owner == index_ && turn_word::threads(current) == 0 && another_waits(now)) {
      look_whether_idle(current, by);
      sleep_on(page_->bell, page_->bell.load(), now + least_idling);
    } else {
      os::futex_wait(page_->bell, rung);
    }
  }
}

}  // namespace hpe::node

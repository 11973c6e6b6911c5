// The accesses of a log are a ring; access n is at n % most_accesses. A process holds a lock of the file while it reads
// and writes the page, except single atomic words. The operating system releases the lock when the process ends. An
// access belongs to the log when `next` has passed its number, so an access that a killed process has written in part
// does not.

#include "runtime/check/shared_memories.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/interval_map.h"
#include "runtime/base/log.h"
#include "runtime/base/own_process.h"

namespace hpe::check {

namespace {

constexpr std::size_t most_text = std::size_t{1} << 18;

struct logged_access {
  std::uint64_t begin, end;  // offsets in the memory
  shared_log::times when;
  std::int32_t process;
  std::uint32_t text;  // its place in the texts; 0: there was no room
  use how;
};

}  // namespace

struct shared_log_page {
  std::uint64_t stamp;
  std::uint64_t next;      // the number of accesses so far
  std::uint64_t text_end;  // in the texts
  std::atomic<std::uint32_t> is_unknown, has_dropped;
  std::array<logged_access, shared_log::most_accesses> accesses;
  std::array<char, most_text> texts;  // each ends with a zero

  [[nodiscard]] std::uint64_t first() const { return next - std::min<std::uint64_t>(next, accesses.size()); }
  [[nodiscard]] logged_access& at(std::uint64_t number) { return accesses[number % accesses.size()]; }
};

namespace {

constexpr std::uint64_t stamp_of_layout = 0x68706543'00000000 + sizeof(shared_log_page);

std::size_t size_of_file() { return round_up(sizeof(shared_log_page), os::page_size()); }

/// Holds the lock of an open file, which other open files of the same memory exclude.
class file_lock {
 public:
  explicit file_lock(int file) noexcept : file_(file) { set(F_WRLCK); }
  ~file_lock() { set(F_UNLCK); }
  file_lock(const file_lock&) = delete;
  file_lock& operator=(const file_lock&) = delete;

 private:
  void set(short kind) const noexcept {
    struct flock all {};
    all.l_type = kind;
    all.l_whence = SEEK_SET;
    while (::fcntl(file_, F_OFD_SETLKW, &all) != 0 && errno == EINTR) {
    }
  }
  int file_;
};

/// Calls visit for the files of a folder that this process may list.
template <class Visit>
void for_each_file(const std::filesystem::path& folder, const Visit& visit) {
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    visit(at->path());
}

// Returns a path of the file of this name that another process of the user has open; empty if there is none.
std::filesystem::path find_file(const std::string& name) {
  std::filesystem::path found;
  const std::string target = fmt::format("/memfd:{} (deleted)", name);
  for_each_file("/proc", [&](const std::filesystem::path& process) {
    if (process.filename().string().find_first_not_of("0123456789") != std::string::npos || !found.empty()) return;
    for_each_file(process / "fd", [&](const std::filesystem::path& file) {
      std::error_code failed;
      if (std::filesystem::read_symlink(file, failed) == target) found = file;
    });
  });
  return found;
}

os::file_descriptor open_file(const std::string& name) {
  os::file_descriptor file(::open(find_file(name).c_str(), O_RDWR | O_CLOEXEC));
  struct stat about {};
  HPE_REQUIRE(file && ::fstat(file.get(), &about) == 0 && static_cast<std::size_t>(about.st_size) == size_of_file(),
              HPE_ERROR_NOT_FOUND, "the process that has exported the memory is not checked by the same build of hpe");
  return file;
}

// Whether the operating system has ended the work of this process.
bool has_ended(std::int32_t process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

bool is_before(const shared_log::times& earlier, const shared_log::times& later) {
  return earlier.waited != 0 && earlier.waited <= later.queued;
}

}  // namespace

process_name process_name::of_this_process() {
  const char* const rank = rank_by_environment();
  return {::getpid(), rank != nullptr ? fmt::format("rank {}", rank) : fmt::format("process {}", ::getpid())};
}

shared_log::shared_log(const std::string& name, bool creates, std::uint64_t base, std::size_t bytes, process_name self)
    : base_(base),
      bytes_(bytes),
      self_(std::move(self)),
      file_(creates ? os::create_memory_file(name.c_str(), size_of_file()) : open_file(name)),
      memory_(0, size_of_file(), os::page_size()) {
  os::map_file(memory_.data(), memory_.size(), os::page_protection::read_write, file_.get(), 0);
  page_ = reinterpret_cast<shared_log_page*>(memory_.data());
  if (creates) {
    page_->text_end = 1;
    page_->stamp = stamp_of_layout;
  }
  HPE_REQUIRE(page_->stamp == stamp_of_layout, HPE_ERROR_NOT_FOUND,
              "the process that has exported the memory is not checked by the same build of hpe");
}

shared_log::~shared_log() {
  const file_lock lock(file_.get());
  for (const pending& each : pending_) end(each, time_now());
}

void shared_log::add(std::span<const touched> what, use how, const times& when, const conflict_function& found) {
  const auto kept = what.first(std::min(what.size(), most_of_one));
  std::map<const actor*, std::uint32_t> texts;  // found before the lock is held, because that can take long
  for (const touched& each : kept)
    if (const auto [place, is_new] = texts.try_emplace(each.by->get()); is_new) place->second = text_of(**each.by, how);
  const file_lock lock(file_.get());
  shared_log_page& page = *page_;
  for (std::uint64_t n = page.first(); n < page.next; ++n) {
    const logged_access& other = page.at(n);
    if (other.process == self_.id || !conflicts_with(how, other.how)) continue;
    if (is_before(other.when, when) || is_before(when, other.when)) continue;
    const std::uint64_t begin = base_ + other.begin, end = base_ + other.end;
    const auto overlapping =
        std::partition_point(what.begin(), what.end(), [&](const touched& t) { return t.end <= begin; });
    if (overlapping == what.end() || overlapping->begin >= end || has_ended(other.process)) continue;
    other_access its{.how = other.how, .queued = other.when.queued};
    read_text(other.text, its);
    found(std::max<std::uint64_t>(begin, overlapping->begin), std::min<std::uint64_t>(end, overlapping->end),
          **overlapping->by, its);
  }
  const std::uint64_t first = page.next;
  for (const touched& each : kept) {
    const std::uint64_t begin = std::max<std::uint64_t>(each.begin, base_);
    const std::uint64_t end = std::min<std::uint64_t>(each.end, base_ + bytes_);
    if (begin >= end) continue;
    logged_access& place = page.at(page.next);
    if (page.next >= page.accesses.size() && place.when.waited == 0) page.has_dropped.store(1);
    place = {begin - base_, end - base_, when, self_.id, texts.at(each.by->get()), how};
    ++page.next;
  }
  std::erase_if(pending_, [&](const pending& each) { return each.end <= page.first(); });
  if (when.waited == 0 && first != page.next)
    pending_.push_back({first, page.next, (*what.front().by)->run.work->when->self});
}

void shared_log::waited(const work_order& order) {
  const auto begin_of_ended = std::partition(pending_.begin(), pending_.end(),
                                             [&](const pending& each) { return !order.has_waited(each.work); });
  if (begin_of_ended == pending_.end()) return;
  const file_lock lock(file_.get());
  const std::uint64_t now = time_now();
  std::for_each(begin_of_ended, pending_.end(), [&](const pending& each) { end(each, now); });
  pending_.erase(begin_of_ended, pending_.end());
}

void shared_log::end(const pending& ended, std::uint64_t now) {
  for (std::uint64_t n = std::max(ended.first, page_->first()); n < ended.end; ++n) page_->at(n).when.waited = now;
}

void shared_log::set_unknown() noexcept { page_->is_unknown.store(1); }
bool shared_log::is_unknown() const noexcept { return page_->is_unknown.load() != 0; }
bool shared_log::has_dropped() const noexcept { return page_->has_dropped.load() != 0; }

// ---- texts: lines with the process and the members of a side

std::uint32_t shared_log::text_of(const actor& by, use how) {
  const std::string key = fmt::format("{} {} {} {}", by.key(), by.site, name_of(how), by.run.work->stream);
  const auto [known, is_new] = texts_.try_emplace(key);
  if (!is_new) return known->second;
  const finding_side side = by.side(how, base_, bytes_);
  const std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", self_.words, by.is_free() ? "free" : side.how,
                                       side.what, side.argument, side.source, side.place, side.stream);
  const file_lock lock(file_.get());
  if (text.size() >= page_->texts.size() - page_->text_end) return 0;
  std::memcpy(page_->texts.data() + page_->text_end, text.c_str(), text.size() + 1);
  known->second = static_cast<std::uint32_t>(page_->text_end);
  page_->text_end += text.size() + 1;
  return known->second;
}

void shared_log::read_text(std::uint32_t at, other_access& to) const {
  std::array<std::string, 7> parts{"another process", "access", "work of another process"};
  if (at != 0 && at < page_->texts.size()) {
    const char* from = page_->texts.data() + at;
    for (std::string& part : parts) {
      const std::size_t size = std::strcspn(from, "\n");
      part.assign(from, size);
      from += size + (from[size] != 0 ? 1 : 0);
    }
  }
  to.process = parts[0];
  to.side = {parts[1], parts[2], std::atoi(parts[3].c_str()), parts[4], parts[5]};
  to.side.stream = std::strtoull(parts[6].c_str(), nullptr, 10);
}

// ---- all memories

namespace {

/// One access of a finding.
struct told_access {
  finding_side side;
  std::string process;
  use how;
  [[nodiscard]] bool is_free() const { return side.how == "free"; }
};

/// Returns the finding about accesses of two processes, without the allocation and the bytes.
finding describe(told_access earlier, told_access later) {
  finding f;
  f.kind = "rank-race";
  for (told_access* const each : {&earlier, &later}) each->side.what += " of " + each->process;
  f.sentence = fmt::format("{} {} bytes that {} {}, and nothing orders them", later.side.what,
                           later.is_free() ? "frees" : present_of(later.how), earlier.side.what,
                           earlier.is_free() ? "freed" : past_of(earlier.how));
  f.missing = fmt::format("a wait of {} for stream {}, and then a message to {}, between the two calls",
                          earlier.process, earlier.side.stream, later.process);
  f.now = std::move(later.side);
  f.earlier = std::move(earlier.side);
  return f;
}

}  // namespace

void shared_memories::add(const std::string& name, bool is_own, std::uint64_t base, std::size_t bytes) {
  const lock_guard lock(mutex_);
  try {
    auto log = std::make_unique<shared_log>(name, is_own, base, bytes, self_);
    if (unknown_order_ != nullptr) log->set_unknown();
    all_.insert_or_assign(base, memory{std::move(log), bytes, is_own});
    if (unknown_order_ != nullptr) tell(unknown_order_);
  } catch (const std::exception& caught) {
    tell(caught.what());
  }
}

void shared_memories::tell(const char* what) {
  if (std::exchange(has_told_, true)) return;
  log(log_level::warn, "HPE_CHECK: conflicts with work of other processes may not be found: {}", what);
}

bool shared_memories::is_empty() const {
  const lock_guard lock(mutex_);
  return all_.empty();
}

bool shared_memories::contains(std::uint64_t address) const {
  const lock_guard lock(mutex_);
  return find_containing(all_, address, &memory::bytes) != all_.end();
}

void shared_memories::access(std::uint64_t base, std::span<const touched> what, use how, const work_order& order,
                             const report_function& report) {
  const lock_guard lock(mutex_);
  const auto to = all_.find(base);
  if (to == all_.end()) return;
  const actor& by = **what.front().by;
  const checked_operation& operation = *by.run.what;
  if (operation.is_host || operation.is_message) return;
  if (by.is_free() && !to->second.is_own) return forget(base);  // only unmaps the memory
  const checked_work& work = *by.run.work;
  // CPU code can have waited at any time since it has queued work whose accesses arrive late.
  const std::uint64_t waited = order.has_waited(work.when->self) ? work.queued_at : 0;
  add_to(to->second, base, what, how, {std::max(work.queued_at, learned_), waited}, report);
  if (by.is_free()) forget(base);
}

void shared_memories::release(std::uint64_t base, const actor_ptr& by, const report_function& report) {
  const lock_guard lock(mutex_);
  const auto gone = all_.find(base);
  if (gone == all_.end()) return;
  const touched all{base, base + gone->second.bytes, &by};
  const std::uint64_t now = time_now();
  if (gone->second.is_own) add_to(gone->second, base, {&all, 1}, use::write, {now, now}, report);
  forget(base);
}

void shared_memories::add_to(memory& to, std::uint64_t base, std::span<const touched> what, use how,
                             const shared_log::times& when, const report_function& report) {
  if (to.log->is_unknown()) return;
  to.log->add(what, how, when,
              [&](std::uint64_t begin, std::uint64_t end, const actor& by, const shared_log::other_access& other) {
                const std::string key = fmt::format("rank {} {} {}", by.key(), other.side.what, other.side.place);
                report(key, by, [&] {
                  told_access mine{by.side(how, base, to.bytes), self_.words, how};
                  if (by.is_free()) mine.side.how = "free";
                  told_access its{other.side, other.process, other.how};
                  finding f = other.queued < when.queued ? describe(its, mine) : describe(mine, its);
                  f.address = begin;
                  f.bytes = end - begin;
                  return f;
                });
              });
  if (to.log->has_dropped()) tell("the processes have queued much work for which they have not waited");
}

void shared_memories::forget(std::uint64_t base) {
  const auto gone = all_.find(base);
  is_unknown_ = is_unknown_ || gone->second.log->is_unknown();
  all_.erase(gone);
}

void shared_memories::waited(const work_order& order) {
  const lock_guard lock(mutex_);
  for (const auto& [base, each] : all_) each.log->waited(order);
}

void shared_memories::learned() {
  const lock_guard lock(mutex_);
  learned_ = time_now();
}

void shared_memories::set_unknown(const char* how) {
  const lock_guard lock(mutex_);
  if (unknown_order_ != nullptr) return;
  unknown_order_ = how;
  for (const auto& [base, each] : all_) each.log->set_unknown();
  if (!all_.empty()) tell(how);
}

bool shared_memories::end() {
  const lock_guard lock(mutex_);
  while (!all_.empty()) forget(all_.begin()->first);
  return is_unknown_;
}

}  // namespace hpe::check

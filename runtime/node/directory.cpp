// Locks on bytes of the file: byte i is held by the process in place i; the byte behind them, the gate, while somebody
// joins or leaves. The file is removed by who holds the gate and sees no place held. Who opened a file that was removed
// meanwhile sees that it has no name any more, and opens the new one.
#include "runtime/node/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <boost/interprocess/shared_memory_object.hpp>
#include <cerrno>

#include "runtime/base/error.h"

namespace hpe::node {

namespace {

namespace ipc = boost::interprocess;

constexpr std::uint32_t places = 4096;
constexpr off_t gate = places;

struct place {
  std::atomic<std::uint64_t> key[2];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct flock range(short type, off_t first, off_t count) {
  struct flock what {};
  what.l_type = type;
  what.l_whence = SEEK_SET;
  what.l_start = first;
  what.l_len = count;
  return what;
}

}  // namespace

struct directory::file {
  std::string name;
  ipc::shared_memory_object object;
  ipc::mapped_region memory;

  file(ipc::open_or_create_t how, std::string its_name)
      : name(std::move(its_name)), object(how, name.c_str(), ipc::read_write, ipc::permissions(0600)) {}
  file(ipc::open_only_t how, std::string its_name)
      : name(std::move(its_name)), object(how, name.c_str(), ipc::read_write) {}

  [[nodiscard]] int descriptor() const { return object.get_mapping_handle().handle; }
  [[nodiscard]] struct stat look() const {
    struct stat found {};
    if (::fstat(descriptor(), &found) != 0) throw_system_error("fstat of the node directory");
    return found;
  }
  [[nodiscard]] bool removed() const { return look().st_nlink == 0; }

  // /dev/shm is everybody's to write, so somebody else may have made a file with our name.
  void require_own() const {
    const struct stat found = look();
    HPE_REQUIRE(found.st_uid == ::geteuid() && (found.st_mode & 077) == 0, HPE_ERROR_NOT_SUPPORTED,
                "the shared memory {} is not this user's alone, so memory is not shared through it; its owner is user "
                "{} and its mode {:o}",
                name, found.st_uid, found.st_mode & 0777);
  }
  void map() { memory = ipc::mapped_region(object, ipc::read_write, 0, places * sizeof(place)); }
  [[nodiscard]] place& at(std::uint32_t index) const { return static_cast<place*>(memory.get_address())[index]; }

  // False if somebody else holds a part of the range.
  bool lock(off_t first) {
    struct flock what = range(F_WRLCK, first, 1);
    return ::fcntl(descriptor(), F_SETLK, &what) == 0;
  }
  void wait_for_gate() {
    struct flock what = range(F_WRLCK, gate, 1);
    while (::fcntl(descriptor(), F_SETLKW, &what) != 0)
      if (errno != EINTR) throw_system_error("locking the node directory");
  }
  void unlock(off_t first) {
    struct flock what = range(F_UNLCK, first, 1);
    ::fcntl(descriptor(), F_SETLK, &what);
  }
  // By another process.
  [[nodiscard]] bool held(off_t first, off_t count) const {
    struct flock what = range(F_WRLCK, first, count);
    return ::fcntl(descriptor(), F_GETLK, &what) == 0 && what.l_type != F_UNLCK;
  }
};

directory::directory(std::string name) : name_(std::move(name)) {}

directory::~directory() { leave(); }

std::string directory::file_name() const { return fmt::format("{}-1-{}", name_, ::geteuid()); }

void directory::open_for_joining() {
  file_.reset();  // first: whoever closes a file loses all locks on it
  try {
    for (;;) {
      auto made = std::make_unique<file>(ipc::open_or_create, file_name());
      made->require_own();
      made->wait_for_gate();
      if (made->removed()) continue;
      ipc::offset_t size = 0;
      constexpr ipc::offset_t wanted = places * sizeof(place);
      if (!made->object.get_size(size) || size < wanted) made->object.truncate(wanted);
      made->map();
      file_ = std::move(made);
      return;
    }
  } catch (const ipc::interprocess_exception& e) {
    HPE_THROW(HPE_ERROR_NOT_SUPPORTED, "memory cannot be shared with other processes: the shared memory {}: {}",
              file_name(), e.what());
  }
}

std::uint32_t directory::join(const process_key& key) {
  const std::lock_guard lock(mutex_);
  if (joined_by_ == ::getpid()) return place_;
  open_for_joining();
  std::uint32_t index = 0;
  while (index < places && !file_->lock(index)) ++index;
  if (index < places) {
    place& mine = file_->at(index);
    mine.key[0].store(key.words[0], std::memory_order_relaxed);
    mine.key[1].store(key.words[1], std::memory_order_release);
  }
  file_->unlock(gate);
  HPE_REQUIRE(index < places, HPE_ERROR_OUT_OF_MEMORY,
              "{} processes of this user share memory on this machine; there is no room for another", places);
  place_ = index;
  joined_by_ = ::getpid();
  return index;
}

void directory::leave() noexcept {
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr || joined_by_ != ::getpid()) return;
  joined_by_ = 0;
  try {
    file_->wait_for_gate();
    file_->unlock(place_);
    // Another file may have this name by now, if somebody removed ours.
    if (!file_->removed() && !file_->held(0, places)) ipc::shared_memory_object::remove(file_->name.c_str());
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): who comes next cleans up
  }
  file_.reset();  // and its locks
}

bool directory::open_if_there() {
  if (file_ != nullptr && (joined_by_ == ::getpid() || !file_->removed())) return true;
  file_.reset();
  try {
    auto found = std::make_unique<file>(ipc::open_only, file_name());
    found->require_own();
    if (static_cast<std::size_t>(found->look().st_size) < places * sizeof(place)) return false;
    found->map();
    file_ = std::move(found);
  } catch (const ipc::interprocess_exception&) {
    return false;
  } catch (const error&) {
    return false;
  }
  return true;
}

bool directory::alive(std::uint32_t index, const process_key& key) {
  const std::lock_guard lock(mutex_);
  if (index >= places || !open_if_there()) return false;
  const place& it = file_->at(index);
  return it.key[1].load(std::memory_order_acquire) == key.words[1] &&
         it.key[0].load(std::memory_order_relaxed) == key.words[0] && file_->held(index, 1);
}

}  // namespace hpe::node

// If the file system supports it, the new file has no name until close(), so a program that is killed leaves no file
// behind.

#include "runtime/os/output_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"

namespace hpe::os {

namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

bool is_link_of_proc(const std::string& path) {
  struct stat link {};
  struct statfs system {};
  return ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode) &&
         ::statfs(folder_of(path).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

/// The path of an open file in /proc.
std::string name_in_proc(const file_descriptor& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

}  // namespace

std::string output_file::behind_links(const std::string& path) {
  constexpr int most = 40;  // the most links that Linux follows
  fs::path target = path;
  for (int links = 0; links <= most; ++links) {
    std::error_code no_link;
    const fs::path next = fs::read_symlink(target, no_link);
    if (no_link || is_link_of_proc(target)) return target;
    target = target.parent_path() / next;  // if `next` is absolute, the result is `next`
  }
  errno = ELOOP;
  throw_system_error("cannot write " + path);
}

output_file::output_file(std::string path, std::uint64_t bytes) : path_(std::move(path)), target_(behind_links(path_)) {
  struct stat old {};
  replaces_ = ::stat(target_.c_str(), &old) == 0;
  if (!replaces_ && errno != ENOENT) fail(errno);
  if (replaces_ && S_ISDIR(old.st_mode)) fail(EISDIR);
  if (replaces_ && S_ISSOCK(old.st_mode)) fail(ENXIO);
  if (replaces_ && (!S_ISREG(old.st_mode) || is_link_of_proc(target_))) {
    if (::faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0) fail(errno);
    how_ = way::append;
    return;
  }
  file_descriptor in_place;
  if (replaces_) {
    in_place = file_descriptor(::open(target_.c_str(), O_WRONLY | O_CLOEXEC));
    if (!in_place) fail(errno);
    if (old.st_nlink > 1 || old.st_uid != ::geteuid()) how_ = way::overwrite;
  }
  if (how_ == way::replace) {
    begin_new_file();
    if (!file_ && !in_place) fail(errno);
    if (!file_) how_ = way::overwrite;
  }
  if (how_ == way::overwrite) file_ = std::move(in_place);
  if (how_ == way::replace && replaces_) {
    // If the user is not in the old file's group, the new file has the user's group, as with other programs that
    // replace files.
    static_cast<void>(::fchown(file_.get(), static_cast<uid_t>(-1), old.st_gid) == 0);
    if (::fchmod(file_.get(), old.st_mode & ~static_cast<mode_t>(S_IFMT)) != 0) fail(errno);
  }
  reserve(bytes);
}

output_file::~output_file() { discard(); }

void output_file::discard() noexcept {
  if (!made_.empty()) ::unlink(made_.c_str());
  made_.clear();
}

void output_file::fail(int why) {
  discard();
  errno = why;
  throw_system_error("cannot write " + path_);
}

/// Returns a name that no file has at this moment. It begins with the name of the target, which is shortened so that
/// the whole name fits into 255 bytes.
std::string output_file::unused_name() const {
  constexpr std::size_t longest = 200;
  const fs::path target(target_);
  const std::string begin = (target.parent_path() / target.filename().string().substr(0, longest)).string() +
                            ".unfinished-" + std::to_string(::getpid());
  std::string name = begin;
  struct stat other {};
  for (int n = 1; ::lstat(name.c_str(), &other) == 0; ++n) name = begin + "-" + std::to_string(n);
  return name;
}

/// Creates the new file in the target's folder. On failure, leaves file_ empty and errno set.
void output_file::begin_new_file() {
  constexpr mode_t usual = 0666;
  file_ = file_descriptor(::open(folder_of(target_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, usual));
  if (file_ && ::access(name_in_proc(file_).c_str(), F_OK) == 0) return;
  do {
    made_ = unused_name();
    file_ = file_descriptor(::open(made_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, usual));
  } while (!file_ && errno == EEXIST);
  if (!file_) made_.clear();
}

void output_file::reserve(std::uint64_t bytes) {
  if (bytes == 0) return;
  // A file longer than the limit would raise SIGXFSZ, which ends the process.
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  if (limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur) fail(EFBIG);
  const bool reserved = ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0;
  if (!reserved && errno != EOPNOTSUPP && errno != ENOSYS) fail(errno);
}

void output_file::write(const void* from, std::uint64_t bytes) {
  if (how_ == way::append && !file_) {
    file_ = file_descriptor(::open(target_.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC));
    if (!file_) fail(errno);
  }
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t moved = ::write(file_.get(), static_cast<const char*>(from) + done, bytes - done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) fail(moved == 0 ? EIO : errno);
    done += static_cast<std::uint64_t>(moved);
  }
  written_ += bytes;
}

void output_file::close() {
  if (how_ == way::append) {
    write(nullptr, 0);  // opens a FIFO even if nothing was written, so that its reader sees an empty file
  } else if (how_ == way::overwrite) {
    if (::ftruncate(file_.get(), static_cast<off_t>(written_)) != 0) fail(errno);
  } else {
    if (replaces_ && ::fsync(file_.get()) != 0) fail(errno);
    if (made_.empty()) {
      std::string name = unused_name();
      if (::linkat(AT_FDCWD, name_in_proc(file_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0) fail(errno);
      made_ = std::move(name);
    }
  }
  // Network file systems report some errors only when a descriptor is closed. A duplicate is closed here, so that the
  // file is still open after an error.
  if (::close(::dup(file_.get())) != 0) fail(errno);
  file_.reset();
  if (how_ == way::replace && std::rename(made_.c_str(), target_.c_str()) != 0) fail(errno);
  made_.clear();
}

void write_file(const std::string& path, const std::string& text) {
  output_file file(path, text.size());
  file.write(text);
  file.close();
}

}  // namespace hpe::os

// A file consists of a header and the object code. The header repeats the key, which is also the file's name, and
// contains a digest of the object code. hpe executes the code. Therefore hpe accepts a file only if key and digest are
// right, this user wrote the file, and no other user may write to it.
//
// store() writes a file under a temporary name and then renames it. Therefore a killed process leaves no lock and no
// incomplete file under a final name. shrink() later removes files with a temporary name like all other unused files.
// hpe sets the modification time of a file at each use, because many file systems do not record the access time.
//
// LLVM's localCache and pruneCache are not suitable. localCache uses TempFile, which installs signal handlers, but a
// soft device needs its own handlers for page faults of kernels. pruneCache terminates the process if another process
// removes the folder at the same time.

#include "runtime/ptx/compiler/objects/kernel_cache.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/BLAKE3.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "runtime/base/log.h"

namespace hpe::ptx {

namespace {

namespace fs = llvm::sys::fs;

constexpr std::string_view prefix = "kernel-";

struct file_header {
  std::array<char, 16> format{"hpe kernel 1"};
  kernel_cache::digest key{};
  kernel_cache::digest object{};
  friend bool operator==(const file_header&, const file_header&) = default;
};

// The hash includes the lengths, so that inputs with the same concatenation have different digests.
kernel_cache::digest digest_of(const std::vector<std::string_view>& inputs) {
  llvm::BLAKE3 hash;
  for (const std::string_view input : inputs) {
    const std::uint64_t size = input.size();
    hash.update({reinterpret_cast<const std::uint8_t*>(&size), sizeof size});
    hash.update(input);
  }
  return hash.final();
}

std::string_view bytes_of(const kernel_cache::digest& d) { return {reinterpret_cast<const char*>(d.data()), d.size()}; }

bool is_only_ours(const fs::file_status& status) {
  return status.getUser() == ::geteuid() && (status.permissions() & (fs::group_write | fs::others_write)) == 0;
}

}  // namespace

kernel_cache::kernel_cache(kernel_store where, const std::vector<std::string_view>& inputs) : where_(std::move(where)) {
  if (where_.most_bytes == 0) where_.folder.clear();
  if (!where_.folder.empty()) inputs_ = digest_of(inputs);
}

kernel_cache::digest kernel_cache::key_of(std::string_view kernel) const {
  return digest_of({bytes_of(inputs_), kernel});
}

std::string kernel_cache::file_of(const digest& key) const {
  return fmt::format("{}/{}{}", where_.folder, prefix, llvm::toHex(key, true));
}

void kernel_cache::give_up(std::string_view why) {
  static std::once_flag told;
  std::call_once(told, [&] { log(log_level::info, "compiled kernels are not kept in {}: {}", where_.folder, why); });
  where_.folder.clear();
}

bool kernel_cache::prepare_folder() {
  if (is_ready_ || where_.folder.empty()) return is_ready_;
  std::error_code why = fs::create_directories(where_.folder, true, fs::owner_all);
  fs::file_status status;
  if (!why) why = fs::status(where_.folder, status);
  if (why) {
    give_up(why.message());
  } else if (!is_only_ours(status)) {
    give_up("other users may write there");
  } else {
    is_ready_ = true;
  }
  return is_ready_;
}

std::unique_ptr<llvm::MemoryBuffer> kernel_cache::find(std::string_view kernel) {
  if (!prepare_folder()) return nullptr;
  const digest key = key_of(kernel);
  const std::string path = file_of(key);
  llvm::Expected<fs::file_t> file = fs::openNativeFileForRead(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return nullptr;
  }
  fs::file_status status;
  std::unique_ptr<llvm::MemoryBuffer> object;
  if (!fs::status(*file, status) && status.type() == fs::file_type::regular_file && is_only_ours(status) &&
      status.getSize() <= where_.most_bytes) {
    // Reads a copy, because access to a mapping would kill this process if another process truncated the file.
    const auto content = llvm::MemoryBuffer::getOpenFile(*file, path, status.getSize(), false, true);
    if (content && (*content)->getBufferSize() > sizeof(file_header)) {
      const std::string_view all = (*content)->getBuffer();
      file_header found;
      std::memcpy(&found, all.data(), sizeof found);
      const std::string_view code = all.substr(sizeof found);
      if (found == file_header{.key = key, .object = digest_of({code})})
        object = llvm::MemoryBuffer::getMemBufferCopy(code, path);
    }
  }
  if (object) fs::setLastAccessAndModificationTime(*file, std::chrono::system_clock::now());
  fs::closeFile(*file);
  if (!object)
    log(log_level::info, "the compiled kernel in {} is damaged or belongs to another user; hpe replaces it", path);
  return object;
}

void kernel_cache::store(std::string_view kernel, llvm::MemoryBufferRef object) {
  if (!prepare_folder()) return;
  const file_header header{.key = key_of(kernel), .object = digest_of({object.getBuffer()})};
  int file = -1;
  llvm::SmallString<256> path;
  std::error_code why = fs::createUniqueFile(fmt::format("{}/{}%%%%%%%%.part", where_.folder, prefix), file, path,
                                             fs::OF_None, fs::owner_read | fs::owner_write);
  if (why) return give_up(why.message());
  {
    llvm::raw_fd_ostream stream(file, true, true);
    stream.write(reinterpret_cast<const char*>(&header), sizeof header);
    stream << object.getBuffer();
    stream.close();
    why = stream.error();
    stream.clear_error();
  }
  if (!why) why = fs::rename(path, file_of(header.key));
  if (why) {
    static_cast<void>(fs::remove(path));
    return give_up(why.message());
  }
  // store() does not call shrink() after each file, because shrink() reads the whole folder.
  const std::uint64_t bytes = sizeof header + object.getBufferSize();
  if (bytes > before_shrinking_) {
    shrink();
    before_shrinking_ = where_.most_bytes / 16;
  }
  before_shrinking_ -= std::min(bytes, before_shrinking_);
}

void kernel_cache::shrink() const {
  struct kept_file {
    std::filesystem::file_time_type last_use;
    std::uint64_t size = 0;
    std::filesystem::path path;
  };
  std::vector<kept_file> files;
  std::uint64_t all = 0;
  std::error_code ignored;  // receives errors for files that other processes remove at the same time
  for (std::filesystem::directory_iterator at(where_.folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    if (!at->path().filename().string().starts_with(prefix)) continue;
    std::error_code gone;
    kept_file file{at->last_write_time(gone), at->file_size(gone), at->path()};
    if (gone) continue;
    all += file.size;
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const kept_file& a, const kept_file& b) { return a.last_use < b.last_use; });
  for (const kept_file& file : files) {
    if (all <= where_.most_bytes) break;
    std::filesystem::remove(file.path, ignored);
    all -= file.size;
  }
}

}  // namespace hpe::ptx

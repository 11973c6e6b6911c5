#pragma once

/// The node directory: which processes of this user export memory on this machine.
///
/// It is a file in shared memory (/dev/shm/hpe-node-1-UID as a rule, mode 0600), one place for each process. Who is in
/// it is said by the kernel: a process holds a POSIX lock on the byte of its place, which goes away with the process,
/// however it ends, and is not inherited by children. So a place whose lock nobody holds is free, whatever is written
/// there, and the last process that leaves removes the file. A file that killed processes left is used again, and then
/// removed, by those that come next.
///
/// Processes with another /dev/shm, as in a container of their own, have another directory and do not find each other.

#include <memory>
#include <mutex>
#include <string>

#include "runtime/node/handle.h"

namespace hpe::node {

/// Any thread. One object for each process, because POSIX locks belong to processes.
class directory {
 public:
  /// name: that of the file begins with it; processes with different ones do not find each other.
  explicit directory(std::string name);
  directory(const directory&) = delete;
  directory& operator=(const directory&) = delete;
  /// Leaves.
  ~directory();

  /// Takes a place for this process, once; later calls give the same one. Throws HPE_ERROR_NOT_SUPPORTED where there is
  /// no shared memory that belongs to this user alone, HPE_ERROR_OUT_OF_MEMORY when all places are taken.
  std::uint32_t join(const process_key& key);

  /// Gives the place back, and removes the file if nobody else is in it. In the process that joined only.
  void leave() noexcept;

  /// Whether a process that joined with this key at this place is alive. Some system calls. Not for the own key.
  [[nodiscard]] bool alive(std::uint32_t place, const process_key& key);

 private:
  struct file;

  void open_for_joining();
  [[nodiscard]] bool open_if_there();

  /// A number for the layout, and the user.
  [[nodiscard]] std::string file_name() const;

  const std::string name_;
  std::mutex mutex_;
  std::unique_ptr<file> file_;
  std::uint32_t place_ = 0;
  int joined_by_ = 0;  // the process
};

}  // namespace hpe::node

#pragma once

/// The other processes of the user that this one uses memory of.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/node/directory.h"
#include "runtime/node/peer.h"

namespace hpe::node {

/// Any thread.
class neighbours {
 public:
  explicit neighbours(directory& processes) : processes_(processes) {}

  /// The process that the handle names, connected to; nullptr if it is not alive, not the user's or not on this
  /// machine. A few system calls once it is connected.
  [[nodiscard]] std::shared_ptr<peer> find(const handle& h);

  /// Forgets those that died, and says which.
  [[nodiscard]] std::vector<process_key> forget_dead();

  /// Those that are connected.
  [[nodiscard]] std::vector<std::pair<process_key, std::shared_ptr<peer>>> all() const;

 private:
  struct entry {
    std::uint32_t place = 0;
    std::shared_ptr<peer> it;
  };

  directory& processes_;
  mutable std::mutex mutex_;
  std::map<process_key, entry> known_;
};

}  // namespace hpe::node

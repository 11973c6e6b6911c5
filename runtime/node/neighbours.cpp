#include "runtime/node/neighbours.h"

#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace hpe::node {

std::shared_ptr<peer> neighbours::find(const handle& h) {
  if (!processes_.alive(h.place, h.process)) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(h.process);
  if (known != known_.end() && !known->second.it->broken()) return known->second.it;
  try {
    auto made = std::make_shared<peer>(h);
    known_[h.process] = {h.place, made};
    return made;
  } catch (const error& e) {
    log(log_level::info, "{}", e.what());
    return nullptr;
  }
}

std::vector<process_key> neighbours::forget_dead() {
  const std::lock_guard lock(mutex_);
  std::vector<process_key> dead;
  for (const auto& [key, it] : known_)
    if (!processes_.alive(it.place, key)) dead.push_back(key);
  for (const process_key& key : dead) known_.erase(key);
  return dead;
}

std::vector<std::pair<process_key, std::shared_ptr<peer>>> neighbours::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<process_key, std::shared_ptr<peer>>> result;
  for (const auto& [key, it] : known_) result.emplace_back(key, it.it);
  return result;
}

}  // namespace hpe::node

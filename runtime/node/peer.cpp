// A process's socket address follows from its key, so a handle is enough to find the process. Its pidfd, which comes
// with the first answer, shows whether the process is alive. A process ID would not suffice: IDs are reused, and a
// process of another container may have no ID here.
#include "runtime/node/peer.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace hpe::node {

namespace {

constexpr timeval patience{10, 0};

os::file_descriptor connect_to(const process_key& key) {
  os::file_descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) throw_system_error("socket");
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = address_of(key);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  int result = 0;
  do {
    result = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size);
  } while (result != 0 && errno == EINTR);
  HPE_REQUIRE(result == 0, HPE_ERROR_NOT_FOUND,
              "the process that exported the memory cannot be reached: {} (it ended, or is in another container)",
              std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  HPE_REQUIRE(same_user(socket.get()), HPE_ERROR_NOT_FOUND,
              "the process that exported the memory belongs to another user");
  const os::file_descriptor process = process_at(socket.get());
  HPE_REQUIRE(process || errno != ESRCH, HPE_ERROR_NOT_FOUND, "the process that exported the memory ended");
  HPE_REQUIRE(!process || !has_ended(process), HPE_ERROR_NOT_FOUND, "the process that exported the memory ended");
  return socket;
}

}  // namespace

void peer::throw_ended() {
  HPE_THROW(HPE_ERROR_NOT_FOUND,
            "the handle names no exported memory: the export or its process has ended, or the handle was not made by "
            "hpeExportBegin");
}

peer::peer(const handle& h) : socket_(connect_to(h.process)) {
  answer table;
  if (!send_question(socket_.get(), {}) || !receive_answer(socket_.get(), table) || table.files.size() != 2)
    HPE_THROW(HPE_ERROR_NOT_FOUND, "the process that exported the memory does not answer");
  table_.emplace(table.files[0]);
  process_ = std::move(table.files[1]);
}

std::optional<exported> peer::find(const handle& h) const { return table_->find({h.entry, h.token}); }

// Closes the connection, so that a late answer is not mistaken for the answer to the next question. The exporter then
// also closes all memory that this process had open.
void peer::give_up() noexcept {
  broken_ = true;
  ::shutdown(socket_.get(), SHUT_RDWR);
}

answer peer::ask(question::kind what, const handle& h) {
  const lock_guard lock(mutex_);
  question asked;
  asked.what = what;
  asked.which = {h.entry, h.token};
  answer result;
  bool answered = false;
  try {
    answered = send_question(socket_.get(), asked) && receive_answer(socket_.get(), result);
  } catch (...) {
    give_up();
    throw;
  }
  if (!answered) {
    give_up();
    HPE_THROW(HPE_ERROR_NOT_FOUND,
              "the process that exported the memory does not answer (recvmsg); it has ended or hangs");
  }
  if (!result.found) throw_ended();
  return result;
}

void peer::close(const exported& opened) noexcept {
  const lock_guard lock(mutex_);
  question asked;
  asked.what = question::kind::close;
  asked.opened = opened;
  try {
    if (!send_question(socket_.get(), asked)) give_up();
  } catch (const error&) {
    give_up();
  }
}

std::shared_ptr<peer> neighbours::find(const handle& h) {
  {
    const lock_guard lock(mutex_);
    const auto known = known_.find(h.process);
    if (known != known_.end() && !known->second->broken()) return known->second->alive() ? known->second : nullptr;
  }
  // The mutex is not held here, so that a process that does not answer delays only the threads that look for it.
  std::shared_ptr<peer> made;
  try {
    made = std::make_shared<peer>(h);
  } catch (const error& e) {
    log(log_level::info, "{}", e.what());
    return nullptr;
  }
  const lock_guard lock(mutex_);
  std::shared_ptr<peer>& known = known_[h.process];
  if (known == nullptr || known->broken()) known = made;  // otherwise another thread has already connected
  return known;
}

std::vector<process_key> neighbours::forget_dead() {
  const lock_guard lock(mutex_);
  std::vector<process_key> dead;
  for (const auto& [key, process] : known_)
    if (!process->alive()) dead.push_back(key);
  for (const process_key& key : dead) known_.erase(key);
  return dead;
}

std::vector<std::pair<process_key, std::shared_ptr<peer>>> neighbours::all() const {
  const lock_guard lock(mutex_);
  return {known_.begin(), known_.end()};
}

}  // namespace hpe::node

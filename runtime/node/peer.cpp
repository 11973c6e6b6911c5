#include "runtime/node/peer.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"

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
  HPE_REQUIRE(same_user(socket.get()), HPE_ERROR_NOT_FOUND, "the process that exported the memory is another user's");
  return socket;
}

}  // namespace

void peer::throw_ended() {
  HPE_THROW(HPE_ERROR_NOT_FOUND,
            "the handle names no exported memory: the export ended (hpeExportEnd), or its process did, or the bytes "
            "are none that hpeExportBegin gave");
}

peer::peer(const handle& h) : socket_(connect_to(h.process)) {
  answer table;
  if (!send_question(socket_.get(), {}) || !receive_answer(socket_.get(), table) || table.files.size() != 1)
    HPE_THROW(HPE_ERROR_NOT_FOUND, "the process that exported the memory does not answer");
  table_.emplace(table.files.front());
}

std::optional<exported> peer::find(const handle& h) const { return table_->find({h.entry, h.token}); }

// An answer that comes too late must not be taken for the next one; and what is open is closed by this as well.
void peer::give_up() noexcept {
  broken_ = true;
  ::shutdown(socket_.get(), SHUT_RDWR);
}

answer peer::ask(question::kind what, const handle& h) {
  const std::lock_guard lock(mutex_);
  question asked;
  asked.what = what;
  asked.where = {h.entry, h.token};
  answer result;
  if (!send_question(socket_.get(), asked) || !receive_answer(socket_.get(), result)) {
    give_up();
    HPE_THROW(HPE_ERROR_NOT_FOUND, "the process that exported the memory does not answer; it ended, or hangs");
  }
  if (!result.found) throw_ended();
  return result;
}

void peer::close(std::uint64_t memory) noexcept {
  const std::lock_guard lock(mutex_);
  question asked;
  asked.what = question::kind::close;
  asked.memory = memory;
  try {
    if (!send_question(socket_.get(), asked)) give_up();
  } catch (const error&) {
    give_up();
  }
}

export_view::retirement peer::retired() {
  const std::lock_guard lock(mutex_);
  return table_->retired();
}

}  // namespace hpe::node

// Only the thread uses the connections. It does not hold the mutex while it frees memory that no process has open any
// more. A process that dies, or stops reading, loses its connection and the memory that it had open.
#include "runtime/node/exporter.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/os/thread.h"

namespace hpe::node {

namespace {

constexpr std::chrono::milliseconds pause_without_room{10};

}  // namespace

struct exporter::memory {
  memory_description what;
  std::uint64_t open = 0;      // how often it is open
  std::function<void()> last;  // set when it is retired
};

struct exporter::connection {
  os::file_descriptor socket;
  os::file_descriptor process;                    // a pidfd: children made by fork may keep the socket open
  std::map<std::uint64_t, std::uint64_t> opened;  // memory -> how often
};

exporter::exporter() : owner_(::getpid()) {}

exporter::~exporter() {
  if (thread_ == nullptr) return;
  if (::getpid() != owner_) {
    static_cast<void>(thread_.release());  // a child made by fork does not have the thread
    return;
  }
  ::eventfd_write(stop_.get(), 1);
  thread_->join();
}

void exporter::start() {
  if (thread_ != nullptr) return;
  key_ = {{random_number(), random_number()}};
  if (table_ == nullptr) table_ = std::make_unique<export_table>();
  stop_ = os::file_descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!stop_) throw_system_error("eventfd");
  self_ = os::file_descriptor(static_cast<int>(::syscall(SYS_pidfd_open, owner_, 0)));
  if (!self_) throw_system_error("pidfd_open");
  listener_ = os::file_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_) throw_system_error("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = address_of(key_);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  constexpr int backlog = 128;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) throw_system_error("bind");
  if (::listen(listener_.get(), backlog) != 0) throw_system_error("listen");
  auto memory_for_it = std::make_unique<std::thread>();  // allocated before the thread, which must not be lost
  *memory_for_it = os::start_thread("hpe-exporter", [this] { serve(); });
  thread_ = std::move(memory_for_it);
}

std::uint64_t exporter::add(memory_description memory) {
  HPE_REQUIRE(memory.parts.size() <= most_parts, HPE_ERROR_NOT_SUPPORTED,
              "an allocation in {} parts on several devices cannot be exported; {} are possible (larger chunks make "
              "fewer parts)",
              memory.parts.size(), most_parts);
  const lock_guard lock(mutex_);
  start();
  const std::uint64_t number = next_++;
  memories_[number].what = std::move(memory);
  return number;
}

handle exporter::publish(const exported& what) {
  const lock_guard lock(mutex_);
  start();
  const export_table::key made = table_->publish(what);
  return {key_, made.entry, made.token};
}

std::optional<exported> exporter::end(const handle& h) noexcept {
  const lock_guard lock(mutex_);
  if (thread_ == nullptr || h.process != key_) return std::nullopt;
  return table_->end({h.entry, h.token});
}

std::optional<exported> exporter::find(const handle& h) const {
  const lock_guard lock(mutex_);
  if (thread_ == nullptr || h.process != key_) return std::nullopt;
  return table_->find({h.entry, h.token});
}

bool exporter::is_open(std::uint64_t memory) const {
  const lock_guard lock(mutex_);
  const auto found = memories_.find(memory);
  return found != memories_.end() && found->second.open != 0;
}

void exporter::retire(std::uint64_t memory, std::function<void()> last) {
  {
    const lock_guard lock(mutex_);
    const auto found = memories_.find(memory);
    HPE_INVARIANT(found != memories_.end());
    table_->retire(memory);
    if (found->second.open != 0) {
      found->second.last = std::move(last);
      return;
    }
    memories_.erase(found);
  }
  last();
}

void exporter::serve() {
  std::vector<pollfd> watched;
  for (;;) {
    try {
      watched = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const auto& c : connections_) {
        watched.push_back({c->socket.get(), POLLIN, 0});
        watched.push_back({c->process.get(), POLLIN, 0});
      }
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(pause_without_room);
      continue;
    }
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[0].revents != 0) return;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      const bool asked = watched[2 + 2 * i].revents != 0;
      const bool dead = watched[3 + 2 * i].revents != 0;
      bool goes_on = !dead;
      try {
        if (asked && !dead) goes_on = answer_one(*connections_[i]);
      } catch (const std::exception& e) {
        log(log_level::debug, "another process asked for shared memory: {}", e.what());
        goes_on = false;
      }
      if (goes_on) continue;
      for (const auto& [number, times] : connections_[i]->opened)
        for (std::uint64_t n = 0; n < times; ++n) close_one(number);
      connections_[i].reset();
    }
    std::erase(connections_, nullptr);
    if (watched[1].revents != 0) accept_one();
  }
}

void exporter::accept_one() {
  os::file_descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {  // usually no descriptor is free: do not retry at once
    std::this_thread::sleep_for(pause_without_room);
    return;
  }
  if (!same_user(socket.get())) return;
  // A process that does not read its answers must not delay others.
  constexpr timeval patience{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  try {
    auto made = std::make_unique<connection>();
    made->process = process_at(socket.get());  // poll ignores an empty one
    made->socket = std::move(socket);
    connections_.push_back(std::move(made));
  } catch (const std::bad_alloc&) {  // the connection is closed, which its process sees
  }
}

bool exporter::answer_one(connection& to) {
  question asked;
  if (!receive_question(to.socket.get(), asked)) return false;
  switch (asked.what) {
    case question::kind::table: return send_table(to.socket.get(), table_->file(), self_.get());
    case question::kind::describe:
    case question::kind::open: return open_or_describe(to, asked);
    case question::kind::close: {
      const auto found = to.opened.find(asked.memory);
      if (found == to.opened.end()) return false;
      if (--found->second == 0) to.opened.erase(found);
      close_one(asked.memory);
      return true;
    }
  }
  return false;
}

bool exporter::open_or_describe(connection& to, const question& asked) {
  // Under the mutex, so that the files stay open until they are sent.
  const lock_guard lock(mutex_);
  const auto what = table_->find(asked.which);
  const auto found = what ? memories_.find(what->memory) : memories_.end();
  if (found == memories_.end()) return send_nothing(to.socket.get());
  if (!send_memory(to.socket.get(), *what, found->second.what)) return false;
  if (asked.what == question::kind::open) {
    ++found->second.open;
    ++to.opened[what->memory];
  }
  return true;
}

void exporter::close_one(std::uint64_t number) {
  std::function<void()> last;
  {
    const lock_guard lock(mutex_);
    const auto found = memories_.find(number);
    if (found == memories_.end() || --found->second.open != 0 || !found->second.last) return;
    last = std::move(found->second.last);
    memories_.erase(found);
  }
  try {
    last();
  } catch (const std::exception& e) {
    log(log_level::warn, "giving back memory that another process used: {}", e.what());
  }
}

}  // namespace hpe::node

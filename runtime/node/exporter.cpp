// Only the exporter's thread uses the connections. The thread does not hold the mutex while it frees memory that no
// process has open. It never waits for another process: a process asks one question at a time, so the socket's buffer
// has space for the answer. If a process asks without reading its answers, the thread closes its connection. When the
// connection of a process ends, the process counts as having closed all memory that it had open.
#include "runtime/node/exporter.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <list>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/node/openings.h"
#include "runtime/os/thread.h"

namespace hpe::node {

namespace {

constexpr std::chrono::milliseconds pause_without_room{10};
constexpr unsigned most_passes = 1000;  // settle() waits for at most this many passes of serve()

}  // namespace

// A function that is called when no process has the bytes open.
struct exporter::waiting {
  exported bytes;
  std::function<void()> last;
};

struct exporter::memory {
  memory_description what;
  openings open;
  std::list<waiting> parts;    // the bytes and functions given to when_closed
  std::function<void()> last;  // set when the memory is retired
};

struct exporter::connection {
  os::file_descriptor socket;
  os::file_descriptor process;  // a pidfd, which shows the end of the process; the socket does not, because children
                                // made by fork may keep it open
  std::map<exported, std::uint64_t> opened;  // bytes -> how many times the process has opened them
};

exporter::exporter() : owner_(::getpid()) {}

exporter::~exporter() {
  if (thread_ == nullptr) return;
  if (::getpid() != owner_) {
    static_cast<void>(thread_.release());  // a child made by fork does not have the thread
    return;
  }
  stop_ = true;
  ::eventfd_write(wake_.get(), 1);
  thread_->join();
}

void exporter::start() {
  if (thread_ != nullptr) return;
  key_ = {{random_number(), random_number()}};
  if (table_ == nullptr) table_ = std::make_unique<export_table>();
  wake_ = os::file_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) throw_system_error("eventfd");
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
  auto memory_for_it = std::make_unique<std::thread>();  // allocated first, so that no exception loses the thread
  *memory_for_it = os::start_thread("hpe-exporter", [this] { serve(); });
  thread_ = std::move(memory_for_it);
}

std::uint64_t exporter::add(memory_description memory) {
  HPE_REQUIRE(memory.parts.size() <= most_parts, HPE_ERROR_NOT_SUPPORTED,
              "an allocation in {} parts on several devices cannot be exported; at most {} parts are possible (larger "
              "chunks make fewer parts)",
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
  return found != memories_.end() && found->second.open.any();
}

bool exporter::settle() {
  {
    const lock_guard lock(mutex_);
    if (thread_ == nullptr || ::getpid() != owner_ || thread_->get_id() == std::this_thread::get_id()) return false;
  }
  const std::uint64_t mine = settle_wanted_.fetch_add(1) + 1;
  ::eventfd_write(wake_.get(), 1);
  for (std::uint64_t done = settle_done_.load(); done < mine; done = settle_done_.load()) settle_done_.wait(done);
  return true;
}

bool exporter::written(const exported& bytes) const {
  const lock_guard lock(mutex_);
  const auto found = memories_.find(bytes.memory);
  return found != memories_.end() && found->second.open.written(bytes.offset, bytes.offset + bytes.bytes);
}

bool exporter::take_written(const exported& bytes) {
  const lock_guard lock(mutex_);
  const auto found = memories_.find(bytes.memory);
  return found != memories_.end() && found->second.open.take_written(bytes.offset, bytes.offset + bytes.bytes);
}

void exporter::untake(std::uint64_t memory) noexcept {
  const lock_guard lock(mutex_);
  if (const auto found = memories_.find(memory); found != memories_.end()) found->second.open.untake();
}

void exporter::retire(std::uint64_t memory, std::function<void()> last) {
  {
    const lock_guard lock(mutex_);
    const auto found = memories_.find(memory);
    HPE_INVARIANT(found != memories_.end());
    table_->retire(memory);
    if (found->second.open.any()) {
      found->second.last = std::move(last);
      return;
    }
    memories_.erase(found);
  }
  last();
}

void exporter::when_closed(const exported& bytes, std::function<void()> last) {
  {
    const lock_guard lock(mutex_);
    const auto found = memories_.find(bytes.memory);
    if (found != memories_.end() && found->second.open.any(bytes.offset, bytes.offset + bytes.bytes)) {
      found->second.parts.push_back({bytes, std::move(last)});
      return;
    }
  }
  last();
}

void exporter::serve() {
  std::vector<pollfd> watched;
  for (unsigned passes = 0;;) {
    const std::uint64_t wanted = settle_wanted_.load();
    const bool settles = wanted != settle_done_.load();
    try {
      watched = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const auto& c : connections_) {
        watched.push_back({c->socket.get(), POLLIN, 0});
        watched.push_back({c->process.get(), POLLIN, 0});
      }
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(pause_without_room);
      continue;
    }
    const int ready = ::poll(watched.data(), watched.size(), settles ? 0 : -1);
    if (ready < 0) continue;
    if (stop_) return;
    if (eventfd_t times = 0; watched[0].revents != 0) ::eventfd_read(wake_.get(), &times);
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
      for (const auto& [what, times] : connections_[i]->opened)
        for (std::uint64_t n = 0; n < times; ++n) close_one(what);
      connections_[i].reset();
    }
    std::erase(connections_, nullptr);
    if (watched[1].revents != 0) accept_one();
    // Each pass handles one message of each process. The limit on passes ends settle() even if a process never stops
    // sending.
    if (!settles || (ready != 0 && ++passes < most_passes)) continue;
    passes = 0;
    settle_done_.store(wanted);
    settle_done_.notify_all();
  }
}

void exporter::accept_one() {
  os::file_descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {  // usually no descriptor is free: do not retry at once
    std::this_thread::sleep_for(pause_without_room);
    return;
  }
  if (!same_user(socket.get())) return;
  try {
    auto made = std::make_unique<connection>();
    made->process = process_at(socket.get());  // poll ignores an empty descriptor
    made->socket = std::move(socket);
    connections_.push_back(std::move(made));
  } catch (const std::bad_alloc&) {  // the socket is closed, and the other process notices this
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
      const auto found = to.opened.find(asked.opened);
      if (found == to.opened.end()) return false;
      if (--found->second == 0) to.opened.erase(found);
      close_one(asked.opened);
      return true;
    }
  }
  return false;
}

bool exporter::open_or_describe(connection& to, const question& asked) {
  // The mutex is held, so that the files stay open until they are sent.
  const lock_guard lock(mutex_);
  const auto what = table_->find(asked.which);
  const auto found = what ? memories_.find(what->memory) : memories_.end();
  if (found == memories_.end()) return send_nothing(to.socket.get());
  if (asked.what == question::kind::open) {
    // If open() throws, `opened` still counts 0 openings: an opening that the connection has not recorded would never
    // be closed.
    const auto noted = to.opened.try_emplace(*what, 0).first;
    found->second.open.open(what->offset, what->offset + what->bytes);
    ++noted->second;
  }
  return send_memory(to.socket.get(), *what, found->second.what);
}

void exporter::close_one(const exported& what) noexcept {
  // These functions are called and destroyed after the mutex has been released.
  std::list<waiting> closed;
  std::function<void()> last;
  {
    const lock_guard lock(mutex_);
    const auto found = memories_.find(what.memory);
    if (found == memories_.end()) return;
    memory& its = found->second;
    its.open.close(what.offset, what.offset + what.bytes);
    for (auto at = its.parts.begin(); at != its.parts.end();) {
      const auto here = at++;
      if (!its.open.any(here->bytes.offset, here->bytes.offset + here->bytes.bytes))
        closed.splice(closed.end(), its.parts, here);
    }
    if (!its.open.any() && its.last) {
      last = std::move(its.last);
      memories_.erase(found);
    }
  }
  const auto call = [](const std::function<void()>& function) {
    try {
      function();
    } catch (const std::exception& e) {
      log(log_level::warn, "could not give back memory that another process used: {}", e.what());
    }
  };
  for (const waiting& each : closed) call(each.last);
  if (last) call(last);
}

}  // namespace hpe::node

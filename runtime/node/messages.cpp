#include "runtime/node/messages.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/os/socket_message.h"

namespace hpe::node {

namespace {

// An answer is one message: a head and its parts.
struct answer_head {
  std::uint32_t found = 0;
  std::uint32_t host = 0;
  std::uint64_t parts = 0;
  exported what;
};

struct answer_part {
  std::uint64_t file;  // index among the files of the message
  std::uint64_t offset;
  std::uint64_t bytes;
};

constexpr std::size_t longest_answer = sizeof(answer_head) + most_parts * sizeof(answer_part);

template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

}  // namespace

std::string address_of(const process_key& key) {
  return fmt::format("hpe-node-{:016x}{:016x}", key.words[0], key.words[1]);
}

bool same_user(int socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == ::geteuid();
}

os::file_descriptor process_at(int socket) {
  ucred other{};
  socklen_t size = sizeof other;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0) return {};
  return os::file_descriptor(static_cast<int>(::syscall(SYS_pidfd_open, other.pid, 0)));
}

bool has_ended(const os::file_descriptor& process) {
  pollfd state{process.get(), POLLIN, 0};
  return ::poll(&state, 1, 0) > 0;
}

bool send_question(int socket, const question& what) { return os::send_message(socket, bytes_of(what)); }

bool receive_question(int socket, question& what) {
  return os::receive_message(socket, std::as_writable_bytes(std::span(&what, 1))) == sizeof what;
}

bool send_table(int socket, int table, int process) {
  answer_head head;
  head.found = 1;
  const int files[] = {table, process};
  return os::send_message(socket, bytes_of(head), files);
}

bool send_nothing(int socket) { return os::send_message(socket, bytes_of(answer_head{})); }

bool send_memory(int socket, const exported& what, const memory_description& memory) {
  answer_head head{1, memory.host ? 1U : 0U, memory.parts.size(), what};
  std::vector<int> files;
  std::vector<std::byte> message(sizeof head + memory.parts.size() * sizeof(answer_part));
  std::memcpy(message.data(), &head, sizeof head);
  std::byte* at = message.data() + sizeof head;
  for (const memory_part& part : memory.parts) {
    auto known = std::find(files.begin(), files.end(), part.file);
    if (known == files.end()) known = files.insert(known, part.file);
    const answer_part told{static_cast<std::uint64_t>(known - files.begin()), part.offset, part.bytes};
    std::memcpy(at, &told, sizeof told);
    at += sizeof told;
  }
  return os::send_message(socket, message, files);
}

bool receive_answer(int socket, answer& result) {
  std::vector<std::byte> message(longest_answer);
  const std::size_t size = os::receive_message(socket, message, result.files);
  answer_head head;
  if (size < sizeof head) return false;
  std::memcpy(&head, message.data(), sizeof head);
  if (head.parts > most_parts || size != sizeof head + head.parts * sizeof(answer_part)) return false;
  result.found = head.found != 0;
  result.what = head.what;
  result.memory = {head.host != 0, {}};
  for (std::size_t i = 0; i < head.parts; ++i) {
    answer_part told;
    std::memcpy(&told, message.data() + sizeof head + i * sizeof told, sizeof told);
    if (told.file >= result.files.size()) return false;
    result.memory.parts.push_back({result.files[told.file].get(), told.offset, told.bytes});
  }
  return true;
}

}  // namespace hpe::node

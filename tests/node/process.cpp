#include "tests/node/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>

namespace node_test {

process::process(const std::string& devices, const std::vector<std::string>& variables,
                 const std::vector<std::string>& starter) {
  int to[2];
  int from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, to[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, from[1], STDOUT_FILENO);
  std::vector<std::string> own{"HPE_DEVICES=" + devices, "HPE_SOFT_THREADS=1"};
  own.insert(own.end(), variables.begin(), variables.end());
  std::vector<char*> environment;
  for (std::string& v : own) environment.push_back(v.data());
  for (char** v = environ; *v != nullptr; ++v)
    if (std::string(*v).rfind("HPE_DEVICES=", 0) != 0) environment.push_back(*v);
  environment.push_back(nullptr);
  std::vector<std::string> words = starter;
  words.emplace_back(NODE_TEST_PROCESS);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (::posix_spawnp(&pid_, arguments[0], &files, nullptr, arguments.data(), environment.data()) != 0) std::abort();
  ::posix_spawn_file_actions_destroy(&files);
  ::close(to[0]);
  ::close(from[1]);
  orders_ = to[1];
  reports_ = from[0];
}

process::~process() {
  leave();
  ::close(reports_);
}

void process::start(const order& o) {
  ::signal(SIGPIPE, SIG_IGN);
  if (::write(orders_, &o, sizeof o) != sizeof o) ADD_FAILURE() << "process " << pid_ << " is gone";
}

report process::finish() {
  report r;
  std::size_t done = 0;
  while (done < sizeof r) {
    const ssize_t got = ::read(reports_, reinterpret_cast<char*>(&r) + done, sizeof r - done);
    if (got <= 0) {
      report died;
      died.status = HPE_ERROR_SYSTEM;
      return died;
    }
    done += static_cast<std::size_t>(got);
  }
  return r;
}

report process::tell(const order& o) {
  start(o);
  return finish();
}

namespace {

report well(const report& r) {
  EXPECT_EQ(r.status, HPE_SUCCESS) << r.words;
  return r;
}

}  // namespace

std::uint64_t process::allocate(std::size_t bytes, std::int32_t on) {
  return well(tell({.what = order::kind::allocate, .on = on, .bytes = bytes})).value;
}

void process::fill(std::uint64_t number, std::size_t offset, std::size_t bytes, std::uint64_t seed,
                   std::uint64_t from) {
  well(tell(
      {.what = order::kind::fill, .number = number, .offset = offset, .bytes = bytes, .seed = seed, .from = from}));
}

hpeExport process::begin(std::uint64_t number, std::size_t offset, std::size_t bytes) {
  return well(tell({.what = order::kind::begin, .number = number, .offset = offset, .bytes = bytes})).handle;
}

void process::end(const hpeExport& handle) { well(tell({.what = order::kind::end, .handle = handle})); }

void process::free(std::uint64_t number) { well(tell({.what = order::kind::free, .number = number})); }

bool process::reachable(const hpeExport& handle) {
  return well(tell({.what = order::kind::reachable, .handle = handle})).value == 1;
}

bool process::check(std::uint64_t number, std::size_t offset, std::size_t bytes, std::uint64_t seed, std::uint64_t from,
                    order::kind how) {
  return well(tell({.what = how, .number = number, .offset = offset, .bytes = bytes, .seed = seed, .from = from}))
             .value == 1;
}

std::uint64_t process::count(order::kind what) { return well(tell({.what = what})).value; }

report process::copy(std::uint64_t number, std::size_t offset, const hpeExport& handle, std::size_t from,
                     std::size_t bytes) {
  return tell(
      {.what = order::kind::copy, .number = number, .offset = offset, .bytes = bytes, .from = from, .handle = handle});
}

report process::copy_out(const hpeExport& handle, std::size_t from, std::size_t bytes, std::uint64_t seed,
                         std::uint64_t at) {
  return tell(
      {.what = order::kind::copy_out, .offset = at, .bytes = bytes, .seed = seed, .from = from, .handle = handle});
}

void process::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  reap();
}

int process::leave() {
  if (orders_ >= 0) ::close(orders_);
  orders_ = -1;
  return reap();
}

int process::reap() {
  if (pid_ < 0) return -1;
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

std::uint64_t fresh_seed() {
  const std::uint64_t seed = std::random_device{}();
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

}  // namespace node_test

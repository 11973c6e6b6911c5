#include "tests/failure/child.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "hpe/hpe.hpp"

// AddressSanitizer calls this function, which turns off the search for leaks: a child made by fork does not have the
// parent's threads, so their memory would look like a leak.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {  // NOLINT
  return "detect_leaks=0";
}

namespace failure_test {

namespace fs = std::filesystem;

bool ended::well() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

bool ended::by_signal(int signal) const { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

std::ostream& operator<<(std::ostream& out, const ended& e) {
  return out << "wait status " << e.status << ", standard error:\n" << e.text;
}

ended run_child(const std::function<void()>& body, variables set) {
  const int text = ::memfd_create("stderr", MFD_CLOEXEC);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(text, STDERR_FILENO);
    ::signal(SIGSEGV, SIG_DFL);
    ::alarm(60);
    ::setenv("HPE_DEVICES", "soft:3", 1);
    for (const auto& [name, value] : set) ::setenv(name, value, 1);
    try {
      body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "the child threw: %s\n", e.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  ended result;
  ::waitpid(child, &result.status, 0);
  char buffer[4096];
  ::lseek(text, 0, SEEK_SET);
  for (ssize_t n = 0; (n = ::read(text, buffer, sizeof buffer)) > 0;)
    result.text.append(buffer, static_cast<std::size_t>(n));
  ::close(text);
  return result;
}

void check(bool ok, const std::string& what, call_site where) {
  if (ok) return;
  std::fprintf(stderr, "%s:%d: check failed in the child: %s\n", where.file, where.line, what.c_str());
  ::_exit(1);
}

void check_prompt(const std::function<void()>& action, call_site where) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  const auto took = std::chrono::steady_clock::now() - begin;
  check(took < 2s, "it took " + std::to_string(std::chrono::duration<double>(took).count()) + " s", where);
}

namespace {

std::vector<std::string> words_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

// Returns the state of the process (the field after the name in /proc/PID/stat); X if the process does not exist.
char state_of(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(in, line);
  char state = 'X';
  const auto name_end = line.rfind(')');
  if (name_end != std::string::npos && name_end + 2 < line.size()) state = line[name_end + 2];
  return state;
}

}  // namespace

bool is_running(pid_t process) {
  const char state = state_of(process);
  return state != 'X' && state != 'Z';
}

pid_t process_of_device(int device) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process == 0) continue;
    const auto words = words_of(entry.path() / "cmdline");
    if (words.size() == 5 && words[0].ends_with("hpe-softd") && words[1] == std::to_string(device) &&
        words[4] == std::to_string(::getpid()))
      return process;
  }
  check(false, "there is no process of device " + std::to_string(device));
  return 0;
}

void kill_device(int device) {
  ::kill(process_of_device(device), SIGKILL);
  check_prompt([&] {
    while (hpe::device_info(device).lost == 0) std::this_thread::yield();
  });
}

namespace {

thread_local sigjmp_buf behind_access;
thread_local const void* volatile faulting_address;

void leave(int /*signal*/, siginfo_t* info, void* /*context*/) {
  faulting_address = info->si_addr;
  siglongjmp(behind_access, 1);
}

}  // namespace

caught_fault catch_fault(const std::function<void()>& access) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = leave;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, &before);
  volatile bool happened = false;
  if (sigsetjmp(behind_access, 1) == 0)
    access();
  else
    happened = true;
  ::sigaction(SIGSEGV, &before, nullptr);
  return {happened, happened ? faulting_address : nullptr};
}

}  // namespace failure_test

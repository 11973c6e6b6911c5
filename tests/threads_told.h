#pragma once

// For a test that hangs: prints where each thread of the process is. Call stacks name the program's own functions if
// the program is linked with ENABLE_EXPORTS.

#include <execinfo.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

/// Prints on standard error the name and current system call of each thread, and the call stack of each thread that
/// does not block SIGUSR2. hpe's threads block it.
inline void tell_where_threads_are() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    void* frames[64];
    ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
  };
  ::sigaction(SIGUSR2, &action, nullptr);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::string call;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    std::getline(std::ifstream(entry.path() / "syscall"), call);
    const int thread = std::stoi(entry.path().filename());
    std::fprintf(stderr, "thread %d (%s) in system call %s\n", thread, name.c_str(), call.c_str());
    ::syscall(SYS_tgkill, ::getpid(), thread, SIGUSR2);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

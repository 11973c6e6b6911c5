#pragma once

/// Each test of failures runs in a child process, which uses hpe and may crash.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tests/call_site.h"

namespace failure_test {

using hpe::testing::call_site;
using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitizer_needs_mappings = true;
#else
inline constexpr bool sanitizer_needs_mappings = false;
#endif
inline constexpr const char* why_not_sanitized = "the sanitizer ends the program if it cannot map memory";

/// How a child ended and what it wrote on standard error.
struct ended {
  int status = -1;
  std::string text;

  [[nodiscard]] bool well() const;
  [[nodiscard]] bool by_signal(int signal) const;
  [[nodiscard]] bool said(const std::string& words) const { return text.find(words) != std::string::npos; }
};
std::ostream& operator<<(std::ostream& out, const ended& e);

using variables = std::initializer_list<std::pair<const char*, const char*>>;

/// Runs the body in a child with three soft devices, the default action for SIGSEGV, and the environment variables
/// `set`. Returns how the child ended. If the body returns, the child's status is 0; if the body throws, 1; if the body
/// hangs, SIGALRM ends the child after a minute.
ended run_child(const std::function<void()>& body, variables set = {});

/// Called in bodies: ends the child with a message unless the condition holds.
void check(bool ok, const std::string& what = {}, call_site where = call_site::here());

/// Called in bodies: runs the action, and ends the child with a message if the action takes two seconds or more.
void check_prompt(const std::function<void()>& action, call_site where = call_site::here());

/// Called in bodies: returns the process of a soft device.
pid_t process_of_device(int device);
/// Kills the device's process, and returns when hpe has noticed its end.
void kill_device(int device);

/// Whether a process exists and is not a zombie.
bool is_running(pid_t process);

/// The fault that a SIGSEGV handler of the program has seen.
struct caught_fault {
  bool happened = false;
  const void* address = nullptr;
};
/// Called in bodies: runs the access with a SIGSEGV handler of the program, which ends the access by a long jump if it
/// faults.
caught_fault catch_fault(const std::function<void()>& access);

}  // namespace failure_test

#pragma once

/// Tests of failures run in a child process of their own: a program that uses hpe, and may die.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <initializer_list>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace failure_test {

using namespace std::chrono_literals;

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

/// Runs the body in a child with three soft devices, the default action for SIGSEGV, and these variables. A body that
/// returns ends it with status 0; one that hangs is killed after a minute.
ended run_child(const std::function<void()>& body, variables set = {});

/// For bodies: ends the child with a message unless the condition holds.
void check(bool ok, const std::string& what = {}, std::source_location where = std::source_location::current());

/// For bodies: the action takes less than two seconds.
void check_prompt(const std::function<void()>& action, std::source_location where = std::source_location::current());

/// For bodies: the process that is a soft device of this one.
pid_t process_of_device(int device);
/// Kills it, and returns when hpe knows.
void kill_device(int device);

/// Whether a process is there and has not ended.
bool is_running(pid_t process);

/// For bodies: what a SIGSEGV handler of the program saw.
struct caught_fault {
  bool happened = false;
  const void* address = nullptr;
};
/// Runs the access with a handler of the program's own, which leaves it when it faults.
caught_fault catch_fault(const std::function<void()>& access);

}  // namespace failure_test

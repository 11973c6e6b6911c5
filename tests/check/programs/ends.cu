// A program with one defect that ends in the way that its first argument names, with the status of its second argument.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tests/check/programs/cuda_cases.h"

extern char** environ;

static int status = 0;

static void end_in_handler(int) { ::_exit(status); }

int main(int argc, char** argv) {
  const std::string end = argc > 1 ? argv[1] : "";
  status = argc > 2 ? std::atoi(argv[2]) : 0;
  {
    ints p;
    stream a, b;
    fill<<<4, 256, 0, a>>>(p, count, 1);
    add<<<4, 256, 0, b>>>(p, count, 2);
  }
  const char* const echo[] = {"echo", "the next program", nullptr};
  auto* const given = const_cast<char* const*>(echo);
  if (end == "_exit") ::_exit(status);
  if (end == "_Exit") std::_Exit(status);
  if (end == "quick_exit") std::quick_exit(status);
  if (end == "execl") ::execl("/bin/echo", "echo", "the next program", nullptr);
  if (end == "execle") ::execle("/bin/echo", "echo", "the next program", nullptr, environ);
  if (end == "execlp") ::execlp("echo", "echo", "the next program", nullptr);
  if (end == "execv") ::execv("/bin/echo", given);
  if (end == "execve") ::execve("/bin/echo", given, environ);
  if (end == "execvp") ::execvp("echo", given);
  if (end == "execvpe") ::execvpe("echo", given, environ);
  if (end == "failed_exec") ::execlp("no-program-has-this-name", "echo", nullptr);
  const auto again = [&] { ::execl("/proc/self/exe", argv[0], "main", "0", nullptr); };
  if (end == "again") again();
  if (end == "child") {
    const pid_t child = ::fork();
    if (child == 0) again();
    ::waitpid(child, nullptr, 0);
  }
  if (end == "handler") {
    std::signal(SIGUSR1, end_in_handler);
    ::raise(SIGUSR1);
  }
  if (end == "fork") {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
  }
  if (end == "vfork") {
    const pid_t child = ::vfork();
    if (child == 0) ::execl("/bin/echo", "echo", "the next program", nullptr);
    ::waitpid(child, nullptr, 0);
  }
  return status;
}

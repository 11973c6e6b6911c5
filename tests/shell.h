#pragma once

// Runs a command line as a user types it.

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

struct outcome {
  int status = -1;  // the wait status, as from waitpid
  std::string text;
};

/// Runs a command line. The text of the outcome contains both output streams of the command.
inline outcome shell(const std::string& line) {
  outcome result;
  FILE* const pipe = ::popen((line + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer{};
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    result.text.append(buffer.data(), got);
  result.status = ::pclose(pipe);
  return result;
}

/// Returns the exit status; -1 if a signal ended the command.
inline int exit_status(const outcome& o) { return WIFEXITED(o.status) ? WEXITSTATUS(o.status) : -1; }

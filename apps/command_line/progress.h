#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

namespace hpe::command_line {

/// Tells how far a long work is, at what rate it goes and how long it will still take: on a terminal in one line that
/// changes, elsewhere in a line every five seconds and at the end. Work that ends before the first line is not told of.
/// The destructor ends an open line, so that a message after an error begins its own. One thread at a time.
class progress {
 public:
  struct place {
    std::FILE* stream = stderr;
    bool terminal = false;
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };
  /// Standard error, if it is a terminal as one.
  [[nodiscard]] static place standard_error();

  /// total units, named in the singular, are to be done; quiet tells nothing.
  progress(std::string unit, double total, bool quiet, place where = standard_error());
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// So many units are done, parts of one included; what names the present part of the work, or is empty.
  void at(double done, const std::string& what = {});

  [[nodiscard]] double seconds() const;

 private:
  [[nodiscard]] std::string line(double done, const std::string& what) const;

  const std::string unit_;
  const double total_;
  const bool quiet_;
  const place where_;
  const std::chrono::steady_clock::time_point begin_;
  double told_ = 0;  ///< seconds after the begin
  bool open_ = false;
};

}  // namespace hpe::command_line

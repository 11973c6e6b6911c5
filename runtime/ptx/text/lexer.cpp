#include "runtime/ptx/text/lexer.h"

#include <array>
#include <bit>
#include <charconv>

#include "runtime/base/error.h"

namespace hpe::ptx {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// By character: whether a name may contain it. The lexer uses a table because std::isalnum is a slower function call.
constexpr std::array<bool, 256> letters = [] {
  std::array<bool, 256> result{};
  for (const char c : std::string_view("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$"))
    result[static_cast<unsigned char>(c)] = true;
  return result;
}();

bool is_letter(char c) { return letters[static_cast<unsigned char>(c)]; }

}  // namespace

lexer::lexer(std::string_view text) : text_(text.substr(0, text.find('\0'))) { next_ = scan(); }

token lexer::take() {
  const token result = next_;
  next_ = scan();
  return result;
}

void lexer::skip_blanks() {
  for (;;) {
    const char c = at(position_);
    if (c == '\n') {
      ++line_;
      ++position_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++position_;
    } else if (c == '/' && at(position_ + 1) == '/') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (c == '/' && at(position_ + 1) == '*') {
      const std::size_t end = text_.find("*/", position_ + 2);
      HPE_REQUIRE(end != std::string_view::npos, HPE_ERROR_INVALID_ARGUMENT, "PTX line {}: a comment does not end",
                  line_);
      for (; position_ < end + 2; ++position_) line_ += text_[position_] == '\n' ? 1 : 0;
    } else {
      return;
    }
  }
}

token lexer::scan_number() {
  token result;
  const std::size_t begin = position_;
  const auto digits = [&](int base, std::size_t from) {
    const char* const first = text_.data() + from;
    const auto parsed = std::from_chars(first, text_.data() + text_.size(), result.value, base);
    HPE_REQUIRE(parsed.ec == std::errc() && parsed.ptr != first, HPE_ERROR_INVALID_ARGUMENT,
                "PTX line {}: '{}' is not a number", line_, text_.substr(begin, 20));
    position_ = static_cast<std::size_t>(parsed.ptr - text_.data());
  };
  result.what = token::kind::integer;
  const char second = at(begin + 1);
  if (at(begin) == '0' && (second == 'f' || second == 'F')) {
    result.what = token::kind::float32;
    digits(16, begin + 2);
  } else if (at(begin) == '0' && (second == 'd' || second == 'D')) {
    result.what = token::kind::float64;
    digits(16, begin + 2);
  } else if (at(begin) == '0' && (second == 'x' || second == 'X')) {
    digits(16, begin + 2);
  } else if (at(begin) == '0' && (second == 'b' || second == 'B')) {
    digits(2, begin + 2);
  } else if (at(begin) == '0' && is_digit(second)) {
    digits(8, begin + 1);
  } else {
    std::size_t end = begin;
    while (is_digit(at(end))) ++end;
    if ((at(end) == '.' && is_digit(at(end + 1))) || at(end) == 'e' || at(end) == 'E') {
      double value = 0;
      const auto parsed = std::from_chars(text_.data() + begin, text_.data() + text_.size(), value);
      result.what = token::kind::float64;
      result.value = std::bit_cast<std::uint64_t>(value);
      position_ = static_cast<std::size_t>(parsed.ptr - text_.data());
    } else {
      digits(10, begin);
    }
  }
  if (result.what == token::kind::integer && at(position_) == 'U') ++position_;
  return result;
}

token lexer::scan() {
  skip_blanks();
  token result;
  const std::size_t begin = position_;
  const char c = at(begin);
  const std::uint32_t line = line_;
  if (begin >= text_.size()) {
    result.what = token::kind::end;
  } else if (is_digit(c)) {
    result = scan_number();
    result.text = text_.substr(begin, position_ - begin);
  } else if (is_letter(c) || (c == '%' && is_letter(at(begin + 1)))) {
    ++position_;
    while (is_letter(at(position_))) ++position_;
    result.what = token::kind::word;
    result.text = text_.substr(begin, position_ - begin);
  } else if (c == '.' && is_letter(at(begin + 1))) {
    ++position_;
    while (is_letter(at(position_)) || (at(position_) == ':' && (at(position_ + 1) == ':' || at(position_ - 1) == ':')))
      ++position_;
    result.what = token::kind::dotted;
    result.text = text_.substr(begin + 1, position_ - begin - 1);
  } else if (c == '"') {
    const std::size_t end = text_.find('"', begin + 1);
    HPE_REQUIRE(end != std::string_view::npos, HPE_ERROR_INVALID_ARGUMENT, "PTX line {}: a string does not end", line_);
    position_ = end + 1;
    result.what = token::kind::string;
    result.text = text_.substr(begin + 1, end - begin - 1);
  } else {
    HPE_REQUIRE(std::string_view("{}[]()<>,;:+-!|@=*&~_").find(c) != std::string_view::npos, HPE_ERROR_INVALID_ARGUMENT,
                "PTX line {}: unexpected character '{}'", line_, c);
    ++position_;
    result.what = token::kind::punctuation;
    result.text = text_.substr(begin, 1);
  }
  result.line = line;
  result.begin = static_cast<std::uint32_t>(begin);
  result.end = static_cast<std::uint32_t>(position_);
  return result;
}

}  // namespace hpe::ptx

#pragma once

/// Splits PTX text into tokens. The lexer skips comments.

#include <cstdint>
#include <string_view>

namespace hpe::ptx {

struct token {
  enum class kind : std::uint8_t {
    end,
    word,         // an identifier, or a register with its leading %: "%r1", "$L_2", "add"
    dotted,       // ".u32", ".L2::128B"; `text` excludes the dot
    integer,      // `value` is the integer
    float32,      // `value` contains the bits: 0f3F800000
    float64,      // `value` contains the bits of a double: 0d..., 1.5
    string,       // `text` excludes the quotes
    punctuation,  // one character
  };
  kind what = kind::end;
  std::string_view text;
  std::uint64_t value = 0;
  std::uint32_t line = 0;
  std::uint32_t begin = 0, end = 0;  // offsets in the PTX text

  [[nodiscard]] bool is(char c) const { return what == kind::punctuation && text[0] == c; }
  [[nodiscard]] bool is_dotted(std::string_view t) const { return what == kind::dotted && text == t; }
};

/// Reads tokens, with one token of lookahead. The text must outlive the lexer. Throws HPE_ERROR_INVALID_ARGUMENT if the
/// text is invalid.
class lexer {
 public:
  explicit lexer(std::string_view text);

  [[nodiscard]] const token& peek() const { return next_; }
  token take();

 private:
  void skip_blanks();
  token scan();
  token scan_number();
  [[nodiscard]] char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  std::string_view text_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
  token next_;
};

}  // namespace hpe::ptx

#pragma once

/// Parses one PTX text and adds its functions and variables to a program, which may already contain other texts.

#include "runtime/ptx/build/builder.h"
#include "runtime/ptx/text/lexer.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::ptx {

/// The numbers of the symbols and functions that several texts share, by name.
struct linkage {
  std::unordered_map<std::string, std::uint32_t> symbols;
  std::unordered_map<std::string, std::uint32_t> functions;
};

class text_parser {
 public:
  text_parser(program& into, linkage& shared, std::uint32_t text, unknown_code unknown);
  void parse();

 private:
  struct variable {
    std::string_view name;
    type element = type::none;
    std::uint32_t vector = 1;
    std::uint32_t alignment = 0;
    std::uint64_t size = 0;
    bool open_ended = false;  // name[]
  };
  struct qualifiers {
    bool is_extern = false, is_visible = false, is_weak = false;
  };

  /// One level of nested blocks or operands, which the parser reads recursively. The constructor throws if the text has
  /// more than 256 levels, because the stack is limited.
  class level {
   public:
    explicit level(text_parser& of) : of_(of) {
      if (++of.levels_ > most_levels) of.fail("more than 256 nested blocks or operands");
    }
    level(const level&) = delete;
    level& operator=(const level&) = delete;
    ~level() { --of_.levels_; }

   private:
    static constexpr unsigned most_levels = 256;
    text_parser& of_;
  };

  // Tokens:
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void unsupported(const std::string& what) const;
  bool accept(char c);
  bool accept_dotted(std::string_view name);
  void expect(char c);
  std::string_view expect_word();
  std::uint64_t expect_integer();
  void skip_past(char c);
  void skip_braces();

  // Directives outside of functions:
  void parse_directive();
  void parse_version();
  void parse_target();
  std::uint32_t file_of(std::uint64_t number);
  void parse_file();
  void parse_known_variable(symbol::space where, const qualifiers& q);
  void parse_variable(symbol::space where, const qualifiers& q, std::uint32_t owner);
  void parse_function(bool is_kernel, const qualifiers& q);
  void leave_out(function& f, const lexer& from, const std::string& why);
  std::uint32_t declare_function(std::string_view name, const qualifiers& q);
  std::uint32_t declare_symbol(const variable& v, symbol::space where, const qualifiers& q, std::uint32_t owner);
  variable parse_declarator(bool with_name);
  std::uint32_t append_aligned(std::uint32_t& end, std::uint64_t size, std::uint64_t alignment) const;
  void parse_formals(function& f, bool results, scope& names);
  void parse_limits(function& f);
  void parse_initial(symbol& s, const variable& v);
  void parse_initial_element(symbol& s, const variable& v, std::uint64_t& offset);

  // The body of a function:
  void parse_body(function& f);
  void parse_block();
  void parse_body_directive();
  void parse_registers();
  void parse_location();
  void parse_labelled_directive(std::string_view label);
  void parse_statement();
  operand_syntax parse_operand();
  std::vector<operand_syntax> parse_operands(char close);
  operand_syntax parse_number(bool negative);

  program& program_;
  linkage& linkage_;
  std::uint32_t text_;
  const bool leaves_out_;  // whether to remove functions that hpe does not support (unknown_code::left_out)
  lexer tokens_;
  scope names_;
  std::vector<std::uint32_t> files_;     // by the number in a .file directive: the file's index in program::files
  function_context* context_ = nullptr;  // the function that the parser is reading; null outside of functions
  bool has_version_ = false;
  unsigned levels_ = 0;
  std::vector<token> suffixes_;  // suffixes of the current statement; a member, so that its memory is reused
};

}  // namespace hpe::ptx

// Prints the protocol's table as Promela, which docs/model/protocol.pml includes. So the model checker checks the
// function that the runtime calls, and there is no second copy of the table.

#include <cstdio>

#include "runtime/coherence/protocol.h"

using namespace hpe::coherence;

namespace {

template <typename Visit>
void for_all_pairs(Visit visit) {
  for (unsigned s = 0; s < block_state_count; ++s)
    for (unsigned e = 0; e < block_event_count; ++e) visit(static_cast<block_state>(s), static_cast<block_event>(e));
}

void print_states_and_events() {
  std::printf("mtype = {");
  for (unsigned s = 0; s < block_state_count; ++s)
    std::printf("%s%s", s == 0 ? " " : ", ", name_of(static_cast<block_state>(s)));
  std::printf(" };\nmtype = {");
  for (unsigned e = 0; e < block_event_count; ++e)
    std::printf("%s%s", e == 0 ? " " : ", ", name_of(static_cast<block_event>(e)));
  std::printf(" };\n");
}

/// Prints a macro that is true for the pairs (state, event) whose actions contain `member`.
void print_action(const char* name, bool block_actions::*member) {
  std::printf("\n#define %s(s, e) ( \\\n", name);
  for_all_pairs([&](block_state s, block_event e) {
    if (apply(s, e).actions.*member) std::printf("  ((s) == %s && (e) == %s) || \\\n", name_of(s), name_of(e));
  });
  std::printf("  false)\n");
}

void print_next() {
  std::printf("\n#define next_state(s, e) ( \\\n");
  unsigned entries = 0;
  for_all_pairs([&](block_state s, block_event e) {
    const block_state next = apply(s, e).next;
    if (next == s) return;
    std::printf("  ((s) == %s && (e) == %s) -> %s : ( \\\n", name_of(s), name_of(e), name_of(next));
    ++entries;
  });
  std::printf("  (s))");
  for (unsigned i = 0; i < entries; ++i) std::printf(")");
  std::printf("\n");
}

}  // namespace

int main() {
  std::printf("/* Printed by tests/coherence/print_protocol from runtime/coherence/protocol.cpp. */\n\n");
  print_states_and_events();
  print_action("waits", &block_actions::wait);
  print_action("waits_upload", &block_actions::wait_upload);
  print_action("closes", &block_actions::close);
  print_action("opens_read", &block_actions::open_read);
  print_action("opens_write", &block_actions::open_write);
  print_action("uploads", &block_actions::upload);
  print_action("fetches", &block_actions::fetch);
  print_next();
  return 0;
}

#include "runtime/coherence/protocol.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hpe::coherence {
namespace {

using enum block_state;
using enum block_event;

struct entry {
  block_state state;
  block_event event;
  block_state next;
  block_actions actions;
  const char* why;
};

// The whole table of the protocol, written by hand from the meaning of the states. The last column gives the reason.
const entry table[] = {
    {fresh, host_read, host, {.open_write = true}, "the host reads zeros; the host's copy is the first copy"},
    {fresh, host_write, host, {.open_write = true}, "there is no data to fetch"},
    {fresh, host_overwrite, host, {.open_write = true}, "there is no data to fetch"},
    {fresh, device_read, device, {}, "the kernel reads undefined bytes, and the host then reads the same bytes"},
    {fresh, device_write, device, {}, "the kernel makes the first copy"},
    {fresh, device_overwrite, device, {}, "the kernel makes the first copy"},
    {fresh, flush, fresh, {}, "the host wrote nothing"},
    {fresh, prefetch, fresh, {}, "there is no data to fetch"},
    {fresh, fetched, fresh, {}, "the fetch began before the block became fresh"},
    {fresh, fetched_for_write, fresh, {}, "the fetch began before the block became fresh"},
    {fresh, fetch_failed, fresh, {}, "the fetch began before the block became fresh"},
    {fresh, abandoned, device, {}, "the work may have made the first copy"},
    {fresh, brought_to_host, fresh, {}, "there is no data to fetch"},

    {device, host_read, fetching, {.fetch = true}, "the shadow is stale"},
    {device, host_write, fetching, {.fetch = true}, "the bytes that the host does not write must keep their values"},
    {device,
     host_overwrite,
     host,
     {.wait_upload = true, .open_write = true},
     "the host needs no old bytes, but a copy in progress may use the shadow"},
    {device, device_read, device, {}, "the home is valid"},
    {device, device_write, device, {}, "the home is valid, and the only copy"},
    {device, device_overwrite, device, {}, "the home is the only copy"},
    {device, flush, device, {}, "the host has nothing to upload"},
    {device, prefetch, fetching, {.fetch = true}, "a prefetch brings the data to the host"},
    {device, fetched, device, {}, "a launch made the fetched bytes stale; the view stays closed"},
    {device, fetched_for_write, device, {}, "a launch made the fetched bytes stale; the view stays closed"},
    {device, fetch_failed, device, {}, "a launch made the fetched bytes stale"},
    {device, abandoned, device, {}, "the only copy is at the home, with the bytes that the work left"},
    {device, brought_to_host, host, {}, "the block is about to lose its home"},

    {shared, host_read, shared, {.open_read = true}, "the view may be closed for a marker or after a failed launch"},
    {shared,
     host_write,
     host,
     {.wait_upload = true, .open_write = true},
     "the upload that made the block shared must not read the new bytes"},
    {shared,
     host_overwrite,
     host,
     {.wait_upload = true, .open_write = true},
     "the upload that made the block shared must not read the new bytes"},
    {shared, device_read, shared, {}, "the home is valid"},
    {shared, device_write, device, {.close = true}, "the shadow becomes stale"},
    {shared, device_overwrite, device, {.close = true}, "the shadow becomes stale"},
    {shared, flush, shared, {}, "the home is valid already"},
    {shared, prefetch, shared, {}, "the shadow is valid already"},
    {shared, fetched, shared, {}, "an earlier fetch does not change the block"},
    {shared, fetched_for_write, shared, {}, "only a host write may make the home stale"},
    {shared, fetch_failed, shared, {}, "an earlier fetch does not change the block"},
    {shared, abandoned, host, {}, "the work may have changed the home's bytes; the shadow is unchanged"},
    {shared, brought_to_host, host, {}, "the block is about to lose its home"},

    {host, host_read, host, {.open_write = true}, "the view may be closed after a failed launch"},
    {host, host_write, host, {.open_write = true}, "the view may be closed after a failed launch"},
    {host, host_overwrite, host, {.open_write = true}, "the view may be closed after a failed launch"},
    {host, device_read, shared, {.open_read = true, .upload = true}, "the kernel needs the host's bytes"},
    {host, device_write, device, {.close = true, .upload = true}, "the kernel may keep some of the host's bytes"},
    {host, device_overwrite, device, {.close = true}, "the kernel overwrites all bytes of the host"},
    {host, flush, shared, {.open_read = true, .upload = true}, "the next write of the host must raise a page fault"},
    {host, prefetch, host, {}, "the shadow is the only copy"},
    {host, fetched, host, {}, "an earlier fetch must not close a view that the host writes"},
    {host, fetched_for_write, host, {}, "an earlier fetch does not change the block"},
    {host, fetch_failed, host, {}, "an earlier fetch does not change the block"},
    {host, abandoned, host, {}, "the home was stale already"},
    {host, brought_to_host, host, {}, "the shadow is the only copy"},

    {fetching, host_read, fetching, {.wait = true}, "the fetch is in progress"},
    {fetching, host_write, fetching, {.wait = true}, "the fetch is in progress"},
    {fetching, host_overwrite, fetching, {.wait = true}, "the fetch would overwrite what the host writes"},
    {fetching, device_read, fetching, {}, "the fetch and the kernel may both read the home"},
    {fetching, device_write, device, {}, "the fetched bytes will be stale; the view is closed during a fetch"},
    {fetching, device_overwrite, device, {}, "the fetched bytes will be stale; the view is closed during a fetch"},
    {fetching, flush, fetching, {}, "the host has nothing to upload"},
    {fetching, prefetch, fetching, {}, "a fetch is already in progress"},
    {fetching, fetched, shared, {.open_read = true}, "both copies are valid"},
    {fetching, fetched_for_write, host, {.open_write = true}, "the write that waits needs no second page fault"},
    {fetching, fetch_failed, device, {}, "the shadow stays stale"},
    {fetching, abandoned, device, {}, "the fetch may have copied bytes from before the work"},
    {fetching, brought_to_host, host, {}, "the block is about to lose its home"},
};

std::string name_of(const entry& e) {
  return std::string(coherence::name_of(e.state)) + " + " + coherence::name_of(e.event) + ": " + e.why;
}

TEST(protocol, gives_the_listed_result_for_each_state_and_event) {
  std::set<std::pair<block_state, block_event>> pairs;
  for (const entry& e : table) {
    SCOPED_TRACE(name_of(e));
    EXPECT_TRUE(pairs.insert({e.state, e.event}).second) << "twice in the table";
    const transition t = apply(e.state, e.event);
    EXPECT_EQ(coherence::name_of(t.next), std::string(coherence::name_of(e.next)));
    EXPECT_EQ(t.actions, e.actions);
  }
  EXPECT_EQ(pairs.size(), block_state_count * block_event_count);
}

bool home_valid(block_state s) { return s == device || s == shared || s == fetching; }
bool shadow_valid(block_state s) { return s == shared || s == host; }

template <typename Check>
void for_all_pairs(Check check) {
  for (unsigned s = 0; s < block_state_count; ++s) {
    for (unsigned e = 0; e < block_event_count; ++e) {
      const auto state = static_cast<block_state>(s);
      const auto event = static_cast<block_event>(e);
      SCOPED_TRACE(std::string(coherence::name_of(state)) + " + " + coherence::name_of(event));
      check(state, event, apply(state, event));
    }
  }
}

TEST(protocol, opens_views_no_wider_than_the_next_state_allows) {
  for_all_pairs([](block_state, block_event, const transition& t) {
    EXPECT_TRUE(!t.actions.open_write || t.next == host);
    EXPECT_TRUE(!t.actions.open_read || t.next == shared);
    EXPECT_LE(t.actions.close + t.actions.open_read + t.actions.open_write, 1);
  });
}

TEST(protocol, closes_views_that_must_not_stay_open) {
  for_all_pairs([](block_state s, block_event, const transition& t) {
    if (shadow_valid(s) && !shadow_valid(t.next)) {
      EXPECT_TRUE(t.actions.close);
    }
    if (s == host && t.next == shared) {  // the view was writable, and must become read-only
      EXPECT_TRUE(t.actions.open_read);
    }
  });
}

TEST(protocol, never_loses_the_only_copy_but_to_an_overwrite) {
  for_all_pairs([](block_state s, block_event e, const transition& t) {
    if (s == host && home_valid(t.next) && e != device_overwrite) {
      EXPECT_TRUE(t.actions.upload);
    }
    if (s == device && t.next == host) {
      EXPECT_TRUE(e == host_overwrite || e == brought_to_host);
    }
    if (s == device && t.next == shared) {
      ADD_FAILURE() << "there was no copy yet";
    }
  });
}

TEST(protocol, device_work_finds_and_leaves_a_valid_home) {
  for_all_pairs([](block_state s, block_event e, const transition& t) {
    if (e != device_read && e != device_write && e != device_overwrite) return;
    EXPECT_FALSE(t.actions.wait) << "a launch never waits";
    EXPECT_FALSE(t.actions.wait_upload) << "a launch never waits";
    EXPECT_TRUE(home_valid(t.next));
    if (e != device_read) {
      EXPECT_EQ(t.next, device);
    }
    if (e == device_overwrite) {
      EXPECT_FALSE(t.actions.upload);
    }
    if (s == fresh) {
      EXPECT_FALSE(t.actions.upload);
    }
  });
}

TEST(protocol, a_failure_opens_no_view_and_copies_nothing) {
  for_all_pairs([](block_state, block_event e, const transition& t) {
    if (e != fetch_failed && e != abandoned && e != brought_to_host) return;
    EXPECT_EQ(t.actions, block_actions{});
  });
}

TEST(protocol, host_access_ends_in_a_state_that_allows_it_or_waits) {
  for_all_pairs([](block_state, block_event e, const transition& t) {
    if (e != host_read && e != host_write && e != host_overwrite) return;
    if (t.actions.wait || t.actions.fetch) {
      EXPECT_EQ(t.next, fetching);
    } else if (e == host_read) {
      EXPECT_TRUE(shadow_valid(t.next));
      EXPECT_TRUE(t.actions.open_read || t.actions.open_write);
    } else {
      EXPECT_EQ(t.next, host);
      EXPECT_TRUE(t.actions.open_write);
    }
  });
}

TEST(protocol, fetches_only_blocks_whose_valid_copy_is_on_the_device) {
  for_all_pairs([](block_state s, block_event, const transition& t) {
    EXPECT_EQ(t.actions.fetch, s == device && t.next == fetching);
    EXPECT_TRUE(!t.actions.upload || s == host);
  });
}

TEST(protocol, names_are_all_different) {
  std::set<std::string> names;
  for (unsigned s = 0; s < block_state_count; ++s) names.insert(coherence::name_of(static_cast<block_state>(s)));
  for (unsigned e = 0; e < block_event_count; ++e) names.insert(coherence::name_of(static_cast<block_event>(e)));
  EXPECT_EQ(names.size(), block_state_count + block_event_count);
}

}  // namespace
}  // namespace hpe::coherence

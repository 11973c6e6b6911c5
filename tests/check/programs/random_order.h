#pragma once

/// Random programs of device work, and an oracle that knows which of their operations may touch the same bytes at the
/// same time. The oracle builds the graph of all dependences, as CUDA defines them, and searches it for paths.

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace random_order {

constexpr int most_operations = 24;
constexpr int events = 3;
constexpr int blocks_of_pool = 2;
constexpr int buffer_bytes = 192;

/// The streams, in the order of all arrays of streams.
struct stream_kind {
  int device;
  enum kind { legacy, blocking, independent } kind;  // independent: with CU_STREAM_NON_BLOCKING
};
inline constexpr std::array<stream_kind, 8> streams{{{0, stream_kind::legacy},
                                                     {0, stream_kind::blocking},
                                                     {0, stream_kind::blocking},  // the per-thread stream
                                                     {0, stream_kind::independent},
                                                     {0, stream_kind::independent},
                                                     {1, stream_kind::legacy},
                                                     {1, stream_kind::blocking},
                                                     {1, stream_kind::independent}}};

/// The buffers: two in the memory of device 0, one of device 1, blocks of a pool of device 0, and memory that CPU code
/// uses too.
enum buffer { first, second, peer, pool, pinned = pool + blocks_of_pool, other_pinned, registered, managed, buffers };

/// The rows of act::copy_rows.
constexpr int rows = 3;
constexpr int pitch_of_to = 24;
constexpr int pitch_of_from = 20;

enum class act {
  // Work in a stream:
  get_bytes,  // kernels
  set_bytes,
  copy_bytes,
  add_bytes,
  add_words,  // atomically
  fill,       // cuMemsetD8Async
  copy,       // cuMemcpyAsync
  copy_rows,  // cuMemcpy2DAsync; `bytes` in each row
  record,
  wait,
  allocate,
  release,
  call,   // a host function, and CPU code that waits for its start
  graph,  // a graph of three kernels
  // Work in a legacy stream for which CPU code does not wait:
  fill_now,
  copy_now,
  // ... for which CPU code waits; the other side is pageable memory:
  upload_now,
  download_now,
  // CPU code:
  wait_for_stream,
  wait_for_event,
  wait_for_device,
  query_stream,
  query_event,
  read,
  write,
  acts
};

/// What an operation, or a node of a graph, does with memory.
struct memory_use {
  act what;
  int to, from;        // buffers
  int to_at, from_at;  // bytes
  int bytes;
};

struct operation : memory_use {
  int stream;
  int event;
  std::array<memory_use, 3> nodes;  // of a graph
  std::array<bool, 3> edges;        // from node 0 to 1, from 0 to 2, from 1 to 2
};

inline bool is_in_pool(int b) { return b >= pool && b < pool + blocks_of_pool; }
inline int device_of_event(int e) { return e == events - 1 ? 1 : 0; }
inline bool is_kernel(act a) { return a <= act::add_words; }
inline bool has_to(act a) {
  return a == act::set_bytes || a == act::copy_bytes || a == act::add_bytes || a == act::add_words || a == act::fill ||
         a == act::copy || a == act::copy_rows || a == act::fill_now || a == act::copy_now || a == act::upload_now ||
         a == act::write;
}
inline bool has_from(act a) {
  return a == act::get_bytes || a == act::copy_bytes || a == act::copy || a == act::copy_rows || a == act::copy_now ||
         a == act::download_now || a == act::read;
}

class generator {
 public:
  explicit generator(std::uint64_t seed) : random_(seed) {}

  std::vector<operation> program() {
    // A program uses few streams and buffers, so that its operations meet.
    const int used = number(1, 4);
    std::vector<int> chosen;
    for (int i = 0; i < used; ++i) chosen.push_back(number(0, static_cast<int>(streams.size()) - 1));
    spread_ = number(1, 8);
    std::vector<operation> made;
    const int length = number(3, most_operations);
    while (static_cast<int>(made.size()) < length) {
      operation o{some_use(some_act()), chosen[number(0, used - 1)], number(0, events - 1), {}, {}};
      for (memory_use& node : o.nodes) do
          node = some_use(static_cast<act>(number(0, static_cast<int>(act::add_words))));
        while (uses_pool(node));
      for (bool& edge : o.edges) edge = number(0, 2) != 0;
      if (o.what >= act::fill_now && o.what <= act::download_now) o.stream = o.to == peer ? 5 : 0;
      if (o.what == act::record && streams[o.stream].device != device_of_event(o.event)) continue;
      if (is_possible(o)) made.push_back(o);
    }
    return made;
  }

 private:
  memory_use some_use(act what) {
    const bool on_host = what == act::read || what == act::write;
    memory_use u{what, some_buffer(on_host), some_buffer(on_host), 0, 0, number(1, 64)};
    if (what == act::allocate || what == act::release) u.to = pool + number(0, blocks_of_pool - 1);
    if (what == act::copy_bytes || what == act::copy || what == act::copy_rows || what == act::copy_now)
      while (u.from == u.to) u.from = some_buffer(false);
    // CPU code that sees an atomic change counts as having waited.
    while (what == act::add_words && u.to >= pinned) u.to = some_buffer(false);
    u.to_at = some_offset(u.bytes);
    u.from_at = some_offset(u.bytes);
    if (what == act::copy_rows) u.bytes = 1 + u.bytes % 16;
    if (what == act::add_words) u.to_at &= ~3, u.bytes = (u.bytes + 3) & ~3;
    return u;
  }
  static bool uses_pool(const memory_use& u) {
    return (has_to(u.what) && is_in_pool(u.to)) || (has_from(u.what) && is_in_pool(u.from)) ||
           u.what == act::allocate || u.what == act::release;
  }
  // Leaves out what CUDA's documentation leaves open, and what needs more preparation.
  static bool is_possible(const operation& o) {
    if (uses_pool(o) && streams[o.stream].device != 0) return false;
    const bool waits = o.what == act::wait_for_stream || o.what == act::query_stream;
    if (waits && streams[o.stream].kind == stream_kind::legacy) return false;
    switch (o.what) {
      case act::fill_now:
      case act::upload_now: return o.to < pinned;
      case act::download_now: return o.from < pinned && (o.from == peer) == (o.stream == 5);
      case act::copy_now: return o.to < pinned && o.from < pinned && o.to != peer && o.from != peer;
      default: return true;
    }
  }
  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  int some_offset(int bytes) { return number(0, spread_) * (buffer_bytes - 64 - bytes % 2) / 8; }
  int some_buffer(bool on_host) {
    if (on_host) return number(pinned, buffers - 1);
    const int chosen = number(0, 15);
    return chosen < 5    ? first
           : chosen < 8  ? second
           : chosen < 10 ? peer
           : chosen < 13 ? pool + chosen % blocks_of_pool
                         : number(pinned, buffers - 1);
  }
  act some_act() {
    const int chosen = number(0, 99);
    if (chosen < 34) return static_cast<act>(number(0, static_cast<int>(act::add_bytes)));
    if (chosen < 36) return act::add_words;
    if (chosen < 40) return act::graph;
    if (chosen < 55) return static_cast<act>(number(static_cast<int>(act::fill), static_cast<int>(act::copy_rows)));
    if (chosen < 75) return number(0, 1) == 0 ? act::record : act::wait;
    if (chosen < 82) return number(0, 1) == 0 ? act::allocate : act::release;
    if (chosen < 84) return act::call;
    if (chosen < 90)
      return static_cast<act>(number(static_cast<int>(act::fill_now), static_cast<int>(act::download_now)));
    if (chosen < 94)
      return static_cast<act>(number(static_cast<int>(act::wait_for_stream), static_cast<int>(act::query_event)));
    return number(0, 1) == 0 ? act::read : act::write;
  }

  std::mt19937_64 random_;
  int spread_ = 8;
};

/// A pair of operations, by their numbers, that touch the same bytes with no order between them.
struct race {
  int earlier, later, buffer;
  friend auto operator<=>(const race&, const race&) = default;
};

class oracle {
 public:
  oracle() { event_.fill(-1), last_.fill(-1); }

  /// Adds an operation that the program has made. `succeeded`: of a query, whether the work had ended.
  void add(int number, const operation& o, bool succeeded) {
    using enum act;
    switch (o.what) {
      case wait_for_stream: host({last_[o.stream]}); return;
      case query_stream:
        if (succeeded) host({last_[o.stream]});
        return;
      case wait_for_event: host({event_[o.event]}); return;
      case query_event:
        if (succeeded) host({event_[o.event]});
        return;
      case wait_for_device: host(all_of(streams[o.stream].device)); return;
      case read:
      case write: {
        const int node = host({});
        touch(node, number, o);
        return;
      }
      default: break;
    }
    std::vector<int> after{host_};
    const stream_kind kind = streams[o.stream];
    after.push_back(last_[o.stream]);
    for (std::size_t s = 0; s < streams.size(); ++s) {
      const bool is_other_default = streams[s].device == kind.device && s != static_cast<std::size_t>(o.stream) &&
                                    streams[s].kind != stream_kind::independent &&
                                    kind.kind != stream_kind::independent;
      if (is_other_default && (kind.kind == stream_kind::legacy || streams[s].kind == stream_kind::legacy))
        after.push_back(last_[s]);
    }
    if (o.what == wait) after.push_back(event_[o.event]);
    if (o.what == graph) {
      last_[o.stream] = add_graph(after, number, o);
      return;
    }
    const int node = add_node(after);
    last_[o.stream] = node;
    if (o.what == record) event_[o.event] = node;
    touch(node, number, o);
    if (o.what == upload_now || o.what == download_now || o.what == call) host({node});
  }

  /// Whether all uses of a buffer so far end before work that would be queued now in a stream.
  [[nodiscard]] bool are_uses_before(int stream, int buffer) const {
    oracle after = *this;
    after.add(most_operations, {{act::release, buffer, buffer, 0, 0, buffer_bytes}, stream, 0, {}, {}}, true);
    return after.races_.size() == races_.size();
  }
  [[nodiscard]] const std::set<race>& races() const { return races_; }

 private:
  using nodes = std::bitset<5 * most_operations>;
  struct use {
    int node, number, begin, end;
    bool writes, atomic;
  };

  int add_node(const std::vector<int>& after) {
    nodes before;
    for (const int each : after)
      if (each >= 0) before |= before_[each] | nodes(1) << each;
    before_.push_back(before);
    return static_cast<int>(before_.size()) - 1;
  }
  // Returns a node that all nodes of the graph precede.
  int add_graph(const std::vector<int>& after, int number, const operation& o) {
    std::vector<int> made;
    for (int n = 0; n < 3; ++n) {
      std::vector<int> before = after;
      if (n == 1 && o.edges[0]) before.push_back(made[0]);
      if (n == 2 && o.edges[1]) before.push_back(made[0]);
      if (n == 2 && o.edges[2]) before.push_back(made[1]);
      made.push_back(add_node(before));
      touch(made.back(), number, o.nodes[n]);
    }
    made.insert(made.end(), after.begin(), after.end());
    return add_node(made);
  }
  // CPU code that waits for work: everything that it does later comes after the work.
  int host(std::vector<int> after) {
    after.push_back(host_);
    return host_ = add_node(after);
  }
  [[nodiscard]] std::vector<int> all_of(int device) const {
    std::vector<int> all;
    for (std::size_t s = 0; s < streams.size(); ++s)
      if (streams[s].device == device) all.push_back(last_[s]);
    return all;
  }

  void touch(int node, int number, const memory_use& o) {
    using enum act;
    const auto add = [&](int buffer, int begin, int end, bool writes) {
      touch(buffer, {node, number, begin, end, writes, o.what == add_words});
    };
    const auto add_rows = [&](int buffer, int begin, int pitch, bool writes) {
      for (int r = 0; r < (o.what == copy_rows ? rows : 1); ++r)
        add(buffer, begin + r * pitch, begin + r * pitch + o.bytes, writes);
    };
    if (o.what == allocate || o.what == release) add(o.to, 0, buffer_bytes, true);
    if (has_from(o.what)) add_rows(o.from, o.from_at, pitch_of_from, false);
    if (has_to(o.what)) add_rows(o.to, o.to_at, pitch_of_to, true);
  }
  void touch(int buffer, const use& now) {
    for (const use& earlier : uses_[buffer]) {
      const bool meet = earlier.begin < now.end && now.begin < earlier.end && (earlier.writes || now.writes);
      if (meet && !(earlier.atomic && now.atomic) && earlier.node != now.node && !before_[now.node][earlier.node])
        races_.insert({earlier.number, now.number, buffer});
    }
    uses_[buffer].push_back(now);
  }

  std::vector<nodes> before_;  // for each node, all nodes from which a path leads to it
  int host_ = -1;
  std::array<int, streams.size()> last_;
  std::array<int, events> event_;
  std::array<std::vector<use>, buffers> uses_;
  std::set<race> races_;
};

}  // namespace random_order

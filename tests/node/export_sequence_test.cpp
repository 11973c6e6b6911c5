// One process exports memory and a second process uses the exports, in random sequences of operations that are compared
// with a model.

#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/node/process.h"

namespace node_test {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

report open(process& p, const hpeExport& handle) { return p.tell({.what = order::kind::open, .handle = handle}); }

report add(process& p, std::uint64_t number, std::size_t offset, std::size_t bytes, std::uint64_t what) {
  return p.tell({.what = order::kind::add, .number = number, .offset = offset, .bytes = bytes, .seed = what});
}

struct temporary_folder {
  temporary_folder() {
    if (::mkdtemp(name.data()) == nullptr) std::abort();
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() { std::filesystem::remove(name); }
  std::string name = (std::filesystem::temp_directory_path() / "hpe-exports-test-XXXXXX").string();
};

// Two processes, and a model of the value of each byte. The exporter has little device and host memory. The test
// follows the rules of hpe/node.h: the exporter's CPU code touches no allocation that other processes may write, and
// reads bytes that other processes wrote only after hpeExportBegin or hpeExportEnd of these bytes. Small allocations
// share blocks, so the rule applies to all small allocations together.
class sequence {
 public:
  explicit sequence(std::uint64_t seed)
      : random_(seed),
        even_(seed % 2 == 0),
        exporter_("soft:2",
                  {"HPE_DEVICE_MEMORY=24M", "HPE_HOST_MEMORY=24M", "HPE_STAGING_BUFFERS=2", "HPE_SPILL=" + folder_.name,
                   // Half of the sequences use all devices for each launch; in the other half, hpe decides.
                   even_ ? "HPE_SPREAD_CUT=even" : "HPE_SPREAD_CUT=auto"}) {
    for (int i = 0; i < 12; ++i) allocations_.push_back(allocate());
  }

  void step() {
    const std::size_t which = draw(allocations_.size());
    allocation& it = allocations_[which];
    switch (draw(24)) {
      case 0:
      case 1: return add_there(it);
      case 2:
      case 3: return write_there(it);
      case 4:
      case 5: return read_there(it);
      case 6:
      case 7:
      case 8: return begin(it);
      case 9:
      case 10: return end(it);
      case 11:
      case 12: return open_one(it);
      case 13:
      case 14:
      case 15: return use_opened();
      case 16:
      case 17: return close_one();
      case 18: return migrate(it);
      case 19:
      case 20: return add_over_there(it);
      case 21:
      case 22: return mix_over_there(it);
      default:
        if (draw(4) != 0) return copy_exported(it);
        replace(which);
        return;
    }
  }

  // Ends all openings and exports, and checks that all allocations have the bytes of the model.
  void finish() {
    while (!opened_.empty()) close_one();
    for (allocation& it : allocations_) {
      while (!it.exports.empty()) end(it);
      synchronise(it);
      expect_bytes(it, 0, it.size(), order::kind::hash);
      exporter_.free(it.number);
    }
    constexpr std::size_t enough = 100;  // short launches run on one device, so few launches may not show the spreading
    if (even_ && launches_ >= enough) {
      EXPECT_NE(spread_, 0U) << "no launch used both devices";
    }
  }

 private:
  using model = std::shared_ptr<std::vector<std::byte>>;
  struct exported {
    hpeExport handle;
    std::size_t offset;
    std::size_t bytes;
  };
  struct allocation {
    std::uint64_t number = 0;
    model bytes;
    bool is_small = false;
    std::vector<exported> exports;
    std::vector<bool> unseen;     // bytes that the importer wrote and the exporter has not seen yet
    std::shared_ptr<int> opened;  // the number of times that the importer has the allocation open
    [[nodiscard]] std::size_t size() const { return bytes->size(); }
  };
  struct opening {
    std::uint64_t number = 0;
    std::size_t offset = 0;
    std::size_t size = 0;
    model bytes;
    bool is_small = false;
    std::shared_ptr<int> opened;
  };

  std::size_t draw(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }
  // Returns a random range of an allocation, usually a short one, sometimes one up to the end.
  std::pair<std::size_t, std::size_t> range(std::size_t size) {
    const std::size_t begin = draw(4) == 0 ? 0 : draw(size);
    const std::size_t most = size - begin;
    const std::size_t bytes = draw(8) == 0 ? most : 1 + draw(std::min<std::size_t>(most, 6000));
    return {begin, bytes};
  }

  report well(const report& r) {
    EXPECT_EQ(r.status, HPE_SUCCESS) << r.words;
    return r;
  }

  allocation allocate() {
    constexpr std::size_t sizes[] = {1, 256, 1000, 5000, 65537, 256 * KiB, 256 * KiB + 1, MiB, 2 * MiB + 1, 5 * MiB};
    constexpr std::int32_t places[] = {0, 0, 1, 1, striped, on_host};
    allocation made;
    const std::size_t size = sizes[draw(std::size(sizes))];
    const report there =
        exporter_.tell({.what = order::kind::allocate, .on = places[draw(std::size(places))], .bytes = size});
    // An allocation in host memory can fail, because hpe never moves host memory to the spill file. Then allocates on
    // device 0.
    made.number = there.status == HPE_ERROR_OUT_OF_MEMORY ? exporter_.allocate(size, 0) : well(there).value;
    made.bytes = std::make_shared<std::vector<std::byte>>(size);
    made.is_small = size <= 256 * KiB;
    made.unseen.resize(size);
    made.opened = std::make_shared<int>(0);
    return made;
  }

  bool busy(const allocation& it) const {
    if (it.is_small) {
      if (std::ranges::any_of(opened_, &opening::is_small)) return true;
      return std::ranges::any_of(allocations_, [](const allocation& a) { return a.is_small && !a.exports.empty(); });
    }
    return !it.exports.empty() || *it.opened != 0;
  }

  void see(allocation& it, std::size_t begin, std::size_t bytes) {
    std::fill_n(it.unseen.begin() + static_cast<std::ptrdiff_t>(begin), bytes, false);
  }
  bool has_unseen(const allocation& it, std::size_t begin, std::size_t bytes) const {
    const auto first = it.unseen.begin() + static_cast<std::ptrdiff_t>(begin);
    return std::find(first, first + static_cast<std::ptrdiff_t>(bytes), true) !=
           first + static_cast<std::ptrdiff_t>(bytes);
  }
  void synchronise(allocation& it) {
    if (!has_unseen(it, 0, it.size())) return;
    exporter_.end(exporter_.begin(it.number, 0, it.size()));
    see(it, 0, it.size());
  }

  void expect_bytes(const allocation& it, std::size_t begin, std::size_t bytes, order::kind how) {
    const report r = well(exporter_.tell({.what = how, .number = it.number, .offset = begin, .bytes = bytes}));
    EXPECT_EQ(r.value, hash_of(it.bytes->data() + begin, bytes))
        << "the exporter reads other bytes, from " << begin << ", " << bytes << " of " << it.size();
  }
  static void fill(const model& of, std::size_t begin, std::size_t bytes, std::uint64_t seed) {
    for (std::size_t i = 0; i < bytes; ++i) (*of)[begin + i] = pattern(seed, i);
  }
  static std::uint32_t word_of(const model& of, std::size_t at) {
    std::uint32_t word = 0;
    std::memcpy(&word, of->data() + at, sizeof word);
    return word;
  }
  static void set_word(const model& of, std::size_t at, std::uint32_t word) {
    std::memcpy(of->data() + at, &word, sizeof word);
  }
  static void add_words(const model& of, std::size_t begin, std::size_t bytes, std::uint32_t what) {
    for (std::size_t at = begin; at + sizeof what <= begin + bytes; at += sizeof what)
      set_word(of, at, word_of(of, at) + what);
  }

  void add_there(allocation& it) {
    auto [begin, bytes] = range(it.size());
    begin = begin / 4 * 4;
    const std::uint64_t what = random_();
    well(add(exporter_, it.number, begin, bytes, what));
    add_words(it.bytes, begin, bytes, static_cast<std::uint32_t>(what));
  }

  // Counts a launch of a PTX kernel over all devices. If the importer uses the memory, the order ends only when the
  // kernel has ended; otherwise the kernel may still wait or run during the next orders.
  void note(const report& launch) {
    ++launches_;
    if (well(launch).value > 1) ++spread_;
  }
  void add_over_there(allocation& it) {
    auto [begin, bytes] = range(it.size());
    begin = begin / 4 * 4;
    const std::uint64_t what = random_();
    note(exporter_.tell({.what = order::kind::add_over,
                         .number = it.number,
                         .offset = begin,
                         .bytes = bytes,
                         .seed = what,
                         .from = !busy(it) && draw(2) == 0}));
    add_words(it.bytes, begin, bytes, static_cast<std::uint32_t>(what));
  }

  void mix_over_there(allocation& it) {
    // The most allocations that may be exported, or open in the importer, so that both allocations of the launch still
    // fit on one device.
    constexpr std::size_t most = 2;
    const allocation& other = allocations_[draw(allocations_.size())];
    if (&other == &it || held() > most) return;
    auto [begin, bytes] = range(std::min(it.size(), other.size()));
    begin = begin / 4 * 4;
    const std::size_t from = draw(other.size() - bytes + 1) / 4 * 4;
    const std::uint64_t key = random_();
    note(exporter_.tell({.what = order::kind::mix_over,
                         .number = it.number,
                         .offset = begin,
                         .bytes = bytes,
                         .seed = key,
                         .from = !busy(it) && !busy(other) && draw(2) == 0,
                         .other = other.number,
                         .other_offset = from}));
    for (std::size_t at = 0; at + sizeof(std::uint32_t) <= bytes; at += sizeof(std::uint32_t)) {
      const std::uint32_t word = 3 * word_of(it.bytes, begin + at) + word_of(other.bytes, from + at);
      set_word(it.bytes, begin + at, word + static_cast<std::uint32_t>(key));
    }
  }

  void write_there(allocation& it) {
    if (busy(it)) return;
    for (allocation& each : allocations_)
      if (&each == &it || (each.is_small && it.is_small)) synchronise(each);
    const auto [begin, bytes] = range(it.size());
    const std::uint64_t seed = random_();
    const auto how = draw(2) == 0 ? order::kind::fill : order::kind::fill_copy;
    well(exporter_.tell({.what = how, .number = it.number, .offset = begin, .bytes = bytes, .seed = seed}));
    fill(it.bytes, begin, bytes, seed);
  }

  void read_there(allocation& it) {
    const auto [begin, bytes] = range(it.size());
    if (has_unseen(it, begin, bytes)) synchronise(it);
    expect_bytes(it, begin, bytes, draw(2) == 0 ? order::kind::hash : order::kind::hash_copy);
  }

  void begin(allocation& it) {
    constexpr std::size_t most = 3;  // so few that the rest of the data fits into the memory
    if (it.exports.size() >= most || (it.exports.empty() && held() >= most)) return;
    const auto [begin, bytes] = range(it.size());
    it.exports.push_back({exporter_.begin(it.number, begin, bytes), begin, bytes});
    see(it, begin, bytes);
  }
  std::size_t held() const {
    return static_cast<std::size_t>(std::ranges::count_if(
               allocations_, [](const allocation& a) { return !a.exports.empty() || *a.opened != 0; })) +
           freed_;
  }

  void end(allocation& it) {
    if (it.exports.empty()) return;
    const auto which = it.exports.begin() + static_cast<std::ptrdiff_t>(draw(it.exports.size()));
    exporter_.end(which->handle);
    see(it, which->offset, which->bytes);
    it.exports.erase(which);
  }

  void open_one(allocation& it) {
    if (it.exports.empty() || opened_.size() > 5) return;
    const exported& what = it.exports[draw(it.exports.size())];
    const report r = well(open(importer_, what.handle));
    opened_.push_back({r.value, what.offset, what.bytes, it.bytes, it.is_small, it.opened});
    ++*it.opened;
  }

  void note_written(const opening& by, std::size_t begin, std::size_t bytes) {
    for (allocation& it : allocations_)
      if (it.bytes == by.bytes)
        std::fill_n(it.unseen.begin() + static_cast<std::ptrdiff_t>(by.offset + begin), bytes, true);
  }

  void use_opened() {
    if (opened_.empty()) return;
    const opening& it = opened_[draw(opened_.size())];
    auto [begin, bytes] = range(it.size);
    switch (draw(3)) {
      case 0: {
        const std::uint64_t seed = random_();
        importer_.fill(it.number, begin, bytes, seed);
        fill(it.bytes, it.offset + begin, bytes, seed);
        return note_written(it, begin, bytes);
      }
      case 1: {
        if (it.offset % 4 != 0) return;
        begin = begin / 4 * 4;
        const std::uint64_t what = random_();
        const order::kind how = draw(2) == 0 ? order::kind::add : order::kind::add_over;
        well(importer_.tell({.what = how, .number = it.number, .offset = begin, .bytes = bytes, .seed = what}));
        add_words(it.bytes, it.offset + begin, bytes, static_cast<std::uint32_t>(what));
        return note_written(it, begin, bytes);
      }
      default: {
        const report r =
            well(importer_.tell({.what = order::kind::hash, .number = it.number, .offset = begin, .bytes = bytes}));
        EXPECT_EQ(r.value, hash_of(it.bytes->data() + it.offset + begin, bytes)) << "the importer reads other bytes";
      }
    }
  }

  void close_one() {
    if (opened_.empty()) return;
    const auto which = opened_.begin() + static_cast<std::ptrdiff_t>(draw(opened_.size()));
    importer_.free(which->number);
    --*which->opened;
    const bool of_freed =
        std::ranges::none_of(allocations_, [&](const allocation& a) { return a.bytes == which->bytes; });
    if (of_freed && *which->opened == 0) --freed_;
    opened_.erase(which);
  }

  void copy_exported(allocation& it) {
    if (it.exports.empty()) return;
    const exported& what = it.exports[draw(it.exports.size())];
    const auto [begin, bytes] = range(what.bytes);
    const report r =
        well(importer_.tell({.what = order::kind::hash_export, .bytes = bytes, .from = begin, .handle = what.handle}));
    EXPECT_EQ(r.value, hash_of(it.bytes->data() + what.offset + begin, bytes)) << "hpeExportCopy gives other bytes";
  }

  void migrate(allocation& it) {
    const auto on = static_cast<std::int32_t>(draw(2));
    const report r = exporter_.tell({.what = order::kind::migrate, .on = on, .number = it.number});
    EXPECT_TRUE(r.status == HPE_SUCCESS || r.status == HPE_ERROR_NOT_SUPPORTED) << r.words;
  }

  void replace(std::size_t which) {
    allocation& it = allocations_[which];
    while (!it.exports.empty()) end(it);
    if (*it.opened != 0) ++freed_;
    exporter_.free(it.number);
    it = allocate();
  }

  std::mt19937_64 random_;
  bool even_;  // whether each launch over all devices uses both devices
  const temporary_folder folder_;
  process exporter_;
  process importer_{"soft:1"};
  std::vector<allocation> allocations_;
  std::vector<opening> opened_;
  std::size_t launches_ = 0;  // the exporter's launches over all devices
  std::size_t spread_ = 0;    // those of these launches that used both devices
  std::size_t freed_ = 0;     // allocations that were freed while they were open
};

TEST(Exports, AgreeWithAModelInAnySequenceOfOperations) {
  const char* const wished = std::getenv("HPE_TEST_EXPORT_STEPS");
  const std::uint64_t steps = wished != nullptr ? std::strtoull(wished, nullptr, 10) : 3000;
  const char* const drawn = std::getenv("HPE_TEST_EXPORT_SEED");
  const std::uint64_t seed = drawn != nullptr ? std::strtoull(drawn, nullptr, 10) : fresh_seed();
  sequence all(seed);
  for (std::uint64_t n = 0; n < steps && !::testing::Test::HasFailure(); ++n) {
    SCOPED_TRACE(::testing::Message() << "step " << n << ", seed " << seed);
    all.step();
  }
  if (!::testing::Test::HasFailure()) all.finish();
}

}  // namespace
}  // namespace node_test

// One process exports memory and a second process uses the exports, in random sequences of operations that are compared
// with a model. Both processes have more data than their devices' memory, so that hpe evicts data. The exporter also
// has more data than host memory, so that hpe writes data to the spill file. Kernels of PTX run over all devices of a
// process.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/granule.h"
#include "runtime/base/interval_map.h"
#include "tests/node/contents.h"
#include "tests/node/draws.h"
#include "tests/node/history.h"
#include "tests/node/process.h"
#include "tests/temporary_folder.h"

namespace node_test {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr std::size_t largest_small = 256 * KiB;  // allocations up to this size share blocks with other allocations
constexpr std::size_t device_granules = 6;        // the memory of each device, in granules

// Two processes, and a model of the value of each byte. The test follows the rules of hpe/node.h: the exporter's CPU
// code touches no allocation that other processes may write, and reads bytes that other processes wrote only after
// hpeExportBegin or hpeExportEnd of these bytes. Small allocations share blocks, so the rule applies to all small
// allocations together.
class sequence {
 public:
  explicit sequence(std::uint64_t seed)
      : seed_(seed),
        even_(seed % 2 == 0),
        random_(seed, even_ ? 1000 : 50),
        exporter_("soft:2", variables({"HPE_HOST_MEMORY=16M", "HPE_SPILL=" + folder_.path()})),
        importer_("soft:2", variables({})) {
    const auto failed = [] { return ::testing::Test::HasFailure(); };
    for (int i = 0; i < 24 && !failed(); ++i) allocations_.push_back(allocate());
    for (int i = 0; i < 8 && !failed(); ++i) own_.push_back(allocate_own());
  }

  // Makes one operation.
  void step() {
    past_.next_step();
    constexpr std::uint64_t with_the_same = 64;
    if (past_.step() % with_the_same == 1)
      for (std::size_t& each : hot_) each = random_.below(allocations_.size());
    while (!try_one()) {
    }
  }

  // Ends all openings and exports, and checks that all allocations have the bytes of the model.
  void finish() {
    while (!opened_.empty()) close_one();
    for (allocation& it : allocations_) {
      while (!it.exports.empty()) end_export(it);
      synchronise(it);
      past_.expect_bytes("read at the end", *it.bytes, it.bytes->whole(),
                         reader(exporter_, it.number, order::kind::hash));
      if (::testing::Test::HasFailure()) return;
      exporter_.free(it.number);
    }
    for (const private_memory& it : own_)
      past_.expect_bytes("importer's read at the end", *it.bytes, it.bytes->whole(),
                         reader(importer_, it.number, order::kind::hash));
    constexpr std::size_t enough = 2000;  // steps, after which all of this has happened
    if (past_.step() < enough) return;
    EXPECT_TRUE(!even_ || spread_ > 0) << "no launch used both devices";
    EXPECT_GT(exporter_.count(order::kind::evicted), 0U) << "the exporter evicted no data";
    EXPECT_GT(importer_.count(order::kind::evicted), 0U) << "the importer evicted no data";
    EXPECT_GT(exporter_.count(order::kind::spilled), 0U) << "no data went to the spill file";
  }

  [[nodiscard]] std::string summary() {
    const auto mebi = [](std::uint64_t bytes) { return std::to_string(bytes / MiB) + " MiB"; };
    return std::to_string(past_.step()) + " operations with seed " + std::to_string(seed_) + ": " +
           std::to_string(exports_) + " exports, " + std::to_string(openings_) + " openings, " +
           std::to_string(spread_) + " of " + std::to_string(launches_) + " launches on both devices, " +
           mebi(exporter_.count(order::kind::evicted)) + " evicted by the exporter and " +
           mebi(importer_.count(order::kind::evicted)) + " by the importer, " +
           mebi(exporter_.count(order::kind::spilled)) + " spilled";
  }

 private:
  struct exported {
    hpeExport handle;
    range where;
  };
  struct allocation {
    std::uint64_t number = 0;
    model bytes;
    std::vector<exported> exports;
    hpe::interval_map<std::size_t, bool> unseen;  // bytes that the importer wrote and the exporter has not seen yet
    std::shared_ptr<int> opened;                  // the number of times that the importer has the allocation open
    [[nodiscard]] std::size_t size() const { return bytes->size(); }
    [[nodiscard]] bool is_small() const { return size() <= largest_small; }
    [[nodiscard]] bool is_held() const { return !exports.empty() || *opened != 0; }
  };
  struct opening {
    std::uint64_t number = 0;
    range where;
    model bytes;
    std::shared_ptr<int> opened;
  };
  // An allocation of the importer, which is never exported.
  struct private_memory {
    std::uint64_t number = 0;
    model bytes;
  };

  // In half of the sequences, each launch over all devices uses all of them. In the other half, hpe decides, and uses
  // all devices only for long launches.
  [[nodiscard]] std::vector<std::string> variables(std::vector<std::string> more) const {
    for (const char* const each : {"HPE_SOFT_MEMORY=12M", "HPE_STAGING_BUFFERS=2"}) more.emplace_back(each);
    more.emplace_back(even_ ? "HPE_SPREAD_CUT=even" : "HPE_SPREAD_CUT=auto");
    return more;
  }

  // Draws an operation. Returns false if the operation is impossible now.
  bool try_one() {
    using on_one = bool (sequence::*)(allocation&);
    using by_importer = bool (sequence::*)();
    using self = sequence;
    static constexpr on_one on_any[] = {
        &self::add_there,      &self::add_there,    &self::add_over_there, &self::add_over_there, &self::mix_over_there,
        &self::mix_over_there, &self::write_there,  &self::write_there,    &self::read_there,     &self::read_there,
        &self::copy_here,      &self::begin_export, &self::begin_export,   &self::migrate,        &self::replace};
    static constexpr on_one on_exported[] = {&self::end_export, &self::end_export,    &self::open_one,
                                             &self::open_one,   &self::copy_exported, &self::copy_to_own};
    static constexpr by_importer of_importer[] = {&self::use_opened, &self::use_opened, &self::use_opened,
                                                  &self::mix_opened, &self::close_one,  &self::add_over_own,
                                                  &self::read_own};
    switch (random_.below(5)) {
      case 0:
      case 1: return (this->*random_.any_of(on_any))(any_allocation());
      case 2: {
        std::vector<allocation*> exported;
        for (allocation& a : allocations_)
          if (!a.exports.empty()) exported.push_back(&a);
        return !exported.empty() && (this->*random_.any_of(on_exported))(*random_.any_of(exported));
      }
      default: return (this->*random_.any_of(of_importer))();
    }
  }

  // Most operations use few allocations, so that hpe evicts and spills the others.
  allocation& any_allocation() {
    constexpr std::size_t from_all = 16;  // one of so many operations chooses among all allocations
    return random_.one_in(from_all) ? random_.any_of(allocations_) : allocations_[random_.any_of(hot_)];
  }

  void note(const char* operation, const contents& of, const range& where, effect what, place source = {}) {
    past_.note(operation, of, where, what, source);
  }
  report well(const report& r, const contents& of, const range& where) const { return past_.well(r, of, where); }

  static history::read reader(process& by, std::uint64_t number, order::kind how) {
    return [&by, number, how](const range& which) {
      return by.tell({.what = how, .number = number, .offset = which.begin, .bytes = which.bytes});
    };
  }

  // ---- the exporter's allocations ------------------------------------------------------------------

  allocation allocate() {
    // Most of the larger allocations take a granule, but few bytes, so that their eviction is fast.
    constexpr std::size_t least = largest_small + 1;
    constexpr std::size_t sizes[] = {1,     1000,  5000,  65537,     largest_small,  least,
                                     least, least, least, 300 * KiB, 2 * MiB + 5000, 3 * MiB};
    constexpr std::int32_t places[] = {0, 0, 1, 1, striped, on_host};
    allocation made;
    const std::size_t size = random_.any_of(sizes);
    const report there = exporter_.tell({.what = order::kind::allocate, .on = random_.any_of(places), .bytes = size});
    made.bytes = std::make_shared<contents>(contents{++ids_, std::vector<std::byte>(size)});
    note("allocation", *made.bytes, {0, size}, effect::sets);
    // An allocation in host memory can fail, because hpe never moves host memory to the spill file. Then allocates on
    // device 0.
    made.number = there.status == HPE_ERROR_OUT_OF_MEMORY ? exporter_.allocate(size, 0)
                                                          : well(there, *made.bytes, {0, size}).value;
    made.opened = std::make_shared<int>(0);
    return made;
  }

  // Whether other processes may use the memory, or blocks of the memory.
  bool busy(const allocation& it) const {
    const auto held_and_small = [](const allocation& a) { return a.is_small() && a.is_held(); };
    if (!it.is_small()) return it.is_held();
    return std::ranges::any_of(opened_, [](const opening& o) { return o.bytes->size() <= largest_small; }) ||
           std::ranges::any_of(allocations_, held_and_small);
  }

  // The most granules of a device that exports and openings hold.
  std::size_t held() const {
    std::size_t sum = freed_;
    for (const allocation& a : allocations_)
      if (a.is_held()) sum += a.bytes->granules();
    return sum;
  }
  // Whether the data of a launch fits on each device beside the data that exports and openings hold.
  bool fits(const allocation& it, const allocation* other = nullptr) const {
    std::size_t needed = held() + (it.is_held() ? 0 : it.bytes->granules());
    if (other != nullptr && !other->is_held()) needed += other->bytes->granules();
    return needed <= device_granules;
  }

  static void see(allocation& it, const range& r) { it.unseen.erase(r.begin, r.begin + r.bytes); }
  void synchronise(allocation& it, const range& r) {
    if (it.unseen.overlaps(r.begin, r.begin + r.bytes)) synchronise(it);
  }
  void synchronise(allocation& it) {
    if (it.unseen.empty()) return;
    note("begin and end of an export", *it.bytes, it.bytes->whole(), effect::none);
    exporter_.end(exporter_.begin(it.number, 0, it.size()));
    see(it, it.bytes->whole());
  }
  // Prepares a write by the exporter's CPU code.
  void synchronise_blocks(allocation& it) {
    for (allocation& each : allocations_)
      if (&each == &it || (each.is_small() && it.is_small())) synchronise(each);
  }

  bool add_there(allocation& it) {
    const range r = random_.words_of(*it.bytes);
    if (!fits(it)) return false;
    const std::uint64_t what = random_.number();
    note("kernel that adds", *it.bytes, r, effect::changes);
    well(exporter_.tell({.what = order::kind::add,
                         .on = static_cast<std::int32_t>(random_.below(2)),
                         .number = it.number,
                         .offset = r.begin,
                         .bytes = r.bytes,
                         .seed = what}),
         *it.bytes, r);
    it.bytes->add(r, what);
    return true;
  }

  // Counts a launch of a PTX kernel over all devices.
  void count(const report& launch) {
    ++launches_;
    if (launch.value > 1) ++spread_;
  }
  // If the importer uses the memory, the order ends only when the kernel has ended; otherwise the kernel may still wait
  // or run during the next orders.
  bool add_over_there(allocation& it) {
    const range r = random_.words_of(*it.bytes);
    if (r.bytes == 0 || !fits(it)) return false;
    const std::uint64_t what = random_.number();
    note("PTX kernel that adds", *it.bytes, r, effect::changes);
    count(well(exporter_.tell({.what = order::kind::add_over,
                               .number = it.number,
                               .offset = r.begin,
                               .bytes = r.bytes,
                               .seed = what,
                               .from = !busy(it) && random_.one_in(2)}),
               *it.bytes, r));
    it.bytes->add(r, what);
    return true;
  }

  bool mix_over_there(allocation& it) {
    const allocation& other = any_allocation();
    if (&other == &it || !fits(it, &other)) return false;
    const range r = random_.words_of(*it.bytes, {0, std::min(it.size(), other.size())});
    if (r.bytes == 0) return false;
    const std::size_t from = random_.one_in(2) ? r.begin : random_.below(other.size() - r.bytes + 1) / 4 * 4;
    const std::uint64_t key = random_.number();
    note("PTX kernel that mixes", *it.bytes, r, effect::changes, {other.bytes->id, from});
    count(well(exporter_.tell({.what = order::kind::mix_over,
                               .number = it.number,
                               .offset = r.begin,
                               .bytes = r.bytes,
                               .seed = key,
                               .from = !busy(it) && !busy(other) && random_.one_in(2),
                               .other = other.number,
                               .other_offset = from}),
               *it.bytes, r));
    it.bytes->mix(r, *other.bytes, from, key);
    return true;
  }

  bool write_there(allocation& it) {
    if (busy(it)) return false;
    synchronise_blocks(it);
    const range r = random_.part_of(*it.bytes);
    const std::uint64_t seed = random_.number();
    const bool copies = random_.one_in(2);
    note(copies ? "copy from ordinary memory" : "write by CPU code", *it.bytes, r, effect::sets);
    well(exporter_.tell({.what = copies ? order::kind::fill_copy : order::kind::fill,
                         .number = it.number,
                         .offset = r.begin,
                         .bytes = r.bytes,
                         .seed = seed}),
         *it.bytes, r);
    it.bytes->fill(r, seed);
    return true;
  }

  bool read_there(allocation& it) {
    const range r = random_.part_of(*it.bytes);
    synchronise(it, r);
    const bool copies = random_.one_in(2);
    past_.expect_bytes(copies ? "copy to ordinary memory" : "read by CPU code", *it.bytes, r,
                       reader(exporter_, it.number, copies ? order::kind::hash_copy : order::kind::hash));
    return true;
  }

  // Copies bytes that the exporter exports to another allocation of the exporter.
  bool copy_here(allocation& it) {
    allocation& from = any_allocation();
    if (&from == &it || from.exports.empty() || busy(it) || !fits(it)) return false;
    const exported& what = random_.any_of(from.exports);
    const range r = random_.part_of(*from.bytes, {what.where.begin, std::min(what.where.bytes, it.size())});
    const std::size_t to = random_.below(it.size() - r.bytes + 1);
    const range source{what.where.begin + r.begin, r.bytes};
    synchronise(from, source);
    synchronise_blocks(it);
    note("hpeExportCopy of the own export", *it.bytes, {to, r.bytes}, effect::sets, {from.bytes->id, source.begin});
    well(exporter_.copy(it.number, to, what.handle, r.begin, r.bytes), *it.bytes, {to, r.bytes});
    it.bytes->copy({to, r.bytes}, *from.bytes, source.begin);
    return true;
  }

  bool migrate(allocation& it) {
    note("migration", *it.bytes, it.bytes->whole(), effect::none);
    const report r = exporter_.tell(
        {.what = order::kind::migrate, .on = static_cast<std::int32_t>(random_.below(2)), .number = it.number});
    EXPECT_TRUE(r.status == HPE_SUCCESS || r.status == HPE_ERROR_NOT_SUPPORTED)
        << r.words << past_.tail({it.bytes->id, 0});
    return true;
  }

  bool replace(allocation& it) {
    if (!random_.one_in(4)) return false;  // seldom, because allocation and freeing are slow
    while (!it.exports.empty()) end_export(it);
    if (*it.opened != 0) freed_ += it.bytes->granules();
    exporter_.free(it.number);
    it = allocate();
    return true;
  }

  // ---- exports and openings ------------------------------------------------------------------------

  bool begin_export(allocation& it) {
    constexpr std::size_t most_exports = 3;
    constexpr std::size_t most_held = device_granules / 2;  // so that the data of most launches fits beside
    if (it.exports.size() >= most_exports) return false;
    if (!it.is_held() && held() + it.bytes->granules() > most_held) return false;
    const range r = random_.one_in(2) ? it.bytes->whole() : random_.part_of(*it.bytes);
    note("begin of an export", *it.bytes, r, effect::none);
    const report made =
        well(exporter_.tell({.what = order::kind::begin, .number = it.number, .offset = r.begin, .bytes = r.bytes}),
             *it.bytes, r);
    it.exports.push_back({made.handle, r});
    see(it, r);
    ++exports_;
    return true;
  }

  bool end_export(allocation& it) {
    const auto which = it.exports.begin() + static_cast<std::ptrdiff_t>(random_.below(it.exports.size()));
    note("end of an export", *it.bytes, which->where, effect::none);
    well(exporter_.tell({.what = order::kind::end, .handle = which->handle}), *it.bytes, which->where);
    see(it, which->where);
    it.exports.erase(which);
    return true;
  }

  bool open_one(allocation& it) {
    if (opened_.size() > 5) return false;
    const exported& what = random_.any_of(it.exports);
    note("opening", *it.bytes, what.where, effect::none);
    const report r = well(importer_.tell({.what = order::kind::open, .handle = what.handle}), *it.bytes, what.where);
    opened_.push_back({r.value, what.where, it.bytes, it.opened});
    ++*it.opened;
    ++openings_;
    return true;
  }

  bool close_one() {
    if (opened_.empty()) return false;
    const auto which = opened_.begin() + static_cast<std::ptrdiff_t>(random_.below(opened_.size()));
    note("closing", *which->bytes, which->where, effect::none);
    importer_.free(which->number);
    --*which->opened;
    const bool of_freed =
        std::ranges::none_of(allocations_, [&](const allocation& a) { return a.bytes == which->bytes; });
    if (of_freed && *which->opened == 0) freed_ -= which->bytes->granules();
    opened_.erase(which);
    return true;
  }

  bool copy_exported(allocation& it) {
    const exported& what = random_.any_of(it.exports);
    const auto copy = [&](const range& r) {
      return importer_.tell(
          {.what = order::kind::hash_export, .bytes = r.bytes, .from = r.begin, .handle = what.handle});
    };
    past_.expect_bytes("importer's hpeExportCopy to ordinary memory", *it.bytes, random_.part_of(*it.bytes, what.where),
                       copy, what.where.begin);
    return true;
  }

  // ---- the importer's use of opened memory, and of its own -----------------------------------------

  // Records that the importer writes opened bytes. `r`: within the opened bytes. Returns the bytes' range within the
  // allocation.
  range note_write(const char* name, const opening& by, const range& r, effect what, place source = {}) {
    const range there{by.where.begin + r.begin, r.bytes};
    note(name, *by.bytes, there, what, source);
    for (allocation& it : allocations_)
      if (it.bytes == by.bytes && r.bytes != 0) {
        see(it, there);
        it.unseen.insert_merged(there.begin, there.begin + there.bytes, true);
      }
    return there;
  }

  bool use_opened() {
    if (opened_.empty()) return false;
    const opening& it = random_.any_of(opened_);
    switch (random_.below(3)) {
      case 0: {
        const range r = random_.part_of(*it.bytes, it.where);
        const std::uint64_t seed = random_.number();
        const range there = note_write("importer's write by CPU code", it, r, effect::sets);
        importer_.fill(it.number, r.begin, r.bytes, seed);
        it.bytes->fill(there, seed);
        return true;
      }
      case 1: {
        const range r = random_.words_of(*it.bytes, it.where);
        if (it.where.begin % 4 != 0 || r.bytes == 0) return false;
        const std::uint64_t what = random_.number();
        const bool over = random_.one_in(2);
        const range there = note_write(over ? "importer's PTX kernel that adds" : "importer's kernel that adds", it, r,
                                       effect::changes);
        well(importer_.tell({.what = over ? order::kind::add_over : order::kind::add,
                             .number = it.number,
                             .offset = r.begin,
                             .bytes = r.bytes,
                             .seed = what}),
             *it.bytes, there);
        it.bytes->add(there, what);
        return true;
      }
      default:
        past_.expect_bytes("importer's read by CPU code", *it.bytes, random_.part_of(*it.bytes, it.where),
                           reader(importer_, it.number, order::kind::hash), it.where.begin);
        return true;
    }
  }

  // A kernel of the importer that reads memory of its own and writes opened memory, or the other way round.
  bool mix_opened() {
    if (opened_.empty()) return false;
    const opening& it = random_.any_of(opened_);
    private_memory& own = random_.any_of(own_);
    if (it.where.begin % 4 != 0) return false;
    const range r = random_.words_of(*it.bytes, {it.where.begin, std::min(it.where.bytes, own.bytes->size())});
    if (r.bytes == 0) return false;
    const std::size_t from = it.where.begin + r.begin;
    const std::uint64_t key = random_.number();
    const bool writes_opened = random_.one_in(2);
    if (writes_opened)
      note_write("importer's PTX kernel that mixes", it, r, effect::changes, {own.bytes->id, r.begin});
    else
      note("importer's PTX kernel that mixes", *own.bytes, r, effect::changes, {it.bytes->id, from});
    count(well(importer_.tell({.what = order::kind::mix_over,
                               .number = writes_opened ? it.number : own.number,
                               .offset = r.begin,
                               .bytes = r.bytes,
                               .seed = key,
                               .other = writes_opened ? own.number : it.number,
                               .other_offset = r.begin}),
               *it.bytes, {from, r.bytes}));
    if (writes_opened)
      it.bytes->mix({from, r.bytes}, *own.bytes, r.begin, key);
    else
      own.bytes->mix(r, *it.bytes, from, key);
    return true;
  }

  private_memory allocate_own() {
    constexpr std::size_t sizes[] = {MiB, 2 * MiB, 3 * MiB, 5 * MiB};
    const std::size_t size = sizes[own_.size() % std::size(sizes)];
    private_memory made;
    made.bytes = std::make_shared<contents>(contents{++ids_, std::vector<std::byte>(size)});
    note("importer's allocation", *made.bytes, {0, size}, effect::sets);
    made.number = importer_.allocate(size, static_cast<std::int32_t>(own_.size() / std::size(sizes)));
    return made;
  }

  bool copy_to_own(allocation& it) {
    const exported& what = random_.any_of(it.exports);
    private_memory& own = random_.any_of(own_);
    const range r = random_.part_of(*it.bytes, {what.where.begin, std::min(what.where.bytes, own.bytes->size())});
    const range to{random_.below(own.bytes->size() - r.bytes + 1), r.bytes};
    const std::size_t from = what.where.begin + r.begin;
    note("importer's hpeExportCopy", *own.bytes, to, effect::sets, {it.bytes->id, from});
    well(importer_.copy(own.number, to.begin, what.handle, r.begin, r.bytes), *own.bytes, to);
    own.bytes->copy(to, *it.bytes, from);
    return true;
  }

  bool add_over_own() {
    private_memory& own = random_.any_of(own_);
    const range r = random_.words_of(*own.bytes);
    if (r.bytes == 0) return false;
    const std::uint64_t what = random_.number();
    note("importer's PTX kernel that adds", *own.bytes, r, effect::changes);
    count(well(importer_.tell({.what = order::kind::add_over,
                               .number = own.number,
                               .offset = r.begin,
                               .bytes = r.bytes,
                               .seed = what,
                               .from = random_.one_in(2)}),
               *own.bytes, r));
    own.bytes->add(r, what);
    return true;
  }

  bool read_own() {
    const private_memory& own = random_.any_of(own_);
    past_.expect_bytes("importer's read by CPU code", *own.bytes, random_.part_of(*own.bytes),
                       reader(importer_, own.number, random_.one_in(2) ? order::kind::hash_copy : order::kind::hash));
    return true;
  }

  const std::uint64_t seed_;
  const bool even_;  // whether each launch over all devices uses both devices
  draws random_;
  const temporary_folder folder_;
  process exporter_;
  process importer_;
  history past_;
  std::vector<allocation> allocations_;  // of the exporter
  std::vector<opening> opened_;
  std::vector<private_memory> own_;   // of the importer
  std::array<std::size_t, 5> hot_{};  // the allocations that most operations use
  std::uint64_t ids_ = 0;             // the number of allocations so far
  std::size_t exports_ = 0;
  std::size_t openings_ = 0;
  std::size_t launches_ = 0;  // launches of PTX kernels over all devices
  std::size_t spread_ = 0;    // those of these launches that used both devices
  std::size_t freed_ = 0;     // granules of allocations that were freed while they were open
};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const given = std::getenv(variable);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

// HPE_TEST_EXPORT_STEPS operations, in sequences of at most `longest` operations. The first sequence has the seed
// HPE_TEST_EXPORT_SEED, and each other the next number. Without HPE_TEST_EXPORT_STEPS, the test makes fewer operations
// on a busy machine.
TEST(Exports, AgreeWithAModelInAnySequenceOfOperations) {
  using clock = std::chrono::steady_clock;
  constexpr std::uint64_t longest = 20000;
  const bool has_limit = std::getenv("HPE_TEST_EXPORT_STEPS") == nullptr;
  const clock::time_point limit = clock::now() + std::chrono::seconds(20);
  std::uint64_t seed = number_from("HPE_TEST_EXPORT_SEED", fresh_seed());
  std::uint64_t left = number_from("HPE_TEST_EXPORT_STEPS", 5000);
  for (; left != 0; ++seed) {
    sequence all(seed);
    std::uint64_t n = 0;
    const auto how_to_repeat = [&] {
      return ::testing::Message() << "to repeat: HPE_TEST_EXPORT_SEED=" << seed << " HPE_TEST_EXPORT_STEPS=" << n;
    };
    while (n < std::min(left, longest) && !(has_limit && clock::now() > limit)) {
      ++n;
      SCOPED_TRACE(how_to_repeat());
      all.step();
      if (::testing::Test::HasFailure()) return;
    }
    SCOPED_TRACE(how_to_repeat());
    all.finish();
    if (::testing::Test::HasFailure()) return;
    left = has_limit ? 0 : left - n;
    std::printf("%s; %llu operations left\n", all.summary().c_str(), static_cast<unsigned long long>(left));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace node_test

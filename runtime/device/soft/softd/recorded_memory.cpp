// The record has a *layer* for each combination of a granularity (words or bytes), a colour and a use. Page p of all
// layers of a granularity is about the same addresses. The scan looks only at pages that exist in the file.
//
// Pages that the last launch has touched are cleared and remain, because a new page takes longer than a cleared one.
// The other pages are freed if they are many, because every launch looks at all pages of the file.

#include "runtime/device/soft/softd/recorded_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

namespace hpe::device::soft {

namespace {

using ptx::recorded_use;

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t layer_count = ptx::recorded_colours * ptx::recorded_uses;  // of a granularity
constexpr std::size_t pages_of_part = 64;

using page = std::array<std::uint8_t, page_bytes>;

std::size_t layer_of(std::size_t colour, std::size_t use) { return colour * ptx::recorded_uses + use; }

bool is_zero(const page& bytes) {
  static constexpr page zeros{};
  return std::memcmp(bytes.data(), zeros.data(), page_bytes) == 0;
}

// Returns the bytes of one page, and those of the other page where they are zero. The compiler vectorises the loop,
// because it loads both bytes in any case.
void join(const page& one, const page& other, page& result) {
  for (std::size_t n = 0; n < page_bytes; ++n) {
    const std::uint8_t first = one[n], second = other[n];
    result[n] = first != 0 ? first : second;
  }
}

// Whether any byte is non-zero in both pages.
bool meet(const page& one, const page& other) {
  std::uint8_t both = 0;
  for (std::size_t n = 0; n < page_bytes; ++n) {
    const std::uint8_t first = one[n], second = other[n];
    both = static_cast<std::uint8_t>(both | (first != 0 ? second : 0));
  }
  return both != 0;
}

// Returns the end of the run of equal bytes that begins at `begin`.
std::size_t end_of_run(const page& bytes, std::size_t begin) {
  constexpr std::size_t word_bytes = sizeof(std::uint64_t), words = 8;  // that the compiler compares together
  const std::uint64_t equal = 0x0101010101010101ULL * bytes[begin];
  const auto difference = [&](std::size_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, word_bytes);
    return word ^ equal;
  };
  const auto differ = [&](std::size_t at) {
    std::uint64_t any = 0;
    for (std::size_t k = 0; k < words; ++k) any |= difference(at + k * word_bytes);
    return any != 0;
  };
  std::size_t n = begin;
  if (n + word_bytes <= page_bytes && difference(n) == 0)  // not for the short runs of scattered accesses
    while (n + words * word_bytes <= page_bytes && !differ(n)) n += words * word_bytes;
  for (; n + word_bytes <= page_bytes; n += word_bytes)
    if (const std::uint64_t found = difference(n); found != 0)
      return n + static_cast<std::size_t>(std::countr_zero(found)) / 8;
  while (n < page_bytes && bytes[n] == bytes[begin]) ++n;
  return n;
}

/// Joins bytes with the same number into stretches.
class stretches {
 public:
  stretches(std::vector<recorded_stretch>& to, recorded_use how) : to_(to), how_(how) {}

  // `unit`: the number of addresses for each byte.
  void add(std::uint64_t address, const page& bytes, std::uint64_t unit) {
    for (std::size_t n = 0; n < page_bytes;) {
      const std::size_t end = end_of_run(bytes, n);
      if (bytes[n] != 0) extend(address + n * unit, address + end * unit, bytes[n]);
      n = end;
    }
  }

 private:
  void extend(std::uint64_t begin, std::uint64_t end, std::uint8_t number) {
    if (!to_.empty() && to_.back().how == how_ && to_.back().number == number && to_.back().end == begin)
      to_.back().end = end;
    else
      to_.push_back({begin, end, how_, number});
  }

  std::vector<recorded_stretch>& to_;
  recorded_use how_;
};

}  // namespace

/// Adjacent pages of one granularity.
struct recorded_memory::part {
  bool has_words = false;
  std::uint64_t first = 0;                          // the first page, counted from the beginning of a layer
  std::array<std::uint64_t, layer_count> exists{};  // by layer: bit n: page first + n exists
  // Results:
  std::array<std::uint64_t, layer_count> touched{};  // by layer: bit n: page first + n is not zero
  std::array<std::vector<recorded_stretch>, ptx::recorded_uses> found;
  std::vector<recorded_race> races;
};

recorded_memory::recorded_memory(const uvas_layout& layout, os::file_descriptor file)
    : places_(record_places_of(layout)), file_(std::move(file)), log_(file_.get(), places_.bytes()) {
  space_ = os::reservation::at(places_.begin, places_.bytes());
  HPE_REQUIRE(
      space_.size() != 0, HPE_ERROR_INITIALIZATION,
      "the {} bytes at {:#x}, in which HPE_CHECK records accesses, are not free in the process of a soft device; "
      "set HPE_SEGMENT_SIZE to a smaller size, such as 64G",
      places_.bytes(), places_.begin);
  os::map_file(space_.data(), space_.size(), os::page_protection::read_write, file_.get(), 0);
  os::exclude_from_core(space_.data(), space_.size());
}

bool recorded_memory::contains(std::uint64_t address) const noexcept {
  return address - reinterpret_cast<std::uint64_t>(space_.data()) < space_.size();
}

// Returns the pages that exist, without results, in ascending order.
std::vector<recorded_memory::part> recorded_memory::find_parts() const {
  std::vector<part> result;
  std::array<std::vector<std::pair<std::uint64_t, std::size_t>>, 2>
      places;  // by granularity: number and index of a part
  const auto part_at = [&](bool has_words, std::uint64_t number) -> part& {
    auto& known = places[has_words ? 1 : 0];
    const auto at = std::lower_bound(known.begin(), known.end(), std::pair(number, std::size_t{0}));
    if (at != known.end() && at->first == number) return result[at->second];
    known.insert(at, {number, result.size()});
    result.emplace_back();
    result.back().has_words = has_words;
    result.back().first = number * pages_of_part;
    return result.back();
  };
  const std::uint64_t stride = places_.colour_stride(), words = places_.size / ptx::record_places::word;
  const auto last = static_cast<off_t>(places_.bytes());
  for (off_t at = 0;;) {
    const off_t begin = ::lseek(file_.get(), at, SEEK_DATA);  // fails if no data follows
    if (begin < 0 || begin >= last) break;
    at = std::min(last, ::lseek(file_.get(), begin, SEEK_HOLE));
    for (auto offset = static_cast<std::uint64_t>(begin); offset < static_cast<std::uint64_t>(at);) {
      const std::uint64_t colour = offset / stride, in_colour = offset % stride;
      const bool has_words = in_colour < ptx::recorded_uses * words;
      const std::uint64_t in_uses = has_words ? in_colour : in_colour - ptx::recorded_uses * words;
      const std::uint64_t size = has_words ? words : places_.size;
      const std::uint64_t number = in_uses % size / page_bytes, in_part = number % pages_of_part;
      const std::uint64_t count =
          std::min({pages_of_part - in_part, (static_cast<std::uint64_t>(at) - offset) / page_bytes,
                    size / page_bytes - number});
      const std::uint64_t bits = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
      part_at(has_words, number / pages_of_part).exists[layer_of(colour, in_uses / size)] |= bits << in_part;
      offset += count * page_bytes;
    }
  }
  std::sort(result.begin(), result.end(), [](const part& a, const part& b) {
    return std::pair(a.has_words, a.first) < std::pair(b.has_words, b.first);
  });
  return result;
}

/// One page of all layers.
class recorded_memory::page_scan {
 public:
  page_scan(const recorded_memory& in, part& what, std::uint64_t number) : in_(in), what_(what), number_(number) {
    static constexpr page zeros{};
    for (std::size_t layer = 0; layer < layer_count; ++layer) {
      pages_[layer] = &zeros;
      if ((what.exists[layer] >> number & 1) == 0) continue;
      const page& here = in_.page_at(what, layer, number);
      if (is_zero(here)) continue;
      what.touched[layer] |= std::uint64_t{1} << number;
      pages_[layer] = &here;
    }
  }

  void run(const ptx::site_pairs* pairs) {
    for (std::size_t use = 0; use < ptx::recorded_uses; ++use) add_stretches(use);
    if (pairs == nullptr) return;
    using enum recorded_use;
    constexpr std::pair<recorded_use, recorded_use> uses[] = {
        {write, write}, {write, read}, {read, write}, {write, atomic}, {atomic, write}, {read, atomic}, {atomic, read}};
    for (const auto& [first, second] : uses) compare(first, second, *pairs);
  }

 private:
  [[nodiscard]] bool is_empty(std::size_t layer) const { return (what_.touched[layer] >> number_ & 1) == 0; }
  [[nodiscard]] const page& of(std::size_t colour, std::size_t use) const { return *pages_[layer_of(colour, use)]; }
  [[nodiscard]] std::uint64_t unit() const { return what_.has_words ? ptx::record_places::word : 1; }
  [[nodiscard]] std::uint64_t address() const {
    return in_.places_.base + (what_.first + number_) * page_bytes * unit();
  }

  // Adds the stretches of a use, for which colours do not matter.
  void add_stretches(std::size_t use) {
    std::size_t used = 0, any = 0;
    for (std::size_t colour = 0; colour < ptx::recorded_colours; ++colour) {
      if (is_empty(layer_of(colour, use))) continue;
      ++used;
      any = colour;
    }
    if (used == 0) return;
    stretches to(what_.found[use], static_cast<recorded_use>(use));
    if (used == 1) return to.add(address(), of(any, use), unit());
    page joined;
    join(of(0, use), of(1, use), joined);
    if (!is_empty(layer_of(2, use))) join(page(joined), of(2, use), joined);
    to.add(address(), joined, unit());
  }

  // Adds the races between accesses of the first colour and accesses of the second colour.
  void compare(recorded_use first, recorded_use second, const ptx::site_pairs& pairs) {
    const std::size_t one = layer_of(0, static_cast<std::size_t>(first));
    const std::size_t other = layer_of(1, static_cast<std::size_t>(second));
    if (is_empty(one) || is_empty(other)) return;
    const page &a = *pages_[one], &b = *pages_[other];
    if (!meet(a, b)) return;
    for (std::size_t n = 0; n < page_bytes; ++n) {
      if (a[n] == 0 || b[n] == 0) continue;
      if (!pairs.race(first, a[n], second, b[n])) continue;
      const std::uint64_t begin = address() + n * unit();
      const auto is_same = [&](const recorded_race& r) {
        return r.earlier.how == first && r.later.how == second && r.earlier.number == a[n] && r.later.number == b[n];
      };
      const auto known = std::find_if(what_.races.begin(), what_.races.end(), is_same);
      if (known == what_.races.end())
        what_.races.push_back({false, begin, begin + unit(), {first, a[n]}, {second, b[n]}});
      else if (known->end == begin)
        known->end += unit();
    }
  }

  const recorded_memory& in_;
  part& what_;
  std::uint64_t number_;
  std::array<const page*, layer_count> pages_{};
};

void recorded_memory::scan(part& what, const ptx::site_pairs* pairs) const {
  std::uint64_t any = 0;
  for (const std::uint64_t each : what.exists) any |= each;
  for (; any != 0; any &= any - 1) {
    const auto number = static_cast<std::uint64_t>(std::countr_zero(any));
    page_scan(*this, what, number).run(pairs);
    // The cache still has the pages.
    for (std::size_t layer = 0; layer < layer_count; ++layer)
      if ((what.touched[layer] >> number & 1) != 0) page_at(what, layer, number).fill(0);
  }
}

recorded_memory::page& recorded_memory::page_at(const part& what, std::size_t layer, std::uint64_t number) const {
  const auto use = static_cast<recorded_use>(layer % ptx::recorded_uses);
  const std::size_t colour = layer / ptx::recorded_uses;
  const std::uint64_t offset = what.has_words ? places_.words_of(use, colour) : places_.bytes_of(use, colour);
  return *reinterpret_cast<page*>(space_.data() + offset + (what.first + number) * page_bytes);
}

void recorded_memory::free_idle(const std::vector<part>& parts) const {
  constexpr std::size_t few_pages = 256;
  std::size_t touched = 0, idle = 0;
  for (const part& p : parts)
    for (std::size_t layer = 0; layer < layer_count; ++layer) {
      touched += static_cast<std::size_t>(std::popcount(p.touched[layer]));
      idle += static_cast<std::size_t>(std::popcount(p.exists[layer] & ~p.touched[layer]));
    }
  if (idle <= std::max(few_pages, touched)) return;
  for (const part& p : parts)
    for (std::size_t layer = 0; layer < layer_count; ++layer)
      for (std::uint64_t left = p.exists[layer] & ~p.touched[layer]; left != 0;) {
        const int first = std::countr_zero(left), count = std::countr_one(left >> first);
        const auto* const begin =
            reinterpret_cast<const std::byte*>(&page_at(p, layer, static_cast<std::uint64_t>(first)));
        os::discard(file_.get(), static_cast<std::uint64_t>(begin - space_.data()),
                    static_cast<std::uint64_t>(count) * page_bytes);
        left &= first + count == 64 ? 0 : ~std::uint64_t{0} << (first + count);
      }
}

void recorded_memory::collect(const ptx::site_pairs* pairs, std::vector<recorded_race> others,
                              const run_function& run) {
  std::vector<part> parts = find_parts();
  run(parts.size(), [&](std::size_t n) { scan(parts[n], pairs); });
  std::vector<recorded_stretch> all;
  for (std::size_t use = 0; use < ptx::recorded_uses; ++use)
    for (const part& p : parts) {
      auto from = p.found[use].begin();
      const auto end = p.found[use].end();
      if (from != end && !all.empty() && all.back().how == from->how && all.back().number == from->number &&
          all.back().end == from->begin)
        all.back().end = (from++)->end;
      all.insert(all.end(), from, end);
    }
  for (part& p : parts)
    for (recorded_race& each : p.races) {
      const auto is_same = [&](const recorded_race& r) {
        return !r.is_shared && r.earlier.how == each.earlier.how && r.earlier.number == each.earlier.number &&
               r.later.how == each.later.how && r.later.number == each.later.number;
      };
      if (std::none_of(others.begin(), others.end(), is_same)) others.push_back(std::move(each));
    }
  log_.append(all, others);
  free_idle(parts);
}

}  // namespace hpe::device::soft

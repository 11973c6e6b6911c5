#include "runtime/coherence/resident_pieces.h"

#include <utility>

namespace hpe::coherence {

void resident_pieces::reset(std::uint64_t bytes) noexcept {
  unsettle();
  pieces_.clear();
  leaving_ = 0;
  fingerprints_ = 0;
  zero_copies_ = 0;
  bytes_ = bytes;
  mapped_ = 0;
}

void resident_pieces::add(mapped_range part, std::uint64_t used) {
  pieces_.insert(part.range.begin, part.range.end, {part.home, used, false, part.zero_copy, {}, {}, {}, {}});
  zero_copies_ += part.zero_copy ? 1 : 0;
  mapped_ += part.range.size();
}

void resident_pieces::remove(std::uint64_t begin) {
  unsettle();
  const auto found = pieces_.find(begin);
  set_leaving(begin, false);
  forget_fingerprints({begin, begin + 1});
  mapped_ -= found->second.end - found->first;
  zero_copies_ -= found->second.value.zero_copy ? 1 : 0;
  pieces_.erase(found);
}

void resident_pieces::set_zero_copy(std::uint64_t begin, bool zero_copy) {
  if (zero_copy) unsettle();
  bool& now = pieces_.find(begin)->second.value.zero_copy;
  zero_copies_ += zero_copy ? 1 : 0;
  zero_copies_ -= now ? 1 : 0;
  now = zero_copy;
}

std::vector<mapped_range> resident_pieces::mapped() const {
  std::vector<mapped_range> result;
  result.reserve(pieces_.size());
  for (const auto& [begin, piece] : pieces_)
    result.push_back({{begin, piece.end}, piece.value.home, piece.value.zero_copy});
  return result;
}

bool resident_pieces::covers(byte_range range) const {
  if (mapped_ == bytes_ || range.empty()) return true;
  for (auto at = pieces_.find(range.begin); at != pieces_.end() && at->first <= range.begin; ++at) {
    range.begin = at->second.end;
    if (range.empty()) return true;
  }
  return false;
}

bool resident_pieces::has_zero_copy(byte_range range) const {
  if (zero_copies_ == 0) return false;
  for (auto at = pieces_.from(range.begin); at != pieces_.end() && at->first < range.end; ++at)
    if (at->second.value.zero_copy) return true;
  return false;
}

bool resident_pieces::usable(byte_range range) const {
  if (!covers(range)) return false;
  if (leaving_ == 0) return true;
  for (auto at = pieces_.from(range.begin); at != pieces_.end() && at->first < range.end; ++at)
    if (at->second.value.leaving) return false;
  return true;
}

byte_range resident_pieces::around(byte_range range) const {
  if (zero_copies_ == 0 && usable({0, bytes_})) return {0, bytes_};
  return {pieces_.find(range.begin)->first, pieces_.find(range.end - 1)->second.end};
}

bool resident_pieces::copied_out(byte_range range) const {
  for (auto at = pieces_.from(range.begin); at != pieces_.end() && at->first < range.end; ++at)
    if (at->second.value.copied) return true;
  return false;
}

void resident_pieces::set_fingerprint(std::uint64_t begin, piece_fingerprint of) {
  resident_piece& its = pieces_.find(begin)->second.value;
  fingerprints_ += its.on_host ? 0 : 1;
  its.on_host = std::move(of);
  its.latest.reset();
}

void resident_pieces::forget_fingerprints(byte_range range) noexcept {
  if (fingerprints_ == 0) return;
  for (auto at = pieces_.from(range.begin); at != pieces_.end() && at->first < range.end; ++at) {
    resident_piece& its = at->second.value;
    fingerprints_ -= its.on_host ? 1 : 0;
    its.on_host.reset();
    its.latest.reset();
  }
}

void resident_pieces::outdate(byte_range range) {
  forget_fingerprints(range);
  for (auto at = pieces_.from(range.begin); at != pieces_.end() && at->first < range.end; ++at)
    if (at->second.value.copied) at->second.value.copied->outdated = true;
}

void resident_pieces::set_leaving(std::uint64_t begin, bool leaving) {
  if (leaving) unsettle();
  resident_piece& its = pieces_.find(begin)->second.value;
  leaving_ -= its.leaving ? 1 : 0;
  leaving_ += leaving ? 1 : 0;
  its.leaving = leaving;
}

void resident_pieces::use(byte_range range, std::uint64_t now) {
  for (auto at = pieces_.from(range.begin); at != pieces_.end() && at->first < range.end; ++at)
    at->second.value.used = now;
}

}  // namespace hpe::coherence

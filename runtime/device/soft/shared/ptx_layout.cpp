#include "runtime/device/soft/shared/ptx_layout.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

namespace {

ptx_part part_of(const ptx::symbol& s) {
  if (s.where == ptx::symbol::space::constant) return ptx_part::constant;
  return s.is_managed ? ptx_part::managed : ptx_part::global;
}

// A mapping of a memory file that contains PTX texts. The length of each text precedes the text.
class mapped_file {
 public:
  mapped_file(int file, std::size_t bytes) : bytes_(bytes) {
    void* const place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) throw_system_error("mmap of the texts of a PTX module");
    at_ = static_cast<char*>(place);
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file() { ::munmap(at_, bytes_); }
  [[nodiscard]] char* data() const noexcept { return at_; }

 private:
  char* at_ = nullptr;
  std::size_t bytes_;
};

}  // namespace

std::vector<std::uint64_t> ptx_layout::addresses(const ptx_addresses& parts) const {
  std::vector<std::uint64_t> result;
  result.reserve(places.size());
  for (const place_in_part& p : places)
    result.push_back(p.is_there ? parts[static_cast<std::size_t>(p.part)] + p.offset : 0);
  return result;
}

ptx_layout lay_out(const ptx::program& program) {
  ptx_layout result;
  for (const ptx::symbol& s : program.symbols) {
    ptx_layout::place_in_part& p = result.places.emplace_back();
    if (s.where == ptx::symbol::space::shared || s.size == 0) continue;
    p.is_there = true;
    p.part = part_of(s);
    std::size_t& end = result.bytes[static_cast<std::size_t>(p.part)];
    const std::size_t alignment = std::max<std::size_t>(s.alignment, 1);
    p.offset = (end + alignment - 1) / alignment * alignment;
    end = p.offset + s.size;
  }
  return result;
}

os::file_descriptor pack_texts(const std::vector<std::string>& texts, std::size_t& bytes) {
  bytes = 0;
  for (const std::string& text : texts) bytes += sizeof(std::uint64_t) + text.size();
  os::file_descriptor file = os::create_memory_file("hpe-ptx", bytes);
  const mapped_file memory(file.get(), bytes);
  char* at = memory.data();
  for (const std::string& text : texts) {
    const std::uint64_t size = text.size();
    std::memcpy(at, &size, sizeof size);
    std::copy(text.begin(), text.end(), at + sizeof size);
    at += sizeof size + size;
  }
  return file;
}

std::vector<std::string> unpack_texts(int file, std::size_t bytes) {
  const mapped_file memory(file, bytes);
  std::vector<std::string> texts;
  for (const char* at = memory.data(); at < memory.data() + bytes;) {
    std::uint64_t size = 0;
    std::memcpy(&size, at, sizeof size);
    texts.emplace_back(at + sizeof size, size);
    at += sizeof size + size;
  }
  return texts;
}

}  // namespace hpe::device::soft

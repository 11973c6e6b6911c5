#include "interpose/adopted_pointers.h"

#include <pthread.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>

namespace hpe::interpose {

namespace {

// Whether CPU code can read the address. This function makes a system call with an invalid operation: the operating
// system reads the mask at `address` first, and returns EFAULT if it cannot. syscall() cannot be used, because the
// interposed syscall() (io/escapes.cpp) calls this function for its arguments.
bool readable(std::uintptr_t address) noexcept {
  constexpr long mask_bytes = 8;
  constexpr long nothing = ~0;
  long result = SYS_rt_sigprocmask;
  register long bytes __asm__("r10") = mask_bytes;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(nothing), "S"(address & ~std::uintptr_t{mask_bytes - 1}), "d"(0L), "r"(bytes)
                   : "rcx", "r11", "memory");
  return result != -EFAULT;
}

// Pages that CPU code can read, so that repeated calls with the same buffers need no system call. The driver may later
// use the address of such a page for device memory, if the program has freed the page. So all pages are forgotten when
// the program gets the address of device memory. Until then, no call can have this address as an argument.
//
// A slot contains the number of a page and the generation in which the page was found readable.
class readable_pages {
 public:
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  [[nodiscard]] bool has(std::uintptr_t address, std::uint64_t generation) const noexcept {
    return slots_[slot_of(address)].load(std::memory_order_relaxed) == word(address, generation);
  }
  // `generation`: the generation before the page was tested.
  void add(std::uintptr_t address, std::uint64_t generation) noexcept {
    slots_[slot_of(address)].store(word(address, generation), std::memory_order_relaxed);
  }
  void forget() noexcept {
    const std::uint64_t next = generation_.fetch_add(1, std::memory_order_acq_rel) + 1;
    if ((next & most) != 0) return;
    for (auto& slot : slots_) slot.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned page_bits = 12;
  static constexpr unsigned generation_bits = 19;  // an address has 57 bits, and so the number of a page 45
  static constexpr std::uint64_t most = (std::uint64_t{1} << generation_bits) - 1;
  static constexpr std::size_t slots = 1024;

  static std::uint64_t word(std::uintptr_t address, std::uint64_t generation) noexcept {
    return address >> page_bits << generation_bits | (generation & most);
  }
  // Buffers of equal sizes often begin at equal distances, so the upper bits of the number count, too.
  static std::size_t slot_of(std::uintptr_t address) noexcept {
    constexpr unsigned upper = 10;
    const std::uintptr_t page = address >> page_bits;
    return (page ^ page >> upper) % slots;
  }

  std::atomic<std::uint64_t> generation_{1};
  std::array<std::atomic<std::uint64_t>, slots> slots_{};
};

constinit readable_pages known_readable;

}  // namespace

constinit std::atomic<adopted_pointers*> adopted_pointers::the_instance{nullptr};

void adopted_pointers::start() noexcept {
  ::pthread_atfork(nullptr, nullptr, [] { the_instance.store(nullptr); });
  the_instance.store(this, std::memory_order_release);
}

adopted_pointers* adopted_pointers::find(std::uintptr_t address) noexcept {
  constexpr std::uintptr_t first_page = 4096;
  adopted_pointers* const it = the_instance.load(std::memory_order_acquire);
  const std::uint64_t generation = known_readable.generation();
  if (it == nullptr || address < first_page || known_readable.has(address, generation)) return nullptr;
  if (!it->may_know(address) && readable(address)) {
    known_readable.add(address, generation);
    return nullptr;
  }
  return it->bytes_from(address) != 0 ? it : nullptr;
}

void adopted_pointers::program_gets_memory() noexcept { known_readable.forget(); }

}  // namespace hpe::interpose

#include "runtime/ptx/arithmetic/atomic.h"

#include <algorithm>
#include <type_traits>

#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::ptx {

namespace {

using u64 = std::uint64_t;

// Returns a function that atomically replaces the value in memory by change(value, b).
template <class T, class Change>
atomic_function apply(Change) {
  return [](void* address, u64 b, u64) -> u64 {
    auto* const place = static_cast<T*>(address);
    T old = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(place, &old, static_cast<T>(Change{}(old, static_cast<T>(b))), true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    return static_cast<std::make_unsigned_t<T>>(old);
  };
}

template <class T>
atomic_function find_integer(const instruction& i) {
  using enum modifier;
  switch (i.modifiers.one_of(op_and, op_or, op_xor, op_add, op_min, op_max, op_inc, op_dec, op_cas, op_exch)) {
    case op_add:
      return [](void* p, u64 b, u64) -> u64 {
        return static_cast<std::make_unsigned_t<T>>(
            __atomic_fetch_add(static_cast<T*>(p), static_cast<T>(b), __ATOMIC_SEQ_CST));
      };
    case op_exch:
      return [](void* p, u64 b, u64) -> u64 {
        return static_cast<std::make_unsigned_t<T>>(
            __atomic_exchange_n(static_cast<T*>(p), static_cast<T>(b), __ATOMIC_SEQ_CST));
      };
    case op_cas:
      return [](void* p, u64 b, u64 c) -> u64 {
        T expected = static_cast<T>(b);
        __atomic_compare_exchange_n(static_cast<T*>(p), &expected, static_cast<T>(c), false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        return static_cast<std::make_unsigned_t<T>>(expected);
      };
    case op_and: return apply<T>([](T old, [[maybe_unused]] T b) { return old & b; });
    case op_or: return apply<T>([](T old, [[maybe_unused]] T b) { return old | b; });
    case op_xor: return apply<T>([](T old, [[maybe_unused]] T b) { return old ^ b; });
    case op_min: return apply<T>([](T old, [[maybe_unused]] T b) { return std::min(old, b); });
    case op_max: return apply<T>([](T old, [[maybe_unused]] T b) { return std::max(old, b); });
    case op_inc: return apply<T>([](T old, [[maybe_unused]] T b) { return old >= b ? T{0} : static_cast<T>(old + 1); });
    case op_dec:
      return apply<T>([](T old, [[maybe_unused]] T b) { return old == 0 || old > b ? b : static_cast<T>(old - 1); });
    default: return nullptr;
  }
}

// A floating-point operation calls the scalar function of the instruction with the same name, such as add for atom.add.
template <class T, type t, opcode op>
u64 apply_scalar(void* address, u64 b, u64) {
  static const scalar_function function = [] {
    instruction i;
    i.op = op;
    i.types[0] = t;
    i.modifiers.add(modifier::rn);
    return find_scalar(i);
  }();
  static const u64 how = [] {
    instruction i;
    i.types[0] = t;
    return describe(i).pack();
  }();
  auto* const place = static_cast<T*>(address);
  T old = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(place, &old, static_cast<T>(function(old, b, 0, how)), true, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
  }
  return old;
}

template <class T, type t>
atomic_function find_float(const instruction& i) {
  using enum modifier;
  switch (i.modifiers.one_of(op_add, op_min, op_max)) {
    case op_add: return apply_scalar<T, t, opcode::add>;
    case op_min: return t == type::f32 || t == type::f64 ? nullptr : apply_scalar<T, t, opcode::min>;
    case op_max: return t == type::f32 || t == type::f64 ? nullptr : apply_scalar<T, t, opcode::max>;
    default: return nullptr;
  }
}

}  // namespace

atomic_function find_atomic(const instruction& i) {
  const bool counts = i.has(modifier::op_inc) || i.has(modifier::op_dec);
  if (counts && i.types[0] != type::u32) return nullptr;
  switch (i.types[0]) {
    case type::b16:
      return i.has(modifier::op_cas) || i.has(modifier::op_exch) ? find_integer<std::uint16_t>(i) : nullptr;
    case type::b32:
    case type::u32: return find_integer<std::uint32_t>(i);
    case type::s32: return find_integer<std::int32_t>(i);
    case type::b64:
    case type::u64: return find_integer<std::uint64_t>(i);
    case type::s64: return find_integer<std::int64_t>(i);
    case type::f32: return find_float<std::uint32_t, type::f32>(i);
    case type::f64: return find_float<std::uint64_t, type::f64>(i);
    case type::f16: return find_float<std::uint16_t, type::f16>(i);
    case type::bf16: return find_float<std::uint16_t, type::bf16>(i);
    case type::f16x2: return find_float<std::uint32_t, type::f16x2>(i);
    case type::bf16x2: return find_float<std::uint32_t, type::bf16x2>(i);
    default: return nullptr;
  }
}

}  // namespace hpe::ptx

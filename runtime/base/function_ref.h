#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace hpe {

template <class Signature>
class function_ref;

/// A reference to a callable object, for parameters of functions that call the object before they return. Unlike
/// std::function, it allocates no memory.
template <class Result, class... Arguments>
class function_ref<Result(Arguments...)> {
 public:
  template <class Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, function_ref> &&
           std::is_invocable_r_v<Result, Callable&, Arguments...>)
      // NOLINTNEXTLINE(google-explicit-constructor, bugprone-forwarding-reference-overload): callers pass lambdas
      function_ref(Callable&& callable)
  noexcept
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Arguments... arguments) -> Result {
          return (*static_cast<std::remove_reference_t<Callable>*>(object))(std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

 private:
  void* object_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace hpe

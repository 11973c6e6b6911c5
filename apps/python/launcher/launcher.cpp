// The Python module _hpe_launcher: launches kernels of hpe.Kernel (apps/python/hpe/kernels.py) with few instructions.
// For most launches, the module makes the same bytes of hpePackedLaunch as Kernel._launch. For unusual and invalid
// arguments, the module calls Kernel._launch.
//
// The module uses Python's stable interface, and of NumPy's arrays the members that NumPy documents, so one file serves
// all versions of both. All functions run with the GIL.
#include <Python.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hpe/ptx.h"

namespace {

/// The first members of numpy.ndarray (PyArrayObject in NumPy's documentation).
struct array_object {
  PyObject_HEAD;
  char* data;
  int dimensions;
  Py_ssize_t* extents;
  Py_ssize_t* strides;
  PyObject* base;
  PyObject* type;
  int flags;

  static constexpr int writeable = 0x0400;
};

/// The kind of a type of numbers. configure() gets it with the size of the type: kind + 4 * bytes. Python's own numbers
/// have 0 bytes, and fit parameters of all sizes.
enum class number_kind : std::uint8_t { integer, natural, real };

/// The objects of the package hpe. They exist as long as the process.
struct package {
  PyObject* known = nullptr;    // locations.known
  PyObject* lent = nullptr;     // arrays.lent
  PyObject* numbers = nullptr;  // by type: a number (see number_kind)
  PyObject* array = nullptr;    // numpy.ndarray
  PyObject* fail = nullptr;     // raises the error of a failed launch
  PyObject* modes = nullptr;    // IN, OUT, INOUT
  hpeStatus (*launch)(const hpePackedLaunch*) = nullptr;
};
package hpe_package;

/// Names that are looked up in each launch.
struct names {
  PyObject *slow = nullptr, *ranges = nullptr, *owner = nullptr, *strides = nullptr, *accesses = nullptr;
  PyObject *reads = nullptr, *overwrites = nullptr, *shared_mem = nullptr, *device = nullptr;
  PyObject* zero = nullptr;
};
names name;

/// A reference to an object that the holder owns.
class owned {
 public:
  explicit owned(PyObject* object) noexcept : object_(object) {}
  ~owned() { Py_XDECREF(object_); }
  owned(const owned&) = delete;
  owned& operator=(const owned&) = delete;
  explicit operator bool() const noexcept { return object_ != nullptr; }
  [[nodiscard]] PyObject* get() const noexcept { return object_; }

 private:
  PyObject* object_;
};

/// A parameter of a kernel: its bytes, and the bytes up to the next parameter.
struct parameter {
  std::uint32_t size = 0, padding = 0;
};

struct launcher {
  PyObject_HEAD;
  PyObject* heads;  // bytes of hpePackedLaunch, by the arguments of a launch
  parameter* parameters;
  Py_ssize_t count;
};

/// Copies an object of Python's type bytes that has the size of the target; returns false for other objects.
template <class Target>
bool copy_bytes(PyObject* bytes, Target& to) noexcept {
  char* begin = nullptr;
  Py_ssize_t count = 0;
  if (PyBytes_AsStringAndSize(bytes, &begin, &count) != 0 || count != sizeof to) return false;
  std::memcpy(&to, begin, sizeof to);
  return true;
}

/// The bytes of hpePackedLaunch, its parameters and its accesses.
class packed_launch {
 public:
  [[nodiscard]] bool add(const void* bytes, std::size_t count, std::size_t padding = 0) noexcept {
    if (count + padding > bytes_.size() - used_) return false;
    std::memcpy(bytes_.data() + used_, bytes, count);
    std::memset(bytes_.data() + used_ + count, 0, padding);
    used_ += count + padding;
    return true;
  }
  [[nodiscard]] bool set_head(PyObject* bytes) noexcept {
    return copy_bytes(bytes, *reinterpret_cast<hpePackedLaunch*>(bytes_.data()));
  }
  [[nodiscard]] const hpePackedLaunch* get() const noexcept {
    return reinterpret_cast<const hpePackedLaunch*>(bytes_.data());
  }

 private:
  static constexpr std::size_t most = 2048;
  alignas(hpePackedLaunch) std::array<char, most> bytes_;
  std::size_t used_ = sizeof(hpePackedLaunch);  // the head, which follows from the number of accesses, comes last
};

static_assert(sizeof(hpePackedLaunch) == 72, "_HEAD of kernels.py");

/// The arrays that a launch names in `reads` or `overwrites`.
class declared_modes {
 public:
  /// `which`: an array, a list or a tuple; null: none. Returns false for other objects, and for many arrays.
  [[nodiscard]] bool add(PyObject* which, PyObject* mode) noexcept {
    if (which == nullptr) return true;
    if (PyObject_IsInstance(which, hpe_package.array) == 1) return add_one(which, mode);
    const bool is_list = PyList_CheckExact(which) != 0;
    if (!is_list && PyTuple_CheckExact(which) == 0) return false;
    const Py_ssize_t length = is_list ? PyList_Size(which) : PyTuple_Size(which);
    for (Py_ssize_t i = 0; i < length; ++i)
      if (!add_one(is_list ? PyList_GetItem(which, i) : PyTuple_GetItem(which, i), mode)) return false;
    return true;
  }
  /// The mode of the first argument that is this array; null if the launch does not declare any.
  [[nodiscard]] PyObject* take(const PyObject* array) noexcept {
    for (std::size_t i = 0; i < count_; ++i)
      if (all_[i].array == array) {
        PyObject* const mode = all_[i].mode;
        all_[i] = all_[--count_];
        return mode;
      }
    return nullptr;
  }
  [[nodiscard]] bool is_empty() const noexcept { return count_ == 0; }

 private:
  struct declared {
    const PyObject* array;
    PyObject* mode;
  };
  [[nodiscard]] bool add_one(const PyObject* array, PyObject* mode) noexcept {
    if (take(array) != nullptr || count_ == all_.size()) return false;  // named twice: Kernel._launch knows the rule
    all_[count_++] = {array, mode};
    return true;
  }
  std::array<declared, 16> all_{};
  std::size_t count_ = 0;
};

/// Adds a number as the bytes of a parameter. Returns false if Kernel._launch must decide.
template <class Number>
bool add_number(packed_launch& to, const parameter& of, Number value) noexcept {
  return to.add(&value, sizeof value, of.padding);
}

template <class Whole>
bool add_whole(packed_launch& to, const parameter& of, long long value) noexcept {
  const auto narrow = static_cast<Whole>(value);
  return narrow == value && add_number(to, of, narrow);
}

bool add_integer(packed_launch& to, const parameter& of, PyObject* argument) noexcept {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(argument, &overflow);
  if (overflow != 0 || (value == -1 && PyErr_Occurred() != nullptr)) return false;
  switch (of.size) {
    case 1: return add_whole<std::int8_t>(to, of, value);
    case 2: return add_whole<std::int16_t>(to, of, value);
    case 4: return add_whole<std::int32_t>(to, of, value);
    case 8: return add_number(to, of, std::int64_t{value});
    default: return false;
  }
}

bool add_natural(packed_launch& to, const parameter& of, PyObject* argument) noexcept {
  const owned number(PyNumber_Index(argument));
  const unsigned long long value = number ? PyLong_AsUnsignedLongLong(number.get()) : 0;
  // The bytes of a NumPy scalar of the parameter's size are the lowest ones of its value.
  return PyErr_Occurred() == nullptr && of.size <= sizeof value && to.add(&value, of.size, of.padding);
}

bool add_real(packed_launch& to, const parameter& of, PyObject* argument) noexcept {
  const double value = PyFloat_AsDouble(argument);
  if (value == -1 && PyErr_Occurred() != nullptr) return false;
  if (of.size == sizeof value) return add_number(to, of, value);
  const auto narrow = static_cast<float>(value);
  return of.size == sizeof narrow && !(std::isinf(narrow) && !std::isinf(value)) && !std::isnan(value) &&
         add_number(to, of, narrow);
}

bool add_number(packed_launch& to, const parameter& of, PyObject* argument, PyObject* kind) noexcept {
  const long number = PyLong_AsLong(kind);
  const auto bytes = static_cast<std::size_t>(number / 4);
  if (bytes != 0 && bytes != of.size) return false;
  switch (static_cast<number_kind>(number % 4)) {
    case number_kind::integer: return add_integer(to, of, argument);
    case number_kind::natural: return add_natural(to, of, argument);
    case number_kind::real: return add_real(to, of, argument);
  }
  return false;
}

bool has_strides(const array_object& array, PyObject* strides) noexcept {
  if (PyTuple_Size(strides) != array.dimensions) return false;
  for (int i = 0; i < array.dimensions; ++i)
    if (PyLong_AsSsize_t(PyTuple_GetItem(strides, i)) != array.strides[i]) return false;
  return true;
}

/// The location of an array, if it still has the memory that it had when hpe found out; otherwise null.
PyObject* location_of(PyObject* argument) noexcept {
  const owned key(PyLong_FromVoidPtr(argument));
  PyObject* const location = key ? PyDict_GetItemWithError(hpe_package.known, key.get()) : nullptr;
  if (location == nullptr || PyWeakref_GetObject(location) != argument) return nullptr;
  const auto& array = *reinterpret_cast<const array_object*>(argument);
  const owned owner(PyObject_GetAttr(location, name.owner));
  if (!owner || owner.get() != (array.base != nullptr ? array.base : Py_None)) return nullptr;
  const owned strides(PyObject_GetAttr(location, name.strides));
  return strides && has_strides(array, strides.get()) ? location : nullptr;
}

/// What a launch makes of its arguments.
struct arguments {
  PyObject *grid = nullptr, *block = nullptr, *values = nullptr, *shared_mem = nullptr, *device = nullptr;
  declared_modes modes;

  /// Returns false if Kernel._launch must decide.
  [[nodiscard]] bool read(PyObject* positional, PyObject* named) noexcept {
    if (PyTuple_Size(positional) != 3) return false;
    grid = PyTuple_GetItem(positional, 0);
    block = PyTuple_GetItem(positional, 1);
    values = PyTuple_GetItem(positional, 2);
    shared_mem = name.zero;
    device = Py_None;
    if (PyTuple_CheckExact(values) == 0) return false;
    if (named == nullptr) return true;
    PyObject *reads = nullptr, *overwrites = nullptr, *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(named, &at, &key, &value) != 0;) {
      if (PyUnicode_Compare(key, name.reads) == 0)
        reads = value;
      else if (PyUnicode_Compare(key, name.overwrites) == 0)
        overwrites = value;
      else if (PyUnicode_Compare(key, name.shared_mem) == 0)
        shared_mem = value;
      else if (PyUnicode_Compare(key, name.device) == 0)
        device = value;
      else
        return false;
    }
    return modes.add(reads, PyTuple_GetItem(hpe_package.modes, 0)) &&
           modes.add(overwrites, PyTuple_GetItem(hpe_package.modes, 1));
  }
};

/// Makes the bytes of a launch. Returns false if Kernel._launch must decide.
bool pack(const launcher& self, PyObject* positional, PyObject* named, packed_launch& to) noexcept {
  arguments given;
  if (hpe_package.launch == nullptr || self.parameters == nullptr || !given.read(positional, named) ||
      PyTuple_Size(given.values) != self.count)
    return false;
  const owned lent(PyObject_GetAttr(hpe_package.lent, name.ranges));
  if (!lent || PyList_Size(lent.get()) != 0) return false;
  PyObject* const inout = PyTuple_GetItem(hpe_package.modes, 2);
  std::array<hpeAccess, 32> accesses;
  std::size_t access_count = 0;
  for (Py_ssize_t i = 0; i < self.count; ++i) {
    PyObject* const argument = PyTuple_GetItem(given.values, i);
    const parameter& of = self.parameters[i];
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(argument));
    if (PyObject* const kind = PyDict_GetItemWithError(hpe_package.numbers, type)) {
      if (!add_number(to, of, argument, kind)) return false;
      continue;
    }
    PyObject* const location = location_of(argument);
    if (location == nullptr || of.size != sizeof(void*) || of.padding != 0) return false;
    PyObject* mode = given.modes.take(argument);
    if (mode == nullptr) mode = inout;
    const auto& array = *reinterpret_cast<const array_object*>(argument);
    const bool may_write = (array.flags & array_object::writeable) != 0;
    if (!may_write && mode != PyTuple_GetItem(hpe_package.modes, 0)) return false;
    const owned by_mode(PyObject_GetAttr(location, name.accesses));
    PyObject* const access = by_mode ? PyDict_GetItemWithError(by_mode.get(), mode) : nullptr;
    if (access == nullptr || access_count == accesses.size() || !copy_bytes(access, accesses[access_count++]) ||
        !to.add(&array.data, sizeof array.data))
      return false;
  }
  if (!given.modes.is_empty() || !to.add(accesses.data(), access_count * sizeof(hpeAccess))) return false;
  const owned count(PyLong_FromSize_t(access_count));
  const owned key(count ? PyTuple_Pack(5, given.grid, given.block, given.shared_mem, given.device, count.get())
                        : nullptr);
  PyObject* const head = key ? PyDict_GetItemWithError(self.heads, key.get()) : nullptr;
  return head != nullptr && to.set_head(head);
}

PyObject* call(PyObject* object, PyObject* positional, PyObject* named) noexcept {
  packed_launch packed;
  if (!pack(*reinterpret_cast<const launcher*>(object), positional, named, packed)) {
    PyErr_Clear();
    const owned slow(PyObject_GetAttr(object, name.slow));
    return slow ? PyObject_Call(slow.get(), positional, named) : nullptr;
  }
  PyThreadState* const state = PyEval_SaveThread();
  const hpeStatus status = hpe_package.launch(packed.get());
  PyEval_RestoreThread(state);
  if (status != HPE_SUCCESS) return PyObject_CallFunction(hpe_package.fail, "i", static_cast<int>(status));
  Py_INCREF(Py_None);
  return Py_None;
}

/// prepare(heads, parameters): heads is a dict, parameters a tuple of pairs of size and padding.
PyObject* prepare(PyObject* object, PyObject* given) noexcept {
  auto& self = *reinterpret_cast<launcher*>(object);
  PyObject *heads = nullptr, *sizes = nullptr;
  if (PyArg_ParseTuple(given, "OO", &heads, &sizes) == 0) return nullptr;
  const Py_ssize_t count = PyTuple_Size(sizes);
  if (count < 0) return nullptr;
  auto* const made = static_cast<parameter*>(PyMem_Calloc(static_cast<std::size_t>(count) + 1, sizeof(parameter)));
  if (made == nullptr) return PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; ++i)
    if (PyArg_ParseTuple(PyTuple_GetItem(sizes, i), "II", &made[i].size, &made[i].padding) == 0) {
      PyMem_Free(made);
      return nullptr;
    }
  Py_INCREF(heads);
  self.heads = heads;
  self.count = count;
  self.parameters = made;
  Py_INCREF(Py_None);
  return Py_None;
}

void destroy(PyObject* object) noexcept {
  auto& self = *reinterpret_cast<launcher*>(object);
  Py_XDECREF(self.heads);
  PyMem_Free(self.parameters);
  PyTypeObject* const type = Py_TYPE(object);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

/// configure(launch, known, lent, numbers, array, modes, fail); launch is the address of hpeLaunchPacked.
PyObject* configure(PyObject* /*module*/, PyObject* given) noexcept {
  package its;
  unsigned long long address = 0;
  if (PyArg_ParseTuple(given, "KOOOOOO", &address, &its.known, &its.lent, &its.numbers, &its.array, &its.modes,
                       &its.fail) == 0)
    return nullptr;
  for (PyObject* each : {its.known, its.lent, its.numbers, its.array, its.modes, its.fail}) Py_INCREF(each);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers
  its.launch = reinterpret_cast<decltype(its.launch)>(static_cast<std::uintptr_t>(address));
  hpe_package = its;
  Py_INCREF(Py_None);
  return Py_None;
}

std::array methods_of_launcher{
    PyMethodDef{"prepare", prepare, METH_VARARGS, "prepare(heads, parameters)"},
    PyMethodDef{nullptr, nullptr, 0, nullptr},
};
std::array slots{
    PyType_Slot{Py_tp_call, reinterpret_cast<void*>(call)},
    PyType_Slot{Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    PyType_Slot{Py_tp_methods, methods_of_launcher.data()},
    PyType_Slot{0, nullptr},
};
PyType_Spec specification{"_hpe_launcher.Launcher", sizeof(launcher), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          slots.data()};

std::array methods{
    PyMethodDef{"configure", configure, METH_VARARGS, "configure(launch, known, lent, numbers, array, modes, fail)"},
    PyMethodDef{nullptr, nullptr, 0, nullptr},
};
PyModuleDef definition{PyModuleDef_HEAD_INIT,
                       "_hpe_launcher",
                       "Launches kernels of the package hpe.",
                       -1,
                       methods.data(),
                       nullptr,
                       nullptr,
                       nullptr,
                       nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__hpe_launcher() {
  name = {PyUnicode_InternFromString("_launch"),    PyUnicode_InternFromString("ranges"),
          PyUnicode_InternFromString("owner"),      PyUnicode_InternFromString("strides"),
          PyUnicode_InternFromString("accesses"),   PyUnicode_InternFromString("reads"),
          PyUnicode_InternFromString("overwrites"), PyUnicode_InternFromString("shared_mem"),
          PyUnicode_InternFromString("device"),     PyLong_FromLong(0)};
  PyObject* const module = PyModule_Create(&definition);
  PyObject* const type = PyType_FromSpec(&specification);
  if (module == nullptr || type == nullptr || PyErr_Occurred() != nullptr ||
      PyModule_AddObject(module, "Launcher", type) != 0) {
    Py_XDECREF(module);
    Py_XDECREF(type);
    return nullptr;
  }
  return module;
}

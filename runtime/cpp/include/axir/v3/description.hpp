// What a model is, to be asked while a program runs: its methods, arrays, versions, CPUs.
#pragma once

#include <cstddef>
#include <cstring>

namespace axir {
inline namespace v3 {

/// Several things that are part of the program.
template <class T>
class List {
 public:
  constexpr List() = default;
  constexpr List(const T* data, std::size_t size) : data_(data), size_(size) {}

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](std::size_t index) const { return data_[index]; }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Kernels for a kind of CPU: its name, and the features that it must have, with spaces between.
struct Variant {
  const char* name;
  const char* features;
};

/// An argument, a result, a parameter, or a part of the state.
struct ArrayDescription {
  const char* name;          ///< In C++: `params_w`.
  const char* label;         ///< In Python: `params['w']`.
  const char* dtype;         ///< As NumPy calls it: `float32`.
  std::size_t item_size;     ///< Bytes of an element.
  List<std::size_t> shape;   ///< `dynamic_extent` stands in front for any number of rows.
  bool is_overwritten;       ///< Of an argument, whether a result lies in its memory.
};

/// A dimension that was open when the function was exported, and its size here.
struct SizeDescription {
  const char* name;
  std::size_t size;
};

/// A method of a model.
struct MethodDescription {
  const char* name;              ///< In C++: `attend_b8`.
  const char* label;             ///< The function of Python: `attend`.
  List<ArrayDescription> arguments;
  List<ArrayDescription> results;
  const char* rows;              ///< What the number of rows is called, if it takes any; else "".
  List<std::size_t> row_counts;  ///< The numbers of rows that there are programs for, ascending.
  List<SizeDescription> sizes;   ///< Sizes of other dimensions, which are compiled in.
};

/// A whole model.
struct ModelDescription {
  const char* name;
  const char* axir_version;  ///< Of the axir that wrote it.
  const char* iree_version;  ///< Of the compiler of its kernels.
  int runtime_version;       ///< Of the headers that it was written for: 3 is `axir/v3`.
  List<MethodDescription> methods;
  List<ArrayDescription> parameters;
  List<ArrayDescription> state;
  List<Variant> cpus;  ///< Those that ask most of a CPU first.

  /// Returns a method by its name, or null.
  const MethodDescription* find(const char* method) const {
    for (const MethodDescription& found : methods) {
      if (std::strcmp(found.name, method) == 0) return &found;
    }
    return nullptr;
  }
};

}  // namespace v3
}  // namespace axir

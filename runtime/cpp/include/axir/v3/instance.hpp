// What the code of a model stands on: memory, kernels, parameters. No user needs this header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "kernels.hpp"
#include "memory.hpp"
#include "options.hpp"
#include "parameters.hpp"
#include "profiling.hpp"
#include "rows.hpp"
#include "status.hpp"
#include "view.hpp"

namespace axir {
inline namespace v3 {

/// The parameters of a model, which its instances share.
class Parameters {
 public:
  /// Finds arrays in a file, or in memory if there is some.
  Status open(const std::string& path, const void* data, std::size_t size) {
    if (data != nullptr) return table_.read(static_cast<const std::byte*>(data), size);
    if (Status status = file_.open(path); !status.ok()) return status;
    return table_.read(file_.data(), file_.size());
  }

  /// Returns an array, aligned: where it lies, or copied.
  Status find(const ParameterType& wanted, const Allocator& allocator, std::byte*& data) {
    const StoredArray* found = table_.find(wanted.name);
    if (found == nullptr) return wrong(wanted, "is missing");
    if (found->dtype != wanted.dtype || found->shape != wanted.shape ||
        found->size != wanted.size) {
      const std::string text = "is " + found->dtype + '[' + found->shape + "], not " +
                               wanted.dtype + '[' + wanted.shape + ']';
      return wrong(wanted, text.c_str());
    }
    if (is_aligned(found->data)) {
      data = const_cast<std::byte*>(found->data);  // kernels only read it
      return Status();
    }
    Buffer copy(allocator, wanted.size);
    if (copy.data() == nullptr) return Status(Code::out_of_memory, "no memory for parameters");
    std::memcpy(copy.data(), found->data, wanted.size);
    data = copy.data();
    copies_.push_back(std::move(copy));
    return Status();
  }

 private:
  static Status wrong(const ParameterType& wanted, const char* what) {
    return Status(Code::wrong_parameters,
                  std::string("the parameter '") + wanted.name + "' " + what);
  }

  FileContent file_;
  ParameterTable table_;
  std::vector<Buffer> copies_;
};

/// What is embedded in a program, as bytes; kernels only read it.
inline std::byte* constant_bytes(const std::uint64_t* data) {
  return reinterpret_cast<std::byte*>(const_cast<std::uint64_t*>(data));
}

/// Tells whether an array has as many elements as its type says, and memory for them.
template <class T, std::size_t... Extents>
bool fits(const View<T, Extents...>& array) {
  return array.size() == array.count && (array.data() != nullptr || array.count == 0);
}

template <class T, std::size_t... Extents>
bool fits(const View<T, dynamic_extent, Extents...>& rows) {
  return rows.size() == rows.rows() * rows.row_size && (rows.data() != nullptr || rows.size() == 0);
}

namespace detail {

[[gnu::cold, gnu::noinline]] inline Status misfit(const char* function, const char* name,
                                                  std::size_t found, std::size_t wanted,
                                                  const std::size_t* shape, std::size_t rank) {
  std::string text = std::string(function) + ": '" + name + "' ";
  if (found == wanted) return Status(Code::wrong_argument, text + "is a null pointer");
  text += "has " + std::to_string(found) + " elements, must have " + std::to_string(wanted);
  for (std::size_t axis = 0; rank > 1 && axis < rank; ++axis) {
    text += (axis == 0 ? " (" : " x ") + std::to_string(shape[axis]);
  }
  return Status(Code::wrong_argument, rank > 1 ? text + ")" : text);
}

}  // namespace detail

/// Says what is wrong with an array that does not fit.
template <class T, std::size_t... Extents>
Status misfit(const char* function, const char* name, const View<T, Extents...>& array) {
  return detail::misfit(function, name, array.size(), array.count, array.shape.data(), array.rank);
}

template <class T, std::size_t... Extents>
[[gnu::cold]] Status misfit(const char* function, const char* name,
                            const View<T, dynamic_extent, Extents...>& rows) {
  const std::string text = std::string(function) + ": '" + name + "' ";
  if (rows.data() == nullptr) return Status(Code::wrong_argument, text + "is a null pointer");
  return Status(Code::wrong_argument, text + "has " + std::to_string(rows.size()) +
                                          " elements, must have a multiple of " +
                                          std::to_string(rows.row_size));
}

/// Says that two arrays have different numbers of rows.
[[gnu::cold, gnu::noinline]] inline Status different_rows(const char* function, const char* symbol,
                                                          const char* first, std::size_t rows,
                                                          const char* other, std::size_t others) {
  return Status(Code::wrong_argument, std::string(function) + ": the dimension " + symbol +
                                          " differs: '" + first + "' has " + std::to_string(rows) +
                                          ", '" + other + "' has " + std::to_string(others));
}

/// Tells whether two arrays have bytes in common.
template <class A, class B>
bool overlaps(const A& a, const B& b) {
  const auto start_a = reinterpret_cast<std::uintptr_t>(a.data());
  const auto start_b = reinterpret_cast<std::uintptr_t>(b.data());
  return start_a < start_b + sizeof(*b.data()) * b.size() &&
         start_b < start_a + sizeof(*a.data()) * a.size();
}

/// Says that a result would be written over an argument.
[[gnu::cold, gnu::noinline]] inline Status overlap(const char* function, const char* output,
                                                   const char* input) {
  return Status(Code::wrong_argument, std::string(function) + ": the result '" + output +
                                          "' lies in the memory of the argument '" + input + "'");
}

/// The base of the code of models. An instance is for one thread at a time.
class Instance {
 public:
  explicit Instance(const Options& options)
      : allocator_(options.allocator),
        pool_(options.pool),
        profiler_(options.profiler),
        heap_(options.allocator) {
    if (pool_ == nullptr && options.threads > 1) {
      pool_ = std::make_shared<ThreadPool>(options.threads);
    }
  }

  /// The user's profiler, or null.
  const Profiler* profiler() const { return profiler_ ? &profiler_ : nullptr; }

  /// Takes more memory, if there is too little.
  Status reserve(Buffer& buffer, std::size_t size) const {
    return buffer.size() < size ? take(buffer, size) : Status();
  }

  /// Says what happened, after a function has returned another code than `ok`.
  [[gnu::cold, gnu::noinline]] Status failure(Code code, const char* function) const {
    std::string text(function);
    if (code == Code::kernel_failed) {
      text += ": a kernel failed with " + std::to_string(kernel_failure_);
    } else if (code == Code::out_of_memory) {
      text += ": there is no memory left";
    } else if (code == Code::callback_failed) {
      text += ": a callback is not set";
    }
    return Status(code, text);
  }

 protected:
  /// Memory for an array of the caller's that is not aligned; taken when it is first needed.
  using Staging = Buffer;

  /// Returns where a kernel finds an argument: there, or copied to where it is aligned.
  std::byte* input(Staging& staging, const void* data, std::size_t size) {
    if (is_aligned(data)) return static_cast<std::byte*>(const_cast<void*>(data));
    std::byte* const copy = output(staging, const_cast<void*>(data), size);
    if (copy != nullptr) std::memcpy(copy, data, size);
    return copy;
  }

  /// Returns where a kernel writes a result: there, or where it is aligned.
  std::byte* output(Staging& staging, void* data, std::size_t size) {
    if (is_aligned(data)) return static_cast<std::byte*>(data);
    if (staging.data() == nullptr) staging = Buffer(allocator_, size);
    return staging.data();
  }

  /// Returns where a kernel finds rows of an argument: there, or copied and filled up. There is
  /// memory for as many rows as the largest program takes.
  static std::byte* input_rows(const Buffer& copy, const void* data, std::size_t row_size,
                               const Rows& rows) {
    const std::byte* const source = static_cast<const std::byte*>(data);
    if (rows.used == rows.size && is_aligned(source + rows.start * row_size)) {
      return const_cast<std::byte*>(source + rows.start * row_size);
    }
    rows.fill(copy.data(), source, row_size);
    return copy.data();
  }

  /// Returns where a kernel writes rows of a result: there, or where there are enough of them.
  static std::byte* output_rows(const Buffer& copy, void* data, std::size_t row_size,
                                const Rows& rows) {
    if (rows.used < rows.size) return copy.data();
    std::byte* const target = static_cast<std::byte*>(data) + rows.start * row_size;
    return is_aligned(target) ? target : copy.data();
  }

  /// Copies rows of a result to the caller, if they do not lie there.
  static void deliver_rows(void* data, const std::byte* result, std::size_t row_size,
                           const Rows& rows) {
    if (rows.used == 0) return;
    std::byte* const target = static_cast<std::byte*>(data) + rows.start * row_size;
    deliver(target, result, rows.used * row_size);
  }

  /// Copies a result to the caller, if it does not lie there.
  static void deliver(void* target, const std::byte* result, std::size_t size) {
    if (target != result) std::memcpy(target, result, size);
  }

  /// Runs a kernel; returns whether it has done its work.
  template <std::size_t Spans>
  bool run(Kernel& kernel, const Span (&spans)[Spans]) {
    static_assert(Spans <= abi::max_bindings);
    return run(kernel, spans, Spans, nullptr, 0);
  }
  template <std::size_t Spans, std::size_t Constants>
  bool run(Kernel& kernel, const Span (&spans)[Spans],
           const std::uint32_t (&constants)[Constants]) {
    static_assert(Spans <= abi::max_bindings);
    return run(kernel, spans, Spans, constants, Constants);
  }

  /// Reads a number from memory.
  template <class T>
  static T load(const std::byte* data) {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }
  template <class T>
  static void store(std::byte* data, T value) {
    std::memcpy(data, &value, sizeof value);
  }
  /// Fills memory with a number.
  template <class T>
  static void fill(std::byte* data, std::size_t length, T value) {
    if (sizeof value == 1) {  // also where the compiler makes loops as they are written
      unsigned char byte;
      std::memcpy(&byte, &value, 1);
      std::memset(data, byte, length);
      return;
    }
    for (std::size_t place = 0; place + sizeof value <= length; place += sizeof value) {
      std::memcpy(data + place, &value, sizeof value);
    }
  }

  /// Finds kernels, and takes the memory that they work in.
  Status prepare_kernels(const abi::Library& library, Kernel* kernels, const char* const* names,
                         const char* const* lines, const std::uint32_t (*workgroups)[3],
                         std::size_t count) {
    std::size_t local = 0;
    for (std::size_t index = 0; index < count; ++index) {
      const std::uint32_t(&xyz)[3] = workgroups[index];
      Status status =
          kernels[index].find(library, names[index], lines[index], xyz[0], xyz[1], xyz[2]);
      if (!status.ok()) return status;
      if (kernels[index].local_size() > local) local = kernels[index].local_size();
    }
    return local == 0 ? Status() : take(local_memory_, local);
  }

  /// Takes memory for as long as the instance lives.
  Status take(Buffer& buffer, std::size_t size) const {
    buffer = Buffer(allocator_, size);
    if (buffer.data() != nullptr) return Status();
    return Status(Code::out_of_memory, "there is no memory for the model");
  }

  const Allocator& allocator() const { return allocator_; }
  Heap& heap() { return heap_; }
  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }

  void replace_profiler(Profiler profiler) { profiler_ = std::move(profiler); }

 private:
  bool run(Kernel& kernel, const Span* spans, std::size_t span_count,
           const std::uint32_t* constants, std::size_t constant_count) {
    if (profiler_) return run_told(kernel, spans, span_count, constants, constant_count);
    return finish(kernel.run(pool_.get(), local_memory_.data(), spans, span_count, constants,
                             constant_count));
  }
  [[gnu::cold, gnu::noinline]] bool run_told(Kernel& kernel, const Span* spans,
                                             std::size_t span_count,
                                             const std::uint32_t* constants,
                                             std::size_t constant_count) {
    const Moment moment(&profiler_, Part::kernel, kernel.name(), kernel.where());
    return finish(kernel.run(pool_.get(), local_memory_.data(), spans, span_count, constants,
                             constant_count));
  }
  bool finish(int failure) {
    kernel_failure_ = failure;
    return failure == 0;
  }

  Allocator allocator_;
  std::shared_ptr<ThreadPool> pool_;
  Profiler profiler_;
  Heap heap_;
  Buffer local_memory_;
  int kernel_failure_ = 0;
};

}  // namespace v3
}  // namespace axir

// Arrays of a known shape in somebody else's memory, and the numbers that C++17 has no type for.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace axir {
inline namespace v3 {

/// A number of the type bfloat16: the upper half of a float.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  /// Rounds to the nearest number, of two to the even one.
  explicit bfloat16(float value) {
    std::uint32_t whole;
    std::memcpy(&whole, &value, sizeof whole);
    const bool is_nan = (whole & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = whole + 0x7fffu + ((whole >> 16) & 1u);
    bits = static_cast<std::uint16_t>(is_nan ? (whole >> 16) | 0x40u : rounded >> 16);
  }
  operator float() const {
    const std::uint32_t whole = std::uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &whole, sizeof value);
    return value;
  }
};

/// A number of the type IEEE half precision.
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;
  /// Rounds to the nearest number, of two to the even one.
  explicit float16(float value) {
    std::uint32_t whole;
    std::memcpy(&whole, &value, sizeof whole);
    const std::uint32_t sign = (whole >> 16) & 0x8000u;
    const std::uint32_t size = whole & 0x7fffffffu;
    std::uint32_t half;
    if (size > 0x7f800000u) {
      half = 0x7e00u;  // not a number
    } else if (size >= 0x477ff000u) {
      half = 0x7c00u;  // too large: infinity
    } else if (size >= 0x38800000u) {
      half = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
    } else if (size >= 0x33000000u) {  // a denormal number
      const std::uint32_t shift = 126u - (size >> 23);
      const std::uint32_t digits = (size & 0x7fffffu) | 0x800000u;
      const std::uint32_t kept = digits >> shift;
      const std::uint32_t rest = digits & ((1u << shift) - 1u);
      const std::uint32_t middle = 1u << (shift - 1u);
      half = kept + ((rest > middle || (rest == middle && (kept & 1u))) ? 1u : 0u);
    } else {
      half = 0;
    }
    bits = static_cast<std::uint16_t>(sign | half);
  }
  operator float() const {
    const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fu;
    const std::uint32_t digits = bits & 0x3ffu;
    float value;
    if (exponent == 0) {
      value = static_cast<float>(digits) * 0x1p-24f;
    } else {
      const std::uint32_t wide = exponent == 31 ? 0xffu : exponent + 112u;
      const std::uint32_t whole = (wide << 23) | (digits << 13);
      std::memcpy(&value, &whole, sizeof value);
    }
    return sign ? -value : value;
  }
};

static_assert(sizeof(bfloat16) == 2 && sizeof(float16) == 2 && sizeof(bool) == 1);

namespace detail {

template <class From, class To>
constexpr bool is_element =
    std::is_same_v<From, To> || std::is_same_v<std::add_const_t<From>, To>;

template <class Container>
using DataOf = std::remove_pointer_t<decltype(std::declval<Container&>().data())>;

}  // namespace detail

template <class T, std::size_t... Extents>
class View;

/// The leading extent of a view whose number of rows its type does not say.
constexpr std::size_t dynamic_extent = static_cast<std::size_t>(-1);

namespace detail {

struct NoNumber {};

// A view must have the right number of elements by its type, another container when it is there.
template <class Container>
struct MayHave {
  template <std::size_t Wanted>
  static constexpr bool count = true;
};
template <class T, std::size_t... Extents>
struct MayHave<View<T, Extents...>> {
  template <std::size_t Wanted>
  static constexpr bool count = (std::size_t{1} * ... * Extents) == Wanted;
};

}  // namespace detail

/// An array of `T` in memory that somebody else owns, rows first.
///
/// The shape is part of the type. What is made of an array of known size is checked by the
/// compiler; what is made of a container, such as a `std::vector`, by the function that takes it.
template <class T, std::size_t... Extents>
class View {
 public:
  using value_type = std::remove_const_t<T>;
  static constexpr std::size_t rank = sizeof...(Extents);
  static constexpr std::size_t count = (std::size_t{1} * ... * Extents);
  static constexpr std::array<std::size_t, rank> shape{Extents...};

  /// Has no memory yet.
  constexpr View() : data_(nullptr), found_(0) {}

  /// Takes memory as it is; there must be `count` elements.
  constexpr explicit View(T* data) : data_(data), found_(count) {}

  /// Takes a `std::array` of `count` elements.
  template <class U, std::size_t N, class = std::enable_if_t<detail::is_element<U, T>>>
  constexpr View(std::array<U, N>& array) : View(array.data()) {
    static_assert(N == count, "the array has another number of elements than the view");
  }
  template <class U, std::size_t N, class = std::enable_if_t<detail::is_element<const U, T>>>
  constexpr View(const std::array<U, N>& array) : View(array.data()) {
    static_assert(N == count, "the array has another number of elements than the view");
  }

  /// Takes an array of the language, of any rank, of `count` elements.
  template <class A, class = std::enable_if_t<std::is_array_v<A>>,
            class = std::enable_if_t<detail::is_element<std::remove_all_extents_t<A>, T>>>
  constexpr View(A& array) : View(reinterpret_cast<T*>(&array)) {
    static_assert(sizeof(A) == count * sizeof(T),
                  "the array has another number of elements than the view");
  }

  /// Takes a container with `data()` and `size()`; whoever takes the view checks the size.
  template <class Container,
            class = std::enable_if_t<detail::is_element<detail::DataOf<Container>, T>>,
            class = decltype(std::declval<Container&>().size()),
            class = std::enable_if_t<detail::MayHave<
                std::remove_cv_t<std::remove_reference_t<Container>>>::template count<count>>>
  constexpr View(Container&& container) : data_(container.data()), found_(container.size()) {}

  /// Takes a view of the same shape that may write.
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
  constexpr View(const View<U, Extents...>& other) : data_(other.data()), found_(other.size()) {}

  /// Takes a single number, if the view has rank 0.
  template <class U, std::size_t R = rank,
            class = std::enable_if_t<R == 0 && std::is_same_v<const U, T>>>
  constexpr View(const U& number) : View(&number) {}

  constexpr T* data() const { return data_; }
  /// The number of elements that there are; `count` is the number that there must be.
  constexpr std::size_t size() const { return found_; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + found_; }
  constexpr T& operator[](std::size_t index) const { return data_[index]; }

  /// The element at an index along each axis.
  template <class... Indices>
  constexpr T& operator()(Indices... indices) const {
    static_assert(sizeof...(Indices) == rank, "there must be an index for each axis");
    std::size_t place = 0;
    ((place = place * Extents + static_cast<std::size_t>(indices)), ...);
    return data_[place];
  }

  /// The number, if the view has rank 0.
  constexpr operator std::conditional_t<rank == 0, value_type, detail::NoNumber>() const {
    if constexpr (rank == 0) {
      return *data_;
    } else {
      return {};
    }
  }

 private:
  T* data_;
  std::size_t found_;
};

namespace detail {

template <class Container>
constexpr bool is_view = false;
template <class T, std::size_t... Extents>
constexpr bool is_view<View<T, Extents...>> = true;

}  // namespace detail

/// Any number of rows, each an array of `T` with the extents that follow, in memory that somebody
/// else owns.
template <class T, std::size_t... Extents>
class View<T, dynamic_extent, Extents...> {
 public:
  using value_type = std::remove_const_t<T>;
  static constexpr std::size_t rank = sizeof...(Extents) + 1;
  /// The number of elements of a row.
  static constexpr std::size_t row_size = (std::size_t{1} * ... * Extents);

  /// Has no rows.
  constexpr View() : data_(nullptr), found_(0), rows_(0) {}

  /// Takes memory as it is; there must be so many rows.
  constexpr View(T* data, std::size_t rows) : data_(data), found_(rows * row_size), rows_(rows) {}

  /// Takes an array whose number of elements is a multiple of that of a row.
  template <class U, std::size_t N, class = std::enable_if_t<detail::is_element<U, T>>>
  constexpr View(std::array<U, N>& array) : View(array.data(), rows_in<N>()) {}
  template <class U, std::size_t N, class = std::enable_if_t<detail::is_element<const U, T>>>
  constexpr View(const std::array<U, N>& array) : View(array.data(), rows_in<N>()) {}

  /// Takes an array of the language, of any rank.
  template <class A, class = std::enable_if_t<std::is_array_v<A>>,
            class = std::enable_if_t<detail::is_element<std::remove_all_extents_t<A>, T>>>
  constexpr View(A& array)
      : View(reinterpret_cast<T*>(&array), rows_in<sizeof(A) / sizeof(T)>()) {}

  /// Takes a container with `data()` and `size()`; whoever takes the view checks the size.
  template <class Container,
            class = std::enable_if_t<detail::is_element<detail::DataOf<Container>, T>>,
            class = decltype(std::declval<Container&>().size()),
            class = std::enable_if_t<
                !detail::is_view<std::remove_cv_t<std::remove_reference_t<Container>>>>>
  constexpr View(Container&& container)
      : data_(container.data()), found_(container.size()), rows_(found_ / (row_size | !row_size)) {}

  /// Takes a view of such rows, of a known number of them or any, that may write.
  template <class U, std::size_t Rows,
            class = std::enable_if_t<detail::is_element<U, T> && Rows != dynamic_extent>>
  constexpr View(const View<U, Rows, Extents...>& other)
      : data_(other.data()), found_(other.size()), rows_(Rows) {}
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
  constexpr View(const View<U, dynamic_extent, Extents...>& other)
      : data_(other.data()), found_(other.size()), rows_(other.rows()) {}

  constexpr T* data() const { return data_; }
  /// The number of elements; it must be a multiple of that of a row.
  constexpr std::size_t size() const { return found_; }
  constexpr std::size_t rows() const { return rows_; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + found_; }
  constexpr T& operator[](std::size_t index) const { return data_[index]; }

  constexpr View<T, Extents...> row(std::size_t index) const {
    return View<T, Extents...>(data_ + index * row_size);
  }

  /// The element at an index along each axis.
  template <class... Indices>
  constexpr T& operator()(std::size_t row_index, Indices... indices) const {
    return row(row_index)(indices...);
  }

 private:
  template <std::size_t Count>
  static constexpr std::size_t rows_in() {
    static_assert(row_size != 0 && Count % (row_size | !row_size) == 0,
                  "the array has another number of elements than any number of rows");
    return Count / (row_size | !row_size);
  }

  T* data_;
  std::size_t found_, rows_;
};

/// The number, or its real part.
template <class T>
T real_part(const T& number) {
  return number;
}
template <class T>
T real_part(const std::complex<T>& number) {
  return number.real();
}

}  // namespace v3
}  // namespace axir

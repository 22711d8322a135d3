// Any number of rows, by programs that are each for a fixed number of them.
#pragma once

#include <cstddef>
#include <cstring>

namespace axir {
inline namespace v3 {

/// Rows that one call of a program takes: it is for `size` of them, `used` of which there are.
struct Rows {
  std::size_t start = 0;
  std::size_t used = 0;
  std::size_t size = 0;

  std::size_t end() const { return start + used; }

  /// The rows after these: all that are left by the smallest program that is for so many, or as
  /// many as the largest one takes. `sizes` are in order.
  template <std::size_t Count>
  Rows next(std::size_t rows, const std::size_t (&sizes)[Count]) const {
    const std::size_t rest = rows - end();
    std::size_t number = 0;
    while (number + 1 < Count && sizes[number] < rest) ++number;
    return {end(), rest < sizes[number] ? rest : sizes[number], sizes[number]};
  }

  /// Copies rows of an argument, and then the last one of them until there are enough; zeros if
  /// there is none.
  void fill(std::byte* target, const std::byte* source, std::size_t row_size) const {
    if (used == 0) {
      std::memset(target, 0, size * row_size);
      return;
    }
    std::memcpy(target, source + start * row_size, used * row_size);
    for (std::size_t row = used; row < size; ++row) {
      std::memcpy(target + row * row_size, target + (used - 1) * row_size, row_size);
    }
  }
};

}  // namespace v3
}  // namespace axir

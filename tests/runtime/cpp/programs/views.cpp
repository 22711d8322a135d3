// Views of arrays, and numbers of half precision.
#include <axir/v3/view.hpp>
#include <cmath>
#include <vector>

#include "expect.h"

namespace {

void test_elements() {
  std::array<float, 6> data{1, 2, 3, 4, 5, 6};
  const axir::View<float, 2, 3> view(data);
  EXPECT(view(1, 0) == 4 && view[5] == 6 && view.size() == 6);
  view(0, 2) = 7;
  EXPECT(data[2] == 7);
  const axir::View<const float, 2, 3> reading = view;
  EXPECT(reading.data() == data.data() && reading.end() - reading.begin() == 6);
}

void test_sizes() {
  std::vector<double> five(5);
  const axir::View<const double, 6> short_one(five);
  EXPECT(short_one.size() == 5 && short_one.count == 6);  // who takes the view compares
  static_assert(!std::is_convertible_v<axir::View<float, 5>, axir::View<float, 6>>);
  static_assert(!std::is_convertible_v<const std::vector<float>&, axir::View<float, 6>>);
}

void test_rows() {
  using Rows = axir::View<float, axir::dynamic_extent, 2, 3>;
  using ReadRows = axir::View<const float, axir::dynamic_extent, 2, 3>;
  std::vector<float> data(18);
  const Rows rows(data);
  EXPECT(rows.rows() == 3 && rows.size() == 18 && rows.rank == 3 && rows.row_size == 6);
  rows(2, 1, 0) = 5;
  EXPECT(data[15] == 5 && rows.row(2)(1, 0) == 5 && rows[15] == 5);
  const ReadRows reading = rows;
  EXPECT(reading.rows() == 3 && reading.end() - reading.begin() == 18);
  data.resize(13);
  EXPECT(ReadRows(data).size() != ReadRows(data).rows() * 6);  // who takes the view compares
  float array[4][2][3] = {};
  EXPECT(Rows(array).rows() == 4 && ReadRows(axir::View<float, 5, 2, 3>(nullptr)).rows() == 5);
  EXPECT((axir::View<const int, axir::dynamic_extent>(std::array<int, 7>{}).rows() == 7));
  static_assert(!std::is_convertible_v<axir::View<float, 2, 3>, Rows>);
  static_assert(!std::is_convertible_v<ReadRows, Rows>);
  static_assert(!std::is_convertible_v<Rows, axir::View<float, 2, 3>>);
  static_assert(!std::is_convertible_v<const std::vector<float>&, Rows>);
}

void test_numbers() {
  const float three = 3;
  EXPECT(float(axir::View<const float>(three)) == 3);
  EXPECT(axir::real_part(std::complex<float>(2, 5)) == 2);
}

// Every number of half precision is its own nearest one.
template <class Half>
void test_all_halves() {
  for (unsigned bits = 0; bits < 0x10000u; ++bits) {
    Half number;
    number.bits = static_cast<std::uint16_t>(bits);
    const float wide = number;
    const Half back(wide);
    EXPECT(std::isnan(wide) ? std::isnan(float(back)) : back.bits == number.bits);
  }
}

void test_rounding() {
  EXPECT(float(axir::float16(2049.0f)) == 2048 && float(axir::float16(2051.0f)) == 2052);
  EXPECT(std::isinf(float(axir::float16(65520.0f))) && float(axir::float16(65519.0f)) == 65504);
  EXPECT(float(axir::float16(0x1p-25f)) == 0 && float(axir::float16(0x1.8p-25f)) == 0x1p-24f);
  EXPECT(float(axir::bfloat16(257.0f)) == 256 && float(axir::bfloat16(259.0f)) == 260);
}

}  // namespace

int main() {
  test_elements();
  test_sizes();
  test_rows();
  test_numbers();
  test_all_halves<axir::float16>();
  test_all_halves<axir::bfloat16>();
  test_rounding();
}

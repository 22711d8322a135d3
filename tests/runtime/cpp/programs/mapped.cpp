// A model whose parameters lie in a file, and whose methods return a status.
#include "mapped.hpp"

#include <vector>

#include "expect.h"

namespace {

void test_numbers_of_rows(mapped::Model& model) {
  const std::vector<float> x{1, 2, 3, 4, 5, 6, -6, -5, -4, -3, -2, -1, 0, 0, 0, 0, 0, 0};
  mapped::Predict2Result two;
  mapped::Predict3Result three;
  EXPECT(model.predict_2(axir::View<const float, 2, 6>(x.data()), two).ok());
  EXPECT(model.predict_3(x, three).ok());
  for (int row = 0; row < 2; ++row) {
    EXPECT(two.label(row) == three.label(row));
    for (int column = 0; column < 3; ++column) {
      const float difference = two.scores(row, column) - three.scores(row, column);
      EXPECT(difference < 1e-5f && difference > -1e-5f);
    }
  }
  const axir::Status status = model.predict_2(x, two);
  EXPECT(status.code() == axir::Code::wrong_argument);
  EXPECT(status.message() == "predict_2: 'x' has 18 elements, must have 12 (2 x 6)");
}

}  // namespace

int main() {
  std::unique_ptr<mapped::Model> model;
  EXPECT(mapped::Model::create(model).ok());
  test_numbers_of_rows(*model);
  axir::Options elsewhere;
  elsewhere.parameters = "/nowhere/at/all";
  EXPECT(mapped::Model::create(model, elsewhere).code() == axir::Code::wrong_parameters);
}

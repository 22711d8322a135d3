// A model whose parameters lie in a file, and whose methods return a status.
#include "mapped.hpp"

#include <vector>

#include "expect.h"

namespace {

void test_numbers_of_rows(mapped::Model& model) {
  const std::vector<float> x{1, 2, 3, 4, 5, 6, -6, -5, -4, -3, -2, -1, 0, 0, 0, 0, 0, 0};
  mapped::PredictResult result;
  EXPECT(model.predict(x, result).ok());
  EXPECT(result.label.rows() == 3 && result.scores.rows() == 3);
  std::array<std::int32_t, 2> labels{-1, -1};
  std::array<float, 6> scores{};
  EXPECT(model.predict(axir::View<const float, 2, 6>(x.data()), {labels, scores}).ok());
  for (std::size_t row = 0; row < 2; ++row) {
    EXPECT(labels[row] == result.label[row]);
    for (std::size_t column = 0; column < 3; ++column) {
      const float difference = scores[3 * row + column] - result.scores(row, column);
      EXPECT(difference < 1e-5f && difference > -1e-5f);
    }
  }
  const axir::Status status = model.predict(x, {labels, scores});
  EXPECT(status.code() == axir::Code::wrong_argument);
  EXPECT(status.message() == "predict: the dimension b differs: 'x' has 3, 'label' has 2");
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

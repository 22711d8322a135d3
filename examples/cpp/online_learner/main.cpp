// Learns from a stream of examples: one step of gradient descent for each 32 of them.
//
//   online_learner STATE < EXAMPLES      EXAMPLES: 8 floats and the target, again and again
//
// The gradient is `loss_grad`, which `axir grad` made of the loss in a saved bundle; the parameters
// belong to this program. They are read from the file STATE, if there is one, and written to it in
// the end. Prints the loss before each step.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <type_traits>

#include "learner.hpp"

namespace {

constexpr std::size_t kInputs = 8, kHidden = 16, kBatch = 32;
constexpr float kRate = 0.05f;

/// The parameters, and how a file holds them.
struct Parameters {
  std::array<std::array<float, kHidden>, kInputs> w1;
  std::array<float, kHidden> b1, w2;
  float b2;
};
static_assert(std::is_trivially_copyable_v<Parameters> && sizeof(Parameters) % sizeof(float) == 0);

struct Example {
  std::array<float, kInputs> x;
  float y;
};

Parameters random_parameters() {
  std::minstd_rand random(1);
  const auto next = [&] { return float(random() % 2001) / 1000 - 1; };
  Parameters params{};
  for (auto& row : params.w1) {
    for (float& weight : row) weight = next() / 2;
  }
  for (float& weight : params.w2) weight = next() / 2;
  return params;
}

/// Returns the parameters of a file, or random ones if there is no file.
Parameters load(const std::string& path) {
  if (!std::filesystem::exists(path)) return random_parameters();
  std::ifstream file(path, std::ios::binary);
  Parameters params;
  file.read(reinterpret_cast<char*>(&params), sizeof params);
  if (!file || file.peek() != std::ifstream::traits_type::eof()) {
    throw std::runtime_error(path + " holds no parameters of this model");
  }
  return params;
}

/// Writes a file, which appears whole or not at all.
void save(const std::string& path, const Parameters& params) {
  const std::string temporary = path + ".part";
  std::ofstream file(temporary, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&params), sizeof params);
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    throw std::runtime_error("cannot write " + path);
  }
}

/// Goes down a gradient.
void descend(float* values, const float* gradient, std::size_t count) {
  for (std::size_t number = 0; number < count; ++number) values[number] -= kRate * gradient[number];
}

void learn(Parameters& params, std::istream& input) {
  learner::Model model;
  std::array<float, kBatch * kInputs> x;
  std::array<float, kBatch> y;
  Example example;
  std::size_t count = 0;
  while (input.read(reinterpret_cast<char*>(&example), sizeof example)) {
    std::copy(example.x.begin(), example.x.end(), x.begin() + kInputs * count);
    y[count++] = example.y;
    if (count < kBatch) continue;
    count = 0;
    const axir::View<const float, kInputs, kHidden> w1(params.w1[0].data());
    const auto found = model.loss_grad(params.b1, params.b2, w1, params.w2, x, y);
    descend(params.w1[0].data(), found.w1.data(), found.w1.size());
    descend(params.b1.data(), found.b1.data(), found.b1.size());
    descend(params.w2.data(), found.w2.data(), found.w2.size());
    descend(&params.b2, found.b2.data(), 1);
    std::printf("%.9g\n", double(found.loss));
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: online_learner STATE < EXAMPLES\n";
    return 2;
  }
  try {
    Parameters params = load(words[1]);
    learn(params, std::cin);
    save(words[1], params);
  } catch (const std::exception& error) {
    std::cerr << "online_learner: " << error.what() << '\n';
    return 1;
  }
}

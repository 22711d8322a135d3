// Recognizes handwritten digits: reads images of 8 x 8 floats, prints what each of them shows.
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>

#include "digits.hpp"  // axir compile digits.axir --emit cpp -o digits_cpp/

int main(int count, char** words) {
  std::ifstream file(count == 2 ? words[1] : "", std::ios::binary);
  if (!file) {
    std::cerr << "usage: digits FILE, with 64 floats from 0 to 1 for each image\n";
    return 2;
  }
  try {
    digits::Model model;
    std::array<float, 64> image;
    while (file.read(reinterpret_cast<char*>(image.data()), sizeof image)) {
      const auto scores = model.predict(image).value;
      std::cout << std::max_element(scores.begin(), scores.end()) - scores.begin() << '\n';
    }
  } catch (const axir::Error& error) {
    std::cerr << "digits: " << error.what() << '\n';
    return 1;
  }
}

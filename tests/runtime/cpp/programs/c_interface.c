/* A model called from C: results, failures, state, instances. Prints the scores of one call. */
#include "classifier.h"

#include <stdio.h>
#include <string.h>

#include "expect.h"

static float x[30], y[15];

static void test_results(classifier_model* model) {
  int32_t label, labels[4];
  float scores[3], all[12];
  EXPECT(classifier_predict(model, 4, x, labels, all) == 0);
  for (int row = 0; row < 4; ++row) {
    int best = 0;
    EXPECT(classifier_predict(model, 1, x + 6 * row, &label, scores) == 0);
    for (int column = 0; column < 3; ++column) {
      const float difference = scores[column] - all[3 * row + column];
      EXPECT(difference < 1e-5f && difference > -1e-5f);
      if (scores[column] > scores[best]) best = column;
      printf("%.9g\n", (double)scores[column]);
    }
    EXPECT(label == best && labels[row] == best);
  }
}

static void test_failures(classifier_model* model) {
  float scores[3];
  int32_t label;
  char message[200] = "";
  classifier_options elsewhere = {0};
  classifier_model* none = model;
  EXPECT(classifier_predict(model, 1, NULL, &label, scores) == 1);
  EXPECT(strcmp(classifier_message(model), "predict: 'x' is a null pointer") == 0);
  elsewhere.parameters = "/nowhere/at/all";
  EXPECT(classifier_create(&elsewhere, &none, message, sizeof message) == 2);
  EXPECT(none == NULL);
  EXPECT(strcmp(message, "cannot read the file of parameters /nowhere/at/all") == 0);
  EXPECT(classifier_create(&elsewhere, &none, message, 7) == 2 && strlen(message) == 6);
  EXPECT(classifier_load(model, "/nowhere/at/all") == 2);
  EXPECT(classifier_save(model, "/nowhere/at/all") == 7);
  classifier_destroy(NULL);
}

static void test_state(classifier_model* model) {
  const char* const path = "c_interface_test.safetensors";
  float first, again, value, before[24];
  classifier_model* other = NULL;
  EXPECT(classifier_save(model, path) == 0);
  memcpy(before, classifier_params_w_1(model), sizeof before);
  EXPECT(classifier_share(model, &other, NULL, 0) == 0);
  EXPECT(classifier_step(model, x, y, &first) == 0);
  EXPECT(memcmp(before, classifier_params_w_1(model), sizeof before) != 0);
  EXPECT(memcmp(before, classifier_params_w_1(other), sizeof before) == 0);
  for (int step = 0; step < 20; ++step) EXPECT(classifier_step(model, x, y, &value) == 0);
  EXPECT(value < first);
  EXPECT(classifier_load(model, path) == 0 && remove(path) == 0);
  EXPECT(memcmp(before, classifier_params_w_1(model), sizeof before) == 0);
  EXPECT(classifier_step(other, x, y, &again) == 0 && again == first);
  classifier_destroy(other);
}

int main(void) {
  classifier_model* model = NULL;
  for (int index = 0; index < 30; ++index) x[index] = (float)(index % 7 - 3) / 4;
  for (int index = 0; index < 15; ++index) y[index] = (float)(index % 3) / 2;
  EXPECT(classifier_create(NULL, &model, NULL, 0) == 0);
  test_results(model);
  test_failures(model);
  test_state(model);
  classifier_destroy(model);
  return 0;
}

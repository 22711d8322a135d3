// Serves the digits model over HTTP.
//
//   POST /predict {"image": [64 numbers]}  ->  {"digit": 7, "scores": [10 numbers], "batch": 3}
//   GET /healthz                           ->  {"status": "ok"}
//   GET /metrics                           ->  latencies, sizes of batches, failures (Prometheus)
//
// SIGINT and SIGTERM end it, after the requests that are going on.
#include <httplib.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "batcher.hpp"
#include "histogram.hpp"

namespace {

using nlohmann::json;

constexpr std::size_t kLargestBatch = 64;
constexpr std::size_t kLargestRequest = 1 << 16;  // bytes
constexpr unsigned kConnections = 128;            // that are served at the same time
constexpr int kWaitingConnections = 1024;         // that may wait for that

struct Metrics {
  Histogram seconds{{1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1}};
  std::atomic<unsigned long> answered{0}, refused{0}, failed{0};
};

/// Returns the image of a request; throws `std::invalid_argument` where there is none.
Image image_of(const std::string& body) {
  const json request = json::parse(body, nullptr, false);
  if (request.is_discarded()) throw std::invalid_argument("the request is no JSON");
  if (!request.is_object() || !request.contains("image") || !request["image"].is_array()) {
    throw std::invalid_argument("the request must be an object with an array \"image\"");
  }
  const json& numbers = request["image"];
  Image image;
  if (numbers.size() != image.size()) {
    throw std::invalid_argument("\"image\" has " + std::to_string(numbers.size()) +
                                " numbers, must have " + std::to_string(image.size()));
  }
  for (std::size_t number = 0; number < image.size(); ++number) {
    if (!numbers[number].is_number()) {
      throw std::invalid_argument("\"image\" has something that is no number");
    }
    image[number] = numbers[number].get<float>();
  }
  return image;
}

void answer(httplib::Response& response, int status, const json& content) {
  response.status = status;
  response.set_content(content.dump(), "application/json");
}

void predict(Batcher& batcher, Metrics& metrics, const httplib::Request& request,
             httplib::Response& response) {
  const auto start = std::chrono::steady_clock::now();
  try {
    const Prediction found = batcher.predict(image_of(request.body));
    const auto best = std::max_element(found.scores.begin(), found.scores.end());
    answer(response, 200,
           {{"digit", best - found.scores.begin()},
            {"scores", found.scores},
            {"batch", found.batch}});
    ++metrics.answered;
  } catch (const std::invalid_argument& error) {
    answer(response, 400, {{"error", error.what()}});
    ++metrics.refused;
  } catch (const std::exception& error) {
    answer(response, 500, {{"error", error.what()}});
    ++metrics.failed;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  metrics.seconds.add(seconds.count());
}

std::string described(const Batcher& batcher, const Metrics& metrics) {
  std::ostringstream text;
  text << "# HELP digits_requests_total Requests for predictions.\n"
          "# TYPE digits_requests_total counter\n"
       << "digits_requests_total{code=\"200\"} " << metrics.answered << '\n'
       << "digits_requests_total{code=\"400\"} " << metrics.refused << '\n'
       << "digits_requests_total{code=\"500\"} " << metrics.failed << '\n';
  metrics.seconds.write(text, "digits_request_seconds", "From a request to its answer.");
  batcher.batches.write(text, "digits_batch_images", "Images computed together.");
  return text.str();
}

int serve(int port, const sigset_t& signals) {
  Metrics metrics;
  Batcher batcher(digits::Model(), std::max(1u, std::thread::hardware_concurrency() / 2),
                  kLargestBatch);
  httplib::Server server;
  socket_t socket = 0;
  server.new_task_queue = [] { return new httplib::ThreadPool(kConnections); };
  server.set_payload_max_length(kLargestRequest);
  server.set_keep_alive_max_count(1000000);
  server.set_tcp_nodelay(true);
  server.set_socket_options([&](socket_t made) { socket = made; });
  server.Post("/predict", [&](const httplib::Request& request, httplib::Response& response) {
    predict(batcher, metrics, request, response);
  });
  server.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    answer(response, 200, {{"status", "ok"}});
  });
  server.Get("/metrics", [&](const httplib::Request&, httplib::Response& response) {
    response.set_content(described(batcher, metrics), "text/plain; version=0.0.4");
  });
  const std::string host = "127.0.0.1";
  if (port == 0) {
    port = server.bind_to_any_port(host);
  } else if (!server.bind_to_port(host, port)) {
    port = -1;
  }
  // The library lets five connections wait, and a sixth try again after a second.
  if (port < 0 || ::listen(socket, kWaitingConnections) != 0) {
    std::cerr << "classifier_server: cannot listen on this port of " << host << '\n';
    return 1;
  }
  std::cout << "http://" << host << ':' << port << std::endl;
  std::thread ending([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    server.stop();
  });
  const bool is_served = server.listen_after_bind();
  pthread_kill(ending.native_handle(), SIGTERM);  // where the server ended by itself
  ending.join();
  return is_served ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  char* end = nullptr;
  const long port = count == 2 ? std::strtol(words[1], &end, 10) : -1;
  if (count != 2 || *end != '\0' || port < 0 || port > 65535) {
    std::cerr << "usage: classifier_server PORT, or 0 for any free one\n";
    return 2;
  }
  // All threads inherit that these signals wait until one asks for them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    return serve(static_cast<int>(port), signals);
  } catch (const std::exception& error) {
    std::cerr << "classifier_server: " << error.what() << '\n';
    return 1;
  }
}

// Many threads at once on one plan, each of which starts threads of its own: for the thread sanitizer, and to see that
// the answers stay the same.

#include <atomic>
#include <thread>

#include "cnf.hpp"
#include "library.hpp"
#include "plans.hpp"
#include "testing.hpp"

TEST(threads_share_a_plan) {
  std::mt19937 random(3);
  const Plan plan = decision_diagram(60, 12, random);
  const Handle handle(plan);
  const int64_t columns = 3000;  // enough for every call to start threads
  std::vector<float> leaves(static_cast<size_t>(plan.leaves() * columns));
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i] = float(i % 17) * 0.1f;
  const auto evaluate = [&](std::vector<float>& value, std::vector<float>& flows, int threads) {
    return query<Evaluate<float>, float>("evaluate")(handle.get(), nullptr, 0, 0, leaves.data(), columns, 1, columns,
                                                     value.data(), nullptr, flows.data(), threads);
  };
  std::vector<float> expected(static_cast<size_t>(columns)), flows(leaves.size());
  CHECK_EQUAL(evaluate(expected, flows, 1), 0);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      std::vector<float> value(expected.size()), mine(leaves.size()), best(expected.size()),
          ranked(2 * expected.size());
      std::vector<float> states(static_cast<size_t>(plan.variables) * 2 * expected.size());
      std::vector<uint8_t> some(expected.size());
      for (int round = 0; round < 3; ++round) {
        wrong += evaluate(value, mine, 3) != 0 || value != expected || mine != flows;
        wrong += query<Maximize<float>, float>("maximize")(handle.get(), nullptr, 0, 0, leaves.data(), columns, 1,
                                                           nullptr, columns, best.data(), nullptr, mine.data(), 2) != 0;
        wrong += query<Rank<float>, float>("rank")(handle.get(), nullptr, 0, 0, leaves.data(), columns, 1, 40, 2,
                                                   ranked.data(), states.data(), 2) != 0;
        wrong += query<Support<float>, float>("support")(handle.get(), leaves.data(), columns, 1, columns, 0,
                                                         some.data(), nullptr, 2) != 0;
        // failures are kept per thread
        double number = 0;
        const int64_t column = caller;
        wrong += query<Sample<double>, double>("sample")(handle.get(), nullptr, 0, 0, &number, 1, 1, &number, 0,
                                                         &column, 1, 1, &number, 1) != 3;
        wrong += function<int()>("semprola_engine_status")() != 3;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK_EQUAL(wrong.load(), 0);
}

// The first call without weights makes a second arrangement of the plan, once, whoever asks.
TEST(threads_make_the_plan_without_weights_once) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    const Plan plan = mixture(2, 4, random);
    const Handle handle(plan);
    const std::vector<double> leaves(static_cast<size_t>(plan.leaves()), 0.0);
    std::vector<double> values(4);
    std::vector<std::thread> callers;
    for (size_t i = 0; i < values.size(); ++i) {
      callers.emplace_back([&, i] {
        query<Evaluate<double>, double>("evaluate")(handle.get(), nullptr, 0, 0, leaves.data(), 1, 1, 1, &values[i],
                                                    nullptr, nullptr, 1);
      });
    }
    for (std::thread& caller : callers) caller.join();
    for (const double value : values) CHECK(value == values[0]);
  }
}

// Compilations side by side, watched and stopped from outside as Python does it.
TEST(threads_compile_watch_and_stop) {
  const Cnf small = random_cnf(20, 60, 3, 1), large = random_cnf(150, 420, 3, 2);
  std::vector<std::thread> workers;
  std::atomic<int> wrong{0};
  Shared watched[4] = {};
  std::atomic<int> ended{0};
  for (Shared& shared : watched) {
    workers.emplace_back([&] {
      const Compiled result = compile(large, shared);
      ++ended;
      wrong += result.status != kStopped;
      wrong += compile(small).status != kOk;
    });
  }
  bool searching = false;
  while (!searching && ended == 0) {
    searching = true;
    for (Shared& shared : watched) searching = searching && shared.phase == 2 && shared.nodes > 0;
    std::this_thread::yield();
  }
  for (Shared& shared : watched) shared.stop = 1;
  for (std::thread& worker : workers) worker.join();
  CHECK_EQUAL(wrong.load(), 0);
}

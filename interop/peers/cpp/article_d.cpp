// The lock of article D in C++ with hiredis: SETNX with the second of expiry as the value, GETSET to take over.
//
// Has the same defects as the published code: the key has no expiry, a loser overwrites the winner's value, and a
// release does not check the owner. The article defines "expired" in two ways; this uses "now is greater".
//
// usage: article-d PORT [CLOCK_AHEAD_MS [CLOCK_AT_MS]]; CLOCK_AT_MS stops the clock at that time. Reads one request per
// line from standard input. Verbs: interop/README.md.
#include <hiredis/hiredis.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using Reply = std::unique_ptr<redisReply, decltype(&freeReplyObject)>;

// The clock of this machine, a clock that is ahead of it, or a clock that is stopped at a time above 0.
struct Clock {
  long aheadMs = 0;
  long atMs = 0;

  long second() const {
    using namespace std::chrono;
    if (atMs > 0) return atMs / 1000;
    return static_cast<long>(floor<seconds>(system_clock::now().time_since_epoch() + milliseconds(aheadMs)).count());
  }
};

class ArticleD {
 public:
  ArticleD(redisContext* redis, Clock clock) : redis_(redis), clock_(clock) {}

  bool tryLock(const std::string& key) {
    const std::string value = std::to_string(clock_.second() + kLockTimeout);
    long long set = 0;
    if (setnx(key, value, set) == 0 && set == 1) return true;

    std::string current;
    if (int status = get(key, current); status != 0) {
      std::fprintf(stderr, "get %s failed, status %d: %s\n", key.c_str(), status, redis_->errstr);
      return false;
    }
    if (!isExpired(current)) return false;

    std::string old;
    const int status = getset(key, value, old);
    if (status < 0) {
      std::fprintf(stderr, "getset %s failed, status %d: %s\n", key.c_str(), status, redis_->errstr);
      return false;
    }
    return status == 0 && isExpired(old);
  }

  void unlock(const std::string& key) {
    Reply reply = command("DEL %s", key.c_str());
    if (!reply || reply->type == REDIS_REPLY_ERROR)
      std::fprintf(stderr, "del %s failed: %s\n", key.c_str(), redis_->errstr);
  }

  template <typename... Words>
  Reply command(const char* format, Words... words) {
    return Reply(static_cast<redisReply*>(redisCommand(redis_, format, words...)), &freeReplyObject);
  }

 private:
  static constexpr long kLockTimeout = 3;

  bool isExpired(const std::string& value) const { return clock_.second() > std::strtol(value.c_str(), nullptr, 10); }

  // These return below 0 for an error, 0 on success, and above 0 if the key does not exist.
  int setnx(const std::string& key, const std::string& value, long long& set) {
    Reply reply = command("SETNX %s %s", key.c_str(), value.c_str());
    if (!reply || reply->type != REDIS_REPLY_INTEGER) return -1;
    set = reply->integer;
    return 0;
  }

  int get(const std::string& key, std::string& value) { return text(command("GET %s", key.c_str()), value); }

  int getset(const std::string& key, const std::string& value, std::string& old) {
    return text(command("GETSET %s %s", key.c_str(), value.c_str()), old);
  }

  static int text(const Reply& reply, std::string& value) {
    if (!reply || reply->type == REDIS_REPLY_ERROR) return -1;
    if (reply->type == REDIS_REPLY_NIL) return 1;
    value.assign(reply->str, reply->len);
    return 0;
  }

  redisContext* redis_;
  Clock clock_;
};

// Requests are flat and their strings need no escapes, so one regular expression can read a field.
std::string field(const std::string& line, const std::string& name) {
  const std::regex pattern("\"" + name + "\":\\s*(?:\"([^\"]*)\"|([^\",}]*))");
  std::smatch found;
  if (!std::regex_search(line, found, pattern)) throw std::invalid_argument("the request has no " + name);
  return found[1].matched ? found[1] : found[2];
}

void pauseUpTo(int mostMs) {
  static std::mt19937 random{std::random_device{}()};
  std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<int>(0, mostMs)(random)));
}

// Repeatedly acquires the lock and updates a counter that only the lock protects. Every peer has the same loop. In the
// article the caller retries, so a wait is the time from the first attempt to the successful one.
std::string contend(ArticleD& lock, const std::string& line) {
  using Steady = std::chrono::steady_clock;
  const std::string name = field(line, "name");
  const std::string counter = field(line, "counter");
  const auto endAt = Steady::now() + std::chrono::milliseconds(std::stol(field(line, "forMs")));
  long rounds = 0;
  long refusals = 0;
  Steady::duration longest{};
  while (Steady::now() < endAt) {
    const auto askedAt = Steady::now();
    bool isHeld = false;
    while (!(isHeld = lock.tryLock(name)) && Steady::now() < endAt) {
      refusals += 1;
      pauseUpTo(20);
    }
    longest = std::max(longest, Steady::now() - askedAt);
    if (!isHeld) break;
    Reply seen = lock.command("GET %s", counter.c_str());
    const long value = seen && seen->str ? std::atol(seen->str) : 0;
    pauseUpTo(3);
    lock.command("SET %s %s", counter.c_str(), std::to_string(value + 1).c_str());
    lock.unlock(name);
    rounds += 1;
    pauseUpTo(3);
  }
  const auto longestMs = std::chrono::duration_cast<std::chrono::milliseconds>(longest).count();
  return "{\"rounds\":" + std::to_string(rounds) + ",\"refusals\":" + std::to_string(refusals) +
         ",\"longestWaitMs\":" + std::to_string(longestMs) + "}";
}

std::string call(ArticleD& lock, const std::string& line) {
  const std::string verb = field(line, "verb");
  if (verb == "tryLock") return lock.tryLock(field(line, "name")) ? "true" : "false";
  if (verb == "unlock") {
    lock.unlock(field(line, "name"));
    return "true";
  }
  if (verb == "contend") return contend(lock, line);
  throw std::invalid_argument("there is no verb " + verb);
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: %s PORT [CLOCK_AHEAD_MS [CLOCK_AT_MS]]\n", words[0]);
    return 2;
  }
  std::unique_ptr<redisContext, decltype(&redisFree)> redis(redisConnect("127.0.0.1", std::atoi(words[1])), &redisFree);
  if (!redis || redis->err) {
    std::fprintf(stderr, "cannot connect: %s\n", redis ? redis->errstr : "out of memory");
    return 1;
  }
  ArticleD lock(redis.get(), Clock{count > 2 ? std::atol(words[2]) : 0, count > 3 ? std::atol(words[3]) : 0});
  for (std::string line; std::getline(std::cin, line);) {
    const std::string id = field(line, "id");
    try {
      const std::string value = call(lock, line);
      std::cout << "{\"id\":" << id << ",\"ok\":true,\"value\":" << value << "}" << std::endl;
    } catch (const std::exception& error) {
      std::cout << "{\"id\":" << id << ",\"ok\":false,\"error\":\"exception\",\"message\":\"" << error.what() << "\"}"
                << std::endl;
    }
  }
}

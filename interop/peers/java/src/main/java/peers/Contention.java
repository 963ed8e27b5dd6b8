package peers;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.api.RBucket;
import org.redisson.api.RScript;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * Repeatedly acquires a lock, reads a counter, pauses, and writes it back incremented. A lost update shows that there
 * were two holders. Every peer has the same loop.
 */
final class Contention {
  private static final int PAUSE_MS = 3;

  private Contention() {}

  /** An attempt to acquire that waits for the time in the request. */
  interface Attempt {
    boolean tryLock() throws Exception;
  }

  static Map<String, Object> run(RedissonClient client, Request request, Attempt attempt, Runnable unlock)
      throws Exception {
    RBucket<String> counter = client.getBucket(request.text("counter"), StringCodec.INSTANCE);
    return loop(
        request.number("forMs"),
        attempt,
        () -> {
          long seen = Long.parseLong(onMaster(client, counter));
          Thread.sleep(pause());
          counter.set(String.valueOf(seen + 1));
        },
        unlock);
  }

  /** The same loop for readers: the counter must not change while they hold the lock. */
  static Map<String, Object> watch(RedissonClient client, Request request, Attempt attempt, Runnable unlock)
      throws Exception {
    RBucket<String> counter = client.getBucket(request.text("counter"), StringCodec.INSTANCE);
    AtomicLong changes = new AtomicLong();
    Map<String, Object> result =
        loop(
            request.number("forMs"),
            attempt,
            () -> {
              String seen = onMaster(client, counter);
              Thread.sleep(pause());
              if (!seen.equals(onMaster(client, counter))) {
                changes.incrementAndGet();
              }
            },
            unlock);
    result.put("changes", changes.get());
    return result;
  }

  /** Reads the counter from the primary. By default Redisson reads from a replica, which may lag behind. */
  private static String onMaster(RedissonClient client, RBucket<String> counter) {
    return client
        .getScript(StringCodec.INSTANCE)
        .eval(
            RScript.Mode.READ_WRITE,
            "return redis.call('GET', KEYS[1])",
            RScript.ReturnType.VALUE,
            Collections.singletonList(counter.getName()));
  }

  /** The work inside the lock. */
  interface Work {
    void run() throws Exception;
  }

  static Map<String, Object> loop(long forMs, Attempt attempt, Work work, Runnable unlock) throws Exception {
    long endAt = System.nanoTime() + forMs * 1_000_000;
    long longestWait = 0;
    long rounds = 0;
    long refusals = 0;
    while (System.nanoTime() < endAt) {
      long askedAt = System.nanoTime();
      boolean isHeld = attempt.tryLock();
      longestWait = Math.max(longestWait, System.nanoTime() - askedAt);
      if (!isHeld) {
        refusals += 1;
        continue;
      }
      work.run();
      unlock.run();
      rounds += 1;
      Thread.sleep(pause());
    }
    Map<String, Object> result = new LinkedHashMap<>();
    result.put("rounds", rounds);
    result.put("refusals", refusals);
    result.put("longestWaitMs", longestWait / 1_000_000);
    return result;
  }

  static int pause() {
    return ThreadLocalRandom.current().nextInt(PAUSE_MS + 1);
  }
}

package peers;

import java.util.List;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import redis.clients.jedis.JedisPooled;

/**
 * The UUID lock of the second Java article: SET if absent with an expiry, a count for each thread, and a renewal every
 * ten seconds that interrupts its thread if it is refused.
 *
 * <p>Has the same defects as the published code, because the tests show them: a thread never compares its own count
 * with the server, a renewal that throws is the last one, and an unlock that throws does not stop the renewal.
 */
final class UuidLock {
  private static final String TAKE = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0";
  private static final String GIVE =
      "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
  private static final String RENEW =
      "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";

  private static final ScheduledExecutorService SCHEDULE =
      Executors.newScheduledThreadPool(
          2,
          task -> {
            Thread thread = new Thread(task, "renewal");
            thread.setDaemon(true);
            return thread;
          });

  private final JedisPooled redis;
  private final String key;
  private final long leaseMs;
  private final long renewMs;
  private final ThreadLocal<Hold> held = new ThreadLocal<>();
  private final AtomicLong renewals = new AtomicLong();

  /** The local state of a thread's lock. */
  private static final class Hold {
    final String uuid = UUID.randomUUID().toString();
    int count = 1;
    ScheduledFuture<?> renewal;
  }

  UuidLock(JedisPooled redis, Request request) {
    this.redis = redis;
    this.key = request.text("name");
    this.leaseMs = request.number("leaseMs", 30_000);
    this.renewMs = request.number("renewMs", 10_000);
  }

  boolean tryLock(long time, TimeUnit unit) {
    if (time <= 0 || unit == null) {
      throw new IllegalArgumentException("a time above 0, and its unit");
    }
    Hold known = held.get();
    if (known != null) {
      known.count += 1;
      return true;
    }
    Hold hold = new Hold();
    if (!isOne(TAKE, hold.uuid, String.valueOf(leaseMs))) {
      return false;
    }
    held.set(hold);
    Thread owner = Thread.currentThread();
    hold.renewal =
        SCHEDULE.scheduleAtFixedRate(() -> renew(hold, owner), renewMs, renewMs, TimeUnit.MILLISECONDS);
    return true;
  }

  void unlock() {
    Hold hold = held.get();
    if (hold == null) {
      return;
    }
    if (hold.count > 1) {
      hold.count -= 1;
      return;
    }
    isOne(GIVE, hold.uuid);
    held.remove();
    hold.renewal.cancel(false);
  }

  /** The number of attempted renewals. */
  long renewals() {
    return renewals.get();
  }

  private void renew(Hold hold, Thread owner) {
    renewals.incrementAndGet();
    System.err.println("renew lock " + key);
    if (!isOne(RENEW, hold.uuid, String.valueOf(leaseMs))) {
      owner.interrupt();
    }
  }

  private boolean isOne(String script, String... args) {
    return ((Long) redis.eval(script, List.of(key), List.of(args))) == 1;
  }
}

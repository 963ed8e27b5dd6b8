package peers;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.UncheckedIOException;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.exceptions.JedisException;

/**
 * The lock of the Java article: SETNX with the time of expiry as the value, GETSET to take over an expired lock.
 *
 * <p>Has the same defects as the published code, because the tests show them: all threads of an object share one flag,
 * a waiter holds the object's monitor, a release does not check the owner, and errors count as "busy".
 */
final class JedisLock {
  private static final long POLL_MS = 100;

  private final JedisPooled redis;
  private final String key;
  private final long expireMs;
  private final long timeoutMs;
  private final long clockAheadMs;
  /** If above 0, the clock is stopped at this time. */
  private final long clockAtMs;
  /** Whether the client is configured without a key serializer: a delete then uses a different key. */
  private final boolean hasForeignKeys;

  private boolean locked;

  JedisLock(JedisPooled redis, Request request) {
    this.redis = redis;
    this.key = request.text("name") + "_lock";
    this.expireMs = request.number("leaseMs", 60_000);
    this.timeoutMs = request.number("waitMs", 10_000);
    this.clockAheadMs = request.number("clockAheadMs", 0);
    this.clockAtMs = request.number("clockAtMs", 0);
    this.hasForeignKeys = request.text("keySerializer", "string").equals("java");
  }

  synchronized boolean lock() throws InterruptedException {
    long left = timeoutMs;
    while (left >= 0) {
      String value = String.valueOf(now() + expireMs + 1);
      if (setIfAbsent(value)) {
        locked = true;
        return true;
      }
      String current = get();
      if (current != null && Long.parseLong(current) < now()) {
        String old = getAndSet(value);
        if (old != null && old.equals(current)) {
          locked = true;
          return true;
        }
      }
      left -= POLL_MS;
      Thread.sleep(POLL_MS);
    }
    return false;
  }

  synchronized void unlock() {
    if (!locked) {
      return;
    }
    if (hasForeignKeys) {
      redis.del(serialized(key));
    } else {
      redis.del(key);
    }
    locked = false;
  }

  private long now() {
    return clockAtMs > 0 ? clockAtMs : System.currentTimeMillis() + clockAheadMs;
  }

  private boolean setIfAbsent(String value) {
    try {
      return redis.setnx(key, value) == 1;
    } catch (JedisException error) {
      System.err.println("setNX redis error, key : " + key);
      return false;
    }
  }

  private String get() {
    try {
      return redis.get(key);
    } catch (JedisException error) {
      System.err.println("get redis error, key : " + key);
      return null;
    }
  }

  private String getAndSet(String value) {
    try {
      return redis.getSet(key, value);
    } catch (JedisException error) {
      System.err.println("setNX redis error, key : " + key);
      return null;
    }
  }

  /** The key in Java's own serialization, which is the default of a template. */
  private static byte[] serialized(String key) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(key);
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
    return bytes.toByteArray();
  }
}

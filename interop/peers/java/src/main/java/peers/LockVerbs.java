package peers;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** The verbs of all Redisson locks that implement the java.util.concurrent Lock, and of the fenced lock. */
final class LockVerbs {
  /** The lease value with which Redisson renews a lock until it is unlocked. */
  private static final long RENEWED = -1;

  /** One object per client, type and name, as in a service, because Redisson stores the last lease in the object. */
  private final Map<String, RLock> known = new ConcurrentHashMap<>();

  Object call(RedissonClient client, String verb, Request request) throws Exception {
    if (verb.equals("owner")) {
      return client.getId() + ":" + Thread.currentThread().getId();
    }
    RLock lock = lock(client, request);
    switch (verb) {
      case "lock":
        if (request.has("leaseMs")) {
          lock.lock(request.number("leaseMs"), MILLISECONDS);
        } else {
          lock.lock();
        }
        return true;
      case "lockInterruptibly":
        lock.lockInterruptibly();
        return true;
      case "tryLock":
        return tryLock(lock, request);
      case "unlock":
        lock.unlock();
        return true;
      case "forceUnlock":
        return lock.forceUnlock();
      case "isLocked":
        return lock.isLocked();
      case "isHeld":
        return lock.isHeldByCurrentThread();
      case "holdCount":
        return lock.getHoldCount();
      case "remainTimeToLive":
        return lock.remainTimeToLive();
      case "contend":
        return Contention.run(client, request, () -> tryLock(lock, request), lock::unlock);
      case "watch":
        return Contention.watch(client, request, () -> tryLock(lock, request), lock::unlock);
      default:
        return fenced((RFencedLock) lock, verb, request);
    }
  }

  private static boolean tryLock(RLock lock, Request request) throws InterruptedException {
    if (!request.has("waitMs") && !request.has("leaseMs")) {
      return lock.tryLock();
    }
    return lock.tryLock(request.number("waitMs", 0), request.number("leaseMs", RENEWED), MILLISECONDS);
  }

  private static Object fenced(RFencedLock lock, String verb, Request request) {
    switch (verb) {
      case "lockAndGetToken":
        return lock.lockAndGetToken();
      case "tryLockAndGetToken":
        return lock.tryLockAndGetToken(request.number("waitMs", 0), request.number("leaseMs", RENEWED), MILLISECONDS);
      case "getToken":
        return lock.getToken();
      default:
        throw new IllegalArgumentException("a lock has no verb " + verb);
    }
  }

  private RLock lock(RedissonClient client, Request request) {
    String type = request.text("type", "lock");
    if (type.equals("multi")) {
      return client.getMultiLock(request.texts("names").stream().map(client::getLock).toArray(RLock[]::new));
    }
    String name = request.text("name");
    return known.computeIfAbsent(client.getId() + " " + type + " " + name, key -> single(client, type, name));
  }

  private static RLock single(RedissonClient client, String type, String name) {
    switch (type) {
      case "lock":
        return client.getLock(name);
      case "fair":
        return client.getFairLock(name);
      case "read":
        return client.getReadWriteLock(name).readLock();
      case "write":
        return client.getReadWriteLock(name).writeLock();
      case "fenced":
        return client.getFencedLock(name);
      case "spin":
        return client.getSpinLock(name);
      case "nonReentrant":
        return byName(client, "getNonReentrantLock", name);
      case "nonReentrantFair":
        return byName(client, "getNonReentrantFairLock", name);
      default:
        throw new IllegalArgumentException("there is no lock of type " + type);
    }
  }

  /** Calls a getter by name, for lock types that some versions lack. */
  private static RLock byName(RedissonClient client, String getter, String name) {
    try {
      return (RLock) RedissonClient.class.getMethod(getter, String.class).invoke(client, name);
    } catch (ReflectiveOperationException error) {
      throw new UnsupportedOperationException("this Redisson has no " + getter, error);
    }
  }
}

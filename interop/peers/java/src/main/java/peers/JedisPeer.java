package peers;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.JedisPooled;

/** A Java service with the locks of both Java articles; has any number of lock objects. Verbs: interop/README.md. */
public final class JedisPeer {
  private final Map<String, JedisPooled> pools = new ConcurrentHashMap<>();
  private final Map<String, JedisLock> locks = new ConcurrentHashMap<>();
  private final Map<String, UuidLock> uuidLocks = new ConcurrentHashMap<>();

  private JedisPeer() {}

  public static void main(String[] args) throws Exception {
    Lines.serve(new JedisPeer()::call);
  }

  private Object call(String verb, Request request) throws Exception {
    String name = request.text("lock", "main");
    if (verb.equals("create")) {
      locks.put(name, new JedisLock(pool(request.text("port")), request));
      return true;
    }
    if (verb.equals("uuid.create")) {
      uuidLocks.put(name, new UuidLock(pool(request.text("port")), request));
      return true;
    }
    if (verb.startsWith("uuid.")) {
      return callUuid(verb, uuidLocks.get(name), request);
    }
    JedisLock lock = locks.get(name);
    if (lock == null) {
      throw new IllegalArgumentException("there is no lock object " + name);
    }
    switch (verb) {
      case "lock":
        return lock.lock();
      case "unlock":
        lock.unlock();
        return true;
      case "contend":
        return contend(lock::lock, lock::unlock, request);
      default:
        throw new IllegalArgumentException("there is no verb " + verb);
    }
  }

  private Object callUuid(String verb, UuidLock lock, Request request) throws Exception {
    if (lock == null) {
      throw new IllegalArgumentException("there is no lock object with that name");
    }
    switch (verb) {
      case "uuid.tryLock":
        return lock.tryLock(request.number("timeMs", 1_000), TimeUnit.MILLISECONDS);
      case "uuid.unlock":
        lock.unlock();
        return true;
      case "uuid.renewals":
        return lock.renewals();
      case "uuid.lockAndEnd":
        Thread brief = new Thread(() -> lock.tryLock(1, TimeUnit.SECONDS));
        brief.start();
        brief.join();
        return true;
      case "uuid.sleep":
        Thread.sleep(request.number("forMs"));
        return true;
      case "uuid.contend":
        return contend(() -> lock.tryLock(1, TimeUnit.SECONDS), lock::unlock, request);
      default:
        throw new IllegalArgumentException("there is no verb " + verb);
    }
  }

  private JedisPooled pool(String port) {
    return pools.computeIfAbsent(port, known -> new JedisPooled("127.0.0.1", Integer.parseInt(known)));
  }

  private Object contend(Contention.Attempt attempt, Runnable unlock, Request request) throws Exception {
    JedisPooled redis = pool(request.text("port"));
    String counter = request.text("counter");
    return Contention.loop(
        request.number("forMs"),
        attempt,
        () -> {
          long seen = Long.parseLong(String.valueOf(redis.get(counter)));
          Thread.sleep(Contention.pause());
          redis.set(counter, String.valueOf(seen + 1));
        },
        unlock);
  }
}

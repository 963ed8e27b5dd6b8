package peers;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RSemaphore;

/** The verbs of Redisson's plain semaphore, which is a number without owners. */
final class SemaphoreVerbs {
  private SemaphoreVerbs() {}

  static Object call(RSemaphore semaphore, String verb, Request request) throws InterruptedException {
    int permits = (int) request.number("permits", 1);
    switch (verb) {
      case "trySetPermits":
        return semaphore.trySetPermits(permits);
      case "addPermits":
        semaphore.addPermits(permits);
        return true;
      case "acquire":
        semaphore.acquire(permits);
        return true;
      case "tryAcquire":
        return request.has("waitMs")
            ? semaphore.tryAcquire(permits, request.number("waitMs"), MILLISECONDS)
            : semaphore.tryAcquire(permits);
      case "release":
        semaphore.release(permits);
        return true;
      case "drainPermits":
        return semaphore.drainPermits();
      case "availablePermits":
        return semaphore.availablePermits();
      case "delete":
        return semaphore.delete();
      default:
        throw new IllegalArgumentException("a semaphore has no verb " + verb);
    }
  }
}

package peers;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RPermitExpirableSemaphore;

/** Redisson's semaphore of permits with ids and leases. A lease of -1 never ends. */
final class PermitVerbs {
  private PermitVerbs() {}

  static Object call(RPermitExpirableSemaphore semaphore, String verb, Request request) throws InterruptedException {
    int permits = (int) request.number("permits", 1);
    long leaseMs = request.number("leaseMs", -1);
    switch (verb) {
      case "trySetPermits":
        return semaphore.trySetPermits(permits);
      case "setPermits":
        semaphore.setPermits(permits);
        return true;
      case "addPermits":
        semaphore.addPermits(permits);
        return true;
      case "acquire":
        return leaseMs < 0 ? semaphore.acquire() : semaphore.acquire(leaseMs, MILLISECONDS);
      case "tryAcquire":
        return semaphore.tryAcquire(request.number("waitMs", 0), leaseMs, MILLISECONDS);
      case "tryAcquireSome":
        return semaphore.tryAcquire(permits, request.number("waitMs", 0), leaseMs, MILLISECONDS);
      case "release":
        semaphore.release(request.text("permitId"));
        return true;
      case "tryRelease":
        return semaphore.tryRelease(request.text("permitId"));
      case "releaseSome":
        semaphore.release(request.texts("permitIds"));
        return true;
      case "updateLeaseTime":
        return semaphore.updateLeaseTime(request.text("permitId"), leaseMs, MILLISECONDS);
      case "availablePermits":
        return semaphore.availablePermits();
      case "acquiredPermits":
        return semaphore.acquiredPermits();
      case "getPermits":
        return semaphore.getPermits();
      case "delete":
        return semaphore.delete();
      default:
        throw new IllegalArgumentException("a semaphore of expirable permits has no verb " + verb);
    }
  }
}

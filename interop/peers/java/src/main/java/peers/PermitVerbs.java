package peers;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RPermitExpirableSemaphore;

/** The verbs of Redisson's semaphore with permit ids and leases. A lease of -1 never ends. */
final class PermitVerbs {
  private PermitVerbs() {}

  static Object call(RPermitExpirableSemaphore semaphore, String verb, Request request) throws Exception {
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
        return tryAcquireSome(semaphore, permits, request.number("waitMs", 0), leaseMs);
      case "release":
        semaphore.release(request.text("permitId"));
        return true;
      case "tryRelease":
        return semaphore.tryRelease(request.text("permitId"));
      case "releaseSome":
        releaseSome(semaphore, request.texts("permitIds"));
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

  /** Calls the method for several permits by name, because it exists since 3.23.4. Before, takes one per call. */
  private static Object tryAcquireSome(RPermitExpirableSemaphore semaphore, int permits, long waitMs, long leaseMs)
      throws Exception {
    try {
      return RPermitExpirableSemaphore.class
          .getMethod("tryAcquire", int.class, long.class, long.class, TimeUnit.class)
          .invoke(semaphore, permits, waitMs, leaseMs, MILLISECONDS);
    } catch (NoSuchMethodException old) {
      List<String> taken = new ArrayList<>();
      while (taken.size() < permits) {
        String permitId = semaphore.tryAcquire(waitMs, leaseMs, MILLISECONDS);
        if (permitId == null) {
          taken.forEach(semaphore::release);
          return List.of();
        }
        taken.add(permitId);
      }
      return taken;
    } catch (InvocationTargetException error) {
      throw (Exception) error.getCause();
    }
  }

  private static void releaseSome(RPermitExpirableSemaphore semaphore, List<String> permitIds) throws Exception {
    try {
      RPermitExpirableSemaphore.class.getMethod("release", List.class).invoke(semaphore, permitIds);
    } catch (NoSuchMethodException old) {
      permitIds.forEach(semaphore::release);
    } catch (InvocationTargetException error) {
      throw (Exception) error.getCause();
    }
  }
}

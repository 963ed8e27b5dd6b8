package peers;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RCountDownLatch;

/** The verbs of Redisson's count-down latch. */
final class LatchVerbs {
  private LatchVerbs() {}

  static Object call(RCountDownLatch latch, String verb, Request request) throws InterruptedException {
    switch (verb) {
      case "trySetCount":
        return latch.trySetCount(request.number("count"));
      case "countDown":
        latch.countDown();
        return true;
      case "getCount":
        return latch.getCount();
      case "await":
        if (request.has("waitMs")) {
          return latch.await(request.number("waitMs"), MILLISECONDS);
        }
        latch.await();
        return true;
      case "delete":
        return latch.delete();
      default:
        throw new IllegalArgumentException("a latch has no verb " + verb);
    }
  }
}

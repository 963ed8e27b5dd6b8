package peers;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * A Java service that uses Redisson's fenced lock, for the benchmark. Verbs: "connect" and the orders of
 * bench/src/worker/orders.ts.
 */
public final class BenchPeer {
  /** The number of free locks, the same as for the contestants on Node.js. */
  private static final int NAMES = 1_024;

  private RedissonClient client;

  private BenchPeer() {}

  public static void main(String[] args) throws Exception {
    Lines.serve(new BenchPeer()::call);
  }

  private Object call(String verb, Request request) throws Exception {
    switch (verb) {
      case "connect":
        // Redisson's defaults, except for the lease.
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + request.number("port"));
        config.setLockWatchdogTimeout(request.number("leaseMs"));
        client = Redisson.create(config);
        return true;
      case "pairs":
        return pairs(request);
      case "one-at-a-time":
        return oneAtATime(request);
      case "crowd":
        return crowd(request);
      default:
        throw new IllegalArgumentException("there is no verb " + verb);
    }
  }

  /** Acquires and releases free locks. No two callers use the same names. */
  private Map<String, Object> pairs(Request request) throws Exception {
    int parallel = (int) request.number("parallel");
    double before = processorUs();
    double startedAtMs = machineMs();
    double endAtMs = startedAtMs + request.decimal("seconds") * 1_000;
    long[] counts = new long[parallel];
    AtomicReference<Throwable> failure = new AtomicReference<>();
    List<Thread> callers = new ArrayList<>();
    for (int caller = 0; caller < parallel; caller++) {
      int first = caller;
      callers.add(
          started(
              failure,
              () -> {
                for (int i = first; machineMs() < endAtMs; i += parallel) {
                  RFencedLock lock = free(i);
                  lock.lockAndGetToken();
                  lock.unlock();
                  counts[first] += 1;
                }
              }));
    }
    for (Thread caller : callers) {
      caller.join();
    }
    check(failure);
    Map<String, Object> done = new LinkedHashMap<>();
    done.put("pairs", Arrays.stream(counts).sum());
    done.put("tookMs", machineMs() - startedAtMs);
    done.put("processorUs", processorUs() - before);
    return done;
  }

  private Map<String, Object> oneAtATime(Request request) {
    List<Double> times = new ArrayList<>();
    double startedAtMs = machineMs();
    double endAtMs = startedAtMs + request.decimal("seconds") * 1_000;
    for (int i = 0; startedAtMs < endAtMs; i++) {
      RFencedLock lock = free(i);
      lock.lockAndGetToken();
      lock.unlock();
      double nowMs = machineMs();
      times.add((nowMs - startedAtMs) * 1_000);
      startedAtMs = nowMs;
    }
    times.sort(null);
    Map<String, Object> done = new LinkedHashMap<>();
    done.put("p50", quantile(times, 0.5));
    done.put("p99", quantile(times, 0.99));
    return done;
  }

  /** Many callers contend for one name; all critical sections are recorded. Finally, waiting callers are abandoned. */
  private Map<String, Object> crowd(Request request) throws Exception {
    int count = (int) request.number("callers");
    double sectionMs = request.decimal("sectionMs");
    double untilMs = request.decimal("untilMs");
    double checkUntilMs = request.decimal("checkUntilMs");
    RFencedLock lock = client.getFencedLock(request.text("lock"));
    Object guard = new Object();
    List<Double> sections = new ArrayList<>();
    double[] waitingSince = new double[count];
    Arrays.fill(waitingSince, Double.NaN);
    AtomicReference<Throwable> failure = new AtomicReference<>();
    List<Thread> callers = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int caller = i;
      callers.add(
          started(
              failure,
              () -> {
                for (double askedAtMs = machineMs(); askedAtMs < checkUntilMs; askedAtMs = machineMs()) {
                  synchronized (guard) {
                    waitingSince[caller] = askedAtMs;
                  }
                  lock.lockAndGetToken();
                  double startedAtMs = machineMs();
                  if (sectionMs > 0) {
                    Thread.sleep((long) sectionMs);
                  } else if (startedAtMs >= untilMs) {
                    Thread.yield();
                  }
                  double endedAtMs = machineMs();
                  synchronized (guard) {
                    waitingSince[caller] = Double.NaN;
                    sections.addAll(List.of((double) caller, askedAtMs, startedAtMs, endedAtMs));
                  }
                  lock.unlock();
                }
              }));
    }
    sleepUntil(request.decimal("fromMs"));
    double before = processorUs();
    sleepUntil(untilMs);
    double used = processorUs() - before;
    double[] waiting;
    synchronized (guard) {
      waiting = Arrays.stream(waitingSince).filter(sinceMs -> !Double.isNaN(sinceMs)).toArray();
    }
    for (Thread caller : callers) {
      caller.join((long) Math.max(1, checkUntilMs - machineMs()));
    }
    check(failure);
    Map<String, Object> done = new LinkedHashMap<>();
    synchronized (guard) {
      done.put("sections", List.copyOf(sections));
    }
    done.put("waitingSinceMs", waiting);
    done.put("processorUs", used);
    return done;
  }

  /** The work that a caller repeats. */
  private interface Work {
    void run() throws Exception;
  }

  private static Thread started(AtomicReference<Throwable> failure, Work work) {
    Thread thread =
        new Thread(
            () -> {
              try {
                work.run();
              } catch (Throwable error) {
                failure.compareAndSet(null, error);
              }
            });
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private static void check(AtomicReference<Throwable> failure) {
    if (failure.get() != null) {
      throw new IllegalStateException(failure.get());
    }
  }

  private RFencedLock free(int i) {
    return client.getFencedLock("order:" + i % NAMES);
  }

  private static double quantile(List<Double> sorted, double share) {
    return sorted.isEmpty() ? 0 : sorted.get((int) (share * (sorted.size() - 1)));
  }

  /** Milliseconds on the machine's monotonic clock, which Node.js uses too. */
  private static double machineMs() {
    return System.nanoTime() / 1e6;
  }

  private static double processorUs() {
    return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e3;
  }

  private static void sleepUntil(double atMs) throws InterruptedException {
    Thread.sleep((long) Math.max(0, atMs - machineMs()));
  }
}

package peers;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * The line protocol of the Java peers: one JSON request per line on input, one JSON reply per line on output.
 *
 * <p>Java locks belong to threads, so each request names the thread that runs it. Requests of one thread run one after
 * another; requests of different threads run concurrently.
 */
final class Lines {
  /** Runs a verb on the thread that the request names. */
  interface Verbs {
    Object call(String verb, Request request) throws Exception;
  }

  private final Verbs verbs;
  private final PrintStream out;
  private final Gson gson = new GsonBuilder().serializeNulls().create();
  private final Map<String, Worker> workers = new LinkedHashMap<>();

  private Lines(Verbs verbs) {
    this.verbs = verbs;
    this.out = System.out;
    // Output of libraries must not mix with the replies.
    System.setOut(System.err);
  }

  /** Reads until the input ends and then exits, so that a peer does not outlive the test that started it. */
  static void serve(Verbs verbs) throws IOException {
    Lines lines = new Lines(verbs);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      lines.take(JsonParser.parseString(line).getAsJsonObject());
    }
    Runtime.getRuntime().halt(0);
  }

  private void take(JsonObject fields) {
    Request request = new Request(fields);
    long id = request.number("id");
    Worker worker = workers.computeIfAbsent(request.text("thread", "main"), Worker::new);
    if (request.text("verb").equals("interrupt")) {
      worker.thread.interrupt();
      answer(id, true, Map.of("value", true));
      return;
    }
    if (request.text("verb").equals("state")) {
      answer(id, true, Map.of("value", worker.thread.getState().name()));
      return;
    }
    worker.tasks.add(() -> carryOut(id, request));
  }

  private void carryOut(long id, Request request) {
    try {
      Map<String, Object> answer = new LinkedHashMap<>();
      answer.put("value", verbs.call(request.text("verb"), request));
      answer(id, true, answer);
    } catch (Throwable error) {
      answer(id, false, Map.of("error", error.getClass().getSimpleName(), "message", messageOf(error)));
    }
  }

  /** Appends the cause, because Redisson often reports only "Unexpected exception". */
  private static String messageOf(Throwable error) {
    String message = String.valueOf(error.getMessage());
    return error.getCause() == null ? message : message + "; caused by " + error.getCause();
  }

  private synchronized void answer(long id, boolean ok, Map<String, ?> rest) {
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("id", id);
    line.put("ok", ok);
    line.putAll(rest);
    out.println(gson.toJson(line));
    out.flush();
  }

  /** A named thread. It lives as long as the process, so that it remains the owner of its locks. */
  private static final class Worker {
    final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
    final Thread thread;

    Worker(String name) {
      thread = new Thread(this::run, name);
      thread.setDaemon(true);
      thread.start();
    }

    private void run() {
      for (;;) {
        try {
          tasks.take().run();
        } catch (InterruptedException tooLate) {
          // The interrupt was meant for a request that had just ended.
        }
      }
    }
  }
}

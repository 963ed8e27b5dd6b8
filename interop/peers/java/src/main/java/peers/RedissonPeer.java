package peers;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.Version;
import org.redisson.api.RedissonClient;

/** A Java service with Redisson; has any number of named clients. Verbs: interop/README.md. */
public final class RedissonPeer {
  private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();
  private final LockVerbs locks = new LockVerbs();

  private RedissonPeer() {}

  public static void main(String[] args) throws Exception {
    Lines.serve(new RedissonPeer()::call);
  }

  private Object call(String verb, Request request) throws Exception {
    String name = request.text("client", "main");
    switch (verb) {
      case "version":
        return Version.class.getPackage().getImplementationVersion();
      case "connect":
        clients.put(name, Clients.connect(request));
        return true;
      case "shutdown":
        // Releases nothing: to the server, this client has crashed.
        clients.remove(name).shutdown();
        return true;
      default:
        break;
    }
    RedissonClient client = clients.get(name);
    if (client == null) {
      throw new IllegalArgumentException("there is no client " + name);
    }
    int dot = verb.indexOf('.');
    String kind = dot < 0 ? "lock" : verb.substring(0, dot);
    String rest = verb.substring(dot + 1);
    switch (kind) {
      case "lock":
        return locks.call(client, rest, request);
      case "semaphore":
        return SemaphoreVerbs.call(client.getSemaphore(request.text("name")), rest, request);
      case "permit":
        return PermitVerbs.call(client.getPermitExpirableSemaphore(request.text("name")), rest, request);
      case "latch":
        return LatchVerbs.call(client.getCountDownLatch(request.text("name")), rest, request);
      default:
        throw new IllegalArgumentException("there is no verb " + verb);
    }
  }
}

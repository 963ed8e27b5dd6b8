package peers;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.SentinelServersConfig;
import org.redisson.config.SingleServerConfig;

/** Creates Redisson's configuration from a request. Sets options that some versions lack by name. */
final class Clients {
  /** The number of threads that a test uses at the same time. */
  private static final int CONNECTIONS = 16;

  private Clients() {}

  static RedissonClient connect(Request request) throws ReflectiveOperationException {
    Config config = new Config();
    config.setThreads(4);
    config.setNettyThreads(4);
    config.setLockWatchdogTimeout(request.number("watchdogMs", 30_000));
    if (request.has("fairWaitMs")) {
      set(config, "setFairLockWaitTimeout", request.number("fairWaitMs"));
    }
    Object servers = servers(config, request);
    if (request.has("prefix")) {
      Object holder = setter(config, "setNameMapper") != null ? config : servers;
      set(holder, "setNameMapper", mapper(setter(holder, "setNameMapper").getParameterTypes()[0], request.text("prefix")));
    }
    return Redisson.create(config);
  }

  private static Object servers(Config config, Request request) throws ReflectiveOperationException {
    int timeoutMs = (int) request.number("timeoutMs", 3_000);
    switch (request.text("mode", "single")) {
      case "single":
        SingleServerConfig single = config.useSingleServer().setAddress(request.text("address"));
        single.setTimeout(timeoutMs).setConnectionMinimumIdleSize(1).setConnectionPoolSize(CONNECTIONS);
        single.setSubscriptionConnectionMinimumIdleSize(1).setSubscriptionConnectionPoolSize(CONNECTIONS);
        return single;
      case "sentinel":
        SentinelServersConfig sentinel = config.useSentinelServers().setMasterName(request.text("master"));
        request.texts("addresses").forEach(sentinel::addSentinelAddress);
        sentinel.setCheckSentinelsList(false).setTimeout(timeoutMs);
        sentinel.setMasterConnectionMinimumIdleSize(1).setSlaveConnectionMinimumIdleSize(1);
        return sentinel;
      case "cluster":
        ClusterServersConfig cluster = config.useClusterServers();
        request.texts("addresses").forEach(cluster::addNodeAddress);
        cluster.setTimeout(timeoutMs).setMasterConnectionMinimumIdleSize(1).setSlaveConnectionMinimumIdleSize(1);
        if (request.has("sharded")) {
          set(cluster, "setShardedSubscriptionMode", request.text("sharded"));
        }
        return cluster;
      default:
        throw new IllegalArgumentException("there is no mode " + request.text("mode"));
    }
  }

  /** A name mapper. The interface has different names in 3.x and 4.x, but the same two methods. */
  private static Object mapper(Class<?> type, String prefix) {
    InvocationHandler mapping =
        (self, method, args) -> {
          switch (method.getName()) {
            case "map":
              return prefix + args[0];
            case "unmap":
              return ((String) args[0]).substring(prefix.length());
            case "hashCode":
              return System.identityHashCode(self);
            case "equals":
              return self == args[0];
            default:
              return "prefix " + prefix;
          }
        };
    return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, mapping);
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static void set(Object target, String name, Object value) throws ReflectiveOperationException {
    Method method = setter(target, name);
    if (method == null) {
      throw new UnsupportedOperationException("this Redisson has no " + name);
    }
    Class<?> type = method.getParameterTypes()[0];
    method.invoke(target, type.isEnum() ? Enum.valueOf((Class<Enum>) type, (String) value) : value);
  }

  private static Method setter(Object target, String name) {
    for (Method method : target.getClass().getMethods()) {
      if (method.getName().equals(name) && method.getParameterCount() == 1) {
        return method;
      }
    }
    return null;
  }
}

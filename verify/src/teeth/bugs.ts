/** Historical bugs in the reference, with their sources. A tooth reproduces one or more of them. */

/** A bug of another library. */
export interface Bug {
  readonly id: string;
  /** Its source: package and location, or the issue. */
  readonly ancestor: string;
  /** The future feature in which it could be made; undefined if it can be made now. */
  readonly later?: string;
}

/** All bugs of the reference, in its order. */
export const BUGS: readonly Bug[] = [
  { id: "B01", ancestor: "go-redsync/redsync#37; SPSCommerce/redlock-py#3" },
  { id: "B02", ancestor: "node-redlock#169, #296, #299" },
  { id: "B03", ancestor: "redlock-universal SimpleLock" },
  { id: "B04", ancestor: "node-redlock v5 `_attemptOperation`; redis-semaphore RedlockMutex" },
  { id: "B05", ancestor: "redlock-universal auto-extension after a slow acquire" },
  { id: "B06", ancestor: "node-redlock v5 `_attemptOperation`" },
  { id: "B07", ancestor: "node-redlock v5 `_execute`" },
  {
    id: "B08",
    ancestor: "redlock-universal `releasePartialLocks`; antirez/redlock-rb#3",
  },
  { id: "B09", ancestor: "redlock-universal SimpleLock; redisson#6748, #4109" },
  {
    id: "B10",
    ancestor: "node-redlock v4; redis-semaphore RedlockMutex",
  },
  { id: "B11", ancestor: "node-redlock v4 `_lock.attempt`" },
  { id: "B12", ancestor: "verrou 0.5.2 lock.ts" },
  { id: "B13", ancestor: "simple-redis-mutex lock(); redisson#5358" },
  { id: "B14", ancestor: "etcd-io/etcd#11456; redis-rwlock 0.2.0 mailbox hand-off" },
  { id: "B15", ancestor: "simple-redis-mutex attempt()" },
  { id: "B16", ancestor: "verrou 0.5.2 helpers.ts" },
  { id: "B17", ancestor: "errorception/redis-lock; laravel/framework#53342" },
  { id: "B18", ancestor: "node-redlock#65, #309; verrou run()" },
  { id: "B19", ancestor: "node-redlock#313" },
  { id: "B20", ancestor: "redisson#4871" },
  { id: "B21", ancestor: "syncguard 2.5.2 lock()" },
  { id: "B22", ancestor: "ioredfour 1.4.3" },
  { id: "B23", ancestor: "verrou 0.5.2; redis-semaphore#205" },
  { id: "B24", ancestor: "redis-semaphore Redlock kinds; redis-rwlock release; RedissonFairLock unlock" },
  { id: "B25", ancestor: "RedissonMultiLock.unlock" },
  { id: "B26", ancestor: "leandromoreira/redlock-rb#36; redsync SetNXOnExtend" },
  { id: "B27", ancestor: "simple-redis-mutex refreshTimeout" },
  { id: "B28", ancestor: "node-redlock v4 extend" },
  { id: "B29", ancestor: "node-redisson watchdog; python-redis-lock thread" },
  { id: "B30", ancestor: "redis-semaphore `_processRefresh`; redis-semaphore#9, #24" },
  { id: "B31", ancestor: "redlock-universal auto-extension; redis-semaphore refresh at 80 %" },
  { id: "B32", ancestor: "node-redlock v5 using(); redis-rwlock without watchdog" },
  { id: "B33", ancestor: "redisson#7272; redlock-universal using()" },
  { id: "B34", ancestor: "redlock-universal auto-extension (TTL <= 1250 ms); node-redlock v5 (> 2^31-1 ms)" },
  { id: "B35", ancestor: "RedissonFencedLock `lockAndGetToken(lease, unit)`" },
  { id: "B36", ancestor: "RedissonLock, RedissonWriteLock; redisson#4818, #5623" },
  { id: "B37", ancestor: "madelson/DistributedLock#169" },
  { id: "B38", ancestor: "@upstash/lock 0.2.1" },
  { id: "B39", ancestor: "node-redisson lock()" },
  { id: "B40", ancestor: "node-redisson unsubscribe()" },
  { id: "B41", ancestor: "RedissonSemaphore.acquire; redisson#5116" },
  { id: "B42", ancestor: "node-redisson tryLock(wait)" },
  { id: "B43", ancestor: "redisson#6026" },
  { id: "B44", ancestor: "redisson#7264" },
  { id: "B45", ancestor: "RedissonFairLock (300 s); redisson#6150" },
  { id: "B46", ancestor: "redisson#2099, #3004" },
  { id: "B47", ancestor: "RedissonWriteLock unlock" },
  {
    id: "B48",
    ancestor: "redis-semaphore redlockSemaphore/acquire.ts",
  },
  { id: "B49", ancestor: "redis-semaphore semaphore/acquire/lua.ts" },
  { id: "B50", ancestor: "redis-semaphore semaphore; RedissonFairLock" },
  { id: "B51", ancestor: "redisson#5066" },
  { id: "B52", ancestor: "redisson#2045, #4462" },
  { id: "B53", ancestor: "RedissonReadLock unlock, foreign hold without its own key" },
  { id: "B54", ancestor: "simple-redis-mutex" },
  { id: "B55", ancestor: "RedissonFencedLock" },
  { id: "B56", ancestor: "RedissonFencedLock; syncguard; bsm/redislock#94" },
  {
    id: "B57",
    ancestor: "oxcache 0.5.0-rc.7 redlock.rs",
  },
  { id: "B58", ancestor: "RedissonFencedLock.getToken" },
  { id: "B59", ancestor: "RedissonFencedLock expire/delete" },
  { id: "B60", ancestor: "simple-redis-mutex release; syncguard untagged keys" },
  { id: "B61", ancestor: "@sesamecare-oss/redlock 1.4.0; syncguard" },
  { id: "B62", ancestor: "redisson#5256, #3994", later: "with replicas: how many have confirmed" },
  { id: "B63", ancestor: "redlock-universal isLocked; Redisson readMode" },
  { id: "B64", ancestor: "redisson#467, #4050" },
  { id: "B65", ancestor: "node-redlock v5; anchan828/nest-redlock#492" },
];

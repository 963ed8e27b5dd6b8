/**
 * Scripts of a Java service with Redisson 4.7, written from the wire reference alone. They have Redisson's defects and
 * share no code with Holdfast. java-model.ts passes KEYS and ARGV in the order stated here.
 */

/** Scripts for one lock type. */
export interface TypeScripts {
  /** KEYS name, …; ARGV lease, owner, …: nil if acquired, else ms to wait. */
  readonly acquire: string;
  /** KEYS name, latch, …; ARGV channel, lease, owner, latchMs, …: nil if it was not held. */
  readonly unlock: string;
  /** KEYS name, …; ARGV channel: 1 if the lock was held. */
  readonly force: string;
  /** KEYS name, …; ARGV lease, owner: 1 if the owner still holds it. */
  readonly renew: string;
}

const RENEW = `
  if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return 0 end
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return 1`;

const LATCHED = `
  local known = redis.call('GET', KEYS[2])
  if known then return tonumber(known) end`;

const PLAIN_UNLOCK = (publish: string): string => `${LATCHED}
  if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end
  if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    redis.call('SET', KEYS[2], 0, 'PX', ARGV[4])
    return 0
  end
  redis.call('DEL', KEYS[1])
  ${publish}
  redis.call('SET', KEYS[2], 1, 'PX', ARGV[4])
  return 1`;

const PLAIN_ACQUIRE = (grow: string): string => `
  if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
    ${grow}
    redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    return nil
  end
  return redis.call('PTTL', KEYS[1])`;

const PLAIN_FORCE = (publish: string): string => `
  if redis.call('DEL', KEYS[1]) == 0 then return 0 end
  ${publish}
  return 1`;

const TO_ALL = "redis.call('PUBLISH', ARGV[1], '0')";

export const LOCK: TypeScripts = {
  acquire: PLAIN_ACQUIRE(""),
  unlock: PLAIN_UNLOCK(TO_ALL),
  force: PLAIN_FORCE(TO_ALL),
  renew: RENEW,
};

/** The token counter is KEYS[3], or KEYS[2] of the acquire. */
export const FENCED: TypeScripts = { ...LOCK, acquire: PLAIN_ACQUIRE("redis.call('INCR', KEYS[2])") };

/** Publishes no message. */
export const SPIN: TypeScripts = { ...LOCK, unlock: PLAIN_UNLOCK(""), force: PLAIN_FORCE("") };

/** The last two keys are the queue and its deadlines. The last argument is the client's clock. */
const STALE = (queue: string, timeout: string, now: string): string => `
  while true do
    local head = redis.call('LINDEX', ${queue}, 0)
    if not head then break end
    local score = redis.call('ZSCORE', ${timeout}, head)
    if not score or tonumber(score) > tonumber(${now}) then break end
    redis.call('ZREM', ${timeout}, head)
    redis.call('LPOP', ${queue})
  end`;

/** ARGV: lease, owner, wait, now, and 1 to queue. */
const FAIR_ACQUIRE = `${STALE("KEYS[2]", "KEYS[3]", "ARGV[4]")}
  if redis.call('EXISTS', KEYS[1]) == 0
    and (redis.call('EXISTS', KEYS[2]) == 0 or redis.call('LINDEX', KEYS[2], 0) == ARGV[2]) then
    redis.call('LPOP', KEYS[2])
    redis.call('ZREM', KEYS[3], ARGV[2])
    for _, member in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
      redis.call('ZINCRBY', KEYS[3], -tonumber(ARGV[3]), member)
    end
    redis.call('HSET', KEYS[1], ARGV[2], 1)
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    return nil
  end
  if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
    redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    return nil
  end
  if ARGV[5] ~= '1' then return 1 end
  if redis.call('ZSCORE', KEYS[3], ARGV[2]) then
    return math.max(0, redis.call('PTTL', KEYS[1]))
  end
  local last = redis.call('LINDEX', KEYS[2], -1)
  local lastScore = last and last ~= ARGV[2] and redis.call('ZSCORE', KEYS[3], last)
  local ttl = lastScore and tonumber(lastScore) - tonumber(ARGV[4]) or redis.call('PTTL', KEYS[1])
  if redis.call('ZADD', KEYS[3], ttl + tonumber(ARGV[3]) + tonumber(ARGV[4]), ARGV[2]) == 1 then
    redis.call('RPUSH', KEYS[2], ARGV[2])
  end
  return ttl`;

/** ARGV: channel, lease, owner, latchMs, now. */
const FAIR_UNLOCK = `${LATCHED}${STALE("KEYS[3]", "KEYS[4]", "ARGV[5]")}
  if redis.call('EXISTS', KEYS[1]) == 0 then
    local head = redis.call('LINDEX', KEYS[3], 0)
    if head then redis.call('PUBLISH', ARGV[1] .. ':' .. head, '0') end
    redis.call('SET', KEYS[2], 1, 'PX', ARGV[4])
    return 1
  end
  if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end
  if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    redis.call('SET', KEYS[2], 0, 'PX', ARGV[4])
    return 0
  end
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[2], 1, 'PX', ARGV[4])
  local head = redis.call('LINDEX', KEYS[3], 0)
  if head then redis.call('PUBLISH', ARGV[1] .. ':' .. head, '0') end
  return 1`;

/** KEYS: name, queue, timeout. ARGV: channel, now. */
const FAIR_FORCE = `${STALE("KEYS[2]", "KEYS[3]", "ARGV[2]")}
  if redis.call('DEL', KEYS[1]) == 0 then return 0 end
  local head = redis.call('LINDEX', KEYS[2], 0)
  if head then redis.call('PUBLISH', ARGV[1] .. ':' .. head, '0') end
  return 1`;

export const FAIR: TypeScripts = { acquire: FAIR_ACQUIRE, unlock: FAIR_UNLOCK, force: FAIR_FORCE, renew: RENEW };

/** KEYS: queue, timeout. ARGV: owner, wait. */
export const FAIR_GIVE_UP = `
  local isBehind = false
  for _, member in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    if isBehind then redis.call('ZINCRBY', KEYS[2], -tonumber(ARGV[2]), member) end
    if member == ARGV[1] then isBehind = true end
  end
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('LREM', KEYS[1], 0, ARGV[1])`;

/** ARGV: lease, owner, owner of the writer, prefix of the hold keys. */
const READ_ACQUIRE = `
  local mode = redis.call('HGET', KEYS[1], 'mode')
  if not mode then
    redis.call('HSET', KEYS[1], 'mode', 'read')
    redis.call('HSET', KEYS[1], ARGV[2], 1)
    redis.call('SET', ARGV[4] .. ':' .. ARGV[2] .. ':rwlock_timeout:1', 1)
    redis.call('PEXPIRE', ARGV[4] .. ':' .. ARGV[2] .. ':rwlock_timeout:1', ARGV[1])
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    return nil
  end
  if mode == 'read' or redis.call('HEXISTS', KEYS[1], ARGV[3]) == 1 then
    local hold = ARGV[4] .. ':' .. ARGV[2] .. ':rwlock_timeout:' .. redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
    redis.call('SET', hold, 1)
    redis.call('PEXPIRE', hold, ARGV[1])
    redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[1])))
    return nil
  end
  return redis.call('PTTL', KEYS[1])`;

/** ARGV: channel, lease, owner, latchMs, prefix of the hold keys. */
const READ_UNLOCK = `${LATCHED}
  local mode = redis.call('HGET', KEYS[1], 'mode')
  if not mode then
    redis.call('PUBLISH', ARGV[1], '0')
    redis.call('SET', KEYS[2], 1, 'PX', ARGV[4])
    return nil
  end
  if redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end
  local count = redis.call('HINCRBY', KEYS[1], ARGV[3], -1)
  if count == 0 then redis.call('HDEL', KEYS[1], ARGV[3]) end
  redis.call('DEL', ARGV[5] .. ':' .. ARGV[3] .. ':rwlock_timeout:' .. (count + 1))
  if redis.call('HLEN', KEYS[1]) > 1 then
    local longest = -3
    for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
      for i = tonumber(redis.call('HGET', KEYS[1], field)) or 0, 1, -1 do
        longest = math.max(longest, redis.call('PTTL', ARGV[5] .. ':' .. field .. ':rwlock_timeout:' .. i))
      end
    end
    if longest > 0 then
      redis.call('PEXPIRE', KEYS[1], longest)
      redis.call('SET', KEYS[2], 0, 'PX', ARGV[4])
      return 0
    end
    if mode == 'write' then
      redis.call('SET', KEYS[2], 0, 'PX', ARGV[4])
      return 0
    end
  end
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[1], '0')
  redis.call('SET', KEYS[2], 1, 'PX', ARGV[4])
  return 1`;

const MODE_FORCE = (mode: string, payload: string): string => `
  if redis.call('HGET', KEYS[1], 'mode') ~= '${mode}' then return 0 end
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[1], '${payload}')
  return 1`;

/** ARGV: lease, owner, prefix of the hold keys. */
const READ_RENEW = `
  local count = tonumber(redis.call('HGET', KEYS[1], ARGV[2]))
  if not count then return 0 end
  for i = count, 1, -1 do
    redis.call('PEXPIRE', ARGV[3] .. ':' .. ARGV[2] .. ':rwlock_timeout:' .. i, ARGV[1])
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return 1`;

export const READ: TypeScripts = {
  acquire: READ_ACQUIRE,
  unlock: READ_UNLOCK,
  force: MODE_FORCE("read", "0"),
  renew: READ_RENEW,
};

export const WRITE: TypeScripts = {
  acquire: `
    local mode = redis.call('HGET', KEYS[1], 'mode')
    if not mode then
      redis.call('HSET', KEYS[1], 'mode', 'write')
      redis.call('HSET', KEYS[1], ARGV[2], 1)
      redis.call('PEXPIRE', KEYS[1], ARGV[1])
      return nil
    end
    if mode == 'write' and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
      redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
      redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) + tonumber(ARGV[1]))
      return nil
    end
    return redis.call('PTTL', KEYS[1])`,
  unlock: `${LATCHED}
    local mode = redis.call('HGET', KEYS[1], 'mode')
    if not mode then
      redis.call('PUBLISH', ARGV[1], '1')
      redis.call('SET', KEYS[2], 1, 'PX', ARGV[4])
      return nil
    end
    if mode == 'read' or redis.call('HEXISTS', KEYS[1], ARGV[3]) == 0 then return nil end
    if redis.call('HINCRBY', KEYS[1], ARGV[3], -1) > 0 then
      redis.call('PEXPIRE', KEYS[1], ARGV[2])
      redis.call('SET', KEYS[2], 0, 'PX', ARGV[4])
      return 0
    end
    redis.call('HDEL', KEYS[1], ARGV[3])
    if redis.call('HLEN', KEYS[1]) == 1 then
      redis.call('DEL', KEYS[1])
      redis.call('PUBLISH', ARGV[1], '1')
    else
      redis.call('HSET', KEYS[1], 'mode', 'read')
    end
    redis.call('SET', KEYS[2], 1, 'PX', ARGV[4])
    return 1`,
  force: MODE_FORCE("write", "1"),
  renew: RENEW,
};

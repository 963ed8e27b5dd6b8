/**
 * A script that returns when its keys expire, in ms since the epoch, as PEXPIRETIME does, which Redis 6.2 does not have.
 *
 * Before Redis 7, the clock advances while a script runs. If a millisecond ends between TIME and PTTL, the sum is too low,
 * so the highest of several sums is the exact one.
 */
export const EXPIRY_TIMES: string = `
  local ends = {}
  for i, key in ipairs(KEYS) do
    ends[i] = -1
    for _ = 1, 20 do
      local time = redis.call('TIME')
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      ends[i] = math.max(ends[i], now + redis.call('PTTL', key))
    end
  end
  return ends`;

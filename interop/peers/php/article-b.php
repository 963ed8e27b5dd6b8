<?php
/**
 * The lock of article B: one script for each step, three attempts, and an expiry both of the key and in the value.
 *
 * Has the same defects as the published code: an unlock deletes only an expired lock, the pause of 0.3 s does not
 * happen because sleep() takes whole seconds, and one request reads the clock twice.
 * Replies of the acquire script: 0 acquired, 1 gone, 2 still valid, 3 taken in the meantime.
 */

// No strict types, as in the article: sleep(0.3) becomes sleep(0), with a notice on standard error since PHP 8.1.
error_reporting(E_ALL);
ini_set('display_errors', 'stderr');

require __DIR__ . '/lines.php';

final class ArticleB
{
    private const LEASE_SECONDS = 3;
    private const MOST_ATTEMPTS = 3;
    private const PAUSE_SECONDS = 0.3;
    private const STILL_VALID = 2;

    private const ACQUIRE = <<<'LUA'
        redis.log(redis.LOG_DEBUG, '[申请加锁] start')
        if redis.call('SETNX', KEYS[1], ARGV[1]) == 1 then
          redis.call('EXPIRE', KEYS[1], ARGV[2] + 1)
          redis.log(redis.LOG_DEBUG, '[申请加锁] success')
          return 0
        end
        local value = redis.call('GET', KEYS[1])
        if not value then
          redis.log(redis.LOG_DEBUG, '[申请加锁] deleted by another, ask again')
          return 1
        end
        if tonumber(value) > tonumber(ARGV[3]) then
          redis.log(redis.LOG_DEBUG, '[申请加锁] not expired, sleep')
          return 2
        end
        local old = redis.call('GETSET', KEYS[1], ARGV[1] + ARGV[2] + 1)
        if old and tonumber(old) == tonumber(value) then
          redis.call('EXPIRE', KEYS[1], ARGV[2] + 1)
          redis.log(redis.LOG_DEBUG, '[申请加锁] expired, acquired by getset')
          return 0
        end
        redis.log(redis.LOG_DEBUG, '[申请加锁] deleted or pre-empted, ask again')
        return 3
        LUA;

    private const RELEASE = <<<'LUA'
        local value = redis.call('GET', KEYS[1])
        if value and tonumber(value) <= tonumber(ARGV[1]) then
          redis.call('DEL', KEYS[1])
        end
        LUA;

    /** The replies to the attempts of the last lock(). */
    public array $codes = [];

    public function __construct(private Redis $redis, private Clock $clock)
    {
    }

    public function lock(string $key): bool
    {
        $this->codes = [];
        $code = self::STILL_VALID;
        for ($attempt = 0; $attempt < self::MOST_ATTEMPTS && $code !== 0; $attempt += 1) {
            $until = $this->clock->second() + self::LEASE_SECONDS + 1;
            $code = $this->run(self::ACQUIRE, $key, $until, self::LEASE_SECONDS, $this->clock->second());
            $this->codes[] = $code;
            if ($code === self::STILL_VALID) {
                sleep(self::PAUSE_SECONDS);
            }
        }
        return $code === 0;
    }

    public function unlock(string $key): void
    {
        $this->run(self::RELEASE, $key, $this->clock->second());
    }

    private function run(string $script, string $key, int ...$arguments): mixed
    {
        $this->redis->clearLastError();
        $reply = $this->redis->eval($script, [$key, ...array_map(strval(...), $arguments)], 1);
        if (($complaint = $this->redis->getLastError()) !== null) {
            throw new RedisException($complaint);
        }
        return $reply;
    }
}

$settings = settings($argv);
$redis = connect($settings);
$lock = new ArticleB($redis, new Clock($settings));
serve([
    'lock' => fn (array $request) => ['isHeld' => $lock->lock($request['name']), 'codes' => $lock->codes],
    'unlock' => function (array $request) use ($lock) {
        $lock->unlock($request['name']);
        return true;
    },
    'contend' => fn (array $request) => contend($redis, $request, $lock->lock(...), $lock->unlock(...)),
]);

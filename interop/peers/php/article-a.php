<?php
/**
 * The lock of article A: SETNX with the second of expiry as the value, SET ... GET to take over an expired lock.
 *
 * Has the same defects as the published code: the key has no expiry, a takeover fails in the exact second of expiry, a
 * wait has no limit, and a release does not check the owner.
 */
declare(strict_types=1);

require __DIR__ . '/lines.php';

final class ArticleA
{
    private const PREFIX = 'your_lock_prefix_';
    private const LEASE_SECONDS = 30;
    private const POLL_MICROSECONDS = 200_000;

    public function __construct(private Redis $redis, private Clock $clock)
    {
    }

    public function lock(string $name): bool
    {
        while (!$this->tryLock($name)) {
            usleep(self::POLL_MICROSECONDS);
        }
        return true;
    }

    public function tryLock(string $name): bool
    {
        $key = self::PREFIX . $name;
        $now = $this->clock->second();
        $value = $now + self::LEASE_SECONDS;
        if ($this->redis->setnx($key, (string) $value)) {
            return true;
        }
        $current = (int) $this->redis->get($key);
        if ($current > $now) {
            return false;
        }
        // In Debian 12's Redis extension, set() has no option GET.
        $this->redis->clearLastError();
        $old = $this->redis->rawCommand('SET', $key, (string) $value, 'GET');
        if ($old === false && ($complaint = $this->redis->getLastError()) !== null) {
            throw new RedisException($complaint);
        }
        return (int) $old < $now;
    }

    public function unlock(string $name): void
    {
        $this->redis->del(self::PREFIX . $name);
    }
}

$settings = settings($argv);
$redis = connect($settings);
$lock = new ArticleA($redis, new Clock($settings));
serve([
    'lock' => fn (array $request) => $lock->lock($request['name']),
    'tryLock' => fn (array $request) => $lock->tryLock($request['name']),
    'unlock' => function (array $request) use ($lock) {
        $lock->unlock($request['name']);
        return true;
    },
    'contend' => fn (array $request) => contend($redis, $request, $lock->lock(...), $lock->unlock(...)),
]);

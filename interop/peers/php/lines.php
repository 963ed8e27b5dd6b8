<?php
/**
 * The line protocol: one JSON request per line on input, one JSON reply per line on output.
 *
 * PHP serves one request at a time, as in a web server. For several clients, start several processes.
 */
declare(strict_types=1);

/** @param array<string, callable(array): mixed> $verbs  by name */
function serve(array $verbs): void
{
    while (($line = fgets(STDIN)) !== false) {
        $request = json_decode($line, true, 512, JSON_THROW_ON_ERROR);
        try {
            $verb = $verbs[$request['verb']] ?? throw new LogicException("there is no verb {$request['verb']}");
            $answer = ['ok' => true, 'value' => $verb($request)];
        } catch (Throwable $error) {
            $answer = ['ok' => false, 'error' => get_class($error), 'message' => $error->getMessage()];
        }
        fwrite(STDOUT, json_encode(['id' => $request['id']] + $answer, JSON_THROW_ON_ERROR) . "\n");
    }
}

/** Reads the settings of this peer from its JSON argument: port, clockAheadMs, clockAtMs. */
function settings(array $argv): array
{
    return json_decode($argv[1] ?? '{}', true, 512, JSON_THROW_ON_ERROR);
}

/** The clock of this machine, a clock that is ahead of it, or a stopped clock. */
final class Clock
{
    /** @param array{clockAheadMs?: int, clockAtMs?: int} $settings */
    public function __construct(private array $settings)
    {
    }

    public function second(): int
    {
        $ms = $this->settings['clockAtMs'] ?? microtime(true) * 1000 + ($this->settings['clockAheadMs'] ?? 0);
        return (int) floor($ms / 1000);
    }
}

function connect(array $settings): Redis
{
    $redis = new Redis();
    $redis->connect('127.0.0.1', $settings['port']);
    return $redis;
}

/** Repeatedly acquires the lock and updates a counter that only the lock protects. Every peer has the same loop. */
function contend(Redis $redis, array $request, callable $tryLock, callable $unlock): array
{
    $endAt = hrtime(true) + $request['forMs'] * 1_000_000;
    $rounds = $refusals = $longestWait = 0;
    while (hrtime(true) < $endAt) {
        $askedAt = hrtime(true);
        $isHeld = $tryLock($request['name']);
        $longestWait = max($longestWait, hrtime(true) - $askedAt);
        if (!$isHeld) {
            $refusals += 1;
            usleep(random_int(1_000, 20_000));
            continue;
        }
        $seen = (int) $redis->get($request['counter']);
        usleep(random_int(0, 3_000));
        $redis->set($request['counter'], (string) ($seen + 1));
        $unlock($request['name']);
        $rounds += 1;
        usleep(random_int(0, 3_000));
    }
    return ['rounds' => $rounds, 'refusals' => $refusals, 'longestWaitMs' => intdiv($longestWait, 1_000_000)];
}

/** The text of `holdfast help run`, with an entry for each program that users may already know. */

/** Describes the flags. */
export const RUN_HELP = `
Runs a command while it holds the lock NAME. It waits for the lock, renews it
while the command runs, ends the command before another holder can get the
lock, and exits with the command's exit code.

Waiting
  (nothing)                    wait forever, first come, first served
  -n, --nonblock               one attempt
  -w, --wait D                 wait at most D; 0 is -n
  -E, --conflict-exit-code N   exit N instead of 75 if it is not granted
      --skip-ok                -E 0 and no output: for cron
      --through-pause          wait while NAME is paused (default: refuse)
      --jitter D               first sleep a random time below D
      --once-per P             at most one start per period: a duration
                               (rolling), or hour, day, week (UTC)
      --until-success          with --once-per: count only runs that exit 0
What NAME is
  (nothing)                    a mutex, as holdfast.mutex(NAME) in a program
  -s, --shared                 the read side of a read-write lock
  -x, -e, --exclusive          its write side
  -N, --limit N                one of N permits; every user gives the same N
      A name has one kind. If NAME is in use as another kind, the exit code
      is 65.
Holding
      --lease D                30s, at least 3s; renewed at a third of it.
                               Longer survives longer Redis trouble; shorter
                               frees the lock sooner after a crash
      --min-hold D             keep the lock for D, even if the command ends
      --max-hold D             end the command after D; exit 124
  -m, --message TEXT           shown in refusals, lists and the history
      --hold                   no command: print the lease, and hold the lock
                               until INT or TERM
      --until-eof              no command: print the token, and hold the lock
                               until standard input ends. For a coprocess of
                               a script. If the lock is lost, print "lost
                               REASON" and exit 123
The command
  -c, --command STRING         run STRING with sh -c; otherwise no shell
      --on-lost term|kill|ignore|signal:NAME
                               what to do with it when the lock is lost.
                               ignore warns and keeps its exit code
  -k, --kill-after D           time between TERM and KILL; min(5s, lease/4).
                               If given, KILL also follows a signal that
                               holdfast passed on
  -S, --signal SIG             send SIG instead of TERM
      --foreground             stay in our process group, so that it can ask
                               on the terminal
      --leave-group            do not end processes that it leaves behind
      --status-fd N            write the result as one line of JSON to
                               descriptor N (--json: all events to stderr)

The command runs in its own process group. INT, TERM, HUP, QUIT, USR1 and
USR2 are passed on to the whole group. The lock is released when the command
has ended and its group is empty.

If a renewal is not confirmed, the command gets TERM at D-k-m and KILL at
D-m. D is the end of the lease, k is -k, and m is min(1s, lease/20). So the
command has ended before another holder can start. If the lock was taken by
force, the command gets TERM immediately and KILL after min(k, 1s). In both
cases the exit code is 123.

If holdfast itself is killed with KILL, a guard process sends the command
TERM, and KILL after k. This does not work on Windows, or if the host or the
guard fails too. Let the resource refuse a HOLDFAST_TOKEN that is lower than
one it has seen.

Variables for the command: HOLDFAST_NAME KIND MODE TOKEN OWNER SLOT
ACQUIRED_AT WAITED_MS EXPIRES_AT LEASE_MS HARD_STOP_AT HELD.

Coming from
  flock F cmd           run NAME -- cmd. -n -w -E -s -x -c mean the same.
                        Busy is 75, not 1. The lock is a lease, not a
                        descriptor. Signals are passed on
  consul lock PFX cmd   run NAME -- cmd. -n N is -N N, -timeout is -w, no
                        shell unless -c. The exit code is the command's, and
                        123 where consul exits 0 after a loss
  etcdctl lock N cmd    run NAME -- cmd. --ttl is --lease. A lost lock ends
                        the command
  lckdo F cmd           run NAME -n -- cmd. -W SEC is -w SEC
  setlock -n F cmd      run NAME -n -- cmd. Busy is 75, not 111. -x is
                        --skip-ok
  cronlock cmd          run NAME -n --skip-ok --min-hold 40s -- cmd.
                        CRONLOCK_TIMEOUT is --max-hold
  timeout D cmd         --max-hold D, -k, and -S for its -s
  CronJob with          run NAME -n --skip-ok --once-per 1m -- cmd
  concurrencyPolicy: Forbid

Examples
  holdfast run nightly -n --skip-ok --once-per 1d --jitter 10s -- ./report.sh
  holdfast run deploy -w 15m -m "release 4.2" --max-hold 1h -- ./deploy.sh
  holdfast run pdf -N 3 -w 30s -- render in.html out.pdf
  holdfast run catalog -s -- ./export.sh    # shared; -x excludes the readers`;

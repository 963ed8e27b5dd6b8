/** What `holdfast help run` says, with a block for each program that people come from. */

/** The flags and what they do. */
export const RUN_HELP = `
Runs a command while holding the lock NAME: waits for it in line, renews it while the command runs, ends the command before
the lock can be somebody else's, and exits with the command's own code.

Waiting
  (nothing)                    wait for ever, first come, first served
  -n, --nonblock               one attempt
  -w, --wait D                 wait at most D; 0 is -n
  -E, --conflict-exit-code N   exit N instead of 75 where the lock does not allow it
      --skip-ok                -E 0 and silent: for cron
      --through-pause          wait while NAME is paused (otherwise refused at once)
      --jitter D               sleep a random time below D first
      --once-per P             at most one start per period: a duration (rolling), or hour, day, week (UTC)
      --until-success          with --once-per: count only runs that exit 0
What NAME is
  (nothing)                    a mutex, as holdfast.mutex(NAME) in an application
  -s, --shared                 the read side of a read-write lock
  -x, -e, --exclusive          its write side
  -N, --limit N                one of N permits; everybody gives the same N
      A name has one kind: another kind of NAME in use is refused with 65.
Holding
      --lease D                30s, at least 3s, renewed at a third. Longer rides out more trouble of Redis; shorter
                               frees the lock sooner after a crash
      --min-hold D             not free before D after the grant, even if the command ends at once
      --max-hold D             then TERM, KILL, release, exit 124
  -m, --message TEXT           shown to whoever is refused, in ls and in the history
      --hold                   no command: print the lease, hold it until INT or TERM
      --until-eof              no command: print the token, hold it until standard input ends. For a coprocess of a
                               script; a lost lock prints "lost REASON" and exits 123
The command
  -c, --command STRING         run STRING with sh -c; there is no shell otherwise
      --on-lost term|kill|ignore|signal:NAME
                               what a lost lock does to it. ignore warns, and keeps its exit code
  -k, --kill-after D           between TERM and KILL; min(5s, lease/4). With it, a signal that was passed on is
                               followed by KILL too
  -S, --signal SIG             instead of TERM
      --foreground             stays in our process group, so that it can ask on the terminal
      --leave-group            leave running what it leaves behind
      --status-fd N            the result as one line of JSON on descriptor N; --json: all events on stderr

The command is a process group of its own; INT TERM HUP QUIT USR1 USR2 are passed on to all of it. The lock is given back
when the command has ended and nothing of its group is left. With D the end of the lease, k = -k and m = min(1s, lease/20),
an unconfirmed renewal means TERM at D-k-m and KILL at D-m: the command is dead before another holder can start. A lock
that was taken by force means TERM at once and KILL after min(k, 1s). Either way the exit code is 123.

If holdfast itself gets KILL, a guard sends the command TERM, and KILL after k. Not covered on Windows, and when the host or
the guard is killed too: have the resource refuse a HOLDFAST_TOKEN that is lower than one it has seen.

For the command: HOLDFAST_NAME KIND MODE TOKEN OWNER SLOT ACQUIRED_AT WAITED_MS EXPIRES_AT LEASE_MS HARD_STOP_AT HELD.

Coming from
  flock(1)      flock F cmd           run NAME -- cmd; -n -w -E -s -x -c mean the same. Busy is 75 and not 1; the lock is
                                      a lease and not a descriptor; signals are passed on
  consul lock   consul lock PFX cmd   run NAME -- cmd; -n N is -N N, -timeout is -w, no shell unless -c; the command's
                                      own exit code, and 123 where consul exits 0 after a loss
  etcdctl lock  etcdctl lock N cmd    run NAME -- cmd; --ttl is --lease; the command is ended when the lock is lost
  lckdo         lckdo F cmd           run NAME -n -- cmd, since we wait; -W SEC is -w SEC
  setlock       setlock -n F cmd      run NAME -n -- cmd; busy is 75 and not 111; -x is --skip-ok
  cronlock      cronlock cmd          run NAME -n --skip-ok --min-hold 40s -- cmd; CRONLOCK_TIMEOUT is --max-hold
  timeout(1)    timeout D cmd         --max-hold D, -k, and -S for its -s
  Kubernetes    a CronJob with concurrencyPolicy: Forbid     run NAME -n --skip-ok --once-per 1m -- cmd

Examples
  holdfast run nightly -n --skip-ok --once-per 1d --min-hold 1m --jitter 10s -- npm run report
  holdfast run deploy:prod -w 15m -m "release 4.2" --max-hold 1h -k 20s --lease 60s -- ./deploy.sh
  holdfast run pdf -N 3 -w 30s -- render in.html out.pdf
  holdfast run catalog -s -- ./export.sh        # readers together; -x excludes them`;

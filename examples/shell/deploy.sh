#!/bin/bash
# A script that holds a lock for several steps, as with `flock 9`. Needs bash 4.
#
#     REDIS_URL=redis://127.0.0.1:6379 npm run deploy     in this folder, after `npm run build` in the checkout
#
# HOLDFAST names the program, if it is not installed as `holdfast`.

coproc LOCK { exec ${HOLDFAST:-holdfast} run deploy -w 15m --until-eof; }
holder=$LOCK_PID
exec 8<&"${LOCK[0]}" 9>"/dev/fd/${LOCK[1]}" {LOCK[1]}>&-
read -r token <&8 || { wait "$holder"; exit; }     # not held: exits with the code of holdfast, such as 75

echo "migrating the database with token $token"
kill -0 "$holder" 2>/dev/null || exit 123          # the lock was lost: do not begin the next step
echo "replacing the servers"

exec 9>&-                                          # releases the lock
wait "$holder"                                     # 0, or 123 if the lock was lost

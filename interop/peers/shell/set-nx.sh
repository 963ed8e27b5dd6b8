#!/bin/sh
# The lock of a shell script: SET key value NX PX, and a release that compares the value before it deletes the key.
#
# usage: set-nx.sh PORT; reads JSON requests and writes JSON replies, one per line. Verbs: interop/README.md.
set -u
port=$1
mine=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')

redis() {
  redis-cli -h 127.0.0.1 -p "$port" "$@"
}

# Requests are flat, so one regular expression can read a field.
field() {
  printf '%s' "$line" | sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"
}

try_acquire() {
  if [ "$(redis SET "$(field name)" "$mine" NX PX "$(field leaseMs)")" = OK ]; then echo true; else echo false; fi
}

# Polls like a script in a cron job: tries, sleeps a tenth of a second, and tries again.
acquire() {
  left=$(field waitMs)
  while :; do
    if [ "$(try_acquire)" = true ]; then
      echo true
      return
    fi
    [ "$left" -gt 0 ] || break
    sleep 0.1
    left=$((left - 100))
  done
  echo false
}

release() {
  script='if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0'
  if [ "$(redis EVAL "$script" 1 "$(field name)" "$mine")" = 1 ]; then echo true; else echo false; fi
}

while IFS= read -r line; do
  id=$(field id)
  case $(field verb) in
    tryAcquire) value=$(try_acquire) ;;
    acquire) value=$(acquire) ;;
    release) value=$(release) ;;
    *)
      printf '{"id":%s,"ok":false,"error":"usage","message":"there is no such verb"}\n' "$id"
      continue
      ;;
  esac
  printf '{"id":%s,"ok":true,"value":%s}\n' "$id" "$value"
done

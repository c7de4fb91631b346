#!/bin/bash
# What the caller's shell has set for its children holds for a command that tether run starts "in the current environment".
. "$(dirname "$0")/../common.sh"
d=$(mktemp -d); cd "$d"
( umask 077; timeout 15 tether run --private -- sh -c 'echo secret >key' )
verdict "$(stat -c %a key)" 600 "umask 077 of the caller: mode of a new file"
verdict "$( (ulimit -n 512; timeout 15 tether run --private -- sh -c 'ulimit -n') | tr -d '\r')" 512 "ulimit -n 512 of the caller"
# bash counts in KiB, other shells in 512 bytes: what sh says without tether counts
want=$(ulimit -c 0; ulimit -f 1000; sh -c 'ulimit -f')
verdict "$( (ulimit -c 0; ulimit -f 1000; timeout 15 tether run --private -- sh -c 'ulimit -f') | tr -d '\r')" "$want" "ulimit -f 1000 of the caller"
verdict "$(nice -n 7 timeout 15 tether run --private -- nice | tr -d '\r')" "$(nice -n 7 nice)" "nice of the caller"
cd /; rm -rf "$d"
# and the other way round: a daemon that a command under umask 077 started keeps it for everybody
timeout 20 tether stop >/dev/null; ( umask 077; timeout 20 tether daemon --background >/dev/null )
verdict "$( (umask 022; timeout 15 tether run --private -- sh -c umask) | tr -d '\r')" 0022 "umask 022 of the caller, daemon started under 077"

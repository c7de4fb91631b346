#!/bin/bash
# test-release.sh runs this as root in a booted container. /in has a package of an old and one of the new version; /in/version contains the new
# version.
set -euo pipefail
exec 2>&1
new=$(cat /in/version)

step() { echo "deb: $*"; }
fail() {
	echo "FAILED: $*"
	exit 1
}
# as USER COMMAND… runs the command in the environment of a plain shell of that user.
as() {
	local user=$1
	shift
	setpriv --reuid="$user" --regid="$user" --init-groups env -i HOME="/home/$user" USER="$user" SHELL=/bin/bash PATH=/usr/bin:/bin "$@"
}
tether() { as dev tether "$@"; }

# within SECONDS COMMAND… waits until the command succeeds.
within() {
	local end=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -le "$end" ] || fail "in time: $*"
		sleep 0.05
	done
}
# installed lists the files of the system, without those that the system itself writes and those of users.
installed() {
	find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /tmp -o -path /in -o -path /out -o -path /home -o -path /var/log -o \
		-path /var/lib/dpkg -o -path /var/lib/systemd -o -path /var/cache/ldconfig \) -prune -o -print | sort
}
counter() { tether read --tail 1 clock | tr -d '\r'; }
counts_on() { [ "$(counter)" != "$1" ]; }

useradd -m -s /bin/bash dev
useradd -m -s /bin/bash other
loginctl enable-linger dev
within 30 test -S /run/user/1000/bus
installed >/tmp/before

step "install"
said=$(dpkg -i /in/old.deb)
[[ "$said" == *"tether pair wss://HOST"* ]] || fail "the next command is not told: $said"
[ "$(tether version)" = "tether 0.0.1" ] || fail "installed is $(tether version)"
[ -z "$(systemctl list-unit-files 'tether*' --no-legend)" ] || fail "a unit was installed that nobody asked for"
[ -z "$(pgrep tether || true)" ] || fail "something was started that nobody asked for"
for file in $(dpkg -L tether); do
	[ ! -f "$file" ] || [ "$(stat -c %U:%G "$file")" = root:root ] || fail "$file does not belong to root"
done
zcat /usr/share/man/man1/tether-service-install.1.gz | grep -c '^\.SH DESCRIPTION' >/dev/null || fail "no manual"
zcat /usr/share/man/man1/tether-host.1.gz | grep -c 'token.*file' >/dev/null || fail "tether-host(1) is not the page of the program"
zcat /usr/share/man/man1/tether-hosts.1.gz | grep -c 'tether host' >/dev/null || fail "the page of tether host is missing"
[ -s /usr/share/doc/tether/docs/RELIABILITY.md ] || fail "the pages to which errors point are missing"
bash -n /usr/share/bash-completion/completions/tether || fail "the completion is not bash"
md5sum --quiet -c --strict <(cd / && sed 's|  |  /|' /var/lib/dpkg/info/tether.md5sums) || fail "files are not those of the package"

step "the main job: a host, a daemon that is paired with it, a terminal that is lent, an observer"
as dev tether-host --listen 127.0.0.1:9187 --token-file /home/dev/token >/tmp/host 2>&1 &
within 30 grep -q '^READY ' /tmp/host
tether pair --name demo --token-file /home/dev/token ws://127.0.0.1:9187
[ "$(tether run --private -- echo hello | tr -d '\r')" = hello ] || fail "a command's output is missing"
tether service install
tether run --detach --name clock -- sh -c 'i=0; while :; do i=$((i+1)); echo "tick $i"; sleep 0.05; done'
as dev tether watch --wait demo clock >/tmp/seen 2>&1 &
within 30 grep -q '^tick 5[^0-9]*$' /tmp/seen
clock=$(pgrep -u dev -f 'while :; do i=' | head -1)

step "upgrade, while the terminal runs"
said=$(dpkg -i /in/new.deb)
[[ "$said" == *"tether daemon --replace"* ]] || fail "the next command is not told: $said"
[ "$(tether version)" = "tether $new" ] || fail "installed is $(tether version)"
kill -0 "$clock" || fail "the program in the terminal has died"
before=$(counter)
within 30 counts_on "$before"
[[ "$(tether status)" == *"version 0.0.1"* ]] || fail "the daemon was replaced behind the user's back: $(tether status)"

step "the daemon of the new version takes the terminal up"
tether service restart
[[ "$(tether status)" == *"version $new"* ]] || fail "the daemon is not of the new version: $(tether status)"
kill -0 "$clock" || fail "the program in the terminal has died"
before=$(counter)
within 30 counts_on "$before"
tether read clock | tr -d '\r' >/tmp/all
[ "$(head -1 /tmp/all)" = "tick 1" ] || fail "its first line is lost: $(head -1 /tmp/all)"
awk '$2 != NR {exit 1}' /tmp/all || fail "lines are lost or doubled"
before=$(wc -l </tmp/seen)
more_is_seen() { [ "$(wc -l </tmp/seen)" -gt $((before + 5)) ]; }
within 60 more_is_seen
grep -ho 'tick [0-9]*' /tmp/seen | awk '$2 != NR {print "line " NR ": " $0; exit 1}' || fail "the observer has lost or doubled lines"
[ "$(tether run --private -- echo hello | tr -d '\r')" = hello ] || fail "the new version runs nothing"

step "remove: a service of the machine goes with the package, one of a user with that user's own command"
tether service uninstall
within 30 eval '! kill -0 "$clock"'
pkill -u dev tether-host
/usr/bin/tether service install --system --user other
as other tether status >/dev/null
dpkg --purge tether
within 30 eval '! pgrep tether'
installed | diff /tmp/before - || fail "the package has left these behind"
[ ! -e /etc/systemd/system/tether.service ] || fail "the service of the machine is left"
[ -z "$(find /home -name 'tether*.service')" ] || fail "a service of a user is left: $(find /home -name 'tether*.service')"

step "a package that is removed while terminals run says what to do"
dpkg -i /in/new.deb >/dev/null
tether run --private --detach -- sleep 1000 >/dev/null
[[ "$(dpkg --remove tether 2>&1)" == *"each user says beforehand: tether service uninstall"* ]] || fail "nothing is said"
step "all is well"

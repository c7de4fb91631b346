#!/bin/bash
# test-systemd.sh runs this as root in a booted container. /in has the program and the number of the boot; /out is kept.
set -euo pipefail
exec 2>&1
read -r boot </in/boot
program=/opt/t\ ü/tether

step() { echo "boot $boot: $*"; }
fail() {
	echo "FAILED: $*"
	as dev journalctl --no-pager --user --user-unit=tether.service -n 20 || true
	journalctl --no-pager -n 40 || true
	exit 1
}

# as USER COMMAND… runs the command in the environment of a plain shell of that user, without XDG_RUNTIME_DIR.
as() {
	local user=$1
	shift
	setpriv --reuid="$user" --regid="$user" --init-groups env -i HOME="/home/$user" USER="$user" SHELL=/bin/bash PATH=/usr/bin:/bin "$@"
}
tether() { as dev "$program" "$@"; }

# refuses STATUS WORDS COMMAND… fails unless the command exits with the status and its output contains the words.
refuses() {
	local want=$1 words=$2 said status=0
	shift 2
	said=$("$@" 2>&1) || status=$?
	[ "$status" = "$want" ] || fail "$*: exit status $status, want $want: $said"
	[[ "$said" == *"$words"* ]] || fail "$*: said '$said', want '$words'"
}

# within SECONDS COMMAND… waits until the command succeeds.
within() {
	local end=$(($(date +%s%3N) + $1 * 1000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s%3N)" -lt "$end" ] || fail "in time: $*"
		sleep 0.02
	done
}
# counting is a program for a terminal; counting_of USER prints the id of its process.
counting='i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done'
counting_of() { pgrep -u "$1" -f 'while :; do i=' | head -1; }
now() { date +%s%3N; }
pid() { tether status | sed -n 's/.*process \([0-9]*\),.*/\1/p'; }
answers() { tether status >/dev/null; }
gone() { ! kill -0 "$1" 2>/dev/null; }

# counter NAME prints the last number that the program in the terminal has printed.
counter() { tether read --tail 1 "$1" | tr -d '\r'; }

# goes_on PID fails unless the process lives and the terminal clock counts on.
goes_on() {
	local before
	before=$(counter clock)
	for _ in $(seq 100); do
		[ "$(counter clock)" = "$before" ] || break
		sleep 0.05
	done
	[ "$(counter clock)" != "$before" ] || fail "the terminal stands still at $before"
	kill -0 "$1" || fail "the program in the terminal has died"
}
# nothing_left fails if files or processes of the installed service remain.
nothing_left() {
	local found
	found=$(find /etc/systemd /home /root /run/user /usr/lib/systemd /var/lib/systemd/linger -name '*tether*.service*' -o -name '.tether-*' 2>/dev/null)
	[ -z "$found" ] || fail "left behind: $found"
	[ ! -e /home/dev/.config/systemd ] || fail "left behind: $(find /home/dev/.config/systemd)"
	found=$(pgrep -fa "$program" || true)
	[ -z "$found" ] || fail "runs on: $found"
}

# verified FILE [OPTION] fails if systemd-analyze prints a complaint about the unit. Its exit status is 0 even then.
verified() {
	local said
	said=$(XDG_RUNTIME_DIR=/run systemd-analyze verify --man=no "${@:2}" "$1" 2>&1) || fail "verify $1: $said"
	[ -z "$said" ] || fail "verify $1: $said"
}

# limits runs the tests of platform/limits in the cgroups of a user's manager. They are skipped, with a message, where cgroups of version 2 have no
# controllers because the machine has mounted these as version 1. Tests may not be skipped for another reason.
limits() {
	step "what an agent runs is held to its limits"
	local said has
	has=$(cat /sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers)
	said=$(as dev XDG_RUNTIME_DIR=/run/user/1000 /in/limits.test -test.v -test.run TestJoin -test.timeout 60s 2>&1) || fail "$said"
	if [[ " $has " == *" memory "* && " $has " == *" pids "* ]]; then
		[[ "$said" != *SKIP* ]] || fail "skipped: $said"
	else
		[[ "$said" == *"--- SKIP: TestJoin "* ]] || fail "a bound counts that nothing holds: $said"
		step "skipped: TestJoin, TestJoinBoundsProcesses, TestJoinBoundsMemory: the controllers of version 2 here are '$has', without pids and memory"
	fi
}

first_boot() {
	mkdir -p "${program%/*}"
	cp /in/tether "$program"
	useradd -m -s /bin/bash dev
	useradd -m -s /bin/bash other

	step "without a login there is no manager to install with, and the error says what to do"
	refuses 1 "enable-linger" tether service install
	[ ! -e /home/dev/.config ] || fail "something was installed: $(find /home/dev/.config)"
	loginctl enable-linger dev
	within 10 test -S /run/user/1000/bus
	limits

	step "the wrong rights, user and words"
	refuses 6 "administrator" tether service install --system --user dev
	refuses 6 "as root" "$program" service install
	refuses 6 "as root" "$program" service install --system --user root
	refuses 1 "no user \"nobody-here\"" "$program" service install --system --user nobody-here
	refuses 2 "needs --user" "$program" service install --system
	refuses 1 "not installed" tether service start
	refuses 3 "not installed" tether service status

	step "a daemon that does not start leaves nothing installed"
	mkdir -p /home/dev/.config/tether
	echo 'nonsense = 1' >/home/dev/.config/tether/config.toml
	chown -R dev: /home/dev/.config
	refuses 1 "nonsense" tether service install
	rm -r /home/dev/.config/tether
	nothing_left

	step "a full disk leaves nothing installed"
	mkdir -p /home/dev/.config/systemd
	mount -t tmpfs -o size=4k,uid=1000,mode=700 tmpfs /home/dev/.config/systemd
	mkdir /home/dev/.config/systemd/user
	cat /dev/zero >/home/dev/.config/systemd/fill 2>/dev/null || true
	chown -R dev: /home/dev/.config/systemd
	refuses 1 "free some" tether service install
	umount /home/dev/.config/systemd
	rmdir /home/dev/.config/systemd
	nothing_left

	step "a daemon that tether run has started becomes the service's, with its terminal"
	tether run --private --detach --name clock -- sh -c "$counting"
	clock=$(counting_of dev)
	began=$(now)
	tether service install
	step "installed and ready after $(($(now) - began)) ms"
	goes_on "$clock"
	[ "$(pid)" = "$(as dev XDG_RUNTIME_DIR=/run/user/1000 systemctl --user show -p MainPID --value tether)" ] || fail "the service is not the daemon that tether run uses"
	tether service status
	[[ "$(tether service install)" == *"already"* ]] || fail "the second install is not the same"
	goes_on "$clock"
	if grep -qz 'NOTIFY_SOCKET\|INVOCATION_ID\|JOURNAL_STREAM' "/proc/$clock/environ"; then
		fail "a terminal has systemd's variables"
	fi
	tether run --private -- sh -c 'env | grep -c "NOTIFY_SOCKET\|JOURNAL_STREAM\|INVOCATION_ID"' >/tmp/count || true
	[ "$(tr -d '\r' </tmp/count)" = 0 ] || fail "a new terminal has systemd's variables"

	step "a user unit is the person, without a sign of one, and uses tether as ever"
	unit() { as dev XDG_RUNTIME_DIR=/run/user/1000 systemd-run --user --wait --pipe --quiet "$program" "$@"; }
	local said words
	said=$(unit whoami)
	[[ "$said" == "user: no agent has started "*"no sign of a person: "* ]] || fail "whoami says $said"
	for words in "run --private --name one -- true" "run --private --detach --name unit -- cat" ls "unlend unit" "kill unit"; do
		# shellcheck disable=SC2086 # several words
		unit $words >/tmp/said 2>&1 || fail "in a unit, $words: $(cat /tmp/said)"
	done

	# From here on, the terminal is one that the service has started, below its own control group.
	tether kill clock
	tether run --private --detach --name clock -- sh -c "$counting"
	clock=$(counting_of dev)
	grep -q tether.service "/proc/$clock/cgroup" || fail "the terminal is not the service's: $(cat "/proc/$clock/cgroup")"

	step "what systemd says of the units"
	verified /home/dev/.config/systemd/user/tether.service --user
	score /home/dev/.config/systemd/user/tether.service

	step "a second service of the same user is refused"
	refuses 1 "service of dev's own" "$program" service install --system --user dev

	step "a restart leaves terminals alone"
	began=$(now)
	tether service restart
	step "restarted after $(($(now) - began)) ms"
	goes_on "$clock"

	step "a crash is over within 2 s, and leaves terminals alone"
	local before
	before=$(pid)
	began=$(now)
	kill -9 "$before"
	within 2 gone "$before"
	within 2 answers
	step "answered $(($(now) - began)) ms after kill -9"
	[ "$(($(now) - began))" -le 2000 ] || fail "too late"
	goes_on "$clock"

	step "another version takes over with the same terminals"
	cp /in/tether "$program.new"
	mv "$program.new" "$program"
	before=$(pid)
	[[ "$(tether service install)" == *"updated"* ]] || fail "the new program was not noticed"
	[ "$(pid)" != "$before" ] || fail "the old one still runs"
	goes_on "$clock"
	mkdir -p /usr/local/bin
	cp /in/tether /usr/local/bin/tether
	[[ "$(as dev /usr/local/bin/tether service install)" == *"updated"* ]] || fail "the other program was not installed"
	goes_on "$clock"

	step "stop ends within 5 s, leaves terminals alone, and stays"
	began=$(now)
	tether service stop
	step "stopped after $(($(now) - began)) ms"
	[ "$(($(now) - began))" -le 5000 ] || fail "too late"
	kill -0 "$clock" || fail "the terminal has died"
	refuses 3 "inactive" tether service status
	step "a start works also after so many crashes that systemd gives up"
	mkdir -p /home/dev/.config/tether
	echo 'nonsense = 1' >/home/dev/.config/tether/config.toml
	chown -R dev: /home/dev/.config/tether
	for _ in $(seq 25); do as dev XDG_RUNTIME_DIR=/run/user/1000 systemctl --user start tether 2>/dev/null || true; done
	rm /home/dev/.config/tether/config.toml
	refuses 1 "" as dev XDG_RUNTIME_DIR=/run/user/1000 systemctl --user start tether
	tether service start
	goes_on "$clock"
	[[ "$(tether service logs)" == *'tether: ready'*'"ready"'* ]] || fail "no log"

	step "uninstall leaves nothing"
	tether service uninstall
	nothing_left
	within 2 gone "$clock"
	tether service uninstall

	step "a unit of somebody else is left alone"
	mkdir -p /home/dev/.config/systemd/user
	printf '[Service]\nExecStart=/bin/true\n' >/home/dev/.config/systemd/user/tether.service
	chown -R dev: /home/dev/.config/systemd
	refuses 1 "by tether service install" tether service install
	refuses 1 "by tether service install" tether service uninstall
	rm -r /home/dev/.config/systemd
	rm /usr/local/bin/tether

	step "tether stop ends the service; what tether run starts then is taken over"
	began=$(now)
	tether service install
	step "installed and ready after $(($(now) - began)) ms"
	tether stop
	within 5 inactive
	tether run --private --detach --name clock -- sh -c "$counting"
	tether service start
	goes_on "$(counting_of dev)"
	tether kill clock

	step "who does not linger is told so, and is not served at the next boot"
	useradd -m -s /bin/bash short
	systemctl start "user@$(id -u short)"
	[[ "$(as short "$program" service install 2>&1)" == *"enable-linger short"* ]] || fail "no hint"
	[[ "$(as short "$program" service status)" == *"enable-linger short"* ]] || fail "no hint in status"
	as short "$program" run --private --detach -- sh -c "$counting"
	clock=$(counting_of short)
	systemctl stop "user@$(id -u short)" # as logind does after the last logout
	gone "$clock" || fail "it is said to end with the last logout, and does not"
	machine_service
}
inactive() { [[ "$(tether service status)" == *inactive* ]]; }

# score FILE prints how systemd rates the hardening of the unit. The rating cannot be good, because programs in terminals need the usual rights.
score() {
	systemd-analyze security --no-pager --offline=true --threshold=100 "$1" 2>/dev/null | tail -1
}

machine_service() {
	step "a service of the machine for a user who does not linger"
	[ ! -e /var/lib/systemd/linger/other ] || fail "lingers already"
	"$program" service install --system --user other
	verified /etc/systemd/system/tether.service
	score /etc/systemd/system/tether.service
	[ "$(ps -o user= -p "$(systemctl show -p MainPID --value tether)")" = other ] || fail "runs as somebody else"
	as other "$program" status
	as other "$program" run --private --detach --name clock -- sh -c "$counting"
	[[ "$("$program" service install --system --user other)" == *already* ]] || fail "the second install is not the same"
	refuses 1 "runs as other" "$program" service install --system --user dev
	refuses 1 "service of the machine" as other "$program" service install
}

second_boot() {
	step "both services have started by themselves"
	within 20 answers
	as dev XDG_RUNTIME_DIR=/run/user/1000 systemctl --user is-active tether
	tether service status
	within 20 as other "$program" status
	"$program" service status --system
	[ "$(ps -o user= -p "$(systemctl show -p MainPID --value tether)")" = other ] || fail "runs as somebody else"

	step "a crash of the machine's is over within 2 s, its terminals live on, the client of another shell finds it"
	as other "$program" run --private --detach --name clock -- sh -c "$counting"
	clock=$(counting_of other)
	local before began
	before=$(systemctl show -p MainPID --value tether)
	began=$(now)
	kill -9 "$before"
	within 2 gone "$before"
	within 2 as other "$program" status
	step "answered $(($(now) - began)) ms after kill -9"
	[ "$(($(now) - began))" -le 2000 ] || fail "too late"
	"$program" service restart --system
	[[ "$(as other "$program" read --tail 1 clock)" == [0-9]* ]] || fail "the terminal was lost"
	kill -0 "$clock" || fail "the terminal has died"
	refuses 6 administrator as other "$program" service stop --system
	[[ "$("$program" service logs --system)" == *'tether: ready'*'"ready"'* ]] || fail "no log"

	step "while the machine's is stopped, tether run starts another, which it takes over"
	"$program" service stop --system
	refuses 3 "inactive" "$program" service status --system
	as other "$program" run --private -- true
	"$program" service start --system
	[[ "$(as other "$program" status)" == *"process $(systemctl show -p MainPID --value tether),"* ]] || fail "two daemons"
	[[ "$(as other "$program" read --tail 1 clock)" == [0-9]* ]] || fail "the terminal was lost"
	kill -0 "$clock" || fail "the terminal has died"

	step "clean removal"
	refuses 1 "does not answer" as short "$program" service status
	[ -z "$(pgrep -u short tether || true)" ] || fail "runs without a login"
	systemctl start "user@$(id -u short)"
	as short "$program" service uninstall
	"$program" service uninstall --system
	within 2 gone "$clock"
	[ ! -e /var/lib/systemd/linger/other ] || fail "still lingers"
	tether service uninstall
	nothing_left
	[ -e /var/lib/systemd/linger/dev ] || fail "dev's own lingering was taken away"
}

if [ "$boot" = 1 ]; then first_boot; else second_boot; fi
step "all is well"

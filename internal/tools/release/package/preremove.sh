#!/bin/sh
# dpkg says "upgrade" and rpm "1" when another version comes; then nothing is stopped. A service of the machine that starts what is
# removed here is removed, with its terminals. Services of users are theirs: they are told.
unit=/etc/systemd/system/tether.service
case "$1" in
upgrade | failed-upgrade | deconfigure | 1) ;;
*)
	if grep -q '^ExecStart=/usr/bin/tether ' "$unit" 2>/dev/null; then
		/usr/bin/tether service uninstall --system || echo "tether: $unit is left; remove it by hand" >&2
	fi
	for process in /proc/[0-9]*; do
		if [ "$(readlink "$process/exe" 2>/dev/null)" = /usr/bin/tether ]; then
			echo "tether: daemons or terminals of users run on; to end them, each user says beforehand: tether service uninstall; tether stop" >&2
			break
		fi
	done
	;;
esac

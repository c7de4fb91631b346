#!/bin/sh
# dpkg calls this with "configure" and the version that was there before, rpm with how many versions are there now, others only after
# a first installation.
case "$1:$2" in
configure:?* | [2-9]:*)
	echo "tether: daemons that run are of the version before; each user replaces theirs with: tether daemon --replace --background"
	echo "tether: (or tether service restart). Terminals run on."
	;;
*)
	echo "tether: as yourself, not as root: tether pair wss://HOST, then tether service install. See tether(1)."
	;;
esac

#!/bin/sh
# apk and pacman call this after an upgrade.
echo "tether: daemons that run are of the version before; each user replaces theirs with: tether daemon --replace --background"
echo "tether: (or tether service restart). Terminals run on."

package policy

import "strings"

// ownList holds the patterns of commands that belong to one rule.
type ownList struct {
	rule, what string
	patterns   []pattern
}

// ownLists are the built-in lists besides the block list: other commands with the same
// effect. A line is a pattern: the first words, and after ".." words that must occur
// somewhere. See docs/POLICY.md.
var ownLists = []ownList{
	{ruleDestructive, "destroys files or work", patterns(`
		unlink|shred|srm|wipe|scrub|trash|trash-put|rmtrash|wipefs|sfdisk|cfdisk|parted|sgdisk|gdisk|blkdiscard|truncate|rimraf|del-cli|mke2fs|newfs
		del|erase|rd|format|diskpart|remove-item
		find|gfind .. -delete|-fprint*|-fls
		git clean .. -*f*|--force
		git reset .. --hard|--merge|--keep
		git checkout|restore|switch .. -f|--force|.|--discard-changes
		git push .. -f|--force*|--delete|--mirror|+*
		git branch .. -D
		git stash drop|clear
		git filter-branch|filter-repo|update-ref|gc|prune
		git worktree remove
		git rm
		rsync .. --delete*|--remove-source-files
		tee|cp|mv|install|ln|cat .. /dev/sd*|/dev/nvme*|/dev/vd*|/dev/hd*|/dev/mmcblk*|/dev/disk*|/dev/mem|/dev/kmem
		mv .. /dev/null
		docker|podman system|volume|image|container|network|builder prune|rm
		docker|podman rm|rmi|kill
		kubectl|oc delete|drain
		terraform|tofu destroy
		npm unpublish
		dropdb|dropuser
		mysqladmin .. drop
		gio trash|remove
		cmake -E rm|remove|remove_directory
		redis-cli .. flushall|FLUSHALL|flushdb|FLUSHDB
	`)},
	{ruleElevation, "runs something with other rights, or out of sight", patterns(`
		doas|su|pkexec|runuser|run0|gosu|su-exec|setpriv
		systemd-run|at|batch|crontab|launchctl|schtasks|sc
		nsenter|chroot|unshare
		systemctl .. poweroff|reboot|halt|suspend|hibernate|kexec|rescue|emergency|stop|restart|disable|enable|edit|mask|kill|isolate|set-*|link
		init|telinit 0|1|6
		loginctl .. terminate-*|kill-*
		skill|snice|xkill|slay|taskkill|stop-process|spps
		fuser .. -*k*|--kill
		chgrp|setfacl|chattr|icacls|takeown|chflags|setcap
		passwd|gpasswd|chpasswd|groupadd|usermod|useradd|userdel|groupmod|visudo|vipw|chsh
		mount|umount|losetup|swapoff|modprobe|insmod|rmmod|sysctl|kexec
		iptables|ip6tables|nft|ufw
		ip .. del|delete|flush|down
		dbus-send|busctl|gdbus|qdbus
		open -a
		xdg-open|gtk-launch|exo-open|dex|gio .. *.desktop
		tar|gtar|bsdtar .. --checkpoint-action*|--to-command*|--use-compress-program*|-I|--rmt-command*|--rsh-command*
		zip .. -T*|-TT*|--unzip-command*
	`)},
}

// patterns parses the text of a list. It panics on a fault: the texts are constants, so
// any test finds it.
func patterns(text string) []pattern {
	var all []pattern
	for line := range strings.Lines(text) {
		argv, has, _ := strings.Cut(line, " .. ")
		if strings.TrimSpace(line) == "" {
			continue
		}
		p, err := parsePattern(strings.Fields(argv), strings.Fields(has))
		if err != nil {
			panic(err)
		}
		all = append(all, p)
	}
	return all
}

// Package tunnel makes a port on this machine's loopback reachable for others, through
// programs that the person has: ssh, tailscale and cloudflared. A [Way] has the command
// line of such a program and knows its output; [Way.Run] keeps it running. [Door] is what
// others reach: it lets them to a few paths of a private host.
//
// It does not fetch a program and does not change the configuration of one.
package tunnel

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"tether/internal/lazyregexp"
)

// Way is a way by which others reach a port of this machine. Its zero value is no way.
type Way struct {
	Name string // for people
	// Readers says in one sentence who can read what is shown.
	Readers string
	// Note says what else the person must know; it may be "".
	Note string
	// Program is the name of the program; "" is the way None, which needs none.
	Program string

	args  func(port, remote int) []string
	ready *regexp.Regexp // matches the line of output that says that the way is open; its group is the URL, or the port at the remote end
	at    func(found string) (url string, remote int)
	loud  *regexp.Regexp // matches lines of output that the person must see while the way is not open
	noise *regexp.Regexp // matches lines that explain nothing; may be nil
}

// Names of ways, as the person gives them. SSHPrefix is followed by HOST or HOST:PORT.
const (
	None           = "none"
	Tailscale      = "tailscale"
	Funnel         = "tailscale:funnel"
	Cloudflared    = "cloudflared"
	SSHPrefix      = "ssh:"
	defaultSSHPort = 9188 // at the host, where something that ends TLS expects it
)

// none is the way None.
func none() Way {
	return Way{Name: None, Readers: "only programs on this machine can open the link"}
}

// Parse returns the way with that name. publicURL is the URL that leads to the port at
// the far end of ssh, or "".
func Parse(name, publicURL string) (Way, error) {
	host, ssh := strings.CutPrefix(name, SSHPrefix)
	switch {
	case ssh:
		return overSSH(host, publicURL)
	case publicURL != "":
		return Way{}, errors.New("a public URL needs the way ssh:HOST")
	case name == None:
		return none(), nil
	case name == Tailscale:
		return overTailscale("serve", "whoever has the link, on a device of your tailnet: TLS ends on this machine, and Tailscale passes on what it cannot read"), nil
	case name == Funnel:
		return overTailscale("funnel", "whoever has the link, anywhere: TLS ends on this machine, and Tailscale passes on what it cannot read"), nil
	case name == Cloudflared:
		return overCloudflared(), nil
	}
	return Way{}, fmt.Errorf("%.80q is none of tailscale, tailscale:funnel, ssh:HOST, cloudflared and none", name)
}

// Found returns the ways to try if the person names none: those whose program look finds,
// and at last None.
func Found(look func(program string) (path string, err error)) (ways []Way) {
	for _, name := range []string{Tailscale, Cloudflared} {
		w, _ := Parse(name, "") // cannot fail
		if _, err := look(w.Program); err == nil {
			ways = append(ways, w)
		}
	}
	last := none()
	last.Note = "tailscale and cloudflared are not in PATH; with ssh: --via ssh:HOST"
	if len(ways) > 0 {
		last.Note = "no other way works"
	}
	return append(ways, last)
}

// Tailscale prints the URL once the way is open, and removes it when it is ended. Before,
// it may print where to switch the feature on. See
// https://tailscale.com/docs/reference/tailscale-cli/serve and …/funnel.
func overTailscale(verb, readers string) Way {
	return Way{
		Name: "tailscale " + verb, Program: "tailscale", Readers: readers,
		args:  func(port, _ int) []string { return []string{verb, fmt.Sprintf("http://127.0.0.1:%d", port)} },
		ready: regexp.MustCompile(`^(https://[a-z0-9-]+(?:\.[a-z0-9-]+)*\.ts\.net(?::[0-9]+)?)/?\s*$`),
		at:    func(found string) (string, int) { return found, 0 },
		loud:  regexp.MustCompile(`\S`),
	}
}

// A quick tunnel takes no configuration file, so that it gets an empty one: the person's
// own would be used otherwise. Its URL is in a log line on standard error. See
// https://developers.cloudflare.com/cloudflare-one/connections/connect-networks/do-more-with-tunnels/trycloudflare.
func overCloudflared() Way {
	return Way{
		Name: Cloudflared, Program: "cloudflared",
		Readers: "whoever has the link, anywhere, and Cloudflare, where TLS ends: its operator can read and change what is shown",
		args: func(port, _ int) []string {
			return []string{"tunnel", "--no-autoupdate", "--config", os.DevNull, "--url", fmt.Sprintf("http://127.0.0.1:%d", port)}
		},
		ready: regexp.MustCompile(`\|\s+(https://[a-z0-9]+(?:-[a-z0-9]+)+\.trycloudflare\.com)\s+\|`),
		at:    func(found string) (string, int) { return found, 0 },
		loud:  regexp.MustCompile(` ERR .*(?i:tunnel|certificate|connection)`),
		noise: regexp.MustCompile(` (INF|DBG) `),
	}
}

// sshHost matches what ssh takes as a destination, without a port: no option, and nothing
// that a shell could read otherwise.
var sshHost = lazyregexp.New(`^([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// overSSH is ssh -R. With -v ssh says when the far end listens; see the function
// ssh_confirm_remote_forward of OpenSSH.
func overSSH(host, publicURL string) (Way, error) {
	remote := 0
	if name, text, ok := strings.Cut(host, ":"); ok {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return Way{}, fmt.Errorf("the port in ssh:%.80s must be 1 to 65535", host)
		}
		host, remote = name, int(n)
	}
	if len(host) > 255 || !sshHost().MatchString(host) {
		return Way{}, fmt.Errorf("ssh:%.80s must be ssh:HOST or ssh:HOST:PORT, where HOST may be USER@NAME", host)
	}
	w := Way{
		Name: "ssh to " + host, Program: "ssh",
		ready: regexp.MustCompile(`^(?:debug1: remote forward success for: listen 127\.0\.0\.1:|Allocated port )([1-9][0-9]*)\b`),
		loud:  regexp.MustCompile(`\S`),
		noise: regexp.MustCompile(`^(debug1: |OpenSSH_|Authenticated to |Transferred: |Bytes per second|Warning: Permanently added )`),
	}
	if publicURL == "" {
		w.Readers = fmt.Sprintf("whoever has the link and can reach ports on the loopback of %s; its administrators can read what is shown", host)
		w.Note = fmt.Sprintf("the link works on %s alone, since the port is bound to its loopback: guests elsewhere need a tunnel to it, or something there that ends TLS and --public-url", host)
	} else {
		u, err := url.Parse(publicURL)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return Way{}, fmt.Errorf("the public URL %.200q must be https://NAME, without a path", publicURL)
		}
		remote = cmp.Or(remote, defaultSSHPort)
		publicURL = "https://" + strings.ToLower(u.Host)
		w.Readers = fmt.Sprintf("whoever has the link, and whoever runs %s, where TLS ends", host)
		w.Note = fmt.Sprintf("%s must lead to 127.0.0.1:%d on %s", publicURL, remote, host)
	}
	w.args = func(port, again int) []string {
		if remote != 0 {
			again = remote
		}
		return []string{"-N", "-T", "-v", "-o", "ExitOnForwardFailure=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3", "-o", "ControlPath=none",
			"-R", fmt.Sprintf("127.0.0.1:%d:127.0.0.1:%d", again, port), "--", host}
	}
	w.at = func(found string) (string, int) {
		n, _ := strconv.Atoi(found) // digits
		if publicURL != "" {
			return publicURL, n
		}
		return "http://" + net.JoinHostPort("127.0.0.1", found), n
	}
	return w, nil
}

package houserules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// layers says which of our packages may import which. "a, b < c, d" means that c and d
// may import a, b and all packages that a and b may import; NONE stands for no package. A
// package without a rule is an error, so that somebody decides about each new package.
const layers = `
	# Vocabulary and pure parts: no I/O, nothing below them.
	NONE < internal/acpschema, internal/asciicast, internal/change, internal/clip, internal/escape, internal/jsonspan, internal/lazyregexp, internal/lines, internal/loopback, internal/literal, internal/metrics, internal/oneconn, internal/qr, internal/retry, internal/webproxy, agent/ring, agent/flow, vocab;
	internal/change < ahp/client, jsonrpc, internal/bounded, internal/idle, agent/holder, agent/toolcall, agent/uplink, events, mcp;
	internal/loopback < agenttools, agent/fetch, agent/config, cmd/tether/internal/tunnel, host/admission;
	internal/retry < ahp/client, internal/demo, platform/proc, installer, agenttools, agent/declared, agent/device, agent/holder, agent/localclient, host, host/leader, cmd/tether/internal/attach, cmd/tether/internal/tunnel;
	internal/clip < jsonrpc/wsconn, agent/redact, agent/config, agent/command;
	internal/webproxy < internal/deliver;
	internal/jsonspan < ahp, jsonrpc;
	vocab < ahp;
	jsonrpc, internal/webproxy, platform/rawio < jsonrpc/wsconn;
	ahp, jsonrpc/wsconn < ahp/client;
	internal/lazyregexp < ahp, agent/redact, problems, internal/flagerror, internal/manual, internal/version, cmd/tether/internal/tunnel;
	NONE < pairing;

	# Systems. They know nothing of terminals that are lent.
	NONE < platform/dirs, platform/keyring, platform/secret, platform/tty, platform/rawio, platform/roam, platform/browser, platform/notify, platform/volume, platform/socket;
	platform/rawio < platform/pty, platform/ipc;
	platform/proc < platform/pty, platform/shell, platform/limits;
	platform/secret < platform/ipc, platform/proc;
	NONE < platform/sandbox;

	# What the person configures: structs that each part's composition reads.
	ahp, internal/textfile, platform/dirs, platform/secret < agent/config;
	internal/change, agent/config, platform/proc, vocab < agent/declared;

	# The core, then the doors. Doors do not import each other, but local mounts mcp.
	internal/escape < shellint;
	shellint < agent/redact;
	screen < record;
	NONE < record/recordtest;
	agent/ring, agent/redact, record, platform/pty, vocab, internal/change, internal/clip < agent/output;
	internal/clip, vocab < agent/loans;
	internal/escape, internal/change, agent/output < agent/answers;
	internal/change, internal/jsonspan, agent/command, agent/flow, agent/answers, agent/loans < agent/term;
	NONE < agent/command;
	platform/secret < internal/rotated;
	internal/rotated < agent/audit;
	internal/clip, internal/jsonspan, problems, platform/secret, vocab < agent/history;
	agent/term, platform/secret < agent/integrate;
	agent/term, agent/config, agent/audit, platform/shell < agent/policy;
	internal/checkout, platform/secret, platform/socket < agent/ports;
	agent/localapi, agent/policy, agent/ports, agent/integrate, platform/dirs, platform/limits, platform/sandbox < agent/start;
	agent/flow, agent/ring, platform/pty, platform/ipc < agent/holder;
	internal/change, internal/clip, internal/retry, platform/ipc, platform/proc, platform/pty, platform/tty, screen < agent/adopt;
	agent/adopt, agent/config, agent/term, internal/jsonspan, platform/secret < agent/adoptions;
	agent/adoptions < agent/start;
	agent/adopt < agent/local, cmd/tether;
	screen < internal/plain;
	internal/literal < problems;
	internal/plain < problems, events, agent/acp, cmd/tether/internal/view, cmd/tether/internal/tui;
	problems, internal/change, internal/clip, internal/jsonspan, vocab < agenttools;
	agent/fetch < agenttools, agent/local;
	agent/term, agenttools, internal/checkout, internal/retry, platform/proc < agent/devserver;
	agent/devserver < agent/local;
	ahp, agent/devserver, internal/clip, internal/loopback < agent/lentports;
	agent/lentports < agent;
	problems < agent/config;
	problems, internal/clip, vocab < agent/verdict;
	internal/escape < screen;
	screen, agent/verdict < agenttools;
	agenttools, platform/secret < events;
	events, internal/lines < mcp;
	agent/term, ahp/client, internal/bounded, internal/oneconn < agent/uplink;
	agent/audit, events, internal/jsonspan, platform/ipc, platform/proc < agent/localapi;
	agent/verdict < agent/localapi;
	agent/localapi, platform/proc < agent/localclient;
	vocab, internal/clip, platform/volume < internal/checkout;
	internal/checkout < agent/local, agent;
	agent/history, agent/term, agent/verdict, agenttools, internal/checkout < agent/runs;
	agent/runs < agent/local, agent;
	agent/localapi, agent/term, agent/policy, agent/start, internal/metrics, platform/ipc, platform/proc, platform/secret, mcp < agent/local;
	internal/change, agent/ring, internal/jsonspan, internal/lines < agent/acp;
	pairing, ahp/client < agent/device;
	ahp/client, platform/secret < agent/toolcall;

	agent/localapi, agent/policy, agent/uplink, agent/device, agent/toolcall, platform/keyring, platform/roam < agent/hosts;

	agent/config, agent/localapi, events, internal/deliver, internal/retry < agent/notify;

	# Composition of the daemon.
	agent/notify < agent;
	agent/declared, agent/holder, agent/hosts, agent/local, platform/notify < agent;

	# The reference host: it is not a part of the daemon and shares only the protocol.
	internal/bounded < agent/local;
	internal/metrics, jsonrpc/wsconn, mcp < host;
	agenttools, ahp, internal/jsonspan, record, shellint < host/output;
	NONE < host/web, host/webpush;
	ahp, internal/retry, screen < host/shells;
	agenttools, host/channel, host/rights, jsonrpc, mcp < host/sessions;
	host/sessions < host/shells;
	ahp, internal/bounded, internal/jsonspan < host/preview;
	host/rights, internal/bounded, internal/loopback < host/admission;
	host/admission, internal/change < host/login;
	agent/verdict, agenttools, events, host/login, host/web, host/webpush, internal/jsonspan, mcp < host/page;
	host/ports, host/runs < host/page;
	events, host/link, jsonrpc/wsconn < host/agents;
	host/agents < host;
	host/agents, host/page, host/webpush < host/webhook;
	host/page < host;
	ahp, internal/jsonspan, record < host/channel;
	ahp < host/rights;
	host/admission, jsonrpc, mcp, platform/ipc < host/link;
	host/output, host/ports, host/shells, internal/bounded, internal/change, internal/clip, internal/retry, vocab < host/terminals;
	host/link, host/preview, host/terminals < host;
	agenttools, host/preview, host/rights, internal/oneconn, jsonrpc < host/ports;
	agenttools, host/rights, internal/bounded, jsonrpc < host/runs;
	host/runs < host;
	host/login, jsonrpc < host/share;
	host/share < host;
	host/share, internal/retry, pairing, platform/ipc < host/access;
	host/access < host/devices, host/leader;
	host < host/devices;
	host/page < host/oidc;
	host/leader, events, mcp, internal/deliver < host/webhook;
	pairing, host, host/access, internal/metrics < host/cluster;
	pairing, host/leader < host/oidc;
	ahp/client, internal/change < host/conform;

	# The command line.
	agent/localapi, agent/term, ahp, platform/tty < cmd/tether/internal/display;
	agent/localclient, cmd/tether/internal/display < cmd/tether/internal/view, cmd/tether/internal/tui;
	agent, agent/localclient, cmd/tether/internal/display, installer, internal/version < cmd/tether/internal/doctor;
	internal/change, internal/escape, cmd/tether/internal/view < cmd/tether/internal/attach;
	NONE < cmd/tether/internal/tunnel;

	platform/dirs < installer;
	NONE < internal/testkit/check, internal/testkit/must;
	internal/testkit/must, platform/proc, platform/pty, platform/secret < internal/testkit;
	platform/proc < internal/idle;
	internal/idle < agent, agent/holder;
	NONE < internal/flagerror, internal/manual, internal/output, internal/terminals, internal/textfile, internal/version, internal/xterm;
	internal/textfile < internal/progentry;
	internal/lazyregexp, internal/progentry < installer/termprofile;
`

// free are the commands and tools, which may import everything and which no package
// imports. "*" stands for one path element.
var free = []string{"cmd/tether", "cmd/tether-host", "bench", "internal/tools/*"}

// rules maps a package to those of our packages that it may import.
type rules map[string]map[string]bool

// parseRules returns the stated rules (direct), and the stated and implied ones (full).
func parseRules(text string) (direct, full rules, err error) {
	direct = rules{}
	var lines []string
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "#")
		lines = append(lines, code)
	}
	for rule := range strings.SplitSeq(strings.Join(lines, " "), ";") {
		if strings.TrimSpace(rule) == "" {
			continue
		}
		low, high, ok := strings.Cut(rule, "<")
		if !ok || strings.Contains(high, "<") {
			return nil, nil, fmt.Errorf("rule %q is not of the form a, b < c, d", strings.TrimSpace(rule))
		}
		for _, above := range names(high) {
			if direct[above] == nil {
				direct[above] = map[string]bool{}
			}
			for _, below := range names(low) {
				if below != "NONE" {
					direct[above][below] = true
				}
			}
		}
	}
	full, err = direct.closed()
	return direct, full, err
}

func names(list string) []string {
	var all []string
	for name := range strings.SplitSeq(list, ",") {
		all = append(all, strings.TrimSpace(name))
	}
	return all
}

// closed adds the implied rules. It refuses cycles, and packages without a rule of their
// own.
func (r rules) closed() (rules, error) {
	full := rules{}
	for pkg := range r {
		full[pkg] = map[string]bool{}
		for queue := keys(r[pkg]); len(queue) > 0; queue = queue[1:] {
			below := queue[0]
			if r[below] == nil {
				return nil, fmt.Errorf("%s stands below %s but has no rule of its own", below, pkg)
			}
			if below == pkg {
				return nil, fmt.Errorf("%s stands below itself", pkg)
			}
			if !full[pkg][below] {
				full[pkg][below] = true
				queue = append(queue, keys(r[below])...)
			}
		}
	}
	return full, nil
}

func keys[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }

// check returns the forbidden imports of one file. Tests may import anything. Only tests
// may import internal/testkit, which stands below no package.
func (r rules) check(f *file) []string {
	if f.isTest() || matchesAny(f.dir(), free) {
		return nil
	}
	allowed, known := r[f.dir()]
	if !known {
		return []string{fmt.Sprintf("%s: package %s has no place in the layers of imports_test.go", f.name, f.dir())}
	}
	var bad []string
	f.imports(func(importPath string, spec node) {
		pkg, ours := strings.CutPrefix(importPath, modulePath+"/")
		if ours && !allowed[pkg] {
			bad = append(bad, fmt.Sprintf("%s: %s may not import %s", f.at(spec), f.dir(), pkg))
		}
	})
	return bad
}

// unused returns the rules that no file needs, directly or through other packages: a
// reader would take such a rule for a fact.
func (r rules) unused(t *testing.T, tree []*file) []string {
	used := map[string]bool{}
	for _, f := range tree {
		f.imports(func(importPath string, _ node) {
			if pkg, ours := strings.CutPrefix(importPath, modulePath+"/"); ours && !f.isTest() {
				used[pkg+" < "+f.dir()] = true
			}
		})
	}
	var idle []string
	for _, above := range keys(r) {
		for _, below := range keys(r[above]) {
			rule := below + " < " + above
			if !used[rule] && !r.without(t, below, above).refuses(tree) {
				idle = append(idle, rule+": nothing needs it")
			}
		}
	}
	return idle
}

// without returns the closure of the rules without the rule below < above.
func (r rules) without(t *testing.T, below, above string) rules {
	t.Helper()
	fewer := maps.Clone(r)
	fewer[above] = maps.Clone(r[above])
	delete(fewer[above], below)
	return must.Get(fewer.closed())(t)
}

// refuses reports whether a file of the tree has a forbidden import.
func (r rules) refuses(tree []*file) bool {
	return slices.ContainsFunc(tree, func(f *file) bool { return len(r.check(f)) > 0 })
}

func TestImportDirections(t *testing.T) {
	t.Chdir(root)
	direct, full, err := parseRules(layers)
	must.Do(t, err)
	tree := parseTree(t)
	for _, f := range tree {
		report(t, full.check(f))
	}
	report(t, direct.unused(t, tree))
}

func TestImportRulesCanFail(t *testing.T) {
	t.Chdir(root)
	direct, r, err := parseRules(`NONE < low; low < mid; # comment
		mid < high, other;`)
	must.Do(t, err)
	for _, c := range []struct {
		name, src string
		bad       int
	}{
		{"mid/a.go", `package mid; import "tether/low"`, 0},
		{"high/a.go", `package high; import ("tether/low"; "fmt"; "tether/mid")`, 0},
		{"low/a.go", `package low; import "tether/mid"`, 1},
		{"high/a.go", `package high; import "tether/other"`, 1},
		{"low/a_test.go", `package low_test; import "tether/high"`, 0},
		{"new/a.go", `package new`, 1},
		{"cmd/tether/a.go", `package main; import "tether/high"`, 0},
	} {
		if bad := r.check(mustParse(t, c.name, c.src)); len(bad) != c.bad {
			t.Errorf("%s with %s: complaints %q, want %d", c.name, c.src, bad, c.bad)
		}
	}
	used := []*file{mustParse(t, "mid/a.go", `package mid; import "tether/low"`), mustParse(t, "high/a.go", `package high; import "tether/mid"`),
		mustParse(t, "other/a_test.go", `package other; import "tether/mid"`)}
	if idle := direct.unused(t, used); !slices.Equal(idle, []string{"mid < other: nothing needs it"}) {
		t.Errorf("not used: %q", idle)
	}
	for _, text := range []string{"a", "NONE < a; a < b; b < a;", "a < b;", "a < b < c;"} {
		if _, r, err := parseRules(text); err == nil {
			t.Errorf("rules %q were accepted as %v", text, r)
		}
	}
}

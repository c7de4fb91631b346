package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// settings say how thoroughly to measure.
type settings struct {
	programs  programs
	rounds    int           // of each comparison
	megabytes int           // of output in each comparison
	keys      int           // typed at each place
	starts    int           // of the programs
	settle    time.Duration // within which an idle daemon or holder returns spare memory to the system
	idle      time.Duration // span in which idle programs are measured
	viewers   int           // of one terminal; a tenth as many more do not read
	viewing   time.Duration // how long viewers watch a flood
	machines  int           // that lend terminals to one host
	watchers  int           // observers of these terminals
	flow      time.Duration // how long a flood through a host lasts
	searched  int           // megabytes of recorded output
}

var (
	thorough = settings{rounds: 5, megabytes: 200, keys: 1000, starts: 5, settle: time.Second, idle: idleSpan, viewers: 50, viewing: 5 * time.Second,
		machines: 1000, watchers: 200, flow: 5 * time.Second, searched: 256}
	quick = settings{rounds: 3, megabytes: 40, keys: 200, starts: 3, settle: time.Second, idle: 5 * time.Second, viewers: 50, viewing: 5 * time.Second,
		machines: 100, watchers: 200, flow: time.Second, searched: 256}
)

// part measures one thing. It belongs to a group, which runs together.
type part struct {
	group, name string
	measure     func(context.Context, settings) ([]row, error)
}

// The groups. That of hosts also needs VS Code's host, that of nodes needs nats-server.
const (
	ofTerminals = "terminals"
	ofHosts     = "host"
	ofNodes     = "cluster"
)

var parts = []part{
	{ofTerminals, "start", startPart},
	{ofTerminals, "commands", commandsPart},
	{ofTerminals, "shell", shellPart},
	{ofTerminals, "adopt", adoptPart},
	{ofTerminals, "memory", memoryPart},
	{ofTerminals, "echo", echoPart},
	{ofTerminals, "throughput", throughputPart},
	{ofTerminals, "history", historyPart},
	{ofTerminals, "search", searchPart},
	{ofTerminals, "viewers", viewersPart},
	{ofTerminals, "screens", screensPart},
	{ofTerminals, "ports", portsPart},
	{ofHosts, "fanout", fanOutPart},
	{ofHosts, "hostload", hostLoadPart},
	{ofHosts, "path", pathPart},
	{ofHosts, "observers", observersPart},
	{ofHosts, "key", keyBesidePart},
	{ofHosts, "web", webPart},
	{ofNodes, "cluster", clusterPart},
	{ofNodes, "nodes", nodesPart},
}

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == childArg {
		err = child(os.Args[2:], os.Stdin, os.Stdout)
	} else {
		err = run(os.Args[1:], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the parts that args select and prints the report.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	isQuick := flags.Bool("quick", false, "measure less exactly, within a minute")
	strict := flags.Bool("strict", false, "fail when a floor is missed")
	rounds := flags.Int("rounds", 0, "`number` of rounds of each comparison; 0 means 5, or 3 with -quick")
	asJSON := flags.Bool("json", false, "print JSON")
	bin := flags.String("bin", "bin", "`directory` of the built programs")
	only := flags.String("only", "", "`parts` to measure, separated by commas: "+partNames(ofTerminals)+"; of a host: "+partNames(ofHosts)+
		"; of several nodes: "+partNames(ofNodes))
	ofHost := flags.Bool("host", false, "measure a host, alone with made-up machines and as part of the whole path")
	ofCluster := flags.Bool("cluster", false, "measure a host of three nodes")
	profiles := flags.String("profile", "", "write CPU profiles of daemon and host to this `directory`, with one process each for all parts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	group := ofTerminals
	if *ofHost {
		group = ofHosts
	}
	if *ofCluster {
		group = ofNodes
	}
	chosen, err := choose(group, *only)
	if err != nil {
		return err
	}
	s := thorough
	if *isQuick {
		s = quick
	}
	if *rounds > 0 {
		s.rounds = *rounds
	}
	if s.programs, err = measured(*bin, *profiles); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := measure(ctx, s, chosen)
	print := r.table
	if *asJSON {
		print = r.json
	}
	if err := print(out); err != nil {
		return err
	}
	switch {
	case len(r.Failed) > 0:
		return fmt.Errorf("%d parts could not be measured", len(r.Failed))
	case *strict && r.missed() > 0:
		return fmt.Errorf("%d floors were missed", r.missed())
	}
	return nil
}

// measured returns the programs to measure: those in bin, or, if profiles names a
// directory, children that write profiles there.
func measured(bin, profiles string) (programs, error) {
	if profiles != "" {
		return profiled(profiles)
	}
	p := built(bin)
	if _, err := exec.LookPath(p.daemon[0]); err != nil {
		return p, fmt.Errorf("%w; make build leaves the programs there", err)
	}
	return p, nil
}

func partNames(group string) string {
	var names []string
	for _, p := range parts {
		if p.group == group {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ",")
}

// choose returns the parts of the list only, whatever their group, or those of group if
// the list is empty.
func choose(group, only string) ([]part, error) {
	var chosen []part
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 && only != "" {
			return nil, fmt.Errorf("no part is called %q; -help lists them", name)
		}
		if i >= 0 {
			chosen = append(chosen, parts[i])
		}
	}
	if only != "" {
		return chosen, nil
	}
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return p.group != group }), nil
}

func measure(ctx context.Context, s settings, chosen []part) report {
	r := report{Machine: thisMachine()}
	for _, p := range chosen {
		rows, err := p.measure(ctx, s)
		r.Rows = append(r.Rows, rows...)
		if err != nil {
			r.Failed = append(r.Failed, fmt.Sprintf("%s: %v", p.name, err))
		}
	}
	return r
}

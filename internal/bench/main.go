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
	scanned   int           // megabytes for the scanner and redaction, without a terminal: more than a cache holds
	keys      int           // typed at each place
	starts    int           // of the programs
	cuts      int           // of the connection
	idle      time.Duration // span in which idle programs are measured
	floods    int           // terminals that flood while the host is frozen
	flooding  time.Duration // how long they flood
	holders   int           // at once
	viewers   int           // of one terminal; a tenth as many more do not read
	viewing   time.Duration // how long viewers watch a flood
	machines  int           // that lend terminals to one host
	watchers  int           // observers of these terminals
	flow      time.Duration // how long a flood through a host lasts
	printers  int           // terminals with ten subscriptions each
}

var (
	thorough = settings{rounds: 5, megabytes: 200, scanned: 67, keys: 1000, starts: 5, cuts: 15, idle: idleSpan, floods: 50, flooding: 15 * time.Second,
		holders: 100, viewers: 50, viewing: 5 * time.Second, machines: 1000, watchers: 200, flow: 5 * time.Second, printers: 100}
	quick = settings{rounds: 3, megabytes: 40, scanned: 67, keys: 200, starts: 3, cuts: 5, idle: 5 * time.Second, floods: 50, flooding: 5 * time.Second,
		holders: 100, viewers: 50, viewing: 5 * time.Second, machines: 100, watchers: 200, flow: time.Second, printers: 100}
)

// part measures one thing.
type part struct {
	name    string
	measure func(context.Context, settings) ([]row, error)
}

var parts = []part{
	{"scanner", scannerPart},
	{"redaction", redactionPart},
	{"start", startPart},
	{"idle", memoryPart},
	{"status", statusPart},
	{"capped", cappedPart},
	{"echo", echoPart},
	{"throughput", throughputPart},
	{"lag", lagPart},
	{"resume", resumePart},
	{"holders", holdersPart},
	{"viewers", viewersPart},
	{"acp", acpPart},
	{"mcp", mcpPart},
	{"events", eventsPart},
	{"screens", screensPart},
	{"shells", shellsPart},
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
	only := flags.String("only", "", "`parts` to measure, separated by commas: "+partNames(parts)+"; of a host: "+partNames(hostParts)+"; of several nodes: "+partNames(clusterParts))
	ofHost := flags.Bool("host", false, "measure a host alone, with made-up machines, and beside another host")
	ofCluster := flags.Bool("cluster", false, "measure a host of three nodes")
	profiles := flags.String("profile", "", "write CPU profiles of daemon and host to this `directory`, with one process each for all parts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen := parts
	if *ofHost {
		chosen = hostParts
	}
	if *ofCluster {
		chosen = clusterParts
	}
	if name := unknownPart(chosen, *only); name != "" {
		return fmt.Errorf("no part is called %q; there are %s", name, partNames(chosen))
	}
	s := thorough
	if *isQuick {
		s = quick
	}
	if *rounds > 0 {
		s.rounds = *rounds
	}
	var err error
	if s.programs, err = choose(*bin, *profiles); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := measure(ctx, s, chosen, *only)
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

// choose returns the programs to measure: those in bin, or, if profiles names a directory, children that write profiles there.
func choose(bin, profiles string) (programs, error) {
	if profiles != "" {
		return profiled(profiles)
	}
	p := built(bin)
	if _, err := exec.LookPath(p.daemon[0]); err != nil {
		return p, fmt.Errorf("%w; make build leaves the programs there", err)
	}
	return p, nil
}

func partNames(parts []part) string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return strings.Join(names, ",")
}

// unknownPart returns the first name in only that no part has; "" if all are known.
func unknownPart(parts []part, only string) string {
	for name := range strings.SplitSeq(only, ",") {
		if name != "" && !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return name
		}
	}
	return ""
}

// measure runs the parts that only names, a list separated by commas; "" means all.
func measure(ctx context.Context, s settings, parts []part, only string) report {
	r := report{Machine: thisMachine()}
	for _, p := range parts {
		if only != "" && !slices.Contains(strings.Split(only, ","), p.name) {
			continue
		}
		rows, err := p.measure(ctx, s)
		r.Rows = append(r.Rows, rows...)
		if err != nil {
			r.Failed = append(r.Failed, fmt.Sprintf("%s: %v", p.name, err))
		}
	}
	return r
}

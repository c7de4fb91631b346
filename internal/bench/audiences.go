package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tether/ahp"
	"tether/ahp/client"
)

// Floors for the cost of a host that keeps people apart, relative to one that does not: medians of rounds that alternate.
const (
	floorAudienceCPU   = 1.03
	floorAudienceRate  = 0.95
	floorAudienceEcho  = 1.05
	audienceWatchers   = 10
	audienceRounds     = 15
	audienceOtherNames = 10 // further people who may watch the terminal
)

// audiencesPart floods the same observers at two hosts in turn: one shows everything to everybody, the other keeps people apart.
func audiencesPart(ctx context.Context, s settings) ([]row, error) {
	const part = "audiences"
	rounds := audienceRounds
	if s.rounds == 1 { // a test
		rounds = 1
	}
	c, err := findCorpus("coloured")
	if err != nil {
		return nil, err
	}
	var teams [2]*team
	for on := range teams {
		if teams[on], err = newTeam(ctx, s.programs, on == 1); err != nil {
			return nil, err
		}
		defer teams[on].close()
	}
	var cpu, rate, echo []float64
	for n := range rounds {
		var got [2]cost
		for k := range teams {
			on := (n + k) % 2 // each goes first equally often
			if got[on], err = teams[on].measure(ctx, s, onTerminal(c.block())); err != nil {
				return nil, err
			}
		}
		cpu, rate, echo = append(cpu, got[1].cpu/got[0].cpu), append(rate, got[1].rate/got[0].rate), append(echo, got[1].echo/got[0].echo)
	}
	note := fmt.Sprintf("of off; %d interleaved rounds, %d observers", rounds, audienceWatchers)
	return []row{
		row{Part: part, Name: "CPU of the host per MB", Value: median(cpu), Note: note}.most(floorAudienceCPU),
		row{Part: part, Name: "throughput", Value: median(rate), Note: note}.least(floorAudienceRate),
		row{Part: part, Name: "from machine to observer, p50", Value: median(echo), Note: note}.most(floorAudienceEcho),
	}, nil
}

// team is a host, a machine of one person, and observers who are other people.
type team struct {
	*rig
	m *fakeMachine
	g gallery
}

// cost is the measurement of one round: CPU seconds per MB sent to the observers, MB/s to all of them, and ms until a stamp arrives.
type cost struct{ cpu, rate, echo float64 }

func newTeam(ctx context.Context, p programs, on bool) (*team, error) {
	own := p.host[0]
	p.host = []string{own, "--listen", "127.0.0.1:0", "--shells=false"}
	r, err := newHostRig(ctx, p)
	if err != nil {
		return nil, err
	}
	t := &team{rig: r}
	if err := t.fill(ctx, own, on); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// fill creates the people and their tokens, and connects them. on: the host keeps people apart.
func (t *team) fill(ctx context.Context, own string, on bool) error {
	as := func(args ...string) (client.Endpoint, error) {
		cmd := t.command(append([]string{own}, args...))
		out, err := cmd.Output()
		if err != nil {
			return client.Endpoint{}, t.said.explain(fmt.Errorf("%s: %w", filepath.Base(own), err))
		}
		return client.Endpoint{URL: t.host.URL, Token: strings.TrimSpace(string(out))}, nil
	}
	machine, err := as("token", "create", "machine", "--owner", "owner")
	if err != nil {
		return err
	}
	var watchers []client.Endpoint
	audience := ahp.Audience{}
	for n := range audienceWatchers + audienceOtherNames {
		name := fmt.Sprint("person", n)
		e, err := as("token", "create", name, "--role", "observer")
		if err != nil {
			return err
		}
		audience.Grants = append([]ahp.Grant{{To: name}}, audience.Grants...) // the watchers' grants come last
		if n < audienceWatchers {
			watchers = append(watchers, e)
		}
	}
	if on {
		if _, err := as("people", "on"); err != nil {
			return err
		}
	}
	// The host reads the changed files within a second, and then closes connections once.
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	if t.m, err = dialMachine(ctx, machine, 0); err != nil {
		return err
	}
	if marker, _ := ahp.FindClientTerminals(t.m.conn.Result()); marker.KeepsAudiences() != on {
		return errors.New("the host does not say whether it keeps people apart as it should")
	}
	uri := terminalURI(0, 0)
	err = t.m.conn.CreateTerminal(ctx, ahp.CreateTerminalParams{Channel: uri, Name: "bench", Claim: ahp.ClientClaim(machineID(0)), ExecutionTarget: ahp.TargetClient, Meta: ahp.AddAudience(nil, audience)})
	if err != nil {
		return err
	}
	t.m.uris = []string{uri}
	for n, e := range watchers {
		if err := t.g.join(ctx, e, n, uri, n == 0); err != nil {
			return err
		}
	}
	return nil
}

func (t *team) close() {
	t.g.close()
	if t.m != nil {
		t.m.conn.Close()
	}
	t.rig.close()
}

func (t *team) measure(ctx context.Context, s settings, block []byte) (c cost, err error) {
	before, err := cpuTime(t.server.Process.Pid)
	if err != nil {
		return c, err
	}
	rate, _, err := t.g.rateOf(ctx, s.flow/2, func(stop <-chan struct{}) error { return t.m.flood(ctx, t.m.uris[0], block, stop) })
	if err != nil {
		return c, err
	}
	after, err := cpuTime(t.server.Process.Pid)
	if err != nil {
		return c, err
	}
	if err := t.m.await(ctx, t.m.uris[0], 0); err != nil {
		return c, err
	}
	ages, err := t.g.ticks(ctx, t.m, s.flow/2)
	if err != nil {
		return c, err
	}
	return cost{cpu: (after - before).Seconds() / (rate * (s.flow / 2).Seconds()), rate: rate, echo: quantile(ages, 0.5)}, nil
}

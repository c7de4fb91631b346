package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"tether/platform/browser"
	"tether/platform/shell"
)

// served finds the address that the dev server prints.
var served = regexp.MustCompile(`listening on (http://[0-9.:]+)`)

// play has the person take the steps.
func (s *stage) play(ctx context.Context) error {
	site, err := s.site(ctx)
	if err != nil {
		return err
	}
	link, err := s.link(ctx)
	if err != nil {
		return err
	}
	a := s.app
	fmt.Fprintf(a.stdout, "\nPeople at the host see it in a browser, live:\n\n  %s\n\nand in another terminal of yours:\n\n  TETHER_HOME=%s %s watch %s %s\n",
		link, shellLine([]string{s.home()}), shellLine([]string{s.self}), demoHost, demoServer)
	changes, running := 0, true
	for {
		fmt.Fprint(a.stdout, "\no open the page · c change what is served · s a shell that the host sees · e end the server · q quit ")
		key, err := a.key(ctx, "ocseq")
		fmt.Fprintln(a.stdout)
		if err != nil {
			return err
		}
		switch {
		case key == 'q':
			fmt.Fprintln(a.stdout, "all of it ends, and nothing is left; for your own host: tether pair wss://HOST")
			return nil
		case key == 'o':
			err = s.openPage(ctx, &link)
		case key == 's':
			err = s.tether(ctx, "run", "--name", "shell", "--", shell.Login()) // no login shell: it would forget where tether is
			var failed *exec.ExitError
			if errors.As(err, &failed) { // its last command's status is no failure of the demo
				err = nil
			}
			fmt.Fprintln(a.stdout, "the shell has ended; the host's page shows what it printed and its commands")
		case !running:
			fmt.Fprintln(a.stdout, "the server has ended already")
		case key == 'c':
			changes++
			if err = s.change(fmt.Sprintf("Hello, for the %s time", ordinal(changes+1))); err == nil {
				_, err = get(ctx, site+"/")
			}
			fmt.Fprintf(a.stdout, "changed, and requested once; the host's page shows both lines. The server itself: %s\n", site)
		case key == 'e':
			running = false
			if err = s.tether(ctx, "kill", demoServer); err == nil {
				fmt.Fprintln(a.stdout, "ended; the host's page shows that, too")
			}
		}
		if err != nil {
			return err
		}
	}
}

func ordinal(n int) string {
	if words := []string{"first", "second", "third"}; n <= len(words) {
		return words[n-1]
	}
	return fmt.Sprintf("%dth", n)
}

// openPage opens a link, which works once, and makes the next.
func (s *stage) openPage(ctx context.Context, link *string) error {
	opened := *link
	var err error
	if *link, err = s.link(ctx); err != nil {
		return err
	}
	if err := browser.Open(opened); err != nil {
		fmt.Fprintf(s.app.stdout, "%v; the link: %s\n", err, opened)
		return nil
	}
	fmt.Fprintln(s.app.stdout, "the browser has the page; choose", demoServer, "there")
	return nil
}

// home is that of the demo's daemon.
func (s *stage) home() string { return filepath.Join(s.dir, "home") }

// site waits until the dev server listens, and returns its address.
func (s *stage) site(ctx context.Context) (string, error) {
	site := ""
	err := s.until(ctx, "the server's address", func() bool {
		out, err := exec.CommandContext(ctx, s.self, "read", demoServer).Output()
		if found := served.FindSubmatch(out); err == nil && found != nil {
			site = string(found[1])
		}
		return site != ""
	})
	return site, err
}

// prove takes all steps by itself and looks at what an observer at the host saw of them.
func (s *stage) prove(ctx context.Context) error {
	var seen buffer
	watching := exec.CommandContext(ctx, s.self, "watch", "--wait", demoHost, demoServer)
	watching.Stdout, watching.Stderr = &seen, &seen
	if err := watching.Start(); err != nil {
		return err
	}
	watched := make(chan error, 1)
	go func() { watched <- watching.Wait() }()
	defer func() { _ = watching.Process.Kill() }() // which has ended if all was well

	err := s.steps(ctx, &seen)
	if err == nil {
		select {
		case err = <-watched:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("%w; the observer saw:\n%s", err, seen.String())
	}
	for _, path := range []string{"hello", "without-a-daemon", "with-another"} {
		if n := strings.Count(seen.String(), `GET "/`+path+`"`); n != 1 {
			return fmt.Errorf("the observer saw the line of /%s %d times:\n%s", path, n, seen.String())
		}
	}
	s.say("all of that was seen by an observer at the host, each line once:")
	for line := range strings.Lines(seen.String()) {
		fmt.Fprint(s.app.stdout, "  | ", line)
	}
	link, err := s.link(ctx)
	if err != nil {
		return err
	}
	s.say("people see it in a browser, at a link such as this (run it in a terminal to try: there it waits for you)")
	if _, err := get(ctx, link); err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	fmt.Fprintln(s.app.stdout, link)
	return nil
}

// steps are what prove does with the server.
func (s *stage) steps(ctx context.Context, seen *buffer) error {
	sees := func(pattern string) error {
		re := regexp.MustCompile(pattern)
		return s.until(ctx, pattern, func() bool { return re.MatchString(seen.String()) })
	}
	if err := sees(served.String()); err != nil {
		return err
	}
	site := served.FindStringSubmatch(seen.String())[1]
	toSee := func(pattern string) func() error { return func() error { return sees(pattern) } }
	visit := func(path, wanted string) func() error {
		return func() error {
			text, err := get(ctx, site+path)
			if err == nil && !strings.Contains(text, wanted) {
				err = fmt.Errorf("the server's page is %q", text)
			}
			if err != nil || wanted == "" {
				return err
			}
			return sees(`GET "` + path + `" .*200`)
		}
	}
	run := func(args ...string) func() error { return func() error { return s.tether(ctx, args...) } }
	for _, step := range []struct {
		says string
		do   []func() error
	}{
		{"what runs", []func() error{run("ls")}},
		{"a page is requested", []func() error{visit("/hello", "Hello")}},
		{"what it serves changes", []func() error{func() error { return s.change("Changed") }, toSee(`page\.html has changed`), visit("/changed", "Changed")}},
		{"the daemon is killed; the server serves on, and nobody tells the observer",
			[]func() error{func() error { return s.killDaemon(ctx) }, visit("/without-a-daemon", "")}},
		{"another daemon takes the server up where it is",
			[]func() error{run("daemon", "--background"), toSee(`GET "/without-a-daemon" .*200`), visit("/with-another", "Changed"), run("ls")}},
		{"the server is killed", []func() error{run("kill", demoServer), toSee(`(?m)^tether: exited [0-9]`)}},
	} {
		s.say(step.says)
		for _, do := range step.do {
			if err := do(); err != nil {
				return err
			}
		}
	}
	return nil
}

// killDaemon ends the daemon as a crash would.
func (s *stage) killDaemon(ctx context.Context) error {
	client, _, err := s.app.client()
	if err != nil {
		return err
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	daemon, err := os.FindProcess(status.Pid)
	if err != nil {
		return err
	}
	if err := daemon.Kill(); err != nil {
		return err
	}
	return client.WaitGone(ctx)
}
